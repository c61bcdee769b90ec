"""The journal: a run's records in SQLite.

Rules of this file:
- what ``append`` returned from is on the disk (write-ahead log, ``synchronous=FULL``) or was never there:
  a batch is one transaction, and sequence numbers have no gaps;
- one connection, used by one thread at a time, which holds the file exclusively: no second reader, no shared
  memory, so that it works on a network folder and out of reach of the WAL-reset race (DESIGN.md §10);
- a journal appears under its name complete with its schema, so that an empty file is damage and not a start;
- nothing read is believed: application id and version, sequence and a checksum of every record are compared,
  and what doesn't fit is said in words;
- never opens the file but through SQLite: closing any other handle would drop its locks (POSIX).
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from farm.errors import OutputError, UnevenError
from farm.events import Record, decode_record, encode_record
from farm.paths import printable, reason, sync_file, sync_name

APPLICATION_ID = 0x756E6576  # "unev"
JOURNAL_VERSION = 1
#: No version to come is greater: a number beyond it is damage.
_VERSION_MAX = 999

_SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {JOURNAL_VERSION};
CREATE TABLE records (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    wall_time TEXT NOT NULL,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL
);
COMMIT;
"""
_INSERT = "INSERT INTO records (seq, at, wall_time, crc, body) VALUES (?, ?, ?, ?, ?)"
_SIBLINGS = ("-wal", "-shm", "-journal", ".new", ".new-journal")


class JournalDamaged(OutputError):
    """The file is missing, no journal, or damaged."""


class JournalNewer(OutputError):
    """The journal was made by a newer version."""


class JournalBusy(OutputError):
    """Another process, or another connection of this one, holds the journal."""


