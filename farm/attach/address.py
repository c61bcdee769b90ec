"""Where a run can be attached to: a socket in a folder that only its user can open.

Rules of this file:
- a socket is named after its run folder, which one process at a time holds: a name has one owner, and who
  knows the folder, the output or the id of a run finds it;
- the folder lies under the temporary folder, not in XDG_RUNTIME_DIR: that one is removed when its user logs
  out, and a run that goes on without a terminal is attached to by who logs in again;
- a folder that anybody else could have made or can write to is not used;
- a socket nobody listens on is what a killed run left: it is removed, under a lock, so that none is taken
  away just when a new run listens on it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from farm.errors import OutputError
from farm.paths import printable, reason
from farm.scratch import temporary_root

FOLDER_VARIABLE = "UNEVEN_RUNTIME_DIR"
SUFFIX = ".sock"
#: Of the path of a socket; macOS has 104 with the zero at the end, Linux 108.
PATH_BYTES_MAX = 103
#: Connections that wait to be taken.
_BACKLOG = 32
_BREATH_SECONDS = 0.02


def socket_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's sockets: UNEVEN_RUNTIME_DIR, or one under the temporary folder. Raises
    OutputError."""
    named = environment.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    own = f"uneven_{os.getuid()}"  # not as scratch folders are called (farm.scratch), which are swept away
    folder = temporary_root(environment) / own
    longest = len(os.fsencode(folder)) + 1 + len(socket_name(Path()))
    return folder if longest <= PATH_BYTES_MAX else Path("/tmp") / own


def socket_name(run_folder: Path) -> str:
    digest = hashlib.sha256(os.fsencode(os.path.realpath(run_folder))).hexdigest()
    return digest[:16] + SUFFIX


def socket_path(run_folder: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Where the run in that folder listens, if it does."""
    return socket_folder(environment) / socket_name(run_folder)


def listen(path: Path) -> tuple[socket.socket, int]:
    """A socket that listens at ``path`` and that only this user can open, and what ``release`` wants to know.
    Call it as the one who holds the run folder. Raises OutputError."""
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise OutputError(
            f"the socket {printable(path)} would have a name that is too long; set {FOLDER_VARIABLE} to a "
            "shorter folder"
        )
    try:
        _make_private(path.parent)
        with _alone(path.parent):
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(os.fspath(path))
                path.chmod(0o600)
                listener.listen(_BACKLOG)
                listener.setblocking(False)
                inode = path.stat().st_ino
            except BaseException:
                listener.close()
                raise
    except OSError as error:
        raise OutputError(f"the socket {printable(path)} can't be made: {reason(error)}") from error
    return listener, inode


def release(path: Path, inode: int) -> None:
    """Remove what ``listen`` made, but not what a later run made there."""
    with contextlib.suppress(OSError), _alone(path.parent):
        if path.stat().st_ino == inode:
            path.unlink()


def connect(path: Path, timeout_seconds: float = 5.0) -> socket.socket | None:
    """A connection to the run that listens at ``path``; None if none does. What a killed run left there is
    removed. Raises OutputError for a socket that can't be used, or that somebody else may have put there."""
    try:
        if not path.parent.exists():
            return None
        _check_own(path.parent)
        connection = _connected(path, timeout_seconds)
        if connection is None:
            with contextlib.suppress(OSError), _alone(path.parent):
                connection = _connected(path, timeout_seconds)
                if connection is None:
                    path.unlink(missing_ok=True)
        return connection
    except TimeoutError as error:
        raise OutputError(f"the run behind {printable(path)} doesn't answer") from error
    except OSError as error:
        raise OutputError(f"the socket {printable(path)} can't be used: {reason(error)}") from error


def _connected(path: Path, timeout_seconds: float) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_seconds)
    until = time.monotonic() + timeout_seconds
    try:
        while True:
            try:
                connection.connect(os.fspath(path))
                return connection
            except BlockingIOError:  # others wait to be taken, as many as can
                if time.monotonic() >= until:
                    raise TimeoutError from None
            time.sleep(_BREATH_SECONDS)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise


def sockets(folder: Path) -> list[Path]:
    """All sockets in the folder, of live runs and of killed ones."""
    with contextlib.suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    return []


def _make_private(folder: Path) -> None:
    """Raises OutputError for a folder that somebody else has a hand in, OSError."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    if _check_own(folder) & 0o077:
        folder.chmod(0o700)


def _check_own(folder: Path) -> int:
    """The mode of a folder that is this user's. Raises OutputError for any other, OSError."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise OutputError(
            f"{printable(folder)} belongs to somebody else; set {FOLDER_VARIABLE} to a folder of your own"
        )
    return found.st_mode


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While sockets come and go. Raises OSError."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
