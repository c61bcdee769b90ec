"""The runs of a comparison as a table: a row a run, its place, and its figures.

Rules of this file:
- columns that matter least go first where there is no room; the run's name takes what is left;
- the best figure of a column is bold; the place is told in words, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from textual.strip import Strip

from console import text
from console.contest import Figures
from console.theme import Look, Mark
from console.widgets.header import BAR
from console.widgets.lines import Line, fit
from console.widgets.row_list import RowList

_PLACES = ("", "1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th")


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    cells: int
    from_width: int  #: of the widget, below which the column is left out


BAR_COLUMN = Column("", 16, 116)
COLUMNS = (
    Column("finished", 10, 0),
    Column("ratio", 8, 40),
    Column("wasted", 8, 58),
    Column("claims", 8, 62),
    Column("dup", 6, 58),
    Column("split", 7, 100),
    Column("lapse", 7, 58),
    Column("idle", 10, 72),
)


@dataclass(frozen=True, slots=True)
class TitlesRow:
    """The names of the columns."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """``values`` in the order of ``COLUMNS``; ``best``: which of them no other run beats."""

    number: int
    name: str
    place: int  #: from 1; 0: none yet
    progress: float  #: 0..1
    over: bool
    values: tuple[str, ...]
    best: frozenset[int]
    selected: bool


class Standings(RowList):
    """A ``TitlesRow`` and a ``RunRow`` for each run."""

    class Picked(RowList.Picked):
        """A row was clicked."""

    def draw(self, row: Hashable, width: int) -> Strip:
        match row:
            case TitlesRow():
                return draw_titles(width, self.look)
            case RunRow():
                return draw_run(row, width, self.look)
            case _:
                return Strip.blank(width, self.ground)


def run_values(figures: Figures, over: bool) -> tuple[str, ...]:
    """Texts in the order of ``COLUMNS``. A run under way shows how far it is where its time will be."""
    if figures.seconds is not None:
        finished = text.seconds(figures.seconds)
    elif over:
        finished = "not done"
    else:
        finished = text.share(figures.progress, 1.0)
    return (
        finished,
        "-" if figures.ratio is None else f"{figures.ratio:.3f}",
        text.share(figures.wasted_share, 1.0),
        text.count(figures.claims),
        text.count(figures.duplicates),
        text.count(figures.splits),
        text.count(figures.lapses),
        text.seconds(figures.idle_seconds),
    )


def best_of(figures: Sequence[Figures]) -> list[frozenset[int]]:
    """For each run the columns in which it is best; none where all are alike, or where a number alone is
    neither good nor bad (claims, duplicates, splits)."""
    found: list[set[int]] = [set() for _ in figures]
    columns = (
        [run.seconds for run in figures],
        [run.ratio for run in figures],
        [run.wasted_share for run in figures],
        None,
        None,
        None,
        [float(run.lapses) for run in figures],
        [run.idle_seconds for run in figures],
    )
    for column, values in enumerate(columns):
        known = [value for value in values or () if value is not None]
        if values is None or len(known) < 2 or min(known) == max(known):
            continue
        least = min(known)
        for number, value in enumerate(values):
            if value == least:
                found[number].add(column)
    return [frozenset(columns) for columns in found]


def _columns(width: int) -> tuple[list[int], bool, int]:
    """Indices of the columns that fit, whether the bar does, and the cells of the name."""
    shown = [number for number, column in enumerate(COLUMNS) if width >= column.from_width]
    bar = width >= BAR_COLUMN.from_width
    taken = sum(COLUMNS[number].cells for number in shown) + (BAR_COLUMN.cells if bar else 0)
    return shown, bar, max(width - taken - 8, 4)


def draw_titles(width: int, look: Look) -> Strip:
    shown, bar, name = _columns(width)
    line = Line(look.ground).add("    ").add(fit("run", name), look.muted)
    line.add(" " * 4 + (" " * BAR_COLUMN.cells if bar else ""))
    for number in shown:
        line.add(COLUMNS[number].title.rjust(COLUMNS[number].cells), look.muted)
    return line.strip(width)


def draw_run(row: RunRow, width: int, look: Look) -> Strip:
    shown, bar, name = _columns(width)
    line = Line(look.raised if row.selected else look.ground)
    line.add(look.pointer if row.selected else " ", look.ink(Mark.CLAIMED, bold=True))
    line.add(f"{row.number}  ", look.text if row.selected else look.muted)
    line.add(fit(row.name, name, look.ellipsis), look.strong if row.selected else look.text)
    place = _PLACES[row.place] if row.place < len(_PLACES) else ""
    line.add(f"{place:>4}", look.ink(Mark.DONE, bold=True) if row.place == 1 else look.muted)
    if bar:
        _add_bar(line, row, look)
    for number in shown:
        value = fit(row.values[number], COLUMNS[number].cells, look.ellipsis, right=True)
        if number == 0 and not row.over:
            line.add(value, look.muted)
        else:
            line.add(value, look.strong if number in row.best else look.text)
    return line.strip(width)


def _add_bar(line: Line, row: RunRow, look: Look) -> None:
    width = BAR_COLUMN.cells - 2
    done = int(row.progress * width + 1e-9)
    plain = look.symbols or look.ascii_only
    line.add("  ")
    line.add(("#" if plain else BAR) * done, look.ink(Mark.DONE) if plain else look.block(Mark.DONE))
    line.add(
        ("." if plain else BAR) * (width - done), look.ink(Mark.OPEN) if plain else look.block(Mark.OPEN)
    )
