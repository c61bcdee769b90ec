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
    DEFERRED,
    HOLD,
    IN_FLIGHT,
    OPEN,
    SET_ASIDE,
    ChunkRecord,
    ClaimRecord,
    EndedClaim,
    OpenRanges,
    WorkerRecord,
)

if TYPE_CHECKING:
    from farm.relay.books import Books

#: Ended claims that are remembered by name; older ones are refused all the same, with less of a story.
_ENDED_MAX: Final = 4096

_LAPSES: Final = ("lapsed", "stalled", "timed out")
_IN_FLIGHT: Final = bytes((IN_FLIGHT,))
_TOUCHED: Final = bytes((1,))


#: By how much a worker's clock may be ahead of lease time before it counted more than it worked.
_CLOCK_SLACK_SECONDS: Final = 1.0
#: A part is tried again after this long at the latest.
_BACKOFF_MAX_SECONDS: Final = 60.0
#: Tries that say more of a worker than of the part: the first one costs no waiting.
_BLAMELESS: Final = frozenset({"worker lost", "out of memory", "lapsed", "stalled", "timed out"})


def backoff_seconds(first_seconds: float, tries: int, kind: str) -> float:
    """How long a part rests after its ``tries``-th try failed of ``kind``."""
    doublings = tries - 1 - (kind in _BLAMELESS)
    if doublings < 0:
        return 0.0
    return min(first_seconds * 2.0 ** min(doublings, 30), _BACKOFF_MAX_SECONDS)


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
    books.held = ""
    books.finished = False
    books.sample = None
    if books.deferred_frames:
        books.deferred_frames = 0
        for part in reversed(range(books.grid.parts)):
            if books.parts[part] == DEFERRED:
                _open_part(books, part)


def _sample_chosen(books: Books, at: float, event: ev.SampleChosen) -> None:
    books.sample = frozenset(event.parts)
    ranges, books.open = list(books.open), OpenRanges()
    for start, stop in reversed(ranges):
        _reopen_parts(books, start, stop)


def _options_changed(books: Books, at: float, event: ev.OptionsChanged) -> None:
    books.options = event.options


def _grants_held(books: Books, at: float, event: ev.GrantsHeld) -> None:
    books.held = event.reason


def _grants_freed(books: Books, at: float, event: ev.GrantsFreed) -> None:
    books.held = ""


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


def _worker_throttled(books: Books, at: float, event: ev.WorkerThrottled) -> None:
    books.workers[event.worker].fps_cap = books.caps[event.worker] = event.fps_cap


def _worker_dismissed(books: Books, at: float, event: ev.WorkerDismissed) -> None:
    books.dismissed[event.worker] = None


def _fleet_measured(books: Books, at: float, event: ev.FleetMeasured) -> None:
    books.fps_possible = event.fps_possible


def _worker_left(books: Books, at: float, event: ev.WorkerLeft) -> None:
    books.workers.pop(event.worker, None)
    books.caps.pop(event.worker, None)
    books.parked.pop(event.worker, None)
    books.blocked.pop(event.worker, None)
    books.silent.pop(event.worker, None)
    books.idle.pop(event.worker, None)
    books.dismissed.pop(event.worker, None)
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
    text, name, start, stop = event.token, event.worker, event.start, event.stop
    if event.duplicate:
        token = parse_token(text)
        chunk = books.chunks[token.chunk]
        chunk.attempts = token.attempt
        books.duplicates += 1
        books.wanted.pop(chunk.number, None)
    else:
        chunk = _new_chunk(books, start, stop)
        assert text == f"c{chunk.number}#1@e{books.epoch}", f"{text} is not the next claim"
    worker = books.workers[name]
    claim = ClaimRecord(
        chunk=chunk.number,
        text=text,
        worker=name,
        start=start,
        stop=stop,
        granted_stop=stop,
        granted_at=at,
        renewed_at=at,
        moved_at=at,
        part_since=at,
        own_next=start,
        position=start,
    )
    chunk.claims[text] = claim
    chunk.workers += (name,)
    if len(chunk.claims) >= HOLD:
        del books.duplicable[chunk.number]
    books.leases[text] = claim
    if worker.claims:
        claim.ahead = claim.was_ahead = True
        books.ahead[text] = claim
    worker.claims[text] = claim
    if books.silent:
        books.silent.pop(name, None)
    books.idle.pop(name, None)
    if worker.parked:
        worker.parked = False
        del books.parked[name]
    if books.first_grant_at is None:
        books.first_grant_at = at


