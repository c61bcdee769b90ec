"""What an idle worker gets: open work by the policy, else a duplicate by the tail rule, else it is parked."""

from __future__ import annotations

from farm import events as ev
from farm import messages as msg
from farm.frames import ClaimToken
from farm.policies.base import Ask, Policy
from farm.policies.registry import TailRule
from farm.relay.books import Books
from farm.relay.ledger import ChunkRecord
from farm.relay.turn import Turn


def grant(turn: Turn, worker: str, policy: Policy, tail: TailRule) -> msg.Granted | msg.Parked | msg.Finished:
    """Answer an idle worker's claim."""
    books = turn.books
    if books.draining:
        return msg.Finished(why="the run is stopping")
    if not books.work_left:
        return msg.Finished(why="all work is done")
    granted = try_grant(turn, worker, policy, tail)
    if granted is not None:
        return granted
    why = _why_nothing(books, worker)
    if worker not in books.parked:
        turn.emit(ev.WorkerParked(worker=worker, why=why))
    return msg.Parked(why=why)


def try_grant(turn: Turn, worker: str, policy: Policy, tail: TailRule) -> msg.Granted | None:
    books = turn.books
    if books.paused_at is not None or books.workers[worker].blocked_until is not None:
        return None
    found = _open_range(turn, worker)
    if found is not None:
        return _grant_open(turn, worker, policy, *found)
    if tail.kind == "duplicate-oldest":
        chunk = _oldest_duplicable(turn, worker)
        if chunk is not None:
            return _grant_duplicate(turn, worker, chunk, tail)
    return None


def grant_part(turn: Turn, worker: str, part: int) -> msg.Granted | None:
    """A claim on one offered part, if it is still wanted: open, or in flight with room for a holder."""
    books = turn.books
    start, stop = books.grid.start(part), books.grid.stop(part)
    why = f"offered part {part} from its spool"
    chunk = books.chunk_at(start)
    if chunk is not None:
        if chunk.number not in books.duplicable or worker in chunk.workers:
            return None
        token = ClaimToken(chunk.number, chunk.attempts + 1, books.epoch)
        return _emit_grant(turn, worker, token, start, stop, why, duplicate=True)
    token = ClaimToken(books.chunk_count, 1, books.epoch)
    return _emit_grant(turn, worker, token, start, stop, why)


def anything_to_give(books: Books, tail: TailRule) -> bool:
    """Whether some worker could be given something now; cheap, so that nobody is tried in vain."""
    if books.paused_at is not None or books.draining:
        return False
    return books.open.frames > 0 or (tail.kind != "none" and _tail_open(books))


def _grant_open(turn: Turn, worker: str, policy: Policy, start: int, limit: int) -> msg.Granted:
    books = turn.books
    ask = Ask(
        worker=worker,
        workers=max(1, books.available_count + (worker in books.silent)),  # it asks, so it is here
        total_frames=books.grid.frames,
        open_frames=books.open.frames,
        now=turn.now,
    )
    size = policy.size(ask)
    stop = books.grid.stop_for(start, size.frames, limit)
    token = ClaimToken(books.chunk_count, 1, books.epoch)
    return _emit_grant(turn, worker, token, start, stop, size.why)


def _grant_duplicate(turn: Turn, worker: str, chunk: ChunkRecord, tail: TailRule) -> msg.Granted:
    token = ClaimToken(chunk.number, chunk.attempts + 1, turn.books.epoch)
    start = chunk.next if tail.from_ == "frontier" else chunk.start
    holders = ", ".join(claim.worker for claim in chunk.claims.values())
    why = f"nothing is open; c{chunk.number} is the oldest chunk in flight, held by {holders}"
    return _emit_grant(turn, worker, token, start, chunk.stop, why, duplicate=True)


def _emit_grant(
    turn: Turn, worker: str, token: ClaimToken, start: int, stop: int, why: str, *, duplicate: bool = False
) -> msg.Granted:
    books = turn.books
    reopened = not duplicate and bool(books.touched[books.grid.part_at(start)])
    lease_seconds = books.options.lease_seconds
    text = str(token)
    turn.emit(
        ev.ClaimGranted(
            token=text,
            worker=worker,
            start=start,
            stop=stop,
            lease_seconds=lease_seconds,
            duplicate=duplicate,
            reopened=reopened,
            why=why,
        )
    )
    return msg.Granted(
        token=text,
        start=start,
        stop=stop,
        next=turn.next_frame(text),
        lease_seconds=lease_seconds,
        linear=books.linear,
    )


def _open_range(turn: Turn, worker: str) -> tuple[int, int] | None:
    """The first open range for this worker, as (start, limit). Parts it has failed are left to others, as
    long as there is another who is sure to take them."""
    books = turn.books
    shunned = _shunned(turn, worker)
    for start, stop in books.open:
        for part in shunned:
            part_start = books.grid.start(part)
            if part_start == start:
                start = books.grid.stop(part)
            elif start < part_start < stop:
                stop = part_start
        if start < stop:
            return start, stop
    return None


def _shunned(turn: Turn, worker: str) -> list[int]:
    return sorted(part for part in turn.books.troubled if _left_to_others(turn, worker, part))


def _left_to_others(turn: Turn, worker: str, part: int) -> bool:
    books = turn.books
    failed = books.tries[part]
    if worker not in failed:
        return False
    return any(name not in failed and books.expected(name, turn.now) for name in books.workers)


def _tail_open(books: Books) -> bool:
    limit = books.options.max_outstanding
    limit = 2 * max(1, books.available_count) if limit is None else limit
    return books.open.frames == 0 and bool(books.duplicable) and len(books.chunks) <= limit


def _oldest_duplicable(turn: Turn, worker: str) -> ChunkRecord | None:
    """Never one that this worker has held before, nor one with a part that it has to leave to others."""
    books = turn.books
    if not _tail_open(books):
        return None
    shunned = [books.grid.start(part) for part in _shunned(turn, worker)]
    for chunk in books.duplicable.values():
        if worker not in chunk.workers and not any(chunk.next <= part < chunk.stop for part in shunned):
            return chunk
    return None


def _why_nothing(books: Books, worker: str) -> str:
    if books.paused_at is not None:
        return "the job is paused"
    if books.workers[worker].blocked_until is not None:
        return "blocked after failures in a row"
    if books.open.frames:
        return "what is open is left to workers that have not failed it"
    return "nothing is open and no chunk may be duplicated"
