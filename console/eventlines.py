"""The newest events as lines, worded when they are looked at: of thousands a second a person sees a few.

Rule: what is read is a plain sequence of ``EventLine``, oldest first; how far it is worded can't be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from console.wording import EventLine, describe
from farm.events import Record


class EventLines(Sequence[EventLine]):
    """A ring of the last ``kept`` events that have words."""

    __slots__ = ("_kept", "_ring", "total")

    def __init__(self, kept: int) -> None:
        self._kept = kept
        #: Number n ever added is at n modulo ``kept``: a line, or the record it is made from.
        self._ring: list[EventLine | Record] = []
        self.total = 0  #: ever added

    def add(self, record: Record) -> None:
        """An event that has words (``wording.is_told``)."""
        if self.total < self._kept:
            self._ring.append(record)
        else:
            self._ring[self.total % self._kept] = record
        self.total += 1

    def __len__(self) -> int:
        return len(self._ring)

    @overload
    def __getitem__(self, index: int) -> EventLine: ...
    @overload
    def __getitem__(self, index: slice) -> list[EventLine]: ...
    def __getitem__(self, index: int | slice) -> EventLine | list[EventLine]:
        count = len(self._ring)
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(count))]
        if not -count <= index < count:
            raise IndexError(index)
        place = (self.total - count + (index if index >= 0 else index + count)) % self._kept
        line = self._ring[place]
        if not isinstance(line, EventLine):
            worded = describe(line.at, line.event)
            assert worded is not None, "only events that have words are added"
            self._ring[place] = line = worded
        return line

    def __repr__(self) -> str:
        """By its lines: two rings that say the same are the same."""
        return repr(list(self))
