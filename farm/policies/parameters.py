"""Parameters of policies: the fields of a dataclass, as users spell them: ``12``, ``min=12``, ``tail=0.2``.

Rules: a field's annotation is its type (int, float, bool, str, or one of them with ``| None``), its metadata
its range: ``low`` and ``high`` (both allowed) and ``unit``, a word for the error. A number without ``low`` is
above 0. Whatever is wrong is one sentence that begins with the policy as it was given and names the field.
What only two fields together can get wrong, the class refuses in ``__post_init__`` by ValueError.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
from collections.abc import Iterable, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from farm.errors import UsageError, shorten

#: Numbers beyond this are a typing error, not a number of frames.
LARGEST = 999_999_999

_WHOLE = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
_NUMBER = re.compile(r"(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,3})?\Z", re.ASCII)
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def parameter(default: Any, *, low: float, high: float = LARGEST, unit: str = "") -> Any:
    """A dataclass field with the range ``[low, high]``, both allowed."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "unit": unit})


def spell(name: str, policy: Any) -> str:
    """``policy`` as a user would spell it: its name and what differs from the defaults."""
    given = [
        f"{field.name}={spell_value(getattr(policy, field.name))}"
        for field in _fields(type(policy))
        if getattr(policy, field.name) != field.default
    ]
    return ",".join([name, *given])


def read_parameters(where: str, name: str, cls: type, given: Sequence[str]) -> dict[str, Any]:
    """The values of ``given``, by field of ``cls``. ``where`` begins every error.

    Raises UsageError; TypeError or NameError if the annotations of ``cls`` can't be read.
    """
    fields = {field.name: field for field in _fields(cls)}
    hints = get_type_hints(cls) if fields else {}
    takes = f"takes {', '.join(fields)}" if fields else "takes no parameters"
    values: dict[str, Any] = {}
    for position, text in enumerate(given):
        key, equals, value = (side.strip() for side in text.partition("="))
        if not equals:
            if position >= len(fields):
                raise UsageError(f"{where}: {name} {takes}; {shorten(text)} is one too many")
            key, value = list(fields)[position], text
        if key not in fields:
            raise UsageError(
                f"{where}: {name} has no parameter {shorten(key)}{did_you_mean(key, fields)}; it {takes}"
            )
        if key in values:
            raise UsageError(f"{where}: {key} is given twice")
        values[key] = _read_value(where, fields[key], hints[key], value)
    missing = [key for key, field in fields.items() if key not in values and _is_required(field)]
    if missing:
        raise UsageError(f"{where}: {name} needs {', '.join(missing)}; it {takes}")
    return values


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x'?)"`` or nothing."""
    close = difflib.get_close_matches(word[:60], list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _fields(cls: type) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(cls) if f.init] if dataclasses.is_dataclass(cls) else []


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _read_value(where: str, field: dataclasses.Field[Any], hint: Any, text: str) -> Any:
    kind = _kind_of(hint)
    if kind is None:
        raise UsageError(
            f"{where}: {field.name} is declared as {hint}; a parameter is an int, float, bool or str"
        )
    value: Any = None
    if kind is str:
        value = text
    elif kind is bool:
        value = {"true": True, "false": False}.get(text)
    elif kind is int and _WHOLE.match(text):
        value = int(text)
    elif kind is float and _NUMBER.match(text):
        value = float(text)
    low, high = field.metadata.get("low"), field.metadata.get("high", LARGEST)
    if kind in (int, float) and value is not None:
        above = value > 0 if low is None else value >= low
        if not (math.isfinite(value) and above and value <= high):
            value = None
    if value is None:
        raise UsageError(f"{where}: {field.name} must be {_wanted(field, kind)}, not {shorten(text)}")
    return value


def _wanted(field: dataclasses.Field[Any], kind: type) -> str:
    wanted, unit = _KINDS[kind], field.metadata.get("unit")
    if kind not in (int, float):
        return wanted
    wanted += f" of {unit}" if unit else ""
    low, high = field.metadata.get("low"), field.metadata.get("high", LARGEST)
    if low is None:
        return f"{wanted} above 0"
    return f"{wanted}, at least {low:g}" if high == LARGEST else f"{wanted} from {low:g} to {high:g}"


def _kind_of(hint: Any) -> type | None:
    """int, float, bool or str, also behind ``| None``; None for anything else."""
    if get_origin(hint) in (Union, types.UnionType):
        rest = [arg for arg in get_args(hint) if arg is not type(None)]
        hint = rest[0] if len(rest) == 1 else None
    return hint if hint in _KINDS else None


def spell_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
