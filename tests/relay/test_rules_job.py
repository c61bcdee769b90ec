"""The rules of DESIGN.md §4 that concern the whole job: divergence, pause, drain, options in flight,
parking, what is adopted, voided or offered, and the seam check. One section a rule; scenarios are numbered
steps."""

from __future__ import annotations

import pytest

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.relay.books import OPEN
from tests.relay.driver import HEARD, Run

FRONTIER = "duplicate-oldest,from=frontier"


# --- rule 13: divergence, as an event -------------------------------------------------------------------


def test_two_copies_with_other_bytes_are_told() -> None:
    run = Run("w1", "w2", parts=1)
    one, two = run.claim("w1").token, run.claim("w2").token
    run.credit("w2", two, 0, sha256="aa")
    run.deliver("w1", one, 0, sha256="bb")
    assert run.saw(ev.PartDiverged) == [
        ev.PartDiverged(part=0, token=one, worker="w1", sha256="bb", credited_sha256="aa")
    ]
    assert run.saw(ev.PartSuperseded) and run.books.credited_frames == 0, "nothing counts under a doubt"


@pytest.mark.parametrize(("credited", "late"), [("aa", "aa"), ("aa", ""), ("", "aa")])
def test_equal_or_unknown_bytes_are_no_divergence(credited: str, late: str) -> None:
    run = Run("w1", "w2", parts=1)
    one, two = run.claim("w1").token, run.claim("w2").token
    run.credit("w2", two, 0, sha256=credited)
    run.deliver("w1", one, 0, sha256=late)
    assert not run.saw(ev.PartDiverged)


# --- rule 14: pause, drain, options in flight -----------------------------------------------------------


def test_in_a_pause_nothing_is_granted_and_leases_are_held() -> None:
    """1. w1 works; the job pauses; everybody is told to hold. 2. w2 asks: parked. 3. w1 finishes its part in
    progress: credited. 4. It goes on: w2 is woken, the pause is counted."""
    run = Run("w1", "w2")
    token = run.claim("w1").token
    run.command(cmd.Pause())
    assert all(isinstance(push, msg.Beat) and push.hold for _, push in run.pushes)
    assert {name for name, _ in run.pushes} == {"w1", "w2"}
    assert run.park("w2").why == "the job is paused"
    run.wait(15, "w1")
    assert run.beat("w1", token).hold
    run.credit("w1", token, 0)
    run.now += 5
    run.command(cmd.Resume())
    assert [event.seconds for event in run.saw(ev.JobResumed)] == [20.0]
    assert [name for name, _ in run.woken()] == ["w2"]
    assert run.books.paused_seconds == 20.0
    assert [push.hold for _, push in run.pushes if isinstance(push, msg.Beat)] == [False, False]
    run.finish("w1")
    run.finish("w2")
    assert [event.makespan_seconds for event in run.all(ev.WorkFinished)] == [0.0], "a pause counts apart"


def test_silence_in_a_pause_still_lapses() -> None:
    run = Run("w1", "w2")
    run.claim("w1")
    run.command(cmd.Pause())
    run.park("w2")
    run.wait(20)
    assert run.books.lapses == 1 and not run.woken()
    run.command(cmd.Resume())
    assert [name for name, _ in run.woken()] == ["w2"]


def test_a_restart_ends_the_pause() -> None:
    run = Run("w1")
    run.command(cmd.Pause())
    run.now = 30
    run.restart()
    assert [event.seconds for event in run.saw(ev.JobResumed)] == [30.0]
    run.join("w1")
    run.claim("w1")


def test_commands_that_do_not_apply_are_refused_with_the_reason() -> None:
    run = Run("w1")
    refused: list[tuple[cmd.AnyCommand, str]] = [
        (cmd.Resume(), "the job is not paused"),
        (cmd.StallWorker(worker="w9", stalled=True), "there is no worker w9"),
        (cmd.KillWorker(worker="w9"), "there is no worker w9"),
    ]
    for command, reason in refused:
        run.command(command)
        assert run.refusal == reason
        name = type(command).__name__
        assert run.events == (ev.CommandRefused(command=name, reason=reason, by=command.by),)
    run.command(cmd.Pause())
    run.command(cmd.Pause())
    assert run.refusal == "the job is paused already"
    run.command(cmd.Drain())
    run.command(cmd.Drain())
    assert run.refusal == "the run is draining already"


