"""Runs one above the other on one time axis: a band for each, with a row for each of its workers or, where
there is no room for that, the whole fleet condensed to a few rows.

Rules of this file:
- all bands share one axis of whole cells; what lies beyond the present is not drawn, it has not happened;
- a condensed band shows how many of the fleet are at work, from the bottom up; trouble is never averaged
  away: a column in which anybody lapsed, stalled or died says so in its top row;
- the lower bound is a thin line through everything that is blank.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby

from textual.strip import Strip

from console import text
from console.theme import SYMBOLS, Look, Mark
from console.widgets.lines import Line, clip, fit
from console.widgets.row_list import RowList
from console.widgets.timeline import draw_cells

#: A condensed band is not worth more rows than this.
STACK_ROWS_MAX = 6
STEPS = 8  #: of a cell's height
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LEVEL, _MARK_SHIFT = 0x0F, 4
#: A timeline's cells (console.widgets.timeline) without their flags.
_MARKS_ONLY = bytes(code & 0x3F for code in range(256))
_TROUBLE = (Mark.FAILED, Mark.LAPSED, Mark.STALLED)
_TICKS_SECONDS = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400),
)
_TICK_CELLS = 12


@dataclass(frozen=True, slots=True)
class Axis:
    """``width`` cells of ``cell_seconds``, the first of which is cell ``first`` of the comparison's time."""

    first: int
    cell_seconds: float
    width: int

    @property
    def start(self) -> float:
        return self.first * self.cell_seconds

    @property
    def stop(self) -> float:
        return (self.first + self.width) * self.cell_seconds

    def cell(self, at: float) -> int | None:
        """The cell of a moment; None where it is out of view."""
        cell = math.floor(at / self.cell_seconds) - self.first
        return cell if 0 <= cell < self.width else None


@dataclass(frozen=True, slots=True)
class RulerRow:
    labels: str
    now: int | None  #: cell of the present, while it moves


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The name of a run over its band."""

    number: int
    name: str
    note: str
    selected: bool
    first: bool  #: it leads, or has won
    bound: int | None  #: cell


@dataclass(frozen=True, slots=True)
class WorkerBand:
    label: str
    cells: bytes  #: as for ``console.widgets.timeline.draw_cells``
    selected: bool
    bound: int | None  #: cell


@dataclass(frozen=True, slots=True)
class StackBand:
    """One row of a condensed band: a byte a cell, mark and height in eighths."""

    label: str
    cells: bytes
    selected: bool
    bound: int | None
    alone: bool = False  #: all there is of its run, without a head


def gutter_of(width: int) -> int:
    """Cells for the names on the left."""
    return 10 if width >= 100 else 8 if width >= 60 else 5


class Bands(RowList):
    """Rows of ``RulerRow``, ``HeadRow``, ``WorkerBand`` and ``StackBand``; None is a blank one."""

    class Picked(RowList.Picked):
        """A row was clicked."""

    class Scrolled(RowList.Scrolled):
        """The wheel asks for ``steps`` along the axis."""

    def draw(self, row: Hashable, width: int) -> Strip:
        match row:
            case RulerRow():
                return draw_ruler(row, width, self.look)
            case HeadRow():
                return draw_head(row, width, self.look)
            case WorkerBand():
                return draw_worker(row, width, self.look)
            case StackBand():
                return draw_stack(row, width, self.look)
            case _:
                return Strip.blank(width, self.ground)


# --- rows ------------------------------------------------------------------------------------------------


def share_rows(workers: Sequence[int], rows: int) -> list[int]:
    """How many rows each band gets, its head included, of ``rows`` in all; 0 for bands that have no room.

    Every band gets one row before any gets two; then all grow alike, up to a row for each worker.
    """
    shares = [0] * len(workers)
    wanted = [1 + max(count, 1) for count in workers]
    left = max(rows, 0)
    while left:
        hungry = [n for n in range(len(shares)) if shares[n] < wanted[n]]
        if not hungry:
            break
        least = min(shares[n] for n in hungry)
        for number in hungry:
            if shares[number] == least and left:
                shares[number] += 1
                left -= 1
    return [
        share if share >= want else min(share, 1 + STACK_ROWS_MAX)
        for share, want in zip(shares, wanted, strict=True)
    ]


def stack_rows(columns: Sequence[bytes], rows: int) -> list[bytes]:
    """A fleet's timelines, one a worker and all of one width, as ``rows`` rows of a condensed band."""
    if not columns or rows < 1:
        return [b""] * max(rows, 0)
    width, total = len(columns[0]), len(columns)
    stacked = [bytearray(width) for _ in range(rows)]
    masked = [column.translate(_MARKS_ONLY) for column in columns]
    before: tuple[int, ...] = ()
    for cell, marks in enumerate(zip(*masked, strict=True)):
        if marks == before:  # most columns are like the one before
            for row in stacked:
                row[cell] = row[cell - 1]
            continue
        before = marks
        doubled = marks.count(Mark.DUPLICATED)
        working = marks.count(Mark.CLAIMED) + marks.count(Mark.DONE)
        trouble = next((mark for mark in _TROUBLE if mark in marks), None)
        running = Mark.CLAIMED if Mark.CLAIMED in marks else Mark.DONE
        _stack_cell(stacked, cell, total, working, doubled, trouble, running)
    return [bytes(row) for row in stacked]


