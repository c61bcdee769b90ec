"""Workers: who is there, who rests, who is blocked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from farm import events as ev
from farm.relay.ledger import WorkerRecord

if TYPE_CHECKING:
    from farm.relay.books import Books


def _worker_joined(books: Books, at: float, event: ev.WorkerJoined) -> None:
    books.workers[event.worker] = WorkerRecord(event.worker, event.overhead_seconds, event.fps_cap)
    books.caps[event.worker] = event.fps_cap
    books.idle[event.worker] = at


def _worker_left(books: Books, at: float, event: ev.WorkerLeft) -> None:
    books.workers.pop(event.worker, None)
    books.caps.pop(event.worker, None)
    books.parked.pop(event.worker, None)
    books.blocked.pop(event.worker, None)
    books.silent.pop(event.worker, None)
    books.idle.pop(event.worker, None)
    books.dismissed.pop(event.worker, None)
    books.losses += event.lost
    books.disputes.someone_left(at)


def _worker_throttled(books: Books, at: float, event: ev.WorkerThrottled) -> None:
    books.workers[event.worker].fps_cap = books.caps[event.worker] = event.fps_cap


def _worker_dismissed(books: Books, at: float, event: ev.WorkerDismissed) -> None:
    books.dismissed[event.worker] = None


def _worker_parked(books: Books, at: float, event: ev.WorkerParked) -> None:
    books.parked[event.worker] = None
    books.silent.pop(event.worker, None)
    books.idle.pop(event.worker, None)
    books.workers[event.worker].parked = True


def _worker_blocked(books: Books, at: float, event: ev.WorkerBlocked) -> None:
    books.blocked[event.worker] = None
    books.workers[event.worker].blocked_until = event.until


def _worker_forgiven(books: Books, at: float, event: ev.WorkerForgiven) -> None:
    books.blocked.pop(event.worker, None)
    worker = books.workers[event.worker]
    worker.blocked_until = None
    worker.failures_in_row = 0


HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
    ev.WorkerJoined: _worker_joined,
    ev.WorkerLeft: _worker_left,
    ev.WorkerThrottled: _worker_throttled,
    ev.WorkerDismissed: _worker_dismissed,
    ev.WorkerParked: _worker_parked,
    ev.WorkerBlocked: _worker_blocked,
    ev.WorkerForgiven: _worker_forgiven,
}
