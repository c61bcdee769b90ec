"""The workers of a stretch of work as processes: starts and ends them, and knows who is there.

Theory of operation. Somebody is *on the way* from the decision to start a process until the engine says it is
up, then *there* until it says it is gone. Who died is started again as often as ``Departures`` allows; who
won't come back leaves a spool, which another offers. While memory is short (farm.guard) nobody is started.

Rules of this file:
- no decision about claims is made here: what happens to a worker is told to the relay as a stimulus;
- nobody is started any more when the end is near.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Protocol

from farm import events as ev
from farm import messages as msg
from farm.additions import Additions, Room
from farm.commands import AddWorker
from farm.departures import Departures
from farm.engines.base import Engine, EngineEvents
from farm.errors import UnevenError
from farm.fleet import WorkerProfile
from farm.guard import MemoryGuard, Watches
from farm.relay.relay import Relay
from farm.relay.turn import Outcome, beat
from farm.worker.spec import WorkerSpec

#: How long, in a drain, a worker that holds no claim any more may take to go; then it is ended.
DRAIN_LEAVE_SECONDS = 2.0


class Shell(EngineEvents, Protocol):
    """What the crew needs of the relay's shell. Called in its event loop."""

    def post(self, apply: Callable[[float], Outcome]) -> None:
        """Have the relay handle it, at the time it is given."""
        ...

    def emit(self, event: ev.AnyEvent) -> None: ...
    def push(self, worker: str, message: msg.AnyAnswer) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class Crew:
    """One fleet in one stretch of work; ``Guarded`` by the memory guard. Use in one event loop."""

    def __init__(
        self, shell: Shell, engine: Engine, relay: Relay, specs: Sequence[WorkerSpec], watches: Watches
    ) -> None:
        self._shell = shell
        self.emit = shell.emit
        self._engine = engine
        self._relay = relay
        #: of everybody who is or was in the fleet, by name
        self.specs = {spec.name: spec for spec in specs}
        self.there: set[str] = set()
        self._on_the_way: set[str] = set()
        self.pids: dict[str, int] = {}  #: of those who are there and have one on this machine
        self.departures = Departures(watches.oom_kills)
        caps = {spec.name: cap for spec in specs if (cap := spec.profile.memory_bytes) is not None}
        self.guard = MemoryGuard(self, caps, watches)
        self.additions = Additions(self.specs, Room(watches.gate_bytes, watches.worker_bytes, watches.cores))
        self._room = asyncio.Event()  # no reason to hold back workers
        self._room.set()
        #: in a drain: since when a worker has had nothing to do but go
        self._done_since: dict[str, float] = {}
        self._closing = False

    @property
    def is_lost(self) -> bool:
        """Nobody is there or on the way."""
        return not (self.there or self._on_the_way)

    @property
    def _end_is_near(self) -> bool:
        """Nobody is started any more."""
        return self._relay.books.finished or self._relay.books.draining

    # --- coming ------------------------------------------------------------------------------------------

    def call(self) -> None:
        """Everybody is on the way: ``start`` follows."""
        self._on_the_way = set(self.specs)

    async def start(self) -> None:
        """Start the fleet; with a bound on free memory, each when there is room for it."""
        if self.memfree_bytes:
            await self.guard.look()
            self._shell.spawn(self._start_one_by_one())
        else:
            await self._engine.start(list(self.specs.values()), self._shell)

    async def _start_one_by_one(self) -> None:
        for spec in list(self.specs.values()):  # those who are added meanwhile are started by themselves
            await self._start(spec)

    async def _start(self, spec: WorkerSpec) -> None:
        await self._room.wait()
        await self._engine.start([spec], self._shell)

    def _start_again(self, worker: str) -> None:
        self._on_the_way.add(worker)
        self._shell.spawn(self._start(self.specs[worker]))

    def consider(self, command: AddWorker) -> AddWorker | None:
        """The command with the worker's name; None, and an event says why, where there is no room for it."""
        command, refusal, note = self.additions.consider(command, self.there | self._on_the_way)
        if refusal:
            self.emit(ev.CommandRefused(command="AddWorker", reason=refusal, by=command.by))
            return None
        if note:
            self.emit(ev.Notice(level="warning", text=note))
        return command

    def add(self, profile: WorkerProfile) -> None:
        """Start one more."""
        spec = self.additions.spec_of(profile)
        self._on_the_way.add(spec.name)
        self._shell.spawn(self._start_added(spec))

    async def _start_added(self, spec: WorkerSpec) -> None:
        """One that can't be started is missed by nobody: the run goes on without it."""
        self.specs[spec.name] = spec
        if spec.profile.memory_bytes is not None:
            self.guard.books.limit(spec.name, spec.profile.memory_bytes)
        try:
            await self._start(spec)
        except UnevenError as error:
            self._on_the_way.discard(spec.name)
            self.emit(ev.Notice(level="error", text=f"not added: {error}"))

    def up(self, worker: str, pid: int | None) -> None:
        """The engine says that its process exists."""
        self._on_the_way.discard(worker)
        self.there.add(worker)
        self.departures.started(worker)
        if pid is not None:
            self.pids[worker] = pid

    # --- going -------------------------------------------------------------------------------------------

    def gone(self, worker: str, reason: str, sure: bool) -> None:
        """The engine says that it ended (``sure``) or was lost sight of."""
        self.there.discard(worker)
        self.pids.pop(worker, None)
        if self._closing:
            return
        books = self._relay.books
        reason, kind = self.departures.explain(worker, reason)
        if worker in books.workers or reason != "exited":
            self.departures.note(worker, reason)
        self._shell.post(lambda now: self._relay.gone(worker, reason, sure, now, kind))
        if not sure or self._end_is_near:
            return
        if worker in books.workers and self.departures.may_restart(worker):
            self._start_again(worker)
        elif worker in self.specs:
            self._hand_on_spool(self.specs[worker])

    def _hand_on_spool(self, gone: WorkerSpec) -> None:
        """A worker won't come back: what it had finished is another one's to offer."""
        there = (spec for name, spec in self.specs.items() if name in self.there)
        heir = next((spec.name for spec in there if spec.shares_disk), "")
        if heir and gone.shares_disk:
            spools = tuple(map(str, (gone.spool_dir, *gone.orphan_spools)))
            self._shell.push(heir, beat(self._relay.books, orphan_spools=spools))

    def strike(self, worker: str, *, beyond_memory: str = "") -> None:
        """End its process at once. Unless it was ``beyond_memory``, and why, it is not started again."""
        self.departures.struck(worker, beyond_memory=beyond_memory, stays_away=not beyond_memory)
        self._shell.spawn(self._engine.kill(worker))

    def end_idle(self, at_work: Collection[str], now: float) -> None:
        """In a drain, end those who aren't ``at_work`` and don't go by themselves: a frozen one never does,
        and there is nothing of it to wait for once its claims have lapsed."""
        self._done_since = {name: self._done_since.get(name, now) for name in self.there - set(at_work)}
        for worker, since in self._done_since.items():
            if now - since >= DRAIN_LEAVE_SECONDS:
                self._done_since[worker] = now  # not again on every tick
                self.strike(worker)

    async def end(self, grace_seconds: float) -> None:
        """End everybody; nobody comes back and nothing is told any more."""
        self._closing = True
        await self._engine.stop(grace_seconds)

    # --- memory (farm.guard.Guarded) -----------------------------------------------------------------------

    @property
    def memfree_bytes(self) -> int:
        return self._relay.books.options.memfree_bytes

    def end_worker(self, worker: str, reason: str, *, fault: bool) -> None:
        if worker not in self.there or self.departures.is_struck(worker):
            return
        if fault:
            self.strike(worker, beyond_memory=reason)
            return
        self.emit(ev.Notice(level="warning", text=f"{worker} is {reason}"))
        self.departures.note(worker, reason)
        self._shell.post(lambda now: self._relay.handle(worker, msg.Leave(reason=reason), now))
        self.strike(worker)

    def hold(self, reason: str) -> None:
        if reason:
            self._room.clear()
            if not self._relay.books.held:
                self._shell.post(lambda now: self._relay.hold(reason, now))
        else:
            self._room.set()
            if self._relay.books.held:
                self._shell.post(self._relay.free)

    # --- faults (farm.faultdriver.Processes) ---------------------------------------------------------------

    def present(self, worker: str) -> bool:
        return worker in self._relay.books.workers

    def freeze(self, worker: str, frozen: bool) -> None:
        self._engine.stall(worker, frozen)

    def expect(self, worker: str) -> None:
        self._on_the_way.add(worker)

    def revive(self, worker: str) -> None:
        if worker in self.there or self._end_is_near:
            self._on_the_way.discard(worker)
            return
        self.departures.comes_back(worker)
        self._start_again(worker)
