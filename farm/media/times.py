"""Times of pictures, where a container has them wrong or not at all, and frame rates."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from av.video.stream import VideoStream

from farm.source import Rational

_FRAME_RATE_MAX = 1000  # above it, what FFmpeg reports is a clock rate
_REORDER_FRAMES = 32  # no codec holds back more pictures


def usable_times(
    pts: list[int | None], frames_per_tick: Fraction, *, raw: bool = False
) -> tuple[tuple[int, ...], str]:
    """Strictly increasing times for pictures in display order, made from what the decoder said of them, and
    a sentence if they are not simply what it said.

    Times out of order by a few frames only are dts that were passed off as pts: sorted, they are right.
    Otherwise pictures are spaced evenly, ``frames_per_tick`` a tick of the time base. ``raw``: of a stream
    without a container, whose *times* may be the numbers of the pictures.
    """
    known = [time for time in pts if time is not None]
    if len(known) == len(pts) and not (raw and frames_per_tick < 1 and _only_numbered(known)):
        ordered = sorted(known)
        if all(a < b for a, b in pairwise(ordered)):
            place = {time: number for number, time in enumerate(ordered)}
            if all(abs(place[time] - number) <= _REORDER_FRAMES for number, time in enumerate(known)):
                return tuple(ordered), ""
        elif ordered == known and ordered[0] < ordered[-1]:
            return _spread(ordered), "pictures that share a time are moved apart by the smallest step"
    start = known[0] if known else 0
    evenly = (start + round(number / frames_per_tick) for number in range(len(pts)))
    return _spread(list(evenly)), "its pictures have no usable times and are spaced evenly"


def _only_numbered(times: list[int]) -> bool:
    return len(times) > 1 and sorted(times) == list(range(min(times), min(times) + len(times)))


def _spread(times: list[int]) -> tuple[int, ...]:
    spread: list[int] = []
    for time in times:
        spread.append(time if not spread else max(time, spread[-1] + 1))
    return tuple(spread)


def nominal_rate(video: VideoStream) -> Fraction | None:
    """What the container says, frames per second; None if it says nothing credible."""
    rates = (rate for rate in (video.average_rate, video.guessed_rate) if rate)
    return next((rate for rate in rates if 0 < rate <= _FRAME_RATE_MAX), None)


def measured_rate(nominal: Fraction | None, pts: tuple[int, ...], time_base: Fraction) -> Rational | None:
    """The header's rate, unless the frames' own times say something else altogether."""
    span = (pts[-1] - pts[0]) * time_base
    if span <= 0:
        return rational(nominal) if nominal else None
    measured = (len(pts) - 1) / span
    if nominal is None or not nominal / 2 <= measured <= nominal * 2:
        return rational(measured.limit_denominator(1_000_000))
    return rational(nominal)


def rational(value: Fraction) -> Rational:
    return value.numerator, value.denominator
