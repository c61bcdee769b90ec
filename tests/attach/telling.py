"""A run reduced to what attaching needs: a journal, a thread that appends to it, and the server."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from farm.attach import wire
from farm.attach.address import connect
from farm.attach.client import AttachedRun
from farm.attach.server import About, AttachServer
from farm.commands import AnyCommand
from farm.events import Gauges, Record
from farm.journal import Journal, JournalWriter
from farm.scratch import Scratch

LIMIT_SECONDS = 30.0


def until(condition: Callable[[], bool], what: str = "") -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what or condition}"
        time.sleep(0.005)


def gauges(inbox: int) -> Record:
    event = Gauges(
        inbox=inbox,
        inbox_max=512,
        deliveries=0,
        deliveries_max=12,
        parts_waiting=0,
        memory_bytes=0,
        memory_gate_bytes=0,
        stalls=0,
        stall_worst_seconds=0.0,
    )
    return Record(-1, 0.0, event)


class Telling:
    """Tells records as the farm does: durable first. Close it at the end."""

    def __init__(self, folder: Path, *, patience_seconds: float = 20.0, ring_records: int = 100) -> None:
        self._scratch = Scratch()  # the names of pytest's own folders are too long
        self.path = self._scratch.path / "run" / "r.sock"
        self.commands: list[AnyCommand] = []
        self.refusal: str | None = None
        self.time = 5.0
        self.publish_seconds = 0.0  #: of the farm's own thread, at worst for one batch
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.journal = JournalWriter(Journal.create(folder / "journal.db"))
        about = About(run_id="run-1", output="/films/out.mp4", folder=str(folder), pid=os.getpid(), history=0)
        self.server = AttachServer(
            about,
            now=lambda: self.time,
            send=self._take,
            patience_seconds=patience_seconds,
            ring_records=ring_records,
        )
        self.server.start(self.path)
        self.server.opened(self.journal)

    def _take(self, command: AnyCommand) -> str | None:
        self.commands.append(command)
        return self.refusal

    def tell(self, records: Sequence[Record]) -> None:
        numbered = [record for record in records if record.seq >= 0]
        asyncio.run_coroutine_threadsafe(self.journal.append(numbered), self._loop).result(LIMIT_SECONDS)
        began = time.thread_time()
        self.server.publish(records)
        self.publish_seconds = max(self.publish_seconds, time.thread_time() - began)

    def close_journal(self) -> None:
        asyncio.run_coroutine_threadsafe(self.journal.close(), self._loop).result(LIMIT_SECONDS)

    def close(self) -> None:
        self.close_journal()
        self.server.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_SECONDS)
        self._loop.close()
        self._scratch.remove()

    # --- clients -----------------------------------------------------------------------------------------

    def attach(self, **options: object) -> AttachedRun:
        run = AttachedRun(self.path, **options)  # type: ignore[arg-type]
        run.start()
        return run

    def raw(self) -> socket.socket:
        """A line on which nothing was said yet."""
        line = connect(self.path, LIMIT_SECONDS)
        assert line is not None
        return line

    def greeted(self, since: int = 0) -> socket.socket:
        """A line after a proper hello; nothing was read from it."""
        line = self.raw()
        hello = wire.Hello(protocol=wire.PROTOCOL_VERSION, build=wire.this_build(), since=since)
        line.sendall(wire.frame(hello))
        return line


class Reading:
    """What a client has taken so far."""

    def __init__(self, run: AttachedRun) -> None:
        self.run = run
        self.records: list[Record] = []

    def numbered(self) -> list[Record]:
        self.records += self.run.take()
        return [record for record in self.records if record.seq >= 0]

    def has(self, number: int) -> bool:
        return len(self.numbered()) >= number
