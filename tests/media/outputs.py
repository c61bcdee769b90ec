"""Every pair of encoder and container that is offered, and what is asked of its output, for the tests and for
scripts/outputs_doc.py.

An output is read with the library alone: frames by the numbers they carry, times, seeks, what is said of the
picture, and the bytes where players look for something in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import av
from av.sidedata.sidedata import Type
from av.video.frame import PictureType

from farm.media.clip import make_clip, read_number
from farm.settings import VideoSettings
from tests.media.clips import EXACT_SCALING, pinned
from tests.media.jobs import side_data

Kind = Literal["plain", "full", "wide", "turned", "fields", "hdr"]
FRAMES = 75
RATE = Fraction(30000, 1001)
SIZE = {"width": 256, "height": 144}  # DNxHR takes no less
START = Fraction(1, 2)
EXTENSIONS = {"mp4": ".mp4", "mov": ".mov", "matroska": ".mkv", "webm": ".webm", "mpegts": ".ts"}
ENCODERS = {
    "libx264": VideoSettings(preset="veryfast", crf=30),
    "libx265": VideoSettings(encoder="libx265", preset="ultrafast", crf=30),
    "libsvtav1": VideoSettings(encoder="libsvtav1", preset="12", crf=20),
    "libvpx-vp9": VideoSettings(
        encoder="libvpx-vp9", crf=40, options={"cpu-used": "8", "deadline": "realtime"}
    ),
    "libvpx": VideoSettings(encoder="libvpx", options={"cpu-used": "8", "deadline": "realtime", "b": "1M"}),
    "ffv1": VideoSettings(encoder="ffv1"),
    "prores_ks": VideoSettings(encoder="prores_ks"),
    "dnxhd": VideoSettings(encoder="dnxhd"),
    "mjpeg": VideoSettings(encoder="mjpeg"),
    "mpeg4": VideoSettings(encoder="mpeg4", options={"b": "2M", "bf": "2"}),
    "mpeg2video": VideoSettings(encoder="mpeg2video", options={"b": "2M", "bf": "2"}),
    "qtrle": VideoSettings(encoder="qtrle"),
    "utvideo": VideoSettings(encoder="utvideo"),
}
#: For a source with colours tagged as BT.709 and square pixels; every other pair is refused.
OFFERED = {
    "libx264": ("mp4", "mov", "matroska", "mpegts"),
    "libx265": ("mp4", "mov", "matroska", "mpegts"),
    "libsvtav1": ("mp4", "matroska", "webm"),
    "libvpx-vp9": ("mp4", "matroska", "webm"),
    "libvpx": ("matroska", "webm"),
    "ffv1": ("mp4", "matroska"),
    "prores_ks": ("mov", "matroska"),
    "dnxhd": ("mov",),
    "mjpeg": ("mp4", "mov", "matroska"),
    "mpeg4": ("mp4", "mov", "matroska"),  # and ts, if no colours are tagged
    "mpeg2video": ("mp4", "mov", "matroska", "mpegts"),
    "qtrle": ("mov",),
    "utvideo": (),
}
HDR_PARAMETERS = (
    "master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50):max-cll=1000,400"
)
TURNED = (0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)


@dataclass(frozen=True)
class Colours:
    """By code point of H.273; the range as FFmpeg numbers it."""

    range: int
    primaries: int
    transfer: int
    matrix: int


COLOURS = {"hdr": Colours(1, 9, 16, 9), "full": Colours(2, 1, 1, 1)}
BT709 = Colours(1, 1, 1, 1)


def make_source(folder: Path, kind: Kind) -> Path:
    """Numbered frames with sound that begin at half a second, tagged as ``kind`` says."""
    clip = folder / "numbered.mp4"
    if not clip.exists():
        make_clip(clip, frames=FRAMES, fps=30, gop=15, **SIZE)
    path = folder / f"{kind}.{'mkv' if kind == 'hdr' else 'mp4'}"
    colours = COLOURS.get(kind, BT709)
    with av.open(str(clip)) as file, av.open(str(path), "w") as output:
        video = output.add_stream("libx265" if kind == "hdr" else "libx264", rate=RATE)
        context = video.codec_context
        context.width, context.height = SIZE["width"], SIZE["height"]
        context.pix_fmt = "yuv420p10le" if kind == "hdr" else "yuv420p"
        context.time_base = Fraction(1, 30000)
        context.thread_count = 1
        context.color_range, context.color_primaries = colours.range, colours.primaries
        context.color_trc, context.colorspace = colours.transfer, colours.matrix
        context.sample_aspect_ratio = Fraction(4, 3) if kind == "wide" else Fraction(1)
        if kind == "hdr":
            context.options = {
                "preset": "ultrafast",
                "x265-params": f"{HDR_PARAMETERS}:pools=none:log-level=error",
            }
        else:
            fields = {"flags": "+ildct+ilme"} if kind == "fields" else {}
            more = ["tff=1"] if kind == "fields" else []
            context.options = {
                "preset": "veryfast",
                "crf": "18",
                "g": "20",
                "x264-params": ":".join([*pinned("x264-params", 1), *more]),
                **fields,
            }
        if kind == "turned":
            video.set_display_matrix(TURNED)
        sound = output.add_stream_from_template(file.streams.audio[0])
        for packet in file.demux():
            if packet.stream.type == "audio" and packet.size:
                assert packet.pts is not None and packet.dts is not None
                ticks = round(START / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts + ticks, packet.dts + ticks, sound
                output.mux(packet)
            elif packet.stream.type == "video":
                for frame in packet.decode():
                    assert isinstance(frame, av.VideoFrame) and frame.pts is not None
                    shaped = _shaped(frame, context, colours, fields=kind == "fields")
                    shaped.pts = round(START * 30000) + read_number(frame) * 1001
                    output.mux(video.encode(shaped))
        output.mux(video.encode(None))
    return path


def _shaped(
    frame: av.VideoFrame, context: av.VideoCodecContext, colours: Colours, *, fields: bool
) -> av.VideoFrame:
    shaped = frame.reformat(
        format=context.pix_fmt,
        src_color_range=1,
        dst_color_range=colours.range,
        interpolation=EXACT_SCALING,
        threads=1,
    )
    if fields:
        graph = av.filter.Graph()
        graph.link_nodes(
            graph.add(
                "buffer", f"video_size={SIZE['width']}x{SIZE['height']}:pix_fmt=yuv420p:time_base=1/30"
            ),
            graph.add("setfield", "tff"),
            graph.add("buffersink"),
        ).configure()
        shaped.time_base = Fraction(1, 30)
        graph.push(shaped)
        pulled = graph.pull()
        assert isinstance(pulled, av.VideoFrame)
        shaped = pulled
    shaped.color_range, shaped.colorspace = colours.range, colours.matrix
    shaped.pict_type, shaped.time_base = PictureType.NONE, Fraction(1, 30000)
    return shaped


@dataclass(frozen=True)
class Output:
    """What is found in a file."""

    numbers: list[int]  #: of the frames, in the order they are shown in
    times: list[Fraction]  #: of the frames
    dts_rise: bool  #: strictly, in every stream
    duration: Fraction  #: of the file, as its header says or the reader estimates
    seeks: dict[
        int, int | None
    ]  #: second after the first frame → number of the first frame that is then shown
    colours: Colours
    shape: Fraction
    turned: tuple[int, ...]
    interlaced: bool
    mastering: bytes | None
    light: bytes | None
    tag: str


def read_output(path: Path) -> Output:
    with av.open(str(path)) as file:
        shown = list(file.decode(video=0))
        video = file.streams.video[0]
        shape = video.sample_aspect_ratio or Fraction(1)
        tag = video.codec_context.codec_tag
        duration = Fraction(file.duration or 0, av.time_base)
    first = shown[0]
    matrix = side_data(first, Type.DISPLAYMATRIX)
    times = [_time(frame) for frame in shown]
    return Output(
        numbers=[read_number(frame) for frame in shown],
        times=times,
        dts_rise=_dts_rise(path),
        duration=duration,
        seeks={second: _seek(path, times[0] + second) for second in range(int(times[-1] - times[0]) + 1)},
        colours=Colours(first.color_range, first.color_primaries, first.color_trc, first.colorspace),
        shape=shape,
        turned=() if matrix is None else tuple(memoryview(matrix).cast("i")),
        interlaced=first.interlaced_frame,
        mastering=side_data(first, Type.MASTERING_DISPLAY_METADATA),
        light=side_data(first, Type.CONTENT_LIGHT_LEVEL),
        tag=tag,
    )


def _time(frame: Any) -> Fraction:
    assert frame.pts is not None and frame.time_base is not None
    return Fraction(frame.pts * frame.time_base)


def _dts_rise(path: Path) -> bool:
    dts: dict[int, list[int]] = {}
    with av.open(str(path)) as file:
        for packet in file.demux():
            if packet.dts is not None:  # mkv keeps none, and the reader doesn't know the first ones
                dts.setdefault(packet.stream.index, []).append(packet.dts)
    return all(before < after for times in dts.values() for before, after in pairwise(times))


def _seek(path: Path, at: Fraction) -> int | None:
    """As a player does: to a keyframe at or before that time, then on to the first frame that is due."""
    with av.open(str(path)) as file:
        video = file.streams.video[0]
        assert video.time_base is not None
        # Players look a while ahead of it in a transport stream, where nothing tells where keyframes are.
        early = Fraction(1) if "mpegts" in file.format.name else Fraction(0)
        file.seek(int((at - early) / video.time_base), stream=video)
        for frame in file.decode(video):
            if _time(frame) >= at:
                return read_number(frame)
    return None


def boxes(path: Path) -> list[str]:
    """The top boxes of an mp4 or mov, in their order."""
    found = []
    data = path.read_bytes()
    place = 0
    while place < len(data):
        size, name = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8].decode()
        found.append(name)
        place += size if size > 1 else int.from_bytes(data[place + 8 : place + 16], "big") or len(data)
    return found


def clock_references(path: Path) -> Iterator[int]:
    """The program clock references of a transport stream, in ticks of 27 MHz, in their order."""
    data = path.read_bytes()
    for place in range(0, len(data), 188):
        packet = data[place : place + 188]
        assert packet[0] == 0x47
        if packet[3] & 0x20 and packet[4] and packet[5] & 0x10:
            bits = int.from_bytes(packet[6:12], "big")
            yield (bits >> 15) * 300 + (bits & 0x1FF)


def begins_with_headers(path: Path) -> bool:
    """Whether every keyframe of a transport stream comes with what a decoder needs to begin there."""
    with av.open(str(path)) as file:
        video = file.streams.video[0]
        marks = {
            "h264": (b"\0\0\1\x67", b"\0\0\1\x68"),
            "hevc": (b"\0\0\1\x40\x01", b"\0\0\1\x42\x01", b"\0\0\1\x44\x01"),
            "mpeg2video": (b"\0\0\1\xb3",),
            "mpeg4": (b"\0\0\1\xb0", b"\0\0\1\x20"),
        }[video.codec_context.codec.canonical_name]
        keys = [bytes(packet) for packet in file.demux(video) if packet.is_keyframe]
    return bool(keys) and all(mark in data for data in keys for mark in marks)
