"""The present state played forward: the policy and the tail rule on a tiny model of the fleet, to the last
chunk.

Theory of operation. Every worker renders at its measured speed after its measured overhead, and what it is at
now at its recent speed where that is lower, as decisions take it; nothing else happens to it. What is left is
then decided: an agenda of ends of claims is worked off, and whoever is idle is given what the policy and the
tail rule would give. Decisions are those of farm.policies, asked with the model's state (model.py), and cuts
are those of farm.relay.cuts. What the relay does with an answer (duplicates, claims ahead, wakings) is done
here anew, for whole chunks at a time: farm.relay.grants works on books of every part, which would have to be
copied for every look ahead, and by events (a claim costs the simulator 24 microseconds, a step here 2.5).

Left out, since it changes an end by little: who may not have a part it failed, time limits, trimming, the
order in which messages of one instant arrive. A worker that is silent now stays so and its claims lapse.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable

from farm.forecast.model import Chunk, Claim, settled
from farm.forecast.outlook import Outlook
from farm.manners import AHEAD_SECONDS
from farm.policies.base import Ask
from farm.policies.fair import Fair
from farm.policies.situation import Busy, Situation
from farm.policies.speeds import Speeds
from farm.policies.tails import Duplicate, Split, late, split
from farm.relay.cuts import nearest_cut, shared_stop
from farm.relay.waking import WOKEN_IN_VAIN_MAX

#: What a decision costs that looks at the whole fleet, in those that don't, and for each worker.
FLEET_STEPS = 10
WORKER_STEPS = 2


class TooLong(Exception):
    """The replay takes more steps than it may."""


class Replay:
    """One way things may go on. ``steps_max``: what it may cost, in decisions that look at nothing but sizes,
    of about 2.5 microseconds."""

    def __init__(self, outlook: Outlook, steps_max: int) -> None:
        self._outlook = outlook
        self._steps_max = steps_max
        self.steps = 0  #: taken so far
        self._now = outlook.now
        self._open = deque(outlook.open)
        self._open_frames = outlook.situation.open_frames
        self._grants = outlook.grants
        #: in claim order
        self._chunks: dict[int, Chunk] = {}
        self._active: dict[str, Claim] = {}
        self._behind: dict[str, Claim] = {}
        self._idle: dict[str, None] = dict.fromkeys(outlook.situation.idle)
        self._agenda: list[tuple[float, int, str, Claim]] = []
        self._planned = 0
        self._situation: Situation | None = None
        self._silent: set[str] = set()
        measured = outlook.situation.speeds.by_worker
        self._speeds = Speeds({name: settled(speed) for name, speed in measured.items()})
        self._fleet_policy = isinstance(outlook.policy, Fair)
        self._fleet_tail = outlook.tail.kind in ("late", "split")
        self._take_over()

    def end_at(self) -> float:
        """Lease time of the last credit; infinite if those who are left will not finish it. Raises TooLong,
        and whatever a user's policy raises."""
        end = self._now
        self._wake()
        while self._agenda:
            at, _, kind, claim = heapq.heappop(self._agenda)
            if kind != "asks" and (claim.over or (kind == "done" and claim.ends_at > at + 1e-9)):
                continue  # it was split, or its chunk is done
            self._now = at
            self._situation = None
            if kind == "ahead":
                self._ask_ahead(claim)
                continue
            freed = [claim.worker]
            if kind == "done":
                end, freed = max(end, at), self._done(claim)
            elif kind == "lapse":
                freed = self._lapse(claim)
            self._wake()
            self._serve(freed)
        return end if not self._chunks and not self._open else math.inf

    # --- the state as it is ------------------------------------------------------------------------------

    def _take_over(self) -> None:
        outlook, s = self._outlook, self._outlook.situation
        for busy in s.busy:
            view = outlook.chunks[busy.chunk]
            chunk = self._chunks.get(busy.chunk)
            if chunk is None:
                chunk = Chunk(busy.chunk, view.start, view.next, view.stop, workers=set(view.workers))
                self._chunks[busy.chunk] = chunk
            silent = s.now - busy.heard_at > s.silent_seconds
            rate = 0.0 if silent else s.rate(busy.worker) or 0.0
            if busy.begun and not busy.ahead:
                speed = s.speeds.of(busy.worker)
                self._speeds.by_worker[busy.worker] = speed
                rate = min(rate, speed.recent_rate or rate)
            begins = max(s.now, busy.granted_at + s.overhead_seconds(busy.worker))
            claim = Claim(
                worker=busy.worker,
                chunk=chunk,
                start=busy.start,
                stop=busy.stop,
                seen=float(busy.seen),
                since=busy.heard_at if busy.begun else begins,
                granted_at=busy.granted_at,
                heard_at=busy.heard_at,
                rate=rate,
                ahead=busy.ahead,
            )
            chunk.claims.append(claim)
            (self._behind if busy.ahead else self._active)[busy.worker] = claim
            if silent:
                self._silent.add(busy.worker)
                self._plan(max(s.now, busy.heard_at + outlook.lease_seconds), "lapse", claim)
            elif not busy.ahead:
                self._plan_end(claim)
        self._chunks = dict(sorted(self._chunks.items()))

    def _plan(self, at: float, kind: str, claim: Claim) -> None:
        self._planned += 1
        heapq.heappush(self._agenda, (at, self._planned, kind, claim))

    def _plan_end(self, claim: Claim) -> None:
        ends_at = claim.ends_at
        if math.isinf(ends_at):
            return
        # What should have ended by now has not been heard to; it may at any moment.
        self._plan(max(ends_at, self._now), "done", claim)
        if self._outlook.situation.claims_ahead and claim.worker not in self._behind:
            overhead = self._outlook.situation.overhead_seconds(claim.worker)
            soonest = max(claim.since + 1.0 / claim.rate, self._now)
            asks_at = max(ends_at - overhead - AHEAD_SECONDS, soonest)
            if asks_at < ends_at:
                self._plan(asks_at, "ahead", claim)

    # --- what happens ------------------------------------------------------------------------------------

    def _done(self, claim: Claim) -> list[str]:
        """A chunk is finished: by this claim, and for whoever else holds it. Returns who has nothing now."""
        chunk = claim.chunk
        del self._chunks[chunk.number]
        return [held.worker for held in chunk.claims if self._end(held)]

    def _lapse(self, claim: Claim) -> list[str]:
        chunk = claim.chunk
        self._end(claim)
        chunk.claims.remove(claim)
        if not chunk.claims:
            del self._chunks[chunk.number]
            self._reopen(chunk.frontier(self._outlook.grid, self._now, claim), chunk.stop)
        return []

    def _end(self, claim: Claim) -> bool:
        """Whether its worker is idle now."""
        claim.over = True
        held = self._behind if claim.ahead else self._active
        held.pop(claim.worker, None)
        self._situation = None
        if claim.worker in self._speeds.by_worker and not claim.ahead:
            self._speeds.by_worker[claim.worker] = settled(self._speeds.of(claim.worker))
        if claim.ahead or claim.worker in self._silent:
            return False
        behind = self._behind.pop(claim.worker, None)
        if behind is None:
            return True
        behind.ahead = False
        overhead = self._outlook.situation.overhead_seconds(claim.worker)
        behind.since = max(self._now, behind.granted_at + overhead)
        self._active[claim.worker] = behind
        self._plan_end(behind)
        return False

    def _reopen(self, start: int, stop: int) -> None:
        if start < stop:
            self._open.appendleft((start, stop))
            self._open_frames += stop - start

    # --- decisions ---------------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Those who were idle before, as farm.relay.waking does; not all of them, if the first are given
        nothing."""
        refused = 0
        waiting = list(self._idle)
        if self._outlook.tail.kind == "split":
            waiting.sort(key=lambda name: -(self._speeds.of(name).rate or 0.0))
        for worker in waiting:
            if refused == WOKEN_IN_VAIN_MAX or not (self._open or self._chunks):
                return
            if self._give(worker):
                del self._idle[worker]
            else:
                refused += 1

    def _serve(self, workers: Iterable[str]) -> None:
        """Give workers that have just become idle what there is, in this order."""
        for worker in workers:
            self._idle[worker] = None
            if self._give(worker):
                del self._idle[worker]

    def _count(self) -> None:
        fleet = self._fleet_policy if self._open else self._fleet_tail
        self.steps += FLEET_STEPS + WORKER_STEPS * self._outlook.situation.workers if fleet else 1
        if self.steps > self._steps_max:
            raise TooLong

    def _give(self, worker: str) -> bool:
        self._count()
        tail = self._outlook.tail
        if not self._open and tail.kind != "split":
            self._revoke_ahead()
        if self._open:
            return self._give_open(worker, ahead=False)
        if tail.kind == "duplicate-oldest":
            return self._duplicate_oldest(worker)
        return self._fleet_tail and self._by_rule(worker, ahead=False)

    def _by_rule(self, worker: str, *, ahead: bool) -> bool:
        decision = (late if self._outlook.tail.kind == "late" else split)(worker, self._look())
        if isinstance(decision, Split):
            return self._split(worker, decision, ahead=ahead)
        if isinstance(decision, Duplicate):
            return self._duplicate(worker, self._chunks[decision.claim.chunk], ahead=ahead)
        return False

    def _ask_ahead(self, claim: Claim) -> None:
        """A second claim, while nobody idles; with ``fair`` who idles has declined what is open."""
        worker = claim.worker
        if worker in self._behind or (self._idle and not self._fleet_policy):
            return
        self._count()
        if self._open:
            self._give_open(worker, ahead=True)
        elif self._outlook.tail.kind == "split" and not self._idle:
            self._by_rule(worker, ahead=True)

    def _revoke_ahead(self) -> None:
        """Somebody idles and nothing is open: what is held ahead is taken first."""
        for claim in self._behind.values():
            if claim.worker not in self._silent and len(claim.chunk.claims) == 1:
                self._end(claim)
                del self._chunks[claim.chunk.number]
                self._reopen(claim.start, claim.stop)
                return

    def _give_open(self, worker: str, *, ahead: bool) -> bool:
        start, limit = self._open[0]
        stop = self._stop_for(worker, start, limit)
        if stop is None:
            return False
        if stop < limit:
            self._open[0] = (stop, limit)
        else:
            self._open.popleft()
        self._open_frames -= stop - start
        self._hold(worker, Chunk(self._grants, start, start, stop), start, ahead=ahead)
        return True

    def _stop_for(self, worker: str, start: int, limit: int) -> int | None:
        outlook = self._outlook
        policy, s = outlook.policy, outlook.situation
        assert policy is not None
        if isinstance(policy, Fair):
            share = policy.share(worker, self._look())
            return None if share is None else shared_stop(outlook.grid, start, limit, share)
        ask = Ask(
            worker=worker,
            workers=max(1, s.workers),
            total_frames=s.total_frames,
            open_frames=self._open_frames,
            now=self._now,
            grants=self._grants,
            speeds=self._speeds,
            caps=outlook.caps,
        )
        return outlook.grid.stop_for(start, policy.size(ask).frames, limit)

    def _duplicate_oldest(self, worker: str) -> bool:
        s, limit = self._outlook.situation, self._outlook.max_outstanding
        if len(self._chunks) > (2 * max(1, s.workers) if limit is None else limit):
            return False
        for chunk in self._chunks.values():
            if len(chunk.claims) < s.hold and worker not in chunk.workers:
                return self._duplicate(worker, chunk)
        return False

    def _duplicate(self, worker: str, chunk: Chunk, *, ahead: bool = False) -> bool:
        start = (
            chunk.start
            if self._outlook.tail.from_ == "start"
            else chunk.frontier(self._outlook.grid, self._now)
        )
        if worker in chunk.workers or start >= chunk.stop:
            return False
        self._hold(worker, chunk, start, ahead=ahead)
        return True

    def _split(self, worker: str, decision: Split, *, ahead: bool) -> bool:
        chunk, cut = self._chunks[decision.claim.chunk], decision.cut
        stop, chunk.stop = chunk.stop, cut
        if cut <= chunk.start:  # it wasn't begun, and goes over as a whole
            del self._chunks[chunk.number]
            for claim in chunk.claims:
                if self._end(claim):
                    self._plan(self._now, "asks", claim)
        else:
            for claim in chunk.claims:
                claim.stop = min(claim.stop, cut)
                if not claim.ahead:
                    self._plan_end(claim)
        self._hold(worker, Chunk(self._grants, cut, cut, stop), cut, ahead=ahead)
        return True

    def _hold(self, worker: str, chunk: Chunk, start: int, *, ahead: bool) -> None:
        s = self._outlook.situation
        if chunk.number not in self._chunks:
            self._chunks[chunk.number] = chunk
            self._grants += 1
        claim = Claim(
            worker=worker,
            chunk=chunk,
            start=start,
            stop=chunk.stop,
            seen=float(start),
            since=self._now + s.overhead_seconds(worker),
            granted_at=self._now,
            heard_at=self._now,
            rate=s.rate(worker) or 0.0,
            ahead=ahead,
        )
        chunk.claims.append(claim)
        chunk.workers.add(worker)
        self._situation = None
        if ahead:
            self._behind[worker] = claim
        else:
            self._active[worker] = claim
            self._plan_end(claim)

    # --- the state as a decision sees it -----------------------------------------------------------------

    def _look(self) -> Situation:
        if self._situation is None:
            before = self._outlook.situation
            self._situation = Situation(
                now=self._now,
                total_frames=before.total_frames,
                open_frames=self._open_frames,
                part_frames=before.part_frames,
                workers=before.workers,
                speeds=self._speeds,
                heartbeat_seconds=before.heartbeat_seconds,
                find_idle=lambda: tuple(self._idle),
                find_busy=self._busy,
                splittable=self._splittable,
                cut_near=self._cut_near,
                hold=before.hold,
                claims_ahead=before.claims_ahead,
                profiles=before.profiles,
            )
        return self._situation

    def _busy(self) -> tuple[Busy, ...]:
        held = (*self._active.values(), *self._behind.values())
        return tuple(claim.busy(self._outlook.grid, self._now) for claim in held)

    def _splittable(self, busy: Busy) -> int:
        return self._chunks[busy.chunk].splittable(self._outlook.grid, self._now)

    def _cut_near(self, busy: Busy, at: float) -> int | None:
        chunk = self._chunks[busy.chunk]
        starts = [claim.start for claim in chunk.claims]
        return nearest_cut(self._outlook.grid, chunk.start, chunk.stop, starts, self._splittable(busy), at)
