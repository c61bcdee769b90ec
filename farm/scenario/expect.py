"""What must come of a run, as data, and whether it did: ``[[expect]]`` of a scenario file.

    [[expect]]
    what = "lapses"          # a figure of MEASURES
    at_least = 1             # and/or at_most, or equals
    [[expect]]
    what = "credited_frames"
    worker = "w9"
    at_least = 60

Figures are counted from the events of the run, the same ones live and simulated.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from farm import events as ev
from farm.errors import UsageError, shorten
from farm.policies.parameters import did_you_mean


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure and its bounds: from, to or both; or what it equals."""

    what: str
    worker: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    equals: float | None = None


#: Events that a figure counts: of which type, and which of them.
_Counted = tuple[type, Callable[[Any], float]]


def _one(event: object) -> float:
    return 1.0


_COUNTS: Final[dict[str, _Counted]] = {
    "claims": (ev.ClaimGranted, _one),
    "duplicates": (ev.ClaimGranted, lambda event: event.duplicate),
    "splits": (ev.ChunkSplit, _one),
    "lapses": (ev.ClaimEnded, lambda event: event.how in ("lapsed", "stalled", "timed out")),
    "refusals": (ev.ClaimRefused, _one),
    "bad_messages": (ev.MessageRefused, _one),
    "failures": (ev.PartFailed, _one),
    "losses": (ev.WorkerLeft, lambda event: event.lost),
    "faults": (ev.FaultInjected, _one),
    "diverged": (ev.PartDiverged, _one),
    "blocked": (ev.WorkerBlocked, _one),
}

#: Every figure that may be expected, with what it is.
MEASURES: Final = {
    "exit_code": "what the command returned",
    "finishing_seconds": "start to last credited part, pauses taken out",
    "credited_frames": "frames credited and not taken back",
    "set_aside_frames": "frames of parts that failed too often",
    "claims": "grants, duplicates included",
    "duplicates": "grants on chunks in flight",
    "splits": "chunks whose rest was handed over",
    "lapses": "claims that ran out, for whatever reason",
    "refusals": "messages that came from others than the claimant",
    "bad_messages": "messages that could not be taken",
    "failures": "parts that failed, or on which a worker was lost",
    "losses": "workers that died",
    "faults": "faults injected",
    "diverged": "second copies with other bytes",
    "blocked": "workers that failed too often in a row",
}
#: Figures of the run as a whole, not of a worker.
_OF_RUN: Final = ("exit_code", "finishing_seconds", "set_aside_frames", "splits")


def check_expectation(expectation: Expectation, workers: Sequence[str], where: str) -> None:
    """Raises UsageError."""
    what, worker = expectation.what, expectation.worker
    if what not in MEASURES:
        hint = did_you_mean(what, MEASURES)
        raise UsageError(f"{where}.what: no figure {shorten(what)}{hint}; known: {', '.join(MEASURES)}")
    if worker is not None and worker not in workers:
        raise UsageError(f"{where}.worker: there is no worker {shorten(worker)}")
    if worker is not None and what in _OF_RUN:
        raise UsageError(f"{where}.worker: {what} is of the whole run; leave the worker out")
    bounds = (expectation.at_least, expectation.at_most, expectation.equals)
    if all(bound is None for bound in bounds):
        raise UsageError(f"{where}: say at_least, at_most or equals")
    if any(bound is not None and not math.isfinite(bound) for bound in bounds):
        raise UsageError(f"{where}: a bound is a number")
    low, high, exact = bounds
    if low is not None and high is not None and low > high:
        raise UsageError(f"{where}.at_least: {low:g} is more than at_most, {high:g}: nothing could meet both")
    if exact is not None and (low is not None or high is not None):
        raise UsageError(f"{where}.equals: leave at_least and at_most out beside it")


def measure(records: Iterable[ev.Record], what: str, worker: str | None = None) -> float | None:
    """One figure of a run from its events; None if the run did not come so far."""
    found: float | None = None
    if what in _COUNTS:
        kind, count = _COUNTS[what]
        return sum(
            count(record.event)
            for record in records
            if isinstance(record.event, kind) and worker in (None, getattr(record.event, "worker", None))
        )
    if what == "credited_frames":
        return _credited(records, worker)
    for record in records:
        match what, record.event:
            case "exit_code", ev.RunFinished(exit_code=code):
                found = code
            case "finishing_seconds", ev.WorkFinished(makespan_seconds=seconds):
                found = seconds
            case "set_aside_frames", ev.WorkFinished(set_aside_frames=frames):
                found = frames
            case _:
                pass
    return found


def _credited(records: Iterable[ev.Record], worker: str | None) -> float:
    frames: dict[int, tuple[str | None, int]] = {}
    for record in records:
        match record.event:
            case ev.PartCredited(part=part, worker=by, frames=count):
                frames[part] = (by, count)
            case ev.PartAdopted(part=part, frames=count):
                frames[part] = (None, count)
            case ev.PartVoided(part=part):
                frames.pop(part, None)
            case _:
                pass
    return sum(count for by, count in frames.values() if worker in (None, by))


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one expectation was met. ``value``: the figure; None: the run did not come so far."""

    what: str
    worker: str | None
    at_least: float | None
    at_most: float | None
    equals: float | None
    value: float | None
    met: bool

    def __str__(self) -> str:
        whose = f" of {self.worker}" if self.worker else ""
        shown = "there is none" if self.value is None else f"it is {self.value:g}"
        wanted = " and ".join(f"{words} {bound:g}" for words, bound, _ in _bounds(self) if bound is not None)
        return f"{'met' if self.met else 'not met':7}  {self.what}{whose}: {wanted}; {shown}"


def judge(expectations: Iterable[Expectation], records: Iterable[ev.Record]) -> tuple[Verdict, ...]:
    """One verdict for each expectation, in order."""
    telling = [record for record in records if is_judged(record)]
    verdicts = []
    for expectation in expectations:
        value = measure(telling, expectation.what, expectation.worker)
        met = value is not None and all(
            holds(value, bound) for _, bound, holds in _bounds(expectation) if bound is not None
        )
        verdicts.append(Verdict(**msgspec.structs.asdict(expectation), value=value, met=met))
    return tuple(verdicts)


def is_judged(record: ev.Record) -> bool:
    """Whether some figure is counted from this record; the others need not be kept."""
    return isinstance(record.event, _JUDGED)


_JUDGED: Final = (
    *{kind for kind, _ in _COUNTS.values()},
    ev.PartCredited,
    ev.PartAdopted,
    ev.PartVoided,
    ev.RunFinished,
    ev.WorkFinished,
)


def _bounds(
    of: Expectation | Verdict,
) -> tuple[tuple[str, float | None, Callable[[float, float], bool]], ...]:
    return (
        ("at least", of.at_least, operator.ge),
        ("at most", of.at_most, operator.le),
        ("exactly", of.equals, operator.eq),
    )
