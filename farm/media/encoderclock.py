"""The clock an encoder is given its frames by.

As a rule it is the source's, so that a frame's time goes in and comes out unchanged. Some encoders know
certain frame rates only (MPEG-1 and MPEG-2), or no clock as fine as most containers' (MPEG-4 part 2): these
are given frames numbered from the start of the part on, one a tick of the nearest rate they know, and the
times are put back afterwards. Nothing is lost by that: players go by the container's times.
"""

from __future__ import annotations

from fractions import Fraction

import av

from farm.settings import VideoSettings
from farm.source import SourceIndex

#: MPEG-4 part 2 counts a second in at most so many ticks.
_MPEG4_TICKS_MAX = 65_535
#: The lowest rate of the MPEG-1 standard; the encoder lists lower ones and refuses them.
_MPEG1_RATE_MIN = Fraction(24_000, 1001)
_RATE_DEFAULT = Fraction(25)


class EncoderClock:
    """Of the encoder of one job."""

    def __init__(self, index: SourceIndex, settings: VideoSettings) -> None:
        self._pts = index.pts
        rate = _numbered_rate(index, settings)
        self.is_numbered = rate is not None
        self.time_base = Fraction(*index.time_base) if rate is None else 1 / rate  #: seconds a tick

    def stamp(self, frame: av.VideoFrame, number: int, start: int) -> None:
        """Give frame ``number`` of the job, in a part that begins with frame ``start``, its time."""
        frame.pts = number - start if self.is_numbered else self._pts[number]
        frame.time_base = self.time_base

    def source_pts(self, pts: int, start: int) -> int:
        """The time in the source of what came out of the encoder with ``pts``. Raises IndexError for one that
        never went in."""
        return self._pts[start + pts] if self.is_numbered else pts


def _numbered_rate(index: SourceIndex, settings: VideoSettings) -> Fraction | None:
    """Frames per second, for an encoder that can't take the source's clock."""
    codec = av.Codec(settings.encoder, "w")
    rate = Fraction(*index.frame_rate) if index.frame_rate and index.frame_rate[0] > 0 else _RATE_DEFAULT
    known = [Fraction(each.num, each.den) for each in codec.frame_rates or () if each.num]
    if codec.name == "mpeg1video":
        known = [each for each in known if each >= _MPEG1_RATE_MIN]
    if known:
        return min(known, key=lambda each: abs(each - rate))
    if codec.name == "mpeg4" and index.time_base[1] > _MPEG4_TICKS_MAX:
        return (1 / rate).limit_denominator(_MPEG4_TICKS_MAX) ** -1
    return None
