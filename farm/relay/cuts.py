"""Where a range is cut: numbers of a part grid in, a cut out. The forecast asks these too."""

from __future__ import annotations

from collections.abc import Iterable

from farm.frames import PartGrid
from farm.policies.fair import Share


def shared_stop(grid: PartGrid, start: int, limit: int, shared: Share) -> int | None:
    """The cut nearest to a fair share, or the one before where that would make this worker the last; None if
    even one part would."""
    stop = grid.stop_for(start, shared.frames, limit)
    if stop - start <= shared.most:
        return stop
    before = grid.start(grid.part_at(stop) - 1)
    return before if start < before else None


def nearest_cut(
    grid: PartGrid, start: int, stop: int, starts: Iterable[int], first: int, at: float
) -> int | None:
    """The cut nearest to ``at``, from ``first`` on, at which the chunk ``[start, stop)`` may be split, the
    claims on which begin at ``starts``; None if there is none."""
    if any(first <= held > start for held in starts):
        return None  # a copy that begins further on would be left with nothing
    part = grid.part_at(min(max(int(at), first), stop - 1))
    low, high = grid.start(part), grid.stop(part)
    cut = low if at - low < high - at and low >= first else high
    if cut >= stop:
        cut = low
    return cut if first <= cut < stop and cut >= start else None