def _new_chunk(books: Books, start: int, stop: int) -> ChunkRecord:
    """Move ``[start, stop)`` from open to in flight."""
    grid = books.grid
    first = grid.part_at(start)
    last = first + 1 if grid.cuts[first + 1] == stop else grid.part_at(stop)
    books.open.take(start, stop)
    books.parts[first:last] = _IN_FLIGHT * (last - first)
    books.touched[first:last] = _TOUCHED * (last - first)
    if books.taken_from:
        for part in range(first, last):
            books.taken_from.pop(part, None)
    books.in_flight_frames += stop - start
    number = books.chunk_count
    chunk = ChunkRecord(number, start, stop, start, last - first, 1)
    books.chunks[number] = books.duplicable[number] = chunk
    books.chunk_count = number + 1
    return chunk


def _lease_renewed(books: Books, at: float, event: ev.LeaseRenewed) -> None:
    for progress in event.claims:
        claim = books.leases.get(progress.token)
        if claim is None:
            continue
        claim.renewed_at = at
        books.leases.move_to_end(claim.text)
        moved = (
            progress.rendered > claim.rendered
            or progress.decoded > claim.decoded
            or progress.delivered_bytes > claim.delivered_bytes
            or progress.queued
        )
        if moved:
            claim.moved_at = at
        if progress.position > claim.position:
            if books.grid.part_at(progress.position) > books.grid.part_at(claim.position):
                claim.part_since = at
            claim.position = progress.position
        _report(books, at, claim, progress.rendered, progress.render_seconds)
        claim.rendered = max(claim.rendered, progress.rendered)
        claim.decoded = max(claim.decoded, progress.decoded)
        claim.delivered_bytes = max(claim.delivered_bytes, progress.delivered_bytes)


def _report(books: Books, at: float, claim: ClaimRecord, rendered: int, seconds: float) -> None:
    """Learn from how far a claim came. A report that was overtaken by a newer one says nothing. A worker also
    counts the seconds in which it was itself stopped; what lease time has no room for is not believed."""
    if seconds > at - claim.granted_at + _CLOCK_SLACK_SECONDS:
        seconds = at - claim.granted_at
    if seconds <= claim.render_seconds or rendered < claim.reported:
        return
    claim.begun = True
    speed = books.speeds.learn(claim.worker)
    if rendered > 0 and claim.reported == 0 and not claim.was_ahead:
        speed.first_render(at - claim.granted_at - seconds)
    speed.report(rendered - claim.reported, seconds - claim.render_seconds)
    claim.reported = rendered
    claim.render_seconds = seconds


def _delivered(books: Books, at: float, claim: ClaimRecord, part: int, frames: int) -> None:
    """What a delivery says of its claim, whether its frames count or not."""
    claim.renewed_at = claim.moved_at = at
    books.leases.move_to_end(claim.text)
    start, stop = books.grid.cuts[part], books.grid.cuts[part + 1]
    delivered = claim.credited + claim.superseded + frames
    if claim.rendered < delivered:
        claim.rendered = delivered
    if start == claim.own_next:
        claim.own_next = stop
    elif start > claim.own_next:  # deliveries may overtake one another
        claim.delivered_ahead |= {part}
    while claim.delivered_ahead and (own_part := books.grid.part_at(claim.own_next)) in claim.delivered_ahead:
        claim.delivered_ahead -= {own_part}
        claim.own_next = books.grid.stop(own_part)
    if claim.position < stop:
        claim.position = stop
        claim.part_since = at


def _block_stored(books: Books, at: float, event: ev.BlockStored) -> None:
    claim = books.leases.get(event.token)
    if claim is not None:
        claim.renewed_at = claim.moved_at = at
        books.leases.move_to_end(claim.text)


def _claim_ended(books: Books, at: float, event: ev.ClaimEnded) -> None:
    text, how = event.token, event.how
    claim = books.leases.pop(text)
    if claim.ahead:
        del books.ahead[text]
    chunk = books.chunks[claim.chunk]
    if how == "lapsed" or (how == "stalled" and books.waits_for_delivery(claim)):
        books.lapsed_at.add(books.grid.part_at(books.next_frame(claim, skipping=True)))
    if how == "lapsed":
        books.silent[claim.worker] = None
    elif how == "failed":
        books.workers[claim.worker].failures_in_row += 1
    del chunk.claims[text]
    worker = books.workers[claim.worker]
    del worker.claims[text]
    if worker.claims:
        for behind in worker.claims.values():
            _becomes_active(books, at, behind)
    else:
        books.idle[claim.worker] = at
    if chunk.claims:
        books.duplicable[chunk.number] = chunk
        books.duplicable.move_to_end(chunk.number, last=False)
    else:
        books.duplicable.pop(chunk.number, None)
        books.wanted.pop(chunk.number, None)
        del books.chunks[chunk.number]
    books.ended[text] = EndedClaim(claim.worker, how, event.reason, claim.start, claim.granted_stop)
    if len(books.ended) > _ENDED_MAX:
        books.ended.popitem(last=False)
    books.wasted_frames += event.wasted_frames
    books.lapses += how in _LAPSES


