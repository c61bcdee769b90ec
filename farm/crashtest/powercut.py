"""What a power cut leaves: everything that was not synced is lost.

A kill leaves what the kernel knows; a power cut leaves what the disk knows. After the kill the log of file
operations says which bytes and which names were not synced, and they are taken back:

- a file's bytes: those written after its last sync are cut off; of a file that was emptied nothing is left;
- a name: made, changed or taken away, and its folder not synced since, it is what it was before. With
  ``names=False`` names are as the kernel knows them: so most file systems behave most of the time.

Real disks lose any subset of that. What is lost here is always all of it, so that a missing sync shows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from farm.crashtest.points import Step

_FOLDER = -1  # stands for the inode of a folder: they are empty when they come back


class Ledger:
    """What is on the disk for certain, and what the kernel knows, as far as the log tells."""

    def __init__(self, steps: Iterable[Step], before: Collection[int] = ()) -> None:
        """``before``: inodes of files that were there, and on the disk, before the log began."""
        self._before = before
        self.durable: dict[str, int | None] = {}
        self.present: dict[str, int | None] = {}
        self.synced_bytes: dict[int, int] = {}
        self.kept: dict[int, str] = {}
        for step in steps:
            if step.point is None:
                self._apply(step)

    def _apply(self, step: Step) -> None:
        path, inode = step.path, step.inode
        match step.operation:
            case "create":
                self._name(path, None, inode)
                self.synced_bytes[inode] = 0
            case "empty" | "truncate":
                self._meet(path, inode)
                self.synced_bytes[inode] = 0
            case "open":
                self._meet(path, inode)
                self.synced_bytes.setdefault(inode, step.size_bytes)
            case "rename":
                self._name(path, inode, None)
                self._name(step.to, self._keep(step.kept), inode)
                self._take_for_unsynced(inode)
            case "link":
                self._name(step.to, None, inode)
                self._take_for_unsynced(inode)
            case "unlink":
                self._name(path, self._keep(step.kept), None)
            case "mkdir":
                self._name(path, None, _FOLDER)
            case "rmdir":
                self._name(path, _FOLDER, None)
            case "fsync" if self.present.get(path) == _FOLDER or Path(path).is_dir():
                self._sync_names(path)
            case "fsync":
                self.synced_bytes[inode] = step.size_bytes

    def _meet(self, path: str, inode: int) -> None:
        """A file that had that name before the log began, unless the log knows it."""
        self.durable.setdefault(path, inode)
        self.present.setdefault(path, inode)

    def _take_for_unsynced(self, inode: int) -> None:
        """A file that the log hasn't met was written by the media library, and never synced."""
        if inode not in self._before:
            self.synced_bytes.setdefault(inode, 0)

    def _name(self, path: str, before: int | None, after: int | None) -> None:
        self.durable.setdefault(path, before)
        self.present[path] = after

    def _keep(self, kept: str) -> int | None:
        """The inode that a name stood for when it was taken away; None if there was none."""
        if not kept or not os.path.lexists(kept):
            return None
        inode = os.lstat(kept).st_ino
        self.kept[inode] = kept
        return inode

    def _sync_names(self, folder: str) -> None:
        for path, inode in self.present.items():
            if os.path.dirname(path) == folder:  # noqa: PTH120
                self.durable[path] = inode

    def lost_names(self) -> list[str]:
        """Names that are not on the disk as the kernel knows them."""
        return [path for path, inode in self.durable.items() if inode != self.present[path]]


def inodes(folder: Path) -> set[int]:
    """Of all files in a folder and below."""
    return {path.lstat().st_ino for path in folder.rglob("*") if path.is_file()}


def cut_power(
    steps: Iterable[Step], scratch: Path, *, names: bool = True, before: Collection[int] = ()
) -> list[str]:
    """Take back what was not synced, and say what that was. ``scratch``: an empty folder on the same disk;
    ``before``: inodes of the files that were there when the run began.

    No process of the run may be left.
    """
    ledger = Ledger(steps, before)
    lost: list[str] = []
    if names:
        lost += _take_back_names(ledger, scratch)
    places = {**ledger.kept}
    for path in ledger.present:
        if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
            places[os.lstat(path).st_ino] = path
    for inode, size in ledger.synced_bytes.items():
        place = places.get(inode)
        if place is not None and os.path.lexists(place) and os.lstat(place).st_size > size:
            lost.append(f"{os.lstat(place).st_size - size} bytes of {place}")
            os.truncate(place, size)
    return lost


def _take_back_names(ledger: Ledger, scratch: Path) -> list[str]:
    lost = ledger.lost_names()
    places = dict(ledger.kept)
    for number, path in enumerate(lost):
        if os.path.isfile(path):  # noqa: PTH113
            aside = scratch / str(number)
            Path(path).rename(aside)
            places[aside.lstat().st_ino] = str(aside)
    for other, known in ledger.present.items():  # a file whose other name stays
        if known is not None and known not in places and os.path.isfile(other):  # noqa: PTH113
            places[known] = other
    for path in sorted(lost):
        inode = ledger.durable[path]
        if inode is None:
            if os.path.isdir(path):  # noqa: PTH112
                shutil.rmtree(path)
        elif inode == _FOLDER:
            Path(path).mkdir(parents=True, exist_ok=True)
        elif inode in places and os.path.isdir(os.path.dirname(path)):  # noqa: PTH112, PTH120
            os.link(places[inode], path)
    return [f"the name {path}" for path in lost]
