"""What can go wrong for a worker, from failed parts to a relay that is gone. Parts have ten frames."""

from __future__ import annotations

import time

import pytest

from farm.messages import (
    Beat,
    Claim,
    ClaimState,
    Complete,
    Deliver,
    Delivered,
    Ended,
    Fail,
    Finished,
    Granted,
    Join,
    NotClaimant,
    Parked,
    Refused,
)

from .harness import RenderTrouble, rig

T1, T2 = "c0#1@e1", "c1#1@e1"


def state(token: str = T1, *, live: bool = True, next: int = 0, stop: int = 0, why: str = "") -> Beat:
    return Beat(claims=(ClaimState(token, live=live, next=next, stop=stop, reason=why),))


@pytest.mark.parametrize("holder", [None, "w2"])
def test_not_claimant_drops_the_claim_and_the_worker_goes_on(tmp_path, holder):
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 40)
        deliver = r.peer.expect(Deliver, part=0)
        r.peer.say(NotClaimant(token=T1, reason="c0#1@e1 lapsed", holder=holder), to=deliver)
        r.grant(20, 30, T2)
        r.credit(2, 30, T2)
        story = " ".join(r.log.by_token[T1])
        assert "not claimant: c0#1@e1 lapsed" in story and ("held by w2" in story) == bool(holder)
        assert r.spooled() == []


def test_not_claimant_for_complete_and_fail(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.trouble = {3: RenderTrouble("encoder", "no")}
        r.join()
        r.grant(0, 10)
        r.credit(0, 10)
        r.peer.say(NotClaimant(token=T1, reason="lapsed"), to=r.peer.expect(Complete))
        r.grant(30, 40, T2)
        r.peer.say(NotClaimant(token=T2, reason="lapsed"), to=r.peer.expect(Fail))
        r.peer.expect(Claim)


def test_a_part_that_fails_is_reported_after_the_parts_before_it(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.trouble = {1: RenderTrouble("source", "frame 12 can't be decoded")}
        r.join()
        r.grant(0, 30)
        r.credit(0, 30)
        fail = r.peer.expect(Fail, token=T1, part=1, kind="source", message="frame 12 can't be decoded")
        r.peer.say(Ended(token=T1), to=fail)
        r.grant(30, 40, T2)
        r.credit(3, 40, T2)
        assert r.renderers.opened == [False, False] and r.renderers.closed == 1, "a fresh renderer is taken"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (MemoryError(), "out of memory", "MemoryError"),
        (ValueError("a bug"), "error", "a bug"),
        (OSError(28, "No space left on device"), "disk full", "[Errno 28] No space left on device"),
    ],
)
def test_any_other_exception_is_a_failure_too(tmp_path, error, kind, message):
    with rig(tmp_path) as r:
        r.renderers.trouble = {0: error}
        r.join()
        r.grant(0, 10)
        r.peer.expect(Fail, part=0, kind=kind, message=message)


def test_a_store_that_takes_nothing_is_a_failure(tmp_path):
    with rig(tmp_path) as r:
        r.store.rmdir()
        r.join()
        r.grant(0, 10)
        fail = r.peer.expect(Fail, token=T1, part=0, kind="error")
        assert "can't be put into the store" in fail.message


def test_repeated_messages_change_nothing(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        claim = r.peer.expect(Claim)
        granted = Granted(token=T1, start=0, stop=10, next=0, lease_seconds=20)
        r.peer.say(granted, to=claim)
        r.peer.say(granted, to=claim)
        r.peer.say(granted)
        deliver = r.peer.expect(Deliver)
        answer = Delivered(token=T1, part=0, frames=10, next=10, stop=10)
        r.peer.say(answer, to=deliver)
        r.peer.say(answer, to=deliver)
        r.complete()
        r.peer.say(granted)
        r.peer.say(state(live=False, why="completed"))
        r.peer.say(Finished(), to=r.peer.expect(Claim))
        r.bye()
        assert r.renderers.rendered == [0]


@pytest.mark.parametrize("asked", [Join, Claim, Deliver])
def test_a_refused_message_makes_the_worker_leave(tmp_path, asked):
    refused = Refused(received="'w1'", reason="another build", kind="state")
    with rig(tmp_path) as r:
        if asked is not Join:
            r.join()
        if asked is Deliver:
            r.grant(0, 60)
        r.peer.say(refused, to=r.peer.expect(asked))
        assert "another build" in r.bye().reason
        assert r.exit_code == 1
        assert any("another build" in line for line in r.log.lines)


def test_a_refused_heartbeat_makes_the_worker_leave_in_mid_part(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {5}
        r.join()
        r.grant(0, 60)
        r.renderers.wait_at(5)
        r.peer.say(Refused(received="'?'", reason="not understood"))
        r.until(lambda orders: orders.refused)
        r.renderers.go_on()
        r.bye()
        assert r.renderers.rendered == []


def test_the_end_of_the_connection_ends_the_worker_and_keeps_the_spool(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {25}
        r.join()
        r.grant(0, 60)
        r.peer.expect(Deliver, part=0)
        r.peer.expect_beat(lambda beat: beat.claims[0].rendered == 20)
        r.peer.close()
        r.finish()
        assert r.exit_code == 0
        assert r.spooled() == ["p000001-c0.1.e1.part"]


def test_the_end_of_the_connection_wakes_a_slow_worker(tmp_path, capfd):
    with rig(tmp_path, fps_cap=0.01) as r:
        r.join()
        r.grant(0, 60)
        r.peer.expect_beat(lambda beat: beat.claims)
        r.peer.close()
        r.finish()
        assert r.spooled() == []
    assert capfd.readouterr() == ("", ""), "an end is not told as an error"


def test_no_answer_for_three_leases_ends_the_worker(tmp_path, monkeypatch):
    monkeypatch.setattr("farm.worker.heartbeat.SILENT_SECONDS_MIN", 0.1)
    with rig(tmp_path) as r:
        r.lease_seconds = 0.2
        r.join()
        r.peer.say(Parked(), to=r.peer.expect(Claim))
        began = time.monotonic()
        r.peer.mute = True
        r.peer.expect_closed()
        r.finish()
        assert time.monotonic() - began > 0.5
        assert any("no answer from the relay for 0." in line for line in r.log.lines)


def test_an_answer_that_can_not_be_understood_ends_the_worker(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.peer.expect(Claim)
        r.peer._sock.sendall(b"\x00\x00\x00\x02{}")
        r.peer.expect_closed()
        r.finish()
        assert any("can't be understood" in line for line in r.log.lines)
