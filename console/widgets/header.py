"""The head of a screen: whose run this is, how far it is, and its counts. Three rows without frames."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rich.cells import cell_len
from textual.strip import Strip

from console.theme import SYMBOLS, Look, Mark, blend
from console.widgets.lines import Line, LineWidget, clip
from console.widgets.replay_bar import ReplayRow, draw_replay

#: What bars are made of: not the whole height of a row, so that they stand clear of the row above.
BAR = "▆"
#: Steps in which the edge of a bar crosses a cell.
SUBCELLS = 8


@dataclass(frozen=True, slots=True)
class TitleRow:
    """``facts`` are dropped from the right where there is no room; the name is cut last."""

    name: str
    badge: str  #: LIVE, PAUSED, …
    badge_mark: Mark
    facts: tuple[str, ...]
    clock: str


@dataclass(frozen=True, slots=True)
class BarRow:
    """Shares of the whole in 0..1: ``done`` from the left, then ``rendered``, then ``duplicated``."""

    done: float
    rendered: float
    duplicated: float
    percent: str
    remarks: tuple[str, ...]  #: the same thing said at falling length; the longest that fits is shown


@dataclass(frozen=True, slots=True)
class Count:
    """A number with its name in two lengths. A ``mark`` puts the state's symbol before it."""

    name: str
    short: str
    value: str
    mark: Mark | None = None
    alert: bool = False  #: drawn in the state's ink
    spare: bool = False  #: left out before names are shortened


@dataclass(frozen=True, slots=True)
class CountsRow:
    counts: tuple[Count, ...]
    trend: str = ""  #: of the throughput, at the right end; left out before a count that is needed


class Header(LineWidget):
    """Rows of ``TitleRow``, ``BarRow`` or ``ReplayRow``, and ``CountsRow``."""

    def draw(self, row: Hashable, width: int) -> Strip:
        match row:
            case TitleRow():
                return draw_title(row, width, self.look)
            case BarRow():
                return draw_bar(row, width, self.look)
            case CountsRow():
                return draw_counts(row, width, self.look)
            case ReplayRow():
                return draw_replay(row, width, self.look)
            case _:
                return Strip.blank(width, self.ground)


def draw_title(row: TitleRow, width: int, look: Look) -> Strip:
    """`` name  LIVE  fact · fact            clock ``"""
    line = Line(look.ground)
    badge = f" {row.badge} "
    brand = "uneven  " if width >= 100 else ""
    fixed = 1 + len(brand) + 2 + cell_len(badge) + 2 + cell_len(row.clock) + 1
    name = clip(row.name, max(width - fixed, 8), look.ellipsis)
    line.add(" ").add(brand, look.muted).add(name, look.strong).add("  ")
    line.add(badge, look.badge(row.badge_mark))
    room = width - line.cells - cell_len(row.clock) - 4
    for number, fact in enumerate(row.facts):
        text = ("   " if number == 0 else f" {look.dot} ") + fact
        if cell_len(text) > room:
            break
        line.add(text, look.muted)
        room -= cell_len(text)
    clock_at = width - cell_len(row.clock) - 1
    if line.cells < clock_at:
        line.pad_to(clock_at).add(row.clock, look.text)
    return line.strip(width)


def draw_bar(row: BarRow, width: int, look: Look) -> Strip:
    """The bar, its percentage and what is said about the end; the bar keeps at least a third of the width."""
    percent = f" {row.percent:>6}"
    room = width - width // 3 - cell_len(percent) - 4
    remark = next((text for text in row.remarks if cell_len(text) <= room), "")
    tail = cell_len(percent) + (cell_len(remark) + 3 if remark else 0)
    bar_width = max(width - 2 - tail, 0)
    line = Line(look.ground).add(" ")
    if look.symbols or look.ascii_only:
        _symbol_bar(line, row, bar_width, look)
    else:
        _block_bar(line, row, bar_width, look)
    line.add(percent, look.strong)
    if remark:
        line.add("   " + remark, look.text)
    return line.strip(width)


def _edges(row: BarRow, width: int, steps: int) -> tuple[int, int, int]:
    """Where done, rendered and duplicated end, in ``steps`` a cell; done is never rounded up to the end."""

    def edge(share: float) -> int:
        return int(min(share, 1.0) * width * steps + 1e-6)

    done = edge(row.done)
    rendered = max(done, edge(row.done + row.rendered))
    return done, rendered, max(rendered, edge(row.done + row.rendered + row.duplicated))


def _symbol_bar(line: Line, row: BarRow, width: int, look: Look) -> None:
    inner = max(width - 2, 0)
    start = 0
    line.add("[", look.muted)
    for mark, stop in zip((Mark.DONE, Mark.CLAIMED, Mark.DUPLICATED), _edges(row, inner, 1), strict=True):
        line.add(SYMBOLS[mark] * (stop - start), look.ink(mark))
        start = stop
    line.add(SYMBOLS[Mark.OPEN] * (inner - start), look.ink(Mark.OPEN)).add("]", look.muted)


def _block_bar(line: Line, row: BarRow, width: int, look: Look) -> None:
    """Runs of one colour; a cell in which one state ends and the next begins is a mix of both."""
    edges = (*_edges(row, width, SUBCELLS), width * SUBCELLS)
    marks = (Mark.DONE, Mark.CLAIMED, Mark.DUPLICATED, Mark.OPEN)
    at = 0
    for index, (mark, edge) in enumerate(zip(marks, edges, strict=True)):
        whole, rest = divmod(max(edge - at, 0), SUBCELLS)
        line.add(BAR * whole, look.block(mark))
        at += whole * SUBCELLS
        if rest:
            after = next(m for m, e in zip(marks[index:], edges[index:], strict=True) if e > edge)
            mixed = blend(look.fill(after), look.fill(mark), rest / SUBCELLS)
            line.add(BAR, look.on(mixed, look.palette.background))
            at += SUBCELLS


def draw_counts(row: CountsRow, width: int, look: Look) -> Strip:
    """Long names where they fit, else without the spare counts, else short names; what still does not fit is
    left out from the right."""
    needed = [count for count in row.counts if not count.spare]
    for counts, short in ((row.counts, False), (needed, False), (row.counts, True), (needed, True)):
        line = Line(look.ground)
        if all(_add_count(line, count, width, look, short=short) for count in counts):
            break
    at = width - cell_len(row.trend) - 1
    if row.trend and line.cells + 2 <= at:
        line.pad_to(at).add(row.trend, look.ink(Mark.CLAIMED))
    return line.strip(width)


def _add_count(line: Line, count: Count, width: int, look: Look, *, short: bool) -> bool:
    """False, and nothing added, where there is no room."""
    gap = " " if not line.cells else "  " if short else "   "
    name = count.short if short else count.name
    symbol = "" if count.mark is None else SYMBOLS[count.mark] + " "
    needed = len(gap) + len(symbol) + cell_len(name) + 1 + cell_len(count.value)
    if line.cells + needed > width:
        return False
    line.add(gap)
    if count.mark is not None:
        line.add(symbol, look.ink(count.mark) if count.mark is not Mark.FAILED else look.ink(Mark.LAPSED))
    alert = count.alert and count.mark is not None
    line.add(name + " ", look.muted)
    line.add(count.value, look.ink(count.mark or Mark.OPEN, bold=True) if alert else look.text)
    return True
