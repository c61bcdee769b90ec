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
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from farm.contents import Contents
from farm.errors import VerificationError
from farm.facts import VerifyFacts
from farm.media.contents import NoVideo, film_of, open_finished, read_contents
from farm.source import SourceIndex

_SAMPLES = 8
_PROGRESS_FRAMES = 256
#: The reading's share of the progress.
_READING_SHARE = {"all": 0.1, "sample": 0.7}
_Progress = Callable[[float], None]


class _Times(NamedTuple):
    """Of the frames of an output, in ticks of ``time_base``."""

    time_base: Fraction
    pts: Sequence[int]  #: ascending
    keys: Sequence[tuple[int, int]]  #: of each keyframe: where to seek for it, and its pts


def verify(
    output: Path,
    container: str | None,
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
    contents = read_output(output, container, lambda fraction: on_progress(share * fraction))
    return check_contents(
        output,
        container,
        contents,
        index,
        decode=decode,
        on_progress=lambda fraction: on_progress(share + (1 - share) * fraction),
        lost_pts=lost_pts,
        carried=carried,
    )


def read_output(
    output: Path, container: str | None, on_progress: _Progress = lambda fraction: None
) -> Contents:
    """What is in ``output``, as far as it can be read. Raises VerificationError if it can't be opened or has
    no video."""
    try:
        return read_contents(output, container, on_progress)
    except NoVideo as wrong:
        raise VerificationError(f"{output} is not right: {wrong}") from None
    except (av.error.FFmpegError, OSError) as error:
        raise VerificationError(f"{output} can't be read back: {error.strerror}") from error


def check_contents(
    output: Path,
    container: str | None,
    contents: Contents,
    index: SourceIndex | None,
    *,
    decode: Literal["sample", "all"] = "sample",
    on_progress: _Progress = lambda fraction: None,
    lost_pts: Sequence[int] = (),
    carried: Sequence[str] = (),
) -> VerifyFacts:
    """The rest of ``verify``, of an output that was read. Raises VerificationError."""
    times = _Times(contents.time_base, sorted(contents.pts), contents.keys)
    try:
        if contents.fault:
            _fail(contents.fault)
        _check_carried(contents, carried)
        if index is not None:
            _check_times(times, _expected(index, lost_pts), Fraction(*index.time_base))
        with open_finished(output, container) as file:
            stream = film_of(file)
            check = _decode_all if decode == "all" else _decode_sample
            decoded = check(file, stream, times, on_progress)
    except (_Wrong, NoVideo) as wrong:
        raise VerificationError(f"{output} is not right: {wrong}") from None
    except (av.error.FFmpegError, OSError) as error:
        raise VerificationError(f"{output} can't be read back: {error.strerror}") from error
    on_progress(1.0)
    return VerifyFacts(
        frames=contents.frames,
        packets_sha256=contents.video.sha256,
        duration_seconds=contents.duration_seconds,
        streams=contents.stream_words,
        decoded_frames=decoded,
        contents=contents,
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
            chosen = film_of(file) if stream is None else file.streams[stream]
            for packet in file.demux(chosen):
                digest.update(packet)
    except NoVideo as wrong:
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


def _check_times(times: _Times, expected: Sequence[int], time_base: Fraction) -> None:
    """Equal after a constant shift: exactly where the output's clock can tell the source's times, else to
    within one tick of it (both the first frame and the one compared are rounded)."""
    if len(times.pts) != len(expected):
        _fail(f"it has {len(times.pts)} frames and should have {len(expected)}")
    ratio = time_base / times.time_base
    offsets = [(pts - expected[0]) * ratio.numerator for pts in expected]
    exact = all(offset % ratio.denominator == 0 for offset in offsets)
    tolerance = 0 if exact else ratio.denominator
    for frame, (pts, offset) in enumerate(zip(times.pts, offsets, strict=True)):
        if abs((pts - times.pts[0]) * ratio.denominator - offset) > tolerance:
            found = _seconds(pts, times.time_base)
            right = _seconds(1, times.pts[0] * times.time_base + offset * times.time_base / ratio.denominator)
            _fail(f"frame {frame} is at {found} and should be at {right}")


def _check_carried(contents: Contents, carried: Sequence[str]) -> None:
    there = Counter(stream.kind for stream in contents.others if stream.packets)
    for kind, count in Counter(carried).items():
        if there[kind] < count:
            _fail(f"it has {there[kind]} {kind} streams with something in them and should have {count}")


def _decode_all(file: InputContainer, stream: VideoStream, times: _Times, on_decoded: _Progress) -> int:
    stream.thread_type = "AUTO"
    file.seek(times.keys[0][0], stream=stream)
    count = 0
    for frame in _decode(file, stream, times.time_base):
        if count >= len(times.pts):
            _fail(f"it decodes to more than its {len(times.pts)} frames")
        if frame.pts != times.pts[count]:
            _fail(f"frame {count} at {_seconds(times.pts[count], times.time_base)} does not decode")
        count += 1
        if count % _PROGRESS_FRAMES == 0:
            on_decoded(count / len(times.pts))
    if count != len(times.pts):
        _fail(f"it decodes to {count} frames and has {len(times.pts)}")
    return count


def _decode_sample(file: InputContainer, stream: VideoStream, times: _Times, on_decoded: _Progress) -> int:
    """The first picture of some keyframes, and everything from the last keyframe on."""
    stream.thread_count = 1
    step = -(-len(times.keys) // _SAMPLES)
    chosen = times.keys[:-1:step]
    for number, key in enumerate(chosen):
        frame = next(_decode_from(file, stream, times, key), None)
        if frame is None or frame.pts != key[1]:
            _fail(f"the keyframe at {_seconds(key[1], times.time_base)} does not decode")
        on_decoded(number / (len(chosen) + 1))
    last_key = times.keys[-1]
    first = bisect_left(times.pts, last_key[1])
    decoded = [frame.pts for frame in _decode_from(file, stream, times, last_key)]
    if decoded != list(times.pts[first:]):
        missing = sorted(set(times.pts[first:]) - set(decoded))
        at = f" at {_seconds(missing[0], times.time_base)}" if missing else ""
        _fail(f"the last {len(times.pts) - first} frames do not decode as they should{at}")
    return len(chosen) + len(decoded)


def _decode_from(
    file: InputContainer, stream: VideoStream, times: _Times, key: tuple[int, int]
) -> Iterator[VideoFrame]:
    """The frames from a keyframe on. Some demuxers seek by pts and some by dts: land early, then skip."""
    file.seek(key[0], stream=stream)
    for frame in _decode(file, stream, times.time_base):
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


def _seconds(ticks: int, time_base: Fraction) -> str:
    return f"{float(ticks * time_base):.3f} s"
