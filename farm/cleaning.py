"""What runs have left behind, and how it is removed: run folders, recordings, entries of the catalogue.

Rules of this file:
- a run that is on is never touched: its lock is held;
- a folder is only removed if it is a run folder, and what somebody else put there stays (farm.folder);
- the age of a run is that of the newest of its files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from farm.errors import OutputError, UsageError
from farm.folder import LOCK_NAME, RunFolder, holds_run
from farm.journal import RunCatalogue, RunEntry
from farm.lock import is_held
from farm.paths import FOLDER_SUFFIX
from farm.sampling import SAMPLED


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
    """What is left of one run."""

    run_id: str  #: empty if the catalogue doesn't know the run
    output: str
    folder: Path | None  #: its run folder, if that is there
    recording: Path | None
    size_bytes: int
    age_seconds: float
    live: bool  #: the run is on
    state: str  #: in a word or two: finished, unfinished, running


def find_leftovers(
    catalogue: RunCatalogue, names: Sequence[str], older_than_seconds: float, now: float
) -> list[LeftOver]:
    """What is left of the runs that are named (ids, outputs, run folders), or of all that are known, if it
    is as old as that. ``now``: wall clock, seconds since 1970. Raises UsageError for a name of no run."""
    named = dict.fromkeys(_named(catalogue, name) for name in names)
    found = [_look(entry, now) for entry in (named or catalogue.entries())]
    return [left for left in found if left.age_seconds >= older_than_seconds]


def remove(left: LeftOver, catalogue: RunCatalogue) -> tuple[Path, ...]:
    """Remove it; returns what stays because it isn't ours. Raises OutputError if it can't be removed, or
    somebody took the run up meanwhile."""
    stays: tuple[Path, ...] = ()
    if left.folder is not None:
        folder = RunFolder.open(left.folder)
        if left.output:
            with suppress(OutputError):  # another run makes it
                folder.guard(Path(left.output))  # so that the lock that a killed run left goes, too
        stays = folder.remove()
    if left.run_id:
        catalogue.forget(left.run_id)
    return stays


def _named(catalogue: RunCatalogue, name: str) -> RunEntry:
    path = Path(name)
    if path.name.endswith(FOLDER_SUFFIX) and (path / LOCK_NAME).exists() and not holds_run(path):
        return RunEntry(output=str(path).removesuffix(FOLDER_SUFFIX), folder=str(path))
    if name == "last":
        raise UsageError("name the run that is to go by its id, its output or its run folder, not 'last'")
    return catalogue.find(name)


def _look(entry: RunEntry, now: float) -> LeftOver:
    named = Path(entry.folder) if entry.folder else None
    folder = named if named is not None and _is_run_folder(named) else None
    recording = Path(entry.recording) if entry.recording else None
    sizes = [*_files(folder), *([recording.stat()] if recording is not None else [])]
    newest = max((stat.st_mtime for stat in sizes), default=0.0)
    live = folder is not None and _is_live(folder)
    if live:
        state = "running"
    elif entry.exit_code == 0 and entry.outcome != SAMPLED:
        state = "finished"
    else:
        state = "unfinished" if folder is not None else "gone"
    return LeftOver(
        run_id=entry.run_id,
        output=entry.output,
        folder=folder,
        recording=recording,
        size_bytes=sum(stat.st_size for stat in sizes),
        age_seconds=max(0.0, now - newest),
        live=live,
        state=state,
    )


def _is_run_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and ((path / LOCK_NAME).exists() or holds_run(path))


def _is_live(folder: Path) -> bool:
    try:
        return is_held(folder / LOCK_NAME)
    except OSError:
        return True  # what can't be known isn't touched


def _files(folder: Path | None) -> Iterator[os.stat_result]:
    for root, _, names in os.walk(folder) if folder is not None else ():
        for name in names:
            with suppress(OSError):
                yield (Path(root) / name).lstat()
