"""Parts: credited, failed, set aside, taken back; and what a delivery says of its claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from farm import events as ev
from farm.relay.disputes import maker
from farm.relay.fold.shared import heard, reopen_parts, report
from farm.relay.ledger import CREDITED, IN_FLIGHT, OPEN, SET_ASIDE, ClaimRecord

if TYPE_CHECKING:
    from farm.relay.books import Books

#: A part is tried again after this long at the latest.
_BACKOFF_MAX_SECONDS: Final = 60.0
#: Tries that say more of a worker than of the part: the first one costs no waiting.
_BLAMELESS: Final = frozenset({"worker lost", "out of memory", "lapsed", "stalled", "timed out"})


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
    report(books, at, claim, event.claim_rendered, event.claim_seconds)
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
    heard(books, at, event.worker)
    claim = books.leases.get(event.token)
    if claim is not None:
        _delivered(books, at, claim, event.part, event.frames)
        report(books, at, claim, event.claim_rendered, event.claim_seconds)
        claim.superseded += event.frames


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
    reopen_parts(books, books.grid.start(event.part), books.grid.stop(event.part))


def backoff_seconds(first_seconds: float, tries: int, kind: str) -> float:
    """How long a part rests after its ``tries``-th try failed of ``kind``."""
    doublings = tries - 1 - (kind in _BLAMELESS)
    if doublings < 0:
        return 0.0
    return min(first_seconds * 2.0 ** min(doublings, 30), _BACKOFF_MAX_SECONDS)


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
    reopen_parts(books, books.grid.start(event.part), books.grid.stop(event.part))


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


HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
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
}
