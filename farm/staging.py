"""Where parts that come in blocks grow, ``store/incoming/``, until they are whole.

    p000012-c4.3.e2.part          the blocks that came so far, each at its offset
    p000012-c4.3.e2.part.blocks   what the whole is to be, then the checksum of each block as it was stored

Rules of this file:
- a block counts once its bytes are synced and then its checksum is written down and synced; so what is
  acknowledged is there after a crash, and what the record says is compared with the bytes before it is used;
- each attempt has files of its own, so that a late worker can't write into another's part. What an attempt
  that is over has left is taken over, by rename, by the next one that brings the very same bytes;
- blocks come in order: what is stored is always the first ``done`` of them.

All functions block; call them off the event loop. They may be called from several threads; who makes, moves,
writes or removes files of a part waits for its turn (``_turn``).
"""

from __future__ import annotations

import contextlib
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from farm.errors import OutputError
from farm.paths import atomic_file, printable, reason, sync_name
from farm.store import parse_part_file_name, part_file_name

INCOMING_NAME = "incoming"
_RECORD_SUFFIX = ".blocks"


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """What a part file is to be when its last block is in."""

    size_bytes: int
    sha256: str
    block_bytes: int  #: of every block but the last

    @property
    def blocks(self) -> int:
        return -(-self.size_bytes // self.block_bytes)

    def span(self, index: int) -> tuple[int, int]:
        """Offsets of block ``index`` in the file, half open."""
        start = index * self.block_bytes
        return start, min(start + self.block_bytes, self.size_bytes)


class Stored(NamedTuple):
    """How much of a part is there: its first ``done`` blocks."""

    done: int
    size_bytes: int
    complete: bool = False


NOTHING = Stored(0, 0)


class Staging:
    """Parts on their way into the store in ``folder``. Everything raises OutputError when the disk fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / INCOMING_NAME
        self._lock = threading.Lock()  # of what follows
        self._growing: dict[str, tuple[Whole, int]] = {}  # by file name: what it will be, blocks done
        self._files: dict[int, set[str]] | None = None  # names in the folder, by part
        self._turns: dict[int, threading.Lock] = {}

    def begin(self, part: int, token: str, whole: Whole, is_over: Callable[[str], bool]) -> Stored:
        """Begin a part under a claim, or go on with it. What another process or claim has left is compared
        with its record first; ``is_over`` tells whether a claim is, so that what it left may be taken over.
        """
        name = part_file_name(part, token)
        with self._turn(part), self._reporting():
            before = self._growing.get(name)
            if before is not None and before[0] == whole:
                return _stored(*before)
            self._make_folder()
            done, found = max(self._usable(part, name, whole, is_over), default=(0, name))
            self._take_over(found, name, whole, done)
            with self._lock:
                self._growing[name] = whole, done
                self._known(part).add(name)
        return _stored(whole, done)

    def put(self, part: int, token: str, index: int, crc: int, data: bytes) -> Stored:
        """Store a block if it is the next one and whole; tells what is there then. Nothing, for a part that
        was not begun or was taken away since."""
        name = part_file_name(part, token)
        with self._turn(part), self._reporting():
            growing = self._growing.get(name)
            if growing is None:
                return NOTHING
            whole, done = growing
            start, stop = whole.span(index)
            if index != done or len(data) != stop - start or zlib.crc32(data) != crc:
                return _stored(whole, done)
            try:
                _write_synced(self.folder / name, data, os.O_WRONLY, start)
                _write_synced(self._record(name), _line(index, crc), os.O_WRONLY | os.O_APPEND)
            except FileNotFoundError:
                self._forget(name)
                return NOTHING
            self._growing[name] = whole, done + 1
            return _stored(whole, done + 1)

    def stored(self, part: int, token: str) -> Stored:
        """What is there of a part under a claim."""
        with self._lock:
            growing = self._growing.get(part_file_name(part, token))
        return NOTHING if growing is None else _stored(*growing)

    def finish(self, part: int, token: str) -> Path | None:
        """Hand over a part whose blocks are all there: it leaves for the store, under its own name. None: not
        all are there (any more)."""
        name = part_file_name(part, token)
        final = self.folder.parent / name
        with self._turn(part), self._reporting():
            if not self.stored(part, token).complete:
                return None
            (self.folder / name).replace(final)
            self._record(name).unlink(missing_ok=True)
            self._forget(name)
        return final

    def discard(self, part: int, keep: Callable[[str], bool] = lambda token: False) -> None:
        """Remove what there is of a part, but for the claims that ``keep`` names."""
        with self._turn(part), self._reporting():
            with self._lock:
                names = sorted(self._known(part))
            for name in names:
                file = parse_part_file_name(name)
                if file is None or not keep(str(file.token)):
                    (self.folder / name).unlink(missing_ok=True)
                    self._record(name).unlink(missing_ok=True)
                    self._forget(name)

    def holds(self, part: int) -> bool:
        """Whether there may be anything of a part. Doesn't look at the disk, and so doesn't know at first."""
        return self._files is None or bool(self._files.get(part))

    def parts(self) -> list[int]:
        """The parts of which there is something."""
        with self._reporting(), self._lock:
            self._known(0)
            return sorted(part for part, names in (self._files or {}).items() if names)

    # --- files -------------------------------------------------------------------------------------------

    def _usable(
        self, part: int, own: str, whole: Whole, is_over: Callable[[str], bool]
    ) -> Iterator[tuple[int, str]]:
        """The files that hold blocks of these very bytes, with how many; none is in use by another claim."""
        with self._lock:
            names = sorted(self._known(part))
        for name in names:
            file = parse_part_file_name(name)
            if file is not None and (name == own or is_over(str(file.token))):
                done = self._proved(name, whole)
                if done:
                    yield done, name

    def _proved(self, name: str, whole: Whole) -> int:
        """How many blocks the record tells of and the bytes agree with, from the first on."""
        done = 0
        try:
            head, *lines = self._record(name).read_bytes().splitlines(keepends=True)
            if msgspec.json.decode(head, type=Whole) != whole:
                return 0
            with (self.folder / name).open("rb") as file:
                for line in lines:
                    start, stop = whole.span(done)
                    data = file.read(stop - start)
                    if len(data) != stop - start or line != _line(done, zlib.crc32(data)) or start >= stop:
                        break
                    done += 1
        except (FileNotFoundError, ValueError, msgspec.MsgspecError):
            return 0
        return done

    def _take_over(self, old: str, new: str, whole: Whole, done: int) -> None:
        """Give the first ``done`` blocks of ``old`` to ``new``, which may be the same or not be there yet. At
        every moment one of the two names has bytes and record."""
        lines: list[bytes] = []
        if done:
            lines = self._record(old).read_bytes().splitlines(keepends=True)[1 : done + 1]
        with atomic_file(self._record(new)) as file:
            file.write(msgspec.json.encode(whole) + b"\n")
            file.writelines(lines)
        if old != new:
            (self.folder / old).replace(self.folder / new)
        else:
            (self.folder / new).open("ab").close()
        sync_name(self.folder / new)
        if old != new:
            self._record(old).unlink(missing_ok=True)
            self._forget(old)

    def _turn(self, part: int) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(part, threading.Lock())

    def _forget(self, name: str) -> None:
        with self._lock:
            self._growing.pop(name, None)
            file = parse_part_file_name(name)
            if file is not None:
                self._known(file.part).discard(name)

    def _known(self, part: int) -> set[str]:
        """The names of a part's files; the folder is read once, by whoever asks first."""
        if self._files is None:
            self._files = {}
            with contextlib.suppress(FileNotFoundError):
                for path in self.folder.iterdir():
                    file = parse_part_file_name(path.name)
                    if file is not None:
                        self._files.setdefault(file.part, set()).add(path.name)
        return self._files.setdefault(part, set())

    def _record(self, name: str) -> Path:
        return self.folder / (name + _RECORD_SUFFIX)

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(exist_ok=True)
            sync_name(self.folder)

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutputError(
                f"the store's {printable(self.folder)} can't be used: {reason(error)}"
            ) from error


def _stored(whole: Whole, done: int) -> Stored:
    return Stored(done, min(done * whole.block_bytes, whole.size_bytes), done == whole.blocks)


def _line(index: int, crc: int) -> bytes:
    return b"%d %08x\n" % (index, crc)


def _write_synced(path: Path, data: bytes, flags: int, offset: int | None = None) -> None:
    handle = os.open(path, flags | os.O_NOFOLLOW)
    try:
        left = memoryview(data)
        while left:
            written = os.write(handle, left) if offset is None else os.pwrite(handle, left, offset)
            left = left[written:]
            offset = None if offset is None else offset + written
        os.fsync(handle)
    finally:
        os.close(handle)
