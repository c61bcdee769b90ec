"""What a decoded picture says of itself beside its pixels (HDR10 data, rotation), and the telling of HDR10
data to an encoder.

FFmpeg does not hand HDR10 data from the decoder on to the encoder, and PyAV has no other way in than the
encoders' own options (measured: media.md §3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import SupportsBytes, cast

import av

from farm.source import MasteringDisplay, Rational, SourceIndex

_MASTERING = struct.Struct("=20i2i")  # ten rationals, then whether the colours and the luminances are known
_MATRIX = struct.Struct("=9i")
_UPRIGHT = (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
_LIGHT = struct.Struct("=2I")
#: x264 and x265 count colour coordinates in units of 0.00002 and luminance in 0.0001 candela a square metre.
_COLOUR_UNITS = 50_000
_LUMINANCE_UNITS = 10_000


def mastering_display(frame: av.VideoFrame) -> MasteringDisplay | None:
    """None if the picture carries none, or not all of it."""
    data = _side_data(frame, "MASTERING_DISPLAY_METADATA")
    if len(data) < _MASTERING.size:
        return None
    *numbers, has_colours, has_luminance = _MASTERING.unpack_from(data)
    values: list[Rational] = list(zip(numbers[::2], numbers[1::2], strict=True))
    if not has_colours or not has_luminance or any(denominator == 0 for _, denominator in values):
        return None
    return MasteringDisplay(
        red=(values[0], values[1]),
        green=(values[2], values[3]),
        blue=(values[4], values[5]),
        white=(values[6], values[7]),
        luminance_min=values[8],
        luminance_max=values[9],
    )


def content_light(frame: av.VideoFrame) -> tuple[int, int] | None:
    """MaxCLL and MaxFALL of a decoded picture, if it carries them."""
    data = _side_data(frame, "CONTENT_LIGHT_LEVEL")
    if len(data) < _LIGHT.size:
        return None
    most, average = _LIGHT.unpack_from(data)
    return most, average


def display_matrix(frame: av.VideoFrame) -> tuple[int, ...]:
    """How the picture is to be turned or mirrored for display: nine numbers as in
    ``SourceIndex.display_matrix``; empty if it is upright or says nothing."""
    data = _side_data(frame, "DISPLAYMATRIX")
    matrix = _MATRIX.unpack_from(data) if len(data) >= _MATRIX.size else _UPRIGHT
    return () if matrix == _UPRIGHT else matrix


def hdr_options(name: str, index: SourceIndex) -> list[str]:
    """Entries of the encoder's list option ``name`` that carry the source's HDR10 data; none if it can't."""
    if name not in _SPELLING:
        return []
    display_key, light_key, colour, luminance = _SPELLING[name]
    entries = []
    display = index.mastering_display
    if display is not None:
        corners = zip("GBR", (display.green, display.blue, display.red), strict=True)
        volume = "".join(f"{letter}({colour(x)},{colour(y)})" for letter, (x, y) in corners)
        volume += f"WP({colour(display.white[0])},{colour(display.white[1])})"
        volume += f"L({luminance(display.luminance_max)},{luminance(display.luminance_min)})"
        entries.append(f"{display_key}={volume}")
    if index.content_light is not None:
        entries.append(f"{light_key}={index.content_light[0]},{index.content_light[1]}")
    return entries


def _side_data(frame: av.VideoFrame, name: str) -> bytes:
    try:
        entries = cast(Mapping[str, SupportsBytes], frame.side_data)
    except (
        ValueError
    ):  # PyAV 18.1 gives none at all if there is a kind among them that it doesn't know (EXIF)
        return b""
    return bytes(entries[name]) if name in entries else b""


def _units(per_one: int) -> Callable[[Rational], str]:
    return lambda value: str(round(Fraction(*value) * per_one))


def _decimal(value: Rational) -> str:
    return f"{float(Fraction(*value)):.6f}"


#: Option → names of the two entries, and how it writes colour coordinates and luminance.
_SPELLING: dict[str, tuple[str, str, Callable[[Rational], str], Callable[[Rational], str]]] = {
    "x264-params": ("mastering-display", "cll", _units(_COLOUR_UNITS), _units(_LUMINANCE_UNITS)),
    "x265-params": ("master-display", "max-cll", _units(_COLOUR_UNITS), _units(_LUMINANCE_UNITS)),
    "svtav1-params": ("mastering-display", "content-light", _decimal, _decimal),
}
