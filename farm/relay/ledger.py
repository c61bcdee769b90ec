"""The records the relay's books are made of, each with operations in constant time.

- ``OpenRanges``: a queue of open frame ranges in which neighbours are always joined;
- ``ClaimRecord``, ``ChunkRecord``, ``WorkerRecord``: what is known of each.
Only ``books.py`` changes them, and only while it folds an event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

#: At most this many live claims on one chunk.
HOLD: Final = 2

#: Where a part can be.
OPEN: Final = 0
IN_FLIGHT: Final = 1
CREDITED: Final = 2
SET_ASIDE: Final = 3
DEFERRED: Final = 4  #: not in the sample: nobody gets it before the relay's next start
#: Where a part is whose delivery counts.
WANTED: Final = (OPEN, IN_FLIGHT)


class OpenRanges:
    """Open ranges in the order they are to be given out. Boundary maps find a range's neighbours without a
    scan, so joining is O(1).

    The head of the queue is the *end* of the dict: there a plain dict takes and puts in O(1), while one used
    as a queue from its front is quadratic (scheduling.md).
    """

    __slots__ = ("_by_start", "_by_stop", "frames")

    def __init__(self) -> None:
        self._by_start: dict[int, int] = {}
        self._by_stop: dict[int, int] = {}
        self.frames = 0

    def __len__(self) -> int:
        return len(self._by_start)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return reversed(self._by_start.items())

    def put_first(self, start: int, stop: int) -> None:
        """Open ``[start, stop)``, joined with open neighbours, at the head of the queue."""
        self.frames += stop - start
        left = self._by_stop.pop(start, None)
        if left is not None:
            del self._by_start[left]
            start = left
        right = self._by_start.pop(stop, None)
        if right is not None:
            stop = right
        self._by_start[start] = stop
        self._by_stop[stop] = start

    def take(self, start: int, stop: int) -> None:
        """Close ``[start, stop)``, which lies within one open range; what is left keeps its place. O(1) if it
        begins the first range, else the ranges are searched (an offered, adopted or set-aside part, or one
        left to another worker: rare)."""
        earlier = []
        while self._by_start:
            outer_start, outer_stop = self._by_start.popitem()
            if outer_start <= start and stop <= outer_stop:
                break
            earlier.append((outer_start, outer_stop))
        else:
            self._by_start.update(reversed(earlier))
            raise AssertionError(f"[{start}, {stop}) is not open")
        self.frames -= stop - start
        if stop < outer_stop:
            self._by_start[stop] = outer_stop
            self._by_stop[outer_stop] = stop
        else:
            del self._by_stop[outer_stop]
        if outer_start < start:
            self._by_start[outer_start] = start
            self._by_stop[start] = outer_start
        if earlier:
            self._by_start.update(reversed(earlier))


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
    delivered_ahead: frozenset[int] = frozenset()  #: parts it delivered after ``own_next``


class ChunkRecord(Struct, eq=False):
    """A chunk in flight: it has 1 to HOLD live claims."""

    number: int
    start: int
    stop: int
    next: int  #: first frame of its first uncredited part; == stop when all are credited
    uncredited: int  #: parts
    attempts: int = 0
    claims: dict[str, ClaimRecord] = {}  #: by token text, in claim order
    workers: tuple[str, ...] = ()  #: everyone who ever held it


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