def test_what_an_operator_does_is_an_event() -> None:
    run = Run("w1")
    commands: list[tuple[cmd.AnyCommand, str]] = [
        (cmd.StallWorker(worker="w1", stalled=True), "stall"),
        (cmd.StallWorker(worker="w1", stalled=False), "unstall"),
        (cmd.KillWorker(worker="w1"), "kill"),
        (cmd.StopNow(), "stop now"),
    ]
    for command, action in commands:
        run.command(command)
        assert [event.action for event in run.saw(ev.OperatorActed)] == [action]


def test_draining_keeps_what_is_done_and_lets_everybody_go() -> None:
    """1. w1 works, w2 is parked; the run drains: both are told, w2 to leave. 2. w1 delivers its part in
    progress, releases the rest and leaves. 3. Nothing is granted any more; the rest is open for a resume."""
    run = Run("w1", "w2", parts=2)
    token = run.claim("w1").token
    run.options(tail="none")
    run.park("w2")
    run.command(cmd.Drain())
    assert msg.Beat(claims=(msg.ClaimState(token, True, 0, 20),), drain=True) in run.told("w1")
    assert [type(push) for push in run.told("w2")] == [msg.Beat, msg.Finished]
    assert run.beat("w1", token).drain
    run.credit("w1", token, 0)
    assert run.release("w1") == msg.Ended(token=token)
    assert not run.woken() and isinstance(run.ask("w1"), msg.Finished)
    run.say("w1", msg.Leave())
    assert not run.books.finished and run.open_ranges() == [(10, 20)]
    run.restart()
    run.join("w1")
    run.finish("w1")
    assert run.books.finished


def test_deaths_while_draining_are_not_held_against_a_part() -> None:
    """Else a run that is stopped three times in a long part would come to set it aside."""
    run = Run("w1")
    run.claim("w1")
    run.command(cmd.Drain())
    run.gone("w1")
    assert not run.saw(ev.PartFailed) and run.saw(ev.WorkerLeft)


def test_leaving_gives_back_what_is_held_without_fault() -> None:
    run = Run("w1", "w2")
    run.claim("w1")
    assert run.say("w1", msg.Leave(reason="bye")) == msg.Bye()
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["released"]
    assert [(event.reason, event.lost) for event in run.saw(ev.WorkerLeft)] == [("bye", False)]
    assert (run.books.losses, run.books.tries) == (0, {})
    assert run.claim("w2").start == 0


def test_options_change_in_flight() -> None:
    """1. fixed,20 and no tail. 2. The policy becomes fixed,50: the next chunk has 50 frames. 3. The tail is
    switched on: a parked worker is woken by that. 4. The lease becomes shorter: it is judged by that."""
    run = Run("w1", "w2", "w3", parts=7, tail="none")
    run.claim("w1")
    run.options(policy="fixed,50")
    assert run.claim("w2").stop == 70
    run.park("w3")
    run.options(tail=FRONTIER)
    assert [(name, granted.token) for name, granted in run.woken()] == [("w3", "c0#2@e1")]
    run.options(lease_seconds=5.0)
    run.wait(5)
    assert run.books.lapses == 3
    assert run.claim("w1").lease_seconds == 5.0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"policy": "magic"}, "no policy 'magic'"),
        ({"tail": "later"}, "choose none"),
        ({"lease_seconds": 2.0}, "between two heartbeats"),
        ({"lease_seconds": 0.0, "heartbeat_seconds": 0.0}, "between two heartbeats"),
        ({"lease_seconds": 1.0, "heartbeat_seconds": 0.5}, "2 s apart"),
    ],
)
def test_options_that_cannot_work_are_refused(changes: dict[str, object], reason: str) -> None:
    """The workers that are here keep the heartbeat they were welcomed with."""
    run = Run("w1")
    before = run.state()
    run.options(**changes)
    assert run.refusal is not None and reason in run.refusal
    assert run.state() == before


# --- rule 15: no polling --------------------------------------------------------------------------------


