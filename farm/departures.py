"""Why workers go, and whether they are started again.

Rules of this file:
- a worker is started again when it died, at most RESTARTS_MAX times without having delivered anything in
  between; one that was ended by an operator, or sent away, is not;
- who is stopped from here says why; else the engine's reason holds. Only the system kills without a word: a
  worker that is killed while the system kills for want of memory is taken for one of those;
- no I/O but what ``oom_kills`` does, no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

#: Times a worker is started again without having delivered anything in between.
RESTARTS_MAX = 3

OUT_OF_MEMORY = "out of memory"


class Departure(NamedTuple):
    """``kind``: what the part it was at failed of."""

    reason: str
    kind: str


class Departures:
    """``oom_kills``: how many processes the system has ever killed for want of memory."""

    def __init__(self, oom_kills: Callable[[], int]) -> None:
        self._count_kills = oom_kills
        self._kills = oom_kills()
        self._restarts: dict[str, int] = {}
        self._stays_away: set[str] = set()
        self._stopped_for: dict[str, str] = {}
        self._struck: set[str] = set()
        #: why each worker went, each time
        self.reasons: dict[str, list[str]] = {}

    def started(self, worker: str) -> None:
        self._struck.discard(worker)

    def delivered(self, worker: str) -> None:
        self._restarts.pop(worker, None)

    def struck(self, worker: str, *, beyond_memory: str = "", stays_away: bool = False) -> None:
        """It is being killed from here; ``beyond_memory`` says that and why it is out of memory."""
        self._struck.add(worker)
        if beyond_memory:
            self._stopped_for[worker] = beyond_memory
        if stays_away:
            self._stays_away.add(worker)

    def sent_away(self, worker: str) -> None:
        """It was asked to leave, and is not started again however it goes."""
        self._stays_away.add(worker)

    def comes_back(self, worker: str) -> None:
        """It is started again after all."""
        self._stays_away.discard(worker)

    def is_struck(self, worker: str) -> bool:
        return worker in self._struck

    def note(self, worker: str, reason: str) -> None:
        """To be told if nobody is left in the end."""
        self.reasons.setdefault(worker, []).append(reason)

    def explain(self, worker: str, reason: str) -> Departure:
        """It is gone, with the engine's ``reason``."""
        stopped_for = self._stopped_for.pop(worker, None)
        if stopped_for is not None:
            return Departure(stopped_for, OUT_OF_MEMORY)
        if "SIGKILL" in reason and worker not in self._struck:
            before, self._kills = self._kills, self._count_kills()
            if self._kills > before:
                return Departure(f"{OUT_OF_MEMORY}: the system ended it with SIGKILL", OUT_OF_MEMORY)
        return Departure(reason, "worker lost")

    def may_restart(self, worker: str) -> bool:
        """Whether it is started again now; counts as a start."""
        restarts = self._restarts.get(worker, 0)
        if worker in self._stays_away or restarts >= RESTARTS_MAX:
            return False
        self._restarts[worker] = restarts + 1
        return True