def _stack_cell(
    stacked: list[bytearray],
    cell: int,
    total: int,
    working: int,
    doubled: int,
    trouble: Mark | None,
    running: Mark,
) -> None:
    rows = len(stacked)
    height = rows * STEPS
    top = 0 if working + doubled == 0 else max(round((working + doubled) / total * height), 1)
    plain = min(round(working / total * height), top)
    if doubled:
        plain = min(plain, top - 1)  # a single duplicate among many workers is seen
    for row in range(rows):
        base = (rows - 1 - row) * STEPS
        level = min(max(top - base, 0), STEPS)
        mark = running if plain - base >= level else Mark.DUPLICATED
        stacked[row][cell] = mark << _MARK_SHIFT | level if level else 0
    if trouble is not None:
        stacked[0][cell] = trouble << _MARK_SHIFT | STEPS


def ruler(axis: Axis) -> str:
    """Times along the axis, each at the cell where it is."""
    label = [" "] * axis.width
    if axis.width < 4:
        return "".join(label)
    step = next(
        (step for step in _TICKS_SECONDS if step >= axis.cell_seconds * _TICK_CELLS), _TICKS_SECONDS[-1]
    )
    number = math.ceil(axis.start / step - 1e-9)
    while (at := number * step) < axis.stop:
        place = math.floor(at / axis.cell_seconds + 1e-9) - axis.first
        words = "'" + _tick_text(at, step)
        if place >= 0 and place + len(words) <= axis.width:
            label[place : place + len(words)] = words
        number += 1
    return "".join(label)


def _tick_text(at: float, step: float) -> str:
    return f"{at:.1f} s" if step < 1 else text.about(at)


# --- drawing ---------------------------------------------------------------------------------------------


def draw_ruler(row: RulerRow, width: int, look: Look) -> Strip:
    line = Line(look.ground).add(" " * gutter_of(width))
    if row.now is None or row.now >= len(row.labels):
        return line.add(row.labels, look.muted).strip(width)
    line.add(row.labels[: row.now], look.muted)
    line.add("|" if look.ascii_only else "▼", look.ink(Mark.CLAIMED, bold=True))
    return line.add(row.labels[row.now + 1 :], look.muted).strip(width)


def draw_head(row: HeadRow, width: int, look: Look) -> Strip:
    line = Line(look.raised if row.selected else look.ground)
    line.add(look.pointer if row.selected else " ", look.ink(Mark.CLAIMED, bold=True))
    line.add(f"{row.number} ", look.text if row.selected else look.muted)
    room = width - line.cells - (text.width(row.note) + 3 if row.note else 0)
    line.add(clip(row.name, max(room, 4), look.ellipsis), look.strong if row.selected else look.text)
    if row.note:
        style = look.ink(Mark.DONE, bold=True) if row.first else look.muted
        line.add("  ").add(clip(row.note, max(width - line.cells, 0), look.ellipsis), style)
    if row.bound is not None and line.cells < gutter_of(width) + row.bound:
        line.pad_to(gutter_of(width) + row.bound).add(_bound_glyph(look), look.faint)
    return line.strip(width)


def draw_worker(row: WorkerBand, width: int, look: Look) -> Strip:
    line = _labelled(row.label, row.selected, width, look)
    cells = row.cells[: max(width - line.cells, 0)]
    used = len(cells.rstrip(b"\0"))
    draw_cells(line, cells[:used], look)
    _add_bound(line, row.bound, used, width, look)
    return line.strip(width)


def draw_stack(row: StackBand, width: int, look: Look) -> Strip:
    line = _labelled(row.label, row.selected, width, look)
    cells = row.cells[: max(width - line.cells, 0)]
    used = len(cells.rstrip(b"\0"))
    plain = look.symbols or look.ascii_only
    for code, run in groupby(cells[:used]):
        count = sum(1 for _ in run)
        mark, level = Mark(code >> _MARK_SHIFT), code & _LEVEL
        if not level:
            line.add(" " * count)
        elif mark in _TROUBLE:
            line.add(SYMBOLS[mark] * count, look.ink(mark, bold=True))
        elif plain:
            line.add((SYMBOLS[mark] if level > STEPS // 2 else "-") * count, look.ink(mark))
        else:
            line.add(_EIGHTHS[level] * count, look.block(mark))
    _add_bound(line, row.bound, used, width, look)
    return line.strip(width)


def _labelled(label: str, selected: bool, width: int, look: Look) -> Line:
    gutter = gutter_of(width)
    line = Line(look.ground).add(" " if gutter > 5 else "")
    line.add(fit(label, gutter - line.cells - 1, look.ellipsis), look.text if selected else look.muted)
    return line.add(" ")


def _add_bound(line: Line, bound: int | None, used: int, width: int, look: Look) -> None:
    """The lower bound, where the band is blank at its end."""
    if bound is not None and used <= bound < width - gutter_of(width):
        line.pad_to(gutter_of(width) + bound).add(_bound_glyph(look), look.faint)


def _bound_glyph(look: Look) -> str:
    return ":" if look.ascii_only else "┊"