def _duplicate_wanted(books: Books, at: float, event: ev.DuplicateWanted) -> None:
    books.wanted[event.chunk] = None


def _claim_released(books: Books, at: float, event: ev.ClaimReleased) -> None:
    """Its parts are left to others; how the claim ends is another event."""
    claim = books.leases[event.token]
    for part in books.grid.parts_in(claim.start, claim.stop):
        if books.parts[part] == IN_FLIGHT:
            books.taken_from[part] = (*books.taken_from.get(part, ()), event.worker)


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
    """Open, or deferred if they are not in the sample."""
    first, last = books.grid.part_at(start), books.grid.part_at(stop)
    if books.sample is None:
        books.parts[first:last] = bytes((OPEN,)) * (last - first)
        books.open.put_first(start, stop)
        return
    for part in reversed(range(first, last)):
        if part in books.sample:
            _open_part(books, part)
        else:
            books.parts[part] = DEFERRED
            books.deferred_frames += books.grid.size(part)
            books.taken_from.pop(part, None)


def _open_part(books: Books, part: int) -> None:
    books.parts[part] = OPEN
    books.open.put_first(books.grid.start(part), books.grid.stop(part))


def _part_credited(books: Books, at: float, event: ev.PartCredited) -> None:
    part = event.part
    parts, cuts = books.parts, books.grid.cuts
    start, stop = cuts[part], cuts[part + 1]
    size = stop - start
    claim = books.leases[event.token]
    chunk = None
    if parts[part] == OPEN:  # beyond the stop of a claim that was split, and nobody's since
        books.open.take(start, stop)
    else:
        chunk = books.chunks[claim.chunk if event.chunk is None else event.chunk]
        books.in_flight_frames -= size
    parts[part] = CREDITED
    books.credits[part] = event
    if books.troubled or books.lapsed_at or books.taken_from:
        _out_of_trouble(books, part)
    books.credited_frames += size
    books.last_credit_at = at
    _delivered(books, at, claim, part, size)
    _report(books, at, claim, event.claim_rendered, event.claim_seconds)
    claim.credited += size
    worker = books.workers.get(event.worker)
    if worker is not None and worker.failures_in_row:
        worker.failures_in_row = 0
    if chunk is None:
        return
    chunk.uncredited -= 1
    if start != chunk.next:
        return
    while stop < chunk.stop and parts[part + 1] == CREDITED:
        part += 1
        stop = cuts[part + 1]
    chunk.next = stop


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
    pause_seconds = backoff_seconds(books.options.backoff_seconds, event.tries, event.kind)
    if pause_seconds:
        books.retry_at[event.part] = at + pause_seconds
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
    books.retry_at.pop(event.part, None)
    books.finished = False
    _reopen_parts(books, books.grid.start(event.part), books.grid.stop(event.part))


def _out_of_trouble(books: Books, part: int) -> None:
    books.troubled.pop(part, None)
    books.retry_at.pop(part, None)
    books.lapsed_at.discard(part)
    books.taken_from.pop(part, None)


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
    ev.SampleChosen: _sample_chosen,
    ev.OptionsChanged: _options_changed,
    ev.GrantsHeld: _grants_held,
    ev.GrantsFreed: _grants_freed,
    ev.JobPaused: _job_paused,
    ev.JobResumed: _job_resumed,
    ev.DrainStarted: _drain_started,
    ev.WorkFinished: _work_finished,
    ev.WorkerJoined: _worker_joined,
    ev.WorkerThrottled: _worker_throttled,
    ev.WorkerDismissed: _worker_dismissed,
    ev.FleetMeasured: _fleet_measured,
    ev.WorkerLeft: _worker_left,
    ev.WorkerParked: _worker_parked,
    ev.WorkerBlocked: _worker_blocked,
    ev.WorkerForgiven: _worker_forgiven,
    ev.ClaimGranted: _claim_granted,
    ev.LeaseRenewed: _lease_renewed,
    ev.ClaimEnded: _claim_ended,
    ev.DuplicateWanted: _duplicate_wanted,
    ev.ClaimReleased: _claim_released,
    ev.RangeReopened: _range_reopened,
    ev.ChunkSplit: _chunk_split,
    ev.BlockStored: _block_stored,
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
#: What folds an event of a type, or None.
handler_of: Final = HANDLERS.get
