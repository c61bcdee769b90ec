"""A small real ``farm.view.Source``: plays a log at the pace its test or script sets.

Sources must be thread-safe; this one is, so that the benchmark may feed it from another thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from farm.commands import AnyCommand
from farm.events import AnyEvent, Record
from farm.view import World


class Player:
    """Hands out the records of ``log`` whose time has come by ``clock``; what ``send`` is given is kept."""

    def __init__(
        self,
        log: Iterable[Record] = (),
        *,
        world: World = "live",
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._world: World = world
        self._log = deque(log)
        self._clock = clock
        self._lock = threading.Lock()
        self._seq = 0
        self.time = 0.0  #: lease seconds, where no clock was given
        self.open_end = False  #: more records may come after the log
        self.commands: list[AnyCommand] = []
        self.refusal: str | None = None  #: what the next commands are answered with

    @property
    def world(self) -> World:
        return self._world

    @property
    def ended(self) -> bool:
        with self._lock:
            return not self.open_end and (not self._log or self._log[-1].at <= self.now())

    def now(self) -> float:
        return self.time if self._clock is None else self._clock()

    def take(self) -> Sequence[Record]:
        now = self.now()
        taken = []
        with self._lock:
            while self._log and self._log[0].at <= now:
                taken.append(self._log.popleft())
        if taken:
            self._seq = taken[-1].seq + 1
        return taken

    def send(self, command: AnyCommand) -> str | None:
        self.commands.append(command)
        return self.refusal

    def add(self, *events: AnyEvent) -> None:
        """The story takes another turn: these happen now, and what the log had for later never does."""
        now = self.now()
        with self._lock:
            while self._log and self._log[-1].at > now:
                self._log.pop()
            following = self._log[-1].seq + 1 if self._log else self._seq
            self._log.extend(Record(following + n, now, event) for n, event in enumerate(events))
            self.open_end = True
