"""Who has gone silent, who is alive without moving, and which part takes too long (DESIGN.md §4, 7 and 8)."""

from __future__ import annotations

from itertools import islice

from farm import events as ev
from farm.relay import endings
from farm.relay.books import Books
from farm.relay.ledger import ClaimRecord
from farm.relay.turn import Turn

#: Parts that a median needs before a limit in % of it is applied.
_MEDIAN_MIN = 5
#: Credits the median is taken over: the newest.
_MEDIAN_OVER = 101


def check_leases(turn: Turn) -> None:
    """Lapse the claims whose lease ran out. One lease length for all, so only the oldest are looked at.

    Silence is nobody's fault and counts no try, the first time. A part that silences one worker after another
    counts one for each after that, so that it ends set aside (RG40)."""
    books = turn.books
    lease_seconds = books.options.lease_seconds
    while books.leases:
        claim = next(iter(books.leases.values()))
        if turn.now - claim.renewed_at < lease_seconds:
            return
        reason = f"no heartbeat for {turn.now - claim.renewed_at:.1f} s"
        part = books.grid.part_at(books.next_frame(claim, skipping=True))
        if part in books.lapsed_at:
            endings.fail_part(turn, claim, part, "lapsed", reason)
        endings.end_claim(turn, claim, "lapsed", reason)


def check_progress(turn: Turn) -> None:
    """Lapse claims that beat but don't move, and those whose part takes longer than the hard limit. Both
    count as a try against the part, so that a part nobody can finish ends set aside (RG40); but for a part
    that was rendered and is only late in coming: that is as silence is (``check_leases``)."""
    books = turn.books
    if books.paused_at is not None:
        return
    stall_seconds = books.options.stall_timeout_seconds
    limit_seconds = _part_limit_seconds(books)
    for claim in [claim for claim in books.leases.values() if not claim.ahead]:
        overhead = books.workers[claim.worker].overhead_seconds if claim.worker in books.workers else 0.0
        first = overhead if claim.position == claim.start else 0.0
        still = turn.now - claim.moved_at - first
        if still >= stall_seconds:
            _give_up(turn, claim, "stalled", f"no progress for {still:.1f} s")
        elif limit_seconds is not None and turn.now - claim.part_since - first >= limit_seconds:
            _give_up(turn, claim, "timed out", f"the part took longer than {limit_seconds:.1f} s")


def _give_up(turn: Turn, claim: ClaimRecord, how: ev.ClaimEnd, reason: str) -> None:
    books = turn.books
    part = books.grid.part_at(min(turn.next_frame(claim.text), books.grid.frames - 1))
    if how != "stalled" or not books.waits_for_delivery(claim) or part in books.lapsed_at:
        endings.fail_part(turn, claim, part, how, reason)
    endings.end_claim(turn, claim, how, reason)


def _part_limit_seconds(books: Books) -> float | None:
    limits = [] if books.options.part_timeout_seconds is None else [books.options.part_timeout_seconds]
    share = books.options.part_timeout_share
    if share is not None:
        newest = islice(reversed(books.credits.values()), _MEDIAN_OVER)
        times = sorted(
            c.render_seconds for c in newest if isinstance(c, ev.PartCredited) and c.render_seconds
        )
        if len(times) >= _MEDIAN_MIN:
            limits.append(share * times[len(times) // 2])
    return min(limits, default=None)
