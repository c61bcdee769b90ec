"""The part map: the whole film as cells, in reading order.

Rules of this file:
- few parts are drawn as tiles, filled from the left as their frames are encoded; more as one cell each; still
  more as half blocks, two rows of cells in a line; and when even those are too few, a cell stands for several
  parts and shows the one that most calls for attention;
- a cell is one byte (mark and shade), a row its cells; only cells of parts that changed are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from console import partmap as states
from console.theme import SYMBOLS, Look, Mark, Palette
from console.widgets.lines import Line, LineWidget

#: Shades of a cell, from just begun to all encoded.
SHADES = 8
TILE_CELLS_MAX = 12

#: Cells for which nothing was computed yet, or beyond the last part.
_NOTHING = 0

_SYMBOL_KEYS = (Mark.DONE, Mark.CLAIMED, Mark.DUPLICATED, Mark.LAPSED, Mark.OPEN)


@dataclass(frozen=True, slots=True)
class MapLayout:
    """How parts lie on the map: ``tile`` cells a part with ``gap`` cells between, ``columns`` cells or tiles
    a row, ``rows`` rows of cells (two to a line where ``halves``)."""

    parts: int
    tile: int
    gap: int
    columns: int
    rows: int
    halves: bool

    @property
    def lines(self) -> int:
        """Height in terminal rows."""
        return (self.rows + 1) // 2 if self.halves else self.rows

    @property
    def cells(self) -> int:
        """Tiles or cells in use; fewer than there are parts when a cell stands for several."""
        return min(self.parts, self.columns * self.rows)

    @property
    def parts_per_cell(self) -> float:
        return self.parts / self.cells if self.cells else 0.0

    def cells_of(self, parts: Iterable[int]) -> set[int]:
        """The cells that show ``parts``."""
        cells, total = self.cells, self.parts
        if cells == total:
            return set(parts)
        return {(part * cells + cells - 1) // total for part in parts}

    def parts_of(self, cell: int) -> tuple[int, int]:
        """The parts ``[start, stop)`` that a cell shows."""
        if self.cells == self.parts:
            return cell, cell + 1
        return cell * self.parts // self.cells, (cell + 1) * self.parts // self.cells


def plan_map(parts: int, width: int, lines: int, *, halves: bool) -> MapLayout:
    """The roomiest layout of ``parts`` in ``width`` by at most ``lines`` terminal cells; ``halves``: half
    blocks may be used."""
    if parts <= 0 or width <= 0 or lines <= 0:
        return MapLayout(0, 1, 0, 1, 0, False)
    for tile in range(min(TILE_CELLS_MAX, width), 1, -1):
        columns = (width + 1) // (tile + 1)
        rows = -(-parts // columns)
        if rows <= lines:
            return MapLayout(parts, tile, 1, columns, rows, False)
    rows = -(-parts // width)
    if rows <= lines:
        return MapLayout(parts, 1, 0, width, rows, False)
    if not halves:
        return MapLayout(parts, 1, 0, width, lines, False)
    return MapLayout(parts, 1, 0, width, min(rows, 2 * lines), True)


def encode_cell(mark: Mark, share: float) -> int:
    """One byte: a mark and how much is encoded, rounded down to a shade."""
    return mark << 4 | int(min(max(share, 0.0), 1.0) * SHADES)


def cell_mark(
    part_states: bytes | bytearray, shade: Callable[[int], float], first: int
) -> tuple[Mark, float]:
    """What a cell shows for the parts from ``first`` on with these states."""
    count = len(part_states)
    done = part_states.count(states.CREDITED)
    if done == count:
        return Mark.DONE, 1.0
    if states.SET_ASIDE in part_states:
        return Mark.FAILED, 1.0
    if states.LAPSED in part_states:
        return Mark.LAPSED, 1.0
    for state, mark in ((states.DUPLICATE, Mark.DUPLICATED), (states.CLAIMED, Mark.CLAIMED)):
        if state in part_states:
            share = shade(first) if count == 1 else (done + part_states.count(state) / 2) / count
            return mark, share
    return (Mark.DONE, done / count) if done else (Mark.OPEN, 1.0)


class PartMap(LineWidget):
    """Rows of bytes: the cells of a row, or of two rows one above the other."""

    def __init__(self, look: Look, *, id: str | None = None) -> None:
        super().__init__(look, id=id)
        self._layout_now = plan_map(0, 0, 0, halves=False)
        self._cells = bytearray()

    def lay_out(self, layout: MapLayout) -> bool:
        """Take another layout; True if it differs, and every part has to be given again."""
        if layout == self._layout_now:
            return False
        self._layout_now = layout
        self._cells = bytearray(layout.cells)
        return True

    def update_parts(
        self, parts: Iterable[int], part_state: bytearray, shade: Callable[[int], float]
    ) -> None:
        """Show the present state of ``parts``."""
        layout, cells = self._layout_now, self._cells
        if not cells:
            self.show(())
            return
        for cell in layout.cells_of(parts):
            start, stop = layout.parts_of(cell)
            mark, share = cell_mark(part_state[start:stop], shade, start)
            cells[cell] = encode_cell(mark, share)
        columns = layout.columns
        rows = [bytes(cells[at : at + columns]) for at in range(0, len(cells), columns)]
        if layout.halves:
            rows.extend([b""] * (len(rows) % 2))
            self.show(list(zip(rows[::2], rows[1::2], strict=True)))
        else:
            self.show(rows)

    def draw(self, row: Hashable, width: int) -> Strip:
        if isinstance(row, tuple):
            return draw_halves(row[0], row[1], width, self.look)
        assert isinstance(row, bytes)
        return draw_cells(row, width, self._layout_now, self.look)


def _decode_cell(code: int) -> tuple[Mark, float]:
    return Mark(code >> 4), (code & 0x0F) / SHADES


@lru_cache(maxsize=8)
def _colors(palette: Palette) -> tuple[str, ...]:
    """The colour of every cell code; a claim just begun is dim, but never as dim as open."""
    look = Look(palette)
    colors = []
    for code in range(max(Mark) + 1 << 4):
        mark, share = _decode_cell(code)
        if mark in (Mark.CLAIMED, Mark.DUPLICATED):
            share = 0.45 + 0.55 * share
        elif mark is Mark.DONE:
            share = 0.3 + 0.7 * share
        colors.append(look.shade(mark, share) if code != _NOTHING else palette.background)
    return tuple(colors)


@lru_cache(maxsize=8)
def _half_styles(palette: Palette) -> dict[tuple[int, int], Style]:
    """Styles of half blocks by the codes above and below, filled as they are met."""
    return {}


def draw_halves(above: bytes, below: bytes, width: int, look: Look) -> Strip:
    """Two rows of cells as one line of half blocks."""
    line = Line(look.ground)
    colors, styles = _colors(look.palette), _half_styles(look.palette)
    for pair, run in groupby(zip(above, below.ljust(len(above), b"\0"), strict=True)):
        style = styles.get(pair)
        if style is None:
            style = styles[pair] = look.on(colors[pair[0]], colors[pair[1]])
        line.add_glyphs("▀", len(list(run)), style)
    return line.strip(width)


def draw_cells(cells: bytes, width: int, layout: MapLayout, look: Look) -> Strip:
    """One row of cells or tiles."""
    line = Line(look.ground)
    plain = look.symbols or look.ascii_only
    for code in cells:
        if plain:
            _symbol_tile(line, code, layout.tile, look)
        else:
            _block_tile(line, code, layout.tile, look)
        line.add(" " * layout.gap)
    return line.strip(width)


def _symbol_tile(line: Line, code: int, tile: int, look: Look) -> None:
    mark, share = _decode_cell(code)
    if mark is Mark.DONE and share < 0.5:
        mark = Mark.OPEN
    if mark in (Mark.CLAIMED, Mark.DUPLICATED) and tile > 1:
        filled = max(int(share * tile), 1)
        line.add(SYMBOLS[mark] * filled, look.ink(mark)).add("-" * (tile - filled), look.ink(mark))
    else:
        line.add(SYMBOLS[mark] * tile, look.ink(mark))


def _block_tile(line: Line, code: int, tile: int, look: Look) -> None:
    mark, share = _decode_cell(code)
    if mark is Mark.FAILED:
        line.add("x" * tile, look.ink(mark, bold=True))
    elif mark in (Mark.CLAIMED, Mark.DUPLICATED) and tile > 1:
        filled = int(share * tile)
        line.add("▆" * filled, look.block(mark)).add("▆" * (tile - filled), look.block(mark, 0.35))
    else:
        line.add("▆" * tile, look.on(_colors(look.palette)[code], look.palette.background))


def legend(look: Look) -> Text:
    """What the signs mean, for the frame of the map."""
    names = {
        Mark.DONE: "credited",
        Mark.CLAIMED: "claimed",
        Mark.DUPLICATED: "duplicated",
        Mark.LAPSED: "lapsed",
        Mark.OPEN: "open",
    }
    plain = look.symbols or look.ascii_only
    text = Text()
    for number, mark in enumerate(_SYMBOL_KEYS):
        text.append("" if number == 0 else "  ")
        text.append(SYMBOLS[mark] if plain else "▆", look.ink(mark) if plain else look.block(mark))
        text.append(" " + names[mark], look.muted)
    return text
