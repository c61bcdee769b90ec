"""The relay's shell: what carries messages between engine, relay, journal and store while there is work.

Theory of operation. Stimuli (messages, deaths, ticks, commands) wait in one bounded inbox. One task takes all
that wait, lets the relay handle them in order, commits the events of the whole batch, and only then sends the
answers. Deliveries are on disk and checked (farm.deliveries) before the relay hears of them. While the inbox
is full the engine stops reading: senders wait, nothing is dropped.

Rules of this file:
- no decision about claims is made here;
- nothing blocks the loop: SQLite has its thread, files are checked in others;
- time is the lease clock, which doesn't count while this process itself slept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.besides import Besides
from farm.clock import LeaseClock
from farm.crew import Crew
from farm.deliveries import Delivery, DeliveryDesk
from farm.engines.base import Engine
from farm.errors import OutputError, VerificationError
from farm.eventlog import EventLog
from farm.faultdriver import FaultDriver
from farm.ground import GroundWatch
from farm.guard import Watches
from farm.halt import Halting
from farm.inbox import INBOX_MAX, Inbox
from farm.manners import DELIVERIES_MAX, LEAVE_SECONDS, TICK_SECONDS
from farm.paths import printable
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.respite import TOLD_SECONDS, Respite
from farm.startline import StartLine
from farm.store import Store
from farm.vitals import Vitals, vitals_seconds
from farm.worker.spec import WorkerSpec

#: How long the start line waits for the slowest worker to arrive before the first claim is granted.
START_LINE_SECONDS = 15.0
GAUGES_SECONDS = 1.0
#: How long messages are handled in one go; then others on the loop have their turn.
SLICE_SECONDS = 0.01


class End(Enum):
    """How the work ended."""

    FINISHED = "finished"  #: nothing is open or in flight
    DRAINED = "drained"  #: stopped in good order; resumable
    STOPPED = "stopped"  #: stopped at once; resumable
    NO_WORKERS = "no workers"  #: none is left and work is; resumable
    HALTED = "halted"  #: too many parts were set aside (``--halt``); resumable


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
        watches: Watches,
        faults: FaultDriver | None = None,
    ) -> None:
        """``check_ground`` blocks, and raises an UnevenError when there is no point in going on."""
        self._relay = relay
        self._log = log
        self._engine = engine
        self._clock = clock
        self._ground = GroundWatch(check_ground)
        self.crew = Crew(self, engine, relay, specs, watches)
        self._line = StartLine(self.crew.specs)
        self._faults = faults or FaultDriver.of_none(clock)
        self._faults.attach(self, self.crew)
        self._inbox: Inbox[_Stimulus] = Inbox(engine.hold_reading)
        self._besides = Besides(self._fail)
        self._tick_waits = False
        self._respite = Respite()
        self._folder = store.folder.parent  # of the run
        self.desk = DeliveryDesk(store, relay.books, settings_hash, self._post_request, self.spawn)
        self._failure: BaseException | None = None
        self._stop_now = False
        self._watches = watches
        self._halting = Halting()

    @property
    def halted(self) -> str:
        """Why, if it was."""
        return self._halting.reason

    # --- the stretch of work -----------------------------------------------------------------------------

    async def run(self) -> End:
        """Work until there is nothing left to do or no way to do it. No worker is left when this returns.

        Raises OutputError when a disk refuses, VerificationError when two copies of a part differ, and what
        ``check_ground`` raises.
        """
        self.crew.call()
        ticker = asyncio.create_task(self._tick())
        self.spawn(self._start_fleet())
        self.spawn(self._ground.run())
        self.spawn(self.crew.guard.run())
        self.spawn(self._show_gauges())
        self.spawn(self._show_vitals())
        try:
            end = await self._serve()
        except BaseException as error:
            try:
                await self._wind_up(ticker)
            except Exception as another:  # must not be told in the place of what ended the run
                error.add_note(f"and winding up: {another!r}")
            raise
        await self._wind_up(ticker)
        await self._see_off("the run is over" if end is End.FINISHED else "the run stopped")
        return End.HALTED if self.halted and end is not End.FINISHED else end

    async def _wind_up(self, ticker: asyncio.Task[None]) -> None:
        ticker.cancel()
        self._besides.cancel()
        try:
            await self.crew.end(LEAVE_SECONDS if not self._stop_now else 0.0)
            await asyncio.gather(ticker, self._besides.ended(), return_exceptions=True)
        finally:
            self._faults.close()

    def post_command(self, command: cmd.AnyCommand) -> None:
        """An operator's command, from this loop."""
        if isinstance(command, cmd.AddWorker):
            considered = self.crew.consider(command)
            if considered is None:
                return
            command = considered
        self._inbox.put(_Stimulus(lambda now: self._relay.command(command, now), command=command))

    async def _serve(self) -> End:
        leave_at: float | None = None
        while True:
            batch = await self._inbox.take()
            while batch and self._failure is None:
                batch = batch[await self._handle(batch) :]
                self._inbox.left_in_hand(len(batch))
                if batch:
                    await asyncio.sleep(0)  # what brings no events is committed without a wait
            if self._failure is not None:
                raise self._failure
            if self._stop_now:
                return End.STOPPED
            if self._relay.books.draining:
                workers = self._relay.books.workers
                at_work = {name for name, worker in workers.items() if worker.claims}
                self.crew.end_idle(at_work, self._clock.now())
            end = self._end()
            if end is None:
                leave_at = None
                continue
            if leave_at is None:
                leave_at = self._clock.now() + LEAVE_SECONDS
            if not self.crew.there or (end is End.FINISHED and self._clock.now() >= leave_at):
                return end

    def _end(self) -> End | None:
        """How this would end if everybody left now; None while it goes on."""
        books = self._relay.books
        if books.finished:
            return End.FINISHED
        if books.draining:
            return End.DRAINED
        return End.NO_WORKERS if self.crew.is_lost else None

    async def _handle(self, batch: Sequence[_Stimulus]) -> int:
        """Handle the first of a batch, as many as there is time for; how many that was, one at least."""
        handled = []
        events: list[ev.AnyEvent] = []
        now = self._clock.now()
        loop = asyncio.get_running_loop()
        until, taken = loop.time() + SLICE_SECONDS, 0
        for stimulus in batch:
            if taken and loop.time() >= until:
                break
            taken += 1
            if stimulus.request is not None and self._waits_in_line(stimulus.worker, stimulus.request):
                continue
            outcome = stimulus.apply(now)
            handled.append((stimulus, outcome))
            events += outcome.events
        self._watch(events)
        await self._log.commit(now, events)
        self._faults.see(now, events)
        for stimulus, outcome in handled:
            if stimulus.worker is not None and outcome.answer is not None:
                self.push(stimulus.worker, outcome.answer)
            for worker, push in outcome.pushes:
                self.push(worker, push)
            if isinstance(stimulus.request, msg.Deliver):
                self.desk.answered(stimulus.request, outcome.answer)
            if stimulus.command is not None and outcome.refusal is None:
                self._act(stimulus.command)
        return taken

    def _watch(self, events: Sequence[ev.AnyEvent]) -> None:
        for event in events:
            if isinstance(event, ev.PartUnsettled):
                self._failure = VerificationError(
                    f"part {event.part}: {event.reason}: the same frames don't give the same bytes, so no "
                    "output can be trusted"
                )
            elif isinstance(event, ev.PartFailed):
                self._ground.look_now()
            elif isinstance(event, ev.PartCredited):
                self.crew.departures.delivered(event.worker)
            elif isinstance(event, ev.PartSetAside):
                order = self._halting.set_aside(self._relay.books.options.halt)
                if order is not None:
                    self.post_command(order)
            elif isinstance(event, ev.WorkerThrottled):  # whoever is started in its place has the new cap
                self.crew.additions.throttle(event.worker, event.fps_cap)
            elif isinstance(event, ev.WorkerDismissed):
                self.crew.departures.sent_away(event.worker)
        self.desk.watch(events)

    def _waits_in_line(self, worker: str | None, request: msg.AnyRequest) -> bool:
        if self._line.is_open or worker is None or not isinstance(request, msg.Claim):
            return False
        self._line.claim(worker, request)
        self._let_go()
        return True

    def _let_go(self) -> None:
        for worker, claim in self._line.let_go():
            self._post_request(worker, claim)

    # --- engine events -----------------------------------------------------------------------------------

    def up(self, worker: str, pid: int | None, host: str) -> None:
        self.crew.up(worker, pid)

    def message(self, worker: str, data: bytes) -> None:
        try:
            request = msg.decode_request(data)
        except (msgspec.DecodeError, ValueError) as error:
            reason = f"not a message of version 1: {error}"
            self.push(worker, msg.Refused(received=repr(data[:60]), reason=reason))
            return
        if isinstance(request, msg.Fail) and request.kind == msg.DISK_FULL:
            self._stop_for_room()
        elif isinstance(request, Delivery):
            self.desk.take(worker, request)
        else:
            self._post_request(worker, request)

    def _stop_for_room(self) -> None:
        """A full disk is no part's fault: no try is counted, and trying again would fill it again."""
        name = printable(self._folder)
        full = OutputError(
            f"the disk that {name} is on is full; make room there, then resume: nothing is lost"
        )
        self._fail(full)

    def gone(self, worker: str, reason: str, sure: bool) -> None:
        self.desk.gone(worker)
        self._line.strike_off(worker)
        self._let_go()
        self.crew.gone(worker, reason, sure)

    # --- what is shown of it -----------------------------------------------------------------------------

    async def _show_gauges(self) -> None:
        while True:
            loop = self._watches.loop
            self._log.show(
                self._clock.now(),
                ev.Gauges(
                    inbox=self._inbox.waiting,
                    inbox_max=INBOX_MAX,
                    deliveries=self.desk.receiving,
                    deliveries_max=DELIVERIES_MAX,
                    parts_waiting=self.desk.waiting,
                    memory_bytes=self.crew.guard.books.used_bytes,
                    memory_gate_bytes=self._watches.gate_bytes,
                    stalls=loop.stalls,
                    stall_worst_seconds=loop.worst_seconds,
                ),
            )
            await asyncio.sleep(GAUGES_SECONDS)

    async def _show_vitals(self) -> None:
        vitals = Vitals(next(iter(self.crew.specs.values())).log_dir)
        while True:
            workers, pids = self._relay.books.workers, dict(self.crew.pids)
            tokens = {name: tuple(workers[name].claims) if name in workers else () for name in pids}
            sampled = await asyncio.to_thread(vitals.sample, pids, tokens)
            self._log.show(self._clock.now(), ev.VitalsSampled(workers=sampled))
            await asyncio.sleep(vitals_seconds(len(tokens)))

    # --- the shell's own ---------------------------------------------------------------------------------

    def _act(self, command: cmd.AnyCommand) -> None:
        match command:
            case cmd.StallWorker(worker=worker, stalled=stalled):
                self._engine.stall(worker, stalled)
            case cmd.KillWorker(worker=worker):
                self.crew.strike(worker)
            case cmd.StopNow():
                self._stop_now = True
            case cmd.InjectFault(fault=fault):
                self._faults.inject(fault)
            case cmd.AddWorker(profile=profile):
                self._faults.add(profile.name)
                self.crew.add(profile)
            case _:
                pass

    async def _start_fleet(self) -> None:
        """The start line waits for nobody for ever."""
        await self.crew.start()
        await asyncio.sleep(START_LINE_SECONDS)
        self._line.open()
        self._let_go()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            slept = self._clock.beat()
            if slept:
                self._respite.found_gap(slept, self._clock.now(), self._relay.books.options)
            if slept >= TOLD_SECONDS:
                self.emit(ev.LoopStalled(seconds=slept))
            if not self._tick_waits and self._respite.may_judge(self._clock.now()):
                self._tick_waits = True
                self.post(partial(self._judge, self._clock.now()))

    def _judge(self, asked_at: float, now: float) -> Outcome:
        self._tick_waits = False
        return Outcome() if self._respite.comes_late(asked_at, now) else self._relay.tick(now)

    async def _see_off(self, reason: str) -> None:
        """Write down the good-bye of workers that were ended from here: no losses."""
        now = self._clock.now()
        events: list[ev.AnyEvent] = [*self.crew.guard.last_peaks(), *self._faults.never_came()]
        for worker in list(self._relay.books.workers):
            events += self._relay.handle(worker, msg.Leave(reason=reason), now).events
        await self._log.commit(now, events)

    def _post_request(self, worker: str, request: msg.AnyRequest) -> None:
        self._inbox.put(
            _Stimulus(lambda now: self._relay.handle(worker, request, now), worker=worker, request=request)
        )

    # --- what the crew and faults may do (farm.crew.Shell, farm.faultdriver.Host) --------------------------

    def post(self, apply: Callable[[float], Outcome]) -> None:
        self._inbox.put(_Stimulus(apply))

    def emit(self, event: ev.AnyEvent) -> None:
        self.post(lambda now: Outcome(events=(event,)))

    def push(self, worker: str, message: msg.AnyAnswer) -> None:
        self._engine.send(worker, msg.encode(message))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the loop; what it raises ends the run."""
        self._besides.spawn(work)

    def _fail(self, error: BaseException) -> None:
        """The first failure ends the run."""
        self._failure = self._failure or error
        self._inbox.wake()
