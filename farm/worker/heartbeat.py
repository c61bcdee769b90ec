"""The heartbeat thread: says that the worker is alive and how far each claim is, and ends a worker that the
relay does not answer any more.

Silence is measured on a clock without the gaps in which this process was itself asleep or stopped: a worker
that was stopped for an hour has not been left without an answer for an hour. After such a gap it beats at
once, so that it hears soon whether it is still the claimant.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from farm.clock import LeaseClock
from farm.manners import SILENT_LEASES, SILENT_SECONDS_MIN
from farm.messages import Heartbeat
from farm.worker.channel import Channel, ChannelClosed
from farm.worker.orders import Orders

_TICK_SECONDS = 0.25
_TOLERANCE_SECONDS = 0.5
_STOP_SECONDS = 1.0


class Heartbeats:
    """``raw`` is the monotonic clock in seconds; ``mute``: whether heartbeats are lost just now."""

    def __init__(
        self,
        channel: Channel,
        orders: Orders,
        raw: Callable[[], float],
        *,
        heartbeat_seconds: float,
        lease_seconds: float,
        mute: Callable[[], bool] = lambda: False,
    ) -> None:
        self._channel = channel
        self._mute = mute
        self._orders = orders
        self._interval = heartbeat_seconds
        self._lease = lease_seconds
        self._tick = min(_TICK_SECONDS, heartbeat_seconds / 2)
        self._clock = LeaseClock(raw, interval_seconds=self._tick, tolerance_seconds=_TOLERANCE_SECONDS)
        self._next = self._clock.now() + heartbeat_seconds
        self._answers = orders.answers
        self._heard_at = self._clock.now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No heartbeat is sent any more once this returns; one that can't be sent is waited for a moment."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    @property
    def wait_seconds(self) -> float:
        """How long to wait before the next ``tick``: until the next beat, if that is soon. Beats that were
        only looked for every so often would come late, and in another rhythm than the simulator's."""
        return min(max(self._next - self._clock.now(), 0.0), self._tick)

    def tick(self) -> None:
        """Beat if it is time. Raises ChannelClosed."""
        slept = self._clock.beat()
        now = self._clock.now()
        if self._orders.answers != self._answers:
            self._answers = self._orders.answers
            self._heard_at = now
        lease = self._orders.lease_seconds or self._lease
        if now - self._heard_at > max(SILENT_LEASES * lease, SILENT_SECONDS_MIN):
            self._channel.close(f"no answer from the relay for {now - self._heard_at:.1f} s")
        if slept or now >= self._next:
            self._next += self._interval
            if slept or self._next <= now:
                self._next = now + self._interval
            if not self._mute():
                self._channel.send(Heartbeat(claims=self._orders.progress()))

    def _run(self) -> None:
        try:
            while not self._stop.wait(self.wait_seconds):
                self.tick()
        except ChannelClosed:
            pass
