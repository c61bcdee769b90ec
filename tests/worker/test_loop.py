"""The worker against a relay's end that is driven by hand. Parts have ten frames."""

from __future__ import annotations

import time

import msgspec

from farm.messages import (
    Beat,
    Claim,
    ClaimState,
    Complete,
    Completed,
    Deliver,
    Delivered,
    Ended,
    Finished,
    Granted,
    Join,
    Parked,
    Release,
    Welcome,
)

from .harness import rig

T1, T2 = "c0#1@e1", "c1#1@e1"


def state(token: str = T1, *, live: bool = True, next: int = 0, stop: int = 0, why: str = "") -> Beat:
    return Beat(claims=(ClaimState(token, live=live, next=next, stop=stop, reason=why),))


def test_a_claim_from_join_to_good_bye(tmp_path):
    with rig(tmp_path, fps_cap=5000.0, overhead_seconds=0.01) as r:
        join = r.peer.expect(Join, worker="w1", version=1, build="build 1", fps_cap=5000.0)
        assert join.overhead_seconds == 0.01 and join.pid
        r.peer.say(Welcome(epoch=1, lease_seconds=20, heartbeat_seconds=1), to=join)
        r.grant(0, 20)
        first = r.credit(0, 20)
        assert first.file == "p000000-c0.1.e1.part"
        assert (first.frames, first.lost_frames, first.first_frame_crc, first.next_frame_crc) == (
            10,
            0,
            0,
            10,
        )
        assert first.render_seconds > 0
        r.credit(1, 20)
        r.complete()
        r.peer.say(Finished(why="all done"), to=r.peer.expect(Claim))
        assert r.bye().reason == "no more work"
        assert r.exit_code == 0
        assert r.stored() == ["p000000-c0.1.e1.part", "p000001-c0.1.e1.part"]
        assert r.spooled() == []
        assert "part 1: delivered, 10 frames credited" in r.log.by_token[T1]


def test_a_claim_that_its_last_credit_ended_needs_no_complete(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 10)
        r.credit(0, 10, live=False)
        r.peer.expect(Claim)


def test_requests_are_numbered_without_gaps(tmp_path):
    with rig(tmp_path) as r:
        r.heartbeat_seconds = 60
        r.join()
        r.grant(0, 10)
        deliver = r.credit(0, 10)
        complete = r.peer.expect(Complete)
        assert (deliver.seq, complete.seq) == (3, 4)


def test_the_overhead_comes_before_the_first_frame(tmp_path):
    with rig(tmp_path, overhead_seconds=0.3) as r:
        r.join()
        began = time.monotonic()
        r.grant(0, 10)
        r.credit(0, 10)
        assert time.monotonic() - began >= 0.3


def test_a_capped_claim_takes_no_less_than_overhead_plus_frames_by_speed(tmp_path):
    """That it takes no more is shown on a clock of its own in test_throttle."""
    with rig(tmp_path, fps_cap=100.0, overhead_seconds=0.1) as r:
        r.join()
        began = time.monotonic()
        r.grant(0, 40)
        for part in range(4):
            r.credit(part, 40)
        r.complete()
        assert time.monotonic() - began >= 0.5


def test_heartbeats_list_the_claim_with_its_progress(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {15}
        r.join()
        r.grant(0, 20)
        delivered = r.credit(0, 20)
        r.renderers.wait_at(15)
        beat = r.peer.expect_beat(lambda beat: beat.claims and beat.claims[0].decoded == 16)
        (claim,) = beat.claims
        assert (claim.token, claim.position, claim.rendered) == (T1, 14, 14)
        assert claim.delivered_bytes == delivered.size_bytes
        r.renderers.go_on()
        r.credit(1, 20)
        r.complete()
        r.peer.say(Parked(), to=r.peer.expect(Claim))
        assert r.peer.expect_beat().claims == ()


def test_a_smaller_stop_drops_what_lies_outside(tmp_path):
    """1. parts 0 and 1 are rendered and 0 is not acknowledged; 2. a beat says stop = 10; 3. part 0 is
    acknowledged, part 1 is dropped, and part 2 never begun."""
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 60)
        first = r.peer.expect(Deliver, part=0)
        r.peer.expect_beat(lambda beat: beat.claims[0].rendered == 20)
        r.peer.say(state(next=0, stop=10))
        r.peer.say(Delivered(token=T1, part=0, frames=10, next=10, stop=10), to=first)
        r.complete()
        assert r.renderers.rendered == [0, 1]
        assert r.stored() == ["p000000-c0.1.e1.part"] and r.spooled() == []


