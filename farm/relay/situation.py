"""The books as policies and tail rules see them. To be read: nothing is decided here."""

from __future__ import annotations

from functools import partial

from farm.policies.base import Policy
from farm.policies.fair import Fair
from farm.policies.situation import Busy, Situation
from farm.relay.books import HOLD, Books
from farm.relay.cuts import nearest_cut
from farm.relay.turn import Turn


def situation(turn: Turn, policy: Policy) -> Situation:
    """What the decision is made on; kept for the turn as long as nothing changes."""
    books = turn.books
    if turn.situation is not None and turn.situation_at == len(turn.events):
        return turn.situation
    known = isinstance(policy, Fair) and policy.known
    turn.situation_at = len(turn.events)
    turn.situation = Situation(
        now=turn.now,
        total_frames=books.target_frames,
        open_frames=books.open.frames,
        part_frames=books.grid.frames / books.grid.parts,
        workers=max(1, books.available_count),
        speeds=books.speeds,
        heartbeat_seconds=books.options.heartbeat_seconds,
        find_idle=partial(_idle, books),
        find_busy=partial(_busy, books),
        splittable=partial(_splittable, books),
        cut_near=partial(cut_near, books),
        hold=HOLD,
        claims_ahead=books.options.claim_ahead,
        profiles={
            name: (worker.fps_cap, worker.overhead_seconds)
            for name, worker in books.workers.items()
            if known and worker.fps_cap is not None
        },
    )
    return turn.situation


def _idle(books: Books) -> tuple[str, ...]:
    return tuple(n for n, w in books.workers.items() if not w.claims and books.available(n))


def _busy(books: Books) -> tuple[Busy, ...]:
    active: list[Busy] = []
    ahead: list[Busy] = []
    for chunk in books.chunks.values():
        holders = len(chunk.claims)
        for claim in chunk.claims.values():
            # Without a second holder, what its own worker is known to be at is where it is.
            seen = chunk.next if holders == 1 else books.next_frame(claim, skipping=True)
            if seen < claim.position:
                seen = claim.position
            busy = Busy(
                claim.text,
                claim.worker,
                chunk.number,
                claim.start,
                claim.stop,
                chunk.next,
                seen if seen < claim.stop else claim.stop,
                claim.begun or claim.rendered > 0,
                claim.ahead,
                claim.granted_at,
                claim.renewed_at,
                holders,
            )
            (ahead if claim.ahead else active).append(busy)
    return (*active, *ahead)


def _splittable(books: Books, busy: Busy) -> int:
    return max(books.splittable(claim) for claim in books.chunks[busy.chunk].claims.values())


def cut_near(books: Books, busy: Busy, at: float) -> int | None:
    """The cut nearest to ``at`` at which the claim's chunk may be split; None if there is none."""
    chunk = books.chunks[busy.chunk]
    starts = [held.start for held in chunk.claims.values()]
    return nearest_cut(books.grid, chunk.start, chunk.stop, starts, _splittable(books, busy), at)
