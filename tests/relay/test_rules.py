"""The rules of DESIGN.md §4 that concern one claim: credit, claimants, repeats, epochs, next and stop.
(Time, the fleet and the whole job: test_rules_time.py, test_rules_tail.py, test_rules_fleet.py,
test_rules_job.py.) One section a rule; scenarios are numbered steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farm import events as ev
from farm import messages as msg
from tests.relay.driver import HEARD, Run

START = "duplicate-oldest,from=start"


# --- rule 1: credit is per part, and only a delivery credits --------------------------------------------


def test_a_delivery_credits_its_part_and_the_last_one_closes_the_chunk() -> None:
    """1. w1 claims parts 0 and 1. 2. It delivers 0: ten frames. 3. It delivers 1: the chunk is complete."""
    run = Run("w1")
    token = run.claim("w1").token
    first = run.credit("w1", token, 0)
    assert (first.next, first.stop, first.live) == (10, 20, True)
    assert not run.saw(ev.ClaimEnded)
    last = run.credit("w1", token, 1)
    assert (last.next, last.stop, last.live) == (20, 20, False)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["completed"]
    assert len(run.saw(ev.ChunkCompleted)) == 1
    assert run.books.credited_frames == 20


def test_parts_may_be_delivered_in_any_order() -> None:
    """1. w1 claims four parts. 2. It delivers 2, 0: next is 1. 3. It lapses: 1 and 3 reopen, each alone."""
    run = Run("w1", policy="fixed,40")
    token = run.claim("w1").token
    assert run.credit("w1", token, 2).next == 0
    assert run.credit("w1", token, 0).next == 10
    run.wait(20)
    assert [(event.start, event.stop) for event in run.saw(ev.RangeReopened)] == [(30, 40), (10, 20)]
    assert run.open_ranges() == [(10, 20), (30, 100)]


def test_a_part_credited_already_is_acknowledged_with_zero_frames() -> None:
    """1. w1 and w2 hold the same chunk. 2. w2 delivers part 0. 3. w1 delivers part 0 too: zero frames, ten
    wasted, and the claim goes on."""
    run = Run("w1", "w2", parts=2)
    token = run.claim("w1").token
    run.credit("w2", run.claim("w2").token, 0)
    answer = run.deliver("w1", token, 0)
    assert isinstance(answer, msg.Delivered)
    assert (answer.frames, answer.live, answer.next) == (0, True, 10)
    assert [event.frames for event in run.saw(ev.PartSuperseded)] == [10]
    assert run.books.wasted_frames == 10
    assert run.books.credited_frames == 10


def test_the_same_file_delivered_again_is_no_waste() -> None:
    run = Run("w1")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    answer = run.deliver("w1", token, 0)
    assert isinstance(answer, msg.Delivered) and answer.frames == 0
    assert run.books.wasted_frames == 0


def test_without_a_file_name_every_copy_is_another_one() -> None:
    run = Run("w1")
    token = run.claim("w1").token
    run.credit("w1", token, 0, file="")
    run.deliver("w1", token, 0, file="")
    assert run.books.wasted_frames == 10


def test_waste_is_what_was_rendered_and_never_counted() -> None:
    """1. w1 and w2 hold the same chunk; w2 delivers parts 0 and 1. 2. w1 delivers 0: ten wasted. 3. It has
    rendered 17 frames when it lapses: seven more. 4. Of 20 it delivers in its next claim, none."""
    run = Run("w1", "w2", parts=3, policy="fixed,30", tail="duplicate-oldest,from=start")
    one = run.claim("w1").token
    two = run.claim("w2").token
    run.credit("w2", two, 0, 1)
    run.deliver("w1", one, 0)
    assert run.books.wasted_frames == 10
    run.beat("w1", ev.ClaimProgress(one, rendered=17))
    run.now += 10
    run.beat("w2", two)
    run.wait(10)
    assert [(event.worker, event.wasted_frames) for event in run.saw(ev.ClaimEnded)] == [("w1", 7)]
    assert run.books.wasted_frames == 17
    run.credit("w2", two, 2)
    assert run.books.wasted_frames == 17


@pytest.mark.parametrize("part", [2, None, -1, 99])
def test_a_part_that_is_not_of_the_claim_is_refused_with_what_it_covers(part: int | None) -> None:
    run = Run("w1")
    token = run.claim("w1").token
    answer = run.say("w1", msg.Deliver(token=token, part=part, frames=10))
    reason = "c0#1@e1 covers frames [0, 20)"
    assert answer == msg.Refused(received=f"part {part}", reason=reason)
    assert [(event.asked, event.reason) for event in run.saw(ev.MessageRefused)] == [("deliver", reason)]


def test_complete_is_checked_against_the_credits_and_changes_nothing() -> None:
    """1. w1 claims two parts and delivers one. 2. Complete: not done, goes on at the other. 3. It delivers
    that. 4. Complete: done."""
    run = Run("w1")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    before = run.state()
    early = run.say("w1", msg.Complete(token=token))
    assert early == msg.Completed(token=token, done=False, next=10, stop=20)
    assert run.state() == before and not run.events
    run.credit("w1", token, 1)
    assert run.say("w1", msg.Complete(token=token)) == msg.Completed(token=token, done=True, next=20, stop=20)


def test_a_count_that_is_not_the_plans_fails_the_part() -> None:
    """1. w1 delivers nine frames of ten. 2. Its claim ends failed; nothing is credited; a try counts."""
    run = Run("w1")
    token = run.claim("w1").token
    assert run.deliver("w1", token, 0, frames=9) == msg.Ended(token=token)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["failed"]
    assert [(event.part, event.kind) for event in run.saw(ev.PartFailed)] == [(0, "count")]
    assert (run.books.credited_frames, run.books.failures) == (0, 1)


def test_wrong_counts_in_a_row_block_their_worker() -> None:
    run = Run("w1", "w2", block_after_failures=2)
    for _ in range(2):
        token = run.claim("w1").token
        run.deliver("w1", token, run.books.leases[token].start // 10, frames=9)
    assert run.saw(ev.WorkerBlocked)


def test_frames_that_cannot_be_decoded_count_as_part_of_the_plan() -> None:
    run = Run("w1")
    answer = run.credit("w1", run.claim("w1").token, 0, frames=7, lost_frames=3)
    assert answer.frames == 10


def test_the_last_credit_ends_the_job() -> None:
    run = Run("w1", parts=2, policy="fixed,10")
    run.wait(5)
    for part in range(2):
        token = run.claim("w1").token
        run.now += 4
        run.credit("w1", token, part)
    finished = ev.WorkFinished(credited_frames=20, set_aside_frames=0, makespan_seconds=8.0)
    assert run.saw(ev.WorkFinished) == [finished]
    run.restart()
    assert run.saw(ev.WorkFinished) == [finished], "the next relay says so too"
    run.join("w1")
    run.wait(1)
    assert len(run.all(ev.WorkFinished)) == 2, "but once each"
    assert isinstance(run.ask("w1"), msg.Finished)


# --- rule 2: only the current claimant ------------------------------------------------------------------

Speak = Callable[[str], msg.AnyRequest]
SPEAK: dict[str, Speak] = {
    "deliver": lambda token: msg.Deliver(token=token, part=1, frames=10, file="late"),
    "complete": lambda token: msg.Complete(token=token),
    "fail": lambda token: msg.Fail(token=token, part=1),
    "release": lambda token: msg.Release(token=token),
}


def late_finisher() -> tuple[Run, str]:
    """1. w1 claims parts 0 to 2 and delivers 0. 2. It is stopped; its claim lapses. 3. w2 takes the rest."""
    run = Run("w1", "w2", parts=3, policy="fixed,30")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    run.wait(20)
    run.claim("w2")
    return run, token


@pytest.mark.parametrize("asked", SPEAK)
def test_the_late_finish_is_refused(asked: str) -> None:
    """4. w1 wakes and asks something of its old claim: not claimant, with claim, holder and reason; the
    refusal is an event, and nothing else has changed."""
    run, token = late_finisher()
    before = run.state(without=HEARD)
    answer = run.say("w1", SPEAK[asked](token))
    reason = "c0#1@e1 lapsed: no heartbeat for 20.0 s"
    assert answer == msg.NotClaimant(token=token, reason=reason, holder="w2")
    assert run.events == (ev.ClaimRefused(worker="w1", asked=asked, token=token, reason=reason, holder="w2"),)
    assert run.state(without=HEARD) == before
    assert run.books.refusals == 1


def test_a_late_heartbeat_never_revives() -> None:
    """4. w1 wakes and beats: it is told that the claim is over and why; w2 still holds the chunk."""
    run, token = late_finisher()
    before = run.state(without=HEARD)
    (told,) = run.beat("w1", ev.ClaimProgress(token, 30, 20)).claims
    assert told == msg.ClaimState(token, live=False, reason="c0#1@e1 lapsed: no heartbeat for 20.0 s")
    assert [type(event) for event in run.events] == [ev.ClaimRefused]
    assert run.state(without=HEARD) == before


def test_a_late_finish_after_the_other_one_finished_has_no_holder() -> None:
    run, token = late_finisher()
    run.finish("w2")
    answer = run.say("w1", SPEAK["deliver"](token))
    assert isinstance(answer, msg.NotClaimant) and answer.holder is None
    assert run.books.credited_frames == 30


def test_the_holder_is_who_has_those_frames_now() -> None:
    """1. w1 holds [0, 20), w2 [20, 40); w2 lapses. 2. Nobody has its frames: no holder, though its neighbours
    are held. 3. w3 takes them: w3."""
    run = Run("w1", "w2", "w3", parts=6)
    one = run.claim("w1").token
    two = run.claim("w2").token
    three = run.claim("w3").token
    run.now = 10
    run.beat("w1", one)
    run.beat("w3", three)
    run.wait(10)
    answer = run.say("w2", SPEAK["complete"](two))
    assert isinstance(answer, msg.NotClaimant) and answer.holder is None
    run.credit("w3", three, 4, 5)
    run.claim("w3")
    answer = run.say("w2", SPEAK["complete"](two))
    assert isinstance(answer, msg.NotClaimant) and answer.holder == "w3"


@pytest.mark.parametrize("asked", SPEAK)
def test_somebody_elses_claim_is_refused(asked: str) -> None:
    """1. w1 holds a chunk. 2. w2 speaks for it: refused, with w1 as the holder."""
    run = Run("w1", "w2")
    token = run.claim("w1").token
    before = run.state(without=HEARD)
    answer = run.say("w2", SPEAK[asked](token))
    assert answer == msg.NotClaimant(token=token, reason=f"{token} is held by w1", holder="w1")
    assert run.state(without=HEARD) == before


@pytest.mark.parametrize("asked", SPEAK)
def test_somebody_elses_completed_claim_is_refused_too(asked: str) -> None:
    """Only whose claim it was is acknowledged with zero frames."""
    run = Run("w1", "w2")
    token = run.claim("w1").token
    run.credit("w1", token, 0, 1)
    before = run.state(without=HEARD)
    answer = run.say("w2", SPEAK[asked](token))
    assert answer == msg.NotClaimant(token=token, reason=f"{token} is not a claim of w2", holder=None)
    assert run.state(without=HEARD) == before


def test_a_claim_that_never_was_is_refused() -> None:
    run = Run("w1", "w2")
    run.claim("w1")
    answer = run.say("w2", msg.Complete(token="c0#7@e1"))
    assert answer == msg.NotClaimant(token="c0#7@e1", reason="c0#7@e1 is not a claim of w2", holder=None)


@pytest.mark.parametrize("asked", ["fail", "release"])
def test_a_completed_claim_cannot_be_reopened(asked: str) -> None:
    """1. w1 completes its claim. 2. It then fails or releases it: not claimant, and all stays credited."""
    run = Run("w1")
    token = run.claim("w1").token
    run.credit("w1", token, 0, 1)
    before = run.state(without=HEARD)
    answer = run.say("w1", SPEAK[asked](token))
    assert isinstance(answer, msg.NotClaimant) and "completed" in answer.reason
    assert run.state(without=HEARD) == before


def test_who_has_not_joined_is_asked_to() -> None:
    run = Run()
    answer = run.say("w1", msg.Claim(seq=4))
    assert isinstance(answer, msg.Refused) and (answer.seq, answer.reason) == (4, "join first")


def test_a_connection_speaks_for_its_own_worker_only() -> None:
    run = Run("w1")
    answer = run.say("w2", msg.Join(worker="w1", seq=1))
    assert isinstance(answer, msg.Refused) and answer.seq == 1
    assert "w2" not in run.books.workers


def test_a_worker_of_another_build_is_refused() -> None:
    """Its parts would have other bytes (DESIGN.md §5); one that doesn't say its build is believed."""
    run = Run()
    answer = run.join("w1", build="another", seq=1)
    assert isinstance(answer, msg.Refused) and (answer.seq, answer.kind) == (1, "version")
    assert isinstance(run.join("w1", build="b"), msg.Welcome)
    assert isinstance(run.join("w2"), msg.Welcome)


