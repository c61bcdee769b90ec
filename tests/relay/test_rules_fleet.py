"""The rules of DESIGN.md §4 that concern the fleet: duplicates, tries, deaths, blocking. One section a rule;
scenarios are numbered steps."""

from __future__ import annotations

import pytest

from farm import events as ev
from farm import messages as msg
from tests.relay.driver import Run

START = "duplicate-oldest,from=start"
FRONTIER = "duplicate-oldest,from=frontier"


# --- rule 10: duplicates --------------------------------------------------------------------------------


def test_the_oldest_chunk_is_duplicated_first() -> None:
    """1. w1, w2, w3 hold c0, c1, c2; nothing is open. 2. w4 gets c0, w5 c1; c0 has two holders by then."""
    run = Run("w1", "w2", "w3", "w4", "w5", parts=6)
    for worker in ("w1", "w2", "w3"):
        run.claim(worker)
    assert run.claim("w4").token == "c0#2@e1"
    assert run.saw(ev.ClaimGranted)[0].duplicate
    assert run.claim("w5").token == "c1#2@e1"
    assert run.books.duplicates == 2


def test_a_grant_says_whether_it_is_new_reopened_or_a_duplicate() -> None:
    run = Run("w1", "w2", "w3", parts=4)
    grants = []
    for worker in ("w1", "w2", "w3"):
        run.claim(worker)
        grants += run.saw(ev.ClaimGranted)
    run.release("w2")
    run.claim("w2")
    grants += run.saw(ev.ClaimGranted)
    assert [(grant.token, grant.duplicate, grant.reopened) for grant in grants] == [
        ("c0#1@e1", False, False),
        ("c1#1@e1", False, False),
        ("c0#2@e1", True, False),
        ("c2#1@e1", False, True),
    ]
    assert grants[2].why == "nothing is open; c0 is the oldest chunk in flight, held by w1"


def test_the_tail_acts_only_when_nothing_is_open() -> None:
    run = Run("w1", "w2", parts=4)
    run.claim("w1")
    assert run.claim("w2").token == "c1#1@e1"


def test_two_holders_are_the_most() -> None:
    run = Run("w1", "w2", "w3", parts=2)
    run.claim("w1")
    run.claim("w2")
    assert run.park("w3").why == "nothing is open and no chunk may be duplicated"


def test_a_worker_is_never_given_a_chunk_it_has_held() -> None:
    """1. w1 holds c0; w2 gets a copy and lapses. 2. w2 asks again: c0 may be duplicated, but not by w2.
    3. w3 gets it."""
    run = Run("w1", "w2", "w3", parts=2)
    token = run.claim("w1").token
    run.claim("w2")
    run.now = 10
    run.beat("w1", token)
    run.wait(10)
    assert run.books.lapses == 1
    run.park("w2")
    assert run.claim("w3").token == "c0#3@e1"


def test_a_chunk_that_loses_one_of_two_holders_stays_in_flight_and_comes_first() -> None:
    """1. w1 holds c0, w2 c1; w3 copies c0. 2. w1 lapses: c0 stays in flight with w3, nothing reopens. 3. w4
    asks: c0, the oldest, once more, before c1. 4. w3 finishes it."""
    run = Run("w1", "w2", "w3", "w4", parts=4)
    run.claim("w1")
    two = run.claim("w2").token
    three = run.claim("w3").token
    assert three == "c0#2@e1"
    run.now = 10
    run.beat("w2", two)
    run.beat("w3", three)
    run.wait(10)
    assert [event.worker for event in run.saw(ev.ClaimEnded)] == ["w1"]
    assert not run.saw(ev.RangeReopened) and run.books.open.frames == 0
    assert run.claim("w4").token == "c0#3@e1"
    run.credit("w3", three, 0, 1)
    assert {event.worker: event.how for event in run.saw(ev.ClaimEnded)} == {
        "w3": "completed",
        "w4": "superseded",
    }


def test_a_chunk_is_complete_once_and_only_when_it_is() -> None:
    """1. w1 lapses: the chunk reopens, which does not complete it. 2. w2 takes it, w1 a copy; w1 releases it:
    nor does that. 3. w2 delivers it all: complete, once."""
    run = Run("w1", "w2", parts=2)
    run.claim("w1")
    run.wait(20)
    token = run.claim("w2").token
    run.claim("w1")
    run.release("w1")
    assert not run.all(ev.ChunkCompleted)
    run.credit("w2", token, 0, 1)
    assert [event.chunk for event in run.all(ev.ChunkCompleted)] == [1]


