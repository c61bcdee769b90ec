"""In every process of a run under test: writes down its file operations, and kills at the chosen one.

``install`` replaces the functions through which this program comes at the disk by ones that tell before and
after: those of ``os``, ``open`` (with the files it gives) and ``sqlite3.connect``. Nothing of this is loaded
in an ordinary run.

What it doesn't see: writes of the media library into ``OUTPUT.partial`` (seen are the syncs after them) and
the single writes of SQLite (seen are its statements, before and after a commit).

Rules of this file: what is replaced does what it did; a point comes before its operation; the log's own
writing goes past the probe, one ``write`` a line, so that the lines of many processes don't mix.
"""

from __future__ import annotations

import builtins
import io
import os
import re
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from farm.crashtest.points import CONSOLE, VARIABLE, Order, Point, Step, name_of

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: By position of their arguments: one path, or two. Both spellings of the same call count as one.
_ONE_PATH = {"unlink": "unlink", "remove": "unlink", "mkdir": "mkdir", "rmdir": "rmdir"}
_TWO_PATHS = {"rename": "rename", "replace": "rename", "link": "link"}

_write = os.write
_open = io.open
_link = os.link


def install_if_asked(role: str = CONSOLE, environment: Mapping[str, str] = os.environ) -> None:
    """Watch this process, which has that role in the run, if the environment says so."""
    asked = environment.get(VARIABLE)
    if asked:
        install(msgspec.json.decode(asked, type=Order), role)


def install(order: Order, role: str) -> None:
    """Watch this process from now on."""
    probe = _Probe(order, role)
    for name, operation in _ONE_PATH.items():
        setattr(os, name, probe.one_path(operation, getattr(os, name)))
    for name, operation in _TWO_PATHS.items():
        setattr(os, name, probe.two_paths(operation, getattr(os, name)))
    setattr(os, "open", probe.os_open(os.open))  # noqa: B010 - mypy takes the modules for constant
    setattr(os, "write", probe.os_write(os.write))  # noqa: B010
    setattr(os, "fsync", probe.os_fsync(os.fsync))  # noqa: B010
    setattr(os, "ftruncate", probe.os_ftruncate(os.ftruncate))  # noqa: B010
    opened = probe.file_open()
    setattr(io, "open", opened)  # noqa: B010
    setattr(builtins, "open", opened)  # noqa: B010
    setattr(sqlite3, "connect", probe.connect(sqlite3.connect))  # noqa: B010


