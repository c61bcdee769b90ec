"""What work takes: speeds over time, frame costs, seeded numbers."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from farm.simulation.bench import Bench
from farm.simulation.bound import lower_bound_seconds
from farm.simulation.effort import Costs, Efforts, Pace
from farm.simulation.noise import Stream
from tests.simulation.worlds import small_world, worker

times = st.floats(0, 300)
paces = st.builds(
    lambda fps, throttles, load: Pace(
        worker("w", fps, throttles=tuple(sorted(throttles)), load=load), Stream(1, "pace")
    ),
    st.floats(0.1, 100),
    st.lists(st.tuples(times, st.floats(0.1, 3)), max_size=4),
    st.sampled_from([0.0, 0.25]),
)


@given(paces, times, st.floats(0, 2000))
def test_until_is_the_inverse_of_work(pace: Pace, start: float, work: float) -> None:
    assert pace.work(start, pace.until(start, work)) == pytest.approx(work, abs=1e-6)


@given(paces, times, times, times)
def test_work_adds_up(pace: Pace, one: float, two: float, three: float) -> None:
    a, b, c = sorted((one, two, three))
    assert pace.work(a, b) + pace.work(b, c) == pytest.approx(pace.work(a, c), abs=1e-6)
    assert pace.work(a, b) >= 0


def test_a_throttle_holds_from_its_time_on() -> None:
    pace = Pace(worker("w", 10.0, throttles=((3.0, 0.5), (5.0, 2.0))), Stream(1))
    assert pace.work(0.0, 3.0) == 30.0
    assert pace.work(3.0, 5.0) == 10.0
    assert pace.work(5.0, 6.0) == 20.0
    assert [pace.at(time) for time in (2.9, 3.0, 5.0)] == [10.0, 5.0, 20.0]


def test_load_takes_its_share_on_average() -> None:
    pace = Pace(worker("w", 10.0, load=0.25), Stream(1, "load"))
    assert pace.work(0.0, 20_000.0) == pytest.approx(150_000, rel=0.02)
    speeds = {pace.at(time) for time in range(0, 1000, 5)}
    assert len(speeds) == 200
    assert all(5.0 <= speed <= 10.0 for speed in speeds)


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=50))
def test_whole_frames_of_a_cost(costs: list[float]) -> None:
    prefix = [0.0]
    for cost in costs:
        prefix.append(prefix[-1] + cost)
    table = Costs(prefix)
    for frame, (low, high) in enumerate(pairwise(prefix)):
        assert table.frame_at(low) == frame
        assert table.frame_at((low + high) / 2) == frame
    assert table.frame_at(prefix[-1]) == len(costs)


def test_frame_noise_has_mean_one_and_is_the_same_again() -> None:
    world = replace(small_world(worker("w1", frame_noise=0.5), frames=20_000), seed=3)
    table = Efforts(world).costs(0)
    assert table.before(20_000) == pytest.approx(20_000, rel=0.02)
    assert Efforts(world).costs(0).before(17) == table.before(17)
    assert Efforts(replace(world, seed=4)).costs(0).before(17) != table.before(17)


def test_a_halted_bench_keeps_its_place() -> None:
    bench = Bench(Pace(worker("w", 10.0), Stream(1)), Costs())
    assert bench.begin(0, 20, 1.0) == 3.0
    assert bench.position(2.0) == 10
    bench.halt(2.0)
    assert bench.position(50.0) == 10
    assert bench.resume(50.0) == 51.0
    assert bench.abort(50.25) == pytest.approx(50.3)


def test_parts_without_a_pause_between_share_their_rounding() -> None:
    bench = Bench(Pace(worker("w", 30.0), Stream(1)), Costs())
    at = 0.1
    for frame in range(300):
        at = bench.begin(frame, frame + 1, at)
        bench.done(at)
    assert at == 0.1 + 300 / 30.0


def test_the_bound_knows_everything() -> None:
    """20 frames of cost 1.0 are left of what one worker of 10 fps could do while it was silent."""
    plain = small_world(worker("w1", overhead_seconds=1.0), worker("w2", overhead_seconds=1.0), frames=200)
    assert lower_bound_seconds(plain) == pytest.approx(11.0)
    silent = replace(plain, workers=(replace(plain.workers[0], silences=((0.5, 5.0),)), plain.workers[1]))
    assert lower_bound_seconds(silent) == pytest.approx(13.0)
    dead = replace(plain, workers=(replace(plain.workers[0], dies_at_seconds=5.0), plain.workers[1]))
    assert lower_bound_seconds(dead) == pytest.approx(17.0)
    late = replace(plain, workers=(replace(plain.workers[0], arrives_at_seconds=4.0), plain.workers[1]))
    assert lower_bound_seconds(late) == pytest.approx(13.0)
    all_dead = replace(plain, workers=tuple(replace(w, dies_at_seconds=5.0) for w in plain.workers))
    assert lower_bound_seconds(all_dead) == float("inf")


def test_numbers_of_a_stream_never_change() -> None:
    """These were written down with Python 3.11; another version must give the same."""
    stream = Stream(7, "golden")
    assert [round(stream.uniform(), 12) for _ in range(3)] == [0.596052220801, 0.380552112749, 0.837365671769]
    assert [round(stream.gauss(), 9) for _ in range(3)] == [0.468049566, -1.453951381, -0.740050413]
    assert stream.shuffled(range(8)) == [6, 5, 0, 3, 4, 2, 7, 1]


def test_draws_are_what_they_are_called() -> None:
    stream = Stream(1, "draws")
    normal = [stream.gauss() for _ in range(20_000)]
    assert statistics.fmean(normal) == pytest.approx(0.0, abs=0.03)
    assert statistics.pstdev(normal) == pytest.approx(1.0, abs=0.03)
    assert statistics.median(stream.lognormal(0.8, 6.0) for _ in range(5_000)) == pytest.approx(6.0, rel=0.1)
    assert {stream.below(3) for _ in range(100)} == {0, 1, 2}
