"""``--settings FILE``: options of a command kept in a TOML file, by their long names without the dashes.

    crf = 20
    preset = "slow"
    part = "10s"
    fleet = [30, 30, 12, 2]
    option = { tune = "film" }
    decode = true

Rule: the file gives defaults and nothing more: what is typed counts more, a name that is no option is
refused, and a value is understood exactly as if it had been typed.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from farm.errors import UsageError
from farm.paths import printable, reason

_NOT_KEPT = ("settings", "help")


def take_settings(context: typer.Context, path: Path | None) -> Path | None:
    """Read the file into the context's defaults, before any other option is looked at. Raises UsageError."""
    if path is not None:
        context.default_map = {**(context.default_map or {}), **read_settings(path, context.command.params)}
    return path


def read_settings(path: Path, parameters: Any) -> dict[str, Any]:
    """The values by parameter name, as the command line would give them. Raises UsageError."""
    try:
        kept = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--settings {printable(path)} can't be read: {reason(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--settings {printable(path)} is not TOML: {error}") from error
    known = _long_names(parameters)
    values: dict[str, Any] = {}
    for name, value in kept.items():
        where = f"--settings {printable(path)}: {name}"
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{where} is no option{hint}")
        parameter, negated = known[name]
        values[parameter.name] = _as_typed(value, parameter, where, negated)
    return values


def _long_names(parameters: Any) -> dict[str, tuple[Any, bool]]:
    """Each option by its long names, and whether that one turns it off."""
    known: dict[str, tuple[Any, bool]] = {}
    for parameter in parameters:
        if parameter.param_type_name != "option":
            continue
        for negated, names in ((False, parameter.opts), (True, parameter.secondary_opts)):
            for name in names:
                if name.startswith("--") and name[2:] not in _NOT_KEPT:
                    known[name[2:]] = parameter, negated
    return known


def _as_typed(value: object, parameter: Any, where: str, negated: bool) -> object:
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{where} is a switch: give true or false")
        return value is not negated
    if isinstance(value, bool):
        raise UsageError(f"{where} is no switch: give a value")
    if parameter.multiple:
        if isinstance(value, Mapping):
            return [f"{key}={_word(entry, where)}" for key, entry in value.items()]
        return [_word(entry, where) for entry in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        return ",".join(_word(entry, where) for entry in value)
    return _word(value, where)


def _word(value: object, where: str) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{where}: give text or a number")
