"""Ids and tokens are parsed strictly; what is refused changes nothing (the write-up's chunk-zero bug)."""

from __future__ import annotations

import msgspec
import pytest

from farm import events as ev
from farm import messages as msg
from farm.errors import IdError
from farm.frames import ClaimToken, parse_chunk_id, parse_token
from farm.relay.books import Books
from farm.relay.relay import Relay
from tests.relay.virtual import opened

BAD_IDS = [None, "", "c", "0", "c-1", "c01", "c1 ", " c1", "C1", "c1.0", "c٣", "c1\n", "c+1", "c1_0", "cc1"]
OUT_OF_RANGE = ["c5", "c" + "9" * 400]


def test_zero_is_a_valid_id() -> None:
    assert parse_chunk_id("c0", 1) == 0
    assert parse_token("c0#1@e1", 1) == ClaimToken(0, 1, 1)


@pytest.mark.parametrize("received", BAD_IDS + OUT_OF_RANGE)
def test_everything_else_is_refused_and_says_what_was_received(received: str | None) -> None:
    with pytest.raises(IdError) as raised:
        parse_chunk_id(received, 5)
    shown = repr(received)
    assert shown in str(raised.value) or f"({len(shown)} characters)" in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("received", [0, 1.0, True, ["c1"], b"c1"])
def test_what_is_no_text_is_refused(received: object) -> None:
    with pytest.raises(IdError):
        parse_chunk_id(received, 5)


BAD_TOKENS = [
    *(f"{chunk}#1@e1" for chunk in BAD_IDS if chunk is not None),
    *OUT_OF_RANGE,
    "c0",
    "c0#1",
    "c0@e1",
    "c0#0@e1",
    "c0#1@e0",
    "c0#01@e1",
    "c0#1@1",
    "c0#1@e1@e1",
    "c0#1@e1\n",
    "c0#-1@e1",
    "",
    None,
    "c5#1@e1",
    f"c{'9' * 400}#1@e1",
]


@pytest.fixture
def relay() -> Relay:
    relay = Relay(Books())
    relay.open(opened(range(0, 101, 10), ev.RelayOptions(policy="fixed,20")), 0.0)
    relay.start(0.0)
    for worker in ("w1", "w2"):
        relay.handle(worker, msg.Join(worker=worker), 0.0)
    granted = relay.handle("w1", msg.Claim(), 0.0).answer
    assert isinstance(granted, msg.Granted) and granted.token == "c0#1@e1"
    return relay


@pytest.mark.parametrize("token", BAD_TOKENS)
@pytest.mark.parametrize("kind", [msg.Deliver, msg.Complete, msg.Fail, msg.Release])
def test_the_relay_refuses_bad_tokens_and_nothing_changes(
    relay: Relay, token: str | None, kind: type[msg.Deliver | msg.Complete | msg.Fail | msg.Release]
) -> None:
    before = state(relay)
    outcome = relay.handle("w1", msgspec.convert({"type": kind.__name__, "token": token}, kind), 1.0)
    assert isinstance(outcome.answer, msg.Refused)
    assert [type(event) for event in outcome.events] == [ev.MessageRefused]
    assert state(relay) == before


@pytest.mark.parametrize("part", [None, -1, 2, 10, 10**30])
def test_a_delivery_outside_its_claim_is_refused(relay: Relay, part: int | None) -> None:
    before = state(relay)
    outcome = relay.handle("w1", msg.Deliver(token="c0#1@e1", part=part, frames=10), 1.0)
    assert isinstance(outcome.answer, msg.Refused)
    assert state(relay) == before


def test_chunk_zero_is_delivered_like_any_other(relay: Relay) -> None:
    answer = relay.handle("w1", msg.Deliver(token="c0#1@e1", part=0, file="a", frames=10), 1.0).answer
    assert isinstance(answer, msg.Delivered) and answer.frames == 10 and answer.next == 10


def state(relay: Relay) -> tuple[object, ...]:
    books = relay.books
    return (
        bytes(books.parts),
        list(books.open),
        list(books.leases),
        {name: worker.failures_in_row for name, worker in books.workers.items()},
        dict(books.tries),
        books.credited_frames,
        books.chunk_count,
    )
