"""Heartbeats and silence, ticked by hand on a clock that only moves when told to."""

from __future__ import annotations

import pytest

from farm.messages import Beat, Granted, Heartbeat
from farm.worker.channel import ChannelClosed
from farm.worker.heartbeat import Heartbeats
from farm.worker.orders import Orders


class FakeChannel:
    def __init__(self) -> None:
        self.sent: list[Heartbeat] = []
        self.reason = ""

    def send(self, request: Heartbeat) -> None:
        if self.reason:
            raise ChannelClosed(self.reason)
        self.sent.append(request)

    def close(self, reason: str) -> None:
        self.reason = reason


class Bench:
    def __init__(self, lease_seconds: float = 20.0, heartbeat_seconds: float = 2.0) -> None:
        self.time = 0.0
        self.channel = FakeChannel()
        self.orders = Orders(self)
        self.beats = Heartbeats(
            self.channel,  # type: ignore[arg-type]
            self.orders,
            self.now,
            heartbeat_seconds=heartbeat_seconds,
            lease_seconds=lease_seconds,
        )

    def now(self) -> float:
        return self.time

    def run(self, seconds: float, *, answered: bool) -> None:
        for _ in range(int(seconds * 4)):
            self.time += 0.25
            before = len(self.channel.sent)
            self.beats.tick()
            if answered and len(self.channel.sent) > before:
                self.orders.heard(Beat())


def test_one_beat_an_interval():
    bench = Bench()
    bench.run(60.0, answered=True)
    assert len(bench.channel.sent) == 30


def test_beats_come_when_they_are_due():
    """Found by benchmarks/live_against_simulated.py: beats 0.6 s apart came after 0.5 or 0.75 s."""
    bench = Bench(heartbeat_seconds=0.6)
    came: list[float] = []
    while len(came) < 20:
        bench.time += bench.beats.wait_seconds
        bench.beats.tick()
        bench.orders.heard(Beat())
        came += [bench.time] * (len(bench.channel.sent) - len(came))
    assert came == pytest.approx([0.6 * number for number in range(1, 21)], abs=0.001)


def test_a_beat_lists_what_is_held():
    bench = Bench()
    bench.orders.heard(Granted(token="c0#1@e1", start=10, stop=20, next=10, lease_seconds=20))
    bench.run(2.0, answered=True)
    assert [claim.token for claim in bench.channel.sent[0].claims] == ["c0#1@e1"]


def test_silence_of_three_leases_closes_the_channel():
    bench = Bench(lease_seconds=5.0)
    bench.run(10.0, answered=True)
    bench.run(15.0, answered=False)
    assert not bench.channel.reason
    with pytest.raises(ChannelClosed, match="no answer from the relay for 15"):
        bench.run(4.0, answered=False)


def test_a_relay_that_stood_still_for_three_short_leases_is_not_gone():
    bench = Bench(lease_seconds=1.0)
    bench.run(2.0, answered=True)
    bench.run(4.0, answered=False)
    assert not bench.channel.reason


def test_a_worker_that_was_stopped_has_not_been_left_without_an_answer():
    bench = Bench(lease_seconds=5.0)
    bench.run(1.0, answered=True)
    bench.time += 3600.0
    bench.beats.tick()
    assert not bench.channel.reason
    assert len(bench.channel.sent) == 1, "it beats as soon as it wakes"
    bench.orders.heard(Beat())
    bench.run(60.0, answered=True)
    assert not bench.channel.reason
