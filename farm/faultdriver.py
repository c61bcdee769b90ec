"""Injects faults into a live run: watches its events, and brings about what is due through the engine, the
worker processes, or this process itself.

Theory of operation. The schedule (farm.faults) turns events into steps at lease times. A step is first
written down as an event, then done: to a worker's process (stopped, killed), within it (an ``Inject``
message; see farm.worker.faults), or here (the loop stands still, the disk is filled, the wall clock is set).

Rules of this file:
- nothing of the host but the clock that is handed in is ever set: the wall clock is the run's own;
- what was taken (disk, frozen processes) is given back at the end of the fault, or of the run;
- a fault is the machine's: a process that takes a killed one's place has what is left of it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.clock import LeaseClock
from farm.faults import KINDS, Fault, FaultSchedule, Step
from farm.paths import is_full, printable
from farm.scenario.faults import never_came, spell

#: How late a step may be by the lease clock before it is put off again.
_EARLY_SECONDS = 0.005
#: From the event of a stop to the stop, so that the event is on disk and on screen.
_NOTICE_SECONDS = 0.1
#: The file that fills a disk, in the run folder's spool.
FILL_NAME = "fault.fill"
_MIB = 1 << 20
#: Named in an event for faults that came from here.
_BY = "a fault"

#: What is done by stopping or ending a worker's process, or to the run; all else is done within the worker.
_OUTSIDE = ("stall", "resume", "kill")


class Host(Protocol):
    """What the relay's shell lets faults do to the run."""

    def post_command(self, command: cmd.AnyCommand) -> None: ...
    def emit(self, event: ev.AnyEvent) -> None: ...
    def push(self, worker: str, message: msg.AnyAnswer) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class Processes(Protocol):
    """What the crew lets faults do to workers."""

    def present(self, worker: str) -> bool:
        """It has joined and has not left."""
        ...

    def expect(self, worker: str) -> None:
        """``revive`` will be called for it."""
        ...

    def revive(self, worker: str) -> None:
        """Start another process in its place."""
        ...

    def freeze(self, worker: str, frozen: bool) -> None:
        """At once, and without a word."""
        ...


