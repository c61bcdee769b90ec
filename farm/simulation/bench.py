"""The part a simulated worker has in hand: how far it is, and when it will be done.

Progress is counted from an anchor, an instant and the cost of all frames before it. Parts that follow one
another without a pause share their anchor: one rounding for all of them, so that instants which should be
equal are.
"""

from __future__ import annotations

from farm.simulation.effort import Costs, Pace
from farm.simulation.slowdown import SlowedPace


class Bench:
    """``start``, ``stop``: the frames in hand; ``begun_at``: since when."""

    __slots__ = (
        "_at",
        "_cost",
        "_costs",
        "_goal",
        "_halted",
        "_pace",
        "_rested_at",
        "begun_at",
        "start",
        "stop",
    )

    def __init__(self, pace: Pace, costs: Costs) -> None:
        self._pace: Pace | SlowedPace = pace
        self._costs = costs
        self._at = 0.0
        self._cost = 0.0
        self._goal = 0.0
        self._halted = False
        self._rested_at = -1.0  # when the part before was done
        self.start = self.stop = 0
        self.begun_at = 0.0

    def begin(self, start: int, stop: int, now: float) -> float:
        """Take up the frames ``[start, stop)``; returns when they will be done."""
        if start != self.stop or now != self._rested_at:
            self._at = now
            self._cost = self._costs.before(start)
        self.start = start
        self.stop = stop
        self.begun_at = now
        self._halted = False
        self._goal = goal = self._costs.before(stop)
        return self._pace.until(self._at, goal - self._cost)

    def done(self, now: float) -> None:
        """They are."""
        self._rested_at = now

    def abort(self, now: float) -> float:
        """Stop after the frame in hand; returns when that will be done."""
        self._goal = self._costs.before(min(self.position(now) + 1, self.stop))
        return self.ends_at()

    def ends_at(self) -> float:
        return self._pace.until(self._at, self._goal - self._cost)

    def position(self, now: float) -> int:
        """The frame in hand; ``stop`` when all are done."""
        cost = self._cost if self._halted else self._cost + self._pace.work(self._at, now)
        return min(max(self._costs.frame_at(cost), self.start), self.stop)

    def progress(self, now: float) -> float:
        """Frames of the part that are done, the one in hand by its share."""
        frame = self.position(now)
        if frame == self.stop:
            return float(frame - self.start)
        before = self._costs.before(frame)
        done = self._cost + self._pace.work(self._at, now) - before
        return frame - self.start + max(done, 0.0) / (self._costs.before(frame + 1) - before)

    def halt(self, now: float) -> None:
        """The process is stopped."""
        if not self._halted:
            self._cost += self._pace.work(self._at, now)
            self._halted = True

    def resume(self, now: float) -> float:
        """It goes on; returns when the part will be done now."""
        self._at = now
        self._halted = False
        return self.ends_at()

    def speed(self, now: float) -> float:
        """Frames of cost 1.0 per second."""
        return self._pace.at(now)

    def slow(self, now: float, factor: float) -> None:
        """From now on, that share of its speed is left."""
        if not isinstance(self._pace, SlowedPace):
            self._pace = SlowedPace(self._pace)
        self._pace.set(now, factor)
