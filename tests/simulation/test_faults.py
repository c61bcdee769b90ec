"""What may happen to a worker, one thing at a time. Scenarios are numbered steps; 10 fps and parts of 5
frames make a part every half second, chunks of 20 frames one every two seconds."""

from __future__ import annotations

import pytest

from farm import events as ev
from farm import messages as msg
from farm.engines.simulated import Simulation
from farm.events import ClaimProgress
from farm.relay.turn import Outcome
from farm.simulation.runs import simulate
from tests.simulation.worlds import run, saw, small_world, worker


def test_an_undisturbed_run() -> None:
    result = run(small_world(worker("w1"), worker("w2"), frames=80, tail="none"))
    assert result.makespan_seconds == pytest.approx(4.0)
    assert (result.claims, result.wasted_frames, result.refusals) == (4, 0, 0)
    assert [w.rendered_frames for w in result.workers] == [40, 40]
    kinds = [type(record.event) for record in result.records]
    assert kinds[:4] == [ev.RunOpened, ev.RelayStarted, ev.PhaseStarted, ev.WorkerJoined]
    assert kinds[-1] is ev.RunFinished
    assert [event.lost for _, event in saw(result, ev.WorkerLeft)] == [False, False]


def test_overhead_passes_before_each_claim() -> None:
    result = run(small_world(worker("w1", overhead_seconds=1.5), frames=60))
    assert result.makespan_seconds == pytest.approx(6.0 + 3 * 1.5)


def test_a_silence_shorter_than_the_lease_costs_only_its_time() -> None:
    """1. w1 is stopped from 1.2 to 4.2. 2. It goes on within the frame where it was."""
    result = run(small_world(worker("w1", silences=((1.2, 4.2),)), tail="none"))
    assert result.makespan_seconds == pytest.approx(6.0 + 3.0)
    assert (result.lapses, result.refusals, result.wasted_frames) == (0, 0, 0)
    assert [event.action for _, event in saw(result, ev.OperatorActed)] == ["stall", "unstall"]


def test_a_silence_longer_than_the_lease_lapses_and_is_refused() -> None:
    """1. w1 claims [0, 20), w2 [20, 40). 2. w1 is stopped at 0.7 with one part delivered. 3. Its lease of 4 s
    runs out; [5, 20) is open again and w2 does it. 4. w1 wakes at 9, hears that it is not the claimant, drops
    its part at the next frame, and goes on with what is left."""
    slow = worker("w2", 1.0)
    world = small_world(worker("w1", silences=((0.7, 9.0),)), slow, frames=40, lease_seconds=4.0, tail="none")
    result = run(world)
    ((at, lapse),) = saw(result, ev.ClaimEnded, how="lapsed")
    assert (lapse.worker, lapse.token) == ("w1", "c0#1@e1")
    assert at == pytest.approx(4.5, abs=0.2)  # what was delivered at 0.5 renewed it
    assert [(event.start, event.stop) for _, event in saw(result, ev.RangeReopened)] == [(5, 20)]
    ((heard_at, refusal),) = saw(result, ev.ClaimRefused)
    assert (heard_at, refusal.worker, refusal.asked) == (9.0, "w1", "heartbeat")
    assert result.finished
    assert result.wasted_frames == 3  # the frames 5 to 7, the last one after it woke


def test_a_dead_worker_is_found_out_by_its_lease() -> None:
    world = small_world(worker("w1", dies_at_seconds=0.7), worker("w2"), lease_seconds=5.0, tail="none")
    result = run(world)
    ((at, _),) = saw(result, ev.ClaimEnded, how="lapsed")
    assert at == pytest.approx(5.5, abs=0.2)
    assert result.finished
    assert result.workers[0].rendered_frames == 7


def test_a_death_that_the_engine_reports_costs_no_lease() -> None:
    world = small_world(worker("w1", dies_at_seconds=0.7), worker("w2"), tail="none")
    result = run(world, deaths_reported=True)
    ((at, event),) = saw(result, ev.WorkerLeft, lost=True)
    assert (at, event.worker) == (0.7, "w1")
    assert result.lapses == 0
    assert result.losses == 1