def test_the_last_of_two_holders_reopens_the_rest_once() -> None:
    run = Run("w1", "w2", parts=2)
    run.credit("w1", run.claim("w1").token, 0)
    run.claim("w2")
    run.wait(20)
    assert [(event.start, event.stop) for event in run.saw(ev.RangeReopened)] == [(10, 20)]
    assert len(run.saw(ev.ClaimEnded)) == 2


@pytest.mark.parametrize(("outstanding", "duplicated"), [(1, False), (2, True)])
def test_no_duplicates_while_more_than_max_outstanding_chunks_are_in_flight(
    outstanding: int, duplicated: bool
) -> None:
    run = Run("w1", "w2", "w3", parts=4, max_outstanding=outstanding)
    token = run.claim("w1").token
    run.claim("w2")
    assert isinstance(run.ask("w3"), msg.Granted) == duplicated
    if not duplicated:
        run.credit("w1", token, 0, 1)  # one chunk is left: now w3 is woken
        assert [worker for worker, _ in run.woken()] == ["w3"]


@pytest.mark.parametrize(("tail", "start", "first"), [(FRONTIER, 10, 10), (START, 0, 0)])
def test_where_a_duplicate_begins(tail: str, start: int, first: int) -> None:
    run = Run("w1", "w2", parts=3, policy="fixed,30", tail=tail)
    run.credit("w1", run.claim("w1").token, 0)
    granted = run.claim("w2")
    assert (granted.start, granted.stop, granted.next) == (start, 30, first)


def test_without_a_tail_nothing_is_duplicated() -> None:
    run = Run("w1", "w2", parts=2, tail="none")
    run.claim("w1")
    run.park("w2")


@pytest.mark.parametrize("tail", [START, FRONTIER])
def test_the_loser_is_stopped_at_once_without_fault_and_acknowledged(tail: str) -> None:
    """RG38, RG46. 1. w1 and w2 hold the same chunk. 2. w2 finishes: w1 is told in the same turn that its
    claim is superseded. 3. w1's own copy, delivered at that very time, is acknowledged with zero frames. 4.
    So is its word that it is complete; nothing of it is a failure, a lapse or a refusal."""
    run = Run("w1", "w2", parts=1, tail=tail)
    one = run.claim("w1").token
    two = run.claim("w2").token
    run.credit("w2", two, 0)
    ended = {event.worker: event.how for event in run.saw(ev.ClaimEnded)}
    assert ended == {"w1": "superseded", "w2": "completed"}
    state = msg.ClaimState(one, live=False, reason="superseded: w2 delivered first")
    assert msg.Beat(claims=(state,)) in run.told("w1")
    answer = run.deliver("w1", one, 0)
    assert isinstance(answer, msg.Delivered) and (answer.frames, answer.live) == (0, False)
    assert run.say("w1", msg.Complete(token=one)) == msg.Completed(token=one, done=True, next=10, stop=10)
    books = run.books
    assert (books.failures, books.lapses, books.refusals, books.tries) == (0, 0, 0, {})
    assert books.credited_frames == 10 and len(run.all(ev.PartCredited)) == 1


def test_the_winner_need_not_be_the_copy() -> None:
    run = Run("w1", "w2", parts=1)
    one = run.claim("w1").token
    run.claim("w2")
    run.credit("w1", one, 0)
    assert {event.worker: event.how for event in run.saw(ev.ClaimEnded)} == {
        "w1": "completed",
        "w2": "superseded",
    }


# --- rule 12: tries -------------------------------------------------------------------------------------


def test_a_part_that_fails_three_times_is_set_aside_alone() -> None:
    """1. w1 and w2 fail part 1 of a chunk of three, w1 fails it once more. 2. Part 1 alone is set aside. 3.
    The job ends without it, and says so."""
    run = Run("w1", "w2", parts=3, policy="fixed,30")
    for worker in ("w1", "w2", "w1"):
        token = run.claim(worker).token
        part = run.books.grid.part_at(run.books.leases[token].start)
        if part == 0:
            run.credit(worker, token, 0)
        run.fail(worker)
    assert [(event.part, event.tries, event.reason) for event in run.saw(ev.PartSetAside)] == [
        (1, 3, "failed 3 times, by w1, w2")
    ]
    run.finish("w2")
    (finished,) = run.all(ev.WorkFinished)
    assert (finished.credited_frames, finished.set_aside_frames) == (20, 10)


