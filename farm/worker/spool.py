"""A worker's spool: the folder with the parts it has rendered and not delivered yet.

A part that is finished outlives its worker there. Whoever finds it offers it (DESIGN.md §4 rule 5): the
worker that comes back, or another one that shares the disk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from farm.frames import PartGrid
from farm.parts import PartError, PartFacts, check_part
from farm.store import parse_part_file_name


class SpooledPart(NamedTuple):
    """A finished part in a spool."""

    path: Path
    facts: PartFacts


def finished_parts(folder: Path, grid: PartGrid, settings_hash: str) -> Iterator[SpooledPart]:
    """The finished parts in a spool that nobody else works in, in the order of their numbers. What is not
    finished, damaged, or of another run is removed. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder.iterdir()):
            facts = _checked(path, grid, settings_hash)
            if facts is None:
                path.unlink(missing_ok=True)
            else:
                yield SpooledPart(path, facts)


def _checked(path: Path, grid: PartGrid, settings_hash: str) -> PartFacts | None:
    file = parse_part_file_name(path.name)
    if file is None or not 0 <= file.part < grid.parts:
        return None
    start, stop = grid.start(file.part), grid.stop(file.part)
    try:
        return check_part(path, part=file.part, start=start, stop=stop, settings_hash=settings_hash)
    except (PartError, FileNotFoundError):
        return None


def orphan_spools(spool: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """The folders in the run's spool of workers that are not in its fleet (any more) and left something.
    What else lies beside them is removed. Raises OSError."""
    known = set(names)
    orphans = []
    for path in sorted(spool.iterdir()):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        elif path.name not in known and any(path.iterdir()):
            orphans.append(path)
    return tuple(orphans)
