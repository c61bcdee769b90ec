"""Coroutines that run beside a loop: kept, cancelled together, and heard when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Besides:
    """``failed`` is told what a coroutine raised; not after ``cancel``. Use in one event loop."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def cancel(self) -> None:
        self._closing = True
        for task in list(self._tasks):
            task.cancel()

    async def ended(self) -> None:
        """Wait until all have ended, however they do."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or self._closing:
            return
        error = task.exception()
        if error is not None:
            self._failed(error)