def test_a_failure_counts_against_the_part_it_names_or_the_next_one() -> None:
    run = Run("w1", parts=4, policy="fixed,40")
    for part, counted in ((2, 2), (None, 0), (9, 0)):
        run.claim("w1")
        run.fail("w1", part)
        assert [event.part for event in run.saw(ev.PartFailed)] == [counted]


def test_a_part_that_one_of_two_has_failed_is_left_to_the_other() -> None:
    """1. w1 fails part 0. 2. It gets part 1 next. 3. w2 gets part 0."""
    run = Run("w1", "w2", policy="fixed,10")
    run.claim("w1")
    run.fail("w1")
    assert run.claim("w1").start == 10
    assert run.claim("w2").start == 0


def test_three_tries_of_the_only_worker_are_enough() -> None:
    run = Run("w1", parts=1)
    for _ in range(3):
        run.claim("w1")
        run.fail("w1")
    assert run.books.set_aside_frames == 10 and run.books.finished


@pytest.mark.parametrize("second", ["fails too", "never asks"])
def test_three_tries_by_one_of_two_are_not_enough(second: str) -> None:
    """1. w1 is alone and fails part 0 twice. 2. w2 joins while w1 fails it a third time: it is not set aside,
    but left to w2. 3. w2 fails it as well, or doesn't come within a lease: now it is."""
    run = Run("w1", parts=1)
    for _ in range(2):
        run.claim("w1")
        run.fail("w1")
    run.claim("w1")
    run.join("w2")
    run.fail("w1")
    assert not run.saw(ev.PartSetAside)
    run.park("w1")
    if second == "fails too":
        assert run.claim("w2").start == 0
        run.fail("w2")
    else:
        run.wait(19.9)
        assert not run.saw(ev.PartSetAside)
        run.wait(0.1)
    assert [event.part for event in run.saw(ev.PartSetAside)] == [0]
    assert run.books.finished


def test_a_failed_part_is_not_given_again_as_a_duplicate() -> None:
    """1. w1 fails part 0, w2 takes it. 2. Nothing is open, but w1 gets no copy of that chunk. 3. w2 delivers
    part 0: now w1 may copy the rest."""
    run = Run("w1", "w2", parts=2)
    run.claim("w1")
    run.fail("w1")
    token = run.claim("w2").token
    run.park("w1")
    run.credit("w2", token, 0)
    assert [(name, granted.start) for name, granted in run.woken()] == [("w1", 10)]


def test_a_failed_part_is_given_again_if_all_have_failed_it() -> None:
    run = Run("w1", "w2", parts=1, max_tries=9)
    for worker in ("w1", "w2"):
        run.claim(worker)
        run.fail(worker)
    assert run.claim("w1").start == 0