# --- rule 2: a repeated message gets its first answer ---------------------------------------------------


def test_a_repeated_delivery_gets_its_first_answer() -> None:
    """1. w1 delivers part 0, request 2. 2. It claims more. 3. Request 2 again: the same answer, no event."""
    run = Run("w1")
    token = run.claim("w1").token
    first = run.deliver("w1", token, 0, seq=2)
    run.credit("w1", token, 1, seq=3)
    before = run.state()
    assert run.deliver("w1", token, 0, seq=2) == first
    assert not run.events and not run.pushes
    assert run.state() == before


def test_a_repeated_claim_is_no_second_claim() -> None:
    run = Run("w1")
    first = run.say("w1", msg.Claim(seq=2))
    assert isinstance(first, msg.Granted) and run.say("w1", msg.Claim(seq=2)) == first
    assert len(run.books.leases) == 1


def test_requests_that_overtook_one_another_are_not_taken_for_repeats() -> None:
    """The shell hands on a claim when the start line opens, after heartbeats with higher numbers.

    1. w1 joins, request 1, and claims, request 2, which is held back. 2. Its heartbeats 3 and 4 are heard.
    3. Request 2 comes: a claim like any other."""
    run = Run()
    run.join("w1", seq=1, pid=7)
    run.say("w1", msg.Heartbeat(seq=3))
    run.say("w1", msg.Heartbeat(seq=4))
    answer = run.say("w1", msg.Claim(seq=2))
    assert isinstance(answer, msg.Granted) and answer.seq == 2


