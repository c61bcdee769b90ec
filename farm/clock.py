"""Clocks. Nothing in the farm reads the time but through one of these.

- ``Clock``: what the relay's shell, the workers and the console ask.
- ``LeaseClock``: monotonic time minus the gaps in which this process itself was asleep or stopped, so that
  a laptop that slept, or a console behind Ctrl-Z, finds no lease lapsed (DESIGN.md §4 rule 7; measured in
  engines.md: without it every lease lapsed falsely after a stop).
- ``VirtualClock``: the time of a simulation or a recording, which can be hurried, slowed and halted.
Wall clock time is for people only and never decides anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from farm.errors import UsageError


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since an arbitrary origin; never runs backwards."""
        ...


class MonotonicClock:
    def now(self) -> float:
        return time.monotonic()


class CpuClock:
    """What all threads of this process together have used of processors."""

    def now(self) -> float:
        return time.process_time()


class LeaseClock:
    """Call ``beat`` at least every ``interval_seconds``; a gap between beats that is longer than
    ``interval_seconds + tolerance_seconds`` is taken for sleep, and what goes beyond them is not counted."""

    def __init__(
        self,
        raw: Callable[[], float] = time.monotonic,
        *,
        interval_seconds: float = 0.1,
        tolerance_seconds: float = 0.25,
        origin_seconds: float = 0.0,
    ) -> None:
        self._raw = raw
        self._interval = interval_seconds
        self._tolerance = tolerance_seconds
        self._last = raw()
        self._lost = self._last - origin_seconds
        self.slept_seconds = 0.0

    def beat(self) -> float:
        """Mark that we are awake; returns the seconds of sleep just found (0.0 nearly always)."""
        raw = self._raw()
        # No more may be taken off than this, or the time after the beat were before what ``now`` said.
        slept = raw - self._last - self._interval - self._tolerance
        self._last = raw
        if slept <= 0:
            return 0.0
        self._lost += slept
        self.slept_seconds += slept
        return slept

    def now(self) -> float:
        """Lease time in seconds since the run's origin. A gap not yet seen by ``beat`` is not counted."""
        awake = min(self._raw() - self._last, self._interval + self._tolerance)
        return self._last + max(awake, 0.0) - self._lost


class VirtualClock:
    """Virtual seconds that pass ``rate`` times as fast as real ones, or not at all while halted. ``rate`` may
    be infinite: as fast as can be. Raises UsageError for one that is not above 0."""

    def __init__(self, real: Clock, rate: float = 1.0) -> None:
        self._real = real
        self.halted = False
        self.rate = rate
        self.set(0.0, rate=rate)

    def now(self) -> float:
        """Infinite at an infinite rate."""
        passed = self._real.now() - self._since
        return self._base if self.halted or passed <= 0 else self._base + passed * self.rate

    def set(self, now: float, *, rate: float | None = None, halted: bool | None = None) -> None:
        """Go on from ``now``, at another rate or halted if that is said."""
        rate = self.rate if rate is None else rate
        if not rate > 0:
            raise UsageError(f"rate {rate!r}: virtual time runs at a rate above 0")
        self.rate = rate
        self.halted = self.halted if halted is None else halted
        self._base = now
        self._since = self._real.now()