def test_parked_workers_are_woken_in_the_order_they_were_parked() -> None:
    """1. w1 holds everything, three others are parked in the order w3, w4, w2. 2. Three single parts come
    free, one at a time: w3, w4, w2."""
    run = Run("w1", "w2", "w3", "w4", parts=3, policy="fixed,30", tail="none")
    run.claim("w1")
    for worker in ("w3", "w4", "w2"):
        run.park(worker)
    run.options(policy="fixed,10")
    run.release("w1")
    assert [(name, granted.start) for name, granted in run.woken()] == [("w3", 0), ("w4", 10), ("w2", 20)]
    assert not run.books.parked


def test_asking_twice_is_one_place_in_the_queue() -> None:
    run = Run("w1", "w2", parts=1, tail="none")
    run.claim("w1")
    run.park("w2")
    run.park("w2")
    assert not run.events and list(run.books.parked) == ["w2"]


def test_only_as_many_are_woken_as_there_is_work_for() -> None:
    run = Run("w1", "w2", "w3", parts=1, tail="none")
    run.claim("w1")
    run.park("w2")
    run.park("w3")
    run.release("w1")
    assert [name for name, _ in run.woken()] == ["w2"]
    assert list(run.books.parked) == ["w3"]


def test_the_end_of_the_job_lets_the_parked_go() -> None:
    run = Run("w1", "w2", parts=1, tail="none")
    token = run.claim("w1").token
    run.park("w2")
    run.credit("w1", token, 0)
    assert run.told("w2") == [msg.Finished(why="all work is done")]


def test_who_holds_a_claim_can_have_no_other() -> None:
    run = Run("w1")
    token = run.claim("w1").token
    before = run.state(without=HEARD)
    answer = run.ask("w1")
    assert isinstance(answer, msg.Refused) and token in answer.reason and answer.kind == "state"
    assert run.state(without=HEARD) == before


# --- rule 5: adopt, void, offer -------------------------------------------------------------------------


def test_valid_parts_found_in_the_store_are_adopted() -> None:
    """RG39. 1. w1 wrote parts 0 and 1 and the relay died before it heard of 1. 2. At resume both are found: 1
    is adopted, 0 was known; a number that is none is left alone. 3. Neither is rendered again."""
    run = Run("w1", parts=3)
    run.credit("w1", run.claim("w1").token, 0)
    run.restart()
    run.adopt(0, 1, 7, -1)
    assert [event.part for event in run.saw(ev.PartAdopted)] == [1]
    assert run.books.credited_frames == 20
    run.join("w1")
    assert run.claim("w1").start == 20


def test_what_is_adopted_may_be_all() -> None:
    run = Run(parts=2)
    run.adopt(0, 1)
    assert run.books.finished


def test_a_part_in_flight_is_not_adopted() -> None:
    run = Run("w1")
    run.claim("w1")
    run.adopt(0)
    assert not run.events


def test_a_voided_part_is_rendered_again_also_after_the_end() -> None:
    """1. All work is finished. 2. The stitch finds part 1 damaged: it is open again, and the job is not
    finished any more, in the journal either. 3. It is rendered again: finished once more."""
    run = Run("w1", parts=3)
    run.finish("w1")
    assert run.books.finished
    run.void(1)
    assert not run.books.finished and run.open_ranges() == [(10, 20)]
    run.finish("w1")
    assert run.books.finished and len(run.all(ev.WorkFinished)) == 2
    run.void(99)
    assert not run.events


def test_voiding_a_part_of_a_chunk_in_flight_ends_its_claims() -> None:
    """1. w1 has delivered part 0 of a chunk of two and is at 1. 2. Part 0 is voided. 3. w1 is told that its
    claim is over, and both parts are open in one range."""
    run = Run("w1", parts=2)
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    run.void(0)
    (beat,) = run.told("w1")
    assert isinstance(beat, msg.Beat) and beat.claims[0].reason == "voided: damaged"
    assert run.open_ranges() == [(0, 20)]
    assert isinstance(run.deliver("w1", token, 1), msg.NotClaimant)
    run.finish("w1")
    assert run.books.finished


