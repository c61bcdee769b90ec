"""Faults in virtual time (farm.faults): the same list as live, with the same effect on what the relay hears.

Rules of this file:
- what happens when is the schedule's word; here is only what it does to a simulated worker, line or relay;
- what the live shell finds out about a delivered file (damaged, a frame too few) is said to the relay here in
  the same words, since nothing is stored;
- a fault outlives the process it hits: it is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from farm import events as ev
from farm import messages as msg
from farm.faults import Fault, FaultSchedule, Step, Troubles
from farm.messages import AnyRequest
from farm.scenario.faults import never_came, spell
from farm.simulation.agenda import Agenda
from farm.simulation.delivery import Deliveries, RenderedPart
from farm.simulation.doing import Doing
from farm.simulation.leasetime import LeaseTime
from farm.simulation.line import Line
from farm.simulation.troubled import TroubledWorker
from farm.simulation.world import World

#: How long a delivery that the store refused waits: at first, and at most (farm.worker.faults).
BACKOFF_SECONDS, BACKOFF_SECONDS_MAX = 0.1, 2.0
#: A stopped process is looked at again after this long.
_FROZEN_SECONDS = 0.25
#: An id as a careless worker writes it.
BAD_TOKEN = "c01#1@e1"


class Stage(Protocol):
    """What a simulation lets its faults do."""

    def log(self, events: Sequence[ev.AnyEvent]) -> None: ...
    def wake(self, worker: TroubledWorker) -> None: ...
    def cut_off(self, worker: TroubledWorker) -> None: ...
    def join_up(self, worker: TroubledWorker) -> None: ...
    def lose(self, worker: TroubledWorker, reason: str, *, for_good: bool) -> None: ...
    def hold_relay(self, held: bool) -> None: ...
    @property
    def lease_time(self) -> LeaseTime: ...


class Faults:
    """``to_come``: steps that are planned and have not happened."""

    def __init__(
        self,
        stage: Stage,
        agenda: Agenda,
        workers: dict[str, TroubledWorker],
        lines: dict[str, Line],
        world: World,
    ) -> None:
        """``workers`` and ``lines``, by name, may be filled later."""
        self._stage = stage
        self._agenda = agenda
        self._workers = workers
        self._lines = lines
        names = [worker.name for worker in world.workers]
        self._schedule = FaultSchedule(world.faults, names, world.frames)
        self._asleep: list[TroubledWorker] = []  # by ``suspend``
        self._troubled: set[str] = set()  # whose deliveries are looked at one by one
        self._planned: list[Step] = []

    @property
    def to_come(self) -> int:
        return len(self._planned)

    def see(self, at: float, events: Sequence[ev.AnyEvent]) -> None:
        """Events as they happen."""
        for event in events:
            self._plan(self._schedule.see(at, event))

    def inject(self, fault: Fault, now: float) -> None:
        self._plan(self._schedule.inject(fault, now))

    def never_came(self) -> list[ev.Notice]:
        """At the end: what is to be said of faults that never came due."""
        planned = [step.fault for step in self._planned if step.begins]
        return never_came([*self._schedule.waiting, *planned])

    def _plan(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._planned.append(step)
            at = max(step.at + self._stage.lease_time.lost_seconds, self._agenda.now)
            self._agenda.add(at, self._act, step)

    def _act(self, step: Step) -> None:
        self._planned.remove(step)
        worker = self._workers[step.worker] if step.worker is not None else None
        if worker is not None and worker.doing is Doing.GONE:
            if step.begins:
                text = f"{spell(step.fault)}: {worker.name} is gone"
                self._stage.log((ev.Notice(level="warning", text=f"a fault did not happen: {text}"),))
            return
        self._stage.log((step.injected(spell(step.fault)) if step.begins else step.lifted(),))
        if worker is None:
            self._on_run(step)
        elif step.begins:
            self._begin(step.fault, worker)
        else:
            self._end(step.fault, worker)

    def _on_run(self, step: Step) -> None:
        match step.fault.kind:
            case "pause-relay":
                self._stage.hold_relay(step.begins)
            case "suspend" if step.begins:
                awake = [w for w in self._workers.values() if not w.frozen and w.doing is not Doing.GONE]
                self._asleep += awake
                for worker in awake:
                    worker.freeze()
                self._stage.hold_relay(True)
            case "suspend":
                self._stage.hold_relay(False)
                for worker in self._asleep:
                    self._stage.wake(worker)
                self._asleep.clear()
            case _:
                pass  # nothing in a simulation reads the wall clock

    def _begin(self, fault: Fault, worker: TroubledWorker) -> None:
        kind, now = fault.kind, self._agenda.now
        match kind:
            case "stall":
                self._freeze(worker, True)
            case "resume":
                self._freeze(worker, False)
            case "kill":
                self._stage.lose(worker, "killed by a fault", for_good=fault.seconds is None)
            case "slow":
                worker.slow(fault.amount or 1.0)
            case "lose-heartbeats":
                worker.lose_heartbeats(True)
            case "cut":
                self._stage.cut_off(worker)
            case "stand-still":
                worker.troubles.begin(kind, now, None, None)
                worker.fall_ill()
            case "fill-memory":
                worker.troubles.begin(kind, now, fault.seconds, fault.amount)
                worker.fall_ill()
            case _:
                worker.troubles.begin(kind, now, fault.seconds, fault.amount)
                self._watch_deliveries(worker)

    def _end(self, fault: Fault, worker: TroubledWorker) -> None:
        match fault.kind:
            case "stall":
                self._freeze(worker, False)
            case "kill":
                self._stage.wake(worker)
            case "slow":
                worker.slow(1.0)
            case "lose-heartbeats":
                worker.lose_heartbeats(False)
            case "cut":
                self._stage.join_up(worker)
            case _:
                worker.recover(fault.kind)

    def _freeze(self, worker: TroubledWorker, frozen: bool) -> None:
        action = "stall" if frozen else "unstall"
        self._stage.log((ev.OperatorActed(action=action, worker=worker.name, detail="by a fault"),))
        worker.freeze() if frozen else self._stage.wake(worker)

    def _watch_deliveries(self, worker: TroubledWorker) -> None:
        if worker.name not in self._troubled:
            self._troubled.add(worker.name)
            line = self._lines[worker.name]
            worker.deliver_by(partial(TroubledDeliveries, line, worker.troubles, self._agenda))


class TroubledDeliveries(Deliveries):
    """Deliveries of a worker with faults, in the place of ``sound``, which it goes on with."""

    __slots__ = ("_again", "_agenda", "_troubles")

    def __init__(self, line: Line, troubles: Troubles, agenda: Agenda, sound: Deliveries) -> None:
        super().__init__(line)
        self.in_transit = sound.in_transit
        self._waiting = sound._waiting
        self._troubles = troubles
        self._agenda = agenda
        self._again: AnyRequest | None = None

    def answered(self) -> None:
        again, self._again = self._again, None
        if again is not None:
            self._line.send(again)
        else:
            super().answered()

    def _send(self, part: RenderedPart) -> None:
        self._to_store(part, self._line.process, BACKOFF_SECONDS)

    def _to_store(self, part: RenderedPart, process: int, patience: float) -> None:
        """Bring it to the store, which may refuse it for now."""
        if self._line.process != process:
            return
        if self._line.hearer.frozen:
            self._later(_FROZEN_SECONDS, lambda: self._to_store(part, process, patience))
        elif self._troubles.take("rate-limit", self._agenda.now):
            again = min(patience * 2, BACKOFF_SECONDS_MAX)
            self._later(patience, lambda: self._to_store(part, process, again))
        elif not part.claim.wants(part.start, part.stop):
            self.answered()
        else:
            self._report(part, process)

    def _report(self, part: RenderedPart, process: int) -> None:
        now, troubles = self._agenda.now, self._troubles
        late = troubles.amount("report-late", now)
        request = self._spoilt(part)
        if troubles.take("report-twice", now):
            self._again = request
        if troubles.take("report-late", now) and late:
            self._later(late, lambda: self._say(request, process))
        else:
            self._line.send(request)

    def _say(self, request: AnyRequest, process: int) -> None:
        if self._line.process != process:
            return
        if self._line.hearer.frozen:
            self._later(_FROZEN_SECONDS, lambda: self._say(request, process))
        else:
            self._line.send(request)

    def _spoilt(self, part: RenderedPart) -> AnyRequest:
        """What the relay hears of the part."""
        now, troubles, request = self._agenda.now, self._troubles, part.deliver()
        if troubles.take("bad-id", now):
            return replace(request, token=BAD_TOKEN)
        if troubles.take("wrong-count", now):
            return replace(request, frames=request.frames - 1)
        if troubles.take("corrupt", now):
            message = "a packet does not match its checksum"
            return msg.Fail(token=request.token, part=request.part, kind="damaged", message=message)
        return request

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._agenda.add(self._agenda.now + seconds, lambda _: what())
