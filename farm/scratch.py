"""Folders for what nobody needs after a moment: the probe's log, the demo's clip, a socket's address.

A process that is killed can't clean up behind it. So a scratch folder is locked while it is in use, and
whoever makes one removes those that nobody holds any more: after a crash the next ``uneven`` does.

Rule of this file: only folders of this user that are named as ours and that nobody locks are removed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from farm.errors import OutputError
from farm.paths import has_name, printable, reason

_PREFIX = "uneven-"
#: A socket's address has at most 103 bytes (macOS); below the root come our folder's and multiprocessing's
#: names.
_SOCKET_ROOT_MAX = 68


def temporary_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Where temporary files go. Unlike ``tempfile.gettempdir`` it leaves nothing behind when it is killed:
    that one tries by writing a file."""
    named = [environment[name] for name in ("TMPDIR", "TEMP", "TMP") if environment.get(name)]
    for path in (*named, "/tmp", "/var/tmp"):
        if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK):  # noqa: PTH112
            return Path(os.path.abspath(path))  # noqa: PTH100
    raise OutputError("there is no folder for temporary files that can be written; set TMPDIR to one")


def socket_root() -> Path:
    """Where the address of a socket can be: the system takes no long ones. Raises OutputError."""
    root = temporary_root()
    if len(os.fsencode(root)) <= _SOCKET_ROOT_MAX:
        return root
    return temporary_root({})


class Scratch:
    """A folder of this process, until ``remove`` or the next ``uneven`` after the process's end.

    Raises OutputError if it can't be made."""

    def __init__(self, root: Path | None = None) -> None:
        root = temporary_root() if root is None else root
        try:
            sweep(root)
            path, lock = _make(root)
        except OSError as error:
            raise OutputError(
                f"no folder can be made in {printable(root)}: {reason(error)}; set TMPDIR to another"
            ) from error
        self.path = path
        self._lock: int | None = lock

    def remove(self) -> None:
        """Removing twice is fine."""
        if self._lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is removed in the end. Raises OutputError."""
    scratch = Scratch()
    try:
        yield scratch.path
    finally:
        scratch.remove()


def _make(root: Path) -> tuple[Path, int]:
    """A new folder and its lock. Another process may take it for left over until it is locked."""
    while True:
        path = root / f"{_PREFIX}{secrets.token_hex(4)}"
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        with suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks: then nobody sweeps there either
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if has_name(lock, path):
                return path, lock
            os.close(lock)


def sweep(root: Path | None = None) -> None:
    """Remove scratch folders that no process holds any more. Raises OutputError, OSError."""
    for entry in os.scandir(temporary_root() if root is None else root):
        with suppress(OSError):
            ours = entry.name.startswith(_PREFIX) and len(entry.name) == len(_PREFIX) + 8
            if not ours or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.getuid():
                continue
            lock = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(lock)
