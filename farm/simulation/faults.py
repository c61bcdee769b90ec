"""Faults in virtual time (farm.faults): the same list as live, with the same effect on what the relay hears.

Rules of this file:
- what happens when is the schedule's word; here is only what it does to a simulated worker, line or relay;
- what the live shell finds out about a delivered file (damaged, a frame too few) is said to the relay here in
  the same words, since nothing is stored;
- a fault outlives the process it hits: it is the machine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from farm import events as ev
from farm.faults import Fault, FaultSchedule, Step
from farm.scenario.faults import never_came, spell
from farm.simulation.agenda import Agenda
from farm.simulation.doing import Doing
from farm.simulation.leasetime import LeaseTime
from farm.simulation.troubled import TroubledWorker
from farm.simulation.world import World


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
    def __init__(
        self,
        stage: Stage,
        agenda: Agenda,
        workers: dict[str, TroubledWorker],
        world: World,
    ) -> None:
        """``workers``, by name, may be filled later."""
        self._stage = stage
        self._agenda = agenda
        self._workers = workers
        names = [worker.name for worker in world.workers]
        self._schedule = FaultSchedule(world.faults, names, world.frames)
        self._asleep: list[TroubledWorker] = []  # by ``suspend``
        self._planned: list[Step] = []

    @property
    def to_come(self) -> int:
        """Steps that are planned and have not happened."""
        return len(self._planned)

    def see(self, at: float, events: Sequence[ev.AnyEvent]) -> None:
        """Events as they happen."""
        for event in events:
            self._plan(self._schedule.see(at, event))

    def inject(self, fault: Fault, now: float) -> None:
        self._plan(self._schedule.inject(fault, now))

    def add(self, worker: str) -> None:
        """A worker that the world didn't have; ``workers`` has it."""
        self._schedule.add(worker)

    def never_came(self) -> list[ev.FaultNeverCame]:
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
            case _:  # of its deliveries
                worker.troubles.begin(kind, now, fault.seconds, fault.amount)

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
