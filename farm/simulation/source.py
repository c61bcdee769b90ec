"""A simulation as the console sees it: a ``farm.view.Source`` on a virtual clock that can be hurried, slowed,
halted and stepped.

Nothing runs in the background. Each ``take`` brings the simulation to where the clock is, within a bound on
the work it may do at once, so that a caller that polls is never held up; a clock that is too fast for that
waits for the simulation.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Sequence
from math import inf

from farm.clock import Clock, VirtualClock
from farm.commands import AnyCommand
from farm.engines.simulated import Simulation
from farm.events import Record
from farm.forecast import Forecaster, estimate, outlook_of
from farm.moments import Kind as MomentKind
from farm.moments import moment_of
from farm.simulation.runs import SimResult, result_of
from farm.simulation.world import World
from farm.view import World as Kind

#: Things that may happen within one ``take``: some tens of milliseconds of work.
STEPS_MAX = 2000
#: The same for a search that somebody waits for: a second or two.
SEARCH_STEPS_MAX = 100_000
#: Real seconds between estimates of the finishing time, at least.
ESTIMATE_SECONDS = 1.0


class SimulatedSource:
    """``rate``: virtual seconds per real second. All methods may be called from any thread."""

    def __init__(self, world: World, real: Clock, *, rate: float = 1.0, validate_every: int = 0) -> None:
        self._lock = threading.Lock()
        self._records: deque[Record] = deque()
        self.pause_on: frozenset[MomentKind] = frozenset()  #: moments at which virtual time halts
        self._met: Record | None = None  # such a moment
        self._simulation = Simulation(
            world, on_record=self._note, validate_every=validate_every, injectable=world.heartbeats
        )
        self._real = real
        self._clock = VirtualClock(real, rate)
        self._forecaster = Forecaster()
        self._estimated_at = -1.0  # virtual time of the last estimate
        self._estimate_at = -inf  # real time from which the next estimate is due

    # --- Source ------------------------------------------------------------------------------------------

    @property
    def world(self) -> Kind:
        return "simulated"

    @property
    def ended(self) -> bool:
        return self._simulation.ended and not self._records

    def now(self) -> float:
        with self._lock:
            return self._simulation.lease_time.of(self._now())

    def take(self) -> Sequence[Record]:
        with self._lock:
            self._advance()
            self._estimate()
            taken = list(self._records)
            self._records.clear()
            return taken

    def send(self, command: AnyCommand) -> str | None:
        """Acts at the present virtual time."""
        with self._lock:
            self._advance()
            return self._simulation.command(command)

    # --- the virtual clock -------------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        return self._clock.rate

    @property
    def halted(self) -> bool:
        """Whether virtual time stands still (not to be confused with a paused job)."""
        return self._clock.halted

    def set_rate(self, rate: float) -> None:
        """Raises UsageError."""
        with self._lock:
            self._advance()
            self._clock.set(self._now(), rate=rate)

    def halt(self, halted: bool) -> None:
        with self._lock:
            self._advance()
            self._clock.set(self._now(), halted=halted)

    def step(self) -> None:
        """Halt, and let things happen until the log grows."""
        with self._lock:
            before = len(self._records)
            while len(self._records) == before and self._simulation.step():
                pass
            self._clock.set(self._simulation.now, halted=True)
            self._met = None

    def seek(self, seconds: float) -> None:
        """Let virtual time be that, unless it is later; the simulation catches up with each ``take``."""
        with self._lock:
            self._clock.set(max(seconds, self._now()))

    def run_on(self, kinds: Collection[MomentKind]) -> bool:
        """Halt at the next moment of these kinds. False: there was none within SEARCH_STEPS_MAX."""
        with self._lock:
            pause_on, self.pause_on, self._met = self.pause_on, frozenset(kinds), None
            for _ in range(SEARCH_STEPS_MAX):
                if self._met is not None or not self._simulation.step():
                    break
            self.pause_on = pause_on
            self._clock.set(self._simulation.now, halted=True)
            return self._met is not None

    def take_met(self) -> Record | None:
        """The moment of ``pause_on`` or ``run_on`` at which virtual time halted; told once."""
        with self._lock:
            met, self._met = self._met, None
            return met

    def _note(self, record: Record) -> None:
        self._records.append(record)
        if self.pause_on and self._met is None:
            moment = moment_of(record.event)
            if moment is not None and moment.kind in self.pause_on:
                self._met = record

    def result(self) -> SimResult:
        """What has come of it so far."""
        with self._lock:
            return result_of(self._simulation)

    def _estimate(self) -> None:
        """Now and then, of what has not been estimated yet."""
        simulation, books = self._simulation, self._simulation.books
        real, now = self._real.now(), self._now()
        if real < self._estimate_at or simulation.ended or books.finished or now == self._estimated_at:
            return
        if books.paused_at is not None or books.draining:
            return
        self._estimate_at, self._estimated_at = real + ESTIMATE_SECONDS, now
        found = estimate(outlook_of(books, *simulation.relay.schedule, now))
        self._records.append(Record(-1, now, self._forecaster.tell(now, found)))

    def _now(self) -> float:
        simulation, now = self._simulation, self._clock.now()
        if simulation.ended or now == inf:
            return simulation.now
        return max(simulation.now, now)

    def _advance(self) -> None:
        """Catch up with the clock; where that is too much at once, hold the clock back."""
        simulation, target = self._simulation, self._clock.now()
        for _ in range(STEPS_MAX):
            at = simulation.next_at
            if at is None:
                return
            if at > target:
                simulation.wait_until(target)
                return
            simulation.step()
            if self._met is not None:
                self._clock.set(simulation.now, halted=True)
                return
        self._clock.set(simulation.now)
