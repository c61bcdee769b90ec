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
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern

import msgspec

from farm import events as ev
from farm.errors import OutputError
from farm.folder import RunFolder
from farm.journal import Journal, JournalDamaged, RunCatalogue
from farm.manifest import manifest_of, write_manifest
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
    return read_note(folder.note)


def read_note(path: Path) -> ev.RunOpened | None:
    """The same, of a run whose folder isn't held."""
    try:
        note = msgspec.json.decode(path.read_bytes(), type=_Note)
        if zlib.crc32(note.opened) != note.crc:
            return None
        return msgspec.json.decode(note.opened, type=ev.RunOpened)
    except (OSError, msgspec.DecodeError):
        return None


@dataclass(slots=True)
class History:
    """What a journal's records come to. They are not kept: a long run has too many."""

    books: Books = field(default_factory=Books)
    records: int = 0
    opened: ev.RunOpened | None = None  #: the first record, if it is what it should be
    last: ev.AnyEvent | None = None
    last_at: float = 0.0  #: lease seconds
    verified: ev.OutputVerified | None = None  #: the newest

    def fold(self, record: ev.Record) -> None:
        event = record.event
        match event:
            case ev.RunOpened() if not self.records:
                self.opened = event
            case ev.OutputVerified():
                self.verified = event
            case ev.PartCredited(worker=worker, token=token):
                # The books keep a credit for every part: with names that are the same object in all of them.
                event = msgspec.structs.replace(event, worker=intern(worker), token=intern(token))
            case _:
                pass
        self.books.apply(record.at, event)
        self.records += 1
        self.last, self.last_at = event, record.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A run folder's journal, open, and what is known of the run."""

    journal: Journal
    history: History
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
        history = _fold(journal)
    except JournalDamaged as error:
        if journal is not None:
            journal.close()
        damage = _set_aside(folder, error)
        return Taken(journal=Journal.create(folder.journal), history=History(), opened=noted, damage=damage)
    except BaseException:
        if journal is not None:
            journal.close()
        raise
    empty = not history.records and bool(Store(folder.store).scan())
    damage = "the journal had recorded nothing" if empty else ""
    return Taken(journal=journal, history=history, opened=history.opened or noted, damage=damage)


def _fold(journal: Journal) -> History:
    """Raises JournalDamaged, also for records that contradict each other."""
    history = History()
    for record in journal.records():
        try:
            history.fold(record)
        except (ArithmeticError, AssertionError, LookupError, ValueError) as error:
            raise JournalDamaged(
                f"the journal {printable(journal.path)} is damaged: record {record.seq} makes no sense"
            ) from error
    return history


def _set_aside(folder: RunFolder, error: JournalDamaged) -> str:
    if not folder.journal.exists():
        folder.set_journal_aside()  # what SQLite may have left beside it
        return "the journal was gone"
    aside = folder.set_journal_aside()
    return f"{error}; it is kept as {printable(aside.name)}"


def finish(folder: RunFolder, run_id: str, *, keep: bool, manifest: Path | None = None) -> Path | None:
    """After a good end: write the manifest if one is asked for, keep the recording, and remove the run folder
    unless it is to stay; the journal is closed. Returns the recording, if it could be kept. Raises
    OutputError; the folder is there then."""
    if manifest is not None:
        _write_manifest(folder, manifest)
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


def _write_manifest(folder: RunFolder, path: Path) -> None:
    journal = Journal.open(folder.journal)
    try:
        manifest = manifest_of(journal.records())
    finally:
        journal.close()
    if manifest is None:
        raise OutputError(f"{printable(path)} can't be written: an older uneven verified the output")
    write_manifest(manifest, path)
