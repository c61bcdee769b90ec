"""What a run can be taken up from, and how it ends when there is nothing left to do.

The journal says all; the run's note (``run.json``) says with what the run was begun, should the journal be
damaged or gone. What is finished is then proved from the store: a valid part file says by itself of which
input, settings and grid it is.

Rules of this file:
- a damaged journal is set aside, never removed, and nothing of it is believed;
- one of a newer version is left as it is, and refused;
- nothing here believes a note that doesn't match its own checksum.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from farm import events as ev
from farm.errors import OutputError
from farm.folder import RunFolder
from farm.journal import Journal, JournalDamaged, RunCatalogue
from farm.paths import atomic_file, printable
from farm.relay.books import Books
from farm.store import Store


class _Note(msgspec.Struct, frozen=True):
    crc: int
    opened: msgspec.Raw


def note_run(folder: RunFolder, opened: ev.RunOpened) -> None:
    """Write down with what the run is begun. Raises OutputError."""
    body = msgspec.json.encode(opened)
    with atomic_file(folder.note) as file:
        file.write(msgspec.json.encode(_Note(zlib.crc32(body), msgspec.Raw(body))))


def noted_run(folder: RunFolder) -> ev.RunOpened | None:
    """With what the run was begun, if that is still to be read."""
    try:
        note = msgspec.json.decode(folder.note.read_bytes(), type=_Note)
        if zlib.crc32(note.opened) != note.crc:
            return None
        return msgspec.json.decode(note.opened, type=ev.RunOpened)
    except (OSError, msgspec.DecodeError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A run folder's journal, open, and what is known of the run."""

    journal: Journal
    books: Books  #: folded from all records
    history: tuple[ev.Record, ...]  #: all records but heartbeats, of which a run of days has millions
    last_at: float  #: lease seconds of the newest record
    opened: ev.RunOpened | None  #: with what the run was begun, from the journal or else from the note
    damage: str = ""  #: what became of the journal, in words; empty: it is as it was written


def take_journal(folder: RunFolder) -> Taken:
    """Open the journal and read it; a damaged or missing one is replaced by an empty one.

    Raises JournalBusy, JournalNewer, OutputError.
    """
    noted = noted_run(folder)
    journal: Journal | None = None
    try:
        journal = Journal.open(folder.journal)
        books, history, last_at = _fold(journal)
    except JournalDamaged as error:
        if journal is not None:
            journal.close()
        damage = _set_aside(folder, error)
        journal = Journal.create(folder.journal)
        return Taken(journal=journal, books=Books(), history=(), last_at=0.0, opened=noted, damage=damage)
    except BaseException:
        if journal is not None:
            journal.close()
        raise
    first = history[0].event if history else None
    damage = "" if history or not Store(folder.store).scan() else "the journal had recorded nothing"
    opened = first if isinstance(first, ev.RunOpened) else noted
    return Taken(journal=journal, books=books, history=history, last_at=last_at, opened=opened, damage=damage)


def _fold(journal: Journal) -> tuple[Books, tuple[ev.Record, ...], float]:
    """Raises JournalDamaged, also for records that contradict each other."""
    books, history, last_at = Books(), [], 0.0
    for record in journal.records():
        try:
            books.apply(record.at, record.event)
        except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
            raise JournalDamaged(
                f"the journal {printable(journal.path)} is damaged: record {record.seq} makes no sense"
            ) from error
        last_at = record.at
        if not isinstance(record.event, ev.LeaseRenewed):
            history.append(record)
    return books, tuple(history), last_at


def _set_aside(folder: RunFolder, error: JournalDamaged) -> str:
    if not folder.journal.exists():
        folder.set_journal_aside()  # what SQLite may have left beside it
        return "the journal was gone"
    aside = folder.set_journal_aside()
    return f"{error}; it is kept as {printable(aside.name)}"


def finish(folder: RunFolder, run_id: str, *, keep: bool) -> Path | None:
    """After a good end: keep the recording, and remove the run folder unless it is to stay; the journal is
    closed. Returns the recording, if it could be kept. Raises OutputError."""
    recording: Path | None = None
    journal: Journal | None = None
    try:
        journal = Journal.open(folder.journal)
        entry = RunCatalogue().save(run_id, journal.records())
        recording = Path(entry.recording) if entry.recording else None
    except OutputError:
        pass  # a recording that can't be kept is no reason to fail a verified output
    finally:
        if journal is not None:
            journal.close()
    if keep:
        folder.close()
    else:
        folder.remove()
    return recording
