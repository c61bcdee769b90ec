"""The journal's thread: appended means durable, in order, bounded, and errors reach the caller."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from farm.errors import OutputError
from farm.events import Record, decode_record
from farm.journal import Journal, JournalWriter
from tests.journal.helpers import credited, credits


def in_a_farm_thread(work: Coroutine[Any, Any, None]) -> None:
    """Run it as the farm does: in an event loop of its own that is not in the main thread."""
    failures: list[BaseException] = []

    def body() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def read(path: Path) -> list[Record]:
    journal = Journal.open(path)
    try:
        return list(journal.records())
    finally:
        journal.close()


class GatedJournal(Journal):
    """A real journal whose commits wait for ``gate``; notes the sizes of its batches."""

    gate: threading.Event
    entered: threading.Event
    sizes: list[int]

    @classmethod
    def make(cls, path: Path) -> GatedJournal:
        journal = cls.create(path)
        assert isinstance(journal, GatedJournal)
        journal.gate, journal.entered, journal.sizes = threading.Event(), threading.Event(), []
        return journal

    def append(self, records: Sequence[Record]) -> None:
        self.entered.set()
        assert self.gate.wait(30)
        self.sizes.append(len(records))
        super().append(records)


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


def test_appended_is_durable(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def work() -> None:
        writer = JournalWriter(Journal.create(path))
        await writer.append(credits(0, 3))
        # A copy of the files at this moment is what a crash would leave.
        copy = tmp_path / "crashed"
        copy.mkdir()
        for file in tmp_path.glob("journal.db*"):
            (copy / file.name).write_bytes(file.read_bytes())
        assert read(copy / "journal.db") == credits(0, 3)
        await writer.close()
        await writer.close()

    in_a_farm_thread(work())
    assert read(path) == credits(0, 3)


def test_calls_at_once_keep_their_order_and_share_commits(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def work() -> None:
        journal = GatedJournal.make(path)
        writer = JournalWriter(journal)
        calls = [asyncio.create_task(writer.append([credited(0)]))]
        await until(journal.entered)
        calls += [asyncio.create_task(writer.append([credited(seq)])) for seq in range(1, 200)]
        await asyncio.sleep(0)
        assert not any(call.done() for call in calls), "nothing is acknowledged before its commit"
        journal.gate.set()
        await asyncio.gather(*calls)
        await writer.close()
        assert journal.sizes == [1, 199]

    in_a_farm_thread(work())
    assert read(path) == credits(0, 200)


def test_what_waits_is_bounded_and_nothing_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def work() -> None:
        journal = GatedJournal.make(path)
        writer = JournalWriter(journal, max_waiting=8)
        calls = [asyncio.create_task(writer.append([credited(seq)])) for seq in range(50)]
        await until(journal.entered)
        await asyncio.sleep(0)
        assert writer._inbox.qsize() <= 8
        journal.gate.set()
        await asyncio.gather(*calls)
        assert max(journal.sizes) <= 8
        await writer.close()

    in_a_farm_thread(work())
    assert read(path) == credits(0, 50)


def test_an_empty_append_waits_for_those_before(tmp_path: Path) -> None:
    async def work() -> None:
        journal = GatedJournal.make(tmp_path / "journal.db")
        writer = JournalWriter(journal)
        first = asyncio.create_task(writer.append([credited(0)]))
        await until(journal.entered)
        barrier = asyncio.create_task(writer.append([]))
        await asyncio.sleep(0)
        assert not barrier.done()
        journal.gate.set()
        await barrier
        assert first.done()
        await writer.close()

    in_a_farm_thread(work())


def test_close_commits_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def work() -> None:
        journal = GatedJournal.make(path)
        writer = JournalWriter(journal)
        calls = [asyncio.create_task(writer.append([credited(seq)])) for seq in range(5)]
        await until(journal.entered)
        closing = asyncio.create_task(writer.close())
        journal.gate.set()
        await closing
        await asyncio.gather(*calls)
        with pytest.raises(RuntimeError, match="closed"):
            await writer.append([credited(5)])

    in_a_farm_thread(work())
    assert read(path) == credits(0, 5)


def test_a_cancelled_call_takes_nothing_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def work() -> None:
        journal = GatedJournal.make(path)
        writer = JournalWriter(journal, max_waiting=2)
        cancelled = asyncio.create_task(writer.append([credited(0)]))
        await until(journal.entered)
        cancelled.cancel()
        journal.gate.set()
        for seq in range(1, 6):  # more than there are places: the cancelled one gave its place back
            await writer.append([credited(seq)])
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await writer.close()

    in_a_farm_thread(work())
    assert read(path) == credits(0, 6)


def test_a_full_disk_reaches_every_caller_and_nothing_is_written_after_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def work() -> None:
        journal = Journal.create(path)
        journal.append(credits(0, 10))
        pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
        journal._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        writer = JournalWriter(journal)
        with pytest.raises(OutputError, match="the disk is full"):
            await writer.append(credits(10, 1000))
        with pytest.raises(OutputError, match="the disk is full"):
            await writer.append(credits(10, 1))
        with pytest.raises(OutputError, match="the disk is full"):
            await writer.append([])
        await writer.close()

    in_a_farm_thread(work())
    assert read(path) == credits(0, 10)


def test_a_gap_is_our_own_bug_and_not_hidden(tmp_path: Path) -> None:
    async def work() -> None:
        writer = JournalWriter(Journal.create(tmp_path / "journal.db"))
        with pytest.raises(ValueError, match="does not follow"):
            await writer.append([credited(1)])
        await writer.close()

    in_a_farm_thread(work())


def test_a_loop_that_is_gone_does_not_stop_the_commit(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    journal = GatedJournal.make(path)
    writers = []

    async def work() -> None:
        writer = JournalWriter(journal)
        writers.append(writer)
        call = asyncio.create_task(writer.append([credited(0)]))
        await until(journal.entered)
        call.cancel()

    in_a_farm_thread(work())
    journal.gate.set()
    asyncio.run(writers[0].close())
    assert read(path) == [credited(0)]
    with pytest.raises(sqlite3.ProgrammingError):
        journal.append([credited(1)])


# --- reading what is written -----------------------------------------------------------------------------


def test_what_is_on_disk_can_be_read_meanwhile_from_any_thread_in_bounded_pieces(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "journal.db")

    async def work() -> None:
        writer = JournalWriter(journal)
        await writer.append(credits(0, 100))
        asked = [writer.read(first, 30, 1 << 20) for first in (0, 30, 60, 90, 100)]
        await writer.append(credits(100, 1))
        pieces = [await asyncio.to_thread(answer.result, 10) for answer in asked]
        assert [len(piece) for piece in pieces[:3]] == [30, 30, 30] and len(pieces[3]) in (10, 11)
        assert [decode_record(body) for piece in pieces[:3] for body in piece] == credits(0, 90)
        small = await asyncio.wrap_future(writer.read(0, 30, 1))
        assert len(small) == 1  # one at least, however large
        await writer.close()

    in_a_farm_thread(work())


def test_questions_never_hold_up_more_than_one_commit_each(tmp_path: Path) -> None:
    """Between two batches one question is answered, however many there are."""
    journal = Journal.create(tmp_path / "journal.db")
    asked: list[int] = []
    bodies = journal.bodies

    def counted(*arguments: int) -> list[bytes]:
        asked.append(journal.last_seq)
        return bodies(*arguments)

    journal.bodies = counted  # type: ignore[method-assign]

    async def work() -> None:
        writer = JournalWriter(journal)
        await writer.append(credits(0, 1))
        answers = [writer.read(0, 500, 1 << 20) for _ in range(50)]
        await writer.append(credits(1, 1))
        assert sum(seq == 0 for seq in asked) <= 50 - len([a for a in answers if not a.done()])
        for answer in answers:
            await asyncio.wrap_future(answer)
        await writer.close()

    in_a_farm_thread(work())
    assert len(asked) == 50


def test_nobody_waits_for_an_answer_of_a_closed_journal(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "journal.db")

    async def work() -> None:
        writer = JournalWriter(journal)
        await writer.append(credits(0, 1))
        before = [writer.read(0, 1, 1) for _ in range(20)]
        await writer.close()
        after = writer.read(0, 1, 1)
        assert after.cancelled()
        assert all(answer.done() for answer in before)

    in_a_farm_thread(work())
