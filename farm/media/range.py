"""What of the other streams belongs to a range of the input that was cut out: packets, lines and chapters.

Rules of this file:
- sound is cut to the packet, its times stay exact: a packet belongs where the greater part of it lies. Some
  packets before the first one are kept for the decoder to be warm; the output hides them, or leaves them out
  once they are encoded (farm.media.carry);
- a line that is shown when the range begins is shown from there on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import av
from av.stream import Stream

from farm.source import SourceIndex

if TYPE_CHECKING:  # PyAV has it in its stubs only
    from av.container.core import Chapter

_Packets: TypeAlias = "Iterator[av.Packet[Stream]]"
#: What a decoder may need to be right from the first packet on: two for AAC, 80 ms for Opus.
_WARM_UP_PACKETS = 4


class Window(NamedTuple):
    """A range of the input's time, in seconds; ``stop`` is None where that is the end."""

    start: Fraction
    stop: Fraction | None


def window_of(index: SourceIndex) -> Window | None:
    """What a job takes of its input's time; None: all."""
    if index.cut is None:
        return None
    tick = Fraction(*index.time_base)
    start, stop = index.cut
    return Window(start * tick, None if stop is None else stop * tick)


def within(packets: _Packets, window: Window, kind: str) -> _Packets:
    """Those of the packets, which have times, that belong to the range; of sound, a few before it, too.

    Nothing comes out if nothing of the range is there.
    """
    return _sound_within(packets, window) if kind == "audio" else _lines_within(packets, window)


def _sound_within(packets: _Packets, window: Window) -> _Packets:
    before: deque[av.Packet[Stream]] = deque(maxlen=_WARM_UP_PACKETS)
    begun = False
    for packet in packets:
        start, end = _span(packet)
        middle = (start + end) / 2
        if window.stop is not None and middle >= window.stop:
            if start >= window.stop:  # packets of sound come in the order of their times
                return
            continue
        if middle < window.start:
            before.append(packet)
            continue
        if not begun:
            yield from before
            begun = True
        yield packet


def _lines_within(packets: _Packets, window: Window) -> _Packets:
    for packet in packets:
        start, end = _span(packet)
        if (start < window.start and end <= window.start) or (
            window.stop is not None and start >= window.stop
        ):
            continue
        assert packet.pts is not None
        first = -(-window.start // packet.time_base) if start < window.start else packet.pts
        last = packet.pts + (packet.duration or 0)
        if window.stop is not None:
            last = min(last, window.stop // packet.time_base)
        packet.pts = packet.dts = first
        packet.duration = max(0, last - first)
        yield packet


def _span(packet: av.Packet[Stream]) -> tuple[Fraction, Fraction]:
    start = (packet.pts or 0) * packet.time_base
    return start, start + (packet.duration or 0) * packet.time_base


def within_chapters(chapters: Sequence[Chapter], window: Window | None) -> list[Chapter]:
    """The chapters, or their parts, that lie in the range, at their own times."""
    if window is None:
        return list(chapters)
    kept: list[Chapter] = []
    for chapter in chapters:
        tick = chapter["time_base"] or Fraction(1)
        start = max(chapter["start"], round(window.start / tick))
        end = chapter["end"] if window.stop is None else min(chapter["end"], round(window.stop / tick))
        if start < end:
            kept.append({**chapter, "start": start, "end": end})
    return kept
