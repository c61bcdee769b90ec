"""A policy of one's own: every chunk is to take the same time, whoever renders it.

    uneven render clip.mp4 -o out.mp4 --fleet 30,30,12,2 --schedule samples/policies/by_time.py:ByTime,15

A worker of which nothing is known yet gets ``first`` frames; after that, what it does in ``seconds`` at the
speed it was measured at, but near the end no more than its even share, so that nobody sits on a long chunk
while the others have nothing left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from farm.policies.base import Ask, Size


@dataclass(frozen=True)
class ByTime:
    # A parameter is a field with a default and a type: int, float, bool or str. ``metadata`` is its range.
    seconds: float = field(default=15.0, metadata={"low": 0.1, "high": 3600, "unit": "seconds"})
    first: int = field(default=24, metadata={"low": 1, "unit": "frames"})

    @property
    def name(self) -> str:
        return f"by-time,{self.seconds:g},{self.first}"

    def size(self, ask: Ask) -> Size:
        rate = ask.speeds.of(ask.worker).rate
        if rate is None:
            return Size(self.first, "nothing is known of its speed yet")
        frames = max(1.0, rate * self.seconds)
        even = max(1.0, ask.open_frames / ask.workers)
        if frames > even:
            return Size(even, f"an even share of {ask.open_frames} open frames")
        return Size(frames, f"{self.seconds:g} s at {rate:.3g} frames per second")
