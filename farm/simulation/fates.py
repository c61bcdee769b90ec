"""What a world has in store for its workers: when each arrives, falls silent, is cut off and dies.

That is in the world from the start, unlike faults (farm.simulation.faults), which may follow from events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from farm import events as ev
from farm.simulation.agenda import Agenda
from farm.simulation.doing import Doing
from farm.simulation.worker import Worker


class Scene(Protocol):
    """What a simulation lets happen to its workers."""

    def log(self, events: Sequence[ev.AnyEvent]) -> None: ...
    def wake(self, worker: Worker) -> None: ...
    def cut_off(self, worker: Worker) -> None: ...
    def join_up(self, worker: Worker) -> None: ...
    def die(self, worker: Worker) -> None: ...


class Fates:
    def __init__(self, scene: Scene, agenda: Agenda) -> None:
        self._scene = scene
        self._agenda = agenda
        self.to_come = 0  #: arrivals, and ends of silences and cuts, that have not happened

    def plan(self, worker: Worker) -> None:
        """Put down what the world has in store for a worker."""
        spec, add = worker.spec, self._agenda.add
        if spec.dies_at_seconds is not None:
            add(spec.dies_at_seconds, self._scene.die, worker)
        for start, stop in spec.silences:
            add(start, self._freeze, worker)
            add(stop, self._thaw, worker)
        for start, stop in spec.partitions:
            add(start, self._cut, worker)
            add(stop, self._heal, worker)
        add(spec.arrives_at_seconds, self._come, worker)
        self.to_come += 1 + len(spec.silences) + len(spec.partitions)

    def stall(self, worker: Worker, stalled: bool) -> None:
        """By the operator, who alone can tell when it ends."""
        if stalled != worker.frozen:
            self.to_come += 1 if stalled else -1
            worker.freeze() if stalled else worker.thaw()

    def _come(self, worker: Worker) -> None:
        self.to_come -= 1
        if not worker.frozen:
            worker.arrive()

    def _freeze(self, worker: Worker) -> None:
        self._tell("stall", worker)
        worker.freeze()

    def _thaw(self, worker: Worker) -> None:
        self.to_come -= 1
        self._tell("unstall", worker)
        self._scene.wake(worker)

    def _cut(self, worker: Worker) -> None:
        self._tell("cut off", worker)
        self._scene.cut_off(worker)

    def _heal(self, worker: Worker) -> None:
        """What each said to the other meanwhile arrives, in order."""
        self.to_come -= 1
        self._tell("joined up", worker)
        self._scene.join_up(worker)

    def _tell(self, action: str, worker: Worker) -> None:
        if worker.doing is not Doing.GONE:
            self._scene.log((ev.OperatorActed(action=action, worker=worker.name, detail="by the scenario"),))
