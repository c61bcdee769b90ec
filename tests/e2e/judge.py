"""An outside judge of an output: what one pass of the library over each file gives, and where they differ.

Rule: nothing of ours is used here. A file is opened, decoded from its first packet to its last by one thread,
and what can't be decoded is passed over; that is the truth the farm is held to.
"""

from __future__ import annotations

import io
import re
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
from av.stream import Discard, Disposition
from av.video.reformatter import Interpolation

_EXACT = Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.BITEXACT
_NOT_VIDEO = Disposition.attached_pic | Disposition.timed_thumbnails
_ZERO = Fraction(0)


@dataclass(frozen=True)
class Shown:
    """A decoded picture: when it is shown, in seconds (None: the file doesn't say), and what it is."""

    time: Fraction | None
    size: tuple[int, int]
    pix_fmt: str
    crc: int
    damaged: bool = False  #: says the decoder


def one_pass(path: Path, *, stream: int | None = None, pix_fmt: str | None = None) -> list[Shown]:
    """Every picture of a file's first video stream that has any, or of ``stream``. ``pix_fmt``: hash the
    pictures as that, where they are something else."""
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        videos = [s.index for s in container.streams.video if not s.disposition & _NOT_VIDEO]
    for number in videos if stream is None else [stream]:
        found = _decode_all(path, number, pix_fmt)
        if found:
            return found
    return []


def images(folder: Path) -> list[Shown]:
    """Every image of a folder, decoded by itself, in the order of the numbers in their names."""
    numbered = {int(re.findall(r"\d+", path.stem)[-1]): path for path in folder.iterdir()}
    shown = []
    for number in sorted(numbered):
        with av.open(io.BytesIO(numbered[number].read_bytes()), metadata_errors="replace") as container:
            frame = next(container.decode(video=0))
            shown.append(replace(_shown(frame, _ZERO, None), time=None))
    return shown


def _decode_all(path: Path, number: int, pix_fmt: str | None) -> list[Shown]:
    shown = []
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        video = container.streams[number]
        video.thread_count = 1
        for other in container.streams:
            if other.index != number:
                other.discard = Discard.all
        packets = container.demux(video)
        while True:
            try:
                packet = next(packets, None)
            except av.error.FFmpegError:
                packet = None  # the demuxer gives up; the decoder still holds pictures
            try:
                frames = video.codec_context.decode(packet if packet is not None and packet.size else None)
            except av.error.FFmpegError:
                frames = []
            shown += [_shown(frame, video.time_base, pix_fmt) for frame in frames]
            if packet is None or not packet.size:
                return shown


def _shown(frame: av.VideoFrame, time_base: Fraction, pix_fmt: str | None) -> Shown:
    name, damaged = frame.format.name, frame.is_corrupt
    time = None if frame.pts is None else frame.pts * (frame.time_base or time_base)
    if pix_fmt is not None and name.replace("yuvj", "yuv") != pix_fmt.replace("yuvj", "yuv"):
        frame = frame.reformat(format=pix_fmt, interpolation=_EXACT, threads=1)
    return Shown(time, (frame.width, frame.height), name, crc(frame), damaged)


