"""What an estimate says in the cases a user meets, and what it costs."""

from __future__ import annotations

import math
import time

import pytest
from msgspec.structs import replace

from farm import commands as cmd
from farm.engines.simulated import Simulation
from farm.forecast import Forecaster, estimate, outlook_of
from farm.forecast.estimate import Estimate
from farm.forecast.replay import Replay, TooLong
from farm.policies.registry import parse_policy, parse_tail
from farm.simulation.fleets import fleet_of
from farm.simulation.world import SimWorker, world_of
from tests.forecast.looking import outlook_at, world_with


def test_unknown_before_anything_is_known() -> None:
    simulation = Simulation(world_with("fair+split"))
    assert estimate(outlook_at(simulation, 0.0)) is None
    assert estimate(outlook_at(simulation, 1.9)) is None  # everybody is in the overhead of its first claim
    assert estimate(outlook_at(simulation, 6.0)) is not None
    told = Forecaster().tell(1.9, None)
    assert (told.low_seconds, told.likely_seconds, told.high_seconds, told.by) == (None, None, None, "")


def test_unknown_once_nobody_is_left_who_could_finish() -> None:
    world = replace(
        world_with("fixed,48+none"), workers=(SimWorker(name="w1", fps=30.0, dies_at_seconds=10.0),)
    )
    simulation = Simulation(world)
    assert estimate(outlook_at(simulation, 9.0)) is not None
    assert estimate(outlook_at(simulation, 16.0)) is None
    assert estimate(outlook_at(simulation, 40.0)) is None


def test_nothing_left_is_the_end() -> None:
    simulation = Simulation(world_with("fixed,48+none", ahead=False))
    found = estimate(outlook_at(simulation, 133.5))
    assert found == Estimate(simulation.now, 0.0, 0.0, "T")


def test_the_books_are_left_alone() -> None:
    """Not even a policy that remembers its asks hears of what is only imagined."""
    plain, watched = (Simulation(world_with("fac2+duplicate-oldest"), keep_log=True) for _ in range(2))
    plain.run()
    for now in range(1, 120, 3):
        estimate(outlook_at(watched, float(now)))
    watched.run()
    assert watched.records == plain.records


def test_the_same_outlook_gives_the_same_estimate() -> None:
    outlook = outlook_at(Simulation(world_with("guided,12+duplicate-oldest", condition="noise")), 20.0)
    assert estimate(outlook) == estimate(outlook)


@pytest.mark.parametrize("schedule", ["guided,12+duplicate-oldest", "fair+split"])
def test_an_estimate_doesnt_change_with_the_run(schedule: str) -> None:
    """It is worked out in another thread while the books go on. Nothing was asked of the situation before."""
    plain, watched = (Simulation(world_with(schedule, condition="noise")) for _ in range(2))
    expected = outlook_at(plain, 20.0)
    outlook = outlook_at(watched, 20.0)
    watched.run()
    assert estimate(outlook) == estimate(expected)
    then, now = expected.situation, outlook.situation
    assert (now.idle, now.busy) == (then.idle, then.busy) and now.busy
    for claim in now.busy:
        middle = (claim.seen + claim.stop) / 2
        assert now.splittable(claim) == then.splittable(claim)
        assert now.cut_near(claim, middle) == then.cut_near(claim, middle)


def test_what_a_worker_is_at_goes_on_as_of_late_and_nothing_after_it() -> None:
    """A hard scene: the one claim in hand takes twice as long, all later ones do not."""
    world = replace(world_with("fixed,48+none", ahead=False), workers=(SimWorker(name="w1", fps=30.0),))
    outlook = outlook_at(Simulation(world), 20.0)
    usual = Replay(outlook, 1000).end_at()
    (claim,) = outlook.situation.busy
    assert claim.begun
    speed = outlook.situation.speeds.by_worker["w1"]
    speed.recent_frames = speed.recent_seconds * 15.0
    later = Replay(outlook, 1000).end_at() - usual
    assert later == pytest.approx((claim.stop - claim.seen) * (1 / 15 - 1 / 30), rel=0.01)


