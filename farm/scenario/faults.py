"""How faults are written: in one line for ``--fault``, and as ``[[fault]]`` tables of a scenario file.

    KIND [WORKERS] [to X | by X] [WHEN] [for SECONDS] [every time]

    stall w3 at 10 for 30
    kill w1,w5 when w3 has delivered 2 parts of one chunk
    corrupt w2 on its second claim
    slow all to 0.25 when 50 % is credited
    pause-relay at 5 for 3

The same words in a table: ``do``, ``on``, ``to``, ``by``, ``at`` or ``when``, ``for``, ``every_time``.
Seconds count from the first grant of the run. Every error is one sentence that begins with what was given and
says what would be right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, Protocol, get_args

import msgspec

from farm.errors import UsageError, shorten
from farm.events import FaultNeverCame
from farm.faults import (
    EVERYONE,
    KINDS,
    AfterParts,
    AtClaim,
    AtShare,
    AtTime,
    Fault,
    Kind,
    KindFacts,
    When,
)
from farm.policies.parameters import did_you_mean

_SECONDS_MAX: Final = 1e7
_COUNT_MAX: Final = 1_000_000
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?\Z", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}\Z", re.ASCII)
_ORDINALS: Final = {
    word: number
    for number, word in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"), 1
    )
}
_DELIVERED = re.compile(
    r"(?P<who>\S+) has delivered (?P<parts>\d{1,7}) parts?(?: of (?P<whole>any|one) chunk)?\Z", re.ASCII
)
_CLAIM = re.compile(r"(?:when (?P<who>\S+) makes|on) its (?P<nth>\w+) claim\Z", re.ASCII)
_SHARE = re.compile(r"(?P<share>\d{1,3}(?:\.\d{1,6})?) ?% (?:is|are) credited\Z", re.ASCII)
#: Words that begin a new clause.
_CLAUSES: Final = ("to", "by", "at", "when", "on", "for", "every")


class FaultTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[fault]]``."""

    do: str
    on: str | tuple[str, ...] = ()
    at: float | None = None
    when: str | None = None
    seconds: float | None = msgspec.field(default=None, name="for")
    to: float | None = None
    by: float | None = None
    every_time: bool = False


# --- one line --------------------------------------------------------------------------------------------


def parse_fault(text: str) -> Fault:
    """A fault in one line. Raises UsageError."""
    where = f"--fault {shorten(text, 120)}"
    words = text.split()
    if not words:
        raise UsageError(f"--fault {text!r}: say what goes wrong, as in 'stall w3 at 10 for 30'")
    facts = KINDS[_kind(words[0], where)]
    given: dict[str, object] = {"do": words[0]}
    rest = words[1:]
    if rest and rest[0] not in _CLAUSES and facts.on_worker:
        given["on"] = tuple(rest.pop(0).split(","))
    for clause in _clauses(rest, where):
        _read_clause(clause, given, where)
    return fault_of(msgspec.convert(given, FaultTable), where)


def _clauses(words: Sequence[str], where: str) -> list[list[str]]:
    found: list[list[str]] = []
    for word in words:
        if word in _CLAUSES:
            found.append([word])
        elif not found:
            raise UsageError(f"{where}: {shorten(word)} is not expected there; {_HOW}")
        else:
            found[-1].append(word)
    return found


_HOW: Final = "write KIND WORKER [to X | by X] at SECONDS [for SECONDS], or when … instead of at"


def _read_clause(clause: Sequence[str], given: dict[str, object], where: str) -> None:
    word, *rest = clause
    text = " ".join(rest)
    value: str | float
    if word in ("when", "on"):
        key, value = "when", text if word == "when" else f"on {text}"
    elif word == "every":
        if text != "time":
            raise UsageError(f"{where}: after 'every' comes 'time'")
        given["every_time"] = True
        return
    else:
        key = word
        seconds = re.fullmatch(r"(.+?) ?s(?:econds)?", text) if word in ("at", "for") else None
        number = seconds[1] if seconds else text
        if not _NUMBER.match(number):
            raise UsageError(
                f"{where}: after {word!r} comes a number, not {shorten(text) if text else 'nothing'}"
            )
        value = float(number)
    if key in given:
        raise UsageError(f"{where}: {word!r} is given twice")
    given[key] = value


