"""The timeline of all workers: an axis, and a row of cells for each worker in view.

Rule of this file: cells are computed for rows in view only, and again only when something in them changed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from rich.text import Text
from textual.strip import Strip

from console.theme import SYMBOLS, Look, Mark
from console.timeline import Span, WorkerModel
from console.widgets.lines import Line, fit
from console.widgets.row_list import RowList
from console.widgets.time_window import Cells
from console.widgets.timeline import draw_cells
from console.widgets.view import worker_cells


@dataclass(frozen=True, slots=True)
class AxisRow:
    text: str


@dataclass(frozen=True, slots=True)
class SpanRow:
    """A worker's row. ``chosen``: the cells ``[start, stop)`` of the span under the cursor."""

    name: str
    state: str
    mark: Mark | None  #: None: nothing that calls for attention
    cells: bytes
    selected: bool
    chosen: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells; 0 leaves a column out."""

    name: int
    state: int
    chart: int

    @staticmethod
    def of(width: int) -> Columns:
        name, state = (12, 11) if width >= 110 else (8, 10) if width >= 74 else (6, 0)
        return Columns(name, state, max(width - name - state - 2, 0))

    @property
    def before(self) -> int:
        """Cells left of the chart."""
        return 2 + self.name + self.state


class SpanChart(RowList):
    """An ``AxisRow`` and a ``SpanRow`` for each worker in view."""

    def draw(self, row: Hashable, width: int) -> Strip:
        columns = Columns.of(width)
        match row:
            case AxisRow():
                line = Line(self.look.ground).pad_to(columns.before).add(row.text, self.look.muted)
                return line.strip(width)
            case SpanRow():
                return draw_spans(row, width, columns, self.look)
            case _:
                return Strip.blank(width, self.ground)


def draw_spans(row: SpanRow, width: int, columns: Columns, look: Look) -> Strip:
    line = Line(look.raised if row.selected else look.ground)
    line.add(look.pointer if row.selected else " ", look.ink(Mark.CLAIMED, bold=True)).add(" ")
    line.add(fit(row.name, columns.name - 1, look.ellipsis) + " ", look.strong if row.selected else look.text)
    if columns.state:
        style = look.muted if row.mark is None else look.ink(row.mark)
        line.add(fit(row.state, columns.state - 1, look.ellipsis).rstrip(), style)
        line.pad_to(columns.before)
    start, stop = row.chosen or (0, 0)
    draw_cells(line, row.cells[:start], look)
    draw_cells(line, row.cells[start:stop], look, chosen=True)
    draw_cells(line, row.cells[stop:], look)
    return line.strip(width)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A row as it was drawn. What began before ``settled_seconds`` can't change any more."""

    key: tuple[object, ...]
    now: float
    cells: Cells
    settled_seconds: float
    row: bytes


class SpanCells:
    """The cells of each worker, kept until what they show changes; then drawn again from where they do."""

    def __init__(self) -> None:
        self._known: dict[str, _Drawn] = {}

    def of(self, worker: WorkerModel, cells: Cells, now: float) -> bytes:
        last = worker.spans[-1] if worker.spans else None
        running = None
        if last is not None and last.stop_seconds is None:
            # A running span ends at now: before the cell that begins there, or within that cell.
            each = now / cells.seconds
            running = (min(math.floor(each), cells.last), min(math.ceil(each), cells.last))
        ends = None if last is None else (last.kind, last.stop_seconds)
        key = (cells, running, worker.spans_total, ends, worker.state, worker.since)
        known = self._known.get(worker.name)
        if known is not None and known.key == key:
            return known.row
        # Where it went back, what was drawn may be yet to come.
        kept = b"" if known is None or worker.is_gone or now < known.now else _still_true(known, cells)
        first = cells.first + len(kept)
        row = kept + worker_cells(worker, first, cells.width - len(kept), cells.seconds, now)
        # The newest two may yet be given another kind, or be dropped.
        settled = worker.spans[-3].start_seconds if len(worker.spans) > 2 else 0.0
        self._known[worker.name] = _Drawn(key, now, cells, settled, row)
        return row


def _still_true(known: _Drawn, cells: Cells) -> bytes:
    """The first cells of a row that were drawn before and hold for good."""
    before = known.cells
    skipped = cells.first - before.first
    if (before.width, before.seconds) != (cells.width, cells.seconds) or skipped < 0:
        return b""
    return known.row[skipped : max(before.cell_of(known.settled_seconds), skipped)]


def chosen_cells(span: Span, cells: Cells, now: float) -> tuple[int, int] | None:
    """The cells of a span that are in view; at least one for a moment; None: it is out of view."""
    stop = now if span.stop_seconds is None else span.stop_seconds
    low, high = cells.cell_of(span.start_seconds), cells.cell_of(stop) + 1
    if stop > span.start_seconds and stop / cells.seconds == cells.first + high - 1:
        high -= 1  # it ends where the next cell begins
    high = max(high, low + 1)
    if high <= 0 or low >= cells.width:
        return None
    return max(low, 0), min(high, cells.width)


_SIGNS = (
    (Mark.DONE, "claim"),
    (Mark.CLAIMED, "now"),
    (Mark.DUPLICATED, "duplicate"),
    (Mark.LAPSED, "lapsed"),
    (Mark.STALLED, "stalled"),
    (Mark.SPLIT, "split"),
    (Mark.FAILED, "refused, lost"),
    (Mark.IDLE, "waits"),
)


def chart_legend(look: Look, width: int) -> Text:
    """What the signs mean, for the frame of the chart; the plainest ones are left out where it is narrow."""
    plain = look.symbols or look.ascii_only
    text = Text()
    signs = list(_SIGNS)
    while signs and sum(len(name) + 4 for _, name in signs) > width:
        del signs[0]
    for number, (mark, name) in enumerate(signs):
        bar = not plain and mark in (Mark.DONE, Mark.CLAIMED, Mark.DUPLICATED)
        text.append("" if number == 0 else "  ")
        text.append("▄" if bar else SYMBOLS[mark], look.block(mark) if bar else look.ink(mark))
        text.append(" " + name, look.muted)
    return text