def test_the_part_in_progress_is_aborted_when_it_lies_wholly_outside(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {12}
        r.join()
        r.grant(0, 30)
        deliver = r.peer.expect(Deliver, part=0)
        r.renderers.wait_at(12)
        r.peer.say(Delivered(token=T1, part=0, frames=10, next=10, stop=10), to=deliver)
        r.peer.expect_beat(lambda beat: beat.claims[0].delivered_bytes)
        r.renderers.go_on()
        r.complete()
        assert r.renderers.rendered == [0] and r.spooled() == []


def test_what_another_holder_delivered_is_skipped(tmp_path):
    """A slower holder of two: next jumps over the part in progress to the part after."""
    with rig(tmp_path) as r:
        r.renderers.hold_at = {12}
        r.join()
        r.grant(0, 40)
        r.renderers.wait_at(12)  # before it can hear that it is not wanted
        r.credit(0, 40, next=30)
        r.peer.expect_beat(lambda beat: beat.claims[0].delivered_bytes)
        r.renderers.go_on()
        r.credit(3, 40)
        r.complete()
        assert r.renderers.rendered == [0, 3]


def test_a_grant_may_begin_after_its_start(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 30, next=20)
        r.credit(2, 30)
        r.complete()
        assert r.renderers.rendered == [2]


def test_a_superseded_claim_is_aborted_at_the_next_frame_and_the_next_one_asked_for(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {5}
        r.join()
        r.grant(0, 30)
        r.renderers.wait_at(5)
        r.peer.say(state(live=False, why="superseded: w2 delivered first"))
        r.peer.expect_beat(lambda beat: beat.claims == ())
        r.renderers.go_on()
        r.grant(30, 40, T2)
        r.credit(3, 40, T2)
        assert r.renderers.rendered == [3]
        assert any("superseded: w2 delivered first" in line for line in r.log.by_token[T1])


def test_zero_frames_for_a_part_are_no_failure(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 10)
        r.credit(0, 10, frames=0, live=False, reason="this part is credited already")
        r.peer.expect(Claim)
        assert "part 0: delivered, acknowledged, someone else's copy counts" in r.log.lines


def test_a_lapse_while_stopped_is_heard_at_the_first_beat(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {5}
        r.join()
        r.grant(0, 30)
        r.renderers.wait_at(5)
        r.peer.beat = state(live=False, why="lapsed: no heartbeat for 21.0 s")
        r.peer.expect_beat()
        r.peer.expect_beat(lambda beat: beat.claims == ())
        r.renderers.go_on()
        r.peer.expect(Claim)
        assert r.stored() == []


def test_hold_waits_between_parts_until_it_is_lifted(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {5}
        r.join()
        r.grant(0, 20)
        r.renderers.wait_at(5)
        held = msgspec.structs.replace(state(next=0, stop=20), hold=True)
        r.peer.beat = held
        r.peer.say(held)
        r.until(lambda orders: orders.hold)
        r.renderers.go_on()
        r.credit(0, 20)
        for _ in range(4):
            assert r.peer.expect_beat().claims[0].rendered == 10
        r.peer.beat = state(next=10, stop=20)
        r.peer.say(r.peer.beat)
        r.credit(1, 20)


def test_drain_finishes_the_part_in_progress_releases_the_rest_and_leaves(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {15}
        r.join()
        r.grant(0, 60)
        r.credit(0, 60)
        r.renderers.wait_at(15)
        r.peer.say(Beat(drain=True))
        r.until(lambda orders: orders.drain)
        r.renderers.go_on()
        r.credit(1, 60)
        r.peer.say(Ended(token=T1), to=r.peer.expect(Release, token=T1))
        assert r.bye().reason == "drained"
        assert r.renderers.rendered == [0, 1] and r.exit_code == 0


def test_drain_after_the_last_part_completes(tmp_path):
    with rig(tmp_path) as r:
        r.renderers.hold_at = {5}
        r.join()
        r.grant(0, 10)
        r.renderers.wait_at(5)
        r.peer.say(Beat(drain=True))
        r.until(lambda orders: orders.drain)
        r.renderers.go_on()
        r.credit(0, 10)
        r.complete()
        r.bye()


def test_drain_ends_the_overhead(tmp_path):
    with rig(tmp_path, overhead_seconds=60.0) as r:
        r.join()
        r.grant(0, 60)
        r.peer.say(Beat(drain=True))
        r.peer.say(Ended(token=T1), to=r.peer.expect(Release))
        r.bye()


def test_drain_ends_a_hold(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        claim = r.peer.expect(Claim)
        r.peer.say(Beat(hold=True))
        r.peer.say(Granted(token=T1, start=0, stop=60, next=0, lease_seconds=20), to=claim)
        r.peer.beat = Beat(hold=True)
        r.peer.expect_beat(lambda beat: beat.claims)
        r.peer.say(Beat(hold=True, drain=True))
        r.peer.say(Ended(token=T1), to=r.peer.expect(Release))
        r.bye()
        assert r.renderers.rendered == []


def test_drain_ends_a_park(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.peer.say(Parked(why="all is in flight"), to=r.peer.expect(Claim))
        r.peer.say(Beat(drain=True))
        r.bye()


def test_drain_finishes_the_part_at_the_worker_s_own_pace(tmp_path):
    with rig(tmp_path, fps_cap=50.0) as r:
        r.renderers.hold_at = {5}
        r.join()
        r.grant(0, 60)
        r.renderers.wait_at(5)
        r.peer.say(Beat(drain=True))
        r.until(lambda orders: orders.drain)
        r.renderers.go_on()
        r.credit(0, 60)
        r.peer.expect(Release)


def test_a_parked_worker_waits_for_the_push(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.peer.say(Parked(why="all is in flight"), to=r.peer.expect(Claim))
        r.peer.expect_beat()
        r.peer.say(Granted(token=T1, start=10, stop=20, next=10, lease_seconds=20))
        r.credit(1, 20)
        r.complete()
        r.peer.say(Parked(), to=r.peer.expect(Claim))
        r.peer.say(Finished(why="all frames are credited"))
        r.bye()
        assert "parked: all is in flight" in r.log.lines


def test_a_claim_that_is_not_done_goes_on_where_the_relay_says(tmp_path):
    """A part that was credited is voided while the claim is live: it is rendered again."""
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 20)
        r.credit(0, 20)
        r.credit(1, 20)
        r.peer.say(Completed(token=T1, done=False, next=10, stop=20), to=r.peer.expect(Complete))
        r.credit(1, 20)
        r.complete()
        assert r.renderers.rendered == [0, 1, 1]


def test_a_claim_that_is_not_done_and_has_nothing_left_is_released(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 10)
        r.credit(0, 10)
        r.peer.say(Completed(token=T1, done=False, next=10, stop=10), to=r.peer.expect(Complete))
        r.peer.say(Ended(token=T1), to=r.peer.expect(Release, token=T1))
        r.peer.expect(Claim)


def test_at_most_two_parts_are_rendered_and_not_acknowledged(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        r.grant(0, 60)
        first = r.peer.expect(Deliver, part=0)
        r.peer.expect_beat(lambda beat: beat.claims[0].rendered == 20)
        for _ in range(4):
            assert r.peer.expect_beat().claims[0].rendered == 20
        r.peer.say(Delivered(token=T1, part=0, frames=10, next=10, stop=60), to=first)
        for part in range(1, 6):
            r.credit(part, 60)
        r.complete()


def test_linear_reading_takes_a_renderer_of_its_own(tmp_path):
    with rig(tmp_path) as r:
        r.join()
        for number, linear in enumerate([False, False, True]):
            token = f"c{number}#1@e1"
            r.grant(0, 10, token, linear=linear)
            deliver = r.credit(0, 10, token)
            assert deliver.linear is linear
            r.complete(token)
        assert r.renderers.opened == [False, True]


def test_a_parked_worker_whose_claim_is_taken_back_at_once_asks_again(tmp_path):
    """1. It is parked. 2. A claim is pushed, and revoked for somebody else before it is begun. 3. For the
    relay it is idle now, so it has to ask."""
    with rig(tmp_path) as r:
        r.join()
        r.peer.say(Parked(why="all is in flight"), to=r.peer.expect(Claim))
        with r.loop.orders.changed:  # both are heard before it looks up
            r.loop.orders.heard(Granted(token=T1, start=10, stop=20, next=10, lease_seconds=20))
            r.loop.orders.heard(Beat(claims=(ClaimState(T1, live=False, reason="revoked"),)))
        r.peer.say(Finished(why="all frames are credited"), to=r.peer.expect(Claim))
        r.bye()
        assert r.renderers.rendered == []


def test_a_new_cap_holds_at_once_even_in_the_middle_of_a_slow_frame(tmp_path):
    """At one frame in twenty minutes nobody would wait for the end of the frame in hand."""
    with rig(tmp_path, fps_cap=0.001) as r:
        r.join()
        r.grant(0, 10)
        r.peer.say(Beat(fps_cap=0.0))
        r.credit(0, 10)
        assert "throttled no more" in r.log.by_token[T1]
