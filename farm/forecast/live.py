"""Estimates beside a live run: now and then the books are looked at in the loop, which takes a millisecond,
and what follows from that is worked out in a thread.

Rule: an estimate is for people. Whatever goes wrong with it ends the estimates, said once, and never the run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from farm.clock import Clock
from farm.eventlog import EventLog
from farm.events import FinishEstimated, Notice
from farm.forecast.estimate import REPLAY_WORKERS_MAX, estimate
from farm.forecast.forecaster import Forecaster
from farm.forecast.outlook import outlook_of
from farm.relay.relay import Relay

EVERY_SECONDS: Final = 1.0
#: For a large fleet, of which a look takes longer.
EVERY_SECONDS_LARGE: Final = 5.0


@contextlib.asynccontextmanager
async def forecasting(
    relay: Relay, log: EventLog, clock: Clock, every_seconds: float = EVERY_SECONDS
) -> AsyncIterator[None]:
    """While the block lasts, show an estimate every ``every_seconds``."""
    task = asyncio.create_task(_forecast(relay, log, clock, every_seconds))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _forecast(relay: Relay, log: EventLog, clock: Clock, every_seconds: float) -> None:
    forecaster, books = Forecaster(), relay.books
    try:
        while True:
            if books.paused_at is None and not books.draining:
                now = clock.now()
                found = await asyncio.to_thread(estimate, outlook_of(books, *relay.schedule, now))
                log.show(now, forecaster.tell(now, found))
            large = len(books.workers) > REPLAY_WORKERS_MAX
            await asyncio.sleep(max(every_seconds, EVERY_SECONDS_LARGE) if large else every_seconds)
    except Exception as error:
        log.show(clock.now(), FinishEstimated())
        text = f"no more estimates of the finishing time: {type(error).__name__}: {error}"
        log.show(clock.now(), Notice(level="warning", text=text))
