"""What an idle worker gets: open work by the policy, else a duplicate by the tail rule, else it is parked."""

from __future__ import annotations

from collections.abc import Iterable

from farm import events as ev
from farm import messages as msg
from farm.frames import ClaimToken
from farm.policies.base import Ask, Policy
from farm.policies.fair import Fair
from farm.policies.registry import TailRule
from farm.policies.tails import Duplicate, Split, late, split
from farm.relay import endings
from farm.relay.books import Books
from farm.relay.cuts import shared_stop
from farm.relay.eligible import may_copy, oldest_duplicable, open_range, shunned
from farm.relay.ledger import ChunkRecord
from farm.relay.situation import cut_near, situation
from farm.relay.turn import Turn


def grant(turn: Turn, worker: str, policy: Policy, tail: TailRule) -> msg.Granted | msg.Parked | msg.Finished:
    """Answer an idle worker's claim."""
    books = turn.books
    if books.draining:
        return msg.Finished(why="the run is stopping")
    if not (books.open.frames or books.chunks):
        return msg.Finished(why="all work is done")
    if worker in books.disputes.distrusted:
        return msg.Finished(why=f"its copy of part {books.disputes.distrusted[worker]} was the odd one")
    if worker in books.dismissed:
        return msg.Finished(why="it was sent away")
    granted = try_grant(turn, worker, policy, tail)
    if granted is not None:
        return granted
    why = _why_nothing(turn, worker)
    if worker not in books.parked:
        turn.emit(ev.WorkerParked(worker=worker, why=why))
    return msg.Parked(why=why)


def try_grant(turn: Turn, worker: str, policy: Policy, tail: TailRule) -> msg.Granted | None:
    books = turn.books
    if books.paused_at is not None or books.held or books.workers[worker].blocked_until is not None:
        return None
    if worker in books.disputes.distrusted or worker in books.dismissed:
        return None  # it was told to leave
    if books.wanted:
        for wanted in (books.chunks[number] for number in books.wanted):
            if may_copy(turn, worker, wanted):
                return _grant_duplicate(turn, worker, wanted, tail, "the operator wants a copy")
    if not books.open.frames and tail.kind != "split":
        _take_ahead(turn, worker)
    found = open_range(turn, worker)
    if found is not None:
        return _grant_open(turn, worker, policy, *found)
    if books.open.frames or not _tail_open(books, tail):
        return None
    if tail.kind == "duplicate-oldest":
        chunk = oldest_duplicable(turn, worker)
        return None if chunk is None else _grant_duplicate(turn, worker, chunk, tail)
    return _by_rule(turn, worker, policy, tail)


def _by_rule(turn: Turn, worker: str, policy: Policy, tail: TailRule) -> msg.Granted | None:
    """What a tail rule that looks at the whole situation gives."""
    rule = {"late": late, "split": split}.get(tail.kind)
    decision = None if rule is None else rule(worker, situation(turn, policy))
    if isinstance(decision, Split):
        return _grant_split(turn, worker, decision)
    if isinstance(decision, Duplicate):
        chunk = turn.books.chunks[decision.claim.chunk]
        if may_copy(turn, worker, chunk):
            return _grant_duplicate(turn, worker, chunk, tail, decision.why)
    return None


def grant_ahead(turn: Turn, worker: str, policy: Policy, tail: TailRule) -> msg.Granted | msg.Parked:
    """A second claim for a worker whose first one ends soon: of open work only, and only while nobody idles.
    Parked here means no more than "not now": the worker asks again when it is idle."""
    books = turn.books
    idlers = books.parked and not isinstance(
        policy, Fair
    )  # with fair, who is parked with work open declined it
    usable = books.paused_at is None and not books.held and not books.draining and not idlers
    if usable and books.workers[worker].blocked_until is None and worker not in books.dismissed:
        found = open_range(turn, worker)
        granted = None if found is None else _grant_open(turn, worker, policy, *found)
        if granted is None and not books.open.frames and tail.kind == "split" and not books.parked:
            granted = _by_rule(turn, worker, policy, tail)
        if granted is not None:
            return granted
    return msg.Parked(why="nothing to hold ahead")


def grant_part(turn: Turn, worker: str, part: int) -> msg.Granted | None:
    """A claim on one offered part, if it is still wanted: open, or in flight with room for a holder."""
    books = turn.books
    start, stop = books.grid.start(part), books.grid.stop(part)
    why = f"offered part {part} from its spool"
    chunk = books.chunk_at(start)
    if books.disputes.bars(worker, part):
        return None
    if chunk is not None:
        if chunk.number not in books.duplicable or worker in chunk.workers:
            return None
        token = ClaimToken(chunk.number, chunk.attempts + 1, books.epoch)
        return _emit_grant(turn, worker, token, start, stop, why, duplicate=True)
    token = ClaimToken(books.chunk_count, 1, books.epoch)
    return _emit_grant(turn, worker, token, start, stop, why)


