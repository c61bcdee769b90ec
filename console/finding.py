"""Which run is meant, and whether it is live: for attach, status and stop.

Rule: a run that isn't named is the one that is live; with several the user has to say which.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.report import records_of
from farm.attach.address import socket_folder, socket_path, sockets
from farm.attach.client import look
from farm.attach.wire import Welcome
from farm.errors import OutputError, UnevenError, UsageError
from farm.events import Record
from farm.journal import RunCatalogue, RunEntry
from farm.paths import printable


@dataclass(frozen=True, slots=True)
class LiveRunFound:
    """A run that answers."""

    welcome: Welcome
    socket: Path

    @property
    def found(self) -> FoundRun:
        welcome = self.welcome
        entry = RunEntry(run_id=welcome.run_id, output=welcome.output, folder=welcome.folder)
        return FoundRun(entry, self.socket)


def live_runs() -> list[LiveRunFound]:
    """All live runs of this user on this machine, by their ids. One that doesn't answer is left out."""
    found = []
    for path in sockets(socket_folder()):
        with suppress(UnevenError):
            found.append(LiveRunFound(look(path), path))
    return sorted(found, key=lambda run: run.welcome.run_id)


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that is known. ``socket``: where it listens if it is live."""

    entry: RunEntry
    socket: Path

    @property
    def name(self) -> str:
        """What to call it in a command."""
        return self.entry.run_id or self.entry.folder

    def records(self) -> Iterable[Record]:
        """Its log, once it is over. Raises UnevenError, also on the way."""
        return records_of(self.name)


def find_run(name: str | None) -> FoundRun:
    """The run that is meant. None: the one that is live, or else the last one. Raises UsageError,
    OutputError."""
    if name is None:
        live = live_runs()
        if len(live) == 1:
            return live[0].found
        if live:
            raise UsageError(f"several runs are live: {_names(live)}; say which")
        name = "last"
    try:
        entry = RunCatalogue().find(name)
    except (UsageError, OutputError):
        for run in live_runs():  # of another catalogue, or of one that could not be written
            if name in (run.welcome.run_id, run.welcome.output, run.welcome.folder):
                return run.found
        raise
    return FoundRun(entry, socket_path(Path(entry.folder)))


def find_live(name: str | None) -> FoundRun:
    """As ``find_run``, for what only a live run can do: unnamed it is never one that is over."""
    if name is None and not live_runs():
        raise UsageError("no run is live")
    return find_run(name)


def _names(live: Iterable[LiveRunFound]) -> str:
    return ", ".join(
        f"{run.welcome.run_id} ({printable(os.path.basename(run.welcome.output))})"  # noqa: PTH119
        for run in live
    )
