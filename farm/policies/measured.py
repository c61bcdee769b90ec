"""Speeds as the adaptive methods of the literature know them: measured on finished chunks.

``Speeds`` hears of frames at every heartbeat; in the papers a speed is learnt when the worker comes back for
more. So this memory notes a worker's speed each time it asks, and lets go of it when the worker is gone. A
new memory in mid-run (the relay was recovered, or the policy changed) begins with all that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from farm.policies.base import Ask


class Performance(NamedTuple):
    rate: float  #: frames per second, recent ones counting more
    mean_seconds: float  #: of a frame
    variance: float  #: of a frame's time, seconds squared


class Measured:
    """One policy's memory; its state follows from the asks it was shown."""

    __slots__ = ("_by_worker", "_new")

    def __init__(self) -> None:
        self._by_worker: dict[str, Performance] = {}
        self._new = True

    def at(self, ask: Ask) -> Mapping[str, Performance]:
        """What is known of the live workers when ``ask.worker`` asks."""
        if ask.grants == 0:
            self._by_worker.clear()
        elif self._new:
            for worker in ask.speeds.by_worker:
                self._note(ask, worker)
        self._new = False
        self._note(ask, ask.worker)
        if ask.caps:
            for worker in [name for name in self._by_worker if name not in ask.caps]:
                del self._by_worker[worker]
        return self._by_worker

    def _note(self, ask: Ask, worker: str) -> None:
        speed = ask.speeds.of(worker)
        rate = speed.rate
        if rate is not None:
            mean = speed.mean_seconds if speed.mean_seconds > 0 else 1 / rate
            self._by_worker[worker] = Performance(rate, mean, speed.variance)
