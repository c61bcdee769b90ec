"""The workers: state, claim and speed on the left, what each did in the last minute on the right, on one row,
so that the eye goes from a state to its history."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip

from console.theme import Look, Mark
from console.widgets.lines import Line, fit
from console.widgets.row_list import RowList
from console.widgets.timeline import axis, draw_cells

#: Seconds of history in the timeline.
WINDOW_SECONDS = 60.0

#: States that call for attention.
_CALLING = (Mark.LAPSED, Mark.FAILED, Mark.STALLED)


@dataclass(frozen=True, slots=True)
class HeadRow:
    """The names of the columns."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker now. Texts are empty where there is nothing to say."""

    name: str
    state: str
    mark: Mark | None  #: None: nothing that calls for attention
    claim: str
    frames: str
    fps: str
    duplicates: str
    lapses: str
    selected: bool
    cells: bytes  #: of the timeline


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells; 0 leaves a column out. ``timeline`` takes what the others leave."""

    name: int
    state: int
    claim: int
    frames: int
    fps: int
    duplicates: int
    lapses: int
    timeline: int

    @staticmethod
    def of(width: int) -> Columns:
        """The columns that a widget of ``width`` cells has room for."""
        if width >= 100:
            fixed = (7, 10, 8, 9, 7, 5, 6)
        elif width >= 70:
            fixed = (6, 10, 7, 0, 6, 0, 0)
        elif width >= 50:
            fixed = (5, 9, 6, 0, 6, 0, 0)
        else:
            fixed = (5, 9, 0, 0, 6, 0, 0)
        return Columns(*fixed, timeline=max(width - sum(fixed) - 4, 0))


class Workers(RowList):
    """A ``HeadRow`` and a ``WorkerRow`` for each worker in view."""

    def draw(self, row: Hashable, width: int) -> Strip:
        match row:
            case HeadRow():
                return draw_head(width, self.look)
            case WorkerRow():
                return draw_worker(row, width, self.look)
            case _:
                return Strip.blank(width, self.ground)


def draw_head(width: int, look: Look) -> Strip:
    columns = Columns.of(width)
    line = Line(look.ground).add("  ")
    line.add(("worker" if columns.name > 6 else "id").ljust(columns.name), look.muted)
    line.add("state".ljust(columns.state), look.muted)
    for name, size in (
        ("claim", columns.claim),
        ("frames", columns.frames),
        ("fps", columns.fps),
        ("dup", columns.duplicates),
        ("lapse", columns.lapses),
    ):
        line.add(name.rjust(size) if size else "", look.muted)
    line.add("  ").add(axis(columns.timeline, WINDOW_SECONDS), look.muted)
    return line.strip(width)


def draw_worker(row: WorkerRow, width: int, look: Look) -> Strip:
    columns = Columns.of(width)
    ground = look.raised if row.selected else look.ground
    line = Line(ground)
    line.add(look.pointer if row.selected else " ", look.ink(Mark.CLAIMED, bold=True)).add(" ")
    line.add(fit(row.name, columns.name - 1, look.ellipsis) + " ", look.strong if row.selected else look.text)
    style = look.muted if row.mark is None else look.ink(row.mark, bold=row.mark in _CALLING)
    word = fit(row.state, columns.state, look.ellipsis)
    if row.mark is Mark.FAILED:
        line.add(word.rstrip(), style).pad_to(2 + columns.name + columns.state)
    else:
        line.add(word, style)
    line.add(fit(row.claim, columns.claim, look.ellipsis, right=True), look.text)
    line.add(fit(row.frames, columns.frames, look.ellipsis, right=True), look.muted)
    line.add(fit(row.fps, columns.fps, look.ellipsis, right=True), look.text)
    line.add(fit(row.duplicates, columns.duplicates, right=True), _count_style(row.duplicates, look))
    line.add(fit(row.lapses, columns.lapses, right=True), _count_style(row.lapses, look, Mark.LAPSED))
    line.add("  ")
    draw_cells(line, row.cells[-columns.timeline :] if columns.timeline else b"", look)
    return line.strip(width)


def _count_style(text: str, look: Look, mark: Mark = Mark.DUPLICATED) -> Style:
    return look.faint if text in ("", "0") else look.ink(mark)