class WallClock:
    """The run's wall clock: ISO 8601, for people only; ``read`` is the system's."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._off = timedelta()

    def __call__(self) -> str:
        text = self._read()
        return (datetime.fromisoformat(text) + self._off).isoformat() if self._off else text

    def step(self, seconds: float) -> None:
        self._off += timedelta(seconds=seconds)


class FaultDriver:
    """One stretch of work's faults. ``folder``: on the disk that is filled. Use in one event loop."""

    def __init__(
        self,
        faults: Sequence[Fault],
        *,
        workers: Sequence[str],
        frames: int,
        credited: int,
        clock: LeaseClock,
        wall: WallClock,
        folder: Path,
    ) -> None:
        self._schedule = FaultSchedule(faults, workers, frames, credited)
        self._workers = tuple(workers)
        self._clock = clock
        self._wall = wall
        self._fill = folder / FILL_NAME
        self._host: Host | None = None
        self._crew: Processes | None = None
        self._timers: dict[asyncio.TimerHandle, Step] = {}
        self._within: dict[tuple[str, str], Step] = {}  # begun in a worker and not over

    @classmethod
    def of_none(cls, clock: LeaseClock) -> FaultDriver:
        """For a host that nothing is to happen to."""
        wall = WallClock(lambda: "")
        return cls((), workers=(), frames=1, credited=0, clock=clock, wall=wall, folder=Path())

    def attach(self, host: Host, crew: Processes) -> None:
        self._host, self._crew = host, crew

    # --- told --------------------------------------------------------------------------------------------

    def see(self, at: float, events: Sequence[ev.AnyEvent]) -> None:
        """Events that are durable."""
        for event in events:
            self._plan(self._schedule.see(at, event))
            if isinstance(event, ev.WorkerJoined) and self._within:
                self._hand_on(event.worker)

    def inject(self, fault: Fault) -> None:
        self._plan(self._schedule.inject(fault, self._clock.now()))

    def add(self, worker: str) -> None:
        """A worker joins the fleet."""
        self._workers += (worker,)
        self._schedule.add(worker)

    def close(self) -> None:
        """The work is over: nothing more happens, and the disk is given back."""
        for timer in self._timers:
            timer.cancel()
        self._fill.unlink(missing_ok=True)

    def never_came(self) -> list[ev.FaultNeverCame]:
        """At the end: what is to be said of faults that never came due."""
        planned = [step.fault for step in self._timers.values() if step.begins]
        return never_came([*self._schedule.waiting, *planned])

    # --- doing -------------------------------------------------------------------------------------------

    def _plan(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._later(max(step.at - self._clock.now(), 0.0), step)

    def _later(self, seconds: float, step: Step) -> None:
        timer: asyncio.TimerHandle

        def due() -> None:
            del self._timers[timer]
            left = step.at - self._clock.now()
            if left > _EARLY_SECONDS:  # the machine slept, which lease time doesn't count
                self._later(left, step)
            else:
                self._act(step)

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers[timer] = step

    def _act(self, step: Step) -> None:
        host, crew = self._host, self._crew
        assert host is not None and crew is not None
        kind, worker = step.fault.kind, step.worker
        if worker is not None and step.begins and not crew.present(worker):
            text = f"a fault did not happen: {spell(step.fault)}: {worker} is not there"
            host.emit(ev.Notice(level="warning", text=text))
            return
        host.emit(step.injected(spell(step.fault)) if step.begins else step.lifted())
        if worker is None:
            self._on_run(host, crew, step)
        elif kind not in _OUTSIDE:
            self._in_worker(host, worker, step)
        else:
            self._on_process(host, crew, worker, step)

    def _on_process(self, host: Host, crew: Processes, worker: str, step: Step) -> None:
        match step.fault.kind:
            case "kill" if step.begins:
                if step.fault.seconds is not None:
                    crew.expect(worker)
                host.post_command(cmd.KillWorker(worker=worker, by=_BY))
            case "kill":
                crew.revive(worker)
            case "stall":
                host.post_command(cmd.StallWorker(worker=worker, stalled=step.begins, by=_BY))
            case _:
                host.post_command(cmd.StallWorker(worker=worker, stalled=False, by=_BY))

    def _in_worker(self, host: Host, worker: str, step: Step) -> None:
        fault = step.fault
        if not step.begins:
            self._within.pop((worker, fault.kind), None)  # it ends by itself over there
            return
        if fault.seconds is not None or KINDS[fault.kind].lasts == "time":
            self._within[worker, fault.kind] = step
        host.push(worker, msg.Inject(kind=fault.kind, seconds=fault.seconds, amount=fault.amount))

    def _hand_on(self, worker: str) -> None:
        """A new process in a worker's place."""
        assert self._host is not None
        for (name, kind), step in self._within.items():
            if name == worker:
                fault = step.fault
                left = None if fault.seconds is None else step.at + fault.seconds - self._clock.now()
                if left is None or left > 0:
                    self._host.push(worker, msg.Inject(kind=kind, seconds=left, amount=fault.amount))

    # --- to the run --------------------------------------------------------------------------------------

    def _on_run(self, host: Host, crew: Processes, step: Step) -> None:
        fault, seconds = step.fault, step.fault.seconds or 0.0
        match fault.kind:
            case "pause-relay" if step.begins:
                host.spawn(self._stand_still(crew, seconds, ()))
            case "suspend" if step.begins:
                host.spawn(self._stand_still(crew, seconds, self._workers))
            case "step-clock":
                before = self._wall()
                self._wall.step(fault.amount or 0.0)
                text = f"the run's wall clock is set from {before} to {self._wall()}; nothing depends on it"
                host.emit(ev.Notice(level="info", text=text))
            case "fill-disk" if step.begins:
                host.spawn(self._fill_disk(host, int((fault.amount or 0.0) * _MIB)))
            case "fill-disk":
                self._fill.unlink(missing_ok=True)
            case _:
                pass  # a stop ends by itself

    async def _stand_still(self, crew: Processes, seconds: float, frozen: Sequence[str]) -> None:
        """Block this loop, as nothing ever should, with ``frozen`` workers stopped for as long."""
        await asyncio.sleep(_NOTICE_SECONDS)
        frozen = [worker for worker in frozen if crew.present(worker)]
        for worker in frozen:
            crew.freeze(worker, True)
        try:
            time.sleep(seconds)
        finally:
            for worker in frozen:
                crew.freeze(worker, False)

    async def _fill_disk(self, host: Host, most_bytes: int) -> None:
        """Fill the disk, but by no more than that: with more room on it, it is left alone."""
        try:
            taken = await asyncio.to_thread(fill_disk, self._fill, most_bytes)
        except OSError as error:
            text = f"a fault did not happen: the disk can't be filled: {error.strerror}"
        else:
            if taken is not None:
                return
            text = (
                f"a fault did not happen: {printable(self._fill.parent)} has more than {most_bytes // _MIB} "
                "MiB free; give more with 'by', or a smaller disk with --temp"
            )
        host.emit(ev.Notice(level="warning", text=text))


def fill_disk(path: Path, most_bytes: int) -> int | None:
    """Take all the room that is left, as a file of zeros at ``path``; the bytes taken. None if there was more
    than ``most_bytes``: then nothing is taken. Blocks. Raises OSError."""
    stat = os.statvfs(path.parent)
    if stat.f_bavail * stat.f_frsize > most_bytes:
        return None
    taken = 0
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for size in (_MIB, 4096, 1):  # where no large block fits any more, smaller ones may
            taken += _fill_with(handle, bytes(size))
    finally:
        os.close(handle)
    return taken


def _fill_with(handle: int, block: bytes) -> int:
    taken = 0
    try:
        while True:
            taken += os.write(handle, block)
    except OSError as error:
        if not is_full(error):
            raise
    return taken
