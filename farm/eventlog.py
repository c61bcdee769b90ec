"""Where events become records: numbered, stamped, durable, and only then shown.

Rule: nothing is published before it is committed (DESIGN.md §4). What is shown without being journalled
(progress of a phase) carries the number -1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from farm.events import AnyEvent, Record

Publish = Callable[[Sequence[Record]], None]


class Appends(Protocol):
    async def append(self, records: Sequence[Record]) -> None: ...


class EventLog:
    """``next_seq``: the number of the next record. Use from one event loop."""

    def __init__(self, journal: Appends, next_seq: int, publish: Publish) -> None:
        self._journal = journal
        self._next_seq = next_seq
        self._publish = publish

    async def commit(self, at: float, events: Sequence[AnyEvent]) -> None:
        """Returns once the events are durable. Raises OutputError when the disk refuses."""
        if not events:
            return
        first = self._next_seq
        records = [Record(seq, at, event) for seq, event in enumerate(events, first)]
        self._next_seq = first + len(records)
        await self._journal.append(records)
        self._publish(records)

    def show(self, at: float, event: AnyEvent) -> None:
        """Publish what needs no journal."""
        self._publish([Record(-1, at, event)])
