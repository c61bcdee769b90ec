"""What one decision of ``fair`` costs in fleets of 4 to 2,000 workers, in microseconds of processor time.

    python benchmarks/decision_cost.py
    python benchmarks/decision_cost.py --workers 64,500

``share``: an idle worker's share of what is open, all else known anew, as after any event. ``split``: what it
gets when nothing is open, known anew. ``again``: a decision about one more worker while nothing has happened.
Measured on a simulated fleet in the middle of its work, at its best of several tries.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from farm.engines.simulated import Simulation
from farm.events import RelayOptions
from farm.policies.fair import Fair
from farm.policies.tails import split
from farm.relay.situation import situation
from farm.relay.turn import Turn
from farm.simulation.fleets import fleet_of
from farm.simulation.noise import Stream
from farm.simulation.world import world_of

FRAMES_EACH = 60


def mid_run(workers: int) -> Simulation:
    """A fleet at work with all its speeds known (median 3 fps, sigma 0.8, h 2 s)."""
    stream = Stream(1, "decision cost")
    speeds = [stream.lognormal(0.8, 3.0) for _ in range(workers)]
    options = RelayOptions(policy="fair", tail="split", claim_ahead=True)
    simulation = Simulation(world_of(fleet_of(speeds), FRAMES_EACH * workers, options=options))
    simulation.run_until(8.0)
    return simulation


def best_microseconds(act: Callable[[], object], tries: int = 20) -> float:
    """Processor time of one call, at its best."""
    best = float("inf")
    for _ in range(tries):
        began = time.perf_counter_ns()
        act()
        best = min(best, time.perf_counter_ns() - began)
    return best / 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="4,64,500,2000")
    print(f"{'workers':>7} {'claims':>7} {'share':>9} {'split':>9} {'again':>9}   microseconds")
    for workers in map(int, parser.parse_args().workers.split(",")):
        simulation = mid_run(workers)
        books, policy = simulation.books, Fair()
        worker = next(iter(books.workers))

        def fresh() -> Turn:
            return Turn(books, simulation.now, skipping=True)  # noqa: B023

        same = situation(fresh(), policy)
        figures = (
            best_microseconds(lambda: policy.share(worker, situation(fresh(), policy))),  # noqa: B023
            best_microseconds(lambda: split(worker, situation(fresh(), policy))),  # noqa: B023
            best_microseconds(lambda: split(worker, same)),  # noqa: B023
        )
        print(f"{workers:7} {len(books.leases):7}" + "".join(f"{figure:10.1f}" for figure in figures))


if __name__ == "__main__":
    main()
