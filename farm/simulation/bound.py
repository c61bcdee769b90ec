"""The lower bound on the finishing time: what a planner could do that knows everything beforehand.

Every worker works from its arrival plus one overhead until the end, its death or the end of the world, its
silences taken out, its throttles and other work taken into account; no frame is rendered twice; the last
frames end everywhere at once:

    the least t with  sum over workers of  (what it can render in [arrival + overhead, min(t, death)))  =  N

For a plain fleet that is h + N / sum(r) (docs/scheduling.md). Partitions don't raise the bound, since a
partitioned worker goes on rendering; nor do links, since parts go to the store beside the rendering.
"""

from __future__ import annotations

from math import fsum, inf

from farm.simulation.effort import Efforts, Pace
from farm.simulation.world import SimWorker, World

_HALVINGS = 100


def lower_bound_seconds(world: World) -> float:
    """Infinite if all workers die before they could be done."""
    efforts = Efforts(world)
    fleet = [(worker, efforts.pace(number)) for number, worker in enumerate(world.workers)]
    wanted = efforts.total_cost

    def done_by(time: float) -> float:
        return fsum(_work_until(worker, pace, time) for worker, pace in fleet)

    last = max(inf if w.dies_at_seconds is None else w.dies_at_seconds for w in world.workers)
    low, high = 0.0, min(1.0, last)
    while done_by(high) < wanted:
        if high == last:
            return inf
        low, high = high, min(high * 2.0, last)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if not low < middle < high:
            break
        if done_by(middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def _work_until(worker: SimWorker, pace: Pace, time: float) -> float:
    start = worker.arrives_at_seconds + worker.overhead_seconds
    stop = time if worker.dies_at_seconds is None else min(time, worker.dies_at_seconds)
    if stop <= start:
        return 0.0
    work = pace.work(start, stop)
    for silent_from, silent_to in worker.silences:
        silent_from, silent_to = max(silent_from, start), min(silent_to, stop)
        if silent_from < silent_to:
            work -= pace.work(silent_from, silent_to)
    return work
