"""The records the relay's books are made of, each with operations in constant time.

- ``OpenRanges``: a queue of open frame ranges in which neighbours are always joined;
- ``ClaimRecord``, ``ChunkRecord``, ``WorkerRecord``: what is known of each.
Only ``books.py`` changes them, and only while it folds an event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from msgspec import Struct

#: At most this many live claims on one chunk.
HOLD: Final = 2

#: Where a part can be.
OPEN: Final = 0
IN_FLIGHT: Final = 1
CREDITED: Final = 2
SET_ASIDE: Final = 3


class OpenRanges:
    """Open ranges in the order they are to be given out. Boundary maps find a range's neighbours without a
    scan, so joining is O(1). An OrderedDict, since a plain dict used as a queue is quadratic (scheduling.md).
    """

    __slots__ = ("_by_start", "_by_stop", "frames")

    def __init__(self) -> None:
        self._by_start: OrderedDict[int, int] = OrderedDict()
        self._by_stop: dict[int, int] = {}
        self.frames = 0

    def __len__(self) -> int:
        return len(self._by_start)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._by_start.items())

    def put_first(self, start: int, stop: int) -> None:
        """Open ``[start, stop)``, joined with open neighbours, at the head of the queue."""
        self.frames += stop - start
        left = self._by_stop.get(start)
        if left is not None:
            self._drop(left, start)
            start = left
        right = self._by_start.get(stop)
        if right is not None:
            self._drop(stop, right)
            stop = right
        self._add_first(start, stop)

    def take(self, start: int, stop: int) -> None:
        """Close ``[start, stop)``, which lies within one open range; what is left keeps its place. O(1) if it
        begins the first range, else the ranges are searched (an offered, adopted or set-aside part, or one
        left to another worker: rare)."""
        outer_start, outer_stop = self._find(start)
        assert stop <= outer_stop, f"[{start}, {stop}) is not open"
        first = next(iter(self._by_start)) == outer_start
        before = [] if first else list(takewhile(lambda begins: begins != outer_start, self._by_start))
        self._drop(outer_start, outer_stop)
        self.frames -= stop - start
        for piece_start, piece_stop in ((stop, outer_stop), (outer_start, start)):
            if piece_start < piece_stop:
                self._add_first(piece_start, piece_stop)
        for earlier in reversed(before):
            self._by_start.move_to_end(earlier, last=False)

    def _find(self, frame: int) -> tuple[int, int]:
        stop = self._by_start.get(frame)
        if stop is not None:
            return frame, stop
        for start, stop in self._by_start.items():
            if start <= frame < stop:
                return start, stop
        raise AssertionError(f"frame {frame} is not open")

    def _add_first(self, start: int, stop: int) -> None:
        self._by_start[start] = stop
        self._by_start.move_to_end(start, last=False)
        self._by_stop[stop] = start

    def _drop(self, start: int, stop: int) -> None:
        del self._by_start[start]
        del self._by_stop[stop]


class ClaimRecord(Struct, eq=False):
    """A live claim on ``[start, stop)`` of its chunk. Times are lease seconds."""

    chunk: int  #: its number
    text: str  #: the token
    worker: str
    start: int
    stop: int
    granted_at: float
    renewed_at: float
    moved_at: float  #: last time any progress counter went up
    part_since: float  #: when the part in progress began, as far as heard
    own_next: int  #: first frame of the first part this claim has not itself delivered
    position: int
    rendered: int = 0
    decoded: int = 0
    delivered_bytes: int = 0
    credited: int = 0  #: frames of it that counted
    superseded: int = 0  #: frames it delivered that did not count
    granted_stop: int = 0  #: its stop when it was granted; splits make ``stop`` smaller
    ahead: bool = False  #: held ahead, behind another claim of its worker
    was_ahead: bool = False
    begun: bool = False  #: a report said that frames of it are worked on
    render_seconds: float = 0.0  #: spent rendering, as of the last report
    reported: int = 0  #: frames rendered, as of that report
    delivered_ahead: set[int] = set()  #: parts it delivered after ``own_next``


class ChunkRecord(Struct, eq=False):
    """A chunk in flight: it has 1 to HOLD live claims."""

    number: int
    start: int
    stop: int
    next: int  #: first frame of its first uncredited part; == stop when all are credited
    uncredited: int  #: parts
    attempts: int = 0
    claims: dict[str, ClaimRecord] = {}  #: by token text, in claim order
    workers: set[str] = set()  #: everyone who ever held it


class WorkerRecord(Struct, eq=False):
    """A worker that joined and has not left."""

    name: str
    overhead_seconds: float = 0.0
    fps_cap: float | None = None
    claims: dict[str, ClaimRecord] = {}
    parked: bool = False
    failures_in_row: int = 0
    blocked_until: float | None = None


class EndedClaim(Struct, frozen=True, gc=False):
    """What is remembered of a claim that is over, to tell its worker why."""

    worker: str
    how: str
    reason: str
    start: int
    stop: int
