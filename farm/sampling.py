"""A sample of the film's parts, and what the whole will come to by what is rendered (``--sample``). Pure.

Theory of operation. The sample is whole parts: the first, the last, and others evenly between. What a part
that is not rendered will take is read off a straight line between its rendered neighbours, so that titles at
the ends weigh no more than their share. How sure that is follows from how much neighbours in the sample
differ, which counts a slow change of the film as doubt too: a range rather too wide than too narrow.

Rules of this file:
- every part that is credited counts, whether it was in the sample or not;
- bytes are those of the video's packets, without what a part file adds to them;
- a worker's speed is that of its own parts; where none is known its cap is taken, else the others' mean.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

import msgspec

from farm import events as ev
from farm.errors import UsageError
from farm.fleet import WorkerProfile
from farm.frames import PartGrid
from farm.parts import PACKET_BYTES

#: How a run is said to have ended that rendered its sample.
SAMPLED: Final = "sample rendered"
#: Fewer parts say nothing of how much parts differ.
PARTS_MIN: Final = 3
#: What a part file has beside its packets, about, where nobody looked.
PART_FILE_BYTES: Final = 400
#: Student's t for 19 in 20, by degrees of freedom from 1; beyond, the last one. Measured (docs/encoders.md),
#: about nine in ten films lie within: parts differ by more than a normal distribution has them.
_T: Final = (12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.1)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%\Z", re.ASCII)
_PARTS = re.compile(r"\d{1,9}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class SampleSize:
    """A share of the film's parts, or a number of them; one of the two is set."""

    share: float | None = None
    parts: int | None = None

    def of(self, parts: int) -> int:
        """How many of ``parts``: at least PARTS_MIN, or all where there are not so many."""
        wanted = self.parts if self.parts is not None else math.ceil((self.share or 0.0) * parts - 1e-9)
        return min(max(wanted, PARTS_MIN), parts)


def parse_sample(text: str) -> SampleSize:
    """``5%`` or ``20``. Raises UsageError."""
    share = _SHARE.match(text)
    if share and 0 < float(share[1]) <= 100:
        return SampleSize(share=float(share[1]) / 100)
    if _PARTS.match(text) and int(text) > 0:
        return SampleSize(parts=int(text))
    raise UsageError(f"--sample {text}: give a share of the film (5%) or a number of parts (20)")


