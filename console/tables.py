"""Tables as text, Markdown and CSV.

Rules of this file:
- a table is a head and rows of text, the same length each; the first column says what a row is about;
- as text no line is wider than asked for: what doesn't fit goes into further blocks below, each with the
  first column again. Nothing is left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from console import text

Row = Sequence[str]
_GAP = "  "


def text_table(head: Row, rows: Sequence[Row], width: int) -> list[str]:
    """Lines of at most ``width`` cells, unless two columns alone are wider; numbers to the right."""
    widths = [max(text.width(line[column]) for line in (head, *rows)) for column in range(len(head))]
    lines: list[str] = []
    for block in _blocks(widths, width):
        if lines:
            lines.append("")
        for line in (head, *rows):
            cells = [text.pad(line[column], widths[column], right=column > 0) for column in (0, *block)]
            lines.append(_GAP.join(cells).rstrip())
    return lines


def _blocks(widths: Sequence[int], width: int) -> list[list[int]]:
    """Columns, but for the first, that fit beside it: at least one a block."""
    blocks: list[list[int]] = [[]]
    used = widths[0]
    for column in range(1, len(widths)):
        needed = len(_GAP) + widths[column]
        if blocks[-1] and used + needed > width:
            blocks.append([])
            used = widths[0]
        blocks[-1].append(column)
        used += needed
    return blocks


def markdown_table(head: Row, rows: Sequence[Row]) -> list[str]:
    rule = ["---", *("--:" for _ in head[1:])]
    return [f"| {' | '.join(line)} |" for line in (head, rule, *rows)]


def csv_table(head: Row, rows: Sequence[Row]) -> str:
    """With a line end after each row."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows((head, *rows))
    return written.getvalue()
