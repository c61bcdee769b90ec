"""Several runs side by side on one clock: what the Compare screen plays.

Rules of this file:
- a run is a ``Tape``: played from its start as often as one likes, and what comes of it is known beforehand;
- all runs of a heat are in step: whatever happens next, in whichever run, happens first, so no run is ever
  shown at another time than the others; a run that has ended stays at its end;
- a contest is a ``farm.view.Source`` of the run that is looked at; it is watched, never commanded;
- no clock of its own, no I/O, no textual.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from console.model import Model
from console.timeline import WorkerModel, WorkerState
from farm.commands import AnyCommand
from farm.events import Record
from farm.view import World

RUNS_MAX = 8
#: Things that may happen within one ``take``, in all runs together: some tens of milliseconds of work.
STEPS_MAX = 3000
#: Spans kept of each worker: a comparison is about the whole of a run, where the live console shows a minute.
SPANS_MAX = 4096

_REST = frozenset[WorkerState]({"idle", "parked", "blocked"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of a run, or of a run so far. Seconds of the run, pauses not counted in ``seconds``."""

    frames: int
    credited_frames: int
    seconds: float | None  #: finishing time; None: it has not finished
    bound_seconds: float | None  #: that no schedule can beat; None: unknown
    wasted_frames: int
    claims: int
    duplicates: int
    splits: int
    lapses: int
    idle_seconds: float  #: of all workers together

    @property
    def ratio(self) -> float | None:
        """Finishing time / lower bound."""
        return self.seconds / self.bound_seconds if self.seconds and self.bound_seconds else None

    @property
    def wasted_share(self) -> float:
        """Of all frames rendered."""
        rendered = self.credited_frames + self.wasted_frames
        return self.wasted_frames / rendered if rendered else 0.0

    @property
    def progress(self) -> float:
        """Credited share of the job."""
        return self.credited_frames / self.frames if self.frames else 0.0


class Tape(Protocol):
    """A run that can be played again and again. Times ``at`` are seconds from the start of its work."""

    @property
    def name(self) -> str: ...

    @property
    def world(self) -> World: ...

    @property
    def final(self) -> Figures:
        """What comes of it."""
        ...

    @property
    def end_at(self) -> float | None:
        """When all is over; None: not known beforehand."""
        ...

    @property
    def next_at(self) -> float | None:
        """When the next thing happens; None: all is over."""
        ...

    def step(self) -> Sequence[Record]:
        """Let it happen; the records that come of it."""
        ...

    def lease_time(self, at: float) -> float:
        """What the run's own clock says then, as in ``Record.at``."""
        ...

    def rewind(self) -> None:
        """Back to the start."""
        ...


class PlayClock(Protocol):
    """As farm.simulation.source.VirtualClock."""

    @property
    def rate(self) -> float: ...

    @property
    def halted(self) -> bool: ...

    def now(self) -> float: ...

    def set(self, now: float, *, rate: float | None = None, halted: bool | None = None) -> None: ...


class LaneModel(Model):
    """A model that keeps more of each worker's spans."""

    def _worker(self, at: float, name: str) -> WorkerModel:
        worker = self.workers.get(name)
        if worker is None:
            worker = WorkerModel(name, since=at, heard_at=at, spans=deque(maxlen=SPANS_MAX))
            self.workers[name] = worker
        return worker


class Lane:
    """One run of a heat, as far as it was played."""

    def __init__(self, number: int, tape: Tape) -> None:
        self.number = number  #: from 1
        self.tape = tape
        self.model = LaneModel(tape.world)
        self.ended_at: float | None = None  #: seconds of the comparison at which nothing was left

    @property
    def name(self) -> str:
        return self.tape.name

    @property
    def next_at(self) -> float | None:
        return self.tape.next_at

    @property
    def workers(self) -> int:
        return len(self.model.workers)

    def step(self) -> bool:
        """Let the next thing happen; True if the log grew."""
        at = self.tape.next_at
        records = self.tape.step()
        for record in records:
            self.model.fold(record)
        if self.tape.next_at is None and self.ended_at is None:
            self.ended_at = at or 0.0
        return bool(records)

    def rewind(self) -> None:
        self.tape.rewind()
        self.model = LaneModel(self.tape.world)
        self.ended_at = None

    def time(self, now: float) -> float:
        """The comparison's time for this run: a run that has ended stays at its end."""
        return now if self.ended_at is None else min(now, self.ended_at)

    def figures(self, now: float) -> Figures:
        """What has come of it by ``now``; once it is over the tape's own, which knows more."""
        if self.ended_at is not None:
            return self.tape.final
        model, final, at = self.model, self.tape.final, self.tape.lease_time(now)
        return Figures(
            frames=final.frames,
            credited_frames=model.credited_frames,
            seconds=None if model.work is None else final.seconds,
            bound_seconds=final.bound_seconds,
            wasted_frames=model.wasted_frames,
            claims=model.granted,
            duplicates=model.duplicates,
            splits=model.splits,
            lapses=model.lapses,
            idle_seconds=sum(worker.seconds_in(_REST, at) for worker in model.workers.values()),
        )