def anything_to_give(books: Books, tail: TailRule) -> bool:
    """Whether some worker could be given something now; cheap, so that nobody is tried in vain."""
    if books.paused_at is not None or books.held or books.draining:
        return False
    return books.open.frames > 0 or bool(books.ahead or books.wanted) or _tail_open(books, tail)


def trim_claims(turn: Turn, tokens: Iterable[str], policy: Policy) -> None:
    """Shorten claims that a report shows to be far too long for their worker; the rest is open again."""
    books = turn.books
    if not isinstance(policy, Fair):
        return
    for token in tokens:
        claim = books.leases[token]
        rate = books.speeds.of(claim.worker).rate
        if rate is None or claim.ahead or not policy.too_long(claim.stop - claim.position, rate):
            continue
        busy = next(b for b in situation(turn, policy).busy if b.token == token)
        at = policy.trim(busy, situation(turn, policy))
        cut = None if at is None else cut_near(books, busy, at)
        if cut is not None:
            chunk = books.chunk_of(claim)
            endings.split_chunk(turn, chunk, cut, f"{claim.worker} would take too long for all of it")


def _grant_open(turn: Turn, worker: str, policy: Policy, start: int, limit: int) -> msg.Granted | None:
    books = turn.books
    if isinstance(policy, Fair):
        stop: int | None
        shared = policy.share(worker, situation(turn, policy))
        if shared is None:
            return None
        stop = shared_stop(books.grid, start, limit, shared)
        why = shared.why
    else:
        ask = Ask(
            worker=worker,
            workers=max(1, books.available_count + (worker in books.silent)),  # it asks, so it is here
            total_frames=books.target_frames,
            open_frames=books.open.frames,
            now=turn.now,
            grants=books.chunk_count,
            speeds=books.speeds,
            caps=books.caps,
        )
        frames, why = policy.size(ask)
        stop = books.grid.stop_for(start, frames, limit)
    if stop is None:
        return None
    token = ClaimToken(books.chunk_count, 1, books.epoch)
    return _emit_grant(turn, worker, token, start, stop, why)


def _take_ahead(turn: Turn, worker: str) -> None:
    """Somebody idles and nothing is open: what is held ahead and was not begun is taken first."""
    for claim in turn.books.ahead.values():
        if claim.worker != worker:
            endings.end_claim(turn, claim, "revoked", f"{worker} has nothing to do")
            return


def _grant_split(turn: Turn, worker: str, decision: Split) -> msg.Granted | None:
    books = turn.books
    chunk, cut = books.chunks[decision.claim.chunk], decision.cut
    if any(cut <= books.grid.start(part) < chunk.stop for part in shunned(turn, worker)):
        return None
    stop = chunk.stop
    endings.split_chunk(turn, chunk, cut, decision.why)
    token = ClaimToken(books.chunk_count, 1, books.epoch)
    return _emit_grant(turn, worker, token, cut, stop, decision.why)


def _grant_duplicate(
    turn: Turn, worker: str, chunk: ChunkRecord, tail: TailRule, why: str = ""
) -> msg.Granted:
    token = ClaimToken(chunk.number, chunk.attempts + 1, turn.books.epoch)
    start = chunk.next if tail.from_ == "frontier" else chunk.start
    holders = ", ".join(claim.worker for claim in chunk.claims.values())
    why = why or f"nothing is open; c{chunk.number} is the oldest chunk in flight, held by {holders}"
    return _emit_grant(turn, worker, token, start, chunk.stop, why, duplicate=True)


def _emit_grant(
    turn: Turn, worker: str, token: ClaimToken, start: int, stop: int, why: str, duplicate: bool = False
) -> msg.Granted:
    books = turn.books
    reopened = not duplicate and books.touched[books.grid.part_at(start)] == 1
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
        next=turn.next_frame(text) if duplicate else start,
        lease_seconds=lease_seconds,
        linear=books.linear,
    )


def _tail_open(books: Books, tail: TailRule) -> bool:
    """Whether the tail rule may act at all: nothing is open, and few enough chunks are in flight. Splitting
    has no use for that limit: it only moves work."""
    if tail.kind == "none" or books.open.frames or not books.chunks:
        return False
    if tail.kind == "split":
        return True
    limit = books.options.max_outstanding
    limit = 2 * max(1, books.available_count) if limit is None else limit
    return bool(books.duplicable) and len(books.chunks) <= limit


def _why_nothing(turn: Turn, worker: str) -> str:
    books = turn.books
    if books.paused_at is not None:
        return "the job is paused"
    if books.held:
        return books.held
    if books.workers[worker].blocked_until is not None:
        return "blocked after failures in a row"
    if open_range(turn, worker) is not None:
        return "others are expected to be done with what is open before this worker would be"
    if books.open.frames:
        if any(worker in taken for taken in books.taken_from.values()):
            return "what is open was taken from this worker, and is left to others"
        later = ", or is tried again after a while" if books.retry_at else ""
        return f"what is open is left to workers that have not failed it{later}"
    return "nothing is open and no chunk may be duplicated"
