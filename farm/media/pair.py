"""Whether an encoder and a container go together for a source: tried before the work, not looked up.

Some blank pictures are encoded and written as the stitch would write them, into memory, and read back as a
player would read them. What doesn't come back, or comes back as something else, is lost by that pair:
- pictures, their times or their codec: the pair isn't offered;
- what a picture looks wrong without (colours, shape of the pixels, rotation): refused if another of our
  containers keeps it, else said;
- the rest (HDR10 data, the mark of interlaced pictures): said, with the container that keeps it if one does.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import av
from av.filter import Graph

from farm.errors import UsageError
from farm.media.encode import Picture, choose_picture, open_encoder, tag
from farm.media.encoderclock import EncoderClock
from farm.media.hdr import content_light, display_matrix, mastering_display
from farm.media.muxer import add_video, header_in_band, muxer_options
from farm.media.streams import container_name
from farm.settings import CONTAINERS, VideoSettings
from farm.source import MasteringDisplay, SourceIndex

#: Slow encoders, of which tests/media/test_outputs.py covers every pair: one picture tells.
_SLOW = frozenset({"libx264", "libx264rgb", "libx265", "libsvtav1", "libvpx", "libvpx-vp9"})
_PICTURES = 6
#: Codecs that tell the shape of the pixels with every picture, by what the picture says, which PyAV can't set
#: on a blank one (with real ones measured: kept).
_SHAPED_FRAMES = frozenset({"ffv1"})
_LIMITED_RANGE, _FULL_RANGE = 1, 2
_UNKNOWN_COLOURS = (0, 2)
#: Code points of H.273 that mean the same: transfer characteristics, and matrices.
_SAME_TRANSFER = (1, 6, 14, 15)
_SAME_MATRIX = (5, 6)
_DISPLAY_TOLERANCE = 1e-3
#: Matroska tells the shape of pixels by the size of the picture on the screen, in whole pixels.
_SHAPE_TOLERANCE = 0.01


class _Packet(NamedTuple):
    pts: int
    key: bool
    data: bytes


class _Seen(NamedTuple):
    """What a player gets to know of a picture."""

    color_range: int
    primaries: int
    transfer: int
    matrix: int
    shape: Fraction
    turned: tuple[
        int, ...
    ]  #: the display matrix without where it moves the picture to, which no player minds
    interlaced: bool
    mastering: MasteringDisplay | None
    light: tuple[int, int] | None


class _Loss(NamedTuple):
    words: str
    looks_wrong: bool  #: without it


class _Unfit(Exception):
    """The pair doesn't work."""


def check_pair(index: SourceIndex, settings: VideoSettings, container: str) -> list[str]:
    """Returns what is lost, a sentence each. ``container``: the muxer's name.

    Raises UsageError for a pair that doesn't work or shows pictures wrong which another container shows
    right, and for an encoder that can't be opened.
    """
    picture = choose_picture(index, settings)
    try:
        extradata, packets = _encode(index, settings, picture)
    except av.error.FFmpegError:
        return []  # the encoder's own words for it are heard by check_encoder

    def lost_in(name: str) -> list[_Loss]:
        return _lost(_expected(index, picture), _round_trip(index, settings, name, extradata, packets))

    name = container_name(container)
    try:
        lost = lost_in(container)
    except _Unfit as unfit:
        holders = _others(container, lambda other: lost_in(other) is not None)
        advice = f"; write {_either(holders)}, or" if holders else ", nor does any other container here;"
        advice += f" choose another encoder with -e{_for_webm(container)}"
        raise UsageError(f"{name} can't hold what {settings.encoder} makes{advice}") from unfit
    if not lost:
        return []
    keepers = _others(container, lambda other: not lost_in(other))
    what = " and ".join(loss.words for loss in lost)
    said = f"{name} with {settings.encoder} doesn't keep {what}"
    wrong = [loss.words for loss in lost if loss.looks_wrong]
    if wrong and keepers:
        turn = ", or use --rotate apply" if _ROTATION in wrong else ""
        raise UsageError(f"{said}, and it would look wrong: write {_either(keepers)}{turn}")
    return [f"{said}; {_either(keepers)} does" if keepers else said]


