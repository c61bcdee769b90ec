"""A pace that was slowed down by a fault: the worker's own (farm.simulation.effort), times a factor from each
change on."""

from __future__ import annotations

from bisect import bisect_right
from math import inf

from farm.simulation.effort import Pace


class SlowedPace:
    """As ``Pace``; ``set`` says from when on which share of the speed is left."""

    __slots__ = ("_factors", "_pace", "_starts")

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._starts = [0.0]
        self._factors = [1.0]

    def set(self, now: float, factor: float) -> None:
        """``now`` never runs backwards."""
        if now == self._starts[-1]:
            self._factors[-1] = factor
        else:
            self._starts.append(now)
            self._factors.append(factor)

    def at(self, time: float) -> float:
        return self._factors[self._piece(time)] * self._pace.at(time)

    def work(self, start: float, stop: float) -> float:
        done = 0.0
        piece = self._piece(start)
        while start < stop:
            end = min(stop, self._end(piece))
            done += self._factors[piece] * self._pace.work(start, end)
            start, piece = end, piece + 1
        return done

    def until(self, start: float, work: float) -> float:
        piece = self._piece(start)
        while True:
            end, factor = self._end(piece), self._factors[piece]
            if end == inf:
                return self._pace.until(start, work / factor)
            possible = factor * self._pace.work(start, end)
            if possible >= work:
                return self._pace.until(start, work / factor)
            work -= possible
            start, piece = end, piece + 1

    def _piece(self, time: float) -> int:
        return max(bisect_right(self._starts, time) - 1, 0)

    def _end(self, piece: int) -> float:
        return self._starts[piece + 1] if piece + 1 < len(self._starts) else inf
