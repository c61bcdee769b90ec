"""Recount everything the books say and compare: the invariants of docs/scheduling.md as code. Expensive (it
walks all parts); on in tests, and on demand in production."""

from __future__ import annotations

from itertools import pairwise

from farm.frames import parse_token
from farm.relay.books import CREDITED, DEFERRED, HOLD, IN_FLIGHT, OPEN, SET_ASIDE, Books
from farm.relay.disputes import maker
from farm.relay.ledger import WANTED


class BooksWrong(AssertionError):
    """An invariant of the books does not hold; the message says which and how."""


def validate(books: Books) -> None:
    """Raises BooksWrong at the first invariant that doesn't hold."""
    _ranges(books)
    _counters(books)
    _chunks(books)
    _claims(books)
    _workers(books)
    _disputes(books)


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise BooksWrong(message)


def _ranges(books: Books) -> None:
    """Every part is in exactly one place, and open neighbours are joined."""
    grid = books.grid
    open_parts: set[int] = set()
    frames = 0
    ranges = sorted(books.open)
    for start, stop in ranges:
        parts = set(grid.parts_in(start, stop))
        _check(bool(parts) and not parts & open_parts, f"open range [{start}, {stop}) is empty or overlaps")
        open_parts |= parts
        frames += stop - start
    for (_, stop), (start, _) in pairwise(ranges):
        _check(stop < start, f"open neighbours at frame {start} are not joined")
    _check(frames == books.open.frames, f"{books.open.frames} open frames counted, {frames} found")
    marked = {part for part, place in enumerate(books.parts) if place == OPEN}
    _check(marked == open_parts, f"parts marked open and parts in the queue differ: {marked ^ open_parts}")


def _counters(books: Books) -> None:
    grid = books.grid
    totals = [0, 0, 0, 0, 0]
    for part, place in enumerate(books.parts):
        totals[place] += grid.size(part)
    _check(totals[IN_FLIGHT] == books.in_flight_frames, f"in flight: {books.in_flight_frames}, {totals}")
    _check(totals[CREDITED] == books.credited_frames, f"credited: {books.credited_frames}, {totals}")
    _check(totals[SET_ASIDE] == books.set_aside_frames, f"set aside: {books.set_aside_frames}, {totals}")
    _check(totals[DEFERRED] == books.deferred_frames, f"deferred: {books.deferred_frames}, {totals}")
    _check(sum(totals) == grid.frames, "open + in flight + credited + set aside + deferred is not N")
    outside = {part for part, place in enumerate(books.parts) if place in (OPEN, IN_FLIGHT)}
    _check(books.sample is None or outside <= books.sample, "a part outside the sample is given out")
    inside = {part for part, place in enumerate(books.parts) if place == DEFERRED}
    barred = inside if books.sample is None else books.sample
    _check(inside.isdisjoint(barred), "a part of the sample waits for its end")
    credited = {part for part, place in enumerate(books.parts) if place == CREDITED}
    _check(credited == books.credits.keys(), "credits and credited parts differ")
    troubled = {part for part in books.tries if books.parts[part] in (OPEN, IN_FLIGHT, DEFERRED)}
    _check(troubled == books.troubled.keys(), "parts with tries that can be tried again differ")


