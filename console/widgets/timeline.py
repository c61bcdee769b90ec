"""Time as cells: what a worker did in each slice of the last minute.

Rules of this file:
- cells lie on a fixed grid of time (cell n is ``[n, n + 1) * cell_seconds``), so that spans don't flicker as
  the window moves; the window moves by whole cells;
- a running span is drawn up to now, whatever was last heard;
- a moment (a lapse, a refusal) takes at least one cell and is never painted over by what goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby

from rich.style import Style

from console.theme import SYMBOLS, Look, Mark
from console.timeline import Span
from console.widgets.lines import Line

#: Flags of a cell, beside its mark.
_STARTS = 0x40  #: a claim begins here
_WAITS = 0x80  #: the claim's overhead: held, no frame yet
_MARK = 0x3F

_MOMENTS = {Mark.LAPSED, Mark.FAILED, Mark.SPLIT}
_MOMENT_KINDS = ("refused", "split")
_CLAIMS = ("claim", "duplicate")


def cell_window(now: float, width: int, seconds: float) -> tuple[int, float]:
    """First cell and the seconds a cell stands for, of a window of ``width`` cells that ends with now."""
    cell_seconds = seconds / max(width, 1)
    return math.floor(now / cell_seconds) - width + 1, cell_seconds


def timeline_cells(
    spans: Sequence[Span], first: int, width: int, cell_seconds: float, now: float, overhead_seconds: float
) -> bytes:
    """One byte a cell, for ``draw_cells``. ``spans`` from old to new."""
    cells = bytearray(width)
    if width <= 0:
        return bytes(cells)
    window_start = first * cell_seconds
    seen: list[Span] = []
    claim = None  #: label of the claim span before
    for span in reversed(spans):
        if span.stop_seconds is not None and span.stop_seconds < window_start:
            if span.kind in _CLAIMS:
                claim = span.label
                break
            if span.kind not in _MOMENT_KINDS:
                break
        else:
            seen.append(span)
    for span in reversed(seen):
        starts = span.kind in _CLAIMS and span.label != claim
        claim = span.label if span.kind in _CLAIMS else claim
        _paint(cells, span, first, cell_seconds, now, overhead_seconds if starts else None)
    return bytes(cells)


def _paint(
    cells: bytearray, span: Span, first: int, cell_seconds: float, now: float, overhead_seconds: float | None
) -> None:
    """``overhead_seconds``: of a claim that begins with this span; None for what goes on after a break."""
    running = span.stop_seconds is None
    stop = now if span.stop_seconds is None else min(span.stop_seconds, now)
    low = math.floor(span.start_seconds / cell_seconds) - first
    high = max(math.ceil(stop / cell_seconds) - first, low + 1)
    if low >= len(cells) or high <= 0:
        return
    begin, end = max(low, 0), min(high, len(cells))
    mark = _mark(span, running)
    if span.kind in _MOMENT_KINDS:
        cells[min(begin, len(cells) - 1)] = mark
        return
    if cells[begin] & _MARK in _MOMENTS:
        begin += 1
    if begin >= end:
        return
    cells[begin:end] = bytes([mark]) * (end - begin)
    if overhead_seconds is not None:
        works_from = min(span.start_seconds + overhead_seconds, stop)
        waits = min(math.floor(works_from / cell_seconds) - first, end)
        for cell in range(begin, max(waits, begin)):
            cells[cell] |= _WAITS
        if low >= 0:
            cells[begin] |= _STARTS


def _mark(span: Span, running: bool) -> Mark:
    if span.kind == "claim":
        return Mark.CLAIMED if running else Mark.DONE
    return {
        "duplicate": Mark.DUPLICATED,
        "lapsed": Mark.LAPSED,
        "refused": Mark.FAILED,
        "split": Mark.SPLIT,
        "idle": Mark.IDLE,
        "stalled": Mark.STALLED,
    }[span.kind]


def draw_cells(line: Line, cells: Iterable[int], look: Look, *, chosen: bool = False) -> None:
    """Append the cells: bars with a gap where a claim begins, or one symbol a cell. ``chosen``: in reverse
    video, which shows without colour, too."""
    signs = _signs(look, chosen)
    for code, run in groupby(cells):
        sign = signs.get(code)
        if sign is None:
            sign = signs[code] = _sign(code, look, chosen)
        line.add(sign[0] * len(list(run)), sign[1])


@lru_cache(maxsize=16)
def _signs(look: Look, chosen: bool) -> dict[int, tuple[str, Style]]:
    """Glyph and style of the cells by their byte, filled as they are met."""
    return {}


def _sign(code: int, look: Look, chosen: bool) -> tuple[str, Style]:
    mark, over = Mark(code & _MARK), Style(reverse=True) if chosen else Style.null()
    if mark is Mark.BLANK:
        return " ", over
    if look.symbols or look.ascii_only:
        return _symbol(code, mark), look.ink(mark) + over
    if mark in (Mark.CLAIMED, Mark.DONE, Mark.DUPLICATED):
        glyph = "▗" if code & _STARTS else "▄"
        return glyph, look.block(mark, 0.3 if code & _WAITS else 1.0) + over
    symbol = "·" if mark is Mark.IDLE else SYMBOLS[mark]
    return symbol, (look.faint if mark is Mark.IDLE else look.ink(mark, bold=True)) + over


def _symbol(code: int, mark: Mark) -> str:
    if code & _STARTS:
        return "|"
    return "-" if code & _WAITS else SYMBOLS[mark]


def axis(width: int, seconds: float) -> str:
    """``-60s      -45s      -30s      -15s     now`` in ``width`` cells."""
    text = [" "] * width
    for quarter in (0.75, 0.5, 0.25):
        label = f"-{seconds * quarter:.0f}s"
        place = round(width * (1 - quarter)) - len(label) // 2
        if width >= 40 and 0 <= place <= width - len(label) - 4:
            text[place : place + len(label)] = label
    label = f"-{seconds:.0f}s"
    if width >= len(label) + 5:
        text[: len(label)] = label
    if width >= 3:
        text[-3:] = "now"
    return "".join(text)
