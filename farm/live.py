"""A live run as the console sees it: the farm in a thread of its own, with its own event loop, behind the
``Source`` interface. The main thread stays free for the terminal and for signals."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

from farm.clock import Clock
from farm.commands import AnyCommand
from farm.engines.base import Engine
from farm.errors import ExitCode
from farm.events import Record
from farm.job import Job, JobResult
from farm.journal import JournalWriter
from farm.pipe import RecordPipe
from farm.plan import OpenedRun
from farm.view import World


class Witness(Protocol):
    """Who is told of the run besides its owner, in the farm's thread; never blocks (farm.attach.server)."""

    def publish(self, records: Sequence[Record]) -> None: ...

    def opened(self, journal: JournalWriter) -> None: ...

    def ended(self, exit_code: int, message: str) -> None: ...


class LiveRun:
    """Runs a job; a ``farm.view.Source``. All methods may be called from any thread."""

    def __init__(
        self,
        run: OpenedRun,
        *,
        run_id: str,
        engine: Callable[[], Engine],
        wall_time: Callable[[], str],
    ) -> None:
        self._run = run
        self._run_id = run_id
        self._engine = engine
        self._wall_time = wall_time
        self._records = RecordPipe()
        self._done = threading.Event()
        self._started = threading.Event()
        self._result: JobResult | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._job: Job | None = None
        self._thread = threading.Thread(target=self._main, name="farm", daemon=True)
        self.witness: Witness | None = None  #: to be set before the start

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    @property
    def history(self) -> int:
        """How many records are from earlier starts of the run."""
        return self._run.history

    @property
    def result(self) -> JobResult | None:
        """How the run ended; None while it goes on."""
        return self._result

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the end of the run; whether it came."""
        return self._done.wait(timeout_seconds)

    def wait_news(self, timeout_seconds: float) -> None:
        """Wait until there are records to take, the run ended, or the time is over."""
        self._records.wait(timeout_seconds)

    # --- Source ------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        return "live"

    @property
    def ended(self) -> bool:
        return self._done.is_set()

    def now(self) -> float:
        clock: Clock | None = self._job.clock if self._job is not None else None
        return clock.now() if clock is not None else self._run.last_at

    def take(self) -> Sequence[Record]:
        return self._records.take()

    def send(self, command: AnyCommand) -> str | None:
        if self._done.is_set() or self._loop is None or self._job is None:
            return "the run is over"
        try:
            self._loop.call_soon_threadsafe(self._job.command, command)
        except RuntimeError:
            return "the run is over"
        return None

    # --- the farm's thread -------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._result = asyncio.run(self._work())
        except BaseException:
            self._result = JobResult(exit_code=ExitCode.BUG, message=traceback.format_exc())
        finally:
            if self.witness is not None and self._result is not None:
                self.witness.ended(self._result.exit_code, self._result.message)
            self._done.set()
            self._started.set()
            self._records.wake()

    async def _work(self) -> JobResult:
        self._loop = asyncio.get_running_loop()
        self._job = Job(
            self._run,
            run_id=self._run_id,
            engine=self._engine(),
            publish=self._publish,
            wall_time=self._wall_time,
            backlog=lambda: len(self._records),
            on_journal=self._opened,
        )
        self._started.set()
        return await self._job.run()

    def _publish(self, records: Sequence[Record]) -> None:
        self._records.put(records)
        if self.witness is not None:
            self.witness.publish(records)

    def _opened(self, journal: JournalWriter) -> None:
        if self.witness is not None:
            self.witness.opened(journal)
