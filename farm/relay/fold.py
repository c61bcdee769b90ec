"""How each event changes the books. The only code that does.

Rules of this file: no decisions, no I/O, no clock; all O(1), or O(parts moved). An event that is not in the
table at the end concerns the console or the job's phases and changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from farm import events as ev
from farm.frames import PartGrid, parse_token
from farm.relay.disputes import maker
from farm.relay.ledger import (
    CREDITED,
    HOLD,
    IN_FLIGHT,
    OPEN,
    SET_ASIDE,
    ChunkRecord,
    ClaimRecord,
    EndedClaim,
    WorkerRecord,
)

if TYPE_CHECKING:
    from farm.relay.books import Books

#: Ended claims that are remembered by name; older ones are refused all the same, with less of a story.
_ENDED_MAX: Final = 4096


def _run_opened(books: Books, at: float, event: ev.RunOpened) -> None:
    books.options = event.options
    books.grid = PartGrid(event.cuts)
    books.build = event.build
    books.parts = bytearray(books.grid.parts)
    books.touched = bytearray(books.grid.parts)
    books.open.put_first(0, books.grid.frames)


def _relay_started(books: Books, at: float, event: ev.RelayStarted) -> None:
    books.epoch = event.epoch
    books.draining = False
    books.finished = False


def _options_changed(books: Books, at: float, event: ev.OptionsChanged) -> None:
    books.options = event.options


def _job_paused(books: Books, at: float, event: ev.JobPaused) -> None:
    books.paused_at = at


def _job_resumed(books: Books, at: float, event: ev.JobResumed) -> None:
    books.paused_at = None
    books.paused_seconds += event.seconds
    for claim in books.leases.values():  # what moved during the pause is as fresh as can be
        claim.moved_at = min(at, claim.moved_at + event.seconds)
        claim.part_since = min(at, claim.part_since + event.seconds)


def _drain_started(books: Books, at: float, event: ev.DrainStarted) -> None:
    books.draining = True


def _work_finished(books: Books, at: float, event: ev.WorkFinished) -> None:
    books.finished = True


def _worker_joined(books: Books, at: float, event: ev.WorkerJoined) -> None:
    books.workers[event.worker] = WorkerRecord(event.worker, event.overhead_seconds, event.fps_cap)
    books.caps[event.worker] = event.fps_cap
    books.idle[event.worker] = at


def _worker_left(books: Books, at: float, event: ev.WorkerLeft) -> None:
    books.workers.pop(event.worker, None)
    books.caps.pop(event.worker, None)
    books.parked.pop(event.worker, None)
    books.blocked.pop(event.worker, None)
    books.silent.pop(event.worker, None)
    books.idle.pop(event.worker, None)
    books.losses += event.lost
    books.disputes.someone_left(at)


def _worker_parked(books: Books, at: float, event: ev.WorkerParked) -> None:
    books.parked[event.worker] = None
    books.silent.pop(event.worker, None)
    books.idle.pop(event.worker, None)
    books.workers[event.worker].parked = True


def _worker_blocked(books: Books, at: float, event: ev.WorkerBlocked) -> None:
    books.blocked[event.worker] = None
    books.workers[event.worker].blocked_until = event.until


def _worker_forgiven(books: Books, at: float, event: ev.WorkerForgiven) -> None:
    books.blocked.pop(event.worker, None)
    worker = books.workers[event.worker]
    worker.blocked_until = None
    worker.failures_in_row = 0


def _claim_granted(books: Books, at: float, event: ev.ClaimGranted) -> None:
    token = parse_token(event.token)
    first, last = books.grid.part_at(event.start), books.grid.part_at(event.stop)
    if not event.duplicate:
        assert token.chunk == books.chunk_count and token.attempt == 1
        books.open.take(event.start, event.stop)
        books.parts[first:last] = bytes((IN_FLIGHT,)) * (last - first)
        books.touched[first:last] = bytes((1,)) * (last - first)
        books.in_flight_frames += event.stop - event.start
        chunk = ChunkRecord(token.chunk, event.start, event.stop, event.start, last - first)
        books.chunks[token.chunk] = chunk
        books.duplicable[token.chunk] = chunk
        books.chunk_count += 1
    else:
        chunk = books.chunks[token.chunk]
        books.duplicates += 1
    claim = ClaimRecord(
        token=token,
        text=event.token,
        worker=event.worker,
        start=event.start,
        stop=event.stop,
        granted_stop=event.stop,
        ahead=bool(books.workers[event.worker].claims),
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
        del books.duplicable[chunk.number]
    books.leases[event.token] = claim
    if claim.ahead:
        claim.was_ahead = True
        books.ahead[event.token] = claim
    books.silent.pop(event.worker, None)
    books.idle.pop(event.worker, None)
    worker = books.workers[event.worker]
    worker.claims[event.token] = claim
    worker.parked = False
    books.parked.pop(event.worker, None)
    if books.first_grant_at is None:
        books.first_grant_at = at


def _lease_renewed(books: Books, at: float, event: ev.LeaseRenewed) -> None:
    for progress in event.claims:
        claim = books.leases.get(progress.token)
        if claim is None:
            continue
        _renew(books, at, claim)
        moved = (
            progress.rendered > claim.rendered
            or progress.decoded > claim.decoded
            or progress.delivered_bytes > claim.delivered_bytes
        )
        if moved:
            claim.moved_at = at
        if books.grid.part_at(progress.position) > books.grid.part_at(claim.position):
            claim.part_since = at
        _report(books, at, claim, progress.rendered, progress.render_seconds)
        claim.position = max(claim.position, progress.position)
        claim.rendered = max(claim.rendered, progress.rendered)
        claim.decoded = max(claim.decoded, progress.decoded)
        claim.delivered_bytes = max(claim.delivered_bytes, progress.delivered_bytes)


def _report(books: Books, at: float, claim: ClaimRecord, rendered: int, seconds: float) -> None:
    """Learn from how far a claim came. A report that was overtaken by a newer one says nothing."""
    if seconds <= claim.render_seconds or rendered < claim.reported:
        return
    claim.begun = True
    if rendered > 0 and claim.reported == 0 and not claim.was_ahead:
        books.speeds.learn(claim.worker).first_render(at - claim.granted_at - seconds)
    books.speeds.learn(claim.worker).report(rendered - claim.reported, seconds - claim.render_seconds)
    claim.reported = rendered
    claim.render_seconds = seconds


def _renew(books: Books, at: float, claim: ClaimRecord) -> None:
    claim.renewed_at = at
    books.leases.move_to_end(claim.text)


def _delivered(books: Books, at: float, claim: ClaimRecord, part: int, frames: int) -> None:
    """What a delivery says of its claim, whether its frames count or not."""
    _renew(books, at, claim)
    claim.moved_at = at
    stop = books.grid.stop(part)
    claim.rendered = max(claim.rendered, claim.credited + claim.superseded + frames)
    if books.grid.start(part) >= claim.own_next:  # deliveries may overtake one another
        claim.delivered_ahead.add(part)
    while (own_part := books.grid.part_at(claim.own_next)) in claim.delivered_ahead:
        claim.delivered_ahead.remove(own_part)
        claim.own_next = books.grid.stop(own_part)
    if claim.position < stop:
        claim.position = stop
        claim.part_since = at


def _claim_ended(books: Books, at: float, event: ev.ClaimEnded) -> None:
    claim = books.leases.pop(event.token)
    books.ahead.pop(event.token, None)
    if event.how == "lapsed":
        books.lapsed_at.add(books.grid.part_at(books.next_frame(claim, skipping=True)))
    chunk = books.chunks[claim.token.chunk]
    del chunk.claims[event.token]
    worker = books.workers.get(claim.worker)
    if worker is not None:
        worker.claims.pop(event.token, None)
        worker.failures_in_row += event.how == "failed"
        for behind in worker.claims.values():
            _becomes_active(books, at, behind)
        if not worker.claims:
            books.idle[claim.worker] = at
        if event.how == "lapsed":
            books.silent[claim.worker] = None
    if chunk.claims:
        books.duplicable[chunk.number] = chunk
        books.duplicable.move_to_end(chunk.number, last=False)
    else:
        books.duplicable.pop(chunk.number, None)
        del books.chunks[chunk.number]
    books.ended[event.token] = EndedClaim(
        claim.worker, event.how, event.reason, claim.start, claim.granted_stop
    )
    if len(books.ended) > _ENDED_MAX:
        books.ended.popitem(last=False)
    books.wasted_frames += event.wasted_frames
    books.lapses += event.how in ("lapsed", "stalled", "timed out")


def _becomes_active(books: Books, at: float, claim: ClaimRecord) -> None:
    claim.ahead = False
    claim.moved_at = claim.part_since = at
    books.ahead.pop(claim.text, None)


def _chunk_split(books: Books, at: float, event: ev.ChunkSplit) -> None:
    """The chunk ends at ``event.at`` from now on; what it had beyond that is open."""
    chunk = books.chunks[event.chunk]
    for start, stop in list(books.uncredited_ranges(event.at, chunk.stop)):
        chunk.uncredited -= books.grid.part_at(stop) - books.grid.part_at(start)
        books.in_flight_frames -= stop - start
        _reopen_parts(books, start, stop)
    chunk.stop = event.at
    for claim in chunk.claims.values():
        claim.stop = min(claim.stop, event.at)
    books.splits += 1


def _range_reopened(books: Books, at: float, event: ev.RangeReopened) -> None:
    _reopen_parts(books, event.start, event.stop)
    books.in_flight_frames -= event.stop - event.start


def _reopen_parts(books: Books, start: int, stop: int) -> None:
    first, last = books.grid.part_at(start), books.grid.part_at(stop)
    books.parts[first:last] = bytes((OPEN,)) * (last - first)
    books.open.put_first(start, stop)


def _part_credited(books: Books, at: float, event: ev.PartCredited) -> None:
    size = books.grid.size(event.part)
    chunk = None
    if books.parts[event.part] == OPEN:  # beyond the stop of a claim that was split, and nobody's since
        books.open.take(books.grid.start(event.part), books.grid.stop(event.part))
    else:
        chunk = books.chunk_of(books.leases[event.token])
        if event.chunk is not None:
            chunk = books.chunks[event.chunk]
        books.in_flight_frames -= size
    books.parts[event.part] = CREDITED
    books.credits[event.part] = event
    _out_of_trouble(books, event.part)
    books.credited_frames += size
    books.last_credit_at = at
    claim = books.leases[event.token]
    _delivered(books, at, claim, event.part, size)
    _report(books, at, claim, event.claim_rendered, event.claim_seconds)
    claim.credited += size
    worker = books.workers.get(event.worker)
    if worker is not None:
        worker.failures_in_row = 0
    if chunk is None:
        return
    chunk.uncredited -= 1
    part = books.grid.part_at(chunk.next)
    while chunk.next < chunk.stop and books.parts[part] == CREDITED:
        chunk.next = books.grid.stop(part)
        part += 1


def _part_superseded(books: Books, at: float, event: ev.PartSuperseded) -> None:
    books.wasted_frames += event.frames
    _heard(books, at, event.worker)
    claim = books.leases.get(event.token)
    if claim is not None:
        _delivered(books, at, claim, event.part, event.frames)
        _report(books, at, claim, event.claim_rendered, event.claim_seconds)
        claim.superseded += event.frames


def _part_adopted(books: Books, at: float, event: ev.PartAdopted) -> None:
    size = books.grid.size(event.part)
    books.open.take(books.grid.start(event.part), books.grid.stop(event.part))
    books.parts[event.part] = CREDITED
    books.credits[event.part] = event
    _out_of_trouble(books, event.part)
    books.credited_frames += size


def _part_voided(books: Books, at: float, event: ev.PartVoided) -> None:
    del books.credits[event.part]
    books.finished = False
    if event.part in books.tries:
        books.troubled[event.part] = None
    books.credited_frames -= books.grid.size(event.part)
    _reopen_parts(books, books.grid.start(event.part), books.grid.stop(event.part))


def _part_failed(books: Books, at: float, event: ev.PartFailed) -> None:
    books.tries.setdefault(event.part, []).append(event.worker)
    if books.parts[event.part] in (OPEN, IN_FLIGHT):
        books.troubled[event.part] = None
    books.failures += 1


def _part_set_aside(books: Books, at: float, event: ev.PartSetAside) -> None:
    books.open.take(books.grid.start(event.part), books.grid.stop(event.part))
    books.parts[event.part] = SET_ASIDE
    _out_of_trouble(books, event.part)
    books.set_aside_frames += books.grid.size(event.part)


def _part_retried(books: Books, at: float, event: ev.PartRetried) -> None:
    books.set_aside_frames -= books.grid.size(event.part)
    books.tries.pop(event.part, None)
    books.finished = False
    _reopen_parts(books, books.grid.start(event.part), books.grid.stop(event.part))


def _out_of_trouble(books: Books, part: int) -> None:
    books.troubled.pop(part, None)
    books.lapsed_at.discard(part)


def _part_diverged(books: Books, at: float, event: ev.PartDiverged) -> None:
    books.disputes.diverged(at, event, books.credits[event.part])


def _part_settled(books: Books, at: float, event: ev.PartSettled) -> None:
    books.disputes.settled(event)
    for credit in books.credits.values():
        if maker(credit) == event.odd:
            books.disputes.suspect_files[credit.file] = None


def _seam_mismatched(books: Books, at: float, event: ev.SeamMismatched) -> None:
    books.linear = True


def _claim_refused(books: Books, at: float, event: ev.ClaimRefused) -> None:
    books.silent.pop(event.worker, None)
    _heard(books, at, event.worker)
    books.refusals += 1


def _message_refused(books: Books, at: float, event: ev.MessageRefused) -> None:
    _heard(books, at, event.worker)
    books.refusals += 1


def _heard(books: Books, at: float, worker: str) -> None:
    if worker in books.idle:
        books.idle[worker] = at


HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
    ev.RunOpened: _run_opened,
    ev.RelayStarted: _relay_started,
    ev.OptionsChanged: _options_changed,
    ev.JobPaused: _job_paused,
    ev.JobResumed: _job_resumed,
    ev.DrainStarted: _drain_started,
    ev.WorkFinished: _work_finished,
    ev.WorkerJoined: _worker_joined,
    ev.WorkerLeft: _worker_left,
    ev.WorkerParked: _worker_parked,
    ev.WorkerBlocked: _worker_blocked,
    ev.WorkerForgiven: _worker_forgiven,
    ev.ClaimGranted: _claim_granted,
    ev.LeaseRenewed: _lease_renewed,
    ev.ClaimEnded: _claim_ended,
    ev.RangeReopened: _range_reopened,
    ev.ChunkSplit: _chunk_split,
    ev.PartCredited: _part_credited,
    ev.PartSuperseded: _part_superseded,
    ev.PartAdopted: _part_adopted,
    ev.PartVoided: _part_voided,
    ev.PartFailed: _part_failed,
    ev.PartSetAside: _part_set_aside,
    ev.PartRetried: _part_retried,
    ev.PartDiverged: _part_diverged,
    ev.PartSettled: _part_settled,
    ev.SeamMismatched: _seam_mismatched,
    ev.ClaimRefused: _claim_refused,
    ev.MessageRefused: _message_refused,
}
