"""The four steps of the Ray write-up on chunk assignment: ``static`` slices, ``decaying`` sizes that follow
what remains, ``granular`` constant ones, and ``adaptive``, granular first and decaying at the end."""

from __future__ import annotations

from dataclasses import dataclass

from farm.policies.base import Ask, Size
from farm.policies.parameters import parameter, spell


@dataclass(frozen=True, slots=True)
class Static:
    """size = ceil(R / (W - k)) for the k-th slice, counted from 0, at most one and a half times ceil(N / W).

    The write-up cuts slice k at k * ceil(N / W), which for N = 5 and W = 4 puts the last one beyond the end.
    Dividing what remains among those who have no slice yet gives the same slices wherever W divides N, and
    everywhere W of them that differ by at most one frame and end at N. Rounded to whole parts no longer
    than a slice, they still are W: what a slice loses or gains goes to those after it, half a part at most,
    hence the half. Nobody gets a second slice while the first is out, so at most W are in flight; what
    comes after W slices, because claims lapsed, is handed out again in slices of at most ceil(N / W).
    Source: the Ray write-up, first step.
    """

    @property
    def name(self) -> str:
        return "static"

    def size(self, ask: Ask) -> Size:
        even = -(-ask.total_frames // ask.workers)
        without = ask.workers - ask.grants
        if without > 0:
            frames = min(-(-ask.open_frames // without), 3 * even // 2)
        else:
            frames = min(ask.open_frames, even)
        frames = max(1, frames)
        return Size(frames, f"one of {ask.workers} equal slices of {ask.total_frames} frames")


@dataclass(frozen=True, slots=True)
class Decaying:
    """size = floor((N / W) * (R / N)) = floor(R / W), at least 1. Source: the Ray write-up, second step."""

    @property
    def name(self) -> str:
        return "decaying"

    def size(self, ask: Ask) -> Size:
        share = ask.open_frames // ask.workers
        return Size(max(1, share), f"{ask.open_frames} open frames / {ask.workers} workers = {share}")


@dataclass(frozen=True, slots=True)
class Granular:
    """size = N / (W * split), constant while W is. Source: the Ray write-up, third step."""

    split: int = parameter(4, low=1)

    @property
    def name(self) -> str:
        return spell("granular", self)

    def size(self, ask: Ask) -> Size:
        frames = max(1.0, ask.total_frames / (ask.workers * self.split))
        return Size(frames, f"{ask.total_frames} frames / ({ask.workers} workers x {self.split})")


@dataclass(frozen=True, slots=True)
class Adaptive:
    """While R >= tail * N: size = clamp(N / (W * split), min, max); after that clamp(R / W, min, max).

    The bounds hold in both phases, as the write-up's text has it; its defaults. Source: the Ray write-up,
    last step.
    """

    split: int = parameter(1, low=1)
    min: int = parameter(10, low=1, unit="frames")
    max: int = parameter(2000, low=1, unit="frames")
    tail: float = parameter(0.2, low=0, high=1)

    def __post_init__(self) -> None:
        if self.max < self.min:
            raise ValueError(f"max {self.max} is below min {self.min}")

    @property
    def name(self) -> str:
        return spell("adaptive", self)

    def size(self, ask: Ask) -> Size:
        if ask.open_frames >= self.tail * ask.total_frames:
            share = ask.total_frames / (ask.workers * self.split)
            why = f"main phase: {ask.total_frames} frames / ({ask.workers} workers x {self.split})"
        else:
            share = ask.open_frames / ask.workers
            why = f"last {self.tail:.0%}: {ask.open_frames} open frames / {ask.workers} workers"
        frames = max(self.min, min(share, self.max))
        return Size(frames, why if frames == share else f"{why}, held within {self.min} and {self.max}")
