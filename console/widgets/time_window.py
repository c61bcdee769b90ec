"""Which stretch of the run a chart shows, and at what scale: scrolling and zooming as pure functions.

Rules of this file:
- cells lie on a fixed grid of time (cell n is ``[n, n + 1) * cell_seconds``) and scales are few round
  numbers, so that a chart that goes on doesn't flicker and its cells can be kept;
- a window follows the present, shows the whole run, or stays where it was put.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from console.widgets.event_list import time_text

#: Seconds that a cell may stand for.
SCALES: Final = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 21600)
#: Seconds between ticks of the axis.
_TICKS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400, 604800)
_TICK_CELLS_MIN = 10

Mode = Literal["follow", "whole", "free"]


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells ``[first, first + width)`` of the grid of ``seconds`` each."""

    first: int
    width: int
    seconds: float

    @property
    def start(self) -> float:
        return self.first * self.seconds

    @property
    def stop(self) -> float:
        return self.last * self.seconds

    @property
    def last(self) -> int:
        """The first cell that is not shown any more."""
        return self.first + self.width

    def cell_of(self, at: float) -> int:
        """The cell of a moment, counted from the first one shown; may lie outside."""
        return math.floor(at / self.seconds + 1e-9) - self.first


@dataclass(frozen=True, slots=True)
class TimeWindow:
    scale: int = SCALES.index(0.5)  #: index into ``SCALES``; of no meaning when the whole run is shown
    left: float = 0.0  #: where a free window begins
    mode: Mode = "follow"

    def cells(self, now: float, width: int) -> Cells:
        """What is shown in ``width`` cells at ``now``."""
        width = max(width, 1)
        scale = self.scale
        if self.mode == "whole":
            scale = next((n for n, each in enumerate(SCALES) if each * width > now), len(SCALES) - 1)
        seconds = float(SCALES[scale])
        present = math.floor(now / seconds + 1e-9)
        if self.mode == "free":
            first = min(max(math.floor(self.left / seconds + 1e-9), 0), present)
        elif self.mode == "whole":
            first = 0
        else:
            first = max(present - width + 1, 0)
        return Cells(first, width, seconds)

    def scrolled(self, share: float, now: float, width: int) -> TimeWindow:
        """Moved by a share of its width; at the right end it follows again."""
        cells = self.cells(now, width)
        steps = round(share * cells.width) or (1 if share > 0 else -1)
        left = max(cells.first + steps, 0) * cells.seconds
        return self._placed(cells, left, now)

    def zoomed(self, steps: int, about: float, now: float, width: int) -> TimeWindow:
        """``steps`` scales finer (positive) or coarser, with the moment ``about`` in its place."""
        cells = self.cells(now, width)
        scale = min(max(SCALES.index(cells.seconds) - steps, 0), len(SCALES) - 1)
        if self.mode == "follow":
            return replace(self, scale=scale)
        left = about - (about - cells.start) * SCALES[scale] / cells.seconds
        return TimeWindow(scale, max(left, 0.0), "free")

    def showing(self, start: float, stop: float, now: float, width: int) -> TimeWindow:
        """Moved as little as needed to have ``[start, stop)``, or its beginning, in view."""
        cells = self.cells(now, width)
        if start < cells.start:
            return self._placed(cells, start, now)
        if min(stop, now) > cells.stop:
            left = min(stop - (cells.width - 1) * cells.seconds, start)
            return self._placed(cells, left, now)
        return self

    def _placed(self, cells: Cells, left: float, now: float) -> TimeWindow:
        """Beginning at ``left``; where that is what following shows, it follows."""
        scale = SCALES.index(cells.seconds)
        newest = TimeWindow(scale, 0.0, "follow").cells(now, cells.width)
        follows = math.floor(left / cells.seconds + 1e-9) >= newest.first > 0
        return TimeWindow(scale, 0.0, "follow") if follows else TimeWindow(scale, max(left, 0.0), "free")


def axis_text(cells: Cells) -> str:
    """A tick and its moment wherever there is room: ``|01:00     |01:30``."""
    tick = next((each for each in _TICKS if each / cells.seconds >= _TICK_CELLS_MIN), _TICKS[-1])
    text = [" "] * cells.width
    number = math.ceil(cells.start / tick - 1e-9)
    while (place := cells.cell_of(number * tick)) < cells.width:
        label = "|" + time_text(number * tick, tenths=False)
        if place >= 0 and place + len(label) <= cells.width:
            text[place : place + len(label)] = label
        number += 1
    return "".join(text)
