"""A simulation behind the console's interface: a virtual clock, records as they come, commands."""

from __future__ import annotations

import pytest

from farm import commands as cmd
from farm import events as ev
from farm.errors import UsageError
from farm.events import Record, RelayOptions
from farm.simulation.source import STEPS_MAX, SimulatedSource
from farm.simulation.world import World
from tests.simulation.worlds import small_world, worker


class HandClock:
    """Real time, moved by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time


def source_of(world: World, rate: float = 1.0, validate_every: int = 1) -> tuple[SimulatedSource, HandClock]:
    clock = HandClock()
    return SimulatedSource(world, clock, rate=rate, validate_every=validate_every), clock


def two_workers() -> World:
    return small_world(worker("w1"), worker("w2", 5.0), frames=120, tail="none")


def seen(source: SimulatedSource, kind: type[ev.Event]) -> list[Record]:
    return [record for record in source.take() if isinstance(record.event, kind)]


def test_records_come_when_their_time_has_come() -> None:
    source, clock = source_of(two_workers())
    assert (source.world, source.ended, source.now()) == ("simulated", False, 0.0)
    assert isinstance(source.take()[0].event, ev.RunOpened)
    clock.time += 1.05
    assert source.now() == pytest.approx(1.05)
    assert [record.at for record in seen(source, ev.PartCredited)] == [0.5, 1.0, 1.0]
    assert source.take() == []
    assert source.now() == pytest.approx(1.05)


def test_the_rate_changes_without_a_jump() -> None:
    source, clock = source_of(two_workers(), rate=2.0)
    clock.time += 0.5
    assert source.now() == pytest.approx(1.0)
    source.set_rate(0.5)
    assert source.now() == pytest.approx(1.0)
    clock.time += 1.0
    assert source.now() == pytest.approx(1.5)
    assert source.rate == 0.5
    with pytest.raises(UsageError):
        source.set_rate(0.0)
    with pytest.raises(UsageError):
        source.set_rate(float("nan"))
    assert source.now() == pytest.approx(1.5)


def test_halted_time_stands_still() -> None:
    source, clock = source_of(two_workers())
    clock.time += 0.7
    source.halt(True)
    source.take()
    clock.time += 50.0
    assert source.halted
    assert source.now() == pytest.approx(0.7)
    assert source.take() == []
    source.halt(False)
    clock.time += 0.4
    assert source.now() == pytest.approx(1.1)
    assert seen(source, ev.PartCredited)


def test_a_step_shows_what_happens_next() -> None:
    source, clock = source_of(two_workers())
    clock.time += 0.2
    source.take()
    source.step()
    assert source.halted
    (record,) = source.take()
    assert (record.at, source.now()) == (0.5, 0.5)
    clock.time += 10.0
    assert [record for record in source.take() if record.seq >= 0] == []


def test_as_fast_as_can_be() -> None:
    world = small_world(worker("w1"), worker("w2", 7.0), frames=6_000, part=1, policy="fixed,1", tail="none")
    source, clock = source_of(world, rate=float("inf"), validate_every=0)
    takes = 0
    while not source.ended:
        clock.time += 0.1
        source.take()
        takes += 1
        assert source.now() < 1_000
    assert takes > 6_000 // STEPS_MAX  # a bounded piece of work each
    assert source.result().finished
    source.set_rate(1.0)


def test_a_clock_that_is_too_fast_waits_for_the_simulation() -> None:
    world = small_world(worker("w1"), frames=60_000, part=1, policy="fixed,1", tail="none")
    source, clock = source_of(world, validate_every=0)
    clock.time += 5_000.0
    source.take()
    held = source.now()
    assert held < 1_000
    clock.time += 1.0
    assert source.now() == pytest.approx(held + 1.0)


def run_to_end(source: SimulatedSource, clock: HandClock) -> list[Record]:
    records: list[Record] = []
    for _ in range(2_000):
        clock.time += 0.5
        records += source.take()
        if source.ended:
            return records
    raise AssertionError("it doesn't end")


def test_pause_and_resume() -> None:
    """Parts in hand are finished, nothing more is begun; the pause is not counted."""
    source, clock = source_of(two_workers())
    clock.time += 1.2
    assert source.send(cmd.Pause()) is None
    assert source.send(cmd.Pause()) == "the job is paused already"
    clock.time += 3.0
    paused = source.take()
    credited = [r.at for r in paused if isinstance(r.event, ev.PartCredited) and r.at > 1.2]
    assert credited == [1.5, 2.0]
    clock.time += 100.0
    assert seen(source, ev.PartCredited) == []
    assert source.send(cmd.Resume()) is None
    assert source.result().lapses == 0
    run_to_end(source, clock)
    assert source.result().makespan_seconds == pytest.approx(8.0, abs=1.5)


def test_commands_act_at_the_present_time() -> None:
    source, clock = source_of(two_workers())
    source.take()
    clock.time += 0.25
    source.send(cmd.Pause())
    (record,) = [r for r in source.take() if isinstance(r.event, ev.JobPaused)]
    assert record.at == pytest.approx(0.25)


def test_stall_and_thaw() -> None:
    """1. w1 is stalled for longer than its lease: it lapses and w2 does its work. 2. Thawed, it is refused
    once and works on. 3. The run does not end for want of workers while only the operator holds one."""
    world = small_world(worker("w1"), worker("w2", 5.0), frames=120, lease_seconds=4.0, tail="none")
    source, clock = source_of(world)
    clock.time += 0.6
    assert source.send(cmd.StallWorker(worker="w1", stalled=True)) is None
    assert source.send(cmd.StallWorker(worker="w9", stalled=True)) == "there is no worker w9"
    clock.time += 6.0
    source.take()
    assert source.result().lapses == 1
    assert source.send(cmd.StallWorker(worker="w1", stalled=False)) is None
    run_to_end(source, clock)
    result = source.result()
    assert result.finished
    assert result.refusals == 1


def test_the_last_worker_is_stalled_and_thawed() -> None:
    source, clock = source_of(small_world(worker("w1"), lease_seconds=4.0, tail="none"))
    clock.time += 0.6
    source.send(cmd.StallWorker(worker="w1", stalled=True))
    for _ in range(100):
        clock.time += 5.0
        source.take()
    assert not source.ended
    source.send(cmd.StallWorker(worker="w1", stalled=False))
    run_to_end(source, clock)
    assert source.result().finished


def test_kill() -> None:
    source, clock = source_of(two_workers())
    clock.time += 0.6
    assert source.send(cmd.KillWorker(worker="w1")) is None
    (left,) = seen(source, ev.WorkerLeft)
    assert left.at == pytest.approx(0.6)
    run_to_end(source, clock)
    assert source.result().finished
    assert source.result().losses == 1


def test_another_policy_in_flight() -> None:
    source, clock = source_of(two_workers())
    clock.time += 0.6
    assert source.send(cmd.ChangeOptions(options=RelayOptions(policy="fixed,5", tail="none"))) is None
    refusal = source.send(cmd.ChangeOptions(options=RelayOptions(policy="best")))
    assert refusal is not None and "best" in refusal
    records = run_to_end(source, clock)
    sizes = [r.event.stop - r.event.start for r in records if isinstance(r.event, ev.ClaimGranted)]
    assert sizes[:2] == [20, 20]
    assert set(sizes[2:]) == {5}


def test_drain() -> None:
    """Parts in hand are finished and count; then everybody leaves."""
    source, clock = source_of(two_workers())
    clock.time += 0.7
    source.send(cmd.Drain())
    records = run_to_end(source, clock)
    assert [r.at for r in records if isinstance(r.event, ev.PartCredited)] == [0.5, 1.0, 1.0]
    assert not source.result().finished
    assert source.send(cmd.Pause()) == "the run is over"
    assert source.now() == pytest.approx(1.0)


def test_stop_now() -> None:
    source, clock = source_of(two_workers())
    clock.time += 0.7
    source.send(cmd.StopNow())
    assert isinstance(source.take()[-1].event, ev.RunFinished)
    assert source.ended


def test_the_end_is_estimated_at_most_once_a_second() -> None:
    """Of real time, however fast virtual time runs; and not again of a moment that was estimated."""
    source, clock = source_of(two_workers(), rate=0.5)
    told = []
    for _ in range(60):
        clock.time += 0.1
        told += seen(source, ev.FinishEstimated)
    assert 5 <= len(told) <= 7
    first, *later = [record.event for record in told]
    assert isinstance(first, ev.FinishEstimated) and first.likely_seconds is None
    assert {record.seq for record in told} == {-1}
    last = later[-1]
    assert isinstance(last, ev.FinishEstimated) and last.likely_seconds is not None
    assert told[-1].at + last.likely_seconds == pytest.approx(8.5, abs=1.0)
    source.halt(True)
    seen(source, ev.FinishEstimated)
    clock.time += 5.0
    assert len(seen(source, ev.FinishEstimated)) <= 1
    clock.time += 5.0
    assert seen(source, ev.FinishEstimated) == []
