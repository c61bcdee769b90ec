"""How claims end and where their frames go. Every way a claim can end passes through ``end_claim``, so that
no frame is lost on the way: what was credited stays, the rest stays with another holder or reopens."""

from __future__ import annotations

from farm import events as ev
from farm import messages as msg
from farm.relay.books import OPEN, Books
from farm.relay.ledger import ChunkRecord, ClaimRecord
from farm.relay.turn import Turn


def end_claim(turn: Turn, claim: ClaimRecord, how: ev.ClaimEnd, reason: str = "") -> None:
    """End one live claim. If it was its chunk's last, the rest reopens at the head of the queue."""
    books = turn.books
    chunk = books.chunks[claim.chunk]
    last_holder = len(chunk.claims) == 1
    done = not last_holder or chunk.next >= chunk.stop
    rest = [] if done else list(books.uncredited_ranges(chunk.next, chunk.stop))
    wasted = claim.rendered - claim.credited - claim.superseded
    turn.emit(
        ev.ClaimEnded(
            token=claim.text, worker=claim.worker, how=how, reason=reason, wasted_frames=max(0, wasted)
        )
    )
    for start, stop in rest:
        turn.emit(ev.RangeReopened(start=start, stop=stop, chunk=chunk.number))
    if last_holder and not rest:
        turn.emit(ev.ChunkCompleted(chunk=chunk.number))
    # Who lapsed is silent: it hears *not claimant* when it speaks again, and its refusal is on record.
    if how not in ("completed", "failed", "released", "worker left", "lapsed"):
        turn.tell(claim.worker, claim.text)


def end_finished_claims(turn: Turn, chunk: ChunkRecord, delivered: ClaimRecord) -> None:
    """After a credit: the claims on that chunk with nothing left to deliver are over; the one that delivered
    is completed, another one is superseded, which is no fault of its worker."""
    books = turn.books
    for claim in list(chunk.claims.values()):
        if chunk.next < claim.stop and books.next_frame(claim, True) < claim.stop:
            continue
        if claim is delivered:
            end_claim(turn, claim, "completed")
        else:
            end_claim(turn, claim, "superseded", f"{delivered.worker} delivered first")


def split_chunk(turn: Turn, chunk: ChunkRecord, at: int, why: str) -> None:
    """End a chunk at the cut ``at``; its rest is open again, and its holders hear of their new stop. At its
    start, where nothing was begun, the whole claim is taken back, without fault."""
    if at <= chunk.start:
        for claim in list(chunk.claims.values()):
            end_claim(turn, claim, "revoked", why)
        return
    turn.emit(ev.ChunkSplit(chunk=chunk.number, at=at, why=why))
    for claim in list(chunk.claims.values()):
        if turn.books.next_frame(claim, skipping=True) >= claim.stop:
            end_claim(turn, claim, "completed", "its rest was split off")
        else:
            turn.tell(claim.worker, claim.text)


def fail_part(turn: Turn, claim: ClaimRecord, part: int, kind: str, message: str) -> None:
    """Count a try against a part; the claim ends separately."""
    tries = len(turn.books.tries.get(part, ())) + 1
    turn.emit(
        ev.PartFailed(
            part=part, token=claim.text, worker=claim.worker, kind=kind, message=message, tries=tries
        )
    )


def block_if_failing(turn: Turn, worker_name: str) -> None:
    """A worker that failed several parts in a row gets nothing for a while; never the last one that could
    work, or the job would stand still."""
    books = turn.books
    worker = books.workers.get(worker_name)
    others = books.expected_count(turn.now) > 1
    limit = books.options.block_after_failures
    if worker is None or worker.blocked_until is not None or worker.failures_in_row < limit or not others:
        return
    until = turn.now + books.options.block_seconds
    turn.emit(ev.WorkerBlocked(worker=worker_name, failures=worker.failures_in_row, until=until))


def set_aside_exhausted(turn: Turn) -> None:
    """Set aside the open parts that were tried often enough, by at least two workers where there are two. A
    blocked worker that waits is one of them: it is forgiven when nobody else is left to try a part."""
    books = turn.books
    for part in list(books.troubled):
        workers = books.tries[part]
        if books.parts[part] != OPEN or len(workers) < books.options.max_tries:
            continue
        others = [
            name for name in books.workers if name not in workers and not books.disputes.bars(name, part)
        ]
        resting = next((name for name in books.blocked if name in others and name in books.parked), None)
        sure = any(books.expected(name, turn.now) for name in others)
        if len(set(workers)) >= 2 or not (sure or resting):
            reason = f"failed {len(workers)} times, by {', '.join(sorted(set(workers)))}"
            turn.emit(ev.PartSetAside(part=part, tries=len(workers), reason=reason))
        elif resting is not None and not sure:
            turn.emit(ev.WorkerForgiven(worker=resting))


def void_all(turn: Turn, reason: str) -> None:
    """End every claim and take back every credit."""
    books = turn.books
    for claim in list(books.leases.values()):
        end_claim(turn, claim, "voided", reason)
    for part in sorted(books.credits, reverse=True):
        turn.emit(ev.PartVoided(part=part, reason=reason))


def check_seam(turn: Turn, part: int) -> None:
    """Compare a freshly credited part with its credited neighbours: the frame one reader saw after its last
    one must be the first frame of the next part (media.md, seam check). A mismatch turns the job to linear
    reading and voids what the wrong reading had credited."""
    books = turn.books
    if books.linear:
        return
    for left in (part - 1, part):
        a, b = books.credits.get(left), books.credits.get(left + 1)
        if a is None or b is None or a.next_frame_crc is None or b.first_frame_crc is None:
            continue
        if a.next_frame_crc != b.first_frame_crc:
            turn.emit(ev.SeamMismatched(part=left, next_part=left + 1))
            void_all(turn, "the source does not seek reliably")
            return


def holder_of(books: Books, start: int, stop: int) -> str | None:
    """Who has a live claim on the first of the frames ``[start, stop)`` that are in flight now, for the
    refusal's story."""
    chunks = [chunk for chunk in books.chunks.values() if chunk.next < stop and start < chunk.stop]
    if not chunks:
        return None
    return next(iter(min(chunks, key=lambda chunk: chunk.start).claims.values())).worker


def finish_work(turn: Turn) -> None:
    """Nothing is open or in flight any more: say so, once."""
    books = turn.books
    if books.finished or not books.grid.frames or not books.epoch:
        return
    started, ended = books.first_grant_at, books.last_credit_at
    makespan = ended - started if started is not None and ended is not None else 0.0
    makespan -= books.paused_seconds
    turn.emit(
        ev.WorkFinished(
            credited_frames=books.credited_frames,
            set_aside_frames=books.set_aside_frames,
            makespan_seconds=max(0.0, makespan),
        )
    )
    dismiss_parked(turn, "all work is done")


def dismiss_parked(turn: Turn, why: str) -> None:
    """Who waits for work need not wait any longer."""
    for worker in turn.books.parked:
        turn.push(worker, msg.Finished(why=why))
