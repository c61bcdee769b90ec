"""Lines: the base of every widget whose content changes while the run goes on.

Rules of this file:
- what a row shows is one plain value, its *row data*. The widget compares it with what the row showed
  before, and only rows that differ are drawn again; an idle console draws nothing;
- drawing is a pure function of row data, width and look; it is called for rows that are on screen, and must
  bear any width, zero included (a line may be asked for before the first layout).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from console.theme import Look


class Line:
    """Collects styled text from left to right; ``strip`` cuts or pads it to the width."""

    __slots__ = ("_ground", "_segments", "cells")

    def __init__(self, ground: Style) -> None:
        self._ground = ground
        self._segments: list[Segment] = []
        self.cells = 0  #: width so far, in terminal cells

    def add(self, text: str, style: Style | None = None) -> Line:
        """Append text; it is drawn on the line's ground unless the style brings its own."""
        if text:
            self._segments.append(Segment(text, self._ground if style is None else self._ground + style))
            self.cells += len(text) if text.isascii() else cell_len(text)
        return self

    def add_glyphs(self, glyph: str, count: int, style: Style) -> Line:
        """Append a glyph of one cell ``count`` times, in a style that is complete with its ground."""
        if count > 0:
            self._segments.append(Segment(glyph * count, style))
            self.cells += count
        return self

    def pad_to(self, cell: int) -> Line:
        """Spaces up to a column; nothing when already there."""
        if self.cells < cell:
            self.add(" " * (cell - self.cells))
        return self

    def strip(self, width: int) -> Strip:
        return Strip(self._segments, self.cells).adjust_cell_length(max(width, 0), self._ground)


def clip(text: str, width: int, ellipsis: str = "…") -> str:
    """``text`` in at most ``width`` cells; what was cut is replaced by the ellipsis."""
    if cell_len(text) <= width:
        return text
    if width <= len(ellipsis):
        return ellipsis[: max(width, 0)]
    return set_cell_size(text, width - len(ellipsis)).rstrip() + ellipsis


def fit(text: str, width: int, ellipsis: str = "…", *, right: bool = False) -> str:
    """``text`` in exactly ``width`` cells."""
    text = clip(text, width, ellipsis)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


class LineWidget(Widget, can_focus=False):
    """A widget of rows of plain data. Subclasses implement ``draw``."""

    ALLOW_SELECT = False

    def __init__(self, look: Look, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._look = look
        self._rows: Sequence[Hashable] = ()
        self._words = ("", "")

    @property
    def look(self) -> Look:
        return self._look

    @look.setter
    def look(self, look: Look) -> None:
        if look != self._look:
            self._look = look
            self.refresh()

    @property
    def rows(self) -> Sequence[Hashable]:
        """What is shown now, one value a row."""
        return self._rows

    def show(self, rows: Sequence[Hashable]) -> None:
        """Show these rows; only those that changed are drawn again."""
        before, self._rows = self._rows, rows
        shared = min(len(before), len(rows))
        changed = [y for y in range(shared) if before[y] != rows[y]]
        changed.extend(range(shared, max(len(before), len(rows))))
        if changed and self.is_mounted:
            width = self.size.width
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def title(self, title: str, subtitle: str | Text = "") -> None:
        """Words on the frame, drawn again only when they differ."""
        words = (title, subtitle if isinstance(subtitle, str) else subtitle.markup)
        if words != self._words:
            self._words = words
            self.border_title = Text(title)
            self.border_subtitle = Text(subtitle) if isinstance(subtitle, str) else subtitle

    @property
    def ground(self) -> Style:
        return self._look.ground

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self._rows) or width <= 0:
            return Strip.blank(max(width, 0), self.ground)
        return self.draw(self._rows[y], width)

    def draw(self, row: Hashable, width: int) -> Strip:
        """One row as a strip of exactly ``width`` cells. A pure function of its arguments and the look."""
        raise NotImplementedError
