"""Parts on their way: what the relay says to blocks, and what they are good for before the part is in."""

from __future__ import annotations

import msgspec
import pytest

from farm import events as ev
from farm import messages as msg
from tests.relay.driver import HEARD, Run


def begin(token: str | None, part: int | None, stored: int = 0) -> msg.Begin:
    sizes = {"size_bytes": 950, "block_bytes": 100, "of": 10}
    return msg.Begin(token=token, part=part, stored=stored, stored_bytes=100 * stored, **sizes)


def block(token: str | None, part: int | None, index: int, stored: int) -> msg.Block:
    return msg.Block(token=token, part=part, index=index, of=10, stored=stored, stored_bytes=100 * stored)


def test_the_answer_tells_where_to_go_on_and_where_the_claim_stands() -> None:
    run = Run("w1")
    token = run.claim("w1").token
    answer = run.say("w1", begin(token, 0, stored=4))
    assert answer == msg.BlockStored(token=token, part=0, next_block=4, next=0, stop=20)
    run.credit("w1", token, 0)
    answer = run.say("w1", block(token, 1, 4, stored=5))
    assert answer == msg.BlockStored(token=token, part=1, next_block=5, next=10, stop=20)
    (event,) = run.saw(ev.BlockStored)
    assert (event.part, event.done, event.of, event.size_bytes, event.worker) == (1, 5, 10, 500, "w1")


def test_a_block_that_was_not_stored_is_no_progress() -> None:
    run = Run("w1")
    token = run.claim("w1").token
    answer = run.say("w1", block(token, 0, 3, stored=3))
    assert isinstance(answer, msg.BlockStored) and answer.next_block == 3
    assert not run.events


@pytest.mark.parametrize("kind", ["begin", "block"])
def test_only_the_claimant_may_send(kind: str) -> None:
    """A lapsed claim, another's, and none at all: refused, and nothing changes."""
    run = Run("w1", "w2")
    token = run.claim("w1").token

    def say(worker: str, token: str | None, part: int | None) -> msg.AnyAnswer:
        return run.say(worker, begin(token, part, 1) if kind == "begin" else block(token, part, 0, 1))

    before = run.state(without=HEARD)
    assert isinstance(say("w2", token, 0), msg.NotClaimant)
    assert isinstance(say("w1", None, 0), msg.Refused)
    assert isinstance(say("w1", "c01#1@e1", 0), msg.Refused)
    for part in (None, -1, 2, 10):
        assert isinstance(say("w1", token, part), msg.Refused)
    assert run.state(without=HEARD) == before
    run.wait(30)
    assert isinstance(say("w1", token, 0), msg.NotClaimant)


def test_a_superseded_claim_is_told_to_stop_without_fault() -> None:
    run = Run("w1", "w2", parts=1)
    one = run.claim("w1").token
    two = run.claim("w2").token
    run.credit("w2", two, 0)
    answer = run.say("w1", block(one, 0, 4, stored=5))
    assert isinstance(answer, msg.BlockStored) and not answer.live
    assert run.books.refusals == 0 and not run.events


def test_blocks_renew_the_lease_and_are_progress() -> None:
    """No heartbeat is heard, but a block every 15 s for ten minutes."""
    run = Run("w1", lease_seconds=20.0, stall_timeout_seconds=30.0)
    token = run.claim("w1").token
    for stored in range(1, 41):
        run.wait(15)
        run.say("w1", block(token, 0, stored - 1, stored))
    assert run.books.lapses == 0 and run.tokens("w1") == [token]


@pytest.mark.parametrize("queued", [True, False])
def test_who_waits_for_the_store_is_not_stalled(queued: bool) -> None:
    run = Run("w1", lease_seconds=20.0, stall_timeout_seconds=30.0)
    token = run.claim("w1").token
    for _ in range(10):
        run.now += 10
        if run.books.claim(token) is not None:
            run.beat("w1", ev.ClaimProgress(token, position=10, rendered=10, queued=queued))
        run.wait(0)
    assert bool(run.all(ev.ClaimEnded)) != queued


def test_old_workers_and_their_words_are_as_before() -> None:
    """Nothing of this shows in messages of workers that know nothing of it."""
    assert (
        msg.encode(msg.Deliver(token="c0#1@e1", part=1)) == b'{"type":"Deliver","token":"c0#1@e1","part":1}'
    )
    assert msg.encode(msg.Heartbeat(claims=(ev.ClaimProgress("c0#1@e1", 3),))) == (
        b'{"type":"Heartbeat","claims":[{"token":"c0#1@e1","position":3}]}'
    )


def test_a_delivery_that_waits_long_for_its_place_is_answered_all_the_same() -> None:
    """1. w1 asks where to begin, as its request 1. 2. Before its turn comes, 200 heartbeats were answered."""
    run = Run("w1")
    token = run.claim("w1").token
    for seq in range(2, 202):
        run.say("w1", msg.Heartbeat(seq=seq, claims=(ev.ClaimProgress(token),)))
    answer = run.say("w1", msgspec.structs.replace(begin(token, 0, stored=3), seq=1))
    assert answer == msg.BlockStored(seq=1, token=token, part=0, next_block=3, next=0, stop=20)


def test_a_step_that_is_said_twice_is_answered_with_what_is_there() -> None:
    run = Run("w1")
    token = run.claim("w1").token
    for stored in (1, 2):
        again = msgspec.structs.replace(block(token, 0, 0, stored), seq=7)
        answer = run.say("w1", again)
        assert isinstance(answer, msg.BlockStored) and (answer.seq, answer.next_block) == (7, stored)