def test_the_loser_of_a_voided_part_is_told_that_its_claim_is_over() -> None:
    """1. w2 delivers part 0 first; w1's claim is superseded. 2. The part is voided. 3. w1's copy arrives,
    even a broken one: zero frames, no failure; it was nobody's claim any more."""
    run = Run("w1", "w2", parts=1)
    one = run.claim("w1").token
    run.credit("w2", run.claim("w2").token, 0)
    run.void(0)
    answer = run.deliver("w1", one, 0, frames=9)
    assert isinstance(answer, msg.Delivered)
    assert (answer.frames, answer.live, answer.reason) == (0, False, "this claim is over")
    assert not run.saw(ev.PartFailed) and run.open_ranges() == [(0, 10)]


def test_an_adopted_part_is_out_of_trouble() -> None:
    run = Run("w1", parts=2)
    run.claim("w1")
    run.fail("w1", 1)
    run.restart()
    run.adopt(1)
    assert not run.books.troubled and run.books.tries == {1: ["w1"]}


def test_tries_of_a_voided_part_are_remembered() -> None:
    run = Run("w1", parts=1)
    for _ in range(2):
        run.claim("w1")
        run.fail("w1")
    run.finish("w1")
    run.void(0)
    run.claim("w1")
    run.fail("w1")
    assert [event.tries for event in run.saw(ev.PartSetAside)] == [3]


def test_a_part_from_a_spool_is_granted_if_it_is_still_wanted() -> None:
    """1. w1 restarts with part 4 in its spool and offers it: a claim on that part alone. 2. It delivers it.
    3. The queue is in order. 4. w2, with the same part: not wanted any more."""
    run = Run("w1", "w2", "w3", parts=8)
    run.claim("w3")
    granted = run.say("w1", msg.Offer(part=4))
    assert isinstance(granted, msg.Granted) and (granted.start, granted.stop) == (40, 50)
    run.credit("w1", granted.token, 4)
    assert run.open_ranges() == [(20, 40), (50, 80)]
    answer = run.say("w2", msg.Offer(part=4))
    assert isinstance(answer, msg.Declined) and "not wanted" in answer.why and not answer.keep


def test_a_part_in_flight_may_be_offered_by_another_worker() -> None:
    """1. w1 renders parts 0 to 3. 2. w2 has part 2 in its spool: a second claim. 3. w2 delivers: w1 is told
    and keeps the rest. 4. A third is one too many while two hold it."""
    run = Run("w1", "w2", "w3", parts=4, policy="fixed,40")
    one = run.claim("w1").token
    two = run.say("w2", msg.Offer(part=2))
    assert isinstance(two, msg.Granted) and two.token == "c0#2@e1"
    third = run.say("w3", msg.Offer(part=3))
    assert isinstance(third, msg.Declined) and third.keep
    run.credit("w2", two.token, 2)
    assert run.told("w1") and run.tokens("w1") == [one]
    assert isinstance(run.say("w2", msg.Offer(part=3)), msg.Declined), "it has held that chunk"
    run.credit("w1", one, 0, 1, 3)
    assert run.books.finished


def test_a_holder_that_lapses_beside_an_offer_leaves_nothing_behind() -> None:
    """1. w1 holds parts 0 to 3, w2 delivers 2 from its spool, when w1 lapses. 2. w2's claim ends with its
    part: the other three are open again."""
    run = Run("w1", "w2", parts=4, policy="fixed,40")
    run.claim("w1")
    run.now = 10
    two = run.say("w2", msg.Offer(part=2))
    assert isinstance(two, msg.Granted)
    run.wait(10)
    assert run.books.lapses == 1 and run.books.in_flight_frames == 40
    run.credit("w2", two.token, 2)
    assert run.open_ranges() == [(0, 20), (30, 40)]


@pytest.mark.parametrize("part", [-1, 4])
def test_offers_of_no_part_are_refused(part: int) -> None:
    run = Run("w1", parts=4)
    answer = run.say("w1", msg.Offer(part=part))
    assert isinstance(answer, msg.Refused) and answer.kind == "id"


