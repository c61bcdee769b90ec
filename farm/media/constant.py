"""A constant frame rate, where one is asked for: which source frame each frame of the output shows.

The rule: every source frame is moved to the nearest tick of the rate, counted from the first frame. Where
several fall on one tick the last of them is shown, where none does the one before is shown again. (The
nearest tick, not the one that is past: the times of many files are rounded to a millisecond.) The last frame
is shown for as long as the one before it.

The job's frames are the output's; the part grid lies over them. Sound and all else stay where they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import av
import msgspec

from farm.media.read import FrameReader, Numbered
from farm.source import ConstantRate, SourceIndex
from farm.timecode import retimed

_DENOMINATOR_MAX = (1 << 31) - 1
_START_STEPS = 1000  # a frame; where a start can't be told exactly beside the rate


def make_constant(index: SourceIndex, rate: Fraction) -> SourceIndex:
    """The index of the job that shows ``index`` at ``rate`` frames a second. Pure."""
    time_base = Fraction(*index.time_base)
    slots = [_nearest((pts - index.pts[0]) * time_base * rate) for pts in index.pts]
    gap = (index.pts[-1] - index.pts[-2]) * time_base * rate if index.frames > 1 else Fraction(1)
    frames = slots[-1] + max(1, _nearest(gap))
    picks: list[int] = []
    for number, slot in enumerate(slots):
        until = slots[number + 1] if number + 1 < len(slots) else frames
        picks += [number] * (until - slot)
    tick, start = _clock(index.pts[0] * time_base, rate)
    step = round(1 / rate / tick)
    keys = set(index.keys)
    entered = (k for k, pick in enumerate(picks) if pick in keys and (k == 0 or picks[k - 1] != pick))
    return msgspec.structs.replace(
        index,
        time_base=(tick.numerator, tick.denominator),
        frame_rate=(rate.numerator, rate.denominator),
        pts=tuple(start + step * k for k in range(frames)),
        keys=tuple(entered),
        input_frames=index.frames,
        timecode=retimed(index.timecode, index.frame_rate and Fraction(*index.frame_rate), rate),
        constant=ConstantRate(pts=index.pts, time_base=index.time_base, picks=tuple(picks)),
        warnings=(*index.warnings, *_words(index, picks, rate)),
    )


def _nearest(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def _clock(start: Fraction, rate: Fraction) -> tuple[Fraction, int]:
    """A tick that tells both the rate and the start exactly, if there is one, and the start in it."""
    frame = 1 / rate
    tick = frame / _START_STEPS
    common = Fraction(
        math.gcd(frame.numerator * start.denominator, start.numerator * frame.denominator),
        frame.denominator * start.denominator,
    )
    if common and common.denominator <= _DENOMINATOR_MAX:
        tick = common
    return tick, round(start / tick)


def _words(index: SourceIndex, picks: list[int], rate: Fraction) -> list[str]:
    shown = len(set(picks))
    left_out, repeated = index.frames - shown, len(picks) - shown
    if not left_out and not repeated:
        return []
    return [
        f"for a constant {float(rate):g} frames a second {left_out} of {index.frames} frames are left out "
        f"and {repeated} are shown again"
    ]


class ConstantReader:
    """Reads the frames of a job of constant rate from a reader of its source."""

    def __init__(
        self, index: SourceIndex, *, linear: bool = False, decoded: Callable[[], None] = lambda: None
    ) -> None:
        assert index.constant is not None
        self._index = index
        self._picks = index.constant.picks
        source = msgspec.structs.replace(
            index, pts=index.constant.pts, time_base=index.constant.time_base, constant=None
        )
        self._reader = FrameReader(source, linear=linear, decoded=decoded)
        self._held: Numbered | None = None  # the last source frame of the range before: it may be shown again
        self.lost: tuple[int, ...] = ()  #: frames of the last range that could not be decoded
        self.next_frame: av.VideoFrame | None = None  #: the frame at ``stop``; None: lost or not known

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]:
        """As ``FrameReader.read``. A frame that is shown again is the same object with a later pts."""
        picks, held = self._picks, self._held
        self.lost, self.next_frame = (), None
        first, last = picks[start], picks[stop - 1]
        k = start
        shown: Numbered | None = None
        if held is not None and held[0] == first:
            shown = held
            while k < stop and picks[k] == first:
                yield self._at(k, held[1])
                k += 1
            first += 1
        lost: list[int] = []
        if first <= last:
            for number, frame in self._reader.read(first, last + 1, again=again):
                while k < stop and picks[k] < number:
                    lost.append(k)
                    k += 1
                while k < stop and picks[k] == number:
                    yield self._at(k, frame)
                    k += 1
                shown = number, frame
            lost += range(k, stop)
        self.lost = tuple(lost)
        self._held = shown
        if stop < len(picks):
            if picks[stop] == last:
                self.next_frame = shown[1] if shown is not None and shown[0] == last else None
            elif picks[stop] == last + 1 and first <= last:
                self.next_frame = self._reader.next_frame

    def runs_on(self, start: int) -> bool:
        """As ``FrameReader.runs_on``."""
        first = self._picks[start]
        return self._reader.runs_on(first + 1 if self._held is not None and self._held[0] == first else first)

    def close(self) -> None:
        self._held = None
        self._reader.close()

    def _at(self, k: int, frame: av.VideoFrame) -> Numbered:
        frame.pts, frame.time_base = self._index.pts[k], Fraction(*self._index.time_base)
        return k, frame