def test_a_repeat_that_is_too_old_is_refused_and_changes_nothing() -> None:
    """1. w1 claims, request 2. 2. A hundred heartbeats later request 2 comes again: refused."""
    run = Run("w1")
    run.say("w1", msg.Claim(seq=2))
    for seq in range(3, 103):
        run.say("w1", msg.Heartbeat(seq=seq))
    before = run.state()
    for seq in (2, 38):  # 39 to 102 are kept
        answer = run.say("w1", msg.Claim(seq=seq))
        assert isinstance(answer, msg.Refused) and answer.seq == seq and "too old" in answer.reason
    assert isinstance(run.say("w1", msg.Heartbeat(seq=39)), msg.Beat)
    assert run.state() == before
    assert isinstance(run.say("w1", msg.Heartbeat(seq=102)), msg.Beat)


@pytest.mark.parametrize("end", ["leave", "gone"])
def test_the_next_process_under_a_name_counts_from_one_again(end: str) -> None:
    """1. w1 has come to request 50 and goes. 2. Another process joins as w1 and claims, request 2."""
    run = Run("w1")
    run.say("w1", msg.Heartbeat(seq=50))
    if end == "leave":
        bye = run.say("w1", msg.Leave(seq=51))
        assert run.say("w1", msg.Leave(seq=51)) == bye
    else:
        run.gone("w1")
        run.say("w1", msg.Heartbeat(seq=51))  # its last words arrive after its death
    run.join("w1", seq=1, pid=8)
    assert isinstance(run.say("w1", msg.Claim(seq=2)), msg.Granted)


