"""The emulated network, in virtual time."""

from __future__ import annotations

import random

import pytest

from farm.fleet import LinkProfile
from farm.worker.link import Backoff, Link, LinkBroken, LinkInterrupted

MIB = 1 << 20


class Time:
    """A clock that moves by what is slept, and by hand."""

    def __init__(self) -> None:
        self.at = 100.0
        self.interrupt = False

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> bool:
        self.at += seconds
        return self.interrupt


class NoFaults:
    def block(self, part: int, index: int, data: bytes) -> bytes:
        return data


def link(time: Time, seed: int = 0, **profile: float) -> Link:
    return Link(LinkProfile(**profile), time, time.sleep, random.Random(seed), NoFaults())  # type: ignore[arg-type]


def test_blocks_take_their_latency_and_their_share_of_the_rate() -> None:
    time = Time()
    line = link(time, mib_per_second=2.0, latency_seconds=0.05)
    for index in range(10):
        assert line.carry(0, index, b"x" * MIB) == b"x" * MIB
    assert time.at - 100.0 == pytest.approx(10 * (0.5 + 0.05), rel=0.001)


def test_time_in_which_nothing_was_sent_is_not_made_up_for() -> None:
    time = Time()
    line = link(time, mib_per_second=1.0)
    line.carry(0, 0, b"x" * MIB)
    time.at += 60.0
    line.carry(0, 1, b"x" * MIB)
    assert time.at == pytest.approx(162.0)


def test_without_a_limit_it_takes_no_time() -> None:
    time = Time()
    link(time).carry(0, 0, b"x" * MIB)
    assert time.at == 100.0


def test_it_breaks_as_often_as_it_should_and_the_same_for_the_same_seed() -> None:
    def breaks(seed: int) -> list[int]:
        line, found = link(Time(), seed, drop_rate=0.2), []
        for index in range(2000):
            try:
                line.carry(0, index, b"x")
            except LinkBroken:
                found.append(index)
        return found

    assert breaks(1) == breaks(1) != breaks(2)
    assert 320 < len(breaks(1)) < 480


def test_an_interruption_ends_the_wait() -> None:
    time = Time()
    time.interrupt = True
    with pytest.raises(LinkInterrupted):
        link(time, latency_seconds=5.0).carry(0, 0, b"x")


def test_the_wait_before_another_try_doubles_up_to_a_limit() -> None:
    backoff = Backoff(random.Random(1), first_seconds=1.0, most_seconds=8.0)
    for longest in (1, 2, 4, 8, 8, 8):
        assert longest / 2 <= backoff.next() <= longest
    assert backoff.tries == 6
    backoff.reset()
    assert backoff.next() <= 1 and backoff.next(least_seconds=30.0) == 30.0
