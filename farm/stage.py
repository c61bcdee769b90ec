"""What the phases of a job have in common: they are written down, their work can be cut short by a command to
stop, and the lease clock stays awake meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

from farm import events as ev
from farm.clock import LeaseClock
from farm.errors import InterruptedRun
from farm.eventlog import EventLog
from farm.relay.turn import Outcome

Phase = Literal["probe", "measure", "work", "stitch", "verify", "report"]


class Stage:
    """Of one job, in one event loop. Nothing may be written down before ``log`` is set."""

    log: EventLog

    def __init__(self, clock: LeaseClock) -> None:
        self.clock = clock
        self.phase: Phase = "probe"
        self._stopped = False
        self._work: asyncio.Task[Any] | None = None

    def stop(self) -> None:
        """Cut short what a phase is at; nothing more begins."""
        self._stopped = True
        if self._work is not None:
            self._work.cancel()

    def check_stop(self) -> None:
        """Raises InterruptedRun if the job was told to stop."""
        if self._stopped:
            raise InterruptedRun("stopped; what was finished is kept")

    async def enter(self, phase: Phase) -> None:
        """Raises InterruptedRun."""
        self.check_stop()
        self.phase = phase
        await self.log.commit(self.clock.now(), [ev.PhaseStarted(phase=phase)])

    async def commit(self, outcome: Outcome) -> None:
        """What the relay decided, once it is durable. Raises OutputError."""
        await self.log.commit(self.clock.now(), outcome.events)

    async def note(self, level: Literal["info", "warning", "error"], text: str) -> None:
        """Raises OutputError."""
        await self.log.commit(self.clock.now(), [ev.Notice(level=level, text=text)])

    def progress(self, phase: Phase) -> Callable[[float], None]:
        """What shows how far a phase is, from 0 to 1."""

        def show(fraction: float) -> None:
            self.log.show(self.clock.now(), ev.PhaseProgressed(phase=phase, fraction=fraction))

        return show

    async def guard(self, work: Any) -> Any:
        """Await work of a phase, which ``stop`` may cut short. Raises InterruptedRun then."""
        self._work = asyncio.ensure_future(work)
        beat = asyncio.create_task(self._beat())
        try:
            return await self._work
        except asyncio.CancelledError:
            self.check_stop()
            raise
        finally:
            self._work = None
            beat.cancel()

    async def _beat(self) -> None:
        """Keep the lease clock awake while nobody else does."""
        while True:
            self.clock.beat()
            await asyncio.sleep(0.1)
