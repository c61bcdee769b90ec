"""Frame ranges, the part grid, and strict ids.

Rules of this file:
- ranges are half open, ``[start, stop)``, in frames of the job unless a name says parts;
- a *part* is an interval between two neighbouring cuts of the grid; a *chunk* is a range of whole parts;
- ids are parsed strictly: ``c`` and a canonical ASCII decimal. ``c0`` is a valid id. The loose parse of
  the relay write-up took ``c0`` for "no number" and wrote chunk zero over another one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from farm.errors import IdError

_CANONICAL = re.compile(r"(?:0|[1-9][0-9]{0,17})\Z", re.ASCII)
_TOKEN = re.compile(r"(c[^#@]*)#([^#@]*)@e([^#@]*)\Z")


@dataclass(frozen=True, slots=True)
class FrameRange:
    """Frames ``[start, stop)``; never empty."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"not a frame range: [{self.start}, {self.stop})")

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        return f"[{self.start}, {self.stop})"


class PartGrid:
    """Cuts ``0 = c0 < c1 < … < cP = N``: part p is the frames ``[c[p], c[p+1])``.

    Fixed before work starts from the source index and the settings alone, so that the bytes of a part never
    depend on who rendered it.
    """

    __slots__ = ("cuts",)

    def __init__(self, cuts: Sequence[int]) -> None:
        if len(cuts) < 2 or cuts[0] != 0 or any(a >= b for a, b in pairwise(cuts)):
            raise ValueError("cuts of a part grid start at 0, increase strictly and end at the frame count")
        self.cuts: tuple[int, ...] = tuple(cuts)

    @property
    def frames(self) -> int:
        return self.cuts[-1]

    @property
    def parts(self) -> int:
        return len(self.cuts) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartGrid) and other.cuts == self.cuts

    def __hash__(self) -> int:
        return hash(self.cuts)

    def start(self, part: int) -> int:
        return self.cuts[part]

    def stop(self, part: int) -> int:
        return self.cuts[part + 1]

    def size(self, part: int) -> int:
        return self.cuts[part + 1] - self.cuts[part]

    def range(self, part: int) -> FrameRange:
        return FrameRange(self.cuts[part], self.cuts[part + 1])

    def part_at(self, frame: int) -> int:
        """The part that holds ``frame``; ``frame == N`` gives the number of parts."""
        return bisect_right(self.cuts, frame) - 1

    def parts_in(self, start: int, stop: int) -> Iterator[int]:
        """The parts of ``[start, stop)``, both of which are cuts."""
        yield from range(self.part_at(start), self.part_at(stop))

    def stop_for(self, start: int, frames: float, limit: int) -> int:
        """Where a chunk that begins at the cut ``start`` and wants ``frames`` ends: the nearest cut, at least
        one part, at most ``limit`` (a cut). A tie goes to the larger chunk (with that the
        published table also holds on a grid of 12: scheduling.md)."""
        first = self.part_at(start)
        last = self.part_at(limit)
        wanted = start + frames
        above = min(bisect_right(self.cuts, wanted), last)
        if above <= first + 1:
            return self.cuts[first + 1]
        low, high = self.cuts[above - 1], self.cuts[above]
        return low if wanted - low < high - wanted else high


def chunk_id(number: int) -> str:
    return f"c{number}"


def parse_chunk_id(received: object, count: int | None = None) -> int:
    """The number of a chunk id. ``count``: how many chunks exist, for the range check.

    Raises IdError for anything but ``c`` and a canonical decimal below ``count``.
    """
    if received is None:
        raise IdError(received, "the chunk id is missing")
    if not isinstance(received, str):
        raise IdError(received, "a chunk id is text")
    if not received:
        raise IdError(received, "the chunk id is empty")
    if received[0] != "c":
        raise IdError(received, "a chunk id is 'c' and a number")
    number = _decimal(received[1:], received, "a chunk id is 'c' and a number without leading zeros")
    if count is not None and number >= count:
        raise IdError(received, f"no such chunk: {count} exist" if count else "no chunk exists yet")
    return number


@dataclass(frozen=True, slots=True)
class ClaimToken:
    """Names one claim: chunk, attempt (from 1) and the epoch of the relay that granted it, ``c12#3@e2``."""

    chunk: int
    attempt: int
    epoch: int

    def __str__(self) -> str:
        return f"c{self.chunk}#{self.attempt}@e{self.epoch}"


def parse_token(received: object, count: int | None = None) -> ClaimToken:
    """The token in ``received``, parsed as strictly as chunk ids. Raises IdError."""
    if received is None:
        raise IdError(received, "the claim token is missing")
    if not isinstance(received, str):
        raise IdError(received, "a claim token is text")
    match = _TOKEN.match(received)
    if match is None:
        parse_chunk_id(received, count)
        raise IdError(received, "a claim token looks like 'c12#3@e2'")
    chunk = parse_chunk_id(match[1], count)
    attempt = _decimal(match[2], received, "the attempt of a claim token is a number from 1")
    epoch = _decimal(match[3], received, "the epoch of a claim token is a number from 1")
    if attempt == 0 or epoch == 0:
        raise IdError(received, "attempt and epoch of a claim token start at 1")
    return ClaimToken(chunk, attempt, epoch)


def _decimal(digits: str, received: str, reason: str) -> int:
    if not _CANONICAL.match(digits):
        raise IdError(received, reason)
    return int(digits)
