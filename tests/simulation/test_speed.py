"""What a claim costs, in calls instead of seconds: the same on every machine, however busy it is. The seconds
are in docs/scheduling.md (benchmarks/simulator_speed.py)."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from farm.engines.simulated import Simulation
from farm.events import RelayOptions
from farm.simulation.fleets import fleet_of
from farm.simulation.noise import Stream
from farm.simulation.world import world_of


def calls_per_chunk(chunks: int, workers: int = 64, part: int = 1) -> float:
    """Calls of Python and C functions for a chunk of one part, from the first join to the end."""
    stream = Stream(1, "speed")
    fleet = fleet_of([stream.lognormal(0.8, 6.0) for _ in range(workers)], 0.1)
    options = RelayOptions(policy=f"fixed,{part}", tail="none")
    simulation = Simulation(world_of(fleet, chunks * part, part=part, options=options))
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        simulation.run()
    finally:
        sys.setprofile(before)
    assert simulation.books.credited_frames == chunks * part
    return calls / chunks


def test_a_claim_costs_as_much_in_a_long_job_as_in_a_short_one() -> None:
    """What it costs more in a short one is for the joining and leaving of the workers."""
    few, some, many = (calls_per_chunk(chunks) for chunks in (500, 2_000, 8_000))
    assert many <= some <= few <= 1.25 * many


@pytest.mark.parametrize("part", [1, 7])
def test_a_claim_costs_few_calls(part: int) -> None:
    """137 and 163; they were 310 and 350 before the relay was made fast. The rest is room for more."""
    assert calls_per_chunk(2_000, part=part) < 200


def test_a_claim_costs_no_more_with_more_workers() -> None:
    """But for joining, leaving and heartbeats, which are a worker's and not a claim's."""
    few = calls_per_chunk(3_000, workers=8)
    assert calls_per_chunk(3_000, workers=128) < 1.4 * few
