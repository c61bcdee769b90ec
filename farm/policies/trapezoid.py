"""``tss``: trapezoid self-scheduling; sizes fall in a straight line, which is cheap to compute."""

from __future__ import annotations

from dataclasses import dataclass

from farm.policies.base import Ask, Size
from farm.policies.parameters import parameter, spell


@dataclass(frozen=True, slots=True)
class Tss:
    """size of chunk i = max(first - i * step, last), with n = ceil(2N / (first + last)) chunks and
    step = floor((first - last) / (n - 1)).

    ``first`` is N / 2W (at least ``last``) unless given. i counts the chunks of open work, so reopened ones
    move the line on. Source: Tzen & Ni, "Trapezoid self-scheduling", IEEE Trans. Parallel and Distributed
    Systems 4 (1993), TSS(N/2W, 1).
    """

    first: int | None = parameter(None, low=1, unit="frames")
    last: int = parameter(1, low=1, unit="frames")

    def __post_init__(self) -> None:
        if self.first is not None and self.first < self.last:
            raise ValueError(f"first {self.first} is below last {self.last}")

    @property
    def name(self) -> str:
        return spell("tss", self)

    def size(self, ask: Ask) -> Size:
        first = self.first if self.first is not None else ask.total_frames // (2 * ask.workers)
        first = max(first, self.last)
        chunks = -(-2 * ask.total_frames // (first + self.last))
        step = (first - self.last) // (chunks - 1) if chunks > 1 else 0
        frames = max(self.last, first - ask.grants * step)
        return Size(frames, f"chunk {ask.grants + 1} on the line from {first} down to {self.last} by {step}")