_ROTATION = "the rotation"


def _for_webm(container: str) -> str:
    """The one container that the encoder people get by default doesn't fit."""
    return ": libvpx-vp9 or libsvtav1" if container == "webm" else ""


def _encode(index: SourceIndex, settings: VideoSettings, picture: Picture) -> tuple[bytes, list[_Packet]]:
    encoder = open_encoder(index, settings)
    clock = EncoderClock(index, settings)
    packets = []
    for number in range(min(1 if settings.encoder in _SLOW else _PICTURES, index.frames)):
        frame = _blank(picture, interlaced=index.field_order > 1)
        tag(frame, picture, index)
        clock.stamp(frame, number, 0)
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    return encoder.extradata or b"", [
        _Packet(clock.source_pts(packet.pts or 0, 0), packet.is_keyframe, bytes(packet)) for packet in packets
    ]


def _blank(picture: Picture, *, interlaced: bool) -> av.VideoFrame:
    frame = av.VideoFrame(picture.width, picture.height, picture.pix_fmt)
    for plane in frame.planes:
        plane.update(bytes(plane.buffer_size))
    if not interlaced:
        return frame
    graph = Graph()
    source = graph.add(
        "buffer", f"video_size={picture.width}x{picture.height}:pix_fmt={picture.pix_fmt}:time_base=1/25"
    )
    graph.link_nodes(source, graph.add("setfield", "tff"), graph.add("buffersink")).configure()
    frame.pts, frame.time_base = 0, Fraction(1, 25)
    graph.push(frame)
    marked = graph.pull()
    assert isinstance(marked, av.VideoFrame)
    return marked


def _round_trip(
    index: SourceIndex, settings: VideoSettings, container: str, extradata: bytes, packets: list[_Packet]
) -> _Seen:
    """Raises _Unfit."""
    try:
        data = _write(index, settings, container, extradata, packets)
        with av.open(io.BytesIO(data), "r", format=container) as file:
            return _read(file, settings.encoder, len(packets), _shape(index))
    except (
        av.error.FFmpegError,
        ValueError,
    ) as error:  # the latter if the container has no name for the codec
        raise _Unfit from error


def _write(
    index: SourceIndex, settings: VideoSettings, container: str, extradata: bytes, packets: list[_Packet]
) -> bytes:
    options = muxer_options(index, container)
    options.pop("movflags", None)  # which reads the file again, and there is none
    file = io.BytesIO()
    shown = sorted(packet.pts for packet in packets)
    step = shown[1] - shown[0] if len(shown) > 1 else 1
    with av.open(file, "w", format=container, container_options=options) as muxer:
        stream = add_video(muxer, index, settings)
        muxer.start_encoding()
        in_band = header_in_band(container, stream, extradata)
        for number, found in enumerate(packets):
            packet: av.Packet[av.stream.Stream] = av.Packet(in_band + found.data if found.key else found.data)
            packet.stream, packet.time_base = stream, Fraction(*index.time_base)
            packet.pts, packet.dts = found.pts, shown[0] + (number - len(packets)) * step
            packet.duration, packet.is_keyframe = step, found.key
            muxer.mux(packet)
    return file.getvalue()


def _read(file: av.container.InputContainer, encoder: str, count: int, wanted_shape: Fraction) -> _Seen:
    streams = file.streams.video
    codec = av.Codec(encoder, "w").canonical_name
    if not streams or streams[0].codec_context.codec.canonical_name != codec:
        raise _Unfit
    video = streams[0]
    packets = [packet for packet in file.demux(video) if packet.size]
    times = [packet.dts for packet in packets if packet.dts is not None]
    if len(packets) != count or any(before >= after for before, after in pairwise(times)):
        raise _Unfit
    frames = list(_decoded(video, packets))
    if len(frames) != count:
        raise _Unfit
    first = frames[0]
    shape = wanted_shape if codec in _SHAPED_FRAMES else video.sample_aspect_ratio
    return _Seen(
        color_range=first.color_range,
        primaries=first.color_primaries,
        transfer=first.color_trc,
        matrix=first.colorspace,
        shape=shape or Fraction(1),
        turned=_turn(display_matrix(first)),
        interlaced=first.interlaced_frame,
        mastering=mastering_display(first),
        light=content_light(first),
    )


