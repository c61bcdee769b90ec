"""Faults that are injected in virtual time, one at a time; and all of them under two policies.

10 fps and parts of 5 frames make a part every half second, chunks of 20 frames one every two seconds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from farm import commands as cmd
from farm import events as ev
from farm.clock import MonotonicClock
from farm.engines.simulated import Simulation
from farm.errors import UsageError
from farm.faultgrid import CASES, POLICIES, Case, simulate_case
from farm.fleet import LinkProfile
from farm.scenario.faults import parse_fault
from farm.simulation.runs import SimResult, encode_log, simulate
from farm.simulation.source import SimulatedSource
from farm.simulation.world import SimWorker, World
from tests.simulation.worlds import run, saw, small_world, worker


def with_faults(world: World, *lines: str) -> World:
    return replace(world, faults=tuple(map(parse_fault, lines)))


def troubled(*lines: str, workers: tuple[SimWorker, ...] = (worker("w1"),), **options: object) -> SimResult:
    return run(with_faults(small_world(*workers, **({"tail": "none"} | options)), *lines))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", [case for case in CASES if not case.live_only], ids=lambda case: case.name)
def test_every_fault_ends_with_each_frame_credited_once(case: Case, policy: str) -> None:
    assert simulate_case(case, policy).wrong == ()


def test_the_same_world_has_the_same_log() -> None:
    lines = ("cut w1 at 1 for 2", "corrupt w2 when it has delivered 1 part every time", "suspend at 3 for 9")
    world = with_faults(small_world(worker("w1"), worker("w2", 7.0), frames=200), *lines)
    first, second = (simulate(world, keep_log=True) for _ in range(2))
    assert encode_log(first.records) == encode_log(second.records)


def test_what_was_injected_is_on_record() -> None:
    result = troubled("stall w1 at 1.2 for 3")
    ((at, injected),) = saw(result, ev.FaultInjected)
    assert (at, injected.kind, injected.worker, injected.seconds) == (pytest.approx(1.2), "stall", "w1", 3.0)
    assert injected.fault == "stall w1 at 1.2 for 3"
    ((over, lifted),) = saw(result, ev.FaultLifted)
    assert (over, lifted.kind) == (pytest.approx(4.2), "stall")


def test_a_stall_is_what_a_silence_of_the_world_is() -> None:
    fault = troubled("stall w1 at 1.2 for 3")
    silence = run(small_world(worker("w1", silences=((1.2, 4.2),)), tail="none"))
    assert fault.makespan_seconds == silence.makespan_seconds == pytest.approx(9.0)


def test_one_that_nobody_wakes_goes_on_at_a_resume() -> None:
    result = troubled("stall w1 at 1", "resume w1 at 4")
    assert result.makespan_seconds == pytest.approx(9.0)


def test_a_killed_worker_comes_back_after_the_time_given() -> None:
    """1. w1 is killed at 0.7, with one part delivered. 2. At 3.7 another process joins in its place, which
    ends the claim of the first. 3. The rest, and the 2 frames that were lost, take 5.5 s."""
    result = troubled("kill w1 at 0.7 for 3")
    assert [at for at, _ in saw(result, ev.WorkerJoined)] == [0.0, pytest.approx(3.7)]
    assert result.makespan_seconds == pytest.approx(3.7 + 5.5)
    assert result.wasted_frames == 2


def test_a_slow_worker_takes_longer_for_as_long_as_it_is_slow() -> None:
    assert troubled("slow w1 to 0.25 at 1 for 4").makespan_seconds == pytest.approx(6.0 + 3.0)
    assert troubled("slow w1 to 0.5 at 3").makespan_seconds == pytest.approx(9.0)


def test_without_heartbeats_a_long_part_lapses_and_its_delivery_is_refused() -> None:
    """1. A part takes w1 5 s, and its lease is 2 s. 2. Its heartbeats get lost: it lapses, though it renders.
    3. What it delivers then is refused, and w2 does it."""
    slow, quick = worker("w1", 1.0), worker("w2", 5.0)
    options = {"lease_seconds": 2.0, "heartbeat_seconds": 0.5}
    sound = run(small_world(slow, quick, frames=40, tail="none", **options))
    result = troubled("lose-heartbeats w1 at 0 for 30", workers=(slow, quick), frames=40, **options)
    assert sound.lapses == 0
    assert result.lapses > 0 and result.finished
    assert saw(result, ev.ClaimRefused, worker="w1")[0][1].asked == "deliver"


def test_alive_without_progress_is_a_stall() -> None:
    """1. w1 stands still at 1 and beats. 2. After 3 s without progress its claim is over, and it hears so.
    3. At 9 it goes on with what it is given then."""
    workers = (worker("w1"), worker("w2", 2.0))
    options = {"stall_timeout_seconds": 3.0, "lease_seconds": 30.0, "heartbeat_seconds": 0.5}
    result = troubled("stand-still w1 at 1.1 for 8", workers=workers, frames=100, **options)
    lapse = saw(result, ev.ClaimEnded, how="stalled")[0]
    assert lapse[1].worker == "w1" and lapse[0] == pytest.approx(4.2, abs=0.5)
    assert saw(result, ev.LeaseRenewed, worker="w1")
    assert result.finished
    assert [at for at, event in saw(result, ev.PartCredited, worker="w1") if 1.1 < at < 9.1] == []
    assert [at for at, event in saw(result, ev.PartCredited, worker="w1") if at >= 9.1]


def test_a_report_that_comes_late_comes_after_its_lapse_and_is_refused() -> None:
    workers = (worker("w1"), worker("w2", 2.0))
    options = {"stall_timeout_seconds": 2.0, "heartbeat_seconds": 0.5, "lease_seconds": 9.0}
    result = troubled("report-late w1 by 6 at 0", workers=workers, **options)
    assert [event.asked for _, event in saw(result, ev.ClaimRefused, worker="w1")] == ["deliver"]
    assert result.finished


def test_a_report_that_comes_twice_counts_once() -> None:
    result = troubled("report-twice w1 at 0 for 100")
    assert len(saw(result, ev.PartSuperseded)) == len(saw(result, ev.PartCredited)) == 12


@pytest.mark.parametrize(
    ("line", "kind"), [("corrupt w1 at 0.7", "damaged"), ("wrong-count w1 at 0.7", "count")]
)
def test_a_part_that_is_not_right_fails_and_is_rendered_again(line: str, kind: str) -> None:
    result = troubled(line)
    assert [event.kind for _, event in saw(result, ev.PartFailed)] == [kind]
    assert result.finished and result.wasted_frames == 5


def test_a_full_memory_fails_the_part_in_hand() -> None:
    result = troubled("fill-memory w1 at 0.7")
    ((at, failed),) = saw(result, ev.PartFailed)
    assert (failed.part, failed.kind) == (1, "out of memory")
    assert at == pytest.approx(0.8), "at the end of the frame in hand"
    assert result.finished


def test_a_bad_id_is_refused_and_changes_nothing() -> None:
    result = troubled("bad-id w1 at 0.7", workers=(worker("w1"), worker("w2", 5.0)))
    ((_, refused),) = saw(result, ev.MessageRefused)
    assert (refused.asked, refused.received) == ("deliver", "'c01#1@e1'")
    assert [event.part for _, event in saw(result, ev.PartCredited, worker="w1")] == [0]
    assert result.finished


def test_a_store_that_refuses_is_asked_again() -> None:
    """1. From 0.4 on the store refuses; the part of 0.5 waits. 2. Rendering goes on until two parts wait.
    3. At 2.4 the store takes them; the backoff makes that 0.1 + 0.2 + … after 0.5."""
    result = troubled("rate-limit w1 at 0.4 for 2")
    times = [at for at, _ in saw(result, ev.PartCredited)]
    assert times[0] == pytest.approx(0.5 + 0.1 + 0.2 + 0.4 + 0.8 + 1.6)
    assert times[1] == times[0]
    assert result.finished and not saw(result, ev.PartFailed)


#: A part of five frames in five blocks, half a second for them together.
LINK = LinkProfile(mib_per_second=0.2, block_bytes=20_000)


def linked(*lines: str, **options: object) -> SimResult:
    return troubled(*lines, workers=(worker("w1", link=LINK),), **options)


def test_over_a_link_damage_costs_a_block_and_no_part() -> None:
    sound, result = linked(), linked("corrupt w1 at 1.1")
    assert result.finished and not saw(result, ev.PartFailed) and result.wasted_frames == 0
    assert len(saw(result, ev.BlockStored)) == len(saw(sound, ev.BlockStored)) == 60
    ((before, _),), ((after, _),) = (saw(one, ev.PartCredited, part=1) for one in (sound, result))
    block_seconds = 20_000 / (0.2 * (1 << 20))
    assert block_seconds < after - before < block_seconds + 0.1, "one block again, after a short wait"


def test_over_a_link_a_store_that_refuses_is_asked_for_the_same_block_again() -> None:
    result = linked("rate-limit w1 at 0.75 for 2")
    stored = [at for at, _ in saw(result, ev.BlockStored)]
    assert not [at for at in stored if 0.9 < at < 2.75] and [at for at in stored if at > 2.75]
    assert len(stored) == 60 and result.finished and not saw(result, ev.PartFailed)


def test_over_a_link_that_always_damages_the_claim_fails_in_the_end() -> None:
    """30 tries take minutes of backoff; then the part has failed, and comes in when the fault is over."""
    result = linked("corrupt w1 at 0.6 for 400", stall_timeout_seconds=4000.0)
    ((at, failed),) = saw(result, ev.PartFailed)
    assert failed.message == "the store did not take it, and 30 tries before" and 100 < at < 400
    assert result.finished


@pytest.mark.parametrize(
    "line",
    [
        "cut w1 at 0.75 for 3",
        "stall w1 at 0.75 for 3",
        "kill w1 at 0.75 for 1",
        "report-late w1 by 2 at 0.2",
        "report-twice w1 at 0 for 100",
        "wrong-count w1 at 0.75",
        "rate-limit w1 at 0.75 for 1",
        "suspend at 0.75 for 3",
    ],
)
def test_over_a_link_every_frame_is_credited_once(line: str) -> None:
    result = linked(line)
    assert result.finished and result.credited_frames == 60
    assert sorted(event.part for _, event in saw(result, ev.PartCredited)) == list(range(12))
    assert saw(result, ev.FaultInjected)


def test_being_able_to_have_faults_changes_nothing() -> None:
    world = small_world(worker("w1", link=LINK), worker("w2", 7.0), frames=200)
    plain, able = (Simulation(world, keep_log=True, injectable=able) for able in (False, True))
    plain.run()
    able.run()
    assert encode_log(plain.records) == encode_log(able.records)
    fault = cmd.InjectFault(fault=parse_fault("kill w1 at 0"))
    idle = Simulation(world)
    idle.run_until(1.0)
    assert idle.command(fault) == "this simulation was not made to have faults injected"


@pytest.mark.parametrize("line", ["pause-relay at 1 for 6", "suspend at 1 for 6"])
def test_a_stop_of_three_leases_costs_no_lease(line: str) -> None:
    """The lease is 2 s, and not counted down while the relay itself stands still."""
    workers = (worker("w1"), worker("w2", 3.0))
    options = {"lease_seconds": 2.0, "heartbeat_seconds": 0.5}
    result = troubled(line, workers=workers, frames=100, **options)
    assert (result.lapses, result.refusals, result.losses) == (0, 0, 0)
    ((_, stalled),) = saw(result, ev.LoopStalled)
    assert stalled.seconds == pytest.approx(6.0 - 0.35)
    times = [record.at for record in result.records]
    assert times == sorted(times), "lease time never runs backwards"


def test_a_fault_of_a_worker_that_is_gone_is_said_not_done() -> None:
    result = troubled("kill w1 at 1", "stall w1 at 2", workers=(worker("w1"), worker("w2")))
    assert len(saw(result, ev.FaultInjected)) == 1
    ((_, notice),) = saw(result, ev.Notice)
    assert notice.text == "a fault did not happen: stall w1 at 2: w1 is gone"


def test_a_fault_whose_moment_never_comes_is_said_at_the_end() -> None:
    lines = ("kill w1 when it has delivered 99 parts", "stall w1 at 99")
    result = troubled(*lines)
    assert [event.fault for _, event in saw(result, ev.FaultNeverCame)] == list(lines)


def test_faults_that_overlap_with_their_like_end_once() -> None:
    lines = ["stand-still w1 at 1.5 for 1", "stand-still w1 at 1.5 for 1", "stand-still w1 at 2 for 1"]
    result = troubled(*lines)
    assert result.finished
    (_, first), *rest = [found for found in saw(result, ev.PartCredited, worker="w1") if found[0] > 2.5]
    assert first.render_seconds >= 0 and rest


def test_a_world_with_impossible_faults_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no worker 'w9'"):
        troubled("kill w9 at 1")
    with pytest.raises(UsageError, match="in a live run only"):
        troubled("fill-disk at 1")


def test_the_console_injects_at_the_present_moment() -> None:
    world = small_world(worker("w1"), worker("w2"), frames=200)
    source = SimulatedSource(world, MonotonicClock())
    records: list[ev.Record] = []
    while not any(isinstance(record.event, ev.ClaimGranted) for record in records):
        source.step()
        records += source.take()
    assert source.send(cmd.InjectFault(fault=parse_fault("kill w1 at 99"))) is None
    refusal = source.send(cmd.InjectFault(fault=parse_fault("fill-disk at 0")))
    assert refusal == "fill-disk happens in a live run only"
    assert source.send(cmd.InjectFault(fault=parse_fault("kill w7 at 0"))) == "there is no worker w7"
    source.set_rate(float("inf"))
    source.halt(False)
    while not source.ended:
        records += source.take()
    (injected,) = [record for record in records if isinstance(record.event, ev.FaultInjected)]
    assert injected.at < 1.0 and injected.event.worker == "w1"
    assert isinstance(records[-1].event, ev.RunFinished) and records[-1].event.exit_code == 0
