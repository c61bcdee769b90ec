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
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import eq
from typing import NoReturn

import msgspec

from farm.errors import IdError

_CANONICAL = re.compile(r"(?:0|[1-9][0-9]{0,17})\Z", re.ASCII)
_TOKEN = re.compile(r"c(0|[1-9][0-9]{0,17})#([1-9][0-9]{0,17})@e([1-9][0-9]{0,17})\Z", re.ASCII)
_LIKE_TOKEN = re.compile(r"(c[^#@]*)#([^#@]*)@e([^#@]*)\Z")


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

    __slots__ = ("_step", "cuts", "frames", "parts")

    def __init__(self, cuts: Sequence[int]) -> None:
        if len(cuts) < 2 or cuts[0] != 0 or any(a >= b for a, b in pairwise(cuts)):
            raise ValueError("cuts of a part grid start at 0, increase strictly and end at the frame count")
        self.cuts: tuple[int, ...] = tuple(cuts)
        self.frames = self.cuts[-1]
        self.parts = len(self.cuts) - 1
        steps = range(0, self.frames, self.cuts[1])
        regular = len(steps) == self.parts and all(map(eq, self.cuts, steps))
        self._step = steps.step if regular else 0  # frames of each part but the last; 0: they differ

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
        if self._step and 0 <= frame < self.frames:
            return frame // self._step
        return bisect_right(self.cuts, frame) - 1

    def parts_in(self, start: int, stop: int) -> Sequence[int]:
        """The parts of ``[start, stop)``, both of which are cuts."""
        return range(self.part_at(start), self.part_at(stop))

    def stop_for(self, start: int, frames: float, limit: int) -> int:
        """Where a chunk that begins at the cut ``start`` and wants ``frames`` ends: the nearest cut, at least
        one part, at most ``limit`` (a cut). A tie goes to the larger chunk (with that the
        published table also holds on a grid of 12: scheduling.md)."""
        first = self.part_at(start)
        wanted = start + frames
        if wanted <= self.cuts[first + 1]:
            return self.cuts[first + 1]
        above = min(bisect_right(self.cuts, wanted), self.part_at(limit))
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


class ClaimToken(msgspec.Struct, frozen=True, gc=False):
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
        _refuse_token(received, count)
    chunk = int(match[1])
    if count is not None and chunk >= count:
        parse_chunk_id(f"c{chunk}", count)
    return ClaimToken(chunk, int(match[2]), int(match[3]))


def _refuse_token(received: str, count: int | None) -> NoReturn:
    """Say what is wrong with a text that is no token."""
    match = _LIKE_TOKEN.match(received)
    if match is None:
        parse_chunk_id(received, count)
        raise IdError(received, "a claim token looks like 'c12#3@e2'")
    parse_chunk_id(match[1], count)
    for digits, which in ((match[2], "attempt"), (match[3], "epoch")):
        _decimal(digits, received, f"the {which} of a claim token is a number from 1")
    raise IdError(received, "attempt and epoch of a claim token start at 1")


def _decimal(digits: str, received: str, reason: str) -> int:
    if not _CANONICAL.match(digits):
        raise IdError(received, reason)
    return int(digits)
