"""The file an output is written into: its container, with what players expect of each, and its video stream.

Rules of this file:
- mp4 and mov: a clock that holds every time exactly, the index before the pictures (faststart), ``hvc1`` for
  HEVC (Apple plays no other), no edit but the one that gives the first frame its time;
- ts: a clock of 90 kHz, 0.7 s for players to fill their buffers (as ffmpeg gives them), headers before every
  keyframe;
- colours, shape of the pixels, rotation, fields and HDR10 data go wherever the container has a place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import av
from av.container import OutputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from farm.media.encode import configure_encoder
from farm.media.hdrheader import announce_hdr
from farm.settings import VideoSettings
from farm.source import SourceIndex

#: Containers whose tracks begin where an edit list says.
EDITED_CONTAINERS = frozenset({"mp4", "mov"})
#: A finer clock than this is made coarser where that loses nothing: durations in mp4 have 32 bits.
_FINE_TICKS_PER_SECOND = 1_000_000
_TIMESCALE_MIN, _TIMESCALE_MAX = 10_000, (1 << 31) - 1
_TS_DELAY_MICROSECONDS = 700_000


def muxer_options(index: SourceIndex, container: str) -> dict[str, str]:
    """What is asked of the container's muxer. The track's clock in mp4 and mov is also that of its start,
    which would else be rounded to a millisecond."""
    if container == "mpegts":
        return {"max_delay": str(_TS_DELAY_MICROSECONDS)}
    if container not in EDITED_CONTAINERS:
        return {}
    tick = Fraction(*index.time_base)
    if 1 / tick > _FINE_TICKS_PER_SECOND:
        tick *= math.gcd(*index.pts) or 1
    timescale = tick.denominator
    while timescale < _TIMESCALE_MIN:
        timescale *= 2
    timescale = min(timescale, _TIMESCALE_MAX)
    return {
        "video_track_timescale": str(timescale),
        "movie_timescale": str(timescale),
        "movflags": "+faststart",
    }


@contextmanager
def open_output(path: Path, container: str, options: dict[str, str]) -> Iterator[OutputContainer]:
    """A file that is finished when the block ends, and only closed when it fails."""
    output = av.open(f"file:{path.absolute()}", "w", format=container, container_options=options)
    try:
        yield output
    except BaseException:
        # A full disk is reported again on closing, which must not hide the first report.
        with suppress(av.error.FFmpegError, OSError):
            output.close()
        raise
    output.close()


def add_video(
    muxer: OutputContainer,
    index: SourceIndex,
    settings: VideoSettings,
    tags: Mapping[str, str] | None = None,
    disposition: int = int(Disposition.default),
) -> VideoStream:
    """The stream of the video that was rendered. Its encoder is set up as for a part and encodes nothing."""
    rate = Fraction(*index.frame_rate) if index.frame_rate else None
    stream = muxer.add_stream(settings.encoder, rate=rate)
    assert isinstance(stream, VideoStream)
    announce_hdr(stream, index)
    configure_encoder(stream.codec_context, index, settings)
    if muxer.format.name in EDITED_CONTAINERS and stream.codec.canonical_name == "hevc":
        stream.codec_context.codec_tag = "hvc1"  # parameter sets in the header only
    stream.time_base = Fraction(*index.time_base)
    stream.metadata.update(tags or {})
    stream.disposition = Disposition(disposition)
    if index.display_matrix:
        stream.set_display_matrix(index.display_matrix)
    return stream


def header_in_band(container: str, stream: VideoStream, extradata: bytes) -> bytes:
    """What has to come before every keyframe so that a player can begin there: a transport stream has no
    header, and FFmpeg's muxer repeats those of H.264 and HEVC only."""
    is_bare = container == "mpegts" and stream.codec.canonical_name == "mpeg4"
    return extradata if is_bare else b""
