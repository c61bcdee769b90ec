"""How fast the simulator is, through the real relay; and how the time a claim grows with the job.

    python benchmarks/simulator_speed.py              # 10^3 to 10^6 chunks on 64 workers, fixed,1
    python benchmarks/simulator_speed.py --fair       # and what fair costs with 64, 500 and 2,000 workers
    python benchmarks/simulator_speed.py --profile    # where the time goes, 50,000 chunks

Each figure is of a process of its own: processor seconds, and the most memory it held. SimPy's bare loop (one
timeout a chunk, no ledger at all) runs beside, where SimPy is installed.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import pstats
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

from farm.engines.simulated import Simulation
from farm.events import RelayOptions
from farm.simulation.fleets import fleet_of
from farm.simulation.noise import Stream
from farm.simulation.world import World, world_of

#: Lines of a profile.
PROFILE_LINES = 40


def world(chunks: int, workers: int, policy: str, tail: str) -> World:
    """Speeds lognormal as in M64, a tenth of a second of overhead a claim."""
    stream = Stream(1, "speed")
    speeds = [stream.lognormal(0.8, 6.0) for _ in range(workers)]
    return world_of(fleet_of(speeds, 0.1), chunks, options=RelayOptions(policy=policy, tail=tail))


def simulated(chunks: int, workers: int, policy: str, tail: str) -> tuple[float, int, int]:
    """Processor seconds, claims, stimuli."""
    simulation = Simulation(world(chunks, workers, policy, tail))
    began = time.process_time()
    simulation.run()
    seconds = time.process_time() - began
    books = simulation.books
    assert books.credited_frames == chunks
    return seconds, books.chunk_count + books.duplicates, simulation.stimuli


def simpy_loop(chunks: int, workers: int) -> tuple[float, int, int]:
    import simpy  # type: ignore[import-not-found, unused-ignore]

    stream = Stream(1, "speed")
    environment = simpy.Environment()
    left = [chunks]

    def worker(fps: float) -> Any:
        while left[0] > 0:
            left[0] -= 1
            yield environment.timeout(1.0 / fps)

    for _ in range(workers):
        environment.process(worker(stream.lognormal(0.8, 6.0)))
    began = time.process_time()
    environment.run()
    return time.process_time() - began, chunks, chunks


def measured(
    function: Callable[..., tuple[float, int, int]], *arguments: object
) -> tuple[float, int, int, float]:
    """In a fresh process; with its peak memory in MiB."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_with_memory, (function, *arguments))


def _with_memory(
    function: Callable[..., tuple[float, int, int]], *arguments: object
) -> tuple[float, int, int, float]:
    seconds, claims, stimuli = function(*arguments)
    return seconds, claims, stimuli, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(name: str, found: tuple[float, int, int, float]) -> float:
    seconds, claims, stimuli, memory = found
    each = seconds / claims * 1e6
    counts = f"{claims:9} claims {each:8.2f} us each {stimuli:9} stimuli"
    print(f"{name:40} {seconds:8.2f} s {counts} {memory:6.0f} MiB")
    return each


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--fair", action="store_true")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    if chosen.profile:
        simulation = Simulation(world(50_000, 64, "fixed,1", "none"))
        profile = cProfile.Profile()
        profile.runcall(simulation.run)
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(PROFILE_LINES)
        return
    each = []
    chunks = 1_000
    while chunks <= chosen.chunks:
        each.append(
            show(f"fixed,1, {chunks} chunks, 64 workers", measured(simulated, chunks, 64, "fixed,1", "none"))
        )
        chunks *= 10
    print(f"{'':40} time a claim, most to least: {max(each) / min(each):.2f}")
    if importlib.util.find_spec("simpy") is not None:
        show("SimPy's bare loop", measured(simpy_loop, chosen.chunks, 64))
    else:
        print("SimPy is not installed: its bare loop is not measured")
    if chosen.fair:
        for workers in (64, 500, 2_000):
            frames = 200 * workers
            show(
                f"fair + split, {frames} frames, {workers} workers",
                measured(simulated, frames, workers, "fair", "split"),
            )


if __name__ == "__main__":
    main()
