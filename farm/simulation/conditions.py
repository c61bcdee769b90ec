"""What a world may go through: the conditions of the benchmark grid (docs/scheduling.md), each a function
from a world without trouble to one with it. What is drawn comes from the world's own seed.

``base`` is h = 2 s, heartbeats every 2 s, leases of 20 s. Where a condition needs a time it is a share of the
lower bound of the world before it. Choices that the description leaves open are said here, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum

from msgspec.structs import replace

from farm.simulation.bound import lower_bound_seconds
from farm.simulation.noise import Stream
from farm.simulation.world import SimWorker, World

Condition = Callable[[World], World]


def base(world: World) -> World:
    return world


def short_overhead(world: World) -> World:
    """h = 0.1 s."""
    return _each(world, lambda worker: replace(worker, overhead_seconds=0.1))


def long_overhead(world: World) -> World:
    """h = 10 s."""
    return _each(world, lambda worker: replace(worker, overhead_seconds=10.0))


def stall(world: World) -> World:
    """The fastest worker is silent for 60 s, from 10 to 60 % of the bound on."""
    start = Stream(world.seed, "stall").uniform(0.1, 0.6) * lower_bound_seconds(world)
    fastest = max(range(len(world.workers)), key=lambda number: world.workers[number].fps)
    return _with(world, fastest, replace(world.workers[fastest], silences=((start, start + 60.0),)))


def die(world: World) -> World:
    """A fast worker (one of the faster quarter) is dead from half the bound on; only its lease tells."""
    fast = _by_speed(world)[: max(1, len(world.workers) // 4)]
    chosen = Stream(world.seed, "die").choice(fast)
    at = lower_bound_seconds(world) / 2.0
    return _with(world, chosen, replace(world.workers[chosen], dies_at_seconds=at))


def throttle(world: World) -> World:
    """The faster half drops to 40 % of its speed at half the bound."""
    at = lower_bound_seconds(world) / 2.0
    for number in _by_speed(world)[: len(world.workers) // 2]:
        world = _with(world, number, replace(world.workers[number], throttles=((at, 0.4),)))
    return world


def noise(world: World) -> World:
    """What a frame costs varies (lognormal, sigma 0.5, mean 1), and a quarter of each worker's speed, on
    average, goes to other work, drawn from 0 to a half every 5 s."""
    return _each(world, lambda worker: replace(worker, frame_noise=0.5, load=0.25))


def scenes(world: World) -> World:
    """The video is 50 scenes of 2 % each; what a frame costs is one lognormal draw a scene, sigma 0.8, scaled
    so that the frames together cost what they would without."""
    stream = Stream(world.seed, "scenes")
    count = min(50, world.frames)
    draws = [stream.lognormal(0.8) for _ in range(count)]
    cost = [draws[frame * count // world.frames] for frame in range(world.frames)]
    scale = world.frames / fsum(cost)
    return replace(world, cost=tuple(each * scale for each in cost))


def late(world: World) -> World:
    """Half the fleet arrives later, at up to 60 % of the bound; half of it, rounded up, is there at once."""
    stream = Stream(world.seed, "late")
    bound = lower_bound_seconds(world)
    numbers = stream.shuffled(range(len(world.workers)))[: len(world.workers) // 2]
    for number in sorted(numbers):
        arrives = stream.uniform(0.0, 0.6) * bound
        world = _with(world, number, replace(world.workers[number], arrives_at_seconds=arrives))
    return world


#: All conditions, by the name the tables use.
CONDITIONS: dict[str, Condition] = {
    "base": base,
    "h 0.1": short_overhead,
    "h 10": long_overhead,
    "stall": stall,
    "die": die,
    "throttle": throttle,
    "noise": noise,
    "scenes": scenes,
    "late": late,
}


def random_condition(seed: int) -> str:
    """The condition that a fresh fleet of this seed gets."""
    return Stream(seed, "condition").choice(tuple(CONDITIONS))


def _by_speed(world: World) -> Sequence[int]:
    """Numbers of the workers, fastest first."""
    return sorted(range(len(world.workers)), key=lambda number: -world.workers[number].fps)


def _each(world: World, change: Callable[[SimWorker], SimWorker]) -> World:
    return replace(world, workers=tuple(change(worker) for worker in world.workers))


def _with(world: World, number: int, worker: SimWorker) -> World:
    workers = list(world.workers)
    workers[number] = worker
    return replace(world, workers=tuple(workers))
