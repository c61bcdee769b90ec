"""Claims and chunks: granted, renewed, ended, split; and what was refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from farm import events as ev
from farm.frames import parse_token
from farm.relay.fold.shared import heard, reopen_parts, report
from farm.relay.ledger import HOLD, IN_FLIGHT, ChunkRecord, ClaimRecord, EndedClaim

if TYPE_CHECKING:
    from farm.relay.books import Books

#: Ended claims that are remembered by name; older ones are refused all the same, with less of a story.
_ENDED_MAX: Final = 4096

_LAPSES: Final = ("lapsed", "stalled", "timed out")
_IN_FLIGHT: Final = bytes((IN_FLIGHT,))
_TOUCHED: Final = bytes((1,))


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
        report(books, at, claim, progress.rendered, progress.render_seconds)
        claim.rendered = max(claim.rendered, progress.rendered)
        claim.decoded = max(claim.decoded, progress.decoded)
        claim.delivered_bytes = max(claim.delivered_bytes, progress.delivered_bytes)


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


def _becomes_active(books: Books, at: float, claim: ClaimRecord) -> None:
    claim.ahead = False
    claim.moved_at = claim.part_since = at
    books.ahead.pop(claim.text, None)


def _duplicate_wanted(books: Books, at: float, event: ev.DuplicateWanted) -> None:
    books.wanted[event.chunk] = None


def _claim_released(books: Books, at: float, event: ev.ClaimReleased) -> None:
    """Its parts are left to others; how the claim ends is another event."""
    claim = books.leases[event.token]
    for part in books.grid.parts_in(claim.start, claim.stop):
        if books.parts[part] == IN_FLIGHT:
            books.taken_from[part] = (*books.taken_from.get(part, ()), event.worker)


def _chunk_split(books: Books, at: float, event: ev.ChunkSplit) -> None:
    """The chunk ends at ``event.at`` from now on; what it had beyond that is open."""
    chunk = books.chunks[event.chunk]
    for start, stop in list(books.uncredited_ranges(event.at, chunk.stop)):
        chunk.uncredited -= books.grid.part_at(stop) - books.grid.part_at(start)
        books.in_flight_frames -= stop - start
        reopen_parts(books, start, stop)
    chunk.stop = event.at
    for claim in chunk.claims.values():
        claim.stop = min(claim.stop, event.at)
    books.splits += 1


def _range_reopened(books: Books, at: float, event: ev.RangeReopened) -> None:
    reopen_parts(books, event.start, event.stop)
    books.in_flight_frames -= event.stop - event.start


def _claim_refused(books: Books, at: float, event: ev.ClaimRefused) -> None:
    books.silent.pop(event.worker, None)
    heard(books, at, event.worker)
    books.refusals += 1


def _message_refused(books: Books, at: float, event: ev.MessageRefused) -> None:
    heard(books, at, event.worker)
    books.refusals += 1


HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
    ev.ClaimGranted: _claim_granted,
    ev.LeaseRenewed: _lease_renewed,
    ev.BlockStored: _block_stored,
    ev.ClaimEnded: _claim_ended,
    ev.DuplicateWanted: _duplicate_wanted,
    ev.ClaimReleased: _claim_released,
    ev.ChunkSplit: _chunk_split,
    ev.RangeReopened: _range_reopened,
    ev.ClaimRefused: _claim_refused,
    ev.MessageRefused: _message_refused,
}