@pytest.mark.parametrize("when", ["holding", "paused", "draining"])
def test_offers_at_the_wrong_time_are_declined(when: str) -> None:
    run = Run("w1", parts=4)
    if when == "holding":
        run.claim("w1")
    else:
        run.command(cmd.Pause() if when == "paused" else cmd.Drain())
    answer = run.say("w1", msg.Offer(part=3))
    assert isinstance(answer, msg.Declined) and answer.keep
    assert run.books.parts[3] == OPEN


# --- the seam check (media.md) --------------------------------------------------------------------------


def mismatched() -> tuple[Run, str]:
    """1. w1 delivers parts 0 and 3; w2 holds 4 and 5. 2. w1 delivers part 1, whose first frame is not what
    the reader of part 0 saw after its last."""
    run = Run("w1", "w2", parts=6, policy="fixed,40")
    token = run.claim("w1").token
    run.claim("w2")
    run.credit("w1", token, 0, first_frame_crc=1, next_frame_crc=2)
    run.credit("w1", token, 3, first_frame_crc=7, next_frame_crc=8)
    answer = run.deliver("w1", token, 1, first_frame_crc=3, next_frame_crc=4)
    assert isinstance(answer, msg.Delivered) and (answer.frames, answer.live) == (0, False)
    return run, token


def test_a_seam_that_does_not_match_voids_everything_and_turns_to_linear_reading() -> None:
    run, token = mismatched()
    assert run.saw(ev.SeamMismatched) == [ev.SeamMismatched(part=0, next_part=1)]
    assert sorted(event.part for event in run.saw(ev.PartVoided)) == [0, 1, 3]
    assert {event.worker: event.how for event in run.saw(ev.ClaimEnded)} == {"w1": "voided", "w2": "voided"}
    assert {name for name, _ in run.pushes} == {"w1", "w2"}
    assert run.books.linear and run.books.credited_frames == 0 and run.open_ranges() == [(0, 60)]
    assert run.claim("w1").linear
    assert isinstance(run.deliver("w1", token, 2), msg.NotClaimant)


def test_once_linear_seams_are_not_judged_and_what_was_read_otherwise_is_not_taken() -> None:
    run, _ = mismatched()
    token = run.claim("w1").token
    answer = run.deliver("w1", token, 0, linear=False)
    assert isinstance(answer, msg.Refused) and run.books.credited_frames == 0
    run.credit("w1", token, 0, next_frame_crc=2)
    run.credit("w1", token, 1, first_frame_crc=3)
    assert not run.saw(ev.SeamMismatched)
    run.adopt(5)
    assert not run.events
    assert isinstance(run.say("w2", msg.Offer(part=5)), msg.Declined)
    run.restart()
    assert run.books.linear


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"next_frame_crc": 2}, {"first_frame_crc": 2}),
        ({"next_frame_crc": 2}, {}),
        ({}, {"first_frame_crc": 2}),
        ({}, {}),
    ],
)
def test_seams_that_match_or_are_unknown_pass(left: dict[str, int], right: dict[str, int]) -> None:
    run = Run("w1", parts=2)
    token = run.claim("w1").token
    run.credit("w1", token, 1, **right)
    run.credit("w1", token, 0, **left)
    assert not run.books.linear and run.books.finished


def test_an_adopted_part_has_seams_too() -> None:
    run = Run("w1", parts=3)
    run.credit("w1", run.claim("w1").token, 0, next_frame_crc=2)
    run.restart()
    run.adopt(1, 2, first_frame_crc=3)
    assert run.books.linear and run.books.credited_frames == 0
    assert [event.part for event in run.saw(ev.PartAdopted)] == [1]


# --- rule 12: parts set aside are taken up again when asked ----------------------------------------------


def test_a_part_set_aside_is_retried_with_a_clean_record() -> None:
    """1. a part fails until it is set aside, and the job ends without it; 2. it is taken up again; 3. it is
    open as if it had never failed, and the same worker may do it."""
    run = Run("w1", parts=1, max_tries=1)
    run.claim("w1")
    run.fail("w1")
    assert run.books.set_aside_frames == 10 and run.books.finished
    run.retry()
    assert run.books.open.frames == 10 and not run.books.finished and not run.books.tries
    run.credit("w1", run.claim("w1").token, 0)
    assert run.books.finished and run.books.credited_frames == 10
