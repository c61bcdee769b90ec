"""The lease clock: time in which this process slept is not counted, and time never runs backwards."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.clock import LeaseClock, MonotonicClock


class Raw:
    def __init__(self, seconds: float = 1000.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds


def make(raw: Raw, origin_seconds: float = 0.0) -> LeaseClock:
    return LeaseClock(raw, interval_seconds=0.1, tolerance_seconds=0.25, origin_seconds=origin_seconds)


def test_it_counts_from_its_origin() -> None:
    raw = Raw()
    clock = make(raw, origin_seconds=40.0)
    raw.seconds += 0.2
    assert clock.now() == pytest.approx(40.2)


def test_while_it_beats_in_time_all_time_counts() -> None:
    """A tick that is 250 ms late is no sleep."""
    raw = Raw()
    clock = make(raw)
    for gap in (0.1, 0.05, 0.34, 0.1, 0.0, 0.3):
        raw.seconds += gap
        assert clock.beat() == 0.0
    assert clock.now() == pytest.approx(0.89)
    assert clock.slept_seconds == 0.0


@pytest.mark.parametrize("beat_first", [True, False])
def test_sleep_is_not_counted(beat_first: bool) -> None:
    """RG43. An hour asleep costs a lease no more than the interval and the tolerance, whether ``now`` or
    ``beat`` is asked first on waking."""
    raw = Raw()
    clock = make(raw)
    raw.seconds += 3600
    if beat_first:
        slept = clock.beat()
        assert clock.now() == pytest.approx(0.35)
    else:
        assert clock.now() == pytest.approx(0.35)
        slept = clock.beat()
    assert slept == pytest.approx(3600 - 0.35) == clock.slept_seconds
    raw.seconds += 0.1
    assert clock.now() == pytest.approx(0.45)


def test_it_never_runs_backwards_over_a_sleep() -> None:
    """What was said before the first beat after a sleep still holds after it."""
    raw = Raw()
    clock = make(raw)
    raw.seconds += 10
    before = clock.now()
    clock.beat()
    assert clock.now() >= before


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.01, 0.1, 0.34, 0.36, 5.0, 1e6]), st.booleans())))
def test_it_is_monotonic_and_never_fast(steps: list[tuple[float, bool]]) -> None:
    raw = Raw(0.0)
    clock = make(raw)
    said = [clock.now()]
    for gap, beats in steps:
        raw.seconds += gap
        if beats:
            clock.beat()
        said.append(clock.now())
        assert said[-1] <= raw.seconds + 1e-6
    assert all(later >= earlier - 1e-6 for earlier, later in itertools.pairwise(said))


def test_a_raw_clock_that_steps_back_does_not_take_time_away() -> None:
    raw = Raw()
    clock = make(raw)
    raw.seconds += 0.2
    clock.beat()
    before = clock.now()
    raw.seconds -= 5
    assert clock.now() >= before


def test_the_monotonic_clock_does_not_run_backwards() -> None:
    clock = MonotonicClock()
    assert clock.now() <= clock.now()
