"""Seeded numbers that are the same for ever: across processes, PYTHONHASHSEED and Python versions.

Rules:
- only ``random.Random.random`` is used, the one method whose sequence Python promises to keep; everything
  else is made of it here. A stream is named by its keys, so that one more draw in one place moves nothing in
  another;
- whatever a world is made of is summed by ``math.fsum``: ``sum`` rounds floats otherwise since Python 3.12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


class Stream:
    """``keys`` name the stream: a seed and what the numbers are for."""

    __slots__ = ("_random", "_spare")

    def __init__(self, *keys: int | str) -> None:
        self._random = Random("/".join(map(str, keys)))
        self._spare: float | None = None

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """In ``[low, high)``."""
        return low + (high - low) * self._random.random()

    def log_uniform(self, low: float, high: float) -> float:
        return low * math.exp(self.uniform() * math.log(high / low))

    def below(self, limit: int) -> int:
        """A whole number in ``[0, limit)``."""
        return min(int(self._random.random() * limit), limit - 1)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def choice(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Fisher and Yates."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed

    def gauss(self) -> float:
        """Normal, mean 0, deviation 1 (Box and Muller, both values used)."""
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        radius = math.sqrt(-2.0 * math.log(1.0 - self._random.random()))
        angle = 2.0 * math.pi * self._random.random()
        self._spare = radius * math.sin(angle)
        return radius * math.cos(angle)

    def lognormal(self, sigma: float, median: float | None = None) -> float:
        """With the given median, or else with mean 1."""
        if median is None:
            return math.exp(sigma * self.gauss() - sigma * sigma / 2.0)
        return median * math.exp(sigma * self.gauss())