def utc_now() -> str:
    """Wall clock time, for people only."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Journal:
    """An open journal. Made by ``create`` or ``open``; may be handed to another thread, never shared."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, last_seq: int, wall_time: Callable[[], str]
    ) -> None:
        self.path = path
        self._connection = connection
        self._last_seq = last_seq
        self._wall_time = wall_time

    @classmethod
    def create(cls, path: Path, *, wall_time: Callable[[], str] = utc_now) -> Journal:
        """A new journal without records. Raises OutputError if the file exists or can't be made."""
        fresh = path.with_name(path.name + ".new")
        try:
            if os.path.lexists(path):
                raise OutputError(
                    f"the journal {printable(path)} exists already; resume its run or remove it"
                )
            # Left by a crash. A stale write-ahead log would be read into the new journal.
            for suffix in _SIBLINGS:
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            with (
                _explained(path),
                closing(sqlite3.connect(fresh.absolute(), isolation_level=None)) as connection,
            ):
                connection.executescript(_SCHEMA)
            sync_file(fresh)
            fresh.rename(path)
        except OSError as error:
            raise OutputError(f"the journal {printable(path)} can't be made: {reason(error)}") from error
        sync_name(path)
        return cls.open(path, wall_time=wall_time)

    @classmethod
    def open(cls, path: Path, *, wall_time: Callable[[], str] = utc_now) -> Journal:
        """An existing journal, held until it is closed.

        Raises JournalDamaged, JournalNewer, JournalBusy, or OutputError if it can't be read or written here.
        """
        if not os.path.isfile(path):  # noqa: PTH113 - no error for an unreadable folder; SQLite would make a file
            raise JournalDamaged(f"there is no journal {printable(path)}; the run can't be taken up from it")
        with _explained(path):  # absolute: a name that begins with "file:" would be taken for a URI
            connection = sqlite3.connect(
                path.absolute(), timeout=0.0, isolation_level=None, check_same_thread=False
            )
            try:
                last_seq = _prepare(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection, last_seq, wall_time)

    @property
    def last_seq(self) -> int:
        """The number of the last record; -1 when there is none."""
        return self._last_seq

    def append(self, records: Sequence[Record]) -> None:
        """Write the records in one transaction; when this returns they are on the disk.

        Their numbers follow ``last_seq`` without a gap (else ValueError). Raises OutputError when the disk
        refuses; nothing of the batch was written then, and it may be tried again.
        """
        if not records:
            return
        wall_time = self._wall_time()
        rows = []
        for seq, record in enumerate(records, self._last_seq + 1):
            if record.seq != seq:
                raise ValueError(f"record {record.seq} does not follow record {seq - 1}")
            body = _encoded(record)
            rows.append((seq, record.at, wall_time, zlib.crc32(body), body))
        with _explained(self.path):
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(_INSERT, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._last_seq = records[-1].seq

    def records(self) -> Iterator[Record]:
        """All records, oldest first. Raises JournalDamaged at the first that is not as it was written."""
        expected = 0
        with _explained(self.path):
            for seq, body, crc in self._connection.execute("SELECT seq, body, crc FROM records ORDER BY seq"):
                if seq != expected:
                    raise _damaged(self.path, f"record {expected} is missing")
                if not isinstance(body, bytes) or zlib.crc32(body) != crc:
                    raise _damaged(self.path, f"record {seq} does not match its checksum")
                try:
                    record = decode_record(body)
                except msgspec.DecodeError as error:
                    raise _damaged(self.path, f"record {seq} can't be understood ({error})") from error
                if record.seq != seq:
                    raise _damaged(self.path, f"record {seq} says that it is {record.seq}")
                yield record
                expected += 1
        if expected != self._last_seq + 1:
            raise _damaged(self.path, f"it ends after {expected} of {self._last_seq + 1} records")

    def bodies(self, first: int, records_max: int, bytes_max: int) -> list[bytes]:
        """The records from number ``first`` on, encoded as they are here: ``records_max`` of them at most,
        and no more once they have ``bytes_max`` bytes together. Raises JournalDamaged for one that is not as
        it was written."""
        found: list[bytes] = []
        size = 0
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT seq, body, crc FROM records WHERE seq >= ? ORDER BY seq LIMIT ?", (first, records_max)
            )
            for seq, body, crc in rows:
                if size >= bytes_max:
                    break
                if not isinstance(body, bytes) or zlib.crc32(body) != crc:
                    raise _damaged(self.path, f"record {seq} does not match its checksum")
                found.append(body)
                size += len(body)
        return found

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it. Closing twice is fine."""
        self._connection.close()


def _prepare(connection: sqlite3.Connection, path: Path) -> int:
    """Lock and check a journal just connected to; returns its last sequence number."""

    def ask(query: str) -> object:
        row = connection.execute(query).fetchone()
        return None if row is None else row[0]

    # Before the first read: only so does SQLite keep the index of the write-ahead log in its own memory.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    if ask("PRAGMA application_id") != APPLICATION_ID:
        raise JournalDamaged(f"{printable(path)} is not a journal of uneven, or its beginning is damaged")
    version = ask("PRAGMA user_version")
    if isinstance(version, int) and JOURNAL_VERSION < version <= _VERSION_MAX:
        raise JournalNewer(
            f"the journal {printable(path)} has version {version} and this uneven reads {JOURNAL_VERSION}; "
            "use the uneven that made it"
        )
    if version != JOURNAL_VERSION:
        raise _damaged(path, f"it says to be of version {version}, which there never was")
    if ask("PRAGMA journal_mode = WAL") != "wal":
        raise OutputError(f"the journal {printable(path)} can't be used on this file system; use --temp")
    connection.execute("PRAGMA synchronous = FULL")
    last = ask("SELECT max(seq) FROM records")
    if last is None:
        return -1
    if not isinstance(last, int):
        raise _damaged(path, f"its last record is number {last!r}")
    return last


def _encoded(record: Record) -> bytes:
    """The record's bytes, sure to be read back: JSON has no word for infinities, which would come as null."""
    body = encode_record(record)
    try:
        decode_record(body)
    except msgspec.DecodeError as error:
        raise ValueError(f"record {record.seq} could not be read back: {error}") from error
    return body


def _damaged(path: Path, what: str) -> JournalDamaged:
    return JournalDamaged(f"the journal {printable(path)} is damaged: {what}")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says into our errors. Misuse of the connection is our own bug and passes."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except UnicodeDecodeError as error:  # a file's bytes in what SQLite says of it
        raise _damaged(path, "it holds what SQLite can't make sense of") from error
    except sqlite3.Error as error:
        raise _explanation(path, error) from error


def _explanation(path: Path, error: sqlite3.Error) -> UnevenError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return JournalBusy(
                f"the journal {printable(path)} is in use by another uneven; stop that one first"
            )
        case sqlite3.SQLITE_FULL:
            why = "the disk is full; make room and resume the run"
        case sqlite3.SQLITE_READONLY if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
            return _damaged(path, str(error))  # a number in its head says that it may not be written
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            why = f"permission denied, or the folder is gone ({error})"
        case sqlite3.SQLITE_IOERR if code != sqlite3.SQLITE_IOERR_SHORT_READ:
            why = f"the disk reports an error ({error})"
        case sqlite3.SQLITE_NOMEM:
            why = "out of memory"
        case _:
            return _damaged(path, str(error))
    return OutputError(f"the journal {printable(path)} can't be written: {why}")
