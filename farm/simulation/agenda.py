"""What will happen and when: the virtual clock of a simulation.

Rule: things that happen at one instant happen in the order in which they were put down. Instants that should
be equal differ in the last bits of their floats, so times are compared in steps of a microsecond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

#: Steps a second, and where in a step whole and simple fractions of a second don't fall.
_STEPS = 1e6
_SHIFT = 0.3719

Handler = Callable[[Any], None]


class Agenda:
    """``now``: virtual seconds since the start; never runs backwards. ``soon``: what happens next, before
    anything else, in the order in which it was put down."""

    __slots__ = ("_heap", "_order", "now", "over", "soon")

    def __init__(self) -> None:
        self.now = 0.0
        self.over = False  #: nothing more is let happen by ``run``
        self._heap: list[tuple[int, int, float, Handler, Any]] = []
        self._order = 0
        self.soon: deque[tuple[Handler, Any]] = deque()

    def add(self, at: float, handler: Handler, argument: Any = None) -> None:
        """Call ``handler(argument)`` at ``at``."""
        self._order += 1
        heappush(self._heap, (int(at * _STEPS + _SHIFT), self._order, at, handler, argument))

    def next_at(self) -> float | None:
        """When the next thing happens; None if nothing will."""
        if self.soon:
            return self.now
        return self._heap[0][2] if self._heap else None

    def step(self) -> bool:
        """Go to what happens next and let it happen. False: nothing will."""
        if self.soon:
            handler, argument = self.soon.popleft()
        elif self._heap:
            _, _, at, handler, argument = heappop(self._heap)
            if at > self.now:
                self.now = at
        else:
            return False
        handler(argument)
        return True

    def run(self) -> None:
        """Step after step, a call less for each, until nothing will happen or all is ``over``."""
        heap, soon = self._heap, self.soon
        while not self.over:
            if soon:
                handler, argument = soon.popleft()
            elif heap:
                _, _, at, handler, argument = heappop(heap)
                if at > self.now:
                    self.now = at
            else:
                return
            handler(argument)