@dataclass(frozen=True, slots=True)
class Heat:
    """Runs that are compared with each other. ``left_out``: how many more there are than are shown."""

    title: str
    tapes: tuple[Tape, ...]
    left_out: int = 0


class Contest:
    """A ``farm.view.Source`` with virtual time: heats of up to ``RUNS_MAX`` runs, one heat at a time."""

    def __init__(self, heats: Sequence[Heat], clock: PlayClock) -> None:
        """There is at least one heat, and each has at least one run."""
        self._heats = tuple(heats)
        self._clock = clock
        self.number = 0  #: of the heat, from 0
        self.selected = 0  #: index of the run that is looked at
        self.lanes: list[Lane] = []
        self._take_heat(0)

    # --- heats and runs ----------------------------------------------------------------------------------

    @property
    def heat(self) -> Heat:
        return self._heats[self.number]

    @property
    def heats(self) -> int:
        return len(self._heats)

    @property
    def lane(self) -> Lane:
        """The run that is looked at."""
        return self.lanes[self.selected]

    def select(self, index: int) -> None:
        self.selected = min(max(index, 0), len(self.lanes) - 1)

    def change_heat(self, steps: int) -> bool:
        """To another heat, from its start; False where there is none."""
        number = self.number + steps
        if not 0 <= number < len(self._heats):
            return False
        self._take_heat(number)
        return True

    def restart(self) -> None:
        """All runs from their start, at the same rate."""
        for lane in self.lanes:
            lane.rewind()
        self._clock.set(0.0)

    def _take_heat(self, number: int) -> None:
        self.number = number
        self.lanes = [Lane(place, tape) for place, tape in enumerate(self.heat.tapes[:RUNS_MAX], 1)]
        self.selected = 0
        self.restart()

    # --- time --------------------------------------------------------------------------------------------

    @property
    def at(self) -> float:
        """Seconds of the comparison; never beyond the end of the last run."""
        if self.over:
            return self.over_at
        now = self._clock.now()
        return self.end_at if now == inf else now

    @property
    def over(self) -> bool:
        """Whether every run is at its end."""
        return all(lane.ended_at is not None for lane in self.lanes)

    @property
    def over_at(self) -> float:
        """When the last run ended, of those that did."""
        return max((lane.ended_at or 0.0 for lane in self.lanes), default=0.0)

    @property
    def end_at(self) -> float:
        """When the last run ends, as far as is known."""
        known = [lane.tape.end_at or lane.ended_at or 0.0 for lane in self.lanes]
        unknown = any(lane.tape.end_at is None and lane.ended_at is None for lane in self.lanes)
        now = self._clock.now() if unknown else 0.0
        return max(*known, 0.0 if now == inf else now, 1e-3)

    @property
    def rate(self) -> float:
        return self._clock.rate

    @property
    def halted(self) -> bool:
        return self._clock.halted

    def set_rate(self, rate: float) -> None:
        self._clock.set(self.at, rate=rate)

    def halt(self, halted: bool) -> None:
        self._clock.set(self.at, halted=halted)

    def step(self) -> None:
        """Halt, and let things happen until something is told."""
        at = self.at
        while (lane := self._next()) is not None:
            at = max(at, lane.next_at or 0.0)
            if lane.step():
                break
        self._clock.set(at, halted=True)

    def _next(self) -> Lane | None:
        """The run in which something happens next."""
        running = [(at, lane.number, lane) for lane in self.lanes if (at := lane.next_at) is not None]
        return min(running)[2] if running else None

    def _advance(self) -> None:
        """Catch up with the clock; where that is too much at once, hold the clock back."""
        target = self._clock.now()
        for _ in range(STEPS_MAX):
            lane = self._next()
            if lane is None:
                return
            at = lane.next_at
            assert at is not None
            if at > target:
                return
            lane.step()
        following = self._next()
        if following is not None and following.next_at is not None and following.next_at < target:
            self._clock.set(following.next_at)

    # --- Source ------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        return "recording"

    @property
    def ended(self) -> bool:
        """Never: it can be played again."""
        return False

    def now(self) -> float:
        """Of the run that is looked at, on its own clock."""
        lane = self.lane
        return lane.tape.lease_time(lane.time(self.at))

    def take(self) -> Sequence[Record]:
        """Brings every run to where the clock is; their models have taken the records in, so none is left."""
        self._advance()
        return ()

    def send(self, command: AnyCommand) -> str | None:
        return "A comparison is only watched: nothing can be done to its runs."
