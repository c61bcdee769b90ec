"""Pictures as small files with one line for a row of the terminal, so that a change is a small diff.

Rich's export is three to four times as large: fonts, a window, a clip path and the background for every run
of text. What is left out here is the same in every picture, or follows from what is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

SPACE = "\N{NO-BREAK SPACE}"
CELL_WIDTH, CELL_HEIGHT = 12.2, 24.4
_CLASS = re.compile(r"^\s*(\.terminal-(?:\d+-)?r\d+ \{.*\})$", re.M)
_RECT = re.compile(
    r'<rect fill="(#[0-9a-f]{6})" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" shape-rendering'
)
_TEXT = re.compile(
    r'<text class="(terminal-(?:\d+-)?r\d+)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>'
    r"([^<]*)</text>"
)
#: Fonts whose characters are a little wider or narrower go astray in longer runs of text; these say how wide.
LOOSE_WIDTH = 8 * CELL_WIDTH


def lean(svg: str, columns: int, rows: int) -> str:
    """The same picture of ``columns`` by ``rows`` cells."""
    rects = [(fill, float(x), float(y), float(width)) for fill, x, y, width in _RECT.findall(svg)]
    areas: Counter[str] = Counter()
    for fill, _, _, area in rects:
        areas[fill] += round(area)
    ((ground, _),) = areas.most_common(1)
    width, height = columns * CELL_WIDTH, rows * CELL_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">',
        "<style>",
        ".terminal-matrix { font: 20.26px 'DejaVu Sans Mono', monospace; white-space: pre; }",
        *_CLASS.findall(svg),
        "</style>",
        f'<rect fill="{ground}" width="{width:.0f}" height="{height:.0f}"/>',
    ]
    for y, row in groupby((rect for rect in rects if rect[0] != ground), key=lambda rect: rect[2]):
        painted = (f'<path fill="{fill}" d="M{x:g} 0h{w:g}v24.6h-{w:g}z"/>' for fill, x, _, w in row)
        lines.append(f'<g transform="translate(0,{y - 1.5:.1f})">{"".join(painted)}</g>')
    lines.append('<g class="terminal-matrix">')
    for y, texts in groupby(_TEXT.findall(svg.replace("&#160;", SPACE)), key=lambda found: found[2]):
        written = (
            f'<text class="{style}" x="{x}"{_tied(length)}>{text}</text>'
            for style, x, _, length, text in texts
            if text.strip()
        )
        lines.append(f'<g transform="translate(0,{y})">{"".join(written)}</g>')
    return "\n".join([*lines, "</g>", "</svg>"])


def _tied(length: str) -> str:
    return f' textLength="{length}"' if float(length) > LOOSE_WIDTH else ""
