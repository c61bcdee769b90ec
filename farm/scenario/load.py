"""TOML into typed data, strictly; what is wrong is said in one sentence with the path of the field.

Rules: paths are as one would write them, ``worker[1].fps``, counted from 0; an unknown field is refused with
the one that was probably meant; a number of the wrong type is refused, but a whole number may stand for a
real one. Ranges are the business of whoever knows what a field means (``number``).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_type_hints

import msgspec

from farm.errors import UsageError, shorten
from farm.policies.parameters import did_you_mean

Data = TypeVar("Data", bound=msgspec.Struct)

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$?\.?(?P<path>.*)`)?\Z", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.*)`\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<field>.*)`\Z", re.DOTALL)
_TYPES = re.compile(r"Expected `(?P<wanted>.*?)`, got `(?P<got>.*?)`\Z", re.DOTALL)
_LENGTH = re.compile(r"Expected `array` of length (?P<wanted>.*), got (?P<got>.*)\Z", re.DOTALL)
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def read_toml(path: str) -> str:
    """The text of a file. Raises UsageError that says why it can't be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: can't read it: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: it is not UTF-8 text (byte {error.start})") from None
    except ValueError:
        raise UsageError(f"{shorten(path)} is not a path") from None


def parse_toml(text: str, where: str, into: type[Data]) -> Data:
    """``text`` as ``into``, a struct with ``forbid_unknown_fields``. ``where`` begins every error, which is a
    UsageError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: not TOML: nested too deeply") from None
    try:
        return msgspec.convert(data, into)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {_sentence(str(error), into)}") from None


def number(
    path: str, value: float, *, low: float = 0.0, above: bool = False, high: float = math.inf, unit: str = ""
) -> None:
    """Raises UsageError unless ``value`` is finite, at least ``low`` (or above it) and at most ``high``."""
    if math.isfinite(value) and (value > low if above else value >= low) and value <= high:
        return
    wanted = f"above {_plain(low)}" if above else f"at least {_plain(low)}"
    if math.isfinite(high):
        wanted = f"{wanted} and at most {_plain(high)}" if above else f"from {_plain(low)} to {_plain(high)}"
    raise UsageError(f"{path}: give {unit or 'a number'} {wanted}, not {_plain(value)}")


def _plain(value: float) -> str:
    return f"{value:,.12g}"


def _sentence(message: str, into: type[msgspec.Struct]) -> str:
    found = _AT.match(message)
    assert found is not None  # it matches anything
    what, path = found["what"], found["path"] or ""
    if unknown := _UNKNOWN.match(what):
        known = _fields_at(into, path)
        hint = did_you_mean(unknown["field"], known)
        return f"{_joined(path, unknown['field'])}: unknown field{hint}; known: {', '.join(known)}"
    if missing := _MISSING.match(what):
        return f"{_joined(path, missing['field'])}: is missing"
    if types := _TYPES.match(what):
        return f"{path or 'file'}: must be {_in_words(types['wanted'])}, not {_in_words(types['got'])}"
    if length := _LENGTH.match(what):
        return f"{path}: must be a list of {length['wanted']}, not of {length['got']}"
    return f"{path or 'file'}: {what[:1].lower()}{what[1:]}"


def _joined(path: str, field: str) -> str:
    field = field if re.fullmatch(r"[\w-]+", field) else repr(field)
    return f"{path}.{field}" if path else field


def _in_words(kinds: str) -> str:
    words = [_WORDS.get(kind.strip(), kind.strip()) for kind in kinds.split("|") if kind.strip() != "null"]
    return " or ".join(dict.fromkeys(words)) or "nothing"


def _fields_at(into: type[msgspec.Struct], path: str) -> list[str]:
    """The fields of the struct that ``path`` leads to."""
    struct: Any = into
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path):
        if not step.startswith("["):
            names = {field.encode_name: field.name for field in msgspec.structs.fields(struct)}
            struct = _struct_in(get_type_hints(struct)[names[step]])
    return [field.encode_name for field in msgspec.structs.fields(struct)]


def _struct_in(hint: Any) -> Any:
    """The struct somewhere within a type such as ``tuple[Worker, ...] | None``."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint
    inner: Iterable[Any] = get_args(hint) if hint not in (Union, UnionType) else ()
    return next((found for found in map(_struct_in, inner) if found is not None), None)
