"""The planes of pictures as numbers: where the samples of each channel lie, and what a colour is there.

Rules of this file:
- a layout follows from the pixel format alone, as FFmpeg describes it; a format whose samples can't be told
  apart as whole bytes or words has none, and is stood in for by one that loses nothing of it;
- a colour becomes codes by exact arithmetic, so that they are the same on every machine.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

Samples = NDArray[Any]

_SIZE = 64  # of a picture that is asked how it is subsampled
_FULL_RANGE = 2
#: Channels in memory of the formats that have several in one plane; ``_`` is no channel.
_PACKED = {
    "rgb24": "rgb",
    "bgr24": "bgr",
    "rgb48": "rgb",
    "bgr48": "bgr",
    "rgba": "rgba",
    "bgra": "bgra",
    "argb": "argb",
    "abgr": "abgr",
    "rgb0": "rgb_",
    "bgr0": "bgr_",
    "0rgb": "_rgb",
    "0bgr": "_bgr",
    "rgba64": "rgba",
    "bgra64": "bgra",
    "ya8": "ya",
    "ya16": "ya",
    "yuyv422": "yuyv",
    "uyvy422": "uyvy",
    "vuyx": "vuy_",
}
_SEMI_PLANAR = re.compile(r"(nv|p[0-9])")
_MSB_ALIGNED = re.compile(r"(p[0-9]|.*msb)")
#: What is drawn on in place of formats that have no layout.
_STAND_INS = {
    "mono": "gray",
    "rgb8": "rgb24",
    "bgr8": "rgb24",
    "rgb4": "rgb24",
    "bgr4": "rgb24",
    "rgb444": "rgb24",
    "bgr444": "rgb24",
    "rgb555": "rgb24",
    "bgr555": "rgb24",
    "rgb565": "rgb24",
    "bgr565": "rgb24",
    "x2rgb10": "gbrp10le",
    "x2bgr10": "gbrp10le",
    "y210": "yuv422p10le",
    "xv30": "yuv444p10le",
}
#: Kr and Kb of the matrices, by H.273 code point.
_WEIGHTS = {
    1: (Fraction(2126, 10000), Fraction(722, 10000)),
    4: (Fraction(30, 100), Fraction(11, 100)),
    5: (Fraction(299, 1000), Fraction(114, 1000)),
    6: (Fraction(299, 1000), Fraction(114, 1000)),
    7: (Fraction(212, 1000), Fraction(87, 1000)),
    9: (Fraction(2627, 10000), Fraction(593, 10000)),
    10: (Fraction(2627, 10000), Fraction(593, 10000)),
}
_UNSPECIFIED_MATRIX = {True: 1, False: 6}  # by whether the picture is high
_HD_HEIGHT = 720
#: How bright the white of graphics is in HDR, of the full signal (ITU-R BT.2408), by H.273 code point.
_GRAPHICS_WHITE = {16: Fraction(58, 100), 18: Fraction(75, 100)}


class Channel(NamedTuple):
    """Where the samples of one channel are: every ``step``-th of a row of ``plane`` from ``offset`` on."""

    kind: str  #: one of r, g, b, y, u, v, a
    plane: int
    offset: int
    step: int
    bits: int
    shift: int  #: zero bits below those that count
    across: int  #: pixels that share a sample
    down: int


class Layout(NamedTuple):
    """How a pixel format lies in memory."""

    dtype: np.dtype[Any]
    channels: tuple[Channel, ...]

    @property
    def block(self) -> tuple[int, int]:
        """Width and height of the smallest block of pixels that shares no sample with another."""
        across, down = (channel.across for channel in self.channels), (c.down for c in self.channels)
        return max(across), max(down)

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"


@functools.cache
def layout_of(pix_fmt: str) -> Layout | None:
    """None: the samples of that format can't be told apart here."""
    pixels = av.VideoFormat(pix_fmt, _SIZE, _SIZE)
    parts, bits = pixels.components, max((part.bits for part in pixels.components), default=0)
    if pixels.has_palette or pixels.is_bayer or pixels.is_bit_stream or "f16" in pix_fmt:
        return None
    order = ">" if pixels.is_big_endian else "<"
    if bits == 8:
        dtype: np.dtype[Any] = np.dtype("u1")
    elif 8 < bits <= 16:
        dtype = np.dtype(f"{order}u2")
    elif bits == 32 and "f32" in pix_fmt:
        dtype = np.dtype(f"{order}f4")
    else:
        return None
    if any(part.bits != bits for part in parts):
        return None
    kinds = _kinds(pixels)
    shift = 16 - bits if _MSB_ALIGNED.match(pix_fmt) else 0
    channels = []
    for kind, part in zip(kinds, parts, strict=True):
        alone = sum(other.plane == part.plane for other in parts) == 1
        order = kind if alone else _order(pix_fmt)
        if kind not in order:
            return None
        step = len(order) // order.count(kind)
        across, down = _SIZE // part.width, _SIZE // part.height
        channels.append(Channel(kind, part.plane, order.index(kind), step, bits, shift, across, down))
    return Layout(dtype, tuple(channels))


