"""The local engine: one process a worker, one socket pair each, all on one asyncio loop.

Rules:
- a worker's end is known when its exit status is (the sentinel), and is reported once its last messages are
  read as well;
- a worker that closes its socket and does not end, that sends what is not a message, or that reads nothing
  while WRITE_LIMIT_BYTES wait for it, is killed;
- when the fork server itself ended, the fate of a worker is not known: it is killed by its pid and reported
  as ``sure=False``;
- when the fork server doesn't say that a worker ended, the system is asked.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import socket
from collections.abc import Sequence
from functools import partial
from multiprocessing.context import ForkServerProcess

from farm.engines.base import FRAME_LIMIT_BYTES, EngineEvents, FrameError, FrameSplitter, frame
from farm.engines.forkserver import (
    EXIT_UNKNOWN,
    PRELOAD,
    REPORT_SECONDS,
    ServerLost,
    describe_exit,
    end_child,
    exit_code,
    has_ended,
    kill_child,
    kill_server,
    prepare,
    send_signal,
    start_child,
)
from farm.errors import IncompleteError, UsageError
from farm.worker.spec import WorkerSpec

__all__ = ["WORKER_MAIN", "LocalEngine", "prepare"]

#: What a worker process runs; called with its spec and its end of the socket pair.
WORKER_MAIN = "farm.worker.main:run_worker"

#: How long a worker may take to end after it closed its socket.
EXIT_SECONDS = 2.0

#: How long the system may take to end a process after SIGKILL.
KILL_SECONDS = 10.0

#: How long to wait with a question that can't be asked while another worker starts.
BUSY_SECONDS = 0.02

WRITE_LIMIT_BYTES = 4 * FRAME_LIMIT_BYTES


class LocalEngine:
    """Workers as processes of this machine; an ``Engine``. Use it in one event loop, in any thread."""

    def __init__(self, target: str = WORKER_MAIN, preload: Sequence[str] = PRELOAD) -> None:
        self._target = target
        self._preload = tuple(preload)
        self._workers: dict[str, _Worker] = {}
        self._starting: set[asyncio.Future[ForkServerProcess]] = set()
        self._held = False

    async def start(self, specs: Sequence[WorkerSpec], events: EngineEvents) -> None:
        atexit.register(self._kill_all)
        before = frozenset(self._workers)
        for spec in specs:
            try:
                try:
                    await self._start(spec, events)
                except ServerLost:
                    await self._start(spec, events)
            except OSError as error:
                await self._undo(before)
                raise UsageError(
                    f"worker {spec.name} can't be started ({error.strerror}): ask for fewer workers "
                    "or raise the system's limit"
                ) from error
            except ServerLost as error:
                await self._undo(before)
                raise IncompleteError(
                    f"worker {spec.name} can't be started, the process that starts workers was lost twice; "
                    "see that memory does not run out, then resume"
                ) from error
            except BaseException:
                await self._undo(before)
                raise

    async def _undo(self, before: frozenset[str]) -> None:
        """End those that were started since; a worker that can't be added costs the others nothing."""
        if not before:
            await self.stop(0.0)
        for worker in self._workers.keys() - before:
            await self.kill(worker)

    async def _start(self, spec: WorkerSpec, events: EngineEvents) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            starting = asyncio.get_running_loop().run_in_executor(
                None,
                partial(
                    start_child,
                    self._target,
                    (spec, theirs),
                    name=spec.name,
                    log=spec.log_dir / f"{spec.name}.log",
                    preload=self._preload,
                ),
            )
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)
            try:
                process = await asyncio.shield(starting)
            except BaseException:
                ours.close()
                with contextlib.suppress(OSError, ServerLost):
                    end_child(await starting)
                raise
        worker = _Worker(spec.name, process, events, self._held)
        self._workers[spec.name] = worker
        await worker.connect(ours)
        events.up(spec.name, process.pid, "")

    def send(self, worker: str, data: bytes) -> None:
        peer = self._workers.get(worker)
        if peer is not None:
            peer.send(data)

    def hold_reading(self, hold: bool) -> None:
        self._held = hold
        for peer in self._workers.values():
            peer.hold(hold)

    def stall(self, worker: str, stalled: bool) -> None:
        peer = self._workers.get(worker)
        if peer is not None:
            peer.send_signal(signal.SIGSTOP if stalled else signal.SIGCONT)

    async def kill(self, worker: str) -> None:
        peer = self._workers.get(worker)
        if peer is not None:
            peer.kill()
            await peer.ended.wait()

    async def stop(self, grace_seconds: float) -> None:
        peers = list(self._workers.values())
        for peer in peers:
            peer.close()
        await _all_ended(peers, grace_seconds)
        for peer in peers:
            peer.kill()
        await _all_ended(peers, REPORT_SECONDS)
        if self._starting:
            await asyncio.wait(self._starting, timeout=REPORT_SECONDS)
        if self._starting or any(peer.unreported for peer in peers):
            kill_server()
            await asyncio.gather(*self._starting, return_exceptions=True)
        await _all_ended(peers, KILL_SECONDS)
        for peer in peers:
            peer.release()
        self._workers.clear()
        atexit.unregister(self._kill_all)

    def _kill_all(self) -> None:
        """At the exit of a program that never called ``stop``; multiprocessing would wait for them."""
        for peer in self._workers.values():
            peer.strike()


