"""Self-scheduling by what remains: ``guided,MIN[,MAX]`` of the relay write-up, ``gss`` of the literature.
Largest first, so that what comes last is small."""

from __future__ import annotations

from dataclasses import dataclass

from farm.policies.base import Ask, Size
from farm.policies.parameters import parameter, spell


@dataclass(frozen=True, slots=True)
class Guided:
    """size = clamp(ceil(R / 2W), min, max). Source: the relay write-up."""

    min: int = parameter(12, low=1, unit="frames")
    max: int | None = parameter(None, low=1, unit="frames")

    def __post_init__(self) -> None:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max {self.max} is below min {self.min}")

    @property
    def name(self) -> str:
        return f"guided,{self.min}" + (f",{self.max}" if self.max is not None else "")

    def size(self, ask: Ask) -> Size:
        share = -(-ask.open_frames // (2 * ask.workers))
        frames = max(share, self.min) if self.max is None else max(self.min, min(share, self.max))
        bound = "" if frames == share else f", held within {self.min} and {self.max or 'no maximum'}"
        return Size(frames, f"{ask.open_frames} open frames / (2 x {ask.workers} workers) = {share}{bound}")


@dataclass(frozen=True, slots=True)
class Gss:
    """size = max(ceil(R / W), min): guided self-scheduling; what OpenMP calls guided.

    Source: Polychronopoulos & Kuck, "Guided self-scheduling", IEEE Trans. Computers C-36 (1987), GSS(k) with
    k = min.
    """

    min: int = parameter(1, low=1, unit="frames")

    @property
    def name(self) -> str:
        return spell("gss", self)

    def size(self, ask: Ask) -> Size:
        share = -(-ask.open_frames // ask.workers)
        bound = "" if share >= self.min else f", at least {self.min}"
        return Size(
            max(share, self.min), f"{ask.open_frames} open frames / {ask.workers} workers = {share}{bound}"
        )
