"""The journal's own thread, for an event loop that must not wait for a disk.

Rules of this file:
- ``append`` returns after the commit, so that nothing leaves the relay before it is durable;
- batches are committed in the order of the calls; those that came during a commit share the next one;
- what waits is bounded: at ``max_waiting`` batches, callers wait for room;
- who wants to read what is written asks this thread, too: there is one connection. Between two batches at
  most one such question is answered;
- after an error nothing more is written: what follows a lost batch would be a journal with a gap. Every
  waiting and later ``append`` gets that error, and the run is taken up from a newly opened journal.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from farm.events import Record
from farm.journal.journal import Journal


@dataclass(frozen=True, slots=True)
class _Batch:
    records: tuple[Record, ...]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Question:
    first: int
    records_max: int
    bytes_max: int
    answer: Future[list[bytes]]


class JournalWriter:
    """Writes to ``journal``, which it owns from now on. Used from one event loop, in any thread."""

    def __init__(self, journal: Journal, *, max_waiting: int = 512) -> None:
        self._journal = journal
        self._inbox: queue.SimpleQueue[_Batch | _Question | None] = queue.SimpleQueue()
        self._questions: deque[_Question] = deque()  #: taken from the inbox and not answered yet
        self._ended = threading.Event()
        self._room = asyncio.Semaphore(max_waiting)
        self._closed = False
        # A daemon: a process that dies of something else must not wait here for a farewell.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    async def append(self, records: Sequence[Record]) -> None:
        """Returns once the records, and all appended before them, are on the disk.

        Without records it just waits for those before. Cancelling it once it is in the queue doesn't take
        the records back. Raises OutputError when the disk refuses, ValueError for a gap in the numbers,
        RuntimeError after ``close``.
        """
        await self._room.acquire()
        if self._closed:
            self._room.release()
            raise RuntimeError("the journal is closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._inbox.put(_Batch(tuple(records), loop, done))
        await done

    def read(self, first: int, records_max: int, bytes_max: int) -> Future[list[bytes]]:
        """What ``Journal.bodies`` says, from any thread. Once the journal is closed it is cancelled."""
        question = _Question(first, records_max, bytes_max, Future())
        self._inbox.put(question)
        if self._ended.is_set():
            question.answer.cancel()
        return question.answer

    async def close(self) -> None:
        """Commit what waits, close the journal, end the thread. Closing twice is fine."""
        if not self._closed:
            self._closed = True
            self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        failure: Exception | None = None
        open_ = True
        while open_:
            batches, open_ = self._take()
            if batches and failure is None:
                try:
                    self._journal.append([record for batch in batches for record in batch.records])
                except Exception as error:
                    failure = error
            for batch in batches:
                self._settle(batch, failure)
            if self._questions:
                self._answer(self._questions.popleft())
        self._journal.close()
        self._ended.set()
        self._take_last()

    def _take(self) -> tuple[list[_Batch], bool]:
        """Wait for something and take all that is there; False once the last was taken."""
        batches: list[_Batch] = []
        try:
            item = self._inbox.get(block=not self._questions)
            while item is not None:
                if isinstance(item, _Question):
                    self._questions.append(item)
                else:
                    batches.append(item)
                item = self._inbox.get_nowait()
        except queue.Empty:
            return batches, True
        return batches, False

    def _take_last(self) -> None:
        """Nobody waits for an answer that won't come. A question that is asked after this is cancelled by who
        asks it."""
        while True:
            try:
                item = self._inbox.get_nowait()
            except queue.Empty:
                break
            if isinstance(item, _Question):
                self._questions.append(item)
        for question in self._questions:
            question.answer.cancel()

    def _answer(self, question: _Question) -> None:
        if not question.answer.set_running_or_notify_cancel():
            return
        try:
            question.answer.set_result(
                self._journal.bodies(question.first, question.records_max, question.bytes_max)
            )
        except Exception as error:
            question.answer.set_exception(error)

    def _settle(self, batch: _Batch, failure: Exception | None) -> None:
        def settle() -> None:
            self._room.release()
            if batch.done.done():  # the caller was cancelled
                return
            if failure is None:
                batch.done.set_result(None)
            else:
                batch.done.set_exception(failure)

        try:
            batch.loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the loop is gone, and the caller with it
            return
