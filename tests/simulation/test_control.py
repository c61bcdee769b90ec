"""What an operator does by hand, in virtual time: the same commands as live, with the same effect."""

from __future__ import annotations

import random

import msgspec
import pytest

from farm import commands as cmd
from farm import events as ev
from farm.engines.simulated import Simulation
from farm.events import RelayOptions
from farm.faults import EVERYONE
from farm.fleet import LinkProfile, WorkerProfile
from farm.scenario.faults import parse_fault
from farm.simulation.runs import result_of
from farm.simulation.world import SimWorker, world_of


def simulation(*fps: float, frames: int = 1200, **options: object) -> Simulation:
    """Workers w1, w2, … with these speeds; parts of 12 frames; the books are recounted at every step."""
    workers = [SimWorker(name=f"w{n}", fps=speed) for n, speed in enumerate(fps, 1)]
    chosen = RelayOptions(**{"policy": "fixed,24", "tail": "none"} | options)  # type: ignore[arg-type]
    world = world_of(workers, frames, part=12, options=chosen)
    return Simulation(world, keep_log=True, validate_every=1, injectable=True)


def said(run: Simulation, kind: type) -> list[ev.AnyEvent]:
    return [record.event for record in run.records if isinstance(record.event, kind)]


def makespan(run: Simulation) -> float:
    run.run()
    result = result_of(run)
    assert result.makespan_seconds is not None and result.credited_frames == run.world.frames
    return result.makespan_seconds


def test_a_throttled_worker_is_as_slow_as_it_is_told_from_then_on() -> None:
    """1200 frames at 24 fps take 50 s; with half the speed from the 20th second on, 80 s."""
    assert makespan(simulation(24.0)) == pytest.approx(50.0)
    run = simulation(24.0)
    run.run_until(20.0)
    assert run.command(cmd.ThrottleWorker(worker="w1", fps=12.0)) is None
    assert makespan(run) == pytest.approx(80.0)
    assert said(run, ev.WorkerThrottled) == [ev.WorkerThrottled(worker="w1", fps_cap=12.0)]


def test_a_cap_is_taken_off_again_and_one_that_is_too_high_is_said() -> None:
    run = simulation(24.0)
    run.run_until(20.0)
    run.command(cmd.ThrottleWorker(worker="w1", fps=12.0))
    run.run_until(40.0)
    assert run.command(cmd.ThrottleWorker(worker="w1", fps=60.0)) is None
    assert makespan(run) == pytest.approx(60.0)
    assert said(run, ev.WorkerThrottled)[-1] == ev.WorkerThrottled(worker="w1", fps_cap=24.0)
    (note,) = said(run, ev.Notice)
    assert note.text == "w1 renders 24 fps at most: 60 are not possible"  # type: ignore[union-attr]


def test_a_cap_outlives_the_process_and_goes_with_a_fault_that_slows_as_well() -> None:
    run = simulation(24.0, 24.0)
    run.run_until(1.0)
    run.command(cmd.ThrottleWorker(worker="w2", fps=6.0))
    run.command(cmd.InjectFault(fault=parse_fault("kill w2 at 0 for 5")))
    run.run_until(7.0)
    assert [join.fps_cap for join in said(run, ev.WorkerJoined)] == [24.0, 24.0, 6.0]  # type: ignore[union-attr]
    run.command(cmd.InjectFault(fault=parse_fault("slow w2 to 0.5 at 0")))
    run.run_until(26.0)
    assert run.workers["w2"]._bench.speed(run.now) == pytest.approx(3.0)
    makespan(run)


def test_fair_learns_of_a_cap_from_reports() -> None:
    """w2 is throttled to a tenth: its share shrinks, and both end together all the same."""
    run = simulation(24.0, 24.0, frames=2400, policy="fair", tail="split")
    run.run_until(25.0)
    run.command(cmd.ThrottleWorker(worker="w2", fps=2.4))
    took = makespan(run)
    left = 2400 - 2 * 24 * 25
    assert took < 25.0 + left / 26.4 * 1.1


def test_an_added_worker_joins_at_once_under_the_next_name_and_works() -> None:
    run = simulation(24.0)
    run.run_until(20.0)
    assert run.command(cmd.AddWorker(profile=WorkerProfile(name="", fps_cap=24.0), by="ada")) is None
    assert makespan(run) == pytest.approx(35.0, abs=1.0)
    (added,) = said(run, ev.WorkerAdded)
    assert (added.worker, added.by) == ("w2", "ada")  # type: ignore[union-attr]
    assert {worker.name: worker.credited_frames > 300 for worker in result_of(run).workers} == {
        "w1": True,
        "w2": True,
    }
    assert (result_of(run).ratio or 0.0) >= 1.0, "the bound knows of the worker that was added"