def test_nobody_left() -> None:
    result = run(small_world(worker("w1", dies_at_seconds=0.7)))
    assert not result.finished
    assert result.credited_frames == 5
    assert saw(result, ev.RunFinished)[0][1].exit_code == 5


def test_a_short_cut_delays_what_was_said() -> None:
    """1. w1 is cut off from 0.7 to 1.7. 2. It renders two parts meanwhile and no third, since it may hold two
    that are not acknowledged. 3. They arrive at 1.7, in order, and count."""
    result = run(small_world(worker("w1", partitions=((0.7, 1.7),)), frames=20, tail="none"))
    credited = [(at, event.part) for at, event in saw(result, ev.PartCredited)]
    assert credited == [(0.5, 0), (1.7, 1), (1.7, 2), (pytest.approx(2.2), 3)]
    assert result.refusals == 0


def test_a_long_cut_makes_reports_late() -> None:
    """1. w1 is cut off at 0.7, its lease of 4 s runs out and w2 does its parts. 2. At 9 all that w1 had said
    arrives: heartbeats and a delivery under a lapsed claim. They are refused and change nothing."""
    world = small_world(
        worker("w1", partitions=((0.7, 9.0),)), worker("w2", 3.0), lease_seconds=4.0, tail="none"
    )
    result = run(world)
    refusals = saw(result, ev.ClaimRefused)
    assert {(at, event.worker) for at, event in refusals} == {(9.0, "w1")}
    assert [event.asked for _, event in refusals if event.asked == "deliver"] == ["deliver"]
    assert result.finished
    assert result.wasted_frames == 10


def test_a_worker_gives_up_after_three_leases_and_joins_again() -> None:
    """1. w1 is cut off at 0.7 for 30 s; its lease is 4 s. 2. After 12 s without an answer it ends. 3. At the
    end of the cut it joins anew; what it had said is lost with the old process."""
    world = small_world(
        worker("w1", partitions=((0.7, 30.7),)), worker("w2", 1.0), frames=80, lease_seconds=4.0
    )
    result = run(world)
    assert [at for at, _ in saw(result, ev.WorkerJoined, worker="w1")] == [0.0, pytest.approx(30.7)]
    assert saw(result, ev.ClaimRefused) == []
    assert result.finished


def test_a_late_worker_joins_when_it_arrives() -> None:
    result = run(small_world(worker("w1", 1.0), worker("w2", 10.0, arrives_at_seconds=5.0)))
    assert [at for at, _ in saw(result, ev.WorkerJoined)] == [0.0, 5.0]
    assert result.makespan_seconds is not None
    assert result.makespan_seconds < 20


def test_a_worker_that_is_stopped_when_it_should_arrive_comes_later() -> None:
    late = worker("w2", arrives_at_seconds=2.0, silences=((1.0, 4.0),))
    result = run(small_world(worker("w1", 1.0), late))
    assert [at for at, _ in saw(result, ev.WorkerJoined)] == [0.0, 4.0]


def test_a_superseded_worker_stops_at_its_next_frame() -> None:
    """1. w1 (0.4 fps) holds [0, 20), w2 (10 fps) the rest, then a copy of w1's from its start. 2. w2 delivers
    all of them at 4 s, while w1 is in its second frame, which ends at 5 s. 3. w1 renders no third one."""
    world = small_world(worker("w1", 0.4), worker("w2"), frames=40)
    result = run(world)
    assert result.makespan_seconds == pytest.approx(4.0)
    assert len(saw(result, ev.ClaimEnded, how="superseded")) == 1
    (left,) = [at for at, event in saw(result, ev.WorkerLeft, worker="w1")]
    assert left == pytest.approx(5.0)
    assert result.workers[0].rendered_frames == 2


def test_throttled() -> None:
    result = run(small_world(worker("w1", throttles=((3.0, 0.5),)), tail="none"))
    assert result.makespan_seconds == pytest.approx(9.0)


