"""What more than one family of events changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farm.relay.ledger import DEFERRED, OPEN, ClaimRecord

if TYPE_CHECKING:
    from farm.relay.books import Books

#: By how much a worker's clock may be ahead of lease time before it counted more than it worked.
_CLOCK_SLACK_SECONDS: Final = 1.0


def report(books: Books, at: float, claim: ClaimRecord, rendered: int, seconds: float) -> None:
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


def reopen_parts(books: Books, start: int, stop: int) -> None:
    """``[start, stop)`` is nobody's any more, and is given out first, or deferred where it isn't in the
    sample. The caller keeps the counters."""
    first, last = books.grid.part_at(start), books.grid.part_at(stop)
    if books.sample is None:
        books.parts[first:last] = bytes((OPEN,)) * (last - first)
        books.open.put_first(start, stop)
        return
    for part in reversed(range(first, last)):
        if part in books.sample:
            open_part(books, part)
        else:
            books.parts[part] = DEFERRED
            books.deferred_frames += books.grid.size(part)
            books.taken_from.pop(part, None)


def open_part(books: Books, part: int) -> None:
    """It is given out first."""
    books.parts[part] = OPEN
    books.open.put_first(books.grid.start(part), books.grid.stop(part))


def heard(books: Books, at: float, worker: str) -> None:
    """A worker without a claim spoke for itself: it is expected to take work for another lease."""
    if worker in books.idle:
        books.idle[worker] = at