def sample_parts(parts: int, size: SampleSize) -> tuple[int, ...]:
    """The numbers of the sample's parts of a film of ``parts``, ascending."""
    wanted = size.of(parts)
    return tuple((place * (parts - 1) + (wanted - 1) // 2) // (wanted - 1) if wanted > 1 else 0
                 for place in range(wanted))  # fmt: skip


class Range(NamedTuple):
    """About nine in ten lie between ``low`` and ``high``."""

    low: float
    likely: float
    high: float


class _Point(NamedTuple):
    """What a rendered part took for each of its frames."""

    middle: float  #: frame of the film
    frames: int
    value: float


def predict(
    grid: PartGrid,
    credits: Mapping[int, ev.PartCredited | ev.PartAdopted],
    fleet: Sequence[WorkerProfile] = (),
    fps_possible: float | None = None,
    file_bytes: int = PART_FILE_BYTES,
) -> ev.SamplePredicted | None:
    """What the whole will come to. None: nothing is rendered.

    ``fleet``: who will render it. ``fps_possible``: what they can give together at most, if known.
    ``file_bytes``: what a part file has beside its packets.
    """
    if not credits:
        return None
    sizes = {part: _video_bytes(credit, file_bytes) for part, credit in credits.items()}
    bytes_ = extrapolate(grid, {part: size / grid.size(part) for part, size in sizes.items()})
    speeds = _speeds(grid, credits)
    costs = {
        part: credit.render_seconds / grid.size(part) * speeds[credit.worker]
        for part, credit in credits.items()
        if isinstance(credit, ev.PartCredited) and credit.worker in speeds and credit.render_seconds > 0
    }
    together = _together(speeds, fleet, fps_possible)
    frames = sum(map(grid.size, credits))
    predicted = ev.SamplePredicted(
        parts=len(credits),
        frames=frames,
        video_bytes=sum(sizes.values()),
        likely_bytes=round(bytes_.likely),
        low_bytes=round(bytes_.low),
        high_bytes=round(bytes_.high),
    )
    if not costs or not together:
        return predicted
    low, likely, high = (work / together for work in extrapolate(grid, costs))
    done = sum(costs.get(part, 1.0) * grid.size(part) for part in credits) / together
    return msgspec.structs.replace(
        predicted,
        low_seconds=low,
        likely_seconds=likely,
        high_seconds=high,
        rest_seconds=max(likely - done, 0.0),
    )


def extrapolate(grid: PartGrid, values: Mapping[int, float]) -> Range:
    """What all frames take, by what a frame takes of the parts in ``values``, which aren't empty."""
    points = [
        _Point((grid.start(part) + grid.stop(part)) / 2, grid.size(part), value)
        for part, value in sorted(values.items())
    ]
    known = sum(point.frames * point.value for point in points)
    middles = [point.middle for point in points]
    missing = [part for part in range(grid.parts) if part not in values]
    rest = 0.0
    for part in missing:
        middle = (grid.start(part) + grid.stop(part)) / 2
        rest += grid.size(part) * _between(points, middles, middle)
    if not missing:
        return Range(known, known, known)
    if len(points) < 2:  # how much parts differ is not known
        return Range(known, known + rest, known + 2 * rest)
    steps = [(after.value - before.value) ** 2 for before, after in pairwise(points)]
    deviation = math.sqrt(sum(steps) / (2 * len(steps)) * (1 / len(points) + 1 / len(missing)))
    doubt = _T[min(len(steps), len(_T)) - 1] * deviation * sum(map(grid.size, missing))
    return Range(known + max(rest - doubt, 0.0), known + rest, known + rest + doubt)


def _between(points: Sequence[_Point], middles: Sequence[float], middle: float) -> float:
    """The value at a frame, on the straight line between its neighbours; beyond the ends, that of the end."""
    place = bisect.bisect_left(middles, middle)
    if place in (0, len(points)):
        return points[min(place, len(points) - 1)].value
    left, right = points[place - 1], points[place]
    share = (middle - left.middle) / (right.middle - left.middle)
    return left.value + share * (right.value - left.value)


def _video_bytes(credit: ev.PartCredited | ev.PartAdopted, file_bytes: int) -> int:
    lost = credit.lost_frames if isinstance(credit, ev.PartCredited) else 0
    return max(credit.size_bytes - file_bytes - PACKET_BYTES * (credit.frames - lost), 0)


def _speeds(grid: PartGrid, credits: Mapping[int, ev.PartCredited | ev.PartAdopted]) -> dict[str, float]:
    """Frames per second of each worker over the parts it is credited with."""
    frames: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for part, credit in credits.items():
        if isinstance(credit, ev.PartCredited) and credit.render_seconds > 0:
            frames[credit.worker] = frames.get(credit.worker, 0) + grid.size(part)
            seconds[credit.worker] = seconds.get(credit.worker, 0.0) + credit.render_seconds
    return {worker: frames[worker] / seconds[worker] for worker in frames}


def _together(
    speeds: Mapping[str, float], fleet: Sequence[WorkerProfile], fps_possible: float | None
) -> float:
    """Frames per second of the whole fleet; 0: not known."""
    if not speeds:
        return 0.0
    mean = fmean(speeds.values())
    known = (speeds.get(profile.name) or profile.fps_cap or mean for profile in fleet)
    total = sum(known) or sum(speeds.values())
    return total if fps_possible is None else min(total, fps_possible)
