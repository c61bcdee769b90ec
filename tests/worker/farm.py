"""A farm in one process: the real relay, its host and delivery desk, the real store and worker loops, with
threads for processes and renderers without av. For what happens between a worker and the store."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from farm import events as ev
from farm.clock import Clock, LeaseClock, MonotonicClock
from farm.engines.base import EngineEvents, FrameSplitter, frame
from farm.eventlog import EventLog
from farm.fleet import LinkProfile, WorkerProfile
from farm.guard import Watches
from farm.host import End, RelayHost
from farm.loopwatch import LoopWatch
from farm.messages import Block, Heartbeat, Offer, decode_request
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.validate import validate
from farm.settings import JobSettings
from farm.store import Store
from farm.worker.faults import Faults
from farm.worker.log import Log
from farm.worker.loop import WorkerLoop
from farm.worker.spec import WorkerSpec

from .harness import PATIENCE_SECONDS, FakeRenderers, Stories, write_part

E = TypeVar("E", bound=ev.Event)
PART_FRAMES = 10
#: For a whole stretch of work, with its syncs, on a machine that is busy with others.
STRETCH_SECONDS = 90.0
FRAME_BYTES = 2000


class Script:
    """What is done to blocks on their way: ``at`` maps (part, index) to what happens the first time. Every
    block that is about to be sent is in ``seen``."""

    def __init__(self) -> None:
        self.at: dict[tuple[int, int], Callable[[bytes], bytes]] = {}
        self.always: Callable[[int, int], None] = lambda part, index: None
        self.seen: list[tuple[int, int]] = []
        self.of: dict[str, Faults] = {}  #: the faults of each worker, to inject others

    def block(self, part: int, index: int, data: bytes) -> bytes:
        self.seen.append((part, index))
        self.always(part, index)
        happens = self.at.pop((part, index), None)
        return data if happens is None else happens(data)


class ScriptedFaults(Faults):
    """A worker's faults, with those of a script."""

    def __init__(self, script: Script, clock: Clock, log: Log) -> None:
        super().__init__(clock, log)
        self._script = script

    def block(self, part: int, index: int, data: bytes) -> bytes:
        return self._script.block(part, index, super().block(part, index, data))