def crc(frame: av.VideoFrame) -> int:
    """CRC-32 over the visible bytes of a picture, plane by plane."""
    total = 0
    for number, plane in enumerate(frame.planes):
        parts = [part for part in frame.format.components if part.plane == number]
        if len(frame.planes) == 1:
            width = -(-frame.width * frame.format.padded_bits_per_pixel // 8)
        else:
            width = sum(-(-part.bits // 8) for part in parts) * plane.width
        data, stride = memoryview(plane), abs(plane.line_size)
        for row in range(plane.height):
            total = zlib.crc32(data[row * stride : row * stride + min(width, stride)], total)
    return total


@dataclass(frozen=True)
class Comparison:
    """How an output's pictures compare with its source's."""

    frames_in: int
    frames_out: int
    times: str  #: "equal", "equal, shifted by … s", "to a tick of mkv", "none in the source" or what is wrong
    hashes: str  #: "equal", "equal as FORMAT" or what is wrong

    @property
    def right(self) -> bool:
        return self.frames_in == self.frames_out and not self.wrong

    @property
    def wrong(self) -> str:
        return "; ".join(words for words in (self.times, self.hashes) if words.startswith("NOT"))


def compare(
    source: Path, output: Path, *, stream: int | None = None, tick: Fraction = _ZERO, lossless: bool = True
) -> Comparison:
    """``tick``: how far times may be off, for containers that round them; a shift of all is said."""
    return compare_shown(one_pass(source, stream=stream), output, tick=tick, lossless=lossless)


def compare_images(folder: Path, output: Path, rate: Fraction, *, lossless: bool = True) -> Comparison:
    """A folder of images, shown at ``rate``, with a film; to a millisecond."""
    before = [replace(shown, time=number / rate) for number, shown in enumerate(images(folder))]
    return compare_shown(before, output, tick=Fraction(1, 1000), lossless=lossless)


def compare_shown(
    before: list[Shown], output: Path, *, tick: Fraction = _ZERO, lossless: bool = True
) -> Comparison:
    """As ``compare``, where what should come is known."""
    after = one_pass(output)
    hashes = compare_hashes(before, after, output) if lossless else "-"
    return Comparison(len(before), len(after), compare_times(before, after, tick), hashes)


def compare_times(before: list[Shown], after: list[Shown], tick: Fraction = _ZERO) -> str:
    if len(before) != len(after):
        return f"NOT: {len(before)} frames in, {len(after)} out"
    old = [shown.time for shown in before]
    new = [shown.time for shown in after]
    if None in new:
        return "NOT: an output frame has no time"
    if any(later <= earlier for earlier, later in pairwise(new)):
        return "NOT: times don't rise"
    if None in old or len(set(old)) < len(old):
        return "none usable in the source"
    if old != sorted(old):
        if max(abs(sorted(old).index(time) - n) for n, time in enumerate(old)) > 32:
            return "none usable in the source"
        old = sorted(old)  # decoding times, passed off as display times
    shift = new[0] - old[0]
    worst = max(abs(b - a - shift) for a, b in zip(old, new, strict=True))
    if worst > tick:
        first = next(n for n, (a, b) in enumerate(zip(old, new, strict=True)) if abs(b - a - shift) > tick)
        return f"NOT: frame {first} is off by {float(worst):.6f} s"
    if worst or (abs(shift) > 0 and abs(shift) < tick):
        return "equal to 1 ms"
    return "equal" if not shift else f"equal, all {float(shift):+.3f} s"


def compare_hashes(before: list[Shown], after: list[Shown], output: Path) -> str:
    """The output is turned back into what the source's pictures are, where it had to become another."""
    formats = {shown.pix_fmt for shown in before}
    made = {shown.pix_fmt for shown in after}
    words = "equal"
    if len({shown.size for shown in before}) > 1:
        return "- (sizes differ within the source)"
    if len(formats) == 1 and _plain(formats) != _plain(made):
        name = next(iter(formats))
        after, words = one_pass(output, pix_fmt=name), f"equal (stored as {next(iter(made))})"
    wrong = [n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a.crc != b.crc]
    if wrong or len(before) != len(after):
        return f"NOT: {len(wrong)} of {len(before)} frames, the first {wrong[0] if wrong else len(after)}"
    return words


def _plain(formats: set[str]) -> set[str]:
    return {name.replace("yuvj", "yuv") for name in formats}


def stream_kinds(path: Path) -> Counter[str]:
    """How many streams of each kind have something in them, beside one video."""
    kinds: Counter[str] = Counter()
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        filled = {packet.stream.index for packet in container.demux() if packet.size}
        for stream in container.streams:
            if stream.index in filled or stream.type == "attachment":
                cover = bool(stream.disposition & _NOT_VIDEO)
                kinds["cover" if cover else stream.type or "data"] += 1
    if kinds["video"]:
        kinds["video"] -= 1
    return +kinds


def heard_and_seen(path: Path) -> tuple[Fraction | None, list[Fraction | None]]:
    """When the first picture is shown, and the first sound of each audio stream is heard."""
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        audio = [stream.index for stream in container.streams if stream.type == "audio"]
        videos = [s.index for s in container.streams.video if not s.disposition & _NOT_VIDEO]
    seen = [_first(path, number) for number in videos]
    return next((time for time in seen if time is not None), None), [_first(path, n) for n in audio]


def _first(path: Path, number: int) -> Fraction | None:
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        stream = container.streams[number]
        for packet in container.demux(stream):
            try:
                for frame in packet.decode():
                    if frame.pts is not None:
                        return frame.pts * (frame.time_base or stream.time_base)
            except av.error.FFmpegError:
                continue
    return None