def _decoded(video: av.VideoStream, packets: list[av.Packet[av.VideoStream]]) -> Iterator[av.VideoFrame]:
    for packet in (*packets, None):
        yield from video.decode(packet)


def _turn(matrix: tuple[int, ...]) -> tuple[int, ...]:
    return (*matrix[0:2], *matrix[3:5])


def _shape(index: SourceIndex) -> Fraction:
    return Fraction(*(index.sample_aspect_ratio or (1, 1)))


def _expected(index: SourceIndex, picture: Picture) -> _Seen:
    return _Seen(
        color_range=picture.color_range,
        primaries=index.color_primaries,
        transfer=index.color_trc,
        matrix=picture.colorspace,
        shape=_shape(index),
        turned=_turn(index.display_matrix),
        interlaced=index.field_order > 1,
        mastering=index.mastering_display,
        light=index.content_light,
    )


def _lost(wanted: _Seen, found: _Seen) -> list[_Loss]:
    def colours(words: str, want: int, have: int, same: tuple[int, ...] = ()) -> Iterator[_Loss]:
        if want not in _UNKNOWN_COLOURS and want != have and not (want in same and have in same):
            yield _Loss(words, looks_wrong=True)

    lost = []
    if wanted.color_range == _FULL_RANGE != found.color_range and wanted.matrix:
        lost.append(_Loss("the full range of its colours", looks_wrong=True))
    if wanted.color_range == _LIMITED_RANGE and found.color_range == _FULL_RANGE and wanted.matrix:
        lost.append(_Loss("the limited range of its colours", looks_wrong=True))  # an option says otherwise
    lost += colours("the colour primaries", wanted.primaries, found.primaries)
    lost += colours("the transfer characteristics", wanted.transfer, found.transfer, _SAME_TRANSFER)
    lost += colours("the colour matrix", wanted.matrix, found.matrix, _SAME_MATRIX)
    if abs(found.shape / wanted.shape - 1) > _SHAPE_TOLERANCE:
        shape = f"{wanted.shape.numerator}:{wanted.shape.denominator}"
        lost.append(_Loss(f"the shape of the pixels, {shape}", looks_wrong=True))
    if wanted.turned != found.turned:
        lost.append(_Loss(_ROTATION, looks_wrong=True))
    if wanted.mastering is not None and not _alike(wanted.mastering, found.mastering):
        lost.append(_Loss("the HDR10 mastering display", looks_wrong=False))
    if wanted.light is not None and wanted.light != found.light:
        lost.append(_Loss("the HDR10 light level", looks_wrong=False))
    if wanted.interlaced and not found.interlaced:
        lost.append(_Loss("the mark of interlaced pictures", looks_wrong=False))
    return lost


def _alike(wanted: MasteringDisplay, found: MasteringDisplay | None) -> bool:
    """To within what the containers' own units round away."""
    if found is None:
        return False
    pairs = zip(_numbers(wanted), _numbers(found), strict=True)
    return all(abs(a - b) <= _DISPLAY_TOLERANCE * max(1.0, abs(a)) for a, b in pairs)


def _numbers(display: MasteringDisplay) -> list[float]:
    corners = (display.red, display.green, display.blue, display.white)
    values = [value for corner in corners for value in corner]
    return [float(Fraction(*value)) for value in (*values, display.luminance_min, display.luminance_max)]


def _others(container: str, fits: Callable[[str], bool]) -> list[str]:
    """By the names people use, the other containers that fit."""
    found = []
    for other in dict.fromkeys(CONTAINERS.values()):
        if other == container:
            continue
        try:
            if fits(other):
                found.append(f".{container_name(other)}")
        except _Unfit:
            continue
    return found


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
