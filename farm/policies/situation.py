"""What is going on, as far as a decision needs to know it: who is idle, who is busy, how fast each is.

Made by the relay from its books when a policy or a tail rule asks for it; costs a pass over the workers, so
simple policies never do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from farm.policies.speeds import Speeds

#: Seconds by which a decision must be expected to be better, or may be worse.
GAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Busy:
    """One live claim. Frames are those of the job, times lease seconds."""

    token: str
    worker: str
    chunk: int
    start: int  #: of the claim
    stop: int  #: of the claim, as it is now
    seen: int  #: where its worker was at the last report: frames before it are done
    splittable: int  #: first cut at which it may be split, given the part in progress; ``stop``: nowhere
    begun: bool  #: the worker was heard to work on it
    ahead: bool  #: held ahead, behind another claim of the same worker
    granted_at: float
    heard_at: float
    holders: int  #: live claims on its chunk


@dataclass(frozen=True)
class Situation:
    now: float
    total_frames: int
    open_frames: int
    workers: int  #: that can be expected to take work
    idle: tuple[str, ...]  #: of these, those without a claim
    busy: tuple[Busy, ...]  #: in claim order; a worker's claim held ahead comes after its active one
    speeds: Speeds
    heartbeat_seconds: float
    hold: int = 2  #: live claims a chunk may have
    claims_ahead: bool = False  #: workers ask for the next claim before the last one ends
    #: frames per second and overhead in seconds of workers whose profile is believed
    profiles: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def silent_seconds(self) -> float:
        """Silence after which a holder isn't counted on."""
        return 2.5 * self.heartbeat_seconds

    def rate(self, worker: str) -> float | None:
        """Frames per second: measured, else known beforehand, else the mean of the known ones."""
        if not self.speeds.known(worker) and worker in self.profiles:
            return self.profiles[worker][0]
        return self.speeds.rate(worker)

    def known(self, worker: str) -> bool:
        return self.speeds.known(worker) or worker in self.profiles

    def overhead_seconds(self, worker: str) -> float:
        if self.speeds.of(worker).overhead_seconds is None and worker in self.profiles:
            return self.profiles[worker][1]
        return self.speeds.overhead_seconds(worker)

    def eta(self, claim: Busy) -> float:
        """When a claim will be done; infinite for a silent holder or an unknown speed."""
        rate = self.rate(claim.worker)
        if rate is None or self.now - claim.heard_at > self.silent_seconds:
            return math.inf
        if claim.ahead:
            before = self.free_at.get(claim.worker, self.now)
            begins = max(before, claim.granted_at + self.overhead_seconds(claim.worker))
            return begins + (claim.stop - claim.start) / rate
        if not claim.begun:
            begins = max(self.now, claim.granted_at + self.overhead_seconds(claim.worker))
            return begins + (claim.stop - claim.start) / rate
        left = claim.stop - claim.seen - rate * (self.now - claim.heard_at)
        return self.now + max(left, 0.0) / rate

    @cached_property
    def free_at(self) -> dict[str, float]:
        """When each busy worker will be done with its active claim."""
        return {claim.worker: self.eta(claim) for claim in self.busy if not claim.ahead}

    @cached_property
    def done_at(self) -> dict[str, float]:
        """When each busy worker will be done with all it holds; infinite for silent ones."""
        done: dict[str, float] = {}
        for claim in self.busy:
            done[claim.worker] = max(done.get(claim.worker, 0.0), self.eta(claim))
        return done

    @cached_property
    def silent_frames(self) -> float:
        """Frames that only silent workers hold: somebody else will have to do them."""
        alive = {claim.chunk for claim in self.busy if math.isfinite(self.eta(claim))}
        counted: dict[int, int] = {}
        for claim in self.busy:
            if claim.chunk not in alive:
                counted[claim.chunk] = max(counted.get(claim.chunk, 0), claim.stop - claim.seen)
        return float(sum(counted.values()))

    @cached_property
    def finish(self) -> float:
        """The common finishing time T: when all would be done if what is left were shared so that everybody
        ends together. The root of a rising, piecewise linear function of t (docs/scheduling.md, ``fair``):

            sum over idle i of  r_i (t - now - o_i)+
          + sum over busy j of  r_j (t - e_j - o_j)+ - r_j (e_j - t)+   =  R

        with speed r, overhead o, end of the present claims e. With claims ahead a busy worker's overhead is
        hidden behind its present claim. What only silent workers hold counts as open.
        """
        work = self.open_frames + self.silent_frames
        value = -work
        slope = 0.0
        bends: list[tuple[float, float]] = []
        for worker in self.idle:
            rate = self.rate(worker)
            if rate is not None:
                bends.append((self.now + self.overhead_seconds(worker), rate))
        for worker, done in self.done_at.items():
            rate = self.rate(worker)
            if rate is None or not math.isfinite(done):
                continue
            value -= rate * (done - self.now)
            slope += rate
            overhead = self.overhead_seconds(worker)
            again = max(done, self.now + overhead) if self.claims_ahead else done + overhead
            bends += [(done, -rate), (again, rate)]
        return _root(self.now, value, slope, sorted(bends))


def _root(at: float, value: float, slope: float, bends: list[tuple[float, float]]) -> float:
    """Where a function with ``value`` and ``slope`` at ``at``, which changes its slope at ``bends``, is 0."""
    for bend, change in bends:
        reached = value + slope * (bend - at)
        if reached >= 0 and slope > 0:
            return at - value / slope
        at, value, slope = bend, reached, max(slope + change, 0.0)
    return at - value / slope if slope > 1e-12 else (at if value >= 0 else math.inf)
