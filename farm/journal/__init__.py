"""The durable event log of a run: SQLite while the run lives, a recording once it is over."""

from farm.journal.journal import Journal, JournalBusy, JournalDamaged, JournalNewer
from farm.journal.recording import RunCatalogue, RunEntry, read_recording, write_recording
from farm.journal.writer import JournalWriter

__all__ = [
    "Journal",
    "JournalBusy",
    "JournalDamaged",
    "JournalNewer",
    "JournalWriter",
    "RunCatalogue",
    "RunEntry",
    "read_recording",
    "write_recording",
]