class ThreadEngine:
    """An Engine whose workers are threads. ``kill`` cuts a worker's connection, which ends it at its next
    step; as with a process that is killed, what it was about to say is not heard."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm
        self._events: EngineEvents | None = None
        self._socks: dict[str, socket.socket] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self.threads: list[threading.Thread] = []

    async def start(self, specs: Sequence[WorkerSpec], events: EngineEvents) -> None:
        self._events = events
        for spec in specs:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            self._socks[spec.name] = ours
            thread = threading.Thread(target=self._farm.work, args=(spec, theirs), daemon=True)
            self.threads.append(thread)
            events.up(spec.name, None, "")
            thread.start()
            self._readers[spec.name] = asyncio.create_task(self._read(spec.name, ours))

    def send(self, worker: str, data: bytes) -> None:
        if worker in self._socks:
            with contextlib.suppress(OSError):
                self._socks[worker].send(frame(data))

    def hold_reading(self, hold: bool) -> None: ...

    def stall(self, worker: str, stalled: bool) -> None: ...

    async def kill(self, worker: str) -> None:
        with contextlib.suppress(OSError, KeyError):
            self._socks[worker].shutdown(socket.SHUT_RDWR)

    async def stop(self, grace_seconds: float) -> None:
        for worker in list(self._socks):
            await self.kill(worker)
        await asyncio.gather(*self._readers.values())
        for thread in self.threads:
            await asyncio.to_thread(thread.join, PATIENCE_SECONDS)
            assert not thread.is_alive()

    async def _read(self, worker: str, sock: socket.socket) -> None:
        assert self._events is not None
        splitter = FrameSplitter()
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while data := await loop.sock_recv(sock, 1 << 16):
                splitter.feed(data)
                while (message := splitter.next()) is not None:
                    request = decode_request(message)
                    if isinstance(request, Block | Offer):
                        self._farm.heard.append((worker, request))
                    if not (isinstance(request, Heartbeat) and self._farm.mute_beats()):
                        self._events.message(worker, message)
        if self._socks.get(worker) is sock:
            del self._socks[worker]
        sock.close()
        self._events.gone(worker, "killed", True)


class Farm:
    """A job of ``parts`` parts in ``folder``; ``work_on`` is one stretch of work. What a stretch leaves (the
    store, the spools, the events) is there for the next one."""

    def __init__(self, folder: Path, parts: int = 1, **options: object) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.spool = folder / "spool"
        self.store.mkdir()
        self.spool.mkdir()
        self.cuts = tuple(range(0, parts * PART_FRAMES + 1, PART_FRAMES))
        self.renderers = FakeRenderers(FRAME_BYTES)
        self.renderers_of: dict[str, FakeRenderers] = {}  #: workers with their own
        self.faults = Script()
        self.log = Stories()
        self.records: list[ev.Record] = []
        self.heard: list[tuple[str, Block | Offer]] = []
        self.mute_beats: Callable[[], bool] = lambda: False  #: heartbeats are not heard
        self.host: RelayHost | None = None
        self.engine: ThreadEngine | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._options = ev.RelayOptions(**({"heartbeat_seconds": 0.1} | options))  # type: ignore[arg-type]

    def link_of(self, blocks: int, **fields: float) -> LinkProfile:
        """A link over which a part goes in so many blocks, as long as there are at most about 140."""
        scratch = self.folder / "scratch"
        size = write_part(scratch, 0, 0, PART_FRAMES, FRAME_BYTES).size_bytes
        scratch.unlink()
        block_bytes = -(-size // blocks)
        assert -(-size // block_bytes) == blocks
        return LinkProfile(block_bytes=block_bytes, **fields)  # type: ignore[arg-type]

    # --- one stretch of work

    def work_on(
        self, *workers: str, link: LinkProfile | None = None, orphans: tuple[Path, ...] = ()
    ) -> End | None:
        """Until its end. None: the relay was killed."""
        specs = [self.spec(name, link, () if n else orphans) for n, name in enumerate(workers)]
        return asyncio.run(asyncio.wait_for(self._work_on(specs), STRETCH_SECONDS))

    def spec(self, name: str, link: LinkProfile | None, orphans: tuple[Path, ...] = ()) -> WorkerSpec:
        return WorkerSpec(
            profile=WorkerProfile(name=name, link=link),
            index_path=self.folder / "index",
            settings=JobSettings(),
            settings_hash="hash",
            cuts=self.cuts,
            store_dir=self.store,
            spool_dir=self.spool / name,
            orphan_spools=orphans,
            log_dir=self.folder,
        )

    async def _work_on(self, specs: list[WorkerSpec]) -> End | None:
        self.loop = asyncio.get_running_loop()
        self._killed = asyncio.Event()
        books = Books()
        for record in self.records:
            books.apply(record.at, record.event)
        relay = Relay(books)
        clock = LeaseClock(origin_seconds=self.records[-1].at if self.records else 0.0)
        log = EventLog(self, len(self.records), lambda records: None)
        if not self.records:
            await log.commit(clock.now(), relay.open(self._opened(), clock.now()).events)
        await log.commit(clock.now(), relay.start(clock.now()).events)
        self.engine = ThreadEngine(self)
        store = Store(self.store)
        watches = Watches(LoopWatch(time.monotonic))
        self.host = RelayHost(relay, log, self.engine, store, clock, specs, "hash", lambda: None, watches)
        work = asyncio.create_task(self.host.run())
        killed = asyncio.create_task(self._killed.wait())
        await asyncio.wait([work, killed], return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        if not work.done():
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
            return None
        validate(books)
        return work.result()

    async def append(self, records: Sequence[ev.Record]) -> None:
        self.records += records

    def _opened(self) -> ev.RunOpened:
        return ev.RunOpened(
            run_id="r",
            input="i",
            output="o",
            frames=self.cuts[-1],
            cuts=self.cuts,
            settings_hash="hash",
            fingerprint="f",
            build="",
            options=self._options,
        )

    def work(self, spec: WorkerSpec, sock: socket.socket) -> None:
        """A worker's life, in its thread."""
        clock = MonotonicClock()
        self.faults.of[spec.name] = faults = ScriptedFaults(self.faults, clock, self.log)
        renderers = self.renderers_of.get(spec.name, self.renderers)
        WorkerLoop(spec, sock, renderers.open, self.log, clock, faults).run()

    # --- from a worker's thread

    def kill_worker(self, name: str) -> None:
        """Returns when its connection is cut."""
        assert self.loop is not None and self.engine is not None
        asyncio.run_coroutine_threadsafe(self.engine.kill(name), self.loop).result(PATIENCE_SECONDS)

    def kill_relay(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self._killed.set)

    # --- what can be seen

    def events(self, kind: type[E]) -> list[E]:
        return [record.event for record in self.records if isinstance(record.event, kind)]

    def sent(self) -> list[int]:
        """Numbers of the blocks that arrived at the relay, in order."""
        return [request.index for _, request in self.heard if isinstance(request, Block)]
