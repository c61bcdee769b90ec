"""Which frames of the input a job takes: parsing what is typed, and the arithmetic. Exact, in integers and
rationals; a time is counted from when the first frame is shown.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

import msgspec

from farm.errors import UsageError
from farm.settings import Moment, TrimSettings
from farm.source import SourceIndex

_FRAME = re.compile(r"(\d{1,12})f\Z", re.ASCII)
_CLOCK = re.compile(r"(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9}(?:\.\d{1,12})?)s?\Z", re.ASCII)
_SPAN = re.compile(r"(\d{0,12}):(\d{0,12})\Z", re.ASCII)


def parse_moment(text: str, option: str) -> Moment:
    """``12.5``, ``90s``, ``1:30``, ``00:01:30.500`` or ``120f``. Raises UsageError."""
    if found := _FRAME.match(text):
        return Moment(frame=int(found[1]))
    found = _CLOCK.match(text)
    if found is None or (found[2] is not None and Fraction(found[3]) >= 60):
        raise UsageError(f"{option} {text}: give seconds (12.5), a time (00:01:30.500) or a frame (120f)")
    minutes = int(found[1] or 0) * 60 + int(found[2] or 0)
    seconds = minutes * 60 + Fraction(found[3])
    return Moment(seconds=(seconds.numerator, seconds.denominator))


def parse_trim(start: str | None, stop: str | None, frames: str | None, every: int) -> TrimSettings:
    """``--start``, ``--stop``, ``--frames A:B`` and ``--every N``. Raises UsageError."""
    if frames is not None:
        if start is not None or stop is not None:
            raise UsageError("--frames and --start or --stop exclude each other")
        found = _SPAN.match(frames)
        if found is None or frames == ":":
            raise UsageError(f"--frames {frames}: give A:B, from frame A to before frame B, counted from 0")
        begin = Moment(frame=int(found[1])) if found[1] else None
        end = Moment(frame=int(found[2])) if found[2] else None
    else:
        begin = None if start is None else parse_moment(start, "--start")
        end = None if stop is None else parse_moment(stop, "--stop")
    trim = TrimSettings(start=begin, stop=end, every=every)
    if begin is not None and end is not None and _surely_empty(begin, end):
        raise UsageError("the start of what is to be rendered must come before its stop")
    return trim


def _surely_empty(start: Moment, stop: Moment) -> bool:
    if start.frame is not None and stop.frame is not None:
        return start.frame >= stop.frame
    if start.seconds is not None and stop.seconds is not None:
        return Fraction(*start.seconds) >= Fraction(*stop.seconds)
    return False


def kept_frames(pts: Sequence[int], time_base: Fraction, trim: TrimSettings) -> range:
    """The frames that are taken, of a film whose frames are shown at ``pts``. Raises UsageError if there are
    none."""
    start = 0 if trim.start is None else _place(pts, time_base, trim.start)
    stop = len(pts) if trim.stop is None else _place(pts, time_base, trim.stop)
    kept = range(start, stop, trim.every)
    if not kept:
        seconds = float((pts[-1] - pts[0]) * time_base)
        raise UsageError(
            f"not one frame lies between the start and the stop: the input has {len(pts)} frames, the last "
            f"one at {seconds:.3f} s"
        )
    return kept


def _place(pts: Sequence[int], time_base: Fraction, moment: Moment) -> int:
    """The first frame at that moment or later."""
    if moment.frame is not None:
        return min(moment.frame, len(pts))
    assert moment.seconds is not None
    ticks = Fraction(*moment.seconds) / time_base
    return bisect_left(pts, pts[0] + ticks)


def trim_index(index: SourceIndex, trim: TrimSettings) -> SourceIndex:
    """The index of a video with the frames that are taken alone. Raises UsageError if there are none."""
    if trim == TrimSettings():
        return index
    kept = kept_frames(index.pts, Fraction(*index.time_base), trim)
    cut = None
    if trim.start is not None or trim.stop is not None:
        stop = index.frames if trim.stop is None else _place(index.pts, Fraction(*index.time_base), trim.stop)
        cut = index.pts[kept[0]], index.pts[stop] if stop < index.frames else None
    rate = index.frame_rate and Fraction(*index.frame_rate) / trim.every
    return msgspec.structs.replace(
        only(index, kept),
        cut=cut,
        frame_rate=rate and (rate.numerator, rate.denominator),
        warnings=(*index.warnings, *_beyond(trim, index.frames)),
    )


def only(index: SourceIndex, kept: Sequence[int]) -> SourceIndex:
    """An index with those of its frames alone, at the times they have."""
    keys = set(index.keys)
    taken = msgspec.structs.replace(
        index,
        pts=tuple(index.pts[frame] for frame in kept),
        keys=tuple(number for number, frame in enumerate(kept) if frame in keys),
        numbers=tuple(index.numbers[frame] for frame in kept) if index.numbers else (),
        origin=index.first_shown,
        input_frames=index.input_frames or index.frames,
    )
    if index.filtered is not None:  # which says what goes in; these are frames that come out
        return taken
    if index.constant is not None:  # whose reader is told by the picks which frames of the source are wanted
        picks = tuple(index.constant.picks[frame] for frame in kept)
        return msgspec.structs.replace(taken, constant=msgspec.structs.replace(index.constant, picks=picks))
    return msgspec.structs.replace(
        taken,
        images=tuple(index.images[frame] for frame in kept) if index.images else (),
        kept=tuple(index.kept[frame] for frame in kept) if index.kept else tuple(kept),
    )


def _beyond(trim: TrimSettings, frames: int) -> list[str]:
    stop = trim.stop.frame if trim.stop is not None else None
    if stop is None or stop <= frames:
        return []
    return [f"it has {frames} frames and is rendered to its end, not to frame {stop}"]