@pytest.mark.parametrize("other", ["lapsed", "blocked", "never asks", "hung after its claim"])
def test_a_failed_part_is_given_again_if_nobody_else_is_sure_to_take_it(other: str) -> None:
    """The job must not wait for a worker that will not come.

    1. w2 is silent since a lapse, or blocked, or joined and hung, or hung after its claim ended. 2. w1 fails
    part 0 and asks again. 3. It gets part 0 again, after a lease at the latest."""
    run = Run("w1", "w2", parts=2, tail="none", policy="fixed,10", block_after_failures=1, max_tries=9)
    if other == "lapsed":
        run.claim("w2")
        run.wait(20)
    elif other == "blocked":
        run.claim("w2")
        run.fail("w2")
        run.park("w2")
    elif other == "hung after its claim":
        run.credit("w2", run.claim("w2").token, 0)
    token = run.claim("w1").token
    part = run.books.grid.part_at(run.books.leases[token].start)
    run.say("w1", msg.Fail(token=token, part=part))
    waited = 0
    answer = run.ask("w1")
    while not isinstance(answer, msg.Granted) or answer.start != part * 10:
        if isinstance(answer, msg.Granted):  # the other part, first
            run.credit("w1", answer.token, answer.start // 10)
            answer = run.ask("w1")
            continue
        assert waited < 21, answer
        waited += 1
        run.wait(1)
        answer = next((push for name, push in run.woken() if name == "w1"), answer)
    run.credit("w1", answer.token, part)


def test_a_part_is_left_to_an_idle_worker_for_a_lease_and_no_longer() -> None:
    """1. w2 has joined and not asked yet. 2. w1 fails part 0, asks again and is parked, since w2 may come.
    3. A lease later w2 has not come: w1 is woken with part 0. Time alone brings that about."""
    run = Run("w1", "w2", parts=1, tail="none")
    run.now = 5
    run.claim("w1")
    run.fail("w1")
    assert run.park("w1").why == "what is open is left to workers that have not failed it"
    run.wait(14.9)
    assert not run.woken()
    run.wait(0.1)
    assert [(name, granted.start) for name, granted in run.woken()] == [("w1", 0)]


def test_being_heard_makes_an_idle_worker_expected_again() -> None:
    """1. w2 lapses long ago and is silent. 2. It wakes and is refused: so it will ask soon. 3. What w1 has
    failed is left to it."""
    run = Run("w1", "w2", parts=2, policy="fixed,10", tail="none")
    token = run.claim("w2").token
    run.wait(60)
    run.claim("w1")
    run.credit("w1", run.tokens("w1")[0], 0)
    run.claim("w1")
    run.beat("w2", token)
    run.fail("w1")
    run.park("w1")
    assert run.claim("w2").start == 10


def test_work_taken_past_a_failed_part_leaves_the_queue_in_order() -> None:
    """1. w1 fails part 0 of [0, 30); parts 5 and later are open behind. 2. It gets part 1. 3. Part 2 is still
    before part 5."""
    run = Run("w1", "w2", parts=8, policy="fixed,10")
    claims = {worker: run.claim(worker) for worker in ("w1", "w2")}
    assert [granted.start for granted in claims.values()] == [0, 10]
    run.options(policy="fixed,30")
    run.join("w3")
    assert run.claim("w3").start == 20  # to 50
    run.options(policy="fixed,10")
    run.release("w3")
    run.release("w2")
    run.fail("w1")
    assert run.open_ranges() == [(0, 80)]
    assert run.claim("w1").start == 10
    assert run.open_ranges() == [(0, 10), (20, 80)]


def test_losing_a_worker_counts_a_try_and_is_counted_apart() -> None:
    """1. w1 delivers part 0 and dies in part 1. 2. A try against part 1, a loss, no lapse, no failure in a
    row; what it held is open."""
    run = Run("w1", "w2", parts=4, policy="fixed,40")
    run.credit("w1", run.claim("w1").token, 0)
    run.gone("w1")
    (failed,) = run.saw(ev.PartFailed)
    assert (failed.part, failed.kind) == (1, "worker lost")
    assert [event.lost for event in run.saw(ev.WorkerLeft)] == [True]
    assert (run.books.losses, run.books.lapses) == (1, 0)
    assert run.open_ranges() == [(10, 40)]


def test_a_part_that_kills_its_workers_is_set_aside() -> None:
    """RG40. Each time another process comes in the place of the one that died."""
    run = Run("w1", "w2", parts=2, policy="fixed,10")
    kills = 0
    while not run.books.finished:
        for worker in ("w1", "w2"):
            if worker not in run.books.workers:
                run.join(worker)
            answer = run.ask(worker)
            if not isinstance(answer, msg.Granted):
                continue
            if answer.start == 0:
                run.gone(worker)
                kills += 1
                assert kills <= 4
            else:
                run.credit(worker, answer.token, 1)
    assert run.books.set_aside_frames == 10 and run.books.credited_frames == 10


def test_a_part_on_which_every_worker_stalls_is_set_aside() -> None:
    """RG40."""
    run = Run("w1", "w2", parts=1, stall_timeout_seconds=15, tail="none")
    rounds = 0
    while not run.books.finished:
        rounds += 1
        assert rounds < 10
        for worker in ("w1", "w2"):
            run.ask(worker)
        run.wait(15)
    assert run.books.set_aside_frames == 10


def test_a_part_that_silences_one_worker_after_another_is_set_aside() -> None:
    """RG40. 1. w1 falls silent at part 1, wakes and asks again; so does w2; and so on. 2. The first lapse
    counts no try, each later one does. 3. At three tries the part is set aside, and the rest is done."""
    run = Run("w1", "w2", parts=2, policy="fixed,10")
    run.credit("w1", run.claim("w1").token, 0)
    tries = []
    for worker in ("w1", "w2", "w1", "w2"):
        run.claim(worker)
        run.wait(20)
        tries.append([(event.part, event.kind, event.tries) for event in run.saw(ev.PartFailed)])
    assert tries == [[], [(1, "lapsed", 1)], [(1, "lapsed", 2)], [(1, "lapsed", 3)]]
    assert run.books.finished and run.books.set_aside_frames == 10


def test_lapses_at_other_parts_or_before_a_credit_count_no_try() -> None:
    run = Run("w1", parts=4, policy="fixed,40", tail="none")
    for part in range(3):
        run.claim("w1")
        run.wait(20)
        assert not run.saw(ev.PartFailed)
        token = run.claim("w1").token
        run.credit("w1", token, part)
        run.release("w1")
    run.void(0)
    run.claim("w1")
    run.wait(20)
    assert not run.saw(ev.PartFailed)


def test_contact_lost_is_only_said_and_the_lease_decides() -> None:
    run = Run("w1")
    run.claim("w1")
    run.gone("w1", sure=False)
    assert [type(event) for event in run.events] == [ev.Notice] and run.tokens("w1")
    run.wait(20)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["lapsed"]
    run.gone("w9")
    assert not run.events


# --- rule 12: blocked and forgiven ----------------------------------------------------------------------


def test_a_worker_that_fails_in_a_row_is_blocked_and_forgiven() -> None:
    """1. w1 fails three different parts in a row. 2. It is blocked, and parked when it asks. 3. After a
    while it is forgiven, and woken."""
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=3, block_seconds=60, tail="none")
    for _ in range(3):
        run.claim("w1")
        run.fail("w1")
    assert [(event.failures, event.until) for event in run.saw(ev.WorkerBlocked)] == [(3, 60.0)]
    assert run.park("w1").why == "blocked after failures in a row"
    run.claim("w2")
    run.wait(59, "w2")
    assert run.books.workers["w1"].parked
    run.wait(1, "w2")
    assert run.saw(ev.WorkerForgiven) and [name for name, _ in run.woken()] == ["w1"]
    run.fail("w1")
    assert not run.saw(ev.WorkerBlocked), "forgiven: it counts from nought"


