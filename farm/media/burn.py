"""Text burnt into pictures: blended into the planes of any pixel format.

Rules of this file:
- a frame is drawn on when it is as the encoder takes it, so that all formats and sizes are treated alike, and
  never in place: a decoder may still need it, or a constant rate show it again;
- blending is integer arithmetic on whole blocks of subsampled colour (floating-point formats alone are
  blended as such), so that it is equal on every machine and knows nothing of parts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import av
import numpy as np
from av.filter import Graph
from numpy.typing import NDArray

from farm.burnin import Wording
from farm.errors import UsageError
from farm.media.encode import Picture, conform
from farm.media.letters import Mask, Page, Rect
from farm.media.planes import Channel, Layout, codes_of, drawable, layout_of, rows_of
from farm.settings import JobSettings
from farm.source import SourceIndex

_OPAQUE = 255
_UINT32_MAX = (1 << 32) - 1


class _Stamp(NamedTuple):
    """A text ready to be blended: in each channel a sample becomes ``(sample * keep + add) // parts``."""

    rect: Rect
    keep: tuple[NDArray[Any], ...]
    add: tuple[NDArray[Any], ...]


class Burner:
    """Makes frames as the encoder takes them, with the text in them."""

    def __init__(self, index: SourceIndex, settings: JobSettings, picture: Picture) -> None:
        """Raises UsageError for what can't be drawn: a font that can't be used or lacks a character, text
        that doesn't fit, a pixel format that can't be drawn on."""
        stand_in = drawable(picture.pix_fmt)
        if stand_in is None:
            raise UsageError(
                f"text can't be burnt into the pixel format {picture.pix_fmt}: choose another with --pix-fmt"
            )
        layout = layout_of(stand_in)
        assert layout is not None
        self._picture, self._canvas = picture, picture._replace(pix_fmt=stand_in)
        self._wording = Wording(index, settings)
        self._page = Page(index, settings.burn, (picture.width, picture.height), layout.block)
        self._ink = _Ink(layout, settings, picture, index.color_trc)
        self._layout = layout
        self._stamps: dict[int, tuple[str, _Stamp]] = {}  # of each line the last one: many stay as they are
        self._copier: tuple[tuple[int, int, str], Graph] | None = None
        self._page.check([self._wording.samples(line) for line in range(len(self._wording.lines))])

    @property
    def warnings(self) -> list[str]:
        """What is to be said before the work, a sentence each."""
        return self._wording.warnings

    def __call__(self, frame: av.VideoFrame, number: int, part: int) -> av.VideoFrame:
        """Frame ``number`` of the job, which is in ``part``, as a new frame."""
        drawn = conform(frame, self._canvas)
        if drawn is frame:
            drawn = self._copied(frame)
        rows = rows_of(drawn, self._layout)
        for line in range(len(self._wording.lines)):
            text = self._wording.text(line, number, part)
            if line not in self._stamps or self._stamps[line][0] != text:
                self._stamps[line] = text, self._stamp(line, text)
            self._ink.blend(rows, self._stamps[line][1])
        return conform(drawn, self._picture)

    def _stamp(self, line: int, text: str) -> _Stamp:
        mask = self._page.framed(self._page.letters.mask(text))
        return self._ink.stamp(*self._page.stored(mask, self._page.seen(line, mask)))

    def _copied(self, frame: av.VideoFrame) -> av.VideoFrame:
        """A frame with samples of its own, and all that the other one says of itself."""
        shape = frame.width, frame.height, frame.format.name
        if self._copier is None or self._copier[0] != shape:
            self._copier = shape, _copying(frame)
        graph = self._copier[1]
        graph.push(frame)
        copy = graph.pull()
        assert isinstance(copy, av.VideoFrame)
        copy.pts, copy.time_base = frame.pts, frame.time_base
        return copy


def _copying(frame: av.VideoFrame) -> Graph:
    graph = Graph()
    graph.threads = 1
    source = graph.add(
        "buffer",
        f"video_size={frame.width}x{frame.height}:pix_fmt={frame.format.name}:time_base={frame.time_base}"
        f":pixel_aspect=1/1:colorspace={int(frame.colorspace)}:range={int(frame.color_range)}",
    )
    graph.link_nodes(source, graph.add("copy"), graph.add("buffersink")).configure()
    return graph


class _Ink:
    """The colours of text and box in one pixel format."""

    def __init__(self, layout: Layout, settings: JobSettings, picture: Picture, color_trc: int) -> None:
        self._layout = layout
        *box, self._opacity = settings.burn.box or (0, 0, 0, 0)
        self._text, self._box = (
            codes_of(
                color,
                layout,
                height=picture.height,
                color_range=picture.color_range,
                colorspace=picture.colorspace,
                color_trc=color_trc,
            )
            for color in (settings.burn.color, box)
        )

    def stamp(self, mask: Mask, rect: Rect) -> _Stamp:
        """Of a mask with its box. The text lies on the box, and the box on the picture."""
        keep, add = [], []
        for number, channel in enumerate(self._layout.channels):
            cover, whole = _summed(mask, channel)  # how much of a sample is text, of how much
            free = whole - cover
            kept = (_OPAQUE - self._opacity) * free
            added = self._opacity * free * self._box[number] + _OPAQUE * cover * self._text[number]
            if self._layout.is_float:
                keep.append(kept / (_OPAQUE * whole))
                add.append(added / (_OPAQUE * whole))
            else:
                kind = np.uint32 if _fits(channel, whole) else np.uint64
                keep.append(kept.astype(kind))
                add.append((added + _OPAQUE * whole // 2).astype(kind))
        return _Stamp(rect, tuple(keep), tuple(add))

    def blend(self, rows: list[NDArray[Any]], stamp: _Stamp) -> None:
        """Into the planes of a frame."""
        x, y, width, height = stamp.rect
        for channel, keep, add in zip(self._layout.channels, stamp.keep, stamp.add, strict=True):
            left, right = (column // channel.across * channel.step for column in (x, x + width))
            top, bottom = y // channel.down, (y + height) // channel.down
            samples = rows[channel.plane][top:bottom, left + channel.offset : right : channel.step]
            if self._layout.is_float:
                samples[...] = samples * keep + add
                continue
            mixed = (samples.astype(keep.dtype) >> channel.shift) * keep
            mixed += add
            mixed //= keep.dtype.type(_OPAQUE * _OPAQUE * channel.across * channel.down)
            samples[...] = mixed << channel.shift


def _summed(mask: Mask, channel: Channel) -> tuple[NDArray[np.int64], int]:
    """For every sample the mask of its pixels added up, and what that is where all of it is covered."""
    across, down = channel.across, channel.down
    summed = np.zeros((mask.shape[0] // down, mask.shape[1] // across), np.int64)
    for row in range(down):
        for column in range(across):
            summed += mask[row::down, column::across]
    return summed, _OPAQUE * across * down


def _fits(channel: Channel, whole: int) -> bool:
    """Whether blending never needs more than 32 bits."""
    return ((1 << channel.bits) - 1) * _OPAQUE * whole + _OPAQUE * whole // 2 <= _UINT32_MAX
