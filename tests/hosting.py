"""The relay's shell with everything around it scripted: an engine whose workers a test speaks for, a journal
that takes all, a store without files, a machine whose memory a test sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from farm import events as ev
from farm import messages as msg
from farm.clock import LeaseClock
from farm.engines.base import EngineEvents
from farm.eventlog import EventLog
from farm.fleet import WorkerProfile
from farm.frames import PartGrid
from farm.guard import Watches
from farm.host import End, RelayHost
from farm.loopwatch import LoopWatch
from farm.memory import Sample
from farm.parts import PartFacts, PartFooter, PartHeader
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.settings import JobSettings
from farm.worker.spec import WorkerSpec
from tests.engines.harness import until
from tests.relay.virtual import opened

E = TypeVar("E", bound=ev.Event)


class Puppets:
    """An ``Engine``; what its workers say is up to the test. ``stillborn`` die before they say anything."""

    def __init__(self) -> None:
        self.events: EngineEvents | None = None
        self.alive: set[str] = set()
        self.starts: list[str] = []
        self.kills: list[str] = []
        self.heard: dict[str, list[msg.AnyAnswer]] = {}
        self.stillborn: set[str] = set()
        self.unstoppable: Exception | None = None  #: raised when all of them are stopped
        self.holds: list[bool] = []  #: each time reading was held and let go

    async def start(self, specs: Sequence[WorkerSpec], events: EngineEvents) -> None:
        self.events = events
        for spec in specs:
            self.starts.append(spec.name)
            self.alive.add(spec.name)
            self.heard[spec.name] = []
            events.up(spec.name, 1000 + len(self.starts), "")
            if spec.name in self.stillborn:
                asyncio.get_running_loop().call_soon(self.die, spec.name, "exited with code 1")

    def send(self, worker: str, data: bytes) -> None:
        self.heard[worker].append(msg.decode_answer(data))

    def hold_reading(self, hold: bool) -> None:
        self.holds.append(hold)

    def stall(self, worker: str, stalled: bool) -> None: ...

    async def kill(self, worker: str) -> None:
        self.kills.append(worker)
        self.die(worker, "killed by SIGKILL")

    async def stop(self, grace_seconds: float) -> None:
        for worker in list(self.alive):
            self.die(worker, "stopped")
        if self.unstoppable is not None:
            raise self.unstoppable

    def die(self, worker: str, reason: str) -> None:
        if worker in self.alive:
            self.alive.remove(worker)
            assert self.events is not None
            self.events.gone(worker, reason, True)


class ScriptedJournal:
    """Takes all records while it is ``taking``; ``refusing``: what the disk says instead."""

    def __init__(self) -> None:
        self.taking = asyncio.Event()
        self.taking.set()
        self.waiting = 0
        self.refusing: Exception | None = None

    async def append(self, records: Sequence[ev.Record]) -> None:
        self.waiting += 1
        await self.taking.wait()
        self.waiting -= 1
        if self.refusing is not None:
            raise self.refusing


class ScriptedStore:
    """Every part is as it should be; ``accepting`` is called, in the checking thread, for each."""

    folder = Path("run") / "store"

    def __init__(self) -> None:
        self.accepting: Callable[[], object] = lambda: None

    def accept(self, file_name: str, *, part: int, start: int, stop: int, **_: Any) -> PartFacts:
        self.accepting()
        header = PartHeader(
            part=part,
            start=start,
            stop=stop,
            settings_hash="h",
            codec="h264",
            width=16,
            height=16,
            pix_fmt="yuv420p",
            time_base=(1, 24),
            extradata=b"",
        )
        return PartFacts(header, PartFooter(packets=stop - start, frames=stop - start), 1, f"{part:064x}")

    def discard(self, file_name: str) -> None: ...


class Rig:
    """A host of ``parts`` parts of 10 frames; start it with ``async with``. Leaving ends it."""

    def __init__(
        self,
        *workers: str,
        parts: int = 4,
        caps: Mapping[str, int] | None = None,
        gate_bytes: int = 0,
        oom_kills: Callable[[], int] = lambda: 0,
        raw: float | None = None,
        **options: Any,
    ) -> None:
        self.grid = PartGrid(tuple(range(0, parts * 10 + 1, 10)))
        self.raw = raw  #: what the monotonic clock says; None: what it really says
        self.used: dict[str, int] = {}
        self.available = 10**12
        self.engine = Puppets()
        self.store = ScriptedStore()
        self.records: list[ev.Record] = []
        self.relay = Relay(Books())
        self.loop_watch = LoopWatch(time.monotonic)
        self.journal = ScriptedJournal()
        log = EventLog(self.journal, 0, self.records.extend)
        options = {"policy": "fixed,10", "heartbeat_seconds": 5.0} | options
        self.relay.open(opened(self.grid.cuts, ev.RelayOptions(**options)), 0.0)
        self.relay.start(0.0)
        self.clock = LeaseClock(lambda: time.monotonic() if self.raw is None else self.raw)
        specs = [self._spec(name, (caps or {}).get(name)) for name in workers]
        watches = Watches(self.loop_watch, gate_bytes, self._measure, oom_kills)
        store: Any = self.store
        self.host = RelayHost(
            self.relay, log, self.engine, store, self.clock, specs, "h", lambda: None, watches
        )
        self._running: asyncio.Task[End] | None = None
        self._seq = 0

    async def __aenter__(self) -> Rig:
        self._running = asyncio.create_task(self.host.run())
        await until(lambda: self.engine.starts, "a worker to start")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        if not self._running.done():
            self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def end(self) -> End:
        assert self._running is not None
        return await asyncio.wait_for(self._running, 30)

    def _measure(self, pids: Mapping[str, int]) -> Sample:
        return Sample({worker: self.used.get(worker, 0) for worker in pids}, self.available)

    def _spec(self, name: str, cap: int | None) -> WorkerSpec:
        here = Path()
        return WorkerSpec(
            profile=WorkerProfile(name=name, memory_bytes=cap),
            index_path=here,
            settings=JobSettings(),
            settings_hash="h",
            cuts=self.grid.cuts,
            store_dir=here,
            spool_dir=here,
            log_dir=here,
        )

    # --- what workers say --------------------------------------------------------------------------------

    async def ask(self, worker: str, request: msg.AnyRequest) -> msg.AnyAnswer:
        """Say it, and wait for the answer to it."""
        self._seq += 1
        seq = self._seq
        self.say(worker, request, seq)
        heard = self.engine.heard[worker]
        await until(lambda: any(answer.seq == seq for answer in heard), f"an answer to {request}")
        return next(answer for answer in heard if answer.seq == seq)

    def say(self, worker: str, request: msg.AnyRequest, seq: int | None = None) -> None:
        import msgspec

        assert self.engine.events is not None
        self.engine.events.message(worker, msg.encode(msgspec.structs.replace(request, seq=seq)))

    async def join(self, *workers: str) -> None:
        for worker in workers:
            await until(lambda worker=worker: worker in self.engine.alive, f"{worker} to start")
            assert isinstance(await self.ask(worker, msg.Join(worker=worker)), msg.Welcome)

    async def claim(self, worker: str) -> msg.Granted:
        answer = await self.ask(worker, msg.Claim())
        assert isinstance(answer, msg.Granted), answer
        return answer

    async def deliver(self, worker: str, granted: msg.Granted) -> None:
        part = self.grid.part_at(granted.start)
        request = msg.Deliver(token=granted.token, part=part, file=f"{part}-{granted.token}")
        assert isinstance(await self.ask(worker, request), msg.Delivered)

    # --- what can be seen --------------------------------------------------------------------------------

    def of(self, kind: type[E]) -> list[E]:
        return [record.event for record in self.records if isinstance(record.event, kind)]
