"""One line of words below a chart: what is under the cursor."""

from __future__ import annotations

from collections.abc import Hashable

from textual.strip import Strip

from console.widgets.lines import Line, LineWidget, clip


class SpanNote(LineWidget):
    """A row that is a text."""

    def draw(self, row: Hashable, width: int) -> Strip:
        line = Line(self.look.ground).add("  ")
        return line.add(clip(str(row), width - 2, self.look.ellipsis), self.look.text).strip(width)
