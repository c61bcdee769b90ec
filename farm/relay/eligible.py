"""Who may have what: the parts and chunks that a worker is given, and those that are left to others.

Rules of this file:
- a part that a worker failed, or that an operator took from it, is left to others for as long as there is one
  who is sure to take it; never for ever, or the job would not end;
- no worker holds the same chunk twice, nor makes the copy that decides over its own;
- what is asked for at every grant costs nothing while no part is in trouble.
"""

from __future__ import annotations

from farm.relay.ledger import ChunkRecord
from farm.relay.turn import Turn


def open_range(turn: Turn, worker: str) -> tuple[int, int] | None:
    """The first open range for this worker, as (start, limit). Parts it has failed, or that an operator took
    from it, are left to others, as long as there is another who is sure to take them; parts in dispute are
    left to a third worker."""
    books = turn.books
    if not (books.troubled or books.disputes.open or books.taken_from):
        return next(iter(books.open), None)
    others = sorted({*shunned(turn, worker), *_resting(turn)})
    for start, stop in books.open:
        for part in others:
            part_start = books.grid.start(part)
            if part_start == start:
                start = books.grid.stop(part)
            elif start < part_start < stop:
                stop = part_start
        if start < stop:
            return start, stop
    return None


def may_take(turn: Turn, worker: str) -> bool:
    """Whether what is open, if anything is, is not all left to others."""
    books = turn.books
    left = books.troubled or books.disputes.open or books.taken_from
    return not (left and books.open.frames) or open_range(turn, worker) is not None


def may_copy(turn: Turn, worker: str, chunk: ChunkRecord) -> bool:
    """Whether a worker may have a second claim on a chunk that has room for one."""
    return worker not in chunk.workers and not _shuns(turn, worker, chunk)


def oldest_duplicable(turn: Turn, worker: str) -> ChunkRecord | None:
    """Never one that this worker has held before, nor one with a part that it has to leave to others."""
    for chunk in turn.books.duplicable.values():
        if may_copy(turn, worker, chunk):
            return chunk
    return None


def _shuns(turn: Turn, worker: str, chunk: ChunkRecord) -> bool:
    grid = turn.books.grid
    return any(chunk.next <= grid.start(part) < chunk.stop for part in shunned(turn, worker))


def shunned(turn: Turn, worker: str) -> list[int]:
    """Parts that this worker is not given now, in order."""
    books = turn.books
    barred = books.disputes.barred(worker)
    touchy = (*books.troubled, *books.taken_from)
    return sorted({*barred, *(part for part in touchy if _left_to_others(turn, worker, part))})


def _left_to_others(turn: Turn, worker: str, part: int) -> bool:
    """A worker that can't be expected soon doesn't count: a part that waits for it would wait for ever."""
    books = turn.books
    failed = (*books.tries.get(part, ()), *books.taken_from.get(part, ()))
    if worker not in failed:
        return False
    return any(
        name not in failed and books.expected(name, turn.now) and not books.disputes.bars(name, part)
        for name in books.workers
    )


def _resting(turn: Turn) -> list[int]:
    """Parts that failed and are not to be tried again yet."""
    return [part for part, at in turn.books.retry_at.items() if turn.now < at]
