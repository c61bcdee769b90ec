"""The relay's shell: what carries messages between engine, relay, journal and store while there is work.

Theory of operation. Stimuli (messages, deaths, ticks, commands) wait in one bounded inbox. One task takes all
that wait, lets the relay handle them in order, commits the events of the whole batch, and only then sends the
answers. Deliveries are checked and synced in threads before the relay hears of them. While the inbox is full
the engine stops reading: senders wait, nothing is dropped.

Rules of this file:
- no decision about claims is made here;
- nothing blocks the loop: SQLite has its thread, files are checked in others;
- time is the lease clock, which doesn't count while this process itself slept.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.clock import LeaseClock
from farm.engines.base import Engine
from farm.errors import VerificationError
from farm.eventlog import EventLog
from farm.faultdriver import FaultDriver
from farm.frames import PartGrid
from farm.parts import PartError
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.store import Store
from farm.worker.spec import WorkerSpec

INBOX_MAX = 512
DELIVERIES_MAX = 12
TICK_SECONDS = 0.1
#: How long the start line waits for the slowest worker to arrive before the first claim is granted.
START_LINE_SECONDS = 15.0
#: How long workers may take to leave once the work is done.
LEAVE_SECONDS = 1.0
#: How long, in a drain, a worker that holds no claim any more may take to go; then it is ended.
DRAIN_LEAVE_SECONDS = 2.0
#: How often input and run folder are looked at.
GROUND_SECONDS = 1.0
RESTARTS_MAX = 3


class End(Enum):
    """How the work ended."""

    FINISHED = "finished"  #: nothing is open or in flight
    DRAINED = "drained"  #: stopped in good order; resumable
    STOPPED = "stopped"  #: stopped at once; resumable
    NO_WORKERS = "no workers"  #: none is left and work is; resumable


@dataclass(frozen=True, slots=True)
class _Stimulus:
    apply: Callable[[float], Outcome]
    worker: str | None = None  #: whom the answer goes to
    request: msg.AnyRequest | None = None
    command: cmd.AnyCommand | None = None


class RelayHost:
    """Hosts one relay for one stretch of work; an ``EngineEvents``. Use in one event loop."""

    def __init__(
        self,
        relay: Relay,
        log: EventLog,
        engine: Engine,
        store: Store,
        clock: LeaseClock,
        specs: Sequence[WorkerSpec],
        settings_hash: str,
        check_ground: Callable[[], None],
        faults: FaultDriver | None = None,
    ) -> None:
        """``check_ground`` blocks, and raises an UnevenError when there is no point in going on."""
        self._relay = relay
        self._log = log
        self._engine = engine
        self._store = store
        self._clock = clock
        self._specs = {spec.name: spec for spec in specs}
        self._settings_hash = settings_hash
        self._check_ground = check_ground
        self._faults = faults or FaultDriver.of_none(clock)
        self._faults.attach(self)
        self._part_failed = asyncio.Event()
        self._inbox: list[_Stimulus] = []
        self._arrived = asyncio.Event()
        self._held = False
        self._tick_waits = False
        self._delivering = asyncio.Semaphore(DELIVERIES_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        #: workers of the start line that have not asked or gone yet; None once the line has opened
        self._line: set[str] | None = set(self._specs)
        self._line_claims: dict[str, msg.Claim] = {}
        self._alive: set[str] = set()
        self._starting: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._no_restart: set[str] = set()
        #: in a drain: since when a worker has had nothing to do but go
        self._done_since: dict[str, float] = {}
        self._stop_now = False
        self._closing = False

    # --- the stretch of work -----------------------------------------------------------------------------

    async def run(self) -> End:
        """Work until there is nothing left to do or no way to do it. No worker is left when this returns.

        Raises OutputError when a disk refuses, VerificationError when two copies of a part differ, and what
        ``check_ground`` raises.
        """
        self._starting = set(self._specs)
        ticker = asyncio.create_task(self._tick())
        self._spawn(self._start_fleet())
        self._spawn(self._watch_ground())
        try:
            end = await self._serve()
        finally:
            self._closing = True
            self._faults.close()
            ticker.cancel()
            for task in list(self._tasks):
                task.cancel()
            await self._engine.stop(LEAVE_SECONDS if not self._stop_now else 0.0)
            await asyncio.gather(ticker, *self._tasks, return_exceptions=True)
        await self._see_off("the run is over" if end is End.FINISHED else "the run stopped")
        return end

    def post_command(self, command: cmd.AnyCommand) -> None:
        """An operator's command, from this loop."""
        self._post(_Stimulus(lambda now: self._relay.command(command, now), command=command))

    async def _serve(self) -> End:
        leave_at: float | None = None
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            batch, self._inbox = self._inbox, []
            if self._held:
                self._held = False
                self._engine.hold_reading(False)
            await self._handle(batch)
            if self._failure is not None:
                raise self._failure
            if self._stop_now:
                return End.STOPPED
            if self._relay.books.draining:
                self._end_idle_workers()
            end = self._end()
            if end is None:
                leave_at = None
                continue
            if leave_at is None:
                leave_at = self._clock.now() + LEAVE_SECONDS
            if not self._alive or (end is End.FINISHED and self._clock.now() >= leave_at):
                return end

    def _end(self) -> End | None:
        """How this would end if everybody left now; None while it goes on."""
        books = self._relay.books
        if books.finished:
            return End.FINISHED
        if books.draining:
            return End.DRAINED
        return None if self._alive or self._starting else End.NO_WORKERS

    def _end_idle_workers(self) -> None:
        """In a drain, end the workers that hold no claim and don't go by themselves: a frozen one never does,
        and there is nothing of it to wait for once its claims have lapsed."""
        now, workers = self._clock.now(), self._relay.books.workers
        idle = {name for name in self._alive if name not in workers or not workers[name].claims}
        self._done_since = {name: self._done_since.get(name, now) for name in idle}
        for worker, since in self._done_since.items():
            if now - since >= DRAIN_LEAVE_SECONDS:
                self._done_since[worker] = now  # not again on every tick
                self._no_restart.add(worker)
                self._spawn(self._engine.kill(worker))

    async def _handle(self, batch: Sequence[_Stimulus]) -> None:
        handled = []
        events: list[ev.AnyEvent] = []
        now = self._clock.now()
        for stimulus in batch:
            if stimulus.request is not None and self._waits_in_line(stimulus.worker, stimulus.request):
                continue
            outcome = stimulus.apply(now)
            handled.append((stimulus, outcome))
            events += outcome.events
            if outcome.refusal is not None:
                events.append(ev.Notice(level="warning", text=f"refused: {outcome.refusal}"))
        self._watch(events)
        await self._log.commit(now, events)
        self._faults.see(now, events)
        for stimulus, outcome in handled:
            if stimulus.worker is not None and outcome.answer is not None:
                self._engine.send(stimulus.worker, msg.encode(outcome.answer))
            for worker, push in outcome.pushes:
                self._engine.send(worker, msg.encode(push))
            if isinstance(stimulus.request, msg.Deliver):
                self._discard_refused(stimulus.request, outcome)
            if stimulus.command is not None and outcome.refusal is None:
                self._act(stimulus.command)

    def _watch(self, events: Sequence[ev.AnyEvent]) -> None:
        for event in events:
            if isinstance(event, ev.PartUnsettled):
                self._failure = VerificationError(
                    f"part {event.part}: {event.reason}: the same frames don't give the same bytes, so no "
                    "output can be trusted"
                )
            elif isinstance(event, ev.PartFailed):
                self._part_failed.set()
            elif isinstance(event, ev.SeamMismatched):
                self._spawn(self._purge())

    def _discard_refused(self, request: msg.Deliver, outcome: Outcome) -> None:
        """Remove a delivered file that counts for nothing; attempt-unique names make that safe."""
        answer = outcome.answer
        if isinstance(answer, msg.Delivered) and answer.frames:
            return
        credit = self._relay.books.credits.get(request.part) if request.part is not None else None
        if request.file and (credit is None or credit.file != request.file):
            self._spawn(self._discard(request.file))

    # --- the start line ----------------------------------------------------------------------------------

    def _waits_in_line(self, worker: str | None, request: msg.AnyRequest) -> bool:
        """Claims are held back until the whole fleet is there, and then granted in its order, so that a run
        doesn't depend on which process happened to start first."""
        if self._line is None or worker is None or not isinstance(request, msg.Claim):
            return False
        self._line_claims[worker] = request
        self._step_up(worker)
        return True

    def _step_up(self, worker: str) -> None:
        if self._line is not None:
            self._line.discard(worker)
            if not self._line:
                self._open_line()

    def _open_line(self) -> None:
        self._line = None
        for name in self._specs:
            claim = self._line_claims.pop(name, None)
            if claim is not None:
                self._post_request(name, claim)

    # --- engine events -----------------------------------------------------------------------------------

    def up(self, worker: str, pid: int | None, host: str) -> None:
        self._starting.discard(worker)
        self._alive.add(worker)

    def message(self, worker: str, data: bytes) -> None:
        try:
            request = msg.decode_request(data)
        except (msgspec.DecodeError, ValueError) as error:
            refusal = msg.Refused(received=repr(data[:60]), reason=f"not a message of version 1: {error}")
            self._engine.send(worker, msg.encode(refusal))
            return
        if isinstance(request, msg.Deliver) and self._expected(request) is not None:
            self._spawn(self._check(worker, request))
        else:
            self._post_request(worker, request)

    def gone(self, worker: str, reason: str, sure: bool) -> None:
        self._alive.discard(worker)
        self._step_up(worker)
        if self._closing:
            return
        self._post(_Stimulus(lambda now: self._relay.gone(worker, reason, sure, now)))
        books = self._relay.books
        restarts = self._restarts.get(worker, 0)
        wanted = worker in books.workers and worker not in self._no_restart
        if sure and wanted and restarts < RESTARTS_MAX and not (books.finished or books.draining):
            self._restarts[worker] = restarts + 1
            self._starting.add(worker)
            self._spawn(self._start(self._specs[worker]))

    # --- deliveries --------------------------------------------------------------------------------------

    def _expected(self, request: msg.Deliver) -> PartGrid | None:
        """The grid, if the delivery names a part of it; what doesn't is the relay's to refuse."""
        grid = self._relay.books.grid
        return grid if request.part is not None and 0 <= request.part < grid.parts else None

    async def _check(self, worker: str, request: msg.Deliver) -> None:
        """Check and sync the delivered file, then tell the relay what was found."""
        grid, part = self._relay.books.grid, request.part
        assert part is not None
        found: msg.AnyRequest
        async with self._delivering:
            try:
                facts = await asyncio.to_thread(
                    self._store.accept,
                    request.file,
                    part=part,
                    start=grid.start(part),
                    stop=grid.stop(part),
                    settings_hash=self._settings_hash,
                    sha256=request.sha256 or None,
                )
                found = msgspec.structs.replace(
                    request,
                    frames=facts.footer.frames,
                    size_bytes=facts.size_bytes,
                    sha256=facts.sha256,
                    first_frame_crc=facts.footer.first_frame_crc,
                    next_frame_crc=facts.footer.next_frame_crc,
                    lost_frames=facts.footer.lost_frames,
                )
            except PartError as error:
                found = msg.Fail(
                    seq=request.seq, token=request.token, part=part, kind="damaged", message=str(error)
                )
        self._post_request(worker, found)

    async def _discard(self, file: str) -> None:
        try:
            await asyncio.to_thread(self._store.discard, file)
        except PartError:
            return  # it named no file of the store: nothing to remove

    async def _purge(self) -> None:
        """Remove what the store holds and the books don't."""
        for _, path in await asyncio.to_thread(self._store.scan):
            if path.name not in {credit.file for credit in self._relay.books.credits.values()}:
                await asyncio.to_thread(self._store.discard, path.name)

    # --- the shell's own -------------------------------------------------------------------------------

    def _act(self, command: cmd.AnyCommand) -> None:
        match command:
            case cmd.StallWorker(worker=worker, stalled=stalled):
                self._engine.stall(worker, stalled)
            case cmd.KillWorker(worker=worker):
                self._no_restart.add(worker)
                self._spawn(self._engine.kill(worker))
            case cmd.StopNow():
                self._stop_now = True
            case cmd.InjectFault(fault=fault):
                self._faults.inject(fault)
            case _:
                pass

    # --- what faults may do (farm.faultdriver.Host) --------------------------------------------------------

    def post_events(self, events: Sequence[ev.AnyEvent]) -> None:
        self._post(_Stimulus(lambda now: Outcome(events=tuple(events))))

    def push(self, worker: str, message: msg.AnyAnswer) -> None:
        self._engine.send(worker, msg.encode(message))

    def present(self, worker: str) -> bool:
        return worker in self._relay.books.workers

    def freeze(self, worker: str, frozen: bool) -> None:
        self._engine.stall(worker, frozen)

    def expect(self, worker: str) -> None:
        self._starting.add(worker)

    def revive(self, worker: str) -> None:
        books = self._relay.books
        if worker in self._alive or books.finished or books.draining:
            self._starting.discard(worker)
            return
        self._no_restart.discard(worker)
        self._starting.add(worker)
        self._spawn(self._start(self._specs[worker]))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawn(work)

    async def _start_fleet(self) -> None:
        await self._engine.start(list(self._specs.values()), self)
        await asyncio.sleep(START_LINE_SECONDS)
        if self._line is not None:
            self._open_line()

    async def _start(self, spec: WorkerSpec) -> None:
        await self._engine.start([spec], self)

    async def _watch_ground(self) -> None:
        """Look now and then, and at once when a part fails, whether what the run stands on is still there."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GROUND_SECONDS):
                    await self._part_failed.wait()
            self._part_failed.clear()
            await asyncio.to_thread(self._check_ground)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            slept = self._clock.beat()
            if slept:
                self._post(_Stimulus(partial(self._note_stall, slept)))
            if not self._tick_waits:
                self._tick_waits = True
                self._post(_Stimulus(self._judge))

    def _note_stall(self, seconds: float, now: float) -> Outcome:
        return Outcome(events=(ev.LoopStalled(seconds=seconds),))

    def _judge(self, now: float) -> Outcome:
        self._tick_waits = False
        return self._relay.tick(now)

    async def _see_off(self, reason: str) -> None:
        """Write down the good-bye of workers that were ended from here: no losses."""
        now = self._clock.now()
        events: list[ev.AnyEvent] = [*self._faults.never_came()]
        for worker in list(self._relay.books.workers):
            events += self._relay.handle(worker, msg.Leave(reason=reason), now).events
        await self._log.commit(now, events)

    def _post_request(self, worker: str, request: msg.AnyRequest) -> None:
        self._post(
            _Stimulus(lambda now: self._relay.handle(worker, request, now), worker=worker, request=request)
        )

    def _post(self, stimulus: _Stimulus) -> None:
        self._inbox.append(stimulus)
        self._arrived.set()
        if len(self._inbox) >= INBOX_MAX and not self._held:
            self._held = True
            self._engine.hold_reading(True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the loop; what it raises ends the run."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or self._closing:
            return
        error = task.exception()
        if error is not None:
            self._failure = self._failure or error
            self._arrived.set()
