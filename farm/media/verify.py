"""Checks a finished output by reading it back, as a player would, and never by the word of what wrote it.

What is checked: the count of frames, each frame's time against the source's, decoding times, the first
keyframe, that the other streams are there, and that pictures decode: a sample of them, or all.
The first difference that is found is said in words, with the frame and the times.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import av
from av.container import InputContainer
from av.stream import Disposition, Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from farm.errors import VerificationError
from farm.facts import VerifyFacts
from farm.media.streams import codec_name
from farm.source import SourceIndex

_SAMPLES = 8
_PROGRESS_PACKETS = 256
#: The reading's share of the progress.
_READING_SHARE = {"all": 0.1, "sample": 0.7}
_Progress = Callable[[float], None]


class _Reading(NamedTuple):
    """The packets of an output; times in ticks of ``time_base``."""

    time_base: Fraction
    pts: Sequence[int]  #: ascending
    keys: Sequence[tuple[int, int]]  #: of each keyframe: where to seek for it, and its pts
    last_duration: int
    sha256: str
    packets: Counter[int]  #: by stream


def verify(
    output: Path,
    container: str,
    index: SourceIndex | None,
    *,
    decode: Literal["sample", "all"] = "sample",
    on_progress: _Progress = lambda fraction: None,
    lost_pts: Sequence[int] = (),
    carried: Sequence[str] = (),
) -> VerifyFacts:
    """Read ``output`` back and compare it with the source's index; without one, only with itself.

    ``container`` is the muxer's name; ``lost_pts`` and ``carried`` (kinds of streams) are what the stitch
    said it had to leave out and took along. ``on_progress`` hears fractions from 0 to 1 that never fall.

    Raises VerificationError at the first thing that is wrong.
    """
    share = _READING_SHARE[decode]
    pts = _expected(index, lost_pts) if index else ()

    def on_read(packets: int) -> None:
        if pts:
            on_progress(share * min(1.0, packets / len(pts)))

    def on_decoded(fraction: float) -> None:
        on_progress(share + (1 - share) * fraction)

    try:
        with av.open(f"file:{output.absolute()}", format=container, metadata_errors="replace") as file:
            stream = _video_stream(file)
            reading = _read(file, stream, on_read)
            streams = tuple(_words(entry, reading) for entry in file.streams)
            _check_carried(file, reading, carried)
            if index is not None:
                _check_times(reading, pts, Fraction(*index.time_base))
            check = _decode_all if decode == "all" else _decode_sample
            decoded = check(file, stream, reading, on_decoded)
    except _Wrong as wrong:
        raise VerificationError(f"{output} is not right: {wrong}") from None
    except (av.error.FFmpegError, OSError) as error:
        raise VerificationError(f"{output} can't be read back: {error.strerror}") from error
    on_progress(1.0)
    span = (reading.pts[-1] - reading.pts[0] + reading.last_duration) * reading.time_base
    return VerifyFacts(
        frames=len(reading.pts),
        packets_sha256=reading.sha256,
        duration_seconds=float(span),
        streams=streams,
        decoded_frames=decoded,
    )


def packets_sha256(path: Path, stream: int | None = None) -> str:
    """sha256 over the data of all packets of a video stream, end to end in decoding order, as demuxed (what
    ``ffmpeg -i FILE -map 0:v:0 -c copy -f hash -hash sha256 -`` prints). By default of the first video stream
    that isn't a cover picture.

    Raises VerificationError if there is none or the file can't be read.
    """
    digest = hashlib.sha256()
    try:
        with av.open(f"file:{path.absolute()}", metadata_errors="replace") as file:
            chosen = _video_stream(file) if stream is None else file.streams[stream]
            for packet in file.demux(chosen):
                digest.update(packet)
    except _Wrong as wrong:
        raise VerificationError(f"{path} has no packets to compare: {wrong}") from None
    except (av.error.FFmpegError, OSError) as error:
        raise VerificationError(f"{path} can't be read: {error.strerror}") from error
    return digest.hexdigest()


class _Wrong(Exception):
    """What is wrong, in words that follow the file's name."""


def _fail(words: str) -> NoReturn:
    raise _Wrong(words)


def _expected(index: SourceIndex, lost_pts: Sequence[int]) -> Sequence[int]:
    lost = set(lost_pts)
    return [pts for pts in index.pts if pts not in lost] if lost else index.pts


def _video_stream(file: InputContainer) -> VideoStream:
    for stream in file.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            return stream
    _fail("it has no video stream")


def _read(file: InputContainer, stream: VideoStream, on_read: Callable[[int], None]) -> _Reading:
    digest = hashlib.sha256()
    packets: Counter[int] = Counter()
    pts: list[int] = []
    keys: list[tuple[int, int]] = []
    last_dts: int | None = None
    last = (-(1 << 63), 0)
    for packet in file.demux():
        if not packet.size:
            continue
        packets[packet.stream.index] += 1
        if packet.stream.index != stream.index:
            continue
        number = len(pts)
        if packet.pts is None:
            _fail(f"video packet {number} has no time")
        if packet.is_discard:
            _fail(f"the frame at {_seconds(packet.pts, packet.time_base)} would not be shown")
        if number == 0 and not packet.is_keyframe:
            _fail("it doesn't begin with a keyframe")
        if packet.dts is not None:
            if last_dts is not None and packet.dts <= last_dts:
                _fail(f"the decoding time of video packet {number} doesn't come after the one before")
            last_dts = packet.dts
        if packet.is_keyframe:
            keys.append((packet.pts if packet.dts is None else packet.dts, packet.pts))
        digest.update(packet)
        pts.append(packet.pts)
        last = max(last, (packet.pts, packet.duration or 0))
        if number % _PROGRESS_PACKETS == 0:
            on_read(number)
    if not pts:
        _fail("its video has no frames")
    if stream.frames and stream.frames != len(pts):
        _fail(f"its header promises {stream.frames} frames and {len(pts)} are there")
    pts.sort()
    time_base = stream.time_base or Fraction(1)
    for frame, (before, after) in enumerate(pairwise(pts)):
        if before == after:
            _fail(f"frames {frame} and {frame + 1} are both at {_seconds(before, time_base)}")
    return _Reading(time_base, pts, keys, last[1], digest.hexdigest(), packets)


