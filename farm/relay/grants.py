"""What an idle worker gets: open work by the policy, else a duplicate by the tail rule, else it is parked."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from farm import events as ev
from farm import messages as msg
from farm.frames import ClaimToken, PartGrid
from farm.policies.base import Ask, Policy
from farm.policies.fair import Fair, Share
from farm.policies.registry import TailRule
from farm.policies.situation import Busy, Situation
from farm.policies.tails import Duplicate, Split, late, split
from farm.relay import endings
from farm.relay.books import HOLD, Books
from farm.relay.ledger import ChunkRecord
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
    found = _open_range(turn, worker)
    if found is not None:
        return _grant_open(turn, worker, policy, *found)
    if books.open.frames or not _tail_open(books, tail):
        return None
    if tail.kind == "duplicate-oldest":
        chunk = _oldest_duplicable(turn, worker)
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
        found = _open_range(turn, worker)
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


def may_take(turn: Turn, worker: str) -> bool:
    """Whether what is open, if anything is, is not all left to others."""
    books = turn.books
    left = books.troubled or books.disputes.open or books.taken_from
    return not (left and books.open.frames) or _open_range(turn, worker) is not None


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
        cut = None if at is None else _cut_near(books, busy, at)
        if cut is not None:
            chunk = books.chunk_of(claim)
            endings.split_chunk(turn, chunk, cut, f"{claim.worker} would take too long for all of it")


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
        cut_near=partial(_cut_near, books),
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


def shared_stop(grid: PartGrid, start: int, limit: int, shared: Share) -> int | None:
    """The cut nearest to a fair share, or the one before where that would make this worker the last; None if
    even one part would."""
    stop = grid.stop_for(start, shared.frames, limit)
    if stop - start <= shared.most:
        return stop
    before = grid.start(grid.part_at(stop) - 1)
    return before if start < before else None


def _take_ahead(turn: Turn, worker: str) -> None:
    """Somebody idles and nothing is open: what is held ahead and was not begun is taken first."""
    for claim in turn.books.ahead.values():
        if claim.worker != worker:
            endings.end_claim(turn, claim, "revoked", f"{worker} has nothing to do")
            return


def _grant_split(turn: Turn, worker: str, decision: Split) -> msg.Granted | None:
    books = turn.books
    chunk, cut = books.chunks[decision.claim.chunk], decision.cut
    if any(cut <= books.grid.start(part) < chunk.stop for part in _shunned(turn, worker)):
        return None
    stop = chunk.stop
    endings.split_chunk(turn, chunk, cut, decision.why)
    token = ClaimToken(books.chunk_count, 1, books.epoch)
    return _emit_grant(turn, worker, token, cut, stop, decision.why)


def _splittable(books: Books, busy: Busy) -> int:
    return max(books.splittable(claim) for claim in books.chunks[busy.chunk].claims.values())


def _cut_near(books: Books, busy: Busy, at: float) -> int | None:
    """The cut nearest to ``at`` at which the claim's chunk may be split; None if there is none."""
    chunk = books.chunks[busy.chunk]
    starts = [held.start for held in chunk.claims.values()]
    return nearest_cut(books.grid, chunk.start, chunk.stop, starts, _splittable(books, busy), at)


def nearest_cut(
    grid: PartGrid, start: int, stop: int, starts: Iterable[int], first: int, at: float
) -> int | None:
    """The cut nearest to ``at``, from ``first`` on, at which the chunk ``[start, stop)`` may be split, the
    claims on which begin at ``starts``; None if there is none."""
    if any(first <= held > start for held in starts):
        return None  # a copy that begins further on would be left with nothing
    part = grid.part_at(min(max(int(at), first), stop - 1))
    low, high = grid.start(part), grid.stop(part)
    cut = low if at - low < high - at and low >= first else high
    if cut >= stop:
        cut = low
    return cut if first <= cut < stop and cut >= start else None


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


def _open_range(turn: Turn, worker: str) -> tuple[int, int] | None:
    """The first open range for this worker, as (start, limit). Parts it has failed, or that an operator took
    from it, are left to others, as long as there is another who is sure to take them; parts in dispute are
    left to a third worker."""
    books = turn.books
    if not (books.troubled or books.disputes.open or books.taken_from):
        return next(iter(books.open), None)
    shunned = sorted({*_shunned(turn, worker), *_resting(turn)})
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
    books = turn.books
    barred = books.disputes.barred(worker)
    touchy = (*books.troubled, *books.taken_from)
    return sorted({*barred, *(part for part in touchy if _left_to_others(turn, worker, part))})


def _resting(turn: Turn) -> list[int]:
    """Parts that failed and are not to be tried again yet."""
    return [part for part, at in turn.books.retry_at.items() if turn.now < at]


def _left_to_others(turn: Turn, worker: str, part: int) -> bool:
    books = turn.books
    failed = (*books.tries.get(part, ()), *books.taken_from.get(part, ()))
    if worker not in failed:
        return False
    return any(
        name not in failed and books.expected(name, turn.now) and not books.disputes.bars(name, part)
        for name in books.workers
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


def _oldest_duplicable(turn: Turn, worker: str) -> ChunkRecord | None:
    """Never one that this worker has held before, nor one with a part that it has to leave to others."""
    for chunk in turn.books.duplicable.values():
        if may_copy(turn, worker, chunk):
            return chunk
    return None


def may_copy(turn: Turn, worker: str, chunk: ChunkRecord) -> bool:
    """Whether a worker may have a second claim on a chunk that has room for one."""
    return worker not in chunk.workers and not _shuns(turn, worker, chunk)


def _shuns(turn: Turn, worker: str, chunk: ChunkRecord) -> bool:
    grid = turn.books.grid
    return any(chunk.next <= grid.start(part) < chunk.stop for part in _shunned(turn, worker))


def _why_nothing(turn: Turn, worker: str) -> str:
    books = turn.books
    if books.paused_at is not None:
        return "the job is paused"
    if books.held:
        return books.held
    if books.workers[worker].blocked_until is not None:
        return "blocked after failures in a row"
    if _open_range(turn, worker) is not None:
        return "others are expected to be done with what is open before this worker would be"
    if books.open.frames:
        if any(worker in taken for taken in books.taken_from.values()):
            return "what is open was taken from this worker, and is left to others"
        later = ", or is tried again after a while" if books.retry_at else ""
        return f"what is open is left to workers that have not failed it{later}"
    return "nothing is open and no chunk may be duplicated"
