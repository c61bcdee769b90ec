"""The relay's books: the state of a run as the fold of its events.

Theory of operation. Every frame of the job is in exactly one of four places: open (nobody holds it), in
flight (a chunk with 1 to HOLD live claims covers it), credited (durable, checked, counted once), or set aside
(failed too often). An event moves frames from one place to another; ``apply`` is the only way to change
anything here, live and at recovery alike. All operations are O(1), or O(parts moved).

Rules of this file: no decisions (relay.py makes them), no I/O, no clock; time comes with the event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from farm import events as ev
from farm.frames import PartGrid, parse_token
from farm.relay.ledger import ChunkRecord, ClaimRecord, EndedClaim, OpenRanges, WorkerRecord

#: At most this many live claims on one chunk.
HOLD: Final = 2
#: Ended claims that are remembered by name; older ones are refused all the same, with less of a story.
_ENDED_MAX: Final = 4096

OPEN: Final = 0
IN_FLIGHT: Final = 1
CREDITED: Final = 2
SET_ASIDE: Final = 3


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
        self.finished = False
        self.first_grant_at: float | None = None
        self.last_credit_at: float | None = None
        #: where each part is: OPEN, IN_FLIGHT, CREDITED or SET_ASIDE
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
        #: the accepted copy of each credited part
        self.credits: dict[int, ev.PartCredited | ev.PartAdopted] = {}
        #: workers that failed a part, a failure each; parts never failed are absent
        self.tries: dict[int, list[str]] = {}
        #: all and only the parts with tries that are open or in flight
        self.troubled: dict[int, None] = {}
        #: parts at which a claim lapsed, and that are still to be rendered
        self.lapsed_at: set[int] = set()
        self.in_flight_frames = 0
        self.credited_frames = 0
        self.set_aside_frames = 0
        self.wasted_frames = 0
        self.lapses = 0
        self.duplicates = 0
        self.refusals = 0
        self.losses = 0
        self.failures = 0

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def work_left(self) -> bool:
        return bool(self.open.frames or self.chunks)

    def available(self, worker: str) -> bool:
        """Whether a worker can be expected to take work: neither blocked nor silent."""
        return worker not in self.blocked and worker not in self.silent

    @property
    def available_count(self) -> int:
        return len(self.workers) - len(self.blocked.keys() | self.silent.keys())

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

    def claim(self, text: str) -> ClaimRecord | None:
        return self.leases.get(text)

    def chunk_of(self, claim: ClaimRecord) -> ChunkRecord:
        return self.chunks[claim.token.chunk]

    def next_frame(self, claim: ClaimRecord, skipping: bool) -> int:
        """First frame of the claim's first uncredited part (``skipping``), or of the first one it has not
        delivered itself; the claim's stop if there is none."""
        if not skipping:
            return min(claim.own_next, claim.stop)
        frame = max(claim.start, self.chunk_of(claim).next)
        part = self.grid.part_at(frame)
        while frame < claim.stop and self.parts[part] != IN_FLIGHT:
            frame = self.grid.stop(part)
            part += 1
        return min(frame, claim.stop)

    def uncredited_ranges(self, chunk: ChunkRecord) -> Iterator[tuple[int, int]]:
        """The runs of parts of a chunk that are still in flight, last one first (so that putting each at the
        head of the queue leaves them in order)."""
        grid = self.grid
        stop_part = grid.part_at(chunk.stop)
        first_part = grid.part_at(chunk.next)
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
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, at, event)

    def _run_opened(self, at: float, event: ev.RunOpened) -> None:
        self.options = event.options
        self.grid = PartGrid(event.cuts)
        self.build = event.build
        self.parts = bytearray(self.grid.parts)
        self.touched = bytearray(self.grid.parts)
        self.open.put_first(0, self.grid.frames)

    def _relay_started(self, at: float, event: ev.RelayStarted) -> None:
        self.epoch = event.epoch
        self.draining = False
        self.finished = False

    def _options_changed(self, at: float, event: ev.OptionsChanged) -> None:
        self.options = event.options

    def _job_paused(self, at: float, event: ev.JobPaused) -> None:
        self.paused_at = at

    def _job_resumed(self, at: float, event: ev.JobResumed) -> None:
        self.paused_at = None
        self.paused_seconds += event.seconds
        for claim in self.leases.values():  # what moved during the pause is as fresh as can be
            claim.moved_at = min(at, claim.moved_at + event.seconds)
            claim.part_since = min(at, claim.part_since + event.seconds)

    def _drain_started(self, at: float, event: ev.DrainStarted) -> None:
        self.draining = True

    def _work_finished(self, at: float, event: ev.WorkFinished) -> None:
        self.finished = True

    def _worker_joined(self, at: float, event: ev.WorkerJoined) -> None:
        self.workers[event.worker] = WorkerRecord(event.worker, event.overhead_seconds, event.fps_cap)
        self.idle[event.worker] = at

    def _worker_left(self, at: float, event: ev.WorkerLeft) -> None:
        self.workers.pop(event.worker, None)
        self.parked.pop(event.worker, None)
        self.blocked.pop(event.worker, None)
        self.silent.pop(event.worker, None)
        self.idle.pop(event.worker, None)
        self.losses += event.lost

    def _worker_parked(self, at: float, event: ev.WorkerParked) -> None:
        self.parked[event.worker] = None
        self.silent.pop(event.worker, None)
        self.idle.pop(event.worker, None)
        self.workers[event.worker].parked = True

    def _worker_blocked(self, at: float, event: ev.WorkerBlocked) -> None:
        self.blocked[event.worker] = None
        self.workers[event.worker].blocked_until = event.until

    def _worker_forgiven(self, at: float, event: ev.WorkerForgiven) -> None:
        self.blocked.pop(event.worker, None)
        worker = self.workers[event.worker]
        worker.blocked_until = None
        worker.failures_in_row = 0

    def _claim_granted(self, at: float, event: ev.ClaimGranted) -> None:
        token = parse_token(event.token)
        first, last = self.grid.part_at(event.start), self.grid.part_at(event.stop)
        if not event.duplicate:
            assert token.chunk == self.chunk_count and token.attempt == 1
            self.open.take(event.start, event.stop)
            self.parts[first:last] = bytes((IN_FLIGHT,)) * (last - first)
            self.touched[first:last] = bytes((1,)) * (last - first)
            self.in_flight_frames += event.stop - event.start
            chunk = ChunkRecord(token.chunk, event.start, event.stop, event.start, last - first)
            self.chunks[token.chunk] = chunk
            self.duplicable[token.chunk] = chunk
            self.chunk_count += 1
        else:
            chunk = self.chunks[token.chunk]
            self.duplicates += 1
        claim = ClaimRecord(
            token=token,
            text=event.token,
            worker=event.worker,
            start=event.start,
            stop=event.stop,
            granted_at=at,
            renewed_at=at,
            moved_at=at,
            part_since=at,
            own_next=event.start,
            position=event.start,
        )
        chunk.attempts = token.attempt
        chunk.claims[event.token] = claim
        chunk.workers.add(event.worker)
        if len(chunk.claims) >= HOLD:
            del self.duplicable[chunk.number]
        self.leases[event.token] = claim
        self.silent.pop(event.worker, None)
        self.idle.pop(event.worker, None)
        worker = self.workers[event.worker]
        worker.claims[event.token] = claim
        worker.parked = False
        self.parked.pop(event.worker, None)
        if self.first_grant_at is None:
            self.first_grant_at = at

    def _lease_renewed(self, at: float, event: ev.LeaseRenewed) -> None:
        for progress in event.claims:
            claim = self.leases.get(progress.token)
            if claim is None:
                continue
            self._renew(at, claim)
            moved = (
                progress.rendered > claim.rendered
                or progress.decoded > claim.decoded
                or progress.delivered_bytes > claim.delivered_bytes
            )
            if moved:
                claim.moved_at = at
            if self.grid.part_at(progress.position) > self.grid.part_at(claim.position):
                claim.part_since = at
            claim.position = max(claim.position, progress.position)
            claim.rendered = max(claim.rendered, progress.rendered)
            claim.decoded = max(claim.decoded, progress.decoded)
            claim.delivered_bytes = max(claim.delivered_bytes, progress.delivered_bytes)

    def _renew(self, at: float, claim: ClaimRecord) -> None:
        claim.renewed_at = at
        self.leases.move_to_end(claim.text)

    def _delivered(self, at: float, claim: ClaimRecord, part: int, frames: int) -> None:
        """What a delivery says of its claim, whether its frames count or not."""
        self._renew(at, claim)
        claim.moved_at = at
        stop = self.grid.stop(part)
        claim.rendered = max(claim.rendered, claim.credited + claim.superseded + frames)
        if self.grid.start(part) >= claim.own_next:  # deliveries may overtake one another
            claim.delivered_ahead.add(part)
        while (own_part := self.grid.part_at(claim.own_next)) in claim.delivered_ahead:
            claim.delivered_ahead.remove(own_part)
            claim.own_next = self.grid.stop(own_part)
        if claim.position < stop:
            claim.position = stop
            claim.part_since = at

    def _claim_ended(self, at: float, event: ev.ClaimEnded) -> None:
        claim = self.leases.pop(event.token)
        if event.how == "lapsed":
            self.lapsed_at.add(self.grid.part_at(self.next_frame(claim, skipping=True)))
        chunk = self.chunks[claim.token.chunk]
        del chunk.claims[event.token]
        worker = self.workers.get(claim.worker)
        if worker is not None:
            worker.claims.pop(event.token, None)
            worker.failures_in_row += event.how == "failed"
            if not worker.claims:
                self.idle[claim.worker] = at
            if event.how == "lapsed":
                self.silent[claim.worker] = None
        if chunk.claims:
            self.duplicable[chunk.number] = chunk
            self.duplicable.move_to_end(chunk.number, last=False)
        else:
            self.duplicable.pop(chunk.number, None)
            del self.chunks[chunk.number]
        self.ended[event.token] = EndedClaim(claim.worker, event.how, event.reason, claim.start, claim.stop)
        if len(self.ended) > _ENDED_MAX:
            self.ended.popitem(last=False)
        self.wasted_frames += event.wasted_frames
        self.lapses += event.how in ("lapsed", "stalled", "timed out")

    def _range_reopened(self, at: float, event: ev.RangeReopened) -> None:
        self._reopen_parts(event.start, event.stop)
        self.in_flight_frames -= event.stop - event.start

    def _reopen_parts(self, start: int, stop: int) -> None:
        first, last = self.grid.part_at(start), self.grid.part_at(stop)
        self.parts[first:last] = bytes((OPEN,)) * (last - first)
        self.open.put_first(start, stop)

    def _part_credited(self, at: float, event: ev.PartCredited) -> None:
        size = self.grid.size(event.part)
        self.parts[event.part] = CREDITED
        self.credits[event.part] = event
        self._out_of_trouble(event.part)
        self.in_flight_frames -= size
        self.credited_frames += size
        self.last_credit_at = at
        claim = self.leases[event.token]
        self._delivered(at, claim, event.part, size)
        claim.credited += size
        chunk = self.chunk_of(claim)
        chunk.uncredited -= 1
        part = self.grid.part_at(chunk.next)
        while chunk.next < chunk.stop and self.parts[part] == CREDITED:
            chunk.next = self.grid.stop(part)
            part += 1
        worker = self.workers.get(event.worker)
        if worker is not None:
            worker.failures_in_row = 0

    def _part_superseded(self, at: float, event: ev.PartSuperseded) -> None:
        self.wasted_frames += event.frames
        self._heard(at, event.worker)
        claim = self.leases.get(event.token)
        if claim is not None:
            self._delivered(at, claim, event.part, event.frames)
            claim.superseded += event.frames

    def _part_adopted(self, at: float, event: ev.PartAdopted) -> None:
        size = self.grid.size(event.part)
        self.open.take(self.grid.start(event.part), self.grid.stop(event.part))
        self.parts[event.part] = CREDITED
        self.credits[event.part] = event
        self._out_of_trouble(event.part)
        self.credited_frames += size

    def _part_voided(self, at: float, event: ev.PartVoided) -> None:
        del self.credits[event.part]
        self.finished = False
        if event.part in self.tries:
            self.troubled[event.part] = None
        self.credited_frames -= self.grid.size(event.part)
        self._reopen_parts(self.grid.start(event.part), self.grid.stop(event.part))

    def _part_failed(self, at: float, event: ev.PartFailed) -> None:
        self.tries.setdefault(event.part, []).append(event.worker)
        if self.parts[event.part] in (OPEN, IN_FLIGHT):
            self.troubled[event.part] = None
        self.failures += 1

    def _part_set_aside(self, at: float, event: ev.PartSetAside) -> None:
        self.open.take(self.grid.start(event.part), self.grid.stop(event.part))
        self.parts[event.part] = SET_ASIDE
        self._out_of_trouble(event.part)
        self.set_aside_frames += self.grid.size(event.part)

    def _out_of_trouble(self, part: int) -> None:
        self.troubled.pop(part, None)
        self.lapsed_at.discard(part)

    def _seam_mismatched(self, at: float, event: ev.SeamMismatched) -> None:
        self.linear = True

    def _claim_refused(self, at: float, event: ev.ClaimRefused) -> None:
        self.silent.pop(event.worker, None)
        self._heard(at, event.worker)
        self.refusals += 1

    def _message_refused(self, at: float, event: ev.MessageRefused) -> None:
        self._heard(at, event.worker)
        self.refusals += 1

    def _heard(self, at: float, worker: str) -> None:
        if worker in self.idle:
            self.idle[worker] = at


_HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
    ev.RunOpened: Books._run_opened,
    ev.RelayStarted: Books._relay_started,
    ev.OptionsChanged: Books._options_changed,
    ev.JobPaused: Books._job_paused,
    ev.JobResumed: Books._job_resumed,
    ev.DrainStarted: Books._drain_started,
    ev.WorkFinished: Books._work_finished,
    ev.WorkerJoined: Books._worker_joined,
    ev.WorkerLeft: Books._worker_left,
    ev.WorkerParked: Books._worker_parked,
    ev.WorkerBlocked: Books._worker_blocked,
    ev.WorkerForgiven: Books._worker_forgiven,
    ev.ClaimGranted: Books._claim_granted,
    ev.LeaseRenewed: Books._lease_renewed,
    ev.ClaimEnded: Books._claim_ended,
    ev.RangeReopened: Books._range_reopened,
    ev.PartCredited: Books._part_credited,
    ev.PartSuperseded: Books._part_superseded,
    ev.PartAdopted: Books._part_adopted,
    ev.PartVoided: Books._part_voided,
    ev.PartFailed: Books._part_failed,
    ev.PartSetAside: Books._part_set_aside,
    ev.SeamMismatched: Books._seam_mismatched,
    ev.ClaimRefused: Books._claim_refused,
    ev.MessageRefused: Books._message_refused,
}