def test_costly_frames_take_longer() -> None:
    cost = tuple(3.0 if frame < 10 else 1.0 for frame in range(60))
    result = run(small_world(worker("w1"), tail="none"), cost=cost)
    assert result.makespan_seconds == pytest.approx(8.0)
    first, second = saw(result, ev.PartCredited)[:2]
    assert first[0] == pytest.approx(1.5)
    assert second[0] == pytest.approx(3.0)


def test_latency_is_paid_for_each_answer_waited_for() -> None:
    """Join, claim, and for each of three chunks: the last delivery's acknowledgement and the next claim. Its
    completion is known by the acknowledgement. What the relay credits, it credits one way earlier."""
    result = run(small_world(worker("w1"), tail="none"), latency_seconds=0.1)
    assert result.makespan_seconds == pytest.approx(6.0 + 0.4 + 2 * 0.4 + 0.1)


def test_speeds_are_reported_without_overhead_and_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """By each delivery exactly; by each heartbeat in whole frames."""
    speeds = {"w1": 7.0, "w2": 2.0}
    world = small_world(worker("w1", 7.0, overhead_seconds=3.0), worker("w2", 2.0), frames=200)
    simulation = Simulation(world)
    handle = simulation.relay.handle
    said: list[tuple[str, ClaimProgress]] = []

    def listen(name: str, request: msg.AnyRequest, now: float) -> Outcome:
        if isinstance(request, msg.Heartbeat):
            said.extend((name, progress) for progress in request.claims)
        elif isinstance(request, msg.Deliver):
            assert request.claim_rendered / request.claim_seconds == pytest.approx(speeds[name])
        return handle(name, request, now)

    monkeypatch.setattr(simulation.relay, "handle", listen)
    simulation.run()
    assert any(progress.rendered for _, progress in said)
    for name, progress in said:
        assert progress.rendered == int(progress.render_seconds * speeds[name] + 1e-6)


def test_a_claim_is_held_ahead_and_its_overhead_hidden() -> None:
    """Three chunks of 2 s with 1.5 s of overhead: only the first overhead shows. The next claim is asked for
    when 1.75 s of the present one are left."""
    world = small_world(worker("w1", overhead_seconds=1.5), tail="none", claim_ahead=True)
    result = run(world)
    assert result.makespan_seconds == pytest.approx(1.5 + 6.0)
    grants = [at for at, _ in saw(result, ev.ClaimGranted)]
    assert grants == [0.0, pytest.approx(1.5 + 0.25), pytest.approx(1.5 + 2.0 + 0.25)]


def test_without_heartbeats_no_lease_is_judged() -> None:
    world = small_world(worker("w1", 0.5), tail="none", lease_seconds=3.0)
    assert run(world, heartbeats=False).lapses == 0


def test_until() -> None:
    result = simulate(small_world(worker("w1")), until=3.2)
    assert not result.finished
    assert result.credited_frames == 30
    assert result.wasted_frames == 0


def test_a_cut_before_the_welcome_arrives() -> None:
    """1. w1 joins; it is cut off while the welcome is on its way. 2. It hears it when the cut ends, has not
    given up meanwhile, and asks once."""
    world = small_world(worker("w1", partitions=((0.15, 0.35),)), tail="none")
    result = run(world, latency_seconds=0.1)
    assert len(saw(result, ev.WorkerJoined)) == 1
    assert saw(result, ev.MessageRefused) == []
    assert saw(result, ev.ClaimGranted)[0][0] == pytest.approx(0.45)
    assert result.finished


def test_what_was_said_to_a_process_that_is_gone_reaches_no_other() -> None:
    """1. w1 is cut off for longer than three leases of 2.5 s, ends, and joins again when the cut ends, with
    the answers to the old process still on their way. 2. The new one asks once for each claim."""
    world = small_world(worker("w1", partitions=((1.0, 12.0),)), heartbeat_seconds=1.0, lease_seconds=2.5)
    result = run(world, latency_seconds=0.3)
    assert len(saw(result, ev.WorkerJoined)) == 2
    assert saw(result, ev.MessageRefused) == []
    assert result.finished