def _check_times(reading: _Reading, expected: Sequence[int], time_base: Fraction) -> None:
    """Equal after a constant shift: exactly where the output's clock can tell the source's times, else to
    within one tick of it (both the first frame and the one compared are rounded)."""
    if len(reading.pts) != len(expected):
        _fail(f"it has {len(reading.pts)} frames and should have {len(expected)}")
    ratio = time_base / reading.time_base
    offsets = [(pts - expected[0]) * ratio.numerator for pts in expected]
    exact = all(offset % ratio.denominator == 0 for offset in offsets)
    tolerance = 0 if exact else ratio.denominator
    for frame, (pts, offset) in enumerate(zip(reading.pts, offsets, strict=True)):
        if abs((pts - reading.pts[0]) * ratio.denominator - offset) > tolerance:
            found = _seconds(pts, reading.time_base)
            right = _seconds(
                1, reading.pts[0] * reading.time_base + offset * reading.time_base / ratio.denominator
            )
            _fail(f"frame {frame} is at {found} and should be at {right}")


def _check_carried(file: InputContainer, reading: _Reading, carried: Sequence[str]) -> None:
    there: Counter[str] = Counter(stream.type for stream in file.streams if reading.packets[stream.index])
    for kind, count in Counter(carried).items():
        if there[kind] < count:
            _fail(f"it has {there[kind]} {kind} streams with something in them and should have {count}")


def _decode_all(file: InputContainer, stream: VideoStream, reading: _Reading, on_decoded: _Progress) -> int:
    stream.thread_type = "AUTO"
    file.seek(reading.keys[0][0], stream=stream)
    count = 0
    for frame in _decode(file, stream, reading.time_base):
        if count >= len(reading.pts):
            _fail(f"it decodes to more than its {len(reading.pts)} frames")
        if frame.pts != reading.pts[count]:
            _fail(f"frame {count} at {_seconds(reading.pts[count], reading.time_base)} does not decode")
        count += 1
        if count % _PROGRESS_PACKETS == 0:
            on_decoded(count / len(reading.pts))
    if count != len(reading.pts):
        _fail(f"it decodes to {count} frames and has {len(reading.pts)}")
    return count


def _decode_sample(
    file: InputContainer, stream: VideoStream, reading: _Reading, on_decoded: _Progress
) -> int:
    """The first picture of some keyframes, and everything from the last keyframe on."""
    stream.thread_count = 1
    step = -(-len(reading.keys) // _SAMPLES)
    chosen = reading.keys[:-1:step]
    for number, key in enumerate(chosen):
        frame = next(_decode_from(file, stream, reading, key), None)
        if frame is None or frame.pts != key[1]:
            _fail(f"the keyframe at {_seconds(key[1], reading.time_base)} does not decode")
        on_decoded(number / (len(chosen) + 1))
    last_key = reading.keys[-1]
    first = bisect_left(reading.pts, last_key[1])
    decoded = [frame.pts for frame in _decode_from(file, stream, reading, last_key)]
    if decoded != list(reading.pts[first:]):
        missing = sorted(set(reading.pts[first:]) - set(decoded))
        at = f" at {_seconds(missing[0], reading.time_base)}" if missing else ""
        _fail(f"the last {len(reading.pts) - first} frames do not decode as they should{at}")
    return len(chosen) + len(decoded)


def _decode_from(
    file: InputContainer, stream: VideoStream, reading: _Reading, key: tuple[int, int]
) -> Iterator[VideoFrame]:
    """The frames from a keyframe on. Some demuxers seek by pts and some by dts: land early, then skip."""
    file.seek(key[0], stream=stream)
    for frame in _decode(file, stream, reading.time_base):
        if frame.pts is not None and frame.pts >= key[1]:
            yield frame


def _decode(file: InputContainer, stream: VideoStream, time_base: Fraction) -> Iterator[VideoFrame]:
    for packet in file.demux(stream):
        try:
            frames = packet.decode()
        except av.error.FFmpegError as error:
            where = "the end" if packet.pts is None else _seconds(packet.pts, time_base)
            _fail(f"the video can't be decoded at {where}: {error.strerror}")
        for frame in frames:
            if frame.is_corrupt:
                _fail(f"the frame at {_seconds(frame.pts or 0, time_base)} is damaged")
            yield frame


def _words(stream: Stream, reading: _Reading) -> str:
    kind = "cover" if stream.disposition & Disposition.attached_pic else stream.type
    details = ", ".join(
        part for part in (codec_name(stream), (stream.language or "").removeprefix("und")) if part
    )
    return f"{kind} #{stream.index} ({details}): {reading.packets[stream.index]} packets"


def _seconds(ticks: int, time_base: Fraction) -> str:
    return f"{float(ticks * time_base):.3f} s"
