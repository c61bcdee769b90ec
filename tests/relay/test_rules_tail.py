"""Rule 10 of DESIGN.md §4: duplicates. Scenarios are numbered steps."""

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
