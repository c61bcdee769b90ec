"""Where events become records: numbered, stamped, durable, and only then shown.

Rule: nothing is published before it is committed (DESIGN.md §4). What is shown without being journalled
(progress of a phase) carries the number -1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol

from farm.events import AnyEvent, Record
from farm.journal import Journal

Publish = Callable[[Sequence[Record]], None]

#: Of an earlier start's records, so many are read at once, and so many may wait for who takes them.
_HISTORY_CHUNK = 1000
_BACKLOG_MAX = 4000
#: Nobody takes any: then nobody will miss them being told all at once.
_PATIENCE_SECONDS = 5.0
_BREATH_SECONDS = 0.01


async def publish_history(journal: Journal, publish: Publish, backlog: Callable[[], int]) -> None:
    """Publish what the journal holds, a piece at a time, so that a long run is never in memory as a whole.
    Raises JournalDamaged."""
    records = iter(journal.records())
    while chunk := await asyncio.to_thread(lambda: list(islice(records, _HISTORY_CHUNK))):
        publish(chunk)
        waiting, patience = backlog(), _PATIENCE_SECONDS
        while waiting > _BACKLOG_MAX and patience > 0:
            await asyncio.sleep(_BREATH_SECONDS)
            patience = _PATIENCE_SECONDS if backlog() < waiting else patience - _BREATH_SECONDS
            waiting = backlog()


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
