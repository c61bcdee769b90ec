"""What the process with the relay costs on a big job: its memory, and how long it keeps its own loop.

    python benchmarks/relay_process.py [--parts 100000] [--workers 64] [--disk-seconds 0] [--sync-seconds 0]
                                       [--folder DIR]
    python benchmarks/relay_process.py --resume DIR

The real host, relay, journal (SQLite in a scratch folder, synced), event log and plain reporter with its
model; in place of worker processes, workers in the same loop that deliver at once, and a store that takes
``--disk-seconds`` for each check; each commit of the journal takes ``--sync-seconds`` more. With ``--folder``
the journal stays; ``--resume`` opens one as ``uneven resume`` does: books, and the console's model, from all
its records. All that the command imports is imported.

``longest_ms`` is the longest time that one callback kept the loop, by wall clock, ``longest_cpu_ms`` the
longest by the processor time of the loop's thread: on a busy machine the first also counts what others took.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import console.app  # noqa: E402
import console.cli  # noqa: E402, F401
from console.model import Model  # noqa: E402
from console.plain import PlainReporter  # noqa: E402
from farm import events as ev  # noqa: E402
from farm import messages as msg  # noqa: E402
from farm.clock import LeaseClock, MonotonicClock  # noqa: E402
from farm.engines.base import EngineEvents  # noqa: E402
from farm.eventlog import EventLog, publish_history  # noqa: E402
from farm.fleet import uniform_fleet  # noqa: E402
from farm.frames import PartGrid  # noqa: E402
from farm.guard import Watches  # noqa: E402
from farm.host import RelayHost  # noqa: E402
from farm.journal import Journal, JournalWriter  # noqa: E402
from farm.loopwatch import LoopWatch  # noqa: E402
from farm.parts import PartFacts, PartFooter, PartHeader  # noqa: E402
from farm.relay.books import Books  # noqa: E402
from farm.relay.relay import Relay  # noqa: E402
from farm.salvage import History  # noqa: E402
from farm.settings import JobSettings  # noqa: E402
from farm.store import part_file_name  # noqa: E402
from farm.worker.spec import WorkerSpec  # noqa: E402

PART_FRAMES = 4
BEAT_PARTS = 10


class InstantWorkers:
    """An ``Engine`` whose workers live in this loop: each answer is followed by the next request."""

    def __init__(self, grid: PartGrid) -> None:
        self._grid = grid
        self._events: EngineEvents | None = None
        self._held = False
        self._waiting: list[tuple[str, msg.AnyRequest]] = []
        self._seq: dict[str, int] = {}
        self._at: dict[str, tuple[str, int, int]] = {}  # token, next part, end part

    async def start(self, specs: Sequence[WorkerSpec], events: EngineEvents) -> None:
        self._events = events
        for spec in specs:
            self._seq[spec.name] = 0
            events.up(spec.name, None, "")
            self._say(spec.name, msg.Join(worker=spec.name))

    def send(self, worker: str, data: bytes) -> None:
        answer = msg.decode_answer(data)
        match answer:
            case msg.Welcome() | msg.Completed(done=True):
                self._say(worker, msg.Claim())
            case msg.Granted():
                stop = self._grid.part_at(answer.stop)
                self._at[worker] = (answer.token, self._grid.part_at(answer.next), stop)
                self._deliver(worker)
            case msg.Delivered():
                self._deliver(worker)
            case msg.Beat(claims=claims):
                for state in claims:
                    held = self._at.get(worker)
                    if held is not None and held[0] == state.token and state.live:
                        self._at[worker] = (held[0], held[1], self._grid.part_at(state.stop))
            case msg.Finished():
                self._say(worker, msg.Leave(reason="no more work"))
            case msg.Bye():
                assert self._events is not None
                asyncio.get_running_loop().call_soon(self._events.gone, worker, "exited", True)
            case _:
                pass

    def _deliver(self, worker: str) -> None:
        token, part, stop = self._at[worker]
        if part >= stop:
            self._say(worker, msg.Complete(token=token))
            return
        self._at[worker] = (token, part + 1, stop)
        if part % BEAT_PARTS == 0:
            position = self._grid.start(part)
            self._say(worker, msg.Heartbeat(claims=(ev.ClaimProgress(token=token, position=position),)))
        file = part_file_name(part, token)
        self._say(worker, msg.Deliver(token=token, part=part, file=file, render_seconds=0.1))

    def _say(self, worker: str, request: msg.AnyRequest) -> None:
        if self._held:
            self._waiting.append((worker, request))
            return
        assert self._events is not None
        self._seq[worker] += 1
        data = msg.encode(_numbered(request, self._seq[worker]))
        asyncio.get_running_loop().call_soon(self._events.message, worker, data)

    def hold_reading(self, hold: bool) -> None:
        self._held = hold
        if not hold:
            waiting, self._waiting = self._waiting, []
            for worker, request in waiting:
                self._say(worker, request)

    def stall(self, worker: str, stalled: bool) -> None: ...

    async def kill(self, worker: str) -> None: ...

    async def stop(self, grace_seconds: float) -> None: ...


def _numbered(request: msg.AnyRequest, seq: int) -> msg.AnyRequest:
    import msgspec

    return msgspec.structs.replace(request, seq=seq)


class SlowStore:
    """A store without files: every part is as it should be, after a while."""

    def __init__(self, folder: Path, grid: PartGrid, seconds: float) -> None:
        self.folder = folder / "store"
        self._grid = grid
        self._seconds = seconds

    def accept(self, file_name: str, *, part: int, start: int, stop: int, **_: Any) -> PartFacts:
        if self._seconds:
            time.sleep(self._seconds)
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
        frames = stop - start
        footer = PartFooter(packets=frames, frames=frames, first_frame_crc=part, next_frame_crc=part + 1)
        return PartFacts(header, footer, 10_000, f"{part:064x}")

    def discard(self, file_name: str) -> None: ...


class SlowJournal(Journal):
    """A journal on a disk whose syncs take their time. ``ticks`` counts turns of the loop; ``fewest`` is how
    many there were at least while a sync lasted: none, if the loop waited for it."""

    sync_seconds = 0.0
    ticks = 0
    fewest: int | None = None

    def append(self, records: Sequence[ev.Record]) -> None:
        if records and self.sync_seconds:
            before = self.ticks
            time.sleep(self.sync_seconds)
            passed = self.ticks - before
            self.fewest = passed if self.fewest is None else min(self.fewest, passed)
        super().append(records)

    async def tick(self) -> None:
        while True:
            self.ticks += 1
            await asyncio.sleep(0.005)


class Callbacks:
    """Times every callback of the loop."""

    def __init__(self) -> None:
        self.longest_seconds = self.longest_cpu_seconds = 0.0
        self.over = self.over_cpu = 0
        self.what = ""

    def install(self) -> Callable[[], None]:
        original = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            began, cpu = time.perf_counter(), time.thread_time()
            original(handle)
            seconds, cpu = time.perf_counter() - began, time.thread_time() - cpu
            self.over += seconds > 0.05
            self.over_cpu += cpu > 0.05
            self.longest_cpu_seconds = max(self.longest_cpu_seconds, cpu)
            if seconds > self.longest_seconds:
                self.longest_seconds, self.what = seconds, repr(handle)[:300]

        asyncio.Handle._run = timed  # type: ignore[method-assign]

        def remove() -> None:
            asyncio.Handle._run = original  # type: ignore[method-assign]

        return remove


async def work(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    frames = args.parts * PART_FRAMES
    grid = PartGrid(tuple(range(0, frames + 1, PART_FRAMES)))
    model = Model("live")
    reporter = PlainReporter(io.StringIO() if not args.show else sys.stderr, clock=MonotonicClock())  # type: ignore[arg-type]
    pending: list[ev.Record] = []
    clock = LeaseClock()
    slow = SlowJournal.create(folder / "journal.db")
    assert isinstance(slow, SlowJournal)
    journal = JournalWriter(slow)
    log = EventLog(journal, 0, pending.extend)
    options = ev.RelayOptions(policy="fair", tail="split", heartbeat_seconds=2.0)
    relay = Relay(Books(), options)
    opened = ev.RunOpened(
        run_id="big",
        input="in.mkv",
        output="out.mkv",
        frames=frames,
        cuts=grid.cuts,
        settings_hash="h",
        fingerprint="f",
        build="b",
        options=options,
    )
    await log.commit(0.0, relay.open(opened, 0.0).events)
    await log.commit(0.0, relay.start(0.0).events)
    specs = [
        WorkerSpec(
            profile=profile,
            index_path=folder,
            settings=JobSettings(),
            settings_hash="h",
            cuts=grid.cuts,
            store_dir=folder,
            spool_dir=folder,
            log_dir=folder,
        )
        for profile in uniform_fleet(args.workers)
    ]
    watch = LoopWatch(time.monotonic)
    store: Any = SlowStore(folder, grid, args.disk_seconds)
    host = RelayHost(relay, log, InstantWorkers(grid), store, clock, specs, "h", lambda: None, Watches(watch))
    peak = 0

    async def console() -> None:
        """What the console's thread does, but in this one; its turns are not the relay's."""
        nonlocal peak
        process = psutil.Process()
        while True:
            records, pending[:] = list(pending), []
            for record in records:
                model.fold(record)
            reporter.update(model, records, clock.now())
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.05)

    callbacks = Callbacks()
    beside = [asyncio.create_task(console())] if args.console else []
    watching = asyncio.create_task(watch.run())
    beside.append(asyncio.create_task(slow.tick()))
    slow.sync_seconds = args.sync_seconds
    remove = callbacks.install()
    began = time.perf_counter()
    end = await host.run()
    seconds = time.perf_counter() - began
    remove()
    for task in (*beside, watching):
        task.cancel()
    await journal.close()
    peak = max(peak, psutil.Process().memory_info().rss)
    return {
        "end": end.value,
        "credited": relay.books.credited_frames // PART_FRAMES,
        "seconds": round(seconds, 2),
        "messages_a_second": round(sum(host._engine._seq.values()) / seconds),  # type: ignore[attr-defined]
        "rss_mib": round(peak / (1 << 20), 1),
        "stalls": watch.stalls,
        "stall_worst_ms": round(watch.worst_seconds * 1000, 1),
        "longest_ms": round(callbacks.longest_seconds * 1000, 1),
        "over_50_ms": callbacks.over,
        "longest_cpu_ms": round(callbacks.longest_cpu_seconds * 1000, 1),
        "over_50_ms_cpu": callbacks.over_cpu,
        "fewest_turns_in_a_sync": slow.fewest,
        "what": callbacks.what,
    }


def resume(folder: Path) -> dict[str, Any]:
    """What is in memory when an earlier run's records have been taken in."""
    began = time.perf_counter()
    model = Model("live")
    journal = Journal.open(folder / "journal.db")
    history = History()
    for record in journal.records():
        history.fold(record)
    books = history.books

    def take(records: Sequence[ev.Record]) -> None:
        for record in records:
            model.fold(record)

    asyncio.run(publish_history(journal, take, lambda: 0))
    journal.close()
    return {
        "credited": len(books.credits),
        "records": model.records,
        "shown": model.credited_frames // PART_FRAMES,
        "seconds": round(time.perf_counter() - began, 2),
        "rss_mib": round(psutil.Process().memory_info().rss / (1 << 20), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--disk-seconds", type=float, default=0.0)
    parser.add_argument("--sync-seconds", type=float, default=0.0)
    parser.add_argument("--no-console", dest="console", action="store_false")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--resume", type=Path)
    args = parser.parse_args()
    if args.resume is not None:
        print(json.dumps(resume(args.resume), indent=1))
        return
    if args.folder is not None:
        print(json.dumps(asyncio.run(work(args.folder, args)), indent=1))
        return
    with tempfile.TemporaryDirectory(prefix="uneven-") as scratch:
        print(json.dumps(asyncio.run(work(Path(scratch), args)), indent=1))


if __name__ == "__main__":
    main()
