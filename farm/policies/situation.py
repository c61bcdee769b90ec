"""What is going on, as far as a decision needs to know it: who is idle, who is busy, how fast each is.

Made by the relay from its books when a policy or a tail rule asks for it. What it tells is worked out once,
in a pass over the live claims, when it is first asked for: simple policies never pay for it, and a decision
about one more worker on the same situation costs next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heapreplace
from typing import NamedTuple

from farm.events import SILENT_HEARTBEATS
from farm.policies.speeds import Speeds

#: Seconds by which a decision must be expected to be better, or may be worse.
GAIN_SECONDS = 0.5
#: Open parts a worker up to which they are shared one by one.
_FEW_PARTS = 4


class Busy(NamedTuple):
    """One live claim. Frames are those of the job, times lease seconds."""

    token: str
    worker: str
    chunk: int
    start: int  #: of the claim
    stop: int  #: of the claim, as it is now
    next: int  #: first frame of the chunk that is not credited: where a copy would begin
    seen: int  #: where its worker was at the last report: frames before it are done
    begun: bool  #: the worker was heard to work on it
    ahead: bool  #: held ahead, behind another claim of the same worker
    granted_at: float
    heard_at: float
    holders: int  #: live claims on its chunk


class Late(NamedTuple):
    """A claim that would outlast the common finishing time."""

    claim: Busy
    surplus: float  #: frames its holder would do after T


@dataclass(frozen=True)
class Situation:
    now: float
    total_frames: int
    open_frames: int
    part_frames: float  #: mean size of a part
    workers: int  #: that can be expected to take work
    speeds: Speeds
    heartbeat_seconds: float
    #: of the workers that can be expected to take work, those without a claim
    find_idle: Callable[[], tuple[str, ...]]
    #: all live claims in claim order; a worker's claim held ahead comes after its active one
    find_busy: Callable[[], tuple[Busy, ...]]
    #: first cut at which a claim's chunk may be split, given the part in progress; its ``stop``: nowhere
    splittable: Callable[[Busy], int]
    #: the cut nearest to a frame at which a claim's chunk may be split; None: there is none
    cut_near: Callable[[Busy, float], int | None]
    hold: int = 2  #: live claims a chunk may have
    claims_ahead: bool = False  #: workers ask for the next claim before the last one ends
    #: frames per second and overhead in seconds of workers whose profile is believed
    profiles: dict[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def idle(self) -> tuple[str, ...]:
        return self.find_idle()

    @cached_property
    def busy(self) -> tuple[Busy, ...]:
        return self.find_busy()

    @property
    def silent_seconds(self) -> float:
        """Silence after which a holder isn't counted on."""
        return SILENT_HEARTBEATS * self.heartbeat_seconds

    def rate(self, worker: str) -> float | None:
        """Frames per second: measured, else known beforehand, else the mean of the known ones."""
        return self._pace(worker)[0]

    def overhead_seconds(self, worker: str) -> float:
        """Per claim: measured, else known beforehand, else the mean of the known ones, else 0."""
        return self._pace(worker)[1]

    def known(self, worker: str) -> bool:
        return self.speeds.known(worker) or worker in self.profiles

    def _pace(self, worker: str) -> tuple[float | None, float]:
        pace = self._paces.get(worker)
        if pace is None:
            speed = self.speeds.of(worker)
            rate, overhead_seconds = speed.rate, speed.overhead_seconds
            profile = self.profiles.get(worker)
            if rate is None:
                rate = profile[0] if profile else self._mean_rate
            if overhead_seconds is None:
                overhead_seconds = profile[1] if profile else self._mean_overhead_seconds
            pace = self._paces[worker] = (rate, overhead_seconds)
        return pace

    @cached_property
    def _paces(self) -> dict[str, tuple[float | None, float]]:
        return {}

    @cached_property
    def _mean_rate(self) -> float | None:
        return self.speeds.mean_rate()

    @cached_property
    def _mean_overhead_seconds(self) -> float:
        return self.speeds.mean_overhead_seconds()

    def eta(self, claim: Busy) -> float:
        """When a claim will be done; infinite for a silent holder or an unknown speed."""
        return self._etas[claim.token]

    def hardness(self, claim: Busy) -> float:
        """How much longer than usual the frames of a claim take its worker just now, at least 1: so may they
        take anybody."""
        rate, recent = self._pace(claim.worker)[0], self.speeds.of(claim.worker).recent_rate
        if rate is None or recent is None or not claim.begun or claim.ahead:
            return 1.0
        return max(rate / recent, 1.0)

    @cached_property
    def _etas(self) -> dict[str, float]:
        etas: dict[str, float] = {}
        free_at: dict[str, float] = {}  # when each busy worker will be done with its active claim
        now, silent_since = self.now, self.now - self.silent_seconds
        for claim in self.busy:
            worker, heard_at = claim.worker, claim.heard_at
            rate, overhead_seconds = self._pace(worker)
            if rate is None or heard_at < silent_since:
                eta = math.inf
            elif claim.begun and not claim.ahead:
                recent = self.speeds.of(worker).recent_rate or rate
                eta = max(heard_at + (claim.stop - claim.seen) / min(rate, recent), now)
            else:
                before = free_at.get(worker, now) if claim.ahead else now
                eta = max(before, claim.granted_at + overhead_seconds) + (claim.stop - claim.start) / rate
            etas[claim.token] = eta
            if not claim.ahead:
                free_at[worker] = eta
        return etas

    @cached_property
    def done_at(self) -> dict[str, float]:
        """When each busy worker will be done with all it holds; infinite for silent ones."""
        done: dict[str, float] = {}
        etas = self._etas
        for claim in self.busy:
            eta = etas[claim.token]
            if eta > done.get(claim.worker, 0.0):
                done[claim.worker] = eta
        return done

    @cached_property
    def silent(self) -> tuple[Busy, ...]:
        """Claims of workers that were not heard for long, and whose speed is known or guessed."""
        etas = self._etas
        return tuple(
            claim
            for claim in self.busy
            if etas[claim.token] == math.inf and self.rate(claim.worker) is not None
        )

    @cached_property
    def silent_frames(self) -> float:
        """Frames that only silent workers hold: somebody else will have to do them."""
        etas = self._etas
        doubtful = [claim for claim in self.busy if etas[claim.token] == math.inf]
        if not doubtful:
            return 0.0
        alive = {claim.chunk for claim in self.busy if etas[claim.token] < math.inf}
        counted: dict[int, int] = {}
        for claim in doubtful:
            if claim.chunk not in alive:
                counted[claim.chunk] = max(counted.get(claim.chunk, 0), claim.stop - claim.seen)
        return float(sum(counted.values()))

    @cached_property
    def late(self) -> tuple[Late, ...]:
        """The claims that would outlast T, the one with the greatest surplus first."""
        found = []
        for claim in self.busy:
            eta = self._etas[claim.token]
            if self.finish + GAIN_SECONDS < eta < math.inf:
                rate = (self.rate(claim.worker) or 0.0) / self.hardness(claim)
                found.append(Late(claim, (eta - self.finish) * rate))
        return tuple(sorted(found, key=lambda late: -late.surplus))

    def starts_at(self, worker: str) -> float:
        """When ``worker`` could work on what it is given now."""
        overhead_seconds = self._pace(worker)[1]
        ready = self.now + overhead_seconds
        done = self.done_at.get(worker)
        if done is None:
            return ready
        return max(done, ready) if self.claims_ahead else done + overhead_seconds

    @cached_property
    def finish(self) -> float:
        """The common finishing time T: when all would be done if what is left were shared so that everybody
        ends together. The root of a rising, piecewise linear function of t (docs/scheduling.md, ``fair``):

            sum over idle i of  r_i (t - now - o_i)+
          + sum over busy j of  r_j (t - e_j - o_j)+ - r_j (e_j - t)+   =  R

        with speed r, overhead o, end of the present claims e. With claims ahead a busy worker's overhead is
        hidden behind its present claim. What only silent workers hold counts as open.
        """
        value = -(self.open_frames + self.silent_frames)
        slope = 0.0
        bends: list[tuple[float, float]] = []
        for worker in self.idle:
            rate, overhead_seconds = self._pace(worker)
            if rate is not None:
                bends.append((self.now + overhead_seconds, rate))
        for worker, done in self.done_at.items():
            rate, overhead_seconds = self._pace(worker)
            if rate is None or done == math.inf:
                continue
            value -= rate * (done - self.now)
            slope += rate
            starts = self.starts_at(worker)
            if starts > done:
                bends.append((done, -rate))
                bends.append((starts, rate))
        bends.sort()
        return _root(self.now, value, slope, bends)

    def soonest(self, frames: float) -> float:
        """When somebody could have done ``frames`` more at best, on top of what it holds."""
        found = self._soonest.get(frames)
        if found is None:
            found = self._soonest[frames] = min(
                (
                    self.starts_at(worker) + frames / rate
                    for worker in (*self.idle, *self.done_at)
                    if (rate := self._pace(worker)[0]) is not None
                ),
                default=math.inf,
            )
        return found

    @cached_property
    def _soonest(self) -> dict[float, float]:
        return {}

    @cached_property
    def few_parts(self) -> bool:
        """Whether so few parts are open that it matters that they are whole."""
        return self.open_frames <= _FEW_PARTS * self.part_frames * self.workers

    @cached_property
    def parts_finish(self) -> float:
        """As ``finish``, for what is open, in whole parts: when the last of them would be done if each went
        to who would end it first."""
        ends = []
        for worker in (*self.idle, *self.done_at):
            rate, starts = self._pace(worker)[0], self.starts_at(worker)
            if rate is not None and starts < math.inf:
                seconds = self.part_frames / rate
                ends.append((starts + seconds, seconds))
        if not ends:
            return math.inf
        heapify(ends)
        last = self.now
        for _ in range(max(round(self.open_frames / self.part_frames), 1)):
            last, seconds = ends[0]
            heapreplace(ends, (last + seconds, seconds))
        return last


def _root(at: float, value: float, slope: float, bends: list[tuple[float, float]]) -> float:
    """Where a function with ``value`` and ``slope`` at ``at``, which changes its slope at ``bends``, is 0."""
    for bend, change in bends:
        reached = value + slope * (bend - at)
        if reached >= 0 and slope > 0:
            return at - value / slope
        at, value, slope = bend, reached, max(slope + change, 0.0)
    return at - value / slope if slope > 1e-12 else (at if value >= 0 else math.inf)
