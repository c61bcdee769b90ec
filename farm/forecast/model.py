"""The tiny model of chunks and claims that a replay is played on: who renders what, since when, how fast.

Rule of this file: a claim's position is a function of the time, so nothing is updated between two events.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from farm.frames import PartGrid
from farm.policies.situation import Busy
from farm.policies.speeds import Speed


@dataclass(eq=False, slots=True)
class Chunk:
    """Frames of the job."""

    number: int
    start: int
    next: int  #: first frame of its first uncredited part when the replay began
    stop: int
    claims: list[Claim] = field(default_factory=list)
    workers: set[str] = field(default_factory=set)  #: everyone who ever held it

    def frontier(self, grid: PartGrid, now: float, *more: Claim) -> int:
        """First frame of its first uncredited part, also by what ``more`` have rendered."""
        reached = max((claim.position(now) for claim in (*self.claims, *more)), default=0.0)
        return max(self.next, min(grid.start(grid.part_at(min(int(reached), self.stop - 1))), self.stop))

    def splittable(self, grid: PartGrid, now: float) -> int:
        """First cut at which it may be split: after the part that each of its holders is at."""
        return max(claim.splittable(grid, now) for claim in self.claims)


@dataclass(eq=False, slots=True)
class Claim:
    """``seen`` frames were reached at ``since``, from when on its worker renders."""

    worker: str
    chunk: Chunk
    start: int
    stop: int
    seen: float
    since: float
    granted_at: float
    heard_at: float
    rate: float  #: 0: silent
    ahead: bool = False
    over: bool = False

    @property
    def ends_at(self) -> float:
        return self.since + (self.stop - self.seen) / self.rate if self.rate > 0 else math.inf

    def position(self, now: float) -> float:
        return min(self.seen + max(now - self.since, 0.0) * self.rate, self.stop)

    def begun(self, now: float) -> bool:
        return not self.ahead and (self.rate == 0 or now > self.since)

    def splittable(self, grid: PartGrid, now: float) -> int:
        if not self.begun(now):
            return self.start
        return grid.stop(grid.part_at(min(int(self.position(now)), self.stop - 1)))

    def busy(self, grid: PartGrid, now: float) -> Busy:
        """As a decision sees it: reported as soon as it happened, unless its worker is silent."""
        begun, position = self.begun(now), self.position(now)
        seen = int(position)
        seen_at = now - (position - seen) / self.rate if begun and self.rate > 0 else now
        return Busy(
            token=f"c{self.chunk.number}-{self.worker}",
            worker=self.worker,
            chunk=self.chunk.number,
            start=self.start,
            stop=self.stop,
            next=self.chunk.frontier(grid, now),
            seen=seen,
            begun=begun,
            ahead=self.ahead,
            granted_at=self.granted_at,
            heard_at=seen_at if self.rate > 0 else self.heard_at,
            holders=len(self.chunk.claims),
        )


def settled(speed: Speed) -> Speed:
    """Without what its worker was at just now: for what it begins later."""
    return replace(speed, recent_frames=0.0, recent_seconds=0.0)
