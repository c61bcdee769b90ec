"""Two copies of a part with different bytes (DESIGN.md §4 rule 13).

Theory of operation. A second copy that differs from the credited one puts the part in dispute: it is taken
back and open again, for a third worker only. The third copy decides. Like one of the two: that one is right,
and the odd worker is not trusted any more: its claims end, it is given nothing, and all it was credited with
is taken back and rendered again. Like neither, or no third worker to be had within a lease: nothing can be
trusted, and the run ends (``PartUnsettled``).

Rule: nothing is credited under a doubt. What was credited to the odd worker is open again in the same turn.
"""

from __future__ import annotations

from farm import events as ev
from farm import messages as msg
from farm.relay import endings
from farm.relay.disputes import maker
from farm.relay.turn import Turn


def diverge(turn: Turn, worker: str, token: str, request: msg.Deliver) -> None:
    """``worker`` delivered another copy of a credited part than the credited one."""
    books, part = turn.books, request.part
    assert part is not None
    turn.emit(
        ev.PartDiverged(
            part=part,
            token=token,
            worker=worker,
            sha256=request.sha256,
            credited_sha256=books.credits[part].sha256,
        )
    )
    take_back(turn, part, "two copies of it differ")


def judge(turn: Turn, worker: str, request: msg.Deliver) -> tuple[str | None, ...] | None:
    """None: this copy may not be credited. Else who made other copies of the part, which were wrong (None
    among them: one that was found in the store); nobody, unless the part was in dispute."""
    books, part = turn.books, request.part
    dispute = books.disputes.open.get(part) if part is not None else None
    if dispute is None:
        return ()
    assert part is not None
    if books.disputes.bars(worker, part):
        return None
    if all(copy.sha256 != request.sha256 for copy in dispute.copies):
        makers = ", ".join(copy.worker or "an earlier run" for copy in dispute.copies)
        turn.emit(ev.PartUnsettled(part=part, reason=f"the copies of {makers} and {worker} all differ"))
        return None
    wrong = tuple(copy.worker for copy in dispute.copies if copy.sha256 != request.sha256)
    for odd in wrong:
        turn.emit(ev.PartSettled(part=part, sha256=request.sha256, by=worker, odd=odd))
    return wrong


def shun(turn: Turn, odd: str | None, part: int) -> None:
    """What follows for who made the wrong copy of ``part``, after the right one was credited."""
    books = turn.books
    if odd is not None and odd in books.workers:
        why = f"its copy of part {part} was the odd one of three"
        for claim in list(books.workers[odd].claims.values()):
            endings.end_claim(turn, claim, "voided", why)
        if odd in books.parked:
            turn.push(odd, msg.Finished(why=why))
    suspect = [other for other, credit in books.credits.items() if maker(credit) == odd]
    for other in sorted(suspect, reverse=True):
        take_back(turn, other, f"{odd or 'an earlier run'} made it, whose copy of part {part} was wrong")


def take_back(turn: Turn, part: int, reason: str) -> None:
    """A credit that is not to be trusted. Claims on a chunk in flight that covers the part end, so that no
    two chunks overlap."""
    books = turn.books
    chunk = books.chunk_at(books.grid.start(part))
    for claim in list(chunk.claims.values()) if chunk is not None else ():
        endings.end_claim(turn, claim, "voided", reason)
    turn.emit(ev.PartVoided(part=part, reason=reason))


def give_up_in_time(turn: Turn) -> None:
    """At a tick: end disputes for which there has been no third worker for a lease."""
    books = turn.books
    for part, dispute in list(books.disputes.open.items()):
        third = any(not books.disputes.bars(name, part) for name in books.workers)
        if not third and turn.now - dispute.since >= books.options.lease_seconds:
            turn.emit(ev.PartUnsettled(part=part, reason="two copies differ, and there is no third worker"))
