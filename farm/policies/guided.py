"""``guided,MIN[,MAX]``: largest first, shrinking with what remains."""

from __future__ import annotations

from dataclasses import dataclass

from farm.policies.base import Ask, Size


@dataclass(frozen=True, slots=True)
class Guided:
    """size = clamp(ceil(R / 2W), min, max). Source: the relay write-up."""

    min: int = 12
    max: int | None = None

    @property
    def name(self) -> str:
        return f"guided,{self.min}" + (f",{self.max}" if self.max is not None else "")

    def size(self, ask: Ask) -> Size:
        share = -(-ask.open_frames // (2 * ask.workers))
        frames = max(share, self.min) if self.max is None else max(self.min, min(share, self.max))
        bound = "" if frames == share else f", held within {self.min} and {self.max or 'no maximum'}"
        return Size(frames, f"{ask.open_frames} open frames / (2 x {ask.workers} workers) = {share}{bound}")
