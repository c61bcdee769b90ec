"""The relay's lease clock in virtual time: it doesn't count what the relay's loop stood still (farm.clock),
and what arrives meanwhile waits."""

from __future__ import annotations

from collections.abc import Callable
from math import nextafter

from farm.simulation.agenda import Agenda

#: Of each stop, what is counted all the same: interval and tolerance of farm.clock.LeaseClock.
COUNTED_SECONDS = 0.35


class LeaseTime:
    """``standing``: the loop stands still; ``waiting``: what it has to handle then, in order;
    ``lost_seconds``: not counted so far."""

    __slots__ = ("_agenda", "_since", "lost_seconds", "standing", "waiting")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._since = 0.0
        self.standing = False
        self.waiting: list[Callable[[], None]] = []
        self.lost_seconds = 0.0

    @property
    def now(self) -> float:
        return self.of(self._agenda.now)

    def of(self, time: float) -> float:
        """The lease clock's at virtual time ``time``, which is not before the last stop."""
        if self.standing:
            time = min(time, self._since + COUNTED_SECONDS)
        return time - self.lost_seconds

    def stand(self) -> None:
        if not self.standing:
            self.standing = True
            self._since = self._agenda.now

    def go_on(self) -> tuple[float, list[Callable[[], None]]]:
        """The seconds just lost, and what waits."""
        if not self.standing:
            return 0.0, []
        slept = max(0.0, self._agenda.now - self._since - COUNTED_SECONDS)
        before = self.now
        self.standing = False
        if slept:
            self.lost_seconds = self._agenda.now - before
            while self.now < before:  # by a rounding: it never runs backwards
                self.lost_seconds = nextafter(self.lost_seconds, 0.0)
        waiting, self.waiting = self.waiting, []
        return slept, waiting