async def _all_ended(peers: Sequence[_Worker], timeout_seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_seconds):
            for peer in peers:
                await peer.ended.wait()


class _Worker(asyncio.Protocol):
    """One worker's process and our end of its socket pair."""

    def __init__(self, name: str, process: ForkServerProcess, events: EngineEvents, held: bool) -> None:
        self.name = name
        self.ended = asyncio.Event()  # its exit status is known
        self._process = process
        self._pid = process.pid
        self._sentinel = process.sentinel
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._splitter = FrameSplitter()
        self._transport: asyncio.Transport | None = None
        self._held = held
        self._connected = True
        self._stopping = False
        self._reported = False
        self._released = False
        self._fault = ""
        self._code = 0
        self.unreported = False  # it ended, or was told to, and the fork server has not said so

    async def connect(self, sock: socket.socket) -> None:
        self._loop.add_reader(self._sentinel, self._on_exit)
        await self._loop.create_unix_connection(lambda: self, sock=sock)

    # --- what happens to it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._held:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._splitter.feed(data)
        self._hand_out()

    def connection_lost(self, error: Exception | None) -> None:
        self._connected = False
        if not self.ended.is_set() and not self._stopping:
            self._loop.call_later(EXIT_SECONDS, self.kill)
        self._report()

    def _on_exit(self) -> None:
        if self.ended.is_set():
            return  # by now the sentinel may be somebody else's
        self._loop.remove_reader(self._sentinel)
        code = exit_code(self._process)
        if code is None:
            self._loop.call_later(BUSY_SECONDS, self._on_exit)
            return
        if code == EXIT_UNKNOWN and self._connected:
            self._signal_pid(signal.SIGKILL)  # its socket is open, so the pid is still its own
        self._code = code
        self.unreported = False
        self.ended.set()
        self._report()

    def _look(self) -> None:
        """Some time after SIGKILL: if the fork server doesn't say that it ended, see whether it did."""
        if self.ended.is_set() or self._reported:
            return
        if not has_ended(self._pid):
            self._loop.call_later(REPORT_SECONDS, self._look)
            return
        self._loop.remove_reader(self._sentinel)
        self._code = -signal.SIGKILL
        self.ended.set()
        self._report()

    def _hand_out(self) -> None:
        """Report the messages that arrived, for as long as reading isn't held."""
        try:
            while not self._held and not self._reported and (data := self._splitter.next()) is not None:
                self._events.message(self.name, data)
        except FrameError as error:
            self._fail(str(error))
        self._report()

    def _fail(self, fault: str) -> None:
        self._fault = self._fault or fault
        self.kill()
        if self._transport is not None:
            self._transport.abort()

    def _report(self) -> None:
        if self._reported or not self.ended.is_set() or self._connected:
            return
        if self._held and not self._stopping:
            return  # messages may wait; ``hold`` comes back here
        self._reported = True
        if self._fault:
            reason = f"protocol error: {self._fault}"
        else:
            reason = "stopped" if self._stopping else describe_exit(self._code)
        self._events.gone(self.name, reason, self._code != EXIT_UNKNOWN)

    # --- what is done to it

    def send(self, data: bytes) -> None:
        if self.ended.is_set() or self._transport is None or self._transport.is_closing():
            return  # a write to the dead would break the connection, and with it go its unread last words
        if self._transport.get_write_buffer_size() > WRITE_LIMIT_BYTES:
            self._fail("it does not read what it is sent")
            return
        self._transport.write(frame(data))

    def hold(self, hold: bool) -> None:
        self._held = hold
        if self._transport is not None and not self._transport.is_closing():
            if hold:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()
        if not hold:
            self._hand_out()

    def send_signal(self, number: signal.Signals) -> None:
        if not self.ended.is_set():
            send_signal(self._process, number)

    def strike(self) -> None:
        """SIGKILL, and nothing else: the event loop may be over."""
        if not self.ended.is_set():
            kill_child(self._process)

    def kill(self) -> None:
        self.strike()
        if not self.ended.is_set() and not self.unreported:
            self.unreported = True
            self._loop.call_later(REPORT_SECONDS, self._look)

    def close(self) -> None:
        """End of file for the worker, which ends of itself; a frozen one is thawed so that it can."""
        self._stopping = True
        self.send_signal(signal.SIGCONT)
        if self._transport is not None:
            self._transport.close()

    def release(self) -> None:
        """After its end: report it and free what it held. Once: a start that is cut off cleans up while the
        engine is stopped."""
        if self._released:
            return
        self._released = True
        if self._transport is not None:
            self._transport.abort()
        self._connected = False
        if self.ended.is_set():
            end_child(self._process)
        else:  # not even SIGKILL ended it yet; leave it to the system
            self._loop.remove_reader(self._sentinel)
            self._code = EXIT_UNKNOWN
            self.ended.set()
        self._report()

    def _signal_pid(self, number: signal.Signals) -> None:
        assert self._pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)