def test_a_repeated_join_does_not_cost_the_claim() -> None:
    """1. w1 joins and claims. 2. The same join once more: a welcome. 3. A join of another process in its
    place: the claim of the first is over, which counts as its death."""
    run = Run()
    run.join("w1", seq=1, pid=7)
    token = run.say("w1", msg.Claim(seq=2))
    assert isinstance(token, msg.Granted)
    assert isinstance(run.join("w1", seq=1, pid=7), msg.Welcome)
    assert run.tokens("w1") == [token.token] and not run.events
    run.join("w1", seq=1, pid=8)
    assert run.tokens("w1") == []
    assert [event.lost for event in run.saw(ev.WorkerLeft)] == [True]
    assert [event.part for event in run.saw(ev.PartFailed)] == [0]


def test_a_join_without_numbers_is_repeated_only_while_nothing_followed_it() -> None:
    run = Run("w1")
    run.join("w1")
    assert not run.events
    run.claim("w1")
    run.join("w1")
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["worker left"]


# --- rule 3: epochs -------------------------------------------------------------------------------------


def test_a_restart_closes_the_claims_of_the_epoch_before() -> None:
    """1. w1 holds a claim with one part credited. 2. The relay restarts: the claim ends as *relay restarted*,
    no lapse, no try, no loss. 3. w1 joins and claims: epoch 2."""
    run = Run("w1")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    run.restart()
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["relay restarted"]
    assert not run.pushes, "there is nobody to be told"
    assert (run.books.lapses, run.books.losses, run.books.tries) == (0, 0, {})
    assert run.open_ranges() == [(10, 100)]
    run.join("w1")
    assert run.claim("w1").token == "c1#1@e2"


