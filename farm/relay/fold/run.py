"""The run: its options, its pauses, and whether anything is granted at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from farm import events as ev
from farm.frames import PartGrid
from farm.relay.fold.shared import open_part, reopen_parts
from farm.relay.ledger import DEFERRED, OpenRanges

if TYPE_CHECKING:
    from farm.relay.books import Books


def _run_opened(books: Books, at: float, event: ev.RunOpened) -> None:
    books.options = event.options
    books.grid = PartGrid(event.cuts)
    books.build = event.build
    books.parts = bytearray(books.grid.parts)
    books.touched = bytearray(books.grid.parts)
    books.open.put_first(0, books.grid.frames)


def _relay_started(books: Books, at: float, event: ev.RelayStarted) -> None:
    books.epoch = event.epoch
    books.draining = False
    books.held = ""
    books.finished = False
    books.sample = None
    if books.deferred_frames:
        books.deferred_frames = 0
        for part in reversed(range(books.grid.parts)):
            if books.parts[part] == DEFERRED:
                open_part(books, part)


def _sample_chosen(books: Books, at: float, event: ev.SampleChosen) -> None:
    books.sample = frozenset(event.parts)
    ranges, books.open = list(books.open), OpenRanges()
    for start, stop in reversed(ranges):
        reopen_parts(books, start, stop)


def _options_changed(books: Books, at: float, event: ev.OptionsChanged) -> None:
    books.options = event.options


def _grants_held(books: Books, at: float, event: ev.GrantsHeld) -> None:
    books.held = event.reason


def _grants_freed(books: Books, at: float, event: ev.GrantsFreed) -> None:
    books.held = ""


def _job_paused(books: Books, at: float, event: ev.JobPaused) -> None:
    books.paused_at = at


def _job_resumed(books: Books, at: float, event: ev.JobResumed) -> None:
    books.paused_at = None
    books.paused_seconds += event.seconds
    for claim in books.leases.values():  # what moved during the pause is as fresh as can be
        claim.moved_at = min(at, claim.moved_at + event.seconds)
        claim.part_since = min(at, claim.part_since + event.seconds)


def _drain_started(books: Books, at: float, event: ev.DrainStarted) -> None:
    books.draining = True


def _work_finished(books: Books, at: float, event: ev.WorkFinished) -> None:
    books.finished = True


def _fleet_measured(books: Books, at: float, event: ev.FleetMeasured) -> None:
    books.fps_possible = event.fps_possible


HANDLERS: Final[dict[type, Callable[[Books, float, Any], None]]] = {
    ev.RunOpened: _run_opened,
    ev.RelayStarted: _relay_started,
    ev.SampleChosen: _sample_chosen,
    ev.OptionsChanged: _options_changed,
    ev.GrantsHeld: _grants_held,
    ev.GrantsFreed: _grants_freed,
    ev.JobPaused: _job_paused,
    ev.JobResumed: _job_resumed,
    ev.DrainStarted: _drain_started,
    ev.WorkFinished: _work_finished,
    ev.FleetMeasured: _fleet_measured,
}
