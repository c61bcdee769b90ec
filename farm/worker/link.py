"""The network between a worker and the store, as its link profile says: so many MiB/s, a latency, and now and
then a break. Only parts go through it; messages are small and don't.

The emulation is here, on the worker's side: a block is held back until the link would have carried it. The
bucket of the link fills at its rate and holds nothing over: time in which nothing was sent is lost, as on a
real line. Clock, sleep and randomness are injected.

``LinkFaults`` is the seam for faults that are injected from outside. It is asked once for every block, just
before the link carries it, in the delivery thread (it may block there), and may
- return other bytes: the block was corrupted on its way (its checksum is made of the true ones before);
- raise LinkBroken: the link is cut; the worker asks again, after a growing wait, where to go on;
- raise StoreBusy: the store refuses by rate limit; the same block is sent again after a growing wait;
- sleep: the block is late.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from farm.clock import Clock
from farm.fleet import LinkProfile


class LinkBroken(Exception):
    """The link broke in mid-block; how much of it arrived is not known."""


class StoreBusy(Exception):
    """The store refuses for now; ``retry_after_seconds``: the least to wait, 0 if it doesn't say."""

    def __init__(self, retry_after_seconds: float = 0.0) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__("the store takes no more for now")


class LinkInterrupted(Exception):
    """What was being sent is of no use any more."""


class LinkFaults(Protocol):
    def block(self, part: int, index: int, data: bytes) -> bytes:
        """The bytes that go on the link in place of ``data``. Raises LinkBroken or StoreBusy."""
        ...


class Link:
    """``sleep(seconds)`` waits that long and returns False, or returns True at once when interrupted."""

    def __init__(
        self,
        profile: LinkProfile,
        clock: Clock,
        sleep: Callable[[float], bool],
        rng: random.Random,
        faults: LinkFaults,
    ) -> None:
        self._profile = profile
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._faults = faults
        self._free_at = clock.now()  # when the last byte that was sent has left

    def carry(self, part: int, index: int, data: bytes) -> bytes:
        """Take the time that the block takes, and give back what arrives. Raises LinkBroken, StoreBusy, or
        LinkInterrupted."""
        profile = self._profile
        data = self._faults.block(part, index, data)
        breaks = self._rng.random() < profile.drop_rate
        sent = len(data) * (self._rng.random() if breaks else 1.0)
        now = self._clock.now()
        self._free_at = max(self._free_at, now) + profile.sending_seconds(sent)
        arrives_at = self._free_at + profile.latency_seconds
        if arrives_at > now and self._sleep(arrives_at - now):
            raise LinkInterrupted
        if breaks:
            raise LinkBroken(f"the link broke in block {index + 1} of part {part}")
        return data


class Backoff:
    """How long to wait before the next try: doubled each time, up to ``most_seconds``, and up to a half taken
    off at random, so that those who failed together don't come back together."""

    def __init__(self, rng: random.Random, first_seconds: float = 0.1, most_seconds: float = 15.0) -> None:
        self._rng = rng
        self._first = self._next = first_seconds
        self._most = most_seconds
        self.tries = 0  #: since the last reset

    def next(self, least_seconds: float = 0.0) -> float:
        seconds = self._next * (1.0 - self._rng.random() / 2.0)
        self._next = min(self._next * 2.0, self._most)
        self.tries += 1
        return max(seconds, least_seconds)

    def reset(self) -> None:
        self._next = self._first
        self.tries = 0