def _chunks(books: Books) -> None:
    """Chunks are disjoint and hold exactly the parts in flight; each has 1 to HOLD live claims."""
    grid = books.grid
    in_flight: set[int] = set()
    covered: set[int] = set()
    for number, chunk in books.chunks.items():
        name = f"c{number}"
        _check(number == chunk.number < books.chunk_count, f"{name} is filed under another number")
        _check(1 <= len(chunk.claims) <= HOLD, f"{name} has {len(chunk.claims)} live claims")
        workers = [claim.worker for claim in chunk.claims.values()]
        _check(len(set(workers)) == len(workers), f"a worker holds {name} twice: {workers}")
        parts = set(grid.parts_in(chunk.start, chunk.stop))
        _check(not parts & covered, f"{name} overlaps another chunk in flight")
        covered |= parts
        mine = {part for part in parts if books.parts[part] == IN_FLIGHT}
        _check(
            mine == {part for part in parts if books.parts[part] != CREDITED}, f"{name} has parts elsewhere"
        )
        _check(len(mine) == chunk.uncredited > 0, f"{name}: {chunk.uncredited} uncredited, {len(mine)} found")
        _check(chunk.next == grid.start(min(mine)), f"{name} begins at {chunk.next}, not at its first part")
        _check(
            (number in books.duplicable) == (len(chunk.claims) < HOLD),
            f"{name} with {len(chunk.claims)} holders is wrong in the list of what may be duplicated",
        )
        in_flight |= mine
    marked = {part for part, place in enumerate(books.parts) if place == IN_FLIGHT}
    _check(marked == in_flight, f"parts marked in flight without a chunk: {marked ^ in_flight}")
    _check(books.duplicable.keys() <= books.chunks.keys(), "a chunk that is over may be duplicated")
    _check(books.wanted.keys() <= books.duplicable.keys(), "a copy is wanted where there is no room")
    for part in books.taken_from:
        _check(books.parts[part] in WANTED, f"part {part} is left to others and is not wanted any more")


def _claims(books: Books) -> None:
    """Live claims are filed alike under their chunk, their worker and the leases, in renewal order."""
    by_chunk = {text for chunk in books.chunks.values() for text in chunk.claims}
    by_worker = {text for worker in books.workers.values() for text in worker.claims}
    _check(by_chunk == books.leases.keys(), "claims of chunks and leases differ")
    _check(by_worker == books.leases.keys(), "claims of workers and leases differ")
    renewed = [claim.renewed_at for claim in books.leases.values()]
    _check(renewed == sorted(renewed), "leases are not in renewal order")
    for text, claim in books.leases.items():
        token = parse_token(text)
        _check(text == claim.text and token.chunk == claim.chunk, f"{text} is filed under another name")
        _check(token.epoch == books.epoch, f"{text} is live in epoch {books.epoch}")
        chunk = books.chunk_of(claim)
        _check(chunk.start <= claim.start < claim.stop <= chunk.stop, f"{text} leaves its chunk")
        _check(books.next_frame(claim, skipping=True) < claim.stop, f"{text} has nothing left and is live")
        _check(text not in books.ended, f"{text} is live and over")


def _disputes(books: Books) -> None:
    """What is in dispute is not credited, and nothing by a worker that is not trusted is."""
    disputes = books.disputes
    _check(not disputes.open.keys() & books.credits.keys(), "a part in dispute is credited")
    makers = {maker(credit) for credit in books.credits.values()}
    _check(not makers & disputes.distrusted.keys(), "a part by a worker that is not trusted is credited")
    for part, dispute in disputes.open.items():
        start = books.grid.start(part)
        chunk = books.chunk_at(start)
        claims = () if chunk is None else chunk.claims.values()
        holders = [claim.worker for claim in claims if claim.start <= start < claim.stop]
        _check(not any(map(dispute.has, holders)), f"part {part} is with its makers")


def _workers(books: Books) -> None:
    for name, worker in books.workers.items():
        ahead = [claim.ahead for claim in worker.claims.values()]
        _check(ahead in ([], [False], [False, True]), f"{name} holds claims, ahead or not: {ahead}")
        _check(worker.parked == (name in books.parked), f"{name} is parked in one book only")
        _check(not (worker.parked and worker.claims), f"{name} is parked and holds a claim")
        idle = not worker.claims and not worker.parked
        _check(idle == (name in books.idle), f"{name} is idle in one book only")
        _check((worker.blocked_until is not None) == (name in books.blocked), f"{name}: blocked in one book")
    for names in (books.parked, books.blocked, books.silent, books.idle, books.dismissed):
        _check(names.keys() <= books.workers.keys(), "a worker that left is still parked, blocked or silent")
