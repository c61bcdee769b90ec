"""The run folder ``OUTPUT.uneven/``: everything a run keeps until its output is verified.

    uneven.lock     who works in it: process and host; locked while a run is on
    journal.db      the journal (and SQLite's own files beside it)
    journal.db.damaged, …   journals that could not be read any more, set aside
    run.json        what the run was begun with, should the journal get lost
    index.msgpack   the source index
    store/          delivered parts
    spool/          the workers' own disk
    logs/           one log per attempt

Rules of this file:
- one process at a time works in a run folder, and a second one hears who that is;
- an output is made by one run at a time, wherever its run folder is (``guard``);
- a run without a journal recorded nothing, so that a folder left by a crash in ``create`` can be made again;
- only what is listed above is ever removed, and links are never followed: a file that somebody else put
  there stays, and the folder with it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from farm.errors import OutputError
from farm.lock import take_lock
from farm.paths import FOLDER_SUFFIX, check_name, printable, reason, sync_name, temporary_name

LOCK_NAME = "uneven.lock"
JOURNAL_NAME = "journal.db"
INDEX_NAME = "index.msgpack"
NOTE_NAME = "run.json"
_FOLDERS = ("store", "spool", "logs")
_DAMAGED = JOURNAL_NAME + ".damaged"
#: SQLite's files beside a journal; they are part of it.
_COMPANIONS = ("-wal", "-shm", "-journal")
#: In the order of removal: a journal never stands beside the write-ahead log of another one, and goes last,
#: so that a removal that is cut off is seen for what it was.
_FILES = (
    INDEX_NAME,
    NOTE_NAME,
    "journal.db.new-journal",
    "journal.db.new",
    *(JOURNAL_NAME + companion for companion in _COMPANIONS),
    JOURNAL_NAME,
)


class RunFolder:
    """A run folder that this process holds. Made by ``create`` or ``open``; close it to let others in."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock
        self._output_lock: tuple[int, Path] | None = None

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL_NAME

    @property
    def index(self) -> Path:
        return self.path / INDEX_NAME

    @property
    def note(self) -> Path:
        return self.path / NOTE_NAME

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def spool(self) -> Path:
        return self.path / "spool"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make the folder for a new run, or take one in which no run was recorded yet.

        Raises OutputError if it holds a run, belongs to somebody else, is held, or can't be made.
        """
        check_name(path)
        made = False
        try:
            try:
                path.mkdir()
                made = True
            except FileExistsError:
                if (path / JOURNAL_NAME).exists():
                    raise OutputError(
                        f"{printable(path)} holds an earlier run; resume that one, or remove the folder"
                    ) from None
                _check_ours(path, empty=True)
            folder = cls(path, take_lock(path / LOCK_NAME, path))
        except OSError as error:
            if made:
                (path / LOCK_NAME).unlink(missing_ok=True)
                path.rmdir()
            raise _failed(path, error) from error
        try:
            folder._make_folders()
        except OutputError:
            if made:
                folder.remove()
            folder.close()
            raise
        sync_name(path)
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Take an existing run folder. Raises OutputError if it is none, is held, or can't be written."""
        check_name(path)
        try:
            if not os.path.lexists(path):
                raise OutputError(f"there is no run folder {printable(path)}; start the run with render")
            _check_ours(path, empty=False)
            folder = cls(path, take_lock(path / LOCK_NAME, path))
        except OSError as error:
            raise _failed(path, error) from error
        try:
            folder._make_folders()
        except OutputError:
            folder.close()
            raise
        return folder

    def guard(self, output: Path) -> None:
        """Keep other runs from making that output until this folder is closed: with ``--temp`` their folders
        can be elsewhere. Raises OutputError that says who makes it."""
        name = output.parent / f"{temporary_name(output).stem}.lock"
        with suppress(OSError):  # a file system without locks, or a folder that will be complained of later
            self._output_lock = take_lock(name, output), name

    def _let_go_of_output(self) -> None:
        held, self._output_lock = self._output_lock, None
        if held is not None:
            with suppress(OSError):
                held[1].unlink()
            os.close(held[0])

    def _make_folders(self) -> None:
        for name in _FOLDERS:
            path = self.path / name
            try:
                path.mkdir(exist_ok=True)
            except OSError as error:
                raise _failed(path, error) from error
            if path.is_symlink():
                raise OutputError(f"{printable(path)} is a link; put the run folder elsewhere with --temp")
        sync_name(self.store)

    def set_journal_aside(self) -> Path:
        """Give a damaged journal and its companions other names, and return the journal's. Raises
        OutputError."""
        aside, number = self.path / _DAMAGED, 1
        while os.path.lexists(aside):
            number += 1
            aside = self.path / f"{_DAMAGED}{number}"
        try:
            for companion in _COMPANIONS:
                path = self.path / (JOURNAL_NAME + companion)
                if os.path.lexists(path):
                    path.rename(self.path / (aside.name + companion))
            if os.path.lexists(self.journal):
                self.journal.rename(aside)
        except OSError as error:
            raise _failed(self.path, error) from error
        sync_name(aside)
        return aside

    def free_bytes(self) -> int:
        """Room left on the folder's disk for a user without privileges."""
        try:
            return shutil.disk_usage(self.path).free
        except OSError as error:
            raise _failed(self.path, error) from error

    def require_free(self, needed_bytes: int) -> None:
        """Raises OutputError unless that much room is left."""
        free = self.free_bytes()
        if free < needed_bytes:
            raise OutputError(
                f"{printable(self.path)} needs about {_mib(needed_bytes)} of disk and {_mib(free)} are free; "
                "make room, or put the run folder on another disk with --temp"
            )

    def remove(self) -> tuple[Path, ...]:
        """Remove the run and let go of the folder; close the journal before.

        Returns what is left because it is not ours; empty: the folder is gone. Raises OutputError.
        """
        assert self._lock is not None, "the run folder is closed"
        self._let_go_of_output()
        try:
            for name in _FOLDERS:
                path = self.path / name
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
            for damaged in self.path.glob(_DAMAGED + "*"):
                damaged.unlink()
            for name in _FILES:
                if name == JOURNAL_NAME:
                    sync_name(self.path / name)
                (self.path / name).unlink(missing_ok=True)
            (self.path / temporary_name(self.note).name).unlink(missing_ok=True)
            (self.path / LOCK_NAME).unlink(missing_ok=True)
            left = tuple(sorted(self.path.iterdir()))
            if not left:
                self.path.rmdir()
        except OSError as error:
            raise _failed(self.path, error) from error
        finally:
            self.close()
        return left

    def close(self) -> None:
        """Let others in. Closing twice is fine."""
        self._let_go_of_output()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def holds_run(path: Path) -> bool:
    """Whether a run that can be taken up was begun in a run folder."""
    return (path / JOURNAL_NAME).exists() or (path / NOTE_NAME).exists()


def remove_shell(path: Path) -> None:
    """Remove a run folder in which nothing but its lock is left: its removal was cut off at the very end."""
    if path.is_symlink() or not path.is_dir() or path.suffix != FOLDER_SUFFIX:
        return
    with suppress(OSError, OutputError):
        if {entry.name for entry in path.iterdir()} <= {LOCK_NAME}:
            RunFolder(path, take_lock(path / LOCK_NAME, path)).remove()


def _check_ours(path: Path, *, empty: bool) -> None:
    """Raises OutputError unless the folder is a run folder, or ``empty`` and it holds nothing at all."""
    if path.is_symlink():
        raise OutputError(f"{printable(path)} is a link; put the run folder elsewhere with --temp")
    names = {entry.name for entry in path.iterdir()}
    if not names & {LOCK_NAME, JOURNAL_NAME, NOTE_NAME} and (names or not empty):
        raise OutputError(f"{printable(path)} is not a run folder of uneven; remove or rename it")


def _failed(path: Path, error: OSError) -> OutputError:
    return OutputError(f"the run folder {printable(path)} can't be used: {reason(error)}")


def _mib(size_bytes: int) -> str:
    return f"{max(size_bytes, 0) / (1 << 20):,.0f} MiB"