def test_an_added_worker_has_its_link_and_can_be_hit_by_faults() -> None:
    run = simulation(24.0)
    link = LinkProfile(mib_per_second=1.0)
    run.command(cmd.AddWorker(profile=WorkerProfile(name="far", fps_cap=24.0, link=link)))
    run.run_until(3.0)
    assert said(run, ev.BlockStored)
    run.command(cmd.InjectFault(fault=parse_fault("slow all to 0.5 at 0")))
    assert parse_fault("slow all to 0.5 at 0").workers == (EVERYONE,)
    run.run_until(4.0)
    assert {event.worker for event in said(run, ev.FaultInjected)} == {"w1", "far"}  # type: ignore[union-attr]
    makespan(run)


def test_a_worker_that_is_sent_away_finishes_its_part_and_the_others_do_the_rest() -> None:
    run = simulation(24.0, 24.0, policy="fixed,600")
    run.run_until(10.2)
    assert run.command(cmd.RemoveWorker(worker="w2")) is None
    run.run_until(11.0)
    (left,) = said(run, ev.WorkerLeft)
    assert (left.worker, left.lost, left.reason) == ("w2", False, "drained")  # type: ignore[union-attr]
    assert not [event for event in said(run, ev.ClaimEnded) if event.wasted_frames]  # type: ignore[union-attr]
    makespan(run)


def test_a_chunk_is_copied_and_a_claim_taken_away_by_hand() -> None:
    run = simulation(1.0, 24.0, frames=240)
    run.run_until(5.0)
    assert run.command(cmd.DuplicateChunk(chunk="c0")) is None
    run.run_until(6.5)
    assert run.books.duplicates == 1
    assert "hold c0 already" in (run.command(cmd.DuplicateChunk(chunk="c0")) or "")
    makespan(run)
    run = simulation(1.0, 24.0, frames=240)
    run.run_until(5.0)
    assert run.command(cmd.ReleaseClaim(claim="c0")) is None
    run.run()
    first = next(e for e in said(run, ev.PartCredited) if e.part == 0)  # type: ignore[union-attr]
    assert first.worker == "w2"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (cmd.AddWorker(profile=WorkerProfile(name="")), "a simulated worker needs a speed"),
        (cmd.AddWorker(profile=WorkerProfile(name="w1", fps_cap=1.0)), "there was a worker w1"),
        (cmd.ThrottleWorker(worker="w9", fps=1.0), "there is no worker w9"),
        (cmd.InjectFault(fault=parse_fault("fill-disk at 0 for 1")), "fill-disk happens in a live run only"),
    ],
)
def test_what_is_refused_is_said_and_logged(command: cmd.AnyCommand, reason: str) -> None:
    run = simulation(24.0)
    answer = run.command(command)
    assert answer is not None and answer.startswith(reason)
    (refused,) = said(run, ev.CommandRefused)
    assert refused == ev.CommandRefused(command=type(command).__name__, reason=answer)


@pytest.mark.parametrize("seed", range(24))
def test_an_operator_who_can_t_leave_it_alone_spoils_nothing(seed: int) -> None:
    """Commands of all kinds at random times, sensible or not: every frame is credited once, and it ends."""
    chance = random.Random(seed)
    policy, tail = chance.choice(
        [("fair", "split"), ("fair", "late"), ("guided,24", "duplicate-oldest"), ("af", "split")]
    )
    speeds = [chance.choice([2.0, 12.0, 24.0, 30.0]) for _ in range(chance.randint(2, 5))]
    run = simulation(*speeds, frames=1800, policy=policy, tail=tail, claim_ahead=chance.random() < 0.5)
    for _ in range(40):
        run.run_until(run.now + chance.uniform(0.0, 2.0))
        if run.ended:
            break
        run.command(random_command(run, chance))
    run.run()
    result = result_of(run)
    assert result.finished and result.credited_frames == 1800 and not result.set_aside_frames
    parts = [event.part for event in said(run, ev.PartCredited)]  # type: ignore[union-attr]
    assert sorted(parts) == list(range(150))
    assert not said(run, ev.PartFailed), "no try is counted for what an operator does"


def random_command(run: Simulation, chance: random.Random) -> cmd.AnyCommand:
    worker = chance.choice([*run.workers, "w99"])
    chunk = f"c{chance.randrange(run.books.chunk_count + 1)}"
    live = list(run.books.chunks)
    held = f"c{chance.choice(live)}" if live else chunk
    match chance.randrange(8):
        case 0:
            return cmd.ThrottleWorker(worker=worker, fps=chance.choice([None, 1.0, 6.0, 90.0]))
        case 1:
            return cmd.AddWorker(profile=WorkerProfile(name="", fps_cap=chance.choice([3.0, 24.0])))
        case 2:
            return cmd.RemoveWorker(worker=worker)
        case 3 | 4:
            return cmd.DuplicateChunk(chunk=chance.choice([chunk, held, held]))
        case 5 | 6:
            return cmd.ReleaseClaim(claim=chance.choice([chunk, held, held]))
        case _:
            policy = chance.choice(["fair", "fixed,48", "guided,12", "gss", "awf-c"])
            tail = chance.choice(["split", "late", "none", "duplicate-oldest,from=start"])
            return cmd.ChangeOptions(
                options=msgspec.structs.replace(run.books.options, policy=policy, tail=tail)
            )
