"""A lock that one process holds, on a file that says who it is; gone with the process, however that ends.

Rules of this file: the lock is the system's (``flock``), not the file: one that is left says nothing. A file
that is locked here may be removed by its holder, so whoever gets the lock sees whether it still has its name.
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

from farm.errors import OutputError
from farm.paths import has_name, printable


def take_lock(name: Path, what: Path) -> int:
    """The file ``name``, open and locked until it is closed. Raises OutputError that says who uses ``what``
    if another process has the lock, OSError."""
    while True:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if has_name(lock, name):
                os.ftruncate(lock, 0)
                os.write(lock, f"{os.getpid()} {socket.gethostname()}\n".encode())
                return lock
        except BlockingIOError as error:
            holder = _holder(lock)
            os.close(lock)
            raise OutputError(
                f"{printable(what)} is in use by {holder}; wait for it, or stop it first"
            ) from error
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def is_held(name: Path) -> bool:
    """Whether a process holds the lock. Raises OSError."""
    try:
        lock = os.open(name, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _holder(lock: int) -> str:
    pid, _, host = os.pread(lock, 300, 0).decode(errors="replace").strip().partition(" ")
    return f"process {pid} on {printable(host)}" if pid.isdecimal() and host else "another uneven"
