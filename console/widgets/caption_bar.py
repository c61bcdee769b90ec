"""A caption over the lower rows of a screen, above the keys: what happens just now, in a sentence or two.

Rule of this file: it lies over the screen and takes no room from it, so that nothing jumps when it comes and
goes; where it has too few cells for the words, the end is cut with an ellipsis.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from textual.strip import Strip

from console.theme import Look, Mark
from console.widgets.lines import Line, LineWidget, clip

LINES_MAX = 3
#: Columns from which LINES_MAX hold every caption; narrower screens get more lines, up to a third of them.
WIDE = 76
_HINT = "enter: skip"


@dataclass(frozen=True, slots=True)
class CaptionRow:
    """A line of a caption. ``hint``: said at its end, where there is room."""

    text: str
    hint: str = ""


class CaptionBar(LineWidget):
    """As many rows as the caption needs; none: it isn't there."""

    DEFAULT_CSS = """
    CaptionBar { layer: captions; dock: bottom; margin: 0 0 1 0; height: 1; display: none; }
    """

    def say(self, text: str | None, width: int, height: int) -> None:
        """Show a caption on a screen of that size, or none."""
        rows = () if text is None else caption_rows(text, width, height, self.look)
        if rows == self.rows:
            return
        if bool(rows) != self.display:
            self.display = bool(rows)
        if rows:
            self.styles.height = len(rows)
        self.show(rows)

    def draw(self, row: Hashable, width: int) -> Strip:
        assert isinstance(row, CaptionRow)
        return draw_caption(row, width, self.look)


def caption_rows(text: str, width: int, height: int, look: Look) -> tuple[CaptionRow, ...]:
    most = LINES_MAX if width >= WIDE else max(min(6, height // 3), 1)
    room = max(width - 4, 1)
    lines = wrap(text, room)
    if len(lines) > most:
        lines = [*lines[: most - 1], clip(" ".join(lines[most - 1 :]), room, look.ellipsis)]
    rows = [CaptionRow(line) for line in lines]
    rows[-1] = CaptionRow(lines[-1], _HINT)
    return tuple(rows)


def wrap(text: str, width: int) -> list[str]:
    """Lines of whole words of at most ``width`` cells; a word that is wider is cut."""
    lines = [""]
    for word in text.split():
        for piece in chop_cells(word, width) if cell_len(word) > width else [word]:
            longer = f"{lines[-1]} {piece}".lstrip()
            if cell_len(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(piece)
    return lines


def draw_caption(row: CaptionRow, width: int, look: Look) -> Strip:
    line = Line(look.raised).add(f"{look.pointer} ", look.ink(Mark.CLAIMED, bold=True))
    line.add(clip(row.text, max(width - 3, 0), look.ellipsis), look.strong)
    if row.hint and line.cells + cell_len(row.hint) + 4 <= width:
        line.pad_to(width - cell_len(row.hint) - 2).add(row.hint, look.muted)
    return line.strip(width)
