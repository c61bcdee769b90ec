"""How late an event loop is: the one place where a file sync, a checksum or a long fold would show.

A task sleeps for a moment and sees by how much it woke too late. Lateness above ``STALL_SECONDS`` is a stall.
A process that was stopped (Ctrl-Z, a laptop asleep) was late as well, and is counted: whoever looks for a
cause finds the relay's own word for it, LoopStalled, at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

#: Nothing may keep the loop for longer.
STALL_SECONDS = 0.05
#: Short enough that most of a stall is seen, long enough to cost nothing.
INTERVAL_SECONDS = 0.02


class LoopWatch:
    """``raw``: a monotonic clock, in seconds."""

    def __init__(self, raw: Callable[[], float]) -> None:
        self._raw = raw
        self.stalls = 0
        self.worst_seconds = 0.0

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            before = self._raw()
            await asyncio.sleep(INTERVAL_SECONDS)
            self.note(self._raw() - before - INTERVAL_SECONDS)

    def note(self, late_seconds: float) -> None:
        self.worst_seconds = max(self.worst_seconds, late_seconds)
        self.stalls += late_seconds > STALL_SECONDS
