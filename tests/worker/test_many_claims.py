"""Worker processes that claim all at once: what the books, the journal and the store say of it agree."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

from farm import events as ev
from farm.clock import LeaseClock
from farm.engines.local import LocalEngine, prepare
from farm.eventlog import EventLog
from farm.fleet import uniform_fleet
from farm.guard import Watches
from farm.host import End, RelayHost
from farm.journal import Journal, JournalWriter
from farm.loopwatch import LoopWatch
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.validate import validate
from farm.settings import JobSettings
from farm.store import Store
from farm.worker.spec import WorkerSpec
from tests.relay.virtual import opened
from tests.worker.harness import write_part

WORKERS = 8


async def run_all(folder: Path, parts: int) -> tuple[End, Books, list[ev.Record]]:
    """A claim a part; returns how it ended, the books, and what the journal holds when it is read again."""
    cuts = tuple(range(0, 2 * parts + 1, 2))
    for name in ("store", "spool", "logs"):
        (folder / name).mkdir()
    specs = [
        WorkerSpec(
            profile=profile,
            index_path=folder,
            settings=JobSettings(),
            settings_hash="hash",
            cuts=cuts,
            store_dir=folder / "store",
            spool_dir=folder / "spool" / profile.name,
            log_dir=folder / "logs",
        )
        for profile in uniform_fleet(WORKERS)
    ]
    writer = JournalWriter(Journal.create(folder / "journal.db"))
    relay, clock = Relay(Books()), LeaseClock()
    log = EventLog(writer, 0, lambda records: None)
    options = ev.RelayOptions(policy="fixed,2", tail="duplicate-oldest", claim_ahead=False)
    await log.commit(0.0, relay.open(opened(cuts, options), 0.0).events)
    await log.commit(0.0, relay.start(0.0).events)
    engine = LocalEngine("tests.worker.claiming:work", preload=())
    watches = Watches(LoopWatch(time.monotonic))
    store = Store(folder / "store")
    host = RelayHost(relay, log, engine, store, clock, specs, "hash", lambda: None, watches)
    end = await host.run()
    await writer.close()
    journal = Journal.open(folder / "journal.db")
    records = list(journal.records())
    journal.close()
    return end, relay.books, records


def test_eight_processes_claim_every_part_once_and_lose_none(tmp_path: Path) -> None:
    """RG47: eight processes, a thousand claims. None is lost, none is granted twice while it is held, nobody
    meets a lock, and the store has one file for each."""
    parts = 1000
    prepare()
    end, books, records = asyncio.run(run_all(tmp_path, parts))
    assert end is End.FINISHED
    validate(books)
    events = [record.event for record in records]
    credits = [event for event in events if isinstance(event, ev.PartCredited)]
    assert Counter(credit.part for credit in credits) == Counter(range(parts)), "0 lost, 0 double"
    first = [event for event in events if isinstance(event, ev.ClaimGranted) and not event.duplicate]
    assert Counter(event.start // 2 for event in first) == Counter(range(parts))
    assert not [event for event in events if isinstance(event, ev.ClaimRefused | ev.PartFailed)]
    assert len({credit.worker for credit in credits}) > 1
    names = {credit.file for credit in credits}
    assert {path.name for path in (tmp_path / "store").iterdir()} == names and len(names) == parts
    expected = write_part(tmp_path / "one", 0, 0, 2)
    assert next(credit for credit in credits if credit.part == 0).sha256 == expected.sha256