# --- one table -------------------------------------------------------------------------------------------


def fault_of(table: FaultTable, where: str) -> Fault:
    """The fault that a table or a line describes; ``where`` begins every error. Raises UsageError."""
    in_file = not where.startswith("--fault")

    def at(field: str) -> str:
        return f"{where}.{field}" if in_file else where

    kind = _kind(table.do, at("do"))
    facts = KINDS[kind]
    workers = (table.on,) if isinstance(table.on, str) else table.on
    _check_workers(kind, facts, workers, at("on"))
    seconds = facts.seconds if table.seconds is None else table.seconds
    if seconds is not None:
        if facts.lasts == "moment":
            raise UsageError(f"{at('for')}: {kind} happens at one moment; leave out how long")
        _check_number(at("for"), seconds, 0.001, _SECONDS_MAX, "seconds")
    when = _when(table, workers, where, in_file)
    if table.every_time and not isinstance(when, AfterParts | AtClaim):
        raise UsageError(f"{at('every_time')}: what happens at a time or at a share happens once")
    return Fault(
        kind=kind,
        workers=workers,
        when=when,
        seconds=seconds,
        amount=_amount(kind, facts, table, at),
        every_time=table.every_time,
    )


def _kind(text: str, where: str) -> Kind:
    for kind in get_args(Kind):
        if text == kind:
            found: Kind = kind
            return found
    raise UsageError(
        f"{where}: {shorten(text)} is not a fault{did_you_mean(text, KINDS)}; known: {', '.join(KINDS)}"
    )


def _check_workers(kind: Kind, facts: KindFacts, workers: Sequence[str], where: str) -> None:
    if not facts.on_worker:
        if workers:
            raise UsageError(f"{where}: {kind} is not about a worker; leave out {shorten(workers[0])}")
        return
    if not workers:
        raise UsageError(f"{where}: say which worker, as in '{kind} w3 …', or {EVERYONE}")
    for name in workers:
        if not _NAME.match(name):
            raise UsageError(f"{where}: {shorten(name)} is not the name of a worker")
    if len(set(workers)) != len(workers):
        raise UsageError(f"{where}: a worker is named twice")
    if EVERYONE in workers and len(workers) > 1:
        raise UsageError(f"{where}: {EVERYONE} stands alone")


def _amount(kind: Kind, facts: KindFacts, table: FaultTable, at: _Path) -> float | None:
    amount = facts.amount
    for word, value in (("to", table.to), ("by", table.by)):
        if value is not None and (amount is None or amount.word != word):
            hint = f"; it takes {amount.word!r}" if amount is not None else ""
            raise UsageError(f"{at(word)}: {kind} takes no {word!r}{hint}")
    if amount is None:
        return None
    given = table.to if amount.word == "to" else table.by
    if given is None:
        given = amount.default
    if given is None:
        raise UsageError(
            f"{at(amount.word)}: say {amount.word} what: {amount.unit}, as in {amount.word} 0.25"
        )
    _check_number(at(amount.word), given, amount.low, amount.high, amount.unit)
    return given


class _Path(Protocol):
    def __call__(self, field: str) -> str: ...


def _check_number(where: str, value: float, low: float, high: float, unit: str) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise UsageError(f"{where}: give {unit} from {low:,g} to {high:,g}, not {value:,g}")


def _when(table: FaultTable, workers: Sequence[str], where: str, in_file: bool) -> When:
    if (table.at is None) == (table.when is None):
        many = "either at or when, not both" if table.at is not None else "when: at SECONDS, or when …"
        raise UsageError(f"{where}: say {many}")
    if table.at is not None:
        _check_number(f"{where}.at" if in_file else where, table.at, 0.0, _SECONDS_MAX, "seconds")
        return AtTime(table.at)
    assert table.when is not None
    return parse_when(table.when, workers, f"{where}.when" if in_file else where)


