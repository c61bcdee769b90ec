"""Credited frames per second over the last minutes, as a filled curve of braille dots.

Credits come a whole part at a time, so a second alone says nothing: the curve is a moving mean, and its
width in seconds is written on the frame.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from textual.strip import Strip

from console.theme import Mark
from console.widgets.lines import Line, LineWidget

#: Seconds of history on the plot: the first of these that holds the whole run, else the last.
PLOT_SECONDS = (60, 120, 180)
#: Width of the moving mean.
SMOOTH_SECONDS = 10
LABEL_CELLS = 6

#: Bits of a braille cell, from the bottom row to the top, left and right column.
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)


@dataclass(frozen=True, slots=True)
class PlotRow:
    label: str
    dots: str
    is_axis: bool = False


class Throughput(LineWidget):
    """Rows of ``PlotRow``."""

    def draw(self, row: Hashable, width: int) -> Strip:
        assert isinstance(row, PlotRow)
        line = Line(self.look.ground)
        line.add(row.label, self.look.muted)
        line.add(row.dots, self.look.faint if row.is_axis else self.look.ink(Mark.CLAIMED))
        return line.strip(width)


def smooth(samples: Sequence[int], window: int = SMOOTH_SECONDS) -> list[float]:
    """The mean of each sample and the ``window - 1`` before it; shorter by ``window - 1``."""
    total = sum(samples[: window - 1])
    means = []
    for index in range(window - 1, len(samples)):
        total += samples[index]
        means.append(total / window)
        total -= samples[index - window + 1]
    return means


def nice_ceiling(value: float) -> float:
    """The next of a few round numbers: an axis that moves seldom."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999
    )


def plot_rows(means: Sequence[float], width: int, height: int, *, ascii_only: bool) -> tuple[PlotRow, ...]:
    """The plot in ``width`` by ``height`` cells: a curve, and a time axis below it."""
    columns = width - LABEL_CELLS - 1
    lines = height - 1
    if columns < 4 or lines < 1 or not means:
        return ()
    levels = 2 if ascii_only else 4
    values = resample(means, columns * (1 if ascii_only else 2))
    top = nice_ceiling(max(values))
    heights = [max(round(value / top * lines * levels), 1) if value > 0 else 0 for value in values]
    rows = []
    for line in range(lines):
        base = (lines - 1 - line) * levels
        label = _label(line, lines, top)
        dots = _ascii_line(heights, base) if ascii_only else _braille_line(heights, base)
        rows.append(PlotRow(label, dots))
    rows.append(PlotRow(" " * (LABEL_CELLS + 1), _time_axis(columns, len(means)), is_axis=True))
    return tuple(rows)


def trend_line(means: Sequence[float], cells: int, *, ascii_only: bool) -> str:
    """The curve in one row, without a scale; as blank as it was where nothing was credited."""
    values = resample(means, cells * (1 if ascii_only else 2)) if means else []
    top = max(values, default=0.0)
    if top <= 0:
        return ""
    levels = 2 if ascii_only else 4
    heights = [max(round(value / top * levels), 1) if value > 0 else 0 for value in values]
    return _ascii_line(heights, 0) if ascii_only else _braille_line(heights, 0)


def resample(values: Sequence[float], points: int) -> list[float]:
    """``points`` means of neighbouring values; with fewer values than points, values are repeated."""
    spread = []
    for point in range(points):
        start = point * len(values) // points
        stop = max((point + 1) * len(values) // points, start + 1)
        spread.append(sum(values[start:stop]) / (stop - start))
    return spread


def _label(line: int, lines: int, top: float) -> str:
    """The scale at the top and in the middle; a rule marks the rows that have one."""
    if line == 0:
        return f"{top:{LABEL_CELLS}g} "
    if lines >= 5 and line == lines // 2:
        return f"{top * (lines - line) / lines:{LABEL_CELLS}.3g} "
    return " " * (LABEL_CELLS + 1)


def _braille_line(heights: Sequence[int], base: int) -> str:
    cells = []
    for at in range(0, len(heights) - 1, 2):
        bits = sum(_LEFT[dot] for dot in range(4) if heights[at] > base + dot)
        bits |= sum(_RIGHT[dot] for dot in range(4) if heights[at + 1] > base + dot)
        cells.append(chr(0x2800 + bits) if bits else " ")
    return "".join(cells)


def _ascii_line(heights: Sequence[int], base: int) -> str:
    return "".join(" .:"[min(max(height - base, 0), 2)] for height in heights)


def _time_axis(columns: int, seconds: int) -> str:
    text = [" "] * columns
    text[-3:] = "now"
    first = f"-{seconds}s"
    if columns >= len(first) + 8:
        text[: len(first)] = first
        middle = f"-{seconds // 2}s"
        place = columns // 2 - len(middle) // 2
        if columns >= 24:
            text[place : place + len(middle)] = middle
    return "".join(text)