def test_with_a_broken_policy_of_a_users_own_there_is_an_estimate() -> None:
    simulation = Simulation(world_with("fixed,48+none"))
    outlook = outlook_at(simulation, 30.0)

    class Broken:
        name = "broken"

        def size(self, ask: object) -> None:
            raise ZeroDivisionError

    found = estimate(
        type(outlook)(**{name: getattr(outlook, name) for name in outlook.__slots__} | {"policy": Broken()})
    )
    assert found is not None and found.by == "rate"


def test_long_jobs_of_small_chunks_are_not_played_forward() -> None:
    """A million chunks: what the overheads cost is reckoned with all the same."""
    world = world_of(fleet_of((100.0,) * 4, 1.0), 1_000_000, part=100)
    simulation = Simulation(replace(world, options=world_with("fixed,100+none", ahead=False).options))
    found = estimate(outlook_at(simulation, 50.0))
    assert found is not None and found.by == "rate"
    assert found.likely_at == pytest.approx(5000.0, rel=0.02)  # 1 s of work, 1 s of overhead


def test_a_replay_that_takes_too_long_says_so() -> None:
    outlook = outlook_at(Simulation(world_with("fixed,48+none")), 20.0)
    with pytest.raises(TooLong):
        Replay(outlook, 10).end_at()
    assert math.isfinite(Replay(outlook, 1000).end_at())


@pytest.mark.parametrize(("policy", "tail"), [("fair", "split"), ("guided,12", "duplicate-oldest")])
def test_five_hundred_workers_stay_cheap(policy: str, tail: str) -> None:
    """Processor time, so that a busy machine doesn't count. A look is what the relay's loop waits for."""
    simulation = Simulation(world_with("guided,12+duplicate-oldest", "X500", part=200))
    simulation.run_until(12.0)
    looks, works = [], []
    for _ in range(3):  # the least of three: a crowded machine makes even processor time dearer
        started = time.process_time()
        outlook = outlook_of(simulation.books, parse_policy(policy), parse_tail(tail), 12.0)
        looked = time.process_time()
        found = estimate(outlook)
        looks.append(looked - started)
        works.append(time.process_time() - looked)
        assert found is not None and found.by == ("T" if policy == "fair" else "rate")
    assert min(looks) < 0.05
    assert min(works) < 0.25


@pytest.mark.parametrize("paused", [True, False])
def test_paused_runs_keep_their_books_for_later(paused: bool) -> None:
    """An outlook of a paused run is as good as any: the time of the pause comes on top."""
    simulation = Simulation(world_with("guided,12+duplicate-oldest"))
    simulation.run_until(20.0)
    if paused:
        assert simulation.command(cmd.Pause()) is None
    assert estimate(outlook_at(simulation, 20.0)) is not None


# --- ranges ----------------------------------------------------------------------------------------------


def test_a_range_holds_its_middle_and_ends_at_now() -> None:
    forecaster = Forecaster()
    told = forecaster.tell(10.0, Estimate(12.0, 5.0, 50.0, "T"))
    assert told.low_seconds == 0.0
    assert told.likely_seconds == 2.0
    assert told.high_seconds is not None and told.high_seconds > 50.0


def test_what_moved_may_move_again() -> None:
    calm, moved = Forecaster(), Forecaster()
    for second in range(20):
        steady = calm.tell(float(second), Estimate(100.0, 0.0, 0.0, "T"))
        shaken = moved.tell(float(second), Estimate(100.0 if second < 15 else 120.0, 0.0, 0.0, "T"))
    assert steady.high_seconds is not None and shaken.high_seconds is not None
    assert steady.likely_seconds == 81.0 and steady.high_seconds < 83.0
    assert shaken.likely_seconds == 101.0 and shaken.high_seconds > 115.0


def test_whoever_is_silent_widens_the_range_down() -> None:
    told = Forecaster().tell(0.0, Estimate(60.0, 1.0, 1.0, "replay", soonest_at=40.0))
    assert told.low_seconds == 40.0
