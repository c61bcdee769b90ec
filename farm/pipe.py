"""Records on their way from the thread that has them to the one that shows them.

Rule: any thread may put and take; whoever takes gets all there is, in order, each record once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from farm.events import Record


class RecordPipe:
    def __init__(self) -> None:
        self._records: deque[Record] = deque()
        self._news = threading.Event()

    def __len__(self) -> int:
        """Records that wait to be taken."""
        return len(self._records)

    def put(self, records: Iterable[Record]) -> None:
        self._records.extend(records)
        self._news.set()

    def wake(self) -> None:
        """End a wait, though there are no records: there is other news."""
        self._news.set()

    def wait(self, timeout_seconds: float) -> None:
        """Wait for records, or for other news, or until the time is over."""
        self._news.wait(timeout_seconds)

    def take(self) -> list[Record]:
        self._news.clear()  # first: what is put from here on is news again
        taken = []
        while self._records:
            taken.append(self._records.popleft())
        return taken
