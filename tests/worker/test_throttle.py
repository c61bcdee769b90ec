"""Pacing on a clock that only moves when told to."""

from __future__ import annotations

import random

import pytest

from farm.worker.throttle import SLACK_SECONDS, Throttle


class FakeClock:
    def __init__(self) -> None:
        self.time = 100.0
        self.interrupt = False

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> bool:
        assert seconds > 0
        if self.interrupt:
            return True
        self.time += seconds
        return False


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def throttle(fps: float | None, clock: FakeClock) -> Throttle:
    made = Throttle(fps, clock, clock.sleep)
    made.begin(clock.now())
    return made


@pytest.mark.parametrize("fps", [0.5, 2.0, 12.0, 30.0, 29.97])
def test_frames_take_their_number_by_the_cap_however_uneven_the_work(clock, fps):
    randomness = random.Random(7)
    pace = throttle(fps, clock)
    for _ in range(600):
        assert pace.wait()
        clock.time += randomness.choice([0.0, 0.3, 1.6]) / fps * 0.5  # 0.32 of a frame's time on average
    assert clock.time - 100.0 == pytest.approx(600 / fps, abs=1 / fps)


def test_time_without_anything_to_do_is_not_caught_up_on(clock):
    pace = throttle(10.0, clock)
    pace.wait()
    clock.time += 0.8  # its link was what it waited for
    pace.postpone(0.8)
    for _ in range(5):
        pace.wait()
    assert clock.time == pytest.approx(101.4)


def test_the_first_frame_is_not_free(clock):
    pace = throttle(2.0, clock)
    assert pace.wait()
    assert clock.time == 100.5


def test_work_counts_from_where_it_was_said_to_begin(clock):
    pace = throttle(10.0, clock)
    clock.time += 0.05
    pace.wait()
    assert clock.time == pytest.approx(100.1)


def test_without_a_cap_nothing_waits(clock):
    pace = throttle(None, clock)
    for _ in range(100):
        assert pace.wait()
    assert clock.time == 100.0


def test_a_short_delay_is_caught_up(clock):
    pace = throttle(10.0, clock)
    clock.time += 0.55
    for _ in range(10):
        pace.wait()
    assert clock.time == pytest.approx(101.0)


def test_a_long_stop_is_not(clock):
    pace = throttle(10.0, clock)
    pace.wait()
    clock.time += 30.0
    resumed = clock.time
    for _ in range(21):
        pace.wait()
    assert clock.time - resumed == pytest.approx(2.0)  # the frame that was waiting, and twenty


def test_a_worker_slower_than_its_cap_never_waits_nor_saves_up(clock):
    pace = throttle(10.0, clock)
    for _ in range(100):
        pace.wait()
        clock.time += 0.5
    slow_end = clock.time
    assert slow_end == pytest.approx(150.1, abs=0.1)
    for _ in range(100):
        pace.wait()
    assert clock.time - slow_end >= 10.0 - SLACK_SECONDS - 0.5


def test_another_cap_counts_from_when_it_is_set(clock):
    pace = throttle(0.1, clock)
    clock.time += 3.0
    pace.change(10.0)
    for _ in range(5):
        pace.wait()
    assert clock.time == pytest.approx(103.5)
    pace.change(None)
    pace.wait()
    assert clock.time == pytest.approx(103.5)


def test_an_interrupted_wait_says_so(clock):
    pace = throttle(10.0, clock)
    clock.interrupt = True
    assert not pace.wait()
