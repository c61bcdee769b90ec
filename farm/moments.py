"""Moments: the events of a run that a person stops for, jumps to, or explains with a caption.

Rules of this file:
- pure; a moment follows from one event alone, the same in a live run, a simulation and a recording;
- what happened once is one moment, also where several events tell of it (a stall that a fault brings about is
  the fault and the operator's act).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from farm import events as ev
from farm.errors import UsageError, shorten
from farm.policies.parameters import did_you_mean

Kind = Literal["lapse", "duplicate", "split", "refusal", "kill", "loss", "stall", "wake", "failure", "finish"]

#: What each kind is, in words.
KINDS: Final[dict[Kind, str]] = {
    "lapse": "a claim lapsed",
    "duplicate": "a chunk was duplicated",
    "split": "a chunk was split",
    "refusal": "a message was refused",
    "kill": "a worker was killed on purpose",
    "loss": "a worker was lost",
    "stall": "a worker was frozen",
    "wake": "a frozen worker went on",
    "failure": "a part failed or was set aside",
    "finish": "the run ended",
}
#: Those that a jump without a filter looks for: not what happens to every run.
NEWS: Final[frozenset[Kind]] = frozenset(
    ("lapse", "duplicate", "split", "refusal", "kill", "loss", "failure")
)

_LAPSES: Final = ("lapsed", "stalled", "timed out")
#: Kinds of ``PartFailed`` that follow from a lapse or a loss, which are moments of their own.
_TOLD_OTHERWISE: Final = ("worker lost", *_LAPSES)
#: Of an operator's act that a fault brought about (farm.faultdriver, farm.simulation.faults).
_BY_A_FAULT: Final = "by a fault"


class Moment(NamedTuple):
    kind: Kind
    worker: str | None = None  #: whom it is about, if anyone


def moment_of(event: object) -> Moment | None:
    """The moment that an event is; None for all others."""
    tell = _TELL.get(type(event))
    return None if tell is None else tell(event)


def parse_kinds(text: str, option: str = "--pause-on") -> frozenset[Kind]:
    """``lapse,refusal``, or ``all`` for those of ``NEWS``. Raises UsageError."""
    kinds: set[Kind] = set()
    for word in filter(None, (word.strip() for word in text.split(","))):
        if word == "all":
            kinds |= NEWS
        elif word in KINDS:
            kinds.add(word)
        else:
            raise UsageError(
                f"{option} {shorten(word)}: there is no such moment{did_you_mean(word, KINDS)}; "
                f"known: {', '.join(KINDS)}, all"
            )
    if not kinds:
        raise UsageError(f"{option}: name at least one moment, as in lapse,refusal")
    return frozenset(kinds)


def _claim_ended(e: ev.ClaimEnded) -> Moment | None:
    return Moment("lapse", e.worker) if e.how in _LAPSES else None


def _operator_acted(e: ev.OperatorActed) -> Moment | None:
    match e.action:
        case "stall":
            return Moment("stall", e.worker)
        case "unstall":
            return Moment("wake", e.worker)
        case "kill" if e.detail != _BY_A_FAULT:
            return Moment("kill", e.worker)
    return None


_TELL: Final[dict[type, Callable[[Any], Moment | None]]] = {
    ev.ClaimEnded: _claim_ended,
    ev.ClaimGranted: lambda e: Moment("duplicate", e.worker) if e.duplicate else None,
    ev.ChunkSplit: lambda e: Moment("split"),
    ev.ClaimRefused: lambda e: Moment("refusal", e.worker),
    ev.MessageRefused: lambda e: Moment("refusal", e.worker),
    ev.FaultInjected: lambda e: Moment("kill", e.worker) if e.kind == "kill" else None,
    ev.OperatorActed: _operator_acted,
    ev.WorkerLeft: lambda e: Moment("loss", e.worker) if e.lost else None,
    ev.PartFailed: lambda e: None if e.kind in _TOLD_OTHERWISE else Moment("failure", e.worker),
    ev.PartSetAside: lambda e: Moment("failure"),
    ev.RunFinished: lambda e: Moment("finish"),
}
