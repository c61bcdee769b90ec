"""Playing a log: a ``farm.view.Source`` over a recording, or over a simulation whose past can be looked at
again, with a clock that is hurried, slowed and halted, and steps and jumps to and fro.

Theory of operation. The log is a list of records; ``position`` says how many of them have been shown. A
recording's log is whole from the start. A simulation's grows at its end while the simulation runs; whoever
looks back halts it, and it goes on when the view has come to the end of its log again. A view that went back
has to be folded anew: ``position`` is then below what the caller has folded, which it finds out by asking
``position`` before it takes (console.rewind).

Rules of this file:
- nothing runs in the background: each ``take`` plays up to where the clock is, within a bound;
- halting at an event is exact: what follows it is not handed out, at whatever speed;
- the past can't be changed: commands are refused with a sentence unless they act on a simulation's present.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from farm.clock import Clock, VirtualClock
from farm.commands import AnyCommand
from farm.events import Record
from farm.moments import NEWS, Kind, moment_of
from farm.view import World

#: Records handed out at once, at most: some tens of milliseconds of folding.
TAKE_MAX = 5_000
#: The log of a simulation is kept up to here; beyond, there is no way back.
KEPT_MAX = 2_000_000


class Log:
    """Records with what is needed to find one's way among them. Times never go down."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = []
        self.times: list[float] = []
        self._moments: dict[Kind, list[int]] = {}
        self.extend(records)

    def __len__(self) -> int:
        return len(self.records)

    @property
    def ends_at(self) -> float:
        return self.times[-1] if self.times else 0.0

    def extend(self, records: Iterable[Record]) -> None:
        for record in records:
            moment = moment_of(record.event)
            if moment is not None:
                self._moments.setdefault(moment.kind, []).append(len(self.records))
            self.records.append(record)
            self.times.append(max(record.at, self.ends_at))

    def at(self, seconds: float) -> int:
        """How many records there are up to and at that time."""
        return bisect_right(self.times, seconds)

    def next_moment(self, position: int, kinds: Iterable[Kind]) -> int | None:
        """The index of the first moment from ``position`` on."""
        found: list[int] = []
        for kind in kinds:
            places = self._moments.get(kind, ())
            index = bisect_left(places, position)
            found += places[index : index + 1]
        return min(found, default=None)

    def last_moment(self, position: int, kinds: Iterable[Kind]) -> int | None:
        """The index of the last moment before ``position``."""
        found: list[int] = []
        for kind in kinds:
            places = self._moments.get(kind, ())
            index = bisect_left(places, position)
            found += places[max(index - 1, 0) : index]
        return max(found, default=None)

    def moments(self, kind: Kind) -> Sequence[int]:
        """The indices of all moments of a kind, ascending."""
        return self._moments.get(kind, ())


class Present(Protocol):
    """What a growing log comes from: farm.simulation.source.SimulatedSource."""

    pause_on: frozenset[Kind]

    @property
    def ended(self) -> bool: ...
    @property
    def rate(self) -> float: ...
    @property
    def halted(self) -> bool: ...
    def now(self) -> float: ...
    def take(self) -> Sequence[Record]: ...
    def take_met(self) -> Record | None: ...
    def send(self, command: AnyCommand) -> str | None: ...
    def set_rate(self, rate: float) -> None: ...
    def halt(self, halted: bool) -> None: ...
    def step(self) -> None: ...
    def seek(self, seconds: float) -> None: ...
    def run_on(self, kinds: Collection[Kind]) -> bool: ...


