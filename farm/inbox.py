"""What waits for the relay's loop, bounded: while it is full, the engine stops reading and senders wait.

Rule: nothing is dropped. The shell's own stimuli come in also where it is full, for they are few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

INBOX_MAX: Final = 512


class Inbox(Generic[T]):
    """``hold_reading`` has the senders wait, or go on. Use in one event loop."""

    def __init__(self, hold_reading: Callable[[bool], None]) -> None:
        self._hold_reading = hold_reading
        self._items: list[T] = []
        self._news = asyncio.Event()
        self._in_hand = 0  # of the batch that is being handled
        self._held = False

    @property
    def waiting(self) -> int:
        """What was put in and is not handled yet."""
        return len(self._items) + self._in_hand

    def put(self, item: T) -> None:
        self._items.append(item)
        self._news.set()
        if self.waiting >= INBOX_MAX and not self._held:
            self._held = True
            self._hold_reading(True)

    def wake(self) -> None:
        """Have ``take`` return, also with nothing: there is another reason to look."""
        self._news.set()

    async def take(self) -> list[T]:
        """Wait for news; all that waits, in order, is in hand then."""
        await self._news.wait()
        self._news.clear()
        batch, self._items = self._items, []
        self._in_hand = len(batch)
        return batch

    def left_in_hand(self, count: int) -> None:
        """So many of the batch are not handled yet."""
        self._in_hand = count
        if self._held and self.waiting < INBOX_MAX:
            self._held = False
            self._hold_reading(False)