def _kinds(pixels: av.VideoFormat) -> str:
    count = len(pixels.components)
    if count <= 2:
        return "ya"[:count]
    return ("rgba" if pixels.is_rgb else "yuva")[:count]


def _order(pix_fmt: str) -> str:
    """The channels of a plane that holds several, in memory."""
    if _SEMI_PLANAR.match(pix_fmt):
        return "vu" if pix_fmt in ("nv21", "nv42") else "uv"
    return _PACKED.get(re.sub(r"[lb]e\Z", "", pix_fmt), "")


def drawable(pix_fmt: str) -> str | None:
    """That format, or one that stands in for it while it is drawn on; None if there is none."""
    if layout_of(pix_fmt) is not None:
        return pix_fmt
    return next((name for start, name in _STAND_INS.items() if pix_fmt.startswith(start)), None)


def rows_of(frame: av.VideoFrame, layout: Layout) -> list[Samples]:
    """The planes of a frame as rows of samples, padding included: writing there changes the frame."""
    return [
        np.frombuffer(memoryview(plane), dtype=np.uint8)
        .reshape(plane.height, plane.line_size)
        .view(layout.dtype)
        for plane in frame.planes
    ]


def codes_of(
    color: Sequence[int], layout: Layout, *, height: int, color_range: int, colorspace: int, color_trc: int
) -> list[float]:
    """A colour (8 bits each of red, green, blue) as the code of every channel; alpha is opaque. Whole numbers
    but for floating-point formats. In HDR, white is the white of graphics."""
    white = _GRAPHICS_WHITE.get(color_trc, Fraction(1))
    red, green, blue = (Fraction(value, 255) * white for value in color)
    if colorspace not in _WEIGHTS:
        colorspace = _UNSPECIFIED_MATRIX[height >= _HD_HEIGHT]
    k_red, k_blue = _WEIGHTS[colorspace]
    luma = k_red * red + (1 - k_red - k_blue) * green + k_blue * blue
    shares = {
        "r": red,
        "g": green,
        "b": blue,
        "a": Fraction(1),
        "y": luma,
        "u": (blue - luma) / (1 - k_blue) / 2,
        "v": (red - luma) / (1 - k_red) / 2,
    }
    is_gray = all(channel.kind in "ya" for channel in layout.channels)
    full = color_range == _FULL_RANGE or (is_gray and color_range == 0)
    return [_code(channel, shares[channel.kind], full, layout.is_float) for channel in layout.channels]


def _code(channel: Channel, share: Fraction, full: bool, is_float: bool) -> float:
    if is_float:
        return float(share)
    top, unit = (1 << channel.bits) - 1, 1 << (channel.bits - 8)
    if channel.kind in "uv":
        code = (128 + 224 * share) * unit if not full else top * share + (top + 1) // 2
    elif channel.kind == "y" and not full:
        code = (16 + 219 * share) * unit
    else:
        code = top * share
    return min(top, max(0, math.floor(code + Fraction(1, 2))))
