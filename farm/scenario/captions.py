"""How captions are written: ``[[caption]]`` tables of a scenario file.

    [[caption]]
    when = "w3 lapses"              # or: at = 12.0, seconds from the first grant
    text = "Its lease ran out: what it had not delivered is open again."
    for = 6.0                       # seconds for the reader

``when`` takes what a fault takes ("w3 has delivered 2 parts", "50 % is credited"), and what happens in a run:
see ``_WORDS`` and ``_SENTENCES``. Every error is one sentence with the path of the field.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from farm.captions import CAPTIONS_MAX, DEFAULT_SECONDS, TEXT_MAX, AtEnd, AtMoment, Caption, CaptionWhen
from farm.errors import UsageError, shorten
from farm.faults import AtTime
from farm.moments import Kind
from farm.scenario.faults import parse_when
from farm.scenario.load import number

_SECONDS_MAX: Final = 600.0
_AT_MAX: Final = 1e7
#: What a worker does or suffers, after its name or "a worker".
_WORDS: Final[dict[str, Kind]] = {
    "lapses": "lapse",
    "is refused": "refusal",
    "is killed": "kill",
    "is lost": "loss",
    "stalls": "stall",
    "wakes": "wake",
    "duplicates": "duplicate",
    "fails": "failure",
}
#: What happens to the run, or to anybody's chunk.
_SENTENCES: Final[dict[str, CaptionWhen]] = {
    "a chunk is split": AtMoment("split"),
    "a chunk is duplicated": AtMoment("duplicate"),
    "a claim lapses": AtMoment("lapse"),
    "a message is refused": AtMoment("refusal"),
    "the work is done": AtEnd("work"),
    "the output is verified": AtEnd("verified"),
    "the run ends": AtMoment("finish"),
}
_ABOUT_WORKER: Final = re.compile(rf"(?P<who>a worker|\S+) (?P<what>{'|'.join(_WORDS)})\Z", re.ASCII)


class CaptionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[caption]]``."""

    text: str
    at: float | None = None
    when: str | None = None
    seconds: float | None = msgspec.field(default=None, name="for")


def captions_of(tables: Sequence[CaptionTable], workers: Sequence[str], where: str) -> tuple[Caption, ...]:
    """The captions that tables describe. Raises UsageError."""
    if len(tables) > CAPTIONS_MAX:
        raise UsageError(
            f"{where}: caption: {len(tables)} are more than {CAPTIONS_MAX}; nobody reads so many"
        )
    return tuple(_caption(table, workers, f"{where}: caption[{n}]") for n, table in enumerate(tables))


def _caption(table: CaptionTable, workers: Sequence[str], where: str) -> Caption:
    text = " ".join(table.text.split())
    if not text:
        raise UsageError(f"{where}.text: say something")
    if len(text) > TEXT_MAX:
        raise UsageError(
            f"{where}.text: {len(text)} characters are more than {TEXT_MAX}; make it two captions"
        )
    seconds = DEFAULT_SECONDS if table.seconds is None else table.seconds
    number(f"{where}.for", seconds, low=0.5, high=_SECONDS_MAX, unit="seconds")
    return Caption(text=text, when=_when(table, workers, where), seconds=seconds)


def _when(table: CaptionTable, workers: Sequence[str], where: str) -> CaptionWhen:
    if (table.at is None) == (table.when is None):
        many = "either at or when, not both" if table.at is not None else "when: at = SECONDS, or when = …"
        raise UsageError(f"{where}: say {many}")
    if table.at is not None:
        number(f"{where}.at", table.at, high=_AT_MAX, unit="seconds")
        return AtTime(table.at)
    assert table.when is not None
    text = " ".join(table.when.split())
    if text in _SENTENCES:
        return _SENTENCES[text]
    if found := _ABOUT_WORKER.match(text):
        who = None if found["who"] == "a worker" else found["who"]
        _check_worker(who, workers, f"{where}.when")
        return AtMoment(_WORDS[found["what"]], who)
    try:
        when = parse_when(text, (), f"{where}.when")
    except UsageError as error:
        known = ", ".join(repr(sentence) for sentence in _SENTENCES)
        raise UsageError(f"{error}; or {known}, or 'w3' with {', '.join(map(repr, _WORDS))}") from None
    _check_worker(getattr(when, "worker", None), workers, f"{where}.when")
    return when


def _check_worker(name: str | None, workers: Sequence[str], where: str) -> None:
    if name is not None and name not in workers:
        raise UsageError(f"{where}: there is no worker {shorten(name)}")
