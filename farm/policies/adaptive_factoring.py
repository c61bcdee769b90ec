"""``af``: adaptive factoring; sizes by the measured mean and variance of each worker's time a frame."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from farm.policies.base import Ask, Size
from farm.policies.measured import Measured
from farm.policies.parameters import parameter, spell


@dataclass(frozen=True, slots=True)
class Af:
    """size = (D + 2TR - sqrt(D² + 4DTR)) / 2m, with m the mean and v the variance of the worker's time a
    frame, D the sum over all workers of v / m, and 1/T the sum of 1 / m. Who is not measured yet counts as
    the mean of the others; a worker's first chunk is first * N / W, at most an even share of what is open.

    Without variance that is the worker's share of all that is open, so sizes decay like those of gss. Source:
    Banicescu & Liu, "Adaptive factoring", High Performance Computing Symposium 2000. ``first`` and ``min``
    are ours: the paper takes a first batch for granted, and a chunk costs nothing to fetch.
    """

    min: int = parameter(12, low=1, unit="frames")
    first: float = parameter(0.05, low=0, high=1)
    _measured: Measured = field(default_factory=Measured, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        return spell("af", self)

    def size(self, ask: Ask) -> Size:
        known = self._measured.at(ask)
        own = known.get(ask.worker)
        if own is None:
            even = ask.open_frames / ask.workers
            frames = math.ceil(min(even, self.first * ask.total_frames / ask.workers))
            return Size(max(frames, self.min), "a first share, until its speed is known")
        scale = ask.workers / len(known)
        spread = scale * math.fsum(s.variance / s.mean_seconds for s in known.values())
        together = 1 / (scale * math.fsum(1 / s.mean_seconds for s in known.values()))
        work = together * ask.open_frames
        seconds = (spread + 2 * work - math.sqrt(spread * spread + 4 * spread * work)) / 2
        frames = math.ceil(seconds / own.mean_seconds - 1e-9)
        why = f"{own.mean_seconds * 1000:.3g} ms a frame, all together {together * 1000:.3g} ms"
        bound = f", at least {self.min}" if frames < self.min else ""
        return Size(max(frames, self.min), f"its share by mean and variance: {why}{bound}")