def test_a_blocked_worker_may_die() -> None:
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=1)
    run.claim("w1")
    run.fail("w1")
    run.gone("w1")
    run.join("w1")
    assert isinstance(run.ask("w1"), msg.Granted)


def test_a_credit_between_failures_breaks_the_row() -> None:
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=2)
    run.claim("w1")
    run.fail("w1")
    run.credit("w1", run.claim("w1").token, 1)
    run.claim("w1")
    run.fail("w1")
    assert not run.all(ev.WorkerBlocked)


@pytest.mark.parametrize("other", ["none", "blocked", "silent", "hung"])
def test_the_last_worker_that_could_work_is_never_blocked(other: str) -> None:
    run = Run("w1", policy="fixed,10", block_after_failures=1, max_tries=9)
    if other != "none":
        run.join("w2")
    if other == "blocked":
        run.claim("w2")
        run.fail("w2")
        assert run.saw(ev.WorkerBlocked)
    elif other == "silent":
        run.claim("w2")
        run.wait(20)
    elif other == "hung":
        run.now = 20
    run.claim("w1")
    run.fail("w1")
    assert not run.saw(ev.WorkerBlocked)
    assert isinstance(run.ask("w1"), msg.Granted)


def test_a_blocked_worker_is_forgiven_early_if_it_is_the_last() -> None:
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=1, block_seconds=1000)
    run.claim("w1")
    run.fail("w1")
    run.park("w1")
    run.wait(1)
    assert not run.saw(ev.WorkerForgiven)
    run.gone("w2")
    run.wait(1)
    assert run.saw(ev.WorkerForgiven) and [name for name, _ in run.woken()] == ["w1"]
