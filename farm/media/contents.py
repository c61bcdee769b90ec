"""Reads a finished file packet by packet, once, front to back, and says what is in it; nothing is decoded but
its first picture.

Rules of this file:
- a fault of the file by itself doesn't end the reading: the first one is noted, so that who knows what should
  be there can say more than that;
- memory grows by 12 bytes a packet of the video, and with nothing else.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer
from av.stream import AttachmentStream, Disposition, Stream
from av.video.stream import VideoStream
from msgspec.structs import replace

from farm.contents import Contents, StreamContents, container_family, new_checksums, new_times
from farm.media.looks import looks_of
from farm.media.streams import codec_name

_LENGTH_PREFIXED = frozenset({"h264", "hevc"})
#: A line of mov_text without a word.
_NO_LINE = b"\0\0"
#: What follows the header of mov_text: its bit rate, which every muxer appends anew.
_BIT_RATE_BOX = b"\0\0\0\x14btrt"


class NoVideo(Exception):
    """A file without a stream that could be a film."""


def open_finished(path: Path, container: str | None) -> InputContainer:
    """Raises av.error.FFmpegError, OSError. ``container``: the muxer's name; None: as its contents say."""
    return av.open(f"file:{path.absolute()}", format=container, metadata_errors="replace")


def film_of(file: InputContainer) -> VideoStream:
    """The first video stream that isn't a cover. Raises NoVideo."""
    for stream in file.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            return stream
    raise NoVideo("it has no video stream")


def read_contents(
    path: Path,
    container: str | None = None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> Contents:
    """Read ``path`` whole. ``on_progress`` hears fractions from 0 to 1, by where in the file it is.

    Raises NoVideo, and av.error.FFmpegError or OSError for a file that can't be opened.
    """
    with open_finished(path, container) as file:
        video = film_of(file)
        family = container_family(file.format.name)
        reading = _Reading(video, promised=video.frames if family == "mp4" else 0)
        tallies = [_Tally() for _ in file.streams]
        read_bytes, whole_bytes = 0, max(path.stat().st_size, 1)
        try:
            for packet in file.demux():
                if not packet.size:
                    continue
                if not _is_pause(packet):
                    tallies[packet.stream.index].add(packet)
                if packet.stream.index == video.index:
                    reading.add(packet)
                    read_bytes = max(read_bytes, packet.pos or 0)
                    on_progress(min(read_bytes / whole_bytes, 1.0))
        except av.error.FFmpegError as error:
            reading.note(f"it can't be read any further after frame {len(reading.pts)}: {error.strerror}")
        reading.finish()
        streams = [_described(stream, tallies[stream.index]) for stream in file.streams]
        return Contents(
            container=family,
            size_bytes=path.stat().st_size,
            video=replace(streams[video.index], looks=looks_of(path, video.index)),
            others=tuple(found for number, found in enumerate(streams) if number != video.index),
            pts=reading.pts,
            checksums=reading.checksums,
            keys=tuple(reading.keys),
            last_duration=reading.last[1],
            stream_words=tuple(_words(number, found) for number, found in enumerate(streams)),
            fault=reading.fault,
        )


@dataclass(slots=True)
class _Tally:
    """What is counted of every stream."""

    digest: Any = field(default_factory=hashlib.sha256)
    packets: int = 0
    first: int | None = None
    last: int | None = None

    def add(self, packet: av.Packet[Stream]) -> None:
        self.digest.update(packet)
        self.packets += 1
        pts = packet.pts
        if pts is not None:
            self.first = pts if self.first is None else min(self.first, pts)
            self.last = pts if self.last is None else max(self.last, pts)


def _is_pause(packet: av.Packet[Stream]) -> bool:
    """Whether it only fills the time between two lines of subtitles, which every muxer does as it likes."""
    return packet.size == len(_NO_LINE) and packet.stream.type == "subtitle" and bytes(packet) == _NO_LINE


class _Reading:
    """The packets of the video as they come, and the first thing that is wrong with them."""

    def __init__(self, stream: VideoStream, promised: int) -> None:
        """``promised``: how many frames the file says it has, where that is to be trusted; else 0."""
        self.pts = new_times()
        self.checksums = new_checksums()
        self.keys: list[tuple[int, int]] = []
        self.last = (-(1 << 63), 0)  #: pts and duration of the frame shown last
        self.fault = ""
        self._time_base = stream.time_base or Fraction(1)
        self._promised = promised
        self._last_dts: int | None = None

    def note(self, fault: str) -> None:
        self.fault = self.fault or fault

    def add(self, packet: av.Packet[Stream]) -> None:
        number = len(self.pts)
        pts, dts = packet.pts, packet.dts
        if pts is None:
            self.note(f"video packet {number} has no time")
            pts = dts or 0
        if packet.is_discard:
            self.note(f"the frame at {_seconds(pts, self._time_base)} would not be shown")
        if number == 0 and not packet.is_keyframe:
            self.note("it doesn't begin with a keyframe")
        if dts is not None:
            if self._last_dts is not None and dts <= self._last_dts:
                self.note(f"the decoding time of video packet {number} doesn't come after the one before")
            self._last_dts = dts
        if packet.is_keyframe:
            self.keys.append((pts if dts is None else dts, pts))
        self.pts.append(pts)
        self.checksums.append(zlib.crc32(packet))
        self.last = max(self.last, (pts, packet.duration or 0))

    def finish(self) -> None:
        if not self.pts:
            self.note("its video has no frames")
        if self._promised and self._promised != len(self.pts):
            self.note(f"its header promises {self._promised} frames and {len(self.pts)} are there")
        for frame, (before, after) in enumerate(pairwise(sorted(self.pts))):
            if before == after:
                self.note(f"frames {frame} and {frame + 1} are both at {_seconds(before, self._time_base)}")


def _described(stream: Stream, tally: _Tally) -> StreamContents:
    codec = codec_name(stream)
    header = _header(stream)
    data = b""
    if isinstance(stream, AttachmentStream):
        with suppress(av.error.FFmpegError):
            data = stream.data
        tally.digest.update(data)
    tick = stream.time_base or Fraction(1)
    return StreamContents(
        kind="cover" if stream.disposition & Disposition.attached_pic else stream.type or "data",
        codec=codec,
        language=(stream.language or "").removeprefix("und"),
        packets=tally.packets,
        sha256=tally.digest.hexdigest(),
        header_sha256=hashlib.sha256(header).hexdigest() if header else "",
        length_prefixed=codec in _LENGTH_PREFIXED and header[:1] == b"\1",
        time_base=(tick.numerator, tick.denominator),
        first_pts=tally.first,
        last_pts=tally.last,
    )


def _header(stream: Stream) -> bytes:
    context = stream.codec_context
    header = bytes(context.extradata or b"") if context is not None else b""
    return header.partition(_BIT_RATE_BOX)[0] if stream.type == "subtitle" else header


def _words(number: int, found: StreamContents) -> str:
    details = ", ".join(part for part in (found.codec, found.language) if part)
    return f"{found.kind} #{number} ({details}): {found.packets} packets"


def _seconds(ticks: int, time_base: Fraction) -> str:
    return f"{float(ticks * time_base):.3f} s"
