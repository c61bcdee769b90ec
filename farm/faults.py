"""Faults that are injected on purpose, as data: what goes wrong, with whom, when, and for how long.

The same list drives a live run (farm.faultdriver, farm.worker.faults) and a simulation
(farm.simulation.faults); how faults are written is farm.scenario.faults' business.

Rules of this file:
- pure: no clock and no randomness; time comes with each call, in lease seconds;
- a fault ``at`` a time counts from the first grant, so that starting processes doesn't count;
- one that is to happen "when" something happened follows from the run's own events, live and simulated alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Literal

import msgspec

from farm import events as ev

Kind = Literal[
    "stall",
    "resume",
    "kill",
    "slow",
    "lose-heartbeats",
    "stand-still",
    "report-late",
    "report-twice",
    "bad-id",
    "wrong-count",
    "corrupt",
    "cut",
    "rate-limit",
    "fill-memory",
    "fill-disk",
    "pause-relay",
    "suspend",
    "step-clock",
]

#: How long a delivery that the store refuses waits: at first, and at most.
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 0.1, 2.0
#: An id as a careless worker writes it.
BAD_TOKEN = "c01#1@e1"

#: How long a fault lasts: ``moment``: it happens and is over; ``time``: for its seconds, else for good;
#: ``report``: for its seconds, else for the worker's next report; ``stop``: for its seconds, which it needs.
Lasts = Literal["moment", "time", "report", "stop"]


@dataclass(frozen=True, slots=True)
class Amount:
    """The number that a kind of fault takes after ``word``."""

    word: Literal["to", "by"]
    default: float | None  #: None: it must be given
    low: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True)
class KindFacts:
    """What a kind of fault is and takes."""

    about: str
    lasts: Lasts
    on_worker: bool = True
    amount: Amount | None = None
    seconds: float | None = None  #: unless it is said for how long
    live_only: bool = False


KINDS: Final[dict[Kind, KindFacts]] = {
    "stall": KindFacts("frozen: renders nothing and says nothing", "time"),
    "resume": KindFacts("a frozen worker goes on", "moment"),
    "kill": KindFacts("killed; after the time given another process takes its place", "time"),
    "slow": KindFacts(
        "renders at a share of its speed",
        "time",
        amount=Amount("to", None, 0.001, 1.0, "a share of its speed"),
    ),
    "lose-heartbeats": KindFacts("its heartbeats get lost, its deliveries don't", "time"),
    "stand-still": KindFacts("alive and heard, but renders nothing", "time"),
    "report-late": KindFacts(
        "its reports of delivered parts come late",
        "report",
        amount=Amount("by", 5.0, 0.01, 86400.0, "seconds"),
    ),
    "report-twice": KindFacts("reports a delivered part twice", "report"),
    "bad-id": KindFacts("reports a part under an id that is none", "report"),
    "wrong-count": KindFacts("delivers a part with a frame too few", "report"),
    "corrupt": KindFacts("a delivered part has a damaged byte", "report"),
    "cut": KindFacts("cut off: renders on, but nothing gets through either way", "time"),
    "rate-limit": KindFacts("the store refuses its deliveries for now", "report"),
    "fill-memory": KindFacts(
        "its memory is full: parts fail", "report", amount=Amount("by", 64.0, 1.0, 65536.0, "MiB")
    ),
    "fill-disk": KindFacts(
        "the disk of the run folder is full",
        "time",
        on_worker=False,
        amount=Amount("by", 1024.0, 1.0, 65536.0, "MiB"),
        live_only=True,
    ),
    "pause-relay": KindFacts("the relay's loop stands still", "stop", on_worker=False, seconds=3.0),
    "suspend": KindFacts("the whole machine sleeps: workers and relay", "stop", on_worker=False, seconds=5.0),
    "step-clock": KindFacts(
        "the run's wall clock is set",
        "moment",
        on_worker=False,
        amount=Amount("by", 3600.0, -31622400.0, 31622400.0, "seconds"),
    ),
}


# --- when ------------------------------------------------------------------------------------------------


class AtTime(msgspec.Struct, frozen=True, tag="at"):
    """So many seconds after the first grant."""

    seconds: float


class AfterParts(msgspec.Struct, frozen=True, tag="parts"):
    """When a worker has delivered so many parts, of whichever chunks or all of one; counted from the last
    time on. ``worker`` None: whom the fault is about."""

    parts: int
    worker: str | None = None
    one_chunk: bool = False


class AtClaim(msgspec.Struct, frozen=True, tag="claim"):
    """On a worker's ``nth`` claim, counted from the last time on."""

    nth: int
    worker: str | None = None


class AtShare(msgspec.Struct, frozen=True, tag="share"):
    """When that share of the frames is credited, 0 to 1."""

    share: float


When = AtTime | AfterParts | AtClaim | AtShare

