"""HDR10 data for the header of an output: mastering display and light level, as mp4, mov, mkv and webm keep
them beside the stream, for players that look there first and for codecs that have no place for them.

PyAV can't set a stream's side data. But it copies all parameters of one stream to another, side data
included; so a Matroska file of a few hundred bytes is written here by hand, with a track that says what is to
be said and no picture, opened, and its track's parameters are copied before the encoder's own are set.
"""

from __future__ import annotations

import io
import struct
from fractions import Fraction

import av
from av.bitstream import BitStreamFilterContext
from av.video.stream import VideoStream

from farm.source import MasteringDisplay, SourceIndex

#: Matroska's names of codecs. A stream keeps its codec when it takes over parameters, so they must be alike.
_CODEC_IDS = {
    "h264": b"V_MPEG4/ISO/AVC",
    "hevc": b"V_MPEGH/ISO/HEVC",
    "av1": b"V_AV1",
    "vp8": b"V_VP8",
    "vp9": b"V_VP9",
    "ffv1": b"V_FFV1",
    "prores": b"V_PRORES",
    "dnxhd": b"V_MS/VFW/FOURCC",
}
#: What a codec without a Matroska name of its own goes by: a BITMAPINFOHEADER.
_BITMAP_HEADERS = {"dnxhd": struct.pack("<IiiHH4sIiiII", 40, 16, 16, 1, 24, b"AVdn", 0, 0, 0, 0, 0)}
_EBML, _DOC_TYPE = 0x1A45DFA3, 0x4282
_SEGMENT, _INFO, _TIMESTAMP_SCALE, _CLUSTER, _TIMESTAMP = 0x18538067, 0x1549A966, 0x2AD7B1, 0x1F43B675, 0xE7
_TRACKS, _TRACK, _TRACK_NUMBER, _TRACK_UID, _TRACK_TYPE = 0x1654AE6B, 0xAE, 0xD7, 0x73C5, 0x83
_CODEC_ID, _CODEC_PRIVATE, _VIDEO, _WIDTH, _HEIGHT = 0x86, 0x63A2, 0xE0, 0xB0, 0xBA
_COLOUR, _LIGHT_MAX, _LIGHT_AVERAGE, _MASTERING, _RED_X = 0x55B0, 0x55BC, 0x55BD, 0x55D0, 0x55D1
_IS_VIDEO = 1


def announce_hdr(stream: VideoStream, index: SourceIndex) -> bool:
    """Put the source's HDR10 data into the header that ``stream`` will have. To be called before anything
    else is set on the stream's codec context, for that is begun anew.

    False: there is nothing to say, or the codec is none that this works for.
    """
    codec = stream.codec_context.codec.canonical_name
    if codec not in _CODEC_IDS or (index.mastering_display is None and index.content_light is None):
        return False
    with av.open(io.BytesIO(_document(codec, index)), format="matroska") as template:
        BitStreamFilterContext("null", template.streams[0], stream)
    stream.codec_context.codec_tag = "\0\0\0\0"  # the muxer's choice, not the template's
    return True


def _document(codec: str, index: SourceIndex) -> bytes:
    """A Matroska file of one track and no pictures."""
    colour = b""
    if index.content_light is not None:
        most, average = index.content_light
        colour += _number(_LIGHT_MAX, most) + _number(_LIGHT_AVERAGE, average)
    if index.mastering_display is not None:
        values = _in_order(index.mastering_display)
        colour += _element(_MASTERING, b"".join(_real(_RED_X + n, value) for n, value in enumerate(values)))
    video = _number(_WIDTH, 16) + _number(_HEIGHT, 16) + _element(_COLOUR, colour)
    track = (
        _number(_TRACK_NUMBER, 1)
        + _number(_TRACK_UID, 1)
        + _number(_TRACK_TYPE, _IS_VIDEO)
        + _element(_CODEC_ID, _CODEC_IDS[codec])
        + (_element(_CODEC_PRIVATE, _BITMAP_HEADERS[codec]) if codec in _BITMAP_HEADERS else b"")
        + _element(_VIDEO, video)
    )
    segment = (
        _element(_INFO, _number(_TIMESTAMP_SCALE, 1_000_000))
        + _element(_TRACKS, _element(_TRACK, track))
        + _element(_CLUSTER, _number(_TIMESTAMP, 0))  # without one the reader looks for more
    )
    return _element(_EBML, _element(_DOC_TYPE, b"matroska")) + _element(_SEGMENT, segment)


def _in_order(display: MasteringDisplay) -> list[float]:
    """As Matroska numbers its elements."""
    corners = (display.red, display.green, display.blue, display.white)
    numbers = [value for corner in corners for value in corner]
    return [float(Fraction(*value)) for value in (*numbers, display.luminance_max, display.luminance_min)]


def _element(name: int, content: bytes) -> bytes:
    """Name, length in eight bytes, content."""
    length = (1 << 56 | len(content)).to_bytes(8, "big")
    return name.to_bytes((name.bit_length() + 7) // 8, "big") + length + content


def _number(name: int, value: int) -> bytes:
    return _element(name, value.to_bytes(8, "big"))


def _real(name: int, value: float) -> bytes:
    return _element(name, struct.pack(">d", value))