@pytest.mark.parametrize("asked", SPEAK)
@pytest.mark.parametrize("how", ["live", "completed"])
def test_an_older_epoch_is_refused(asked: str, how: str) -> None:
    """1. w1 holds a claim, or has completed it. 2. The relay restarts, w1 joins again, w2 takes what is open.
    3. w1 speaks under its old token: not claimant, because of the epoch, even if the claim was its own and
    complete."""
    run = Run("w1", parts=3)
    token = run.claim("w1").token
    if how == "completed":
        run.credit("w1", token, 0, 1)
    run.restart()
    run.join("w1")
    run.join("w2")
    run.claim("w2")
    before = run.state(without=HEARD)
    answer = run.say("w1", SPEAK[asked](token))
    assert isinstance(answer, msg.NotClaimant)
    assert answer.reason == "c0#1@e1 is of epoch 1, this relay's is 2"
    assert answer.holder == ("w2" if how == "live" else None)
    assert run.state(without=HEARD) == before


def test_a_token_of_an_epoch_to_come_is_refused() -> None:
    run = Run("w1")
    run.claim("w1")
    answer = run.say("w1", msg.Complete(token="c0#1@e9"))
    assert isinstance(answer, msg.NotClaimant) and "epoch 9" in answer.reason


# --- rule 6: every answer carries next and stop ---------------------------------------------------------


def test_the_slower_holder_skips_what_the_faster_one_delivered() -> None:
    """1. w1 holds parts 0 to 3, w2 a copy. 2. w2 delivers 0, 1. 3. w1 is told at once, unasked, that its next
    is 2; its heartbeat says so too. 4. w1 delivers 2: w2 is told."""
    run = Run("w1", "w2", parts=4, policy="fixed,40")
    one = run.claim("w1").token
    two = run.claim("w2").token
    run.credit("w2", two, 0, 1)
    state = msg.ClaimState(one, live=True, next=20, stop=40)
    assert run.told("w1") == [msg.Beat(claims=(state,))]
    assert run.beat("w1", one).claims == (state,)
    assert run.credit("w1", one, 2).next == 30
    assert run.told("w2") == [msg.Beat(claims=(msg.ClaimState(two, live=True, next=30, stop=40),))]


def test_from_start_nobody_skips_and_deliveries_may_overtake() -> None:
    """In the write-up's model a holder renders its whole chunk. Next is the first part it has not itself
    delivered, also when a later one arrived before it."""
    run = Run("w1", "w2", parts=4, policy="fixed,40", tail=START)
    one = run.claim("w1").token
    run.credit("w1", one, 0)
    two = run.claim("w2")
    assert (two.start, two.next) == (0, 0)
    assert run.credit("w1", one, 2).next == 10
    assert run.credit("w1", one, 1).next == 30
    assert run.beat("w2", two.token).claims[0].next == 0
    late = run.deliver("w2", two.token, 0)
    assert isinstance(late, msg.Delivered) and (late.frames, late.next) == (0, 10)
