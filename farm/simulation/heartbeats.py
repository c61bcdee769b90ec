"""A simulated worker's heartbeats: every so many seconds from its welcome on, and at once after a stop."""

from __future__ import annotations

from collections.abc import Callable

from farm.events import ClaimProgress
from farm.messages import Heartbeat
from farm.simulation.agenda import Agenda
from farm.simulation.line import Line


class Heartbeats:
    """``progress`` tells of all claims of the worker, as they are when it is called."""

    __slots__ = ("_agenda", "_interval", "_line", "_next_at", "_progress", "_stamp", "lost")

    def __init__(self, agenda: Agenda, line: Line, progress: Callable[[], tuple[ClaimProgress, ...]]) -> None:
        self._agenda = agenda
        self._line = line
        self._progress = progress
        self._interval = 0.0
        self._next_at = 0.0
        self._stamp = 0  # beats put on the agenda under an older one are void
        self.lost = False  #: by a fault

    def start(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._next_at = self._agenda.now
        self._plan()

    def stop(self) -> None:
        self._stamp += 1

    def resume(self) -> None:
        """After a stop of the process."""
        if self._interval:
            self._beat(self._stamp)

    def _beat(self, stamp: int) -> None:
        if stamp != self._stamp:
            return
        if not self.lost:
            self._line.send(Heartbeat(claims=self._progress()))
        if stamp == self._stamp:  # else the answer ended the worker
            self._plan()

    def _plan(self) -> None:
        now = self._agenda.now
        self._next_at += self._interval
        if self._next_at <= now:
            self._next_at = now + self._interval
        self._agenda.add(self._next_at, self._beat, self._stamp)
