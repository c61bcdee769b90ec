"""Faults injected into a worker: what the relay's end gets to see of each. Parts have ten frames."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.faults import BAD_TOKEN
from farm.messages import Beat, Claim, ClaimState, Deliver, Delivered, Fail, Inject, Refused
from farm.parts import PartError, check_part
from farm.worker.faults import fill_memory
from farm.worker.throttle import SLACK_SECONDS, Throttle

from .harness import GRID, PATIENCE_SECONDS, Rig, rig

T1 = "c0#1@e1"


def injected(r: Rig, kind: str, seconds: float | None = None, amount: float | None = None) -> None:
    """Inject it, and wait until the worker has written down that it heard."""
    r.peer.say(Inject(kind=kind, seconds=seconds, amount=amount))
    deadline = r.clock.now() + PATIENCE_SECONDS
    while not any(f"fault: {kind}" in line for line in r.log.lines):  # nothing that it says wakes a waiter
        assert r.clock.now() < deadline, "the worker did not hear of the fault"
        time.sleep(0.001)


def _nudge(r: Rig) -> bool:
    """What is waited for changes nothing that wakes a waiter; any answer does."""
    r.peer.say(Beat())
    return False


def at_its_first_frame(r: Rig, stop: int = 20) -> None:
    r.renderers.hold_at = {0}
    r.join()
    r.grant(0, stop)
    r.renderers.wait_at(0)


@contextlib.contextmanager
def struck(tmp_path: Path, kind: str, **how: float) -> Iterator[Rig]:
    """A worker with two parts to render, which meets the fault at the first frame and goes on."""
    with rig(tmp_path) as r:
        at_its_first_frame(r)
        injected(r, kind, **how)
        r.renderers.go_on()
        yield r


def acknowledge(r: Rig, deliver: Deliver, *, frames: int = 10, stop: int = 20) -> None:
    part = deliver.part or 0
    answer = Delivered(token=T1, part=part, frames=frames, next=GRID.stop(part), stop=stop)
    r.peer.say(answer, to=deliver)


def what_is_stored(r: Rig, deliver: Deliver) -> None:
    part = deliver.part or 0
    path = r.store / deliver.file
    check_part(path, part=part, start=GRID.start(part), stop=GRID.stop(part), settings_hash="hash")


def test_a_corrupt_part_is_damaged_in_the_store_and_only_one(tmp_path: Path) -> None:
    with struck(tmp_path, "corrupt") as r:
        first = r.peer.expect(Deliver, part=0)
        with pytest.raises(PartError):
            what_is_stored(r, first)
        acknowledge(r, first)
        r.credit(1, 20)


def test_a_wrong_count_is_a_part_that_is_right_in_itself(tmp_path: Path) -> None:
    with struck(tmp_path, "wrong-count") as r:
        first = r.peer.expect(Deliver, part=0)
        assert first.frames == 9
        with pytest.raises(PartError, match="holds 9 frames instead of 10"):
            what_is_stored(r, first)
        assert r.stored() == [first.file], "nothing else is left in the store"
        acknowledge(r, first)
        r.credit(1, 20)


def test_a_report_that_comes_twice_is_the_same(tmp_path: Path) -> None:
    with struck(tmp_path, "report-twice") as r:
        first = r.peer.expect(Deliver, part=0)
        acknowledge(r, first)
        again = r.peer.expect(Deliver, part=0)
        assert (again.file, again.sha256) == (first.file, first.sha256) and again.seq != first.seq
        acknowledge(r, again, frames=0)
        r.credit(1, 20)


def test_after_a_bad_id_is_refused_the_worker_leaves(tmp_path: Path) -> None:
    with struck(tmp_path, "bad-id") as r:
        first = r.peer.expect(Deliver, part=0, token=BAD_TOKEN)
        r.peer.say(Refused(received=repr(BAD_TOKEN), reason="not canonical"), to=first)
        assert "not canonical" in r.bye().reason
        assert r.exit_code == 1


def test_a_late_report_waits_while_rendering_goes_on(tmp_path: Path) -> None:
    with rig(tmp_path) as r:
        r.renderers.hold_at = {0, 11}
        r.join()
        r.grant(0, 20)
        r.renderers.wait_at(0)
        injected(r, "report-late", amount=0.3)
        r.renderers.go_on()
        r.renderers.wait_at(11)  # the next part is begun, though the first is not reported
        began = r.clock.now()
        r.credit(0, 20)
        assert r.clock.now() - began > 0.05
        r.renderers.go_on()
        r.credit(1, 20)


def test_heartbeats_get_lost_and_come_again(tmp_path: Path) -> None:
    with rig(tmp_path) as r:
        r.renderers.hold_at = {0}
        r.join()
        r.grant(0, 20)
        r.renderers.wait_at(0)
        injected(r, "lose-heartbeats")
        r.renderers.go_on()
        r.credit(0, 20)
        r.credit(1, 20)
        heard = len(r.peer.beats)
        began = r.clock.now()
        r.until(lambda orders: r.clock.now() - began > 4 * r.heartbeat_seconds or _nudge(r))
        r.complete()
        assert len(r.peer.beats) == heard, "not a single one was sent meanwhile"
        r.peer.expect(Claim)
        r.peer.say(Inject(kind="lose-heartbeats", seconds=0.01))
        r.peer.expect_beat()


def test_standing_still_it_beats_without_progress_until_its_claim_is_over(tmp_path: Path) -> None:
    with rig(tmp_path) as r:
        r.renderers.hold_at = {3}
        r.join()
        r.grant(0, 20)
        r.renderers.wait_at(3)
        injected(r, "stand-still")
        r.renderers.go_on()
        beats = [r.peer.expect_beat() for _ in range(4)]
        assert {beat.claims[0].position for beat in beats[1:]} == {3}
        over = Beat(claims=(ClaimState(T1, live=False, reason="stalled"),))
        r.peer.say(over)
        r.grant(20, 30, token="c1#1@e1")  # it asks for the next one


def test_cut_off_it_renders_on_and_all_arrives_in_order_when_the_cut_ends(tmp_path: Path) -> None:
    with rig(tmp_path) as r:
        r.renderers.hold_at = {0, 9}
        r.join()
        r.grant(0, 10)
        r.renderers.wait_at(0)
        injected(r, "cut", seconds=60)
        r.peer.beat = Beat(hold=True)
        r.peer.say(r.peer.beat)
        r.renderers.go_on()
        r.renderers.wait_at(9)
        assert not r.loop.orders.hold, "nothing is heard either"
        r.renderers.go_on()
        r.loop.faults.hear(Inject(kind="cut", seconds=0.01))  # by the relay it could not be told
        acknowledge(r, r.peer.expect(Deliver, part=0), stop=10)
        r.until(lambda orders: orders.hold)


def test_cut_off_for_good_it_ends_after_three_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.worker.heartbeat.SILENT_SECONDS_MIN", 0.0)
    with rig(tmp_path) as r:
        r.lease_seconds = 0.1
        at_its_first_frame(r)
        injected(r, "cut")
        r.renderers.go_on()
        r.finish()
        assert "no answer from the relay for 0." in r.log.lines[-1]


def test_a_store_that_refuses_is_asked_again_with_backoff(tmp_path: Path) -> None:
    with struck(tmp_path, "rate-limit", seconds=0.5) as r:
        r.credit(0, 20)
        waits = [line.rpartition(" in ")[2] for line in r.log.lines if "refuses for now" in line]
        assert waits and waits == ["0.1 s", "0.2 s", "0.4 s", "0.8 s"][: len(waits)]
        r.credit(1, 20)


def test_a_full_memory_fails_the_part_in_hand_and_no_other(tmp_path: Path) -> None:
    with struck(tmp_path, "fill-memory", amount=8) as r:
        fail = r.peer.expect(Fail, part=0, kind="out of memory")
        assert "the memory was full after" in fail.message


def test_filled_memory_is_given_back() -> None:
    for _ in range(3):
        with pytest.raises(MemoryError, match="by an injected fault"):
            fill_memory(4)
    assert len(bytearray(64 << 20)) == 64 << 20


def test_what_is_not_known_is_left_alone(tmp_path: Path) -> None:
    with rig(tmp_path) as r:
        r.join()
        r.peer.say(Inject(kind="set-on-fire"))
        r.grant(0, 10)
        r.credit(0, 10)
        r.complete()


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> bool:
        self.slept.append(seconds)
        self.seconds += seconds
        return False


def test_a_capped_worker_at_a_quarter_of_its_speed() -> None:
    time = Time()
    throttle = Throttle(10.0, time, time.sleep)
    throttle.begin(0.0)
    for _ in range(20):
        assert throttle.wait(0.25)
    assert time.seconds == pytest.approx(20 * 0.4)


def test_one_without_a_cap_waits_three_times_as_long_as_a_frame_took() -> None:
    time = Time()
    throttle = Throttle(None, time, time.sleep)
    throttle.wait()
    for _ in range(4):
        time.seconds += 0.02
        throttle.wait(0.25)
    assert time.slept == [pytest.approx(0.06)] * 4
    time.seconds += 99.0  # a stop of the process is not a frame's work
    throttle.wait(0.25)
    assert time.slept[-1] == pytest.approx(3 * SLACK_SECONDS)
