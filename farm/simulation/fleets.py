"""The fleets of the benchmark grid (docs/scheduling.md) and fresh ones made from a seed, as worlds without
trouble; conditions.py adds that.

A and B are the published table's. The others are drawn: speeds lognormal with the median and sigma given. A
seed also says in which order the workers ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from farm.events import RelayOptions
from farm.simulation.noise import Stream
from farm.simulation.world import SimWorker, World, world_of

#: Fleets by name: frames, and the speeds or how to draw them: (workers, median, sigma).
FIXED_FLEETS: dict[str, tuple[int, tuple[float, ...]]] = {
    "A": (4800, (30.0, 30.0, 12.0, 2.0)),
    "B": (4800, (24.0, 24.0, 24.0, 1.0)),
    "H4": (4800, (24.0, 24.0, 24.0, 24.0)),
}
DRAWN_FLEETS: dict[str, tuple[int, int, float, float]] = {
    "M16": (4800, 16, 6.0, 0.6),
    "M64": (20_000, 64, 6.0, 0.8),
    "X500": (100_000, 500, 3.0, 0.8),
}
FLEETS = (*FIXED_FLEETS, *DRAWN_FLEETS)


def fleet_of(speeds: Sequence[float], overhead_seconds: float = 2.0) -> tuple[SimWorker, ...]:
    """Workers w1, w2, … with these speeds, in frames per second."""
    return tuple(
        SimWorker(name=f"w{number}", fps=fps, overhead_seconds=overhead_seconds)
        for number, fps in enumerate(speeds, 1)
    )


def grid_world(
    fleet: str,
    seed: int,
    *,
    part: int = 1,
    overhead_seconds: float = 2.0,
    options: RelayOptions | None = None,
) -> World:
    """A fleet of the benchmark grid by name, its workers in an order that the seed gives (seed 0: as listed).
    Raises KeyError for a name that is not in ``FLEETS``."""
    stream = Stream(seed, "fleet", fleet)
    if fleet in FIXED_FLEETS:
        frames, speeds = FIXED_FLEETS[fleet]
    else:
        frames, workers, median, sigma = DRAWN_FLEETS[fleet]
        speeds = tuple(stream.lognormal(sigma, median) for _ in range(workers))
    order = stream.shuffled(speeds) if seed else list(speeds)
    return _named(
        world_of(fleet_of(order, overhead_seconds), frames, part=part, options=options), fleet, seed
    )


def random_world(seed: int, *, part: int = 1, options: RelayOptions | None = None) -> World:
    """A fleet that nothing was tuned on: 2 to 64 workers, a median of 2 to 30 frames per second, speeds that
    differ little or much (sigma 0.1 to 1), 0.2 to 8 s of overhead, and one to ten minutes of work."""
    stream = Stream(seed, "fresh fleet")
    workers = round(stream.log_uniform(2, 64))
    median, sigma = stream.log_uniform(2.0, 30.0), stream.uniform(0.1, 1.0)
    speeds = [stream.lognormal(sigma, median) for _ in range(workers)]
    seconds = stream.log_uniform(60.0, 600.0)
    overhead = min(stream.log_uniform(0.2, 8.0), seconds / 20.0)
    frames = max(workers * 4, min(round(seconds * fsum(speeds)), 100_000))
    return _named(world_of(fleet_of(speeds, overhead), frames, part=part, options=options), "fresh", seed)


def _named(world: World, name: str, seed: int) -> World:
    return World(workers=world.workers, cuts=world.cuts, options=world.options, name=name, seed=seed)