#: In place of a name: each worker of the fleet.
EVERYONE: Final = "all"


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that goes wrong. ``seconds`` and ``amount`` as in ``KINDS``."""

    kind: Kind
    workers: tuple[str, ...] = ()
    when: When = AtTime(0.0)
    seconds: float | None = None
    amount: float | None = None
    every_time: bool = False  #: else once

    @property
    def about_worker(self) -> bool:
        return KINDS[self.kind].on_worker


@dataclass(frozen=True, slots=True)
class Step:
    """A fault begins (or ends) at lease time ``at``, with one worker or with none."""

    at: float
    fault: Fault
    worker: str | None
    begins: bool

    def injected(self, text: str) -> ev.FaultInjected:
        fault = self.fault
        return ev.FaultInjected(
            kind=fault.kind, worker=self.worker, seconds=fault.seconds, amount=fault.amount, fault=text
        )

    def lifted(self) -> ev.FaultLifted:
        return ev.FaultLifted(kind=self.fault.kind, worker=self.worker)


class FaultSchedule:
    """Turns a list of faults and the run's events into steps.

    ``workers``: the fleet; ``frames``: of the job; ``credited``: of them, before the first event.
    """

    def __init__(
        self, faults: Iterable[Fault], workers: Sequence[str], frames: int, credited: int = 0
    ) -> None:
        self._workers = tuple(workers)
        self._frames = frames
        self._credited = credited
        self._origin: float | None = None
        self._armed = [armed for fault in faults for armed in self._arm(fault)]

    def _arm(self, fault: Fault) -> list[_Armed]:
        named = self._workers if fault.workers == (EVERYONE,) else fault.workers
        return [_Armed(fault, worker) for worker in (named if fault.about_worker else (None,))]

    def add(self, worker: str) -> None:
        """A worker joined the fleet; it is one of all from now on, for what is injected."""
        self._workers += (worker,)

    def inject(self, fault: Fault, now: float) -> list[Step]:
        """Now, whenever it says."""
        return [step for armed in self._arm(fault) for step in armed.fire(now)]

    def see(self, at: float, event: ev.AnyEvent) -> list[Step]:
        """What follows from an event."""
        if not self._armed:
            return []
        match event:
            case ev.ClaimGranted():
                first, self._origin = self._origin is None, at if self._origin is None else self._origin
                found = [step for armed in self._armed for step in armed.claimed(at, event.worker, first)]
            case ev.PartCredited():
                self._credited += event.frames
                found = self._delivered(at, event.worker, event.token)
                share = self._credited / self._frames
                found += [step for armed in self._armed for step in armed.credited(at, share)]
            case ev.PartSuperseded():
                found = self._delivered(at, event.worker, event.token)
            case _:
                return []
        self._armed = [armed for armed in self._armed if not armed.spent]
        return found

    def _delivered(self, at: float, worker: str, token: str) -> list[Step]:
        return [step for armed in self._armed for step in armed.delivered(at, worker, token)]

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """Faults that nothing has brought about yet."""
        return tuple(dict.fromkeys(armed.fault for armed in self._armed if not armed.fired))


class _Armed:
    """One fault with one worker, waiting for its moment."""

    __slots__ = ("_claims", "_fires_again_at", "_parts", "fault", "fired", "worker")

    def __init__(self, fault: Fault, worker: str | None) -> None:
        self.fault = fault
        self.worker = worker
        self.fired = False
        self._fires_again_at = -inf  # not while it lasts
        self._claims = 0
        self._parts: dict[str, int] = {}  # by claim, or all of them under ""

    @property
    def spent(self) -> bool:
        return self.fired and not self.fault.every_time

    def fire(self, at: float) -> list[Step]:
        self.fired = True
        fault = self.fault
        steps = [Step(at, fault, self.worker, True)]
        if fault.seconds is not None:
            self._fires_again_at = at + fault.seconds
            steps.append(Step(at + fault.seconds, fault, self.worker, False))
        return steps

    def claimed(self, at: float, worker: str, first: bool) -> list[Step]:
        when = self.fault.when
        if isinstance(when, AtTime):
            return self.fire(at + when.seconds) if first and not self.spent else []
        if not isinstance(when, AtClaim) or worker != (when.worker or self.worker) or self._rests(at):
            return []
        self._claims += 1
        if self._claims < when.nth:
            return []
        self._claims = 0
        return self.fire(at)

    def delivered(self, at: float, worker: str, token: str) -> list[Step]:
        when = self.fault.when
        if not isinstance(when, AfterParts) or worker != (when.worker or self.worker) or self._rests(at):
            return []
        key = token if when.one_chunk else ""
        self._parts[key] = self._parts.get(key, 0) + 1
        if self._parts[key] < when.parts:
            return []
        self._parts.clear()
        return self.fire(at)

    def credited(self, at: float, share: float) -> list[Step]:
        when = self.fault.when
        due = isinstance(when, AtShare) and share >= when.share
        return self.fire(at) if due and not self.fired else []

    def _rests(self, at: float) -> bool:
        return self.spent or at < self._fires_again_at


# --- what is wrong with a worker just now ------------------------------------------------------------------


class Troubles:
    """The faults that a worker has at the moment, by kind."""

    __slots__ = ("_amounts", "_until")

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # -inf: for the next report, whenever it comes
        self._amounts: dict[str, float | None] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def begin(self, kind: Kind, now: float, seconds: float | None, amount: float | None) -> None:
        once = KINDS[kind].lasts == "report" and seconds is None
        self._until[kind] = -inf if once else inf if seconds is None else now + seconds
        self._amounts[kind] = amount

    def end(self, kind: Kind) -> None:
        """One that waits for the next report goes on waiting."""
        if self._until.get(kind) != -inf:
            self._until.pop(kind, None)

    def until(self, kind: Kind, now: float) -> float | None:
        """When it will be over (-inf: after the next report); None if there is none."""
        until = self._until.get(kind)
        if until is not None and -inf < until <= now:
            del self._until[kind]
            return None
        return until

    def has(self, kind: Kind, now: float) -> bool:
        return self.until(kind, now) is not None

    def amount(self, kind: Kind, now: float) -> float | None:
        """The amount of a fault that there is; None if there is none."""
        return self._amounts[kind] if self.has(kind, now) else None

    def last_amount(self, kind: Kind) -> float | None:
        """The amount of a fault that there is or was."""
        return self._amounts.get(kind)

    def take(self, kind: Kind, now: float) -> bool:
        """Whether a report has this fault; one for a single report is over with it."""
        until = self.until(kind, now)
        if until == -inf:
            del self._until[kind]
        return until is not None
