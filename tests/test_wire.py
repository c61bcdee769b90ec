"""Messages on the wire: versions may differ. A first-version worker, written here by hand as raw JSON, is
served to the end of a job by the real relay."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.messages import decode_answer, decode_request, encode
from tests.relay.driver import Run

REQUESTS: list[msg.AnyRequest] = [
    msg.Join(worker="w1", seq=1, pid=7, host="h", build="b", fps_cap=2.5, overhead_seconds=1.0),
    msg.Claim(seq=2),
    msg.Heartbeat(claims=(ev.ClaimProgress("c0#1@e1", 10, 9, 8, 7),)),
    msg.Deliver(seq=3, token="c0#1@e1", part=4, file="f", frames=10, sha256="ab", first_frame_crc=0),
    msg.Begin(token="c0#1@e1", part=4, size_bytes=9, sha256="ab", block_bytes=5, of=2),
    msg.Block(token="c0#1@e1", part=4, index=1, of=2, crc=7),
    msg.Offer(part=0),
    msg.Complete(token="c0#1@e1"),
    msg.Fail(token="c0#1@e1", part=0, kind="encoder", message="no"),
    msg.Release(token=None),
    msg.Leave(reason="bye"),
]
ANSWERS: list[msg.AnyAnswer] = [
    msg.Welcome(seq=1, epoch=1, lease_seconds=20.0, heartbeat_seconds=2.0),
    msg.Granted(token="c0#1@e1", start=0, stop=20, next=0, lease_seconds=20.0, linear=True),
    msg.Parked(why="wait"),
    msg.Finished(seq=2),
    msg.Beat(claims=(msg.ClaimState("c0#1@e1", live=True, next=10, stop=20),), hold=True),
    msg.Delivered(token="c0#1@e1", part=0, frames=0, next=10, stop=20, live=False, reason="r"),
    msg.BlockStored(token="c0#1@e1", part=0, next_block=94, next=10, stop=20),
    msg.Declined(part=3, why="credited", keep=True),
    msg.Completed(token="c0#1@e1", done=False, next=10, stop=20),
    msg.Ended(token="c0#1@e1"),
    msg.NotClaimant(token="c0#1@e1", reason="r", holder="w2"),
    msg.Refused(received="'c01'", reason="r", kind="version"),
    msg.Bye(),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_requests_come_back(request_: msg.AnyRequest) -> None:
    assert decode_request(encode(request_)) == request_
    assert json.loads(encode(request_))["type"] == type(request_).__name__


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_answers_come_back(answer: msg.AnyAnswer) -> None:
    assert decode_answer(encode(answer)) == answer


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_fields_of_a_later_version_are_ignored(request_: msg.AnyRequest) -> None:
    fields = json.loads(encode(request_)) | {"later": {"a": [1]}, "more": None}
    assert decode_request(json.dumps(fields).encode()) == request_


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_a_worker_ignores_fields_of_a_later_relay(answer: msg.AnyAnswer) -> None:
    fields = json.loads(encode(answer)) | {"later": 1}
    assert decode_answer(json.dumps(fields).encode()) == answer


@pytest.mark.parametrize("data", [b"", b"\0", b"{}", b"\n" * 9, bytes(range(256)) * 20_480], ids=len)
def test_the_bytes_of_a_block_travel_as_they_are(data: bytes) -> None:
    block = msg.Block(seq=5, token="c0#1@e1", part=4, index=1, of=2, crc=7, data=data)
    sent = encode(block)
    assert decode_request(sent) == block
    assert len(sent) - len(data) < 100, "no more than their number"


@pytest.mark.parametrize(
    "raw",
    [
        b"\0",
        b"\0\0\0\0\0",
        b"\0\0\0\0\x10{}",
        b'\0\0\0\0\x10{"type":"Claim"}x',  # only blocks carry bytes
        b"\0\xff\xff\xff\xff{}",
    ],
)
def test_what_is_no_block_is_refused(raw: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, ValueError)):
        decode_request(raw)


@pytest.mark.parametrize(
    ("raw", "request_"),
    [
        (b'{"type":"Join","worker":"w1"}', msg.Join(worker="w1")),
        (b'{"type":"Claim"}', msg.Claim()),
        (b'{"type":"Heartbeat"}', msg.Heartbeat()),
        (
            b'{"type":"Heartbeat","claims":[{"token":"c0#1@e1"}]}',
            msg.Heartbeat(claims=(ev.ClaimProgress("c0#1@e1"),)),
        ),
        (b'{"type":"Deliver"}', msg.Deliver()),
        (b'{"type":"Complete"}', msg.Complete()),
        (b'{"type":"Fail"}', msg.Fail()),
        (b'{"type":"Release"}', msg.Release()),
        (b'{"type":"Leave"}', msg.Leave()),
    ],
)
def test_what_is_missing_means_as_before(raw: bytes, request_: msg.AnyRequest) -> None:
    assert decode_request(raw) == request_


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"worker":"w1"}',
        b'{"type":"Granted"}',
        b'{"type":"join","worker":"w1"}',
        b'{"type":"Join"}',
        b'{"type":"Join","worker":1}',
        b'{"type":"Deliver","part":"0"}',
        b'{"type":"Deliver","part":1.5}',
        b'{"type":"Claim","seq":"1"}',
        b'{"type":"Offer"}',
        b'\xff{"type":"Claim"}',
    ],
)
def test_what_is_no_message_is_refused(raw: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, ValueError)):
        decode_request(raw)


def test_the_version_is_said_by_both() -> None:
    run = Run()
    welcome = run.join("w1", version=msg.WIRE_VERSION)
    assert isinstance(welcome, msg.Welcome) and welcome.version == msg.WIRE_VERSION == 1
    assert [event.wire_version for event in run.saw(ev.WorkerJoined)] == [1]
    run.join("w2", version=9)
    assert [event.wire_version for event in run.saw(ev.WorkerJoined)] == [9]


# --- a worker of the first version ----------------------------------------------------------------------


class FirstVersion:
    """Speaks raw JSON with the minimal fields, and no request numbers."""

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._name = name

    def say(self, raw: str) -> dict[str, Any]:
        answer = self._run.say(self._name, decode_request(raw.encode()))
        heard = json.loads(encode(answer))
        assert isinstance(heard, dict) and "seq" not in heard
        return heard

    def pushed(self) -> list[dict[str, Any]]:
        return [json.loads(encode(push)) for push in self._run.told(self._name)]


def test_a_first_version_worker_does_a_whole_job() -> None:
    """1. Join. 2. Claim. 3. Heartbeat, with the token alone. 4. Deliver the two parts. 5. Complete. 6. Claim
    again: finished. 7. Leave."""
    run = Run(parts=2)
    worker = FirstVersion(run, "old")
    welcome = worker.say('{"type":"Join","worker":"old"}')
    assert welcome == {"type": "Welcome", "epoch": 1, "lease_seconds": 20.0, "heartbeat_seconds": 2.0}
    granted = worker.say('{"type":"Claim"}')
    assert granted == {
        "type": "Granted",
        "token": "c0#1@e1",
        "start": 0,
        "stop": 20,
        "next": 0,
        "lease_seconds": 20.0,
    }
    run.now = 15
    beat = worker.say('{"type":"Heartbeat","claims":[{"token":"c0#1@e1"}]}')
    assert beat == {"type": "Beat", "claims": [{"token": "c0#1@e1", "live": True, "stop": 20}]}
    run.wait(15)
    first = worker.say('{"type":"Deliver","token":"c0#1@e1","part":0,"file":"a","frames":10}')
    assert first == {
        "type": "Delivered",
        "token": "c0#1@e1",
        "part": 0,
        "frames": 10,
        "next": 10,
        "stop": 20,
    }
    second = worker.say('{"type":"Deliver","token":"c0#1@e1","part":1,"file":"b","frames":10}')
    assert (second["frames"], second["live"]) == (10, False)
    done = worker.say('{"type":"Complete","token":"c0#1@e1"}')
    assert done == {"type": "Completed", "token": "c0#1@e1", "done": True, "next": 20, "stop": 20}
    assert worker.say('{"type":"Claim"}')["type"] == "Finished"
    assert worker.say('{"type":"Leave"}') == {"type": "Bye"}
    assert run.books.finished and run.books.refusals == 0


def test_a_first_version_worker_may_say_the_same_twice() -> None:
    """Without numbers nothing is taken for a repeat: a second delivery counts zero frames, a second heartbeat
    renews, a second claim is refused."""
    run = Run(parts=2)
    worker = FirstVersion(run, "old")
    worker.say('{"type":"Join","worker":"old"}')
    worker.say('{"type":"Claim"}')
    assert worker.say('{"type":"Claim"}')["type"] == "Refused"
    deliver = '{"type":"Deliver","token":"c0#1@e1","part":0,"file":"a","frames":10}'
    assert worker.say(deliver)["frames"] == 10
    assert worker.say(deliver)["frames"] == 0
    for run.now in (15.0, 30.0):
        worker.say('{"type":"Heartbeat","claims":[{"token":"c0#1@e1"}]}')
        run.wait(0)
    assert run.tokens("old") and run.books.credited_frames == 10


def test_a_first_version_worker_beside_a_new_one() -> None:
    """1. The old one holds everything and is parked for nothing; the new one copies its chunk and wins. 2.
    The old one is told by a push, and acknowledged with zero frames. 3. It lapses in a later chunk: not
    claimant."""
    run = Run("new", parts=4)
    worker = FirstVersion(run, "old")
    worker.say('{"type":"Join","worker":"old"}')
    old = worker.say('{"type":"Claim"}')["token"]
    mine = run.claim("new").token
    run.credit("new", mine, 2, 3)
    copy = run.claim("new").token
    run.credit("new", copy, 0, 1)
    (push,) = worker.pushed()
    assert (push["type"], push["claims"][0]["live"]) == ("Beat", False)
    late = worker.say(f'{{"type":"Deliver","token":"{old}","part":0,"file":"a","frames":10}}')
    assert (late["type"], late["frames"], late["live"]) == ("Delivered", 0, False)
    run.void(0)
    token = worker.say('{"type":"Claim"}')["token"]
    run.wait(20)
    refused = worker.say(f'{{"type":"Complete","token":"{token}"}}')
    assert refused["type"] == "NotClaimant" and "lapsed" in refused["reason"]


def test_a_first_version_worker_that_sends_nonsense_is_told_what_was_received() -> None:
    run = Run(parts=2)
    worker = FirstVersion(run, "old")
    worker.say('{"type":"Join","worker":"old"}')
    worker.say('{"type":"Claim"}')
    assert worker.say('{"type":"Complete"}')["received"] == "None"
    assert worker.say('{"type":"Deliver","token":"c00#1@e1","part":0}')["received"] == "'c00#1@e1'"
    assert worker.say('{"type":"Fail","token":"c0#1@e1"}') == {"type": "Ended", "token": "c0#1@e1"}


def test_pause_and_drain_reach_a_first_version_worker_with_its_heartbeat() -> None:
    run = Run(parts=2)
    worker = FirstVersion(run, "old")
    worker.say('{"type":"Join","worker":"old"}')
    worker.say('{"type":"Claim"}')
    beat = '{"type":"Heartbeat","claims":[{"token":"c0#1@e1"}]}'
    run.command(cmd.Pause())
    assert worker.say(beat)["hold"] is True
    run.command(cmd.Resume())
    assert "hold" not in worker.say(beat)
    run.command(cmd.Drain())
    assert worker.say(beat)["drain"] is True
    assert worker.say('{"type":"Release","token":"c0#1@e1"}')["type"] == "Ended"
