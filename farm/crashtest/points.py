"""Crash points as data, and the log of file operations they are found in.

A point is one file operation of one process of the run, named so that the next run of the same job comes by
it again: role of the process, operation, name, and how many times that was seen before in the process. Names
lose what differs from run to run (run ids, numbers of claims); paths are relative to the trial's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

#: Holds an ``Order`` as JSON in the environment of a run under test; read when a process starts.
VARIABLE = "UNEVEN_CRASHTEST"

CONSOLE = "console"

#: ``run``: every process at once; ``process``: the one that comes by the point; ``power``: every process, and
#: names and bytes that were not synced are lost; ``data``: every process, and only the bytes are.
Kill = Literal["run", "process", "power", "data"]

#: What differs from run to run in a name, and what stands for it in a point's.
_VARIABLE = (
    (re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}"), "RUN"),
    (re.compile(r"c\d+\.\d+\.e\d+"), "c#"),
    (re.compile(r"(uneven-|listener-)\w+"), r"\1#"),
)


class Point(msgspec.Struct, frozen=True, order=True):
    """One file operation of a run."""

    role: str  #: console, a worker's name, or a helper's task
    operation: str
    name: str
    occurrence: int = 0

    def __str__(self) -> str:
        again = f" (number {self.occurrence + 1})" if self.occurrence else ""
        return f"{self.role}: {self.operation} {self.name}{again}"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a run under test are to do."""

    root: str  #: what lies below is watched
    log: str  #: where operations are written down; not below ``root``
    fired: str  #: made when the point is reached; there is one crash a run
    point: Point | None = None
    kill: Kill = "run"
    unsynced: str = ""  #: syncs of names that match this pattern are left out: the crash test's own test


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the log: an operation that is about to happen, or one that was done."""

    role: str
    operation: str
    path: str
    point: Point | None = None  #: before the operation
    to: str = ""  #: the second path of a rename or link
    kept: str = ""  #: another name of what the operation took away
    inode: int = 0  #: of the file or folder it was done to
    size_bytes: int = 0  #: how much of it is certain to be on the disk, where it is a sync


def name_of(path: str, root: str) -> str:
    """A path as the name of a point."""
    relative = f"{path}/".removeprefix(root).strip("/") or "."
    for pattern, instead in _VARIABLE:
        relative = pattern.sub(instead, relative)
    return relative


def read_log(path: Path) -> list[Step]:
    """What the processes of a run wrote down; a last line that a kill cut off is left out."""
    decoder = msgspec.json.Decoder(Step)
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    return [decoder.decode(line) for line in lines[:-1]]


def points_of(steps: Iterable[Step]) -> list[Point]:
    """The points in a log, each once, in the order in which they were come by."""
    return list(dict.fromkeys(step.point for step in steps if step.point is not None))


def kills_of(point: Point, number: int = 0) -> Sequence[Kill]:
    """The ways in which a crash at that point is worth a trial; of losing names and losing bytes alone it is
    one or the other, by the point's ``number``. Without its probe there is no run, and the console's own
    death is that of the run."""
    cut: Kill = "data" if number % 2 else "power"
    alone = point.role not in (CONSOLE, "probe_job")
    return ("run", cut, "process") if alone else ("run", cut)