class _Probe:
    def __init__(self, order: Order, role: str) -> None:
        self._order = order
        self._role = role.rpartition(":")[2]
        self._root = order.root.rstrip("/") + "/"
        self._seen: Counter[tuple[str, str]] = Counter()
        self._kept = 0
        self._lock = threading.Lock()
        self._log = os.open(order.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._unsynced = re.compile(order.unsynced) if order.unsynced else None

    # --- what is written down

    @contextmanager
    def step(self, operation: str, path: str, to: str = "", kept: str = "") -> Iterator[None]:
        """Around an operation: a point before it, a line after it unless it failed."""
        if not self.watched(path) and not self.watched(to):
            yield
            return
        self.point(operation, to or path)
        yield
        self.write_down(operation, path, to, kept)

    def point(self, operation: str, path: str) -> None:
        name = name_of(path, self._root)
        with self._lock:
            occurrence = self._seen[operation, name]
            self._seen[operation, name] += 1
        point = Point(self._role, operation, name, occurrence)
        self._line(Step(role=self._role, operation=operation, path=path, point=point))
        if point == self._order.point:
            self._crash()

    def watched(self, path: str) -> bool:
        return f"{path}/".startswith(self._root)

    def skips(self, path: str) -> bool:
        return self._unsynced is not None and self._unsynced.search(path) is not None

    def keep(self, path: str) -> str:
        """Another name for a file that is about to lose this one, so that a power cut can bring it back."""
        with self._lock:
            self._kept += 1
            kept = f"{self._order.log}.{os.getpid()}.{self._kept}"
        try:
            _link(path, kept)
        except OSError:
            return ""
        return kept

    def write_down(self, operation: str, path: str, to: str = "", kept: str = "") -> None:
        """A line for what was done."""
        inode = size = 0
        try:
            stat = os.lstat(to or path)
            inode, size = stat.st_ino, stat.st_size
        except OSError:
            pass
        self._line(
            Step(
                role=self._role,
                operation=operation,
                path=path,
                to=to,
                kept=kept,
                inode=inode,
                size_bytes=size,
            )
        )

    def _line(self, step: Step) -> None:
        _write(self._log, msgspec.json.encode(step) + b"\n")

    def _crash(self) -> None:
        try:
            os.close(os.open(self._order.fired, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return  # in a process that took the place of the killed one
        if self._order.kill == "process":
            os.kill(os.getpid(), signal.SIGKILL)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    # --- what is replaced

    def one_path(self, operation: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(path: Any, *args: Any, **named: Any) -> None:
            full = _full(path, named.get("dir_fd"))
            kept = self.keep(full) if operation == "unlink" and self.watched(full) else ""
            with self.step(operation, full, kept=kept):
                real(path, *args, **named)

        return call

    def two_paths(self, operation: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(path: Any, to: Any, **named: Any) -> None:
            full, target = _full(path, named.get("src_dir_fd")), _full(to, named.get("dst_dir_fd"))
            kept = self.keep(target) if operation == "rename" and self.watched(target) else ""
            with self.step(operation, full, target, kept):
                real(path, to, **named)

        return call

    def os_open(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, flags: int, *args: Any, **named: Any) -> int:
            if not flags & _WRITING:
                return real(path, flags, *args, **named)
            full = _full(path, named.get("dir_fd"))
            with self.step(_opening(full, bool(flags & os.O_TRUNC)), full):
                return real(path, flags, *args, **named)

        return call

    def os_write(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(handle: int, data: Any) -> int:
            with self.step("write", _full(handle)):
                return real(handle, data)

        return call

    def os_ftruncate(self, real: Callable[..., None]) -> Callable[..., None]:
        def call(handle: int, length: int) -> None:
            with self.step("truncate", _full(handle)):
                real(handle, length)

        return call

    def os_fsync(self, real: Callable[..., None]) -> Callable[..., None]:
        def call(handle: Any) -> None:
            path = _full(handle)
            if self.skips(path):
                return
            with self.step("fsync", path):
                real(handle)

        return call

    def file_open(self) -> Callable[..., Any]:
        probe = self

        class WatchedFile(io.FileIO):
            def write(self, data: Any) -> int:
                with probe.step("write", _full(self.fileno())):
                    return super().write(data)

        def call(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            full = _full(file)
            if not set(mode) & set("wax+") or not probe.watched(full):
                return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            letters = mode.replace("b", "").replace("t", "")
            if isinstance(file, int):
                raw = WatchedFile(file, letters, closefd)
            else:
                with probe.step(_opening(full, "w" in mode), full):
                    raw = WatchedFile(file, letters, closefd, opener)
            if buffering == 0:
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

        return call

    def connect(self, real: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        probe = self

        class WatchedConnection(sqlite3.Connection):
            path = ""

            def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
                word = sql.split(None, 1)[0]
                if word not in ("PRAGMA", "COMMIT"):  # nothing reaches the disk before the commit
                    return super().execute(sql, *args)
                with self.writing(word):
                    cursor = super().execute(sql, *args)
                if word == "COMMIT" and probe.watched(self.path):
                    probe.point("sql committed", self.path)
                return cursor

            def executescript(self, sql: str, /) -> sqlite3.Cursor:
                with self.writing("script"):
                    return super().executescript(sql)

            def close(self) -> None:
                with self.writing("close"):
                    super().close()

            @contextmanager
            def writing(self, what: str) -> Iterator[None]:
                """What SQLite wrote, it synced: that is what its ``synchronous=FULL`` says."""
                if not probe.watched(self.path):
                    yield
                    return
                probe.point(f"sql {what}", self.path)
                yield
                for path in (self.path, f"{self.path}-wal"):
                    if os.path.lexists(path):
                        probe.write_down("fsync", path)

        def call(database: Any, *args: Any, **named: Any) -> sqlite3.Connection:
            path = _full(database)
            if probe.watched(path):
                probe.point("sql open", path)
            connection = real(database, *args, factory=WatchedConnection, **named)
            assert isinstance(connection, WatchedConnection)
            connection.path = path
            return connection

        return call


def _opening(path: str, truncates: bool) -> str:
    """What opening a file for writing does to it."""
    if not os.path.lexists(path):
        return "create"
    return "empty" if truncates else "open"


def _full(path: Any, folder: int | None = None) -> str:
    """The absolute path of a path or of an open file; its number in words where the system can't tell."""
    if isinstance(path, int):
        try:
            return str(Path(f"/proc/self/fd/{path}").readlink())
        except OSError:
            return f"file {path}"
    text = os.fsdecode(path)
    return os.path.abspath(os.path.join(_full(folder), text) if folder is not None else text)  # noqa: PTH100, PTH118
