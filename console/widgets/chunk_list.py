"""The list of chunks: id, frames, state, who, how often, how far, how long, and what happened on the way."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from textual.strip import Strip

from console.chunklist import FILTER_WORDS, STATE_WORDS, TRAIT_WORDS, Filter, number_of
from console.chunks import ChunkBook, ChunkState, Trait
from console.model import Model
from console.text import count, duration, safe
from console.theme import SYMBOLS, Look, Mark
from console.widgets.header import BAR
from console.widgets.lines import Line, fit
from console.widgets.row_list import RowList

#: Cells of the progress bar.
BAR_CELLS = 10

STATE_MARKS: dict[ChunkState, Mark] = {
    ChunkState.UNKNOWN: Mark.OPEN,
    ChunkState.IN_FLIGHT: Mark.CLAIMED,
    ChunkState.DUPLICATED: Mark.DUPLICATED,
    ChunkState.DONE: Mark.DONE,
    ChunkState.GIVEN_BACK: Mark.OPEN,
}
#: What is told beside the state, most telling first.
_TOLD = (Trait.SET_ASIDE, Trait.LAPSED, Trait.DUPLICATED, Trait.REFUSED, Trait.SPLIT, Trait.REOPENED)


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """The names of the columns."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    id: str
    frames: str  #: the range
    size: str
    state: str
    mark: Mark
    workers: str
    attempts: int
    done: float  #: share credited
    encoded: float  #: share encoded and not credited
    age: str
    traits: str
    trouble: bool
    selected: bool


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells; 0 leaves a column out. The last column takes what the others leave."""

    id: int
    frames: int
    size: int
    state: int
    workers: int
    attempts: int
    bar: int
    percent: int
    age: int

    @staticmethod
    def of(width: int) -> Columns:
        """The columns that a list of ``width`` cells has room for."""
        if width >= 110:
            return Columns(8, 20, 9, 13, 12, 5, BAR_CELLS + 2, 5, 8)
        if width >= 90:
            return Columns(8, 20, 0, 13, 10, 4, BAR_CELLS + 2, 5, 8)
        if width >= 70:
            return Columns(7, 19, 0, 13, 8, 4, 0, 5, 8)
        if width >= 50:
            return Columns(7, 0, 0, 13, 8, 4, 0, 5, 8)
        return Columns(7, 0, 0, 13, 6, 0, 0, 5, 0)


class ChunkList(RowList):
    """A ``ChunkHead`` and a ``ChunkRow`` for each chunk in view."""

    def draw(self, row: Hashable, width: int) -> Strip:
        match row:
            case ChunkHead():
                return draw_head(width, self.look)
            case ChunkRow():
                return draw_chunk(row, width, self.look)
            case _:
                return Strip.blank(width, self.ground)


def chunk_row(model: Model, number: int, now: float, *, selected: bool) -> ChunkRow:
    """What the list says of one chunk."""
    book = model.book
    state = ChunkState(book.state[number])
    frames = max(book.frames(number), 1)
    credited = min(max(book.credited[number], 0), frames)
    reached, workers = credited, [book.worker_of(number)]
    if number in book.live:
        workers = book.live[number].holders()
        claims = model.chunks.get(f"c{number}", ())
        reached = max((claim.position - book.start[number] for claim in claims), default=0)
        age = now - book.from_seconds[number]
    else:
        age = book.until_seconds[number] - book.from_seconds[number]
    traits = Trait(book.traits[number])
    told = [TRAIT_WORDS[trait] for trait in _TOLD if traits & trait]
    return ChunkRow(
        id=f"c{number}",
        frames=f"[{count(book.start[number])}, {count(book.stop[number])})",
        size=count(book.frames(number)),
        state=STATE_WORDS[state],
        mark=STATE_MARKS[state],
        workers=safe(" ".join(workers)),
        attempts=book.attempts[number],
        done=credited / frames,
        encoded=max(min(reached, frames) - credited, 0) / frames,
        age=duration(max(age, 0.0)),
        traits=", ".join(told),
        trouble=bool(traits & (Trait.LAPSED | Trait.SET_ASIDE | Trait.REFUSED)),
        selected=selected,
    )


def draw_head(width: int, look: Look) -> Strip:
    columns = Columns.of(width)
    line = Line(look.ground).add("  ")
    for name, cells, right in (
        ("chunk", columns.id, False),
        ("frames", columns.frames, False),
        ("how many", columns.size, True),
        ("  state", columns.state + (2 if columns.size else 0), False),
        ("worker", columns.workers, False),
        ("tries" if columns.attempts > 4 else "try", columns.attempts, True),
        ("  progress", columns.bar, False),
        ("%", columns.percent, True),
        ("for", columns.age, True),
    ):
        line.add(fit(name, cells, look.ellipsis, right=right) if cells else "", look.muted)
    return line.add("  what happened" if width - line.cells > 16 else "", look.muted).strip(width)


def draw_chunk(row: ChunkRow, width: int, look: Look) -> Strip:
    columns = Columns.of(width)
    line = Line(look.raised if row.selected else look.ground)
    line.add(look.pointer if row.selected else " ", look.ink(Mark.CLAIMED, bold=True)).add(" ")
    line.add(fit(row.id, columns.id, look.ellipsis), look.strong if row.selected else look.text)
    if columns.frames:
        line.add(fit(row.frames, columns.frames, look.ellipsis), look.muted)
    if columns.size:
        line.add(fit(row.size, columns.size, look.ellipsis, right=True), look.text).add("  ")
    line.add(SYMBOLS[row.mark] + " ", look.ink(row.mark))
    line.add(fit(row.state, columns.state - 2, look.ellipsis), look.ink(row.mark))
    line.add(fit(row.workers, columns.workers - 1, look.ellipsis) + " ", look.text)
    if columns.attempts:
        style = look.ink(Mark.DUPLICATED) if row.attempts > 1 else look.faint
        line.add(fit(str(row.attempts), columns.attempts, right=True), style)
    if columns.bar:
        line.add("  ")
        draw_bar(line, row.done, row.encoded, columns.bar - 2, look)
    percent = f"{int((row.done + row.encoded) * 100 + 1e-9)}%"
    line.add(fit(percent, columns.percent, right=True), look.muted)
    if columns.age:
        line.add(fit(row.age, columns.age, look.ellipsis, right=True), look.muted)
    room = width - line.cells - 2
    if room >= 4 and row.traits:
        style = look.ink(Mark.LAPSED) if row.trouble else look.muted
        line.add("  ").add(fit(row.traits, room, look.ellipsis), style)
    return line.strip(width)


def draw_bar(line: Line, done: float, encoded: float, cells: int, look: Look) -> None:
    """Credited, encoded, open."""
    first = int(done * cells + 1e-9)
    second = int((done + encoded) * cells + 1e-9) - first
    for mark, length in ((Mark.DONE, first), (Mark.CLAIMED, second), (Mark.OPEN, cells - first - second)):
        if look.symbols or look.ascii_only:
            line.add(SYMBOLS[mark] * length, look.ink(mark))
        else:
            line.add(BAR * length, look.block(mark))


def list_title(book: ChunkBook, kind: Filter, width: int) -> str:
    """The filters with their counts; the chosen one in brackets."""
    if width < 76:
        return f"chunks: {FILTER_WORDS[kind]} {count(number_of(book, kind))}"
    words = "chunks "
    for each in Filter:
        text = f"{FILTER_WORDS[each]} {count(number_of(book, each))}"
        words += f" [{text}]" if each is kind else f"  {text} "
    return words