def parse_when(text: str, workers: Sequence[str], where: str) -> When:
    """``w3 has delivered 2 parts``, ``on its first claim``, ``50 % is credited``. Raises UsageError."""
    text = " ".join(text.split())
    if found := _DELIVERED.match(text):
        parts = int(found["parts"])
        _check_number(where, parts, 1, _COUNT_MAX, "a number of parts")
        return AfterParts(parts, _who(found["who"], workers, where), found["whole"] == "one")
    if found := _CLAIM.match(text if text.startswith("on ") else f"when {text}"):
        nth = _ordinal(found["nth"])
        if nth is not None:
            return AtClaim(nth, _who(found["who"] or "it", workers, where))
    if found := _SHARE.match(text):
        share = float(found["share"]) / 100
        if 0 < share <= 1:
            return AtShare(share)
    raise UsageError(
        f"{where}: {shorten(text)} is not understood; write 'w3 has delivered 2 parts [of one chunk]', "
        "'on its first claim', 'w3 makes its first claim' or '50 % is credited'"
    )


def _who(text: str, workers: Sequence[str], where: str) -> str | None:
    if text == "it":
        if not workers:
            raise UsageError(f"{where}: say which worker; 'it' is none here")
        return None
    if not _NAME.match(text):
        raise UsageError(f"{where}: {shorten(text)} is not the name of a worker")
    return text


def _ordinal(text: str) -> int | None:
    if text in _ORDINALS:
        return _ORDINALS[text]
    number = re.fullmatch(r"([1-9]\d{0,5})(?:st|nd|rd|th)", text, re.ASCII)
    return int(number[1]) if number else None


# --- the other way, and together ---------------------------------------------------------------------------


def spell(fault: Fault) -> str:
    """The line that ``parse_fault`` reads as this fault."""
    facts = KINDS[fault.kind]
    words = [fault.kind, *([",".join(fault.workers)] if fault.workers else [])]
    if facts.amount is not None and fault.amount is not None:
        words.append(f"{facts.amount.word} {_plain(fault.amount)}")
    words.append(_spell_when(fault.when))
    if fault.seconds is not None:
        words.append(f"for {_plain(fault.seconds)}")
    return " ".join([*words, *(["every time"] if fault.every_time else [])])


def _spell_when(when: When) -> str:
    match when:
        case AtTime(seconds=seconds):
            return f"at {_plain(seconds)}"
        case AfterParts():
            who, whole = when.worker or "it", " of one chunk" if when.one_chunk else ""
            return f"when {who} has delivered {when.parts} {'part' if when.parts == 1 else 'parts'}{whole}"
        case AtClaim():
            ordinal = next(
                (word for word, number in _ORDINALS.items() if number == when.nth), f"{when.nth}th"
            )
            return (
                f"when {when.worker} makes its {ordinal} claim" if when.worker else f"on its {ordinal} claim"
            )
        case AtShare(share=share):
            return f"when {_plain(round(share * 100, 6))} % is credited"


def _plain(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(value)


def never_came(faults: Sequence[Fault]) -> list[FaultNeverCame]:
    """What is said at the end of faults whose moment did not come."""
    return [FaultNeverCame(fault=spell(fault)) for fault in faults]


def check_faults(faults: Sequence[Fault], workers: Sequence[str], *, live: bool) -> None:
    """Raises UsageError for a fault that can't happen to this fleet, or in this world."""
    known = set(workers)
    for fault in faults:
        where = f"fault '{spell(fault)}'"
        if not live and KINDS[fault.kind].live_only:
            raise UsageError(f"{where}: happens in a live run only; leave it out to simulate")
        about = getattr(fault.when, "worker", None)
        for name in (*fault.workers, *((about,) if about else ())):
            if name not in known and name != EVERYONE:
                hint = did_you_mean(name, workers)
                raise UsageError(
                    f"{where}: there is no worker {shorten(name)}{hint}; the fleet has {_few(workers)}"
                )


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:4])}, … {names[-1]}"
