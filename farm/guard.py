"""Keeps the workers' memory within bounds while they work: measures, asks ``MemoryBooks``, has the host act.

Rule: measuring reads a file for each worker, so it is done in a thread and not on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from farm import events as ev
from farm.cgroup import oom_kills
from farm.loopwatch import LoopWatch
from farm.machine import available_memory_bytes
from farm.memory import MemoryBooks, Sample

#: How often memory is measured; an encoder that grows fast does so by a few pictures meanwhile.
SAMPLE_SECONDS = 0.25
#: … of so many workers; of more it is measured more seldom, for each costs a tenth of a millisecond.
SAMPLE_WORKERS = 32


def measure(pids: Mapping[str, int]) -> Sample:
    """What the workers with these processes use, and what is available; blocks for a moment."""
    used = {}
    for worker, pid in pids.items():
        try:
            used[worker] = int(psutil.Process(pid).memory_info().rss)
        except psutil.Error:
            continue  # it has just ended
    return Sample(used=used, available=available_memory_bytes())


@dataclass(frozen=True, slots=True)
class Watches:
    """What a stretch of work is watched with."""

    loop: LoopWatch
    gate_bytes: int = 0  #: what all workers together may fill; 0: no gate
    measure: Callable[[Mapping[str, int]], Sample] = measure
    oom_kills: Callable[[], int] = field(default=oom_kills)  #: by the system, ever
    worker_bytes: int = 0  #: what a worker may need; 0: not known
    cores: float = 0.0  #: that workers may use; 0: not known


class Guarded(Protocol):
    """What the guard needs of the host. Called in its event loop."""

    @property
    def pids(self) -> Mapping[str, int]: ...

    @property
    def memfree_bytes(self) -> int: ...

    def end_worker(self, worker: str, reason: str, *, fault: bool) -> None:
        """Stop a worker; with ``fault`` the part it is at counts a try, and it may be started again."""
        ...

    def hold(self, reason: str) -> None:
        """Grant nothing more and start nobody while there is a reason."""
        ...

    def emit(self, event: ev.AnyEvent) -> None: ...


class MemoryGuard:
    def __init__(self, host: Guarded, caps: Mapping[str, int], watches: Watches) -> None:
        self._host = host
        self._measure = watches.measure
        self.books = MemoryBooks(caps, watches.gate_bytes)

    async def run(self) -> None:
        """Guard until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(SAMPLE_SECONDS * (1 + len(self._host.pids) // SAMPLE_WORKERS))

    async def look(self) -> None:
        """Measure once and have done what follows from it."""
        host = self._host
        sample = await asyncio.to_thread(self._measure, dict(host.pids))
        verdict = self.books.judge(sample, host.memfree_bytes)
        for worker, peak in verdict.peaks.items():
            host.emit(ev.WorkerPeaked(worker=worker, peak_bytes=peak))
        for worker, reason in verdict.beyond_cap.items():
            host.end_worker(worker, reason, fault=True)
        for worker, reason in verdict.beyond_gate.items():
            host.end_worker(worker, reason, fault=False)
        host.hold(verdict.hold)

    def last_peaks(self) -> list[ev.WorkerPeaked]:
        """At the end: the peaks that were not told yet."""
        return [
            ev.WorkerPeaked(worker=worker, peak_bytes=peak)
            for worker, peak in self.books.last_peaks().items()
        ]