class Playback:
    """A source that plays ``log``, from its beginning, at ``rate`` seconds of the run a second.

    ``present``: where the log grows from, for a simulation; ``again`` makes another one. ``pause_on``: kinds
    of moments at which it halts. All methods may be called from any thread. Raises UsageError for a rate that
    is not above 0.
    """

    def __init__(
        self,
        log: Log,
        real: Clock,
        *,
        rate: float = 1.0,
        present: Present | None = None,
        pause_on: Collection[Kind] = (),
        again: Callable[[], Present] | None = None,
        kept_max: int = KEPT_MAX,
    ) -> None:
        self._lock = threading.RLock()
        self.log = log
        self.stopped_by: Record | None = None  #: the moment at which it halted, until it goes on
        self._pause_on = frozenset(pause_on)
        self._clock = VirtualClock(real, rate)
        self._clock.set(log.times[0] if log.times else 0.0, halted=True)
        self._idle = True  # until somebody takes: the time before is nobody's
        self._position = 0
        self.starts = 1  #: of the simulation; each has a log of its own
        self._target: int | None = None  # to be shown up to there, wherever the clock is
        self._kept_max = kept_max
        self._cut = False  # the log grew too long to be kept
        self._again = again
        self._present = present
        self._begin()

    def _begin(self) -> None:
        if self._present is not None:
            self._present.set_rate(self.rate)
            self._present.pause_on = self._pause_on

    # --- Source ------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        return "recording" if self._present is None else "simulated"

    @property
    def ended(self) -> bool:
        with self._lock:
            over = self._present is None or self._present.ended
            return over and (self._cut or self._position >= len(self.log))

    def now(self) -> float:
        with self._lock:
            present = self._shows_present
            return min(self._clock.now(), self.log.ends_at) if present is None else present.now()

    def take(self) -> Sequence[Record]:
        """What is to be shown next. After a way back: from where it led to."""
        with self._lock:
            if self._idle:
                self._idle = False
                self._clock.set(self._clock.now(), halted=False)
            present = self._shows_present
            if present is not None and self._target is None:
                return self._take_present(present)
            taken = self._take_log()
            present = self._shows_present
            if present is not None and self._target is None and taken and not self._clock.halted:
                present.halt(False)  # the past is over
            return taken

    def send(self, command: AnyCommand) -> str | None:
        with self._lock:
            if self._present is None:
                return "this is a recording: what happened can't be changed"
            if self._shows_present is None:
                return "this is the past of the simulation, which can't be changed; L goes to the present"
            return self._present.send(command)

    def _take_present(self, present: Present) -> Sequence[Record]:
        taken = present.take()
        self._position += len(taken)
        if not self._cut:
            self.log.extend(taken)
            if len(self.log) > self._kept_max:
                self._cut, self.log = True, Log()
        self.stopped_by = present.take_met() or self.stopped_by
        return taken

    def _take_log(self) -> Sequence[Record]:
        clock, log, first = self._clock, self.log, self._position
        if self._target is not None:
            stop = self._target
        elif clock.halted:
            return ()
        else:
            stop = max(log.at(clock.now()), first)
            met = log.next_moment(first, self._pause_on)
            if met is not None and met < stop:
                stop = met + 1
                self.stopped_by = log.records[met]
                clock.set(log.times[met], halted=True)
        if stop - first > TAKE_MAX:
            stop = first + TAKE_MAX
            if self._target is None:
                clock.set(log.times[stop - 1])
        elif stop == self._target:
            self._target = None
        self._position = stop
        return log.records[first:stop]

    # --- the clock ---------------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        return self._clock.rate

    @property
    def halted(self) -> bool:
        with self._lock:
            present = self._shows_present
            return self._clock.halted if present is None else present.halted

    def set_rate(self, rate: float) -> None:
        """Raises UsageError."""
        with self._lock:
            self._clock.set(self.now(), rate=rate)
            if self._present is not None:
                self._present.set_rate(rate)

    def halt(self, halted: bool) -> None:
        with self._lock:
            if not halted:
                self.stopped_by = None
            self._clock.set(self.now(), halted=halted)
            present = self._shows_present
            if present is not None:
                present.halt(halted)

    # --- the way through the log -------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Records shown so far: of the log, the first so many."""
        return self._position

    @property
    def total(self) -> int:
        """Records there are; so far, in a simulation."""
        return self._position if self._cut else len(self.log)

    @property
    def settled(self) -> bool:
        """Whether ``take`` has handed out all that a way forward led past."""
        return self._target is None

    @property
    def in_past(self) -> bool:
        """Whether there is a present that is not shown."""
        return self._present is not None and self._shows_present is None

    @property
    def span(self) -> tuple[float, float]:
        """When the log begins and ends, in seconds of the run."""
        return (self.log.times[0] if self.log.times else 0.0), self.log.ends_at

    def step(self) -> None:
        """Halt, and show the next event."""
        with self._lock:
            self.stopped_by = None
            present = self._shows_present
            if present is None:
                self._leap(self._position + 1)
            else:
                present.step()

    def step_back(self) -> bool:
        """Halt, and show one event less. False: there is none, or it was not kept."""
        with self._lock:
            return self._position > 1 and self._go_back(self._position - 1)

    def seek(self, seconds: float) -> bool:
        """Go to a time of the run, and on from there unless it is halted. False: what lies there was not
        kept."""
        with self._lock:
            present, first = self._shows_present, self.span[0]
            seconds = max(seconds, first)
            position = self.log.at(seconds)
            if seconds < self.now() and position <= self._position:
                if present is not None:
                    position = min(position, len(self.log) - 1)
                return self._go_back(position, at=seconds, halted=self.halted)
            if present is not None:
                present.seek(seconds)
            else:
                self._leap(max(position, self._position), at=seconds, halted=self.halted)
            return True

    def to_start(self) -> bool:
        """Back to the first event, and halt. False: it was not kept."""
        with self._lock:
            return self._go_back(min(1, self._position), at=self.span[0])

    @property
    def can_restart(self) -> bool:
        return self._present is None or self._again is not None

    def restart(self) -> bool:
        """From the beginning: a recording is played again, a simulation run again, without what was done to
        it. False: it can't be."""
        with self._lock:
            if self._present is None:
                return self._go_back(0, at=self.span[0], halted=False)
            if self._again is None:
                return False
            self._present, self.log, self._cut = self._again(), Log(), False
            self._position, self._target, self.stopped_by = 0, None, None
            self._clock.set(0.0, halted=False)
            self.starts += 1
            self._begin()
            return True

    def to_end(self) -> None:
        """To the end of a recording, to the present of a simulation; and halt."""
        with self._lock:
            if self._shows_present is None:
                self._leap(len(self.log))

    def next_moment(self, kinds: Collection[Kind] = NEWS) -> bool:
        """Halt at the next moment of these kinds. False: there is none, and in a recording nothing changed; a
        simulation has run on as far as it may at once (``Present.run_on``)."""
        with self._lock:
            present = self._shows_present
            index = None if present is not None else self.log.next_moment(self._position, kinds)
            if index is not None:
                self._leap(index + 1)
                self.stopped_by = self.log.records[index]
            elif self._present is not None:
                self._leap(len(self.log))
                self._clock.set(self.now(), halted=True)
                return self._present.run_on(kinds)
            return index is not None

    def last_moment(self, kinds: Collection[Kind] = NEWS) -> bool:
        """Halt at the last moment before the event that is shown last. False: there is none."""
        with self._lock:
            index = self.log.last_moment(self._position - 1, kinds)
            if index is None or not self._go_back(index + 1):
                return False
            self.stopped_by = self.log.records[index]
            return True

    @property
    def _shows_present(self) -> Present | None:
        """The present, if that is what is shown."""
        return self._present if self._cut or self._position >= len(self.log) else None

    def _leap(self, position: int, *, at: float | None = None, halted: bool = True) -> None:
        """Forward within the log; ``take`` hands out what lies in between, without a halt on the way."""
        self.stopped_by = None
        position = min(position, len(self.log))
        self._target = position if position > self._position else None
        self._clock.set(self._time_of(position) if at is None else min(at, self.log.ends_at), halted=halted)

    def _go_back(self, position: int, *, at: float | None = None, halted: bool = True) -> bool:
        if position < 0 or self._cut:
            return False
        present = self._shows_present
        if present is not None:
            present.halt(True)
            self.log.extend(present.take())  # what had happened and was not shown yet
        self.stopped_by = self._target = None
        self._position = position
        self._clock.set(self._time_of(position) if at is None else at, halted=halted)
        return True

    def _time_of(self, position: int) -> float:
        return self.log.times[position - 1] if position else self.span[0]
