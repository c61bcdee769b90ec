"""The relay's books: the state of a run as the fold of its events.

Theory of operation. Every frame of the job is in exactly one of these places: open (nobody holds it), in
flight (a chunk with 1 to HOLD live claims covers it), credited (durable, checked, counted once), set aside
(failed too often), or, while a sample is rendered, deferred (not in the sample). An event moves frames from
one place to another; ``apply`` is the only way to change anything here, live and at recovery alike. All
operations are O(1), or O(parts moved).

Rules of this file: no decisions (relay.py makes them), no I/O, no clock; time comes with the event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from farm import events as ev
from farm.frames import PartGrid
from farm.policies.speeds import Speeds
from farm.relay.disputes import Disputes
from farm.relay.fold import handler_of
from farm.relay.ledger import (
    CREDITED as CREDITED,
)
from farm.relay.ledger import (
    DEFERRED as DEFERRED,
)
from farm.relay.ledger import (
    HOLD as HOLD,
)
from farm.relay.ledger import (
    IN_FLIGHT as IN_FLIGHT,
)
from farm.relay.ledger import (
    OPEN as OPEN,
)
from farm.relay.ledger import (
    SET_ASIDE as SET_ASIDE,
)
from farm.relay.ledger import ChunkRecord, ClaimRecord, EndedClaim, OpenRanges, WorkerRecord


class Books:
    def __init__(self) -> None:
        self.options = ev.RelayOptions()
        self.grid = PartGrid((0, 1))
        self.build = ""
        self.epoch = 0
        self.linear = False
        self.paused_at: float | None = None
        self.paused_seconds = 0.0
        self.draining = False
        self.held = ""  #: why nothing more is granted, though the job is not paused
        self.finished = False
        self.first_grant_at: float | None = None
        self.last_credit_at: float | None = None
        #: where each part is: OPEN, IN_FLIGHT, CREDITED, SET_ASIDE or DEFERRED
        self.parts = bytearray()
        #: 1 for a part that was ever in a claim
        self.touched = bytearray()
        self.open = OpenRanges()
        #: all and only the chunks in flight, by number, in claim order
        self.chunks: dict[int, ChunkRecord] = {}
        self.chunk_count = 0
        #: chunks in flight with fewer than HOLD holders, oldest first
        self.duplicable: OrderedDict[int, ChunkRecord] = OrderedDict()
        #: all live claims, the one whose lease runs out first at the front
        self.leases: OrderedDict[str, ClaimRecord] = OrderedDict()
        #: claims held ahead: live, behind another claim of the same worker, oldest first
        self.ahead: OrderedDict[str, ClaimRecord] = OrderedDict()
        self.ended: OrderedDict[str, EndedClaim] = OrderedDict()
        #: workers that joined and have not left
        self.workers: dict[str, WorkerRecord] = {}
        #: parked workers in the order they were parked
        self.parked: OrderedDict[str, None] = OrderedDict()
        self.blocked: OrderedDict[str, None] = OrderedDict()
        #: workers whose last claim lapsed in silence and that were not heard since
        self.silent: OrderedDict[str, None] = OrderedDict()
        #: workers that hold nothing and are not parked, and when each was last heard to speak for itself
        self.idle: dict[str, float] = {}
        #: workers that an operator sent away and that have not left
        self.dismissed: dict[str, None] = {}
        #: chunks in flight of which an operator wants a copy, in the order they were asked for
        self.wanted: dict[int, None] = {}
        #: parts that an operator took away, by whom they were taken from, until somebody else has them
        self.taken_from: dict[int, tuple[str, ...]] = {}
        #: frames per second that all workers of this machine can give together; None: not measured
        self.fps_possible: float | None = None
        #: the accepted copy of each credited part
        self.credits: dict[int, ev.PartCredited | ev.PartAdopted] = {}
        #: workers that failed a part, a failure each; parts never failed are absent
        self.tries: dict[int, list[str]] = {}
        #: lease time before which a part that failed is not given out again
        self.retry_at: dict[int, float] = {}
        #: all and only the parts with tries that are open or in flight
        self.troubled: dict[int, None] = {}
        #: parts at which a claim lapsed, or stalled after rendering them, and that are still to be delivered
        self.lapsed_at: set[int] = set()
        #: parts of which copies differ, and workers that are not trusted any more
        self.disputes = Disputes()
        #: frames per second that the live workers were declared with, None for unthrottled
        self.caps: dict[str, float | None] = {}
        #: what is known of each worker's speed, from its reports
        self.speeds = Speeds()
        self.in_flight_frames = 0
        self.credited_frames = 0
        self.set_aside_frames = 0
        self.deferred_frames = 0
        #: the parts that are given out, where not all are
        self.sample: frozenset[int] | None = None
        self.wasted_frames = 0
        self.lapses = 0
        self.duplicates = 0
        self.splits = 0
        self.refusals = 0
        self.losses = 0
        self.failures = 0

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def work_left(self) -> bool:
        return bool(self.open.frames or self.chunks)

    @property
    def target_frames(self) -> int:
        """What is to be rendered before the work is finished: all frames, or those of the sample and what
        was credited without it."""
        return self.grid.frames - self.deferred_frames

    def available(self, worker: str) -> bool:
        """Whether a worker can be expected to take work: neither blocked nor silent nor sent away."""
        return worker not in self.blocked and worker not in self.silent and worker not in self.dismissed

    @property
    def available_count(self) -> int:
        if not (self.blocked or self.silent or self.dismissed):
            return len(self.workers)
        return len(self.workers) - len(self.blocked.keys() | self.silent.keys() | self.dismissed.keys())

    def expected(self, worker: str, now: float) -> bool:
        """Whether a worker is sure to take work before long, so that work may be left to it: it is available,
        and at work (its lease guards that), parked, or idle for less than a lease. One that joined or ended a
        claim and then hung before it asked again would else be waited for for ever."""
        idle_since = self.idle.get(worker)
        waiting = idle_since is None or now - idle_since < self.options.lease_seconds
        return waiting and self.available(worker)

    def expected_count(self, now: float) -> int:
        return self.available_count - sum(
            self.available(worker) and not self.expected(worker, now) for worker in self.idle
        )

    def chunk_at(self, frame: int) -> ChunkRecord | None:
        """The chunk in flight that covers ``frame``."""
        for chunk in self.chunks.values():
            if chunk.start <= frame < chunk.stop:
                return chunk
        return None

    def splittable(self, claim: ClaimRecord) -> int:
        """First cut at which a claim may be split: its start while nothing was begun, else the end of the
        part in progress at the last report."""
        if claim.position <= claim.start and claim.rendered == 0 and not claim.begun:
            return claim.start
        part = self.grid.part_at(min(claim.position, claim.stop - 1))
        return max(self.grid.stop(part), self.next_frame(claim, skipping=True))

    def claim(self, text: str) -> ClaimRecord | None:
        return self.leases.get(text)

    def chunk_of(self, claim: ClaimRecord) -> ChunkRecord:
        return self.chunks[claim.chunk]

    def next_frame(self, claim: ClaimRecord, skipping: bool) -> int:
        """First frame of the claim's first uncredited part (``skipping``), or of the first one it has not
        delivered itself; the claim's stop if there is none."""
        if not skipping:
            return min(claim.own_next, claim.stop)
        frame = max(claim.start, self.chunks[claim.chunk].next)
        if frame >= claim.stop:
            return claim.stop
        part = self.grid.part_at(frame)
        while frame < claim.stop and self.parts[part] != IN_FLIGHT:
            frame = self.grid.stop(part)
            part += 1
        return min(frame, claim.stop)

    def waits_for_delivery(self, claim: ClaimRecord) -> bool:
        """Whether the claim's next part was rendered, by the last report, and just hasn't come."""
        frame = self.next_frame(claim, skipping=True)
        return frame < claim.stop and claim.position >= self.grid.stop(self.grid.part_at(frame))

    def uncredited_ranges(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The runs of parts within ``[start, stop)`` of one chunk that are still in flight, last one first
        (so that putting each at the head of the queue leaves them in order)."""
        grid = self.grid
        stop_part = grid.part_at(stop)
        first_part = grid.part_at(start)
        while stop_part > first_part:
            if self.parts[stop_part - 1] != IN_FLIGHT:
                stop_part -= 1
                continue
            start_part = stop_part - 1
            while start_part > first_part and self.parts[start_part - 1] == IN_FLIGHT:
                start_part -= 1
            yield grid.start(start_part), grid.stop(stop_part - 1)
            stop_part = start_part

    # --- folding -----------------------------------------------------------------------------------------

    def apply(self, at: float, event: ev.AnyEvent) -> None:
        """Fold one event that happened at lease time ``at``. Events that concern only the console, the job's
        phases or refusals change nothing but counters."""
        handler = handler_of(type(event))
        if handler is not None:
            handler(self, at, event)
