"""What is known of each worker's speed, learnt from its reports. Part of the relay's books: folded from
events, so a recovered relay knows what the one before it knew.

Formulas (docs/scheduling.md, ``fair``): at each report of ``df`` frames in ``ds`` seconds of rendering,
F = F·exp(-ds/TAU) + df, S = S·exp(-ds/TAU) + ds, rate = F/S (0.5/S while F is 0). At the first report of a
claim that rendered something, the overhead is the time since the grant that was not spent rendering, averaged
with what was known.

For adaptive factoring also the mean and the variance of a frame's time over reports, weighted by frames.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

#: Rendering seconds after which a report counts 1/e.
TAU_SECONDS = 20.0
#: The same for what a worker is at just now, which may be a hard scene.
RECENT_SECONDS = 4.0


@dataclass(slots=True)
class Speed:
    """One worker's. ``rate`` None: nothing rendered yet."""

    frames: float = 0.0  #: F, decayed
    seconds: float = 0.0  #: S, decayed
    recent_frames: float = 0.0  #: the same, decayed sooner
    recent_seconds: float = 0.0
    overhead_seconds: float | None = None
    reports: int = 0
    mean_seconds: float = 0.0  #: of a frame, over all reports, weighted by frames
    weight: float = 0.0
    square: float = 0.0

    @property
    def rate(self) -> float | None:
        """Frames per second."""
        if self.seconds <= 0:
            return None
        return self.frames / self.seconds if self.frames > 0 else 0.5 / self.seconds

    @property
    def recent_rate(self) -> float | None:
        """Frames per second just now: on what it renders now."""
        if self.recent_seconds <= 0:
            return None
        return max(self.recent_frames, 0.5) / self.recent_seconds

    @property
    def variance(self) -> float:
        """Of a frame's time, seconds squared."""
        return self.square / self.weight if self.weight > 0 else 0.0

    def report(self, frames: float, seconds: float) -> None:
        """``frames`` more were rendered in ``seconds`` more."""
        if seconds <= 0 or frames < 0:
            return
        fade = math.exp(-seconds / TAU_SECONDS)
        self.frames = self.frames * fade + frames
        self.seconds = self.seconds * fade + seconds
        fade = math.exp(-seconds / RECENT_SECONDS)
        self.recent_frames = self.recent_frames * fade + frames
        self.recent_seconds = self.recent_seconds * fade + seconds
        self.reports += 1
        if frames > 0:
            each = seconds / frames
            self.weight += frames
            delta = each - self.mean_seconds
            self.mean_seconds += delta * frames / self.weight
            self.square += frames * delta * (each - self.mean_seconds)

    def first_render(self, overhead_seconds: float) -> None:
        """A claim's first frames came ``overhead_seconds`` of not rendering after its grant."""
        known = self.overhead_seconds
        found = max(0.0, overhead_seconds)
        self.overhead_seconds = found if known is None else (found + known) / 2


@dataclass(slots=True)
class Speeds:
    """All workers' speeds, by name; kept when a worker leaves, since it may come back."""

    by_worker: dict[str, Speed] = field(default_factory=dict)

    def of(self, worker: str) -> Speed:
        """What is known of ``worker``; an empty record before its first report."""
        return self.by_worker.get(worker) or Speed()

    def learn(self, worker: str) -> Speed:
        """The record of ``worker``, to be told reports."""
        speed = self.by_worker.get(worker)
        if speed is None:
            speed = self.by_worker[worker] = Speed()
        return speed

    def known(self, worker: str) -> bool:
        speed = self.by_worker.get(worker)
        return speed is not None and speed.rate is not None

    def mean_rate(self) -> float | None:
        """Of the workers whose rate is known; None: of none."""
        rates = [rate for speed in self.by_worker.values() if (rate := speed.rate) is not None]
        return math.fsum(rates) / len(rates) if rates else None

    def mean_overhead_seconds(self) -> float:
        """Per claim, of the workers whose overhead is known; 0 if there are none."""
        known = [s.overhead_seconds for s in self.by_worker.values() if s.overhead_seconds is not None]
        return math.fsum(known) / len(known) if known else 0.0
