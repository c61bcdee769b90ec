"""Worlds that make no sense are refused in one sentence, with the path of the field."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from farm.engines.simulated import Simulation
from farm.errors import UsageError
from farm.simulation.bound import lower_bound_seconds
from farm.simulation.conditions import CONDITIONS, random_condition
from farm.simulation.fleets import FLEETS, grid_world, random_world
from farm.simulation.world import World, check_world, world_of
from tests.simulation.worlds import small_world, worker

NAN = float("nan")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"fps": 0.0}, "worker[1].fps"),
        ({"fps": -1.0}, "worker[1].fps"),
        ({"fps": NAN}, "worker[1].fps"),
        ({"fps": float("inf")}, "worker[1].fps"),
        ({"overhead_seconds": -0.1}, "worker[1].overhead_seconds"),
        ({"arrives_at_seconds": NAN}, "worker[1].arrives_at_seconds"),
        ({"dies_at_seconds": -1.0}, "worker[1].dies_at_seconds"),
        ({"silences": ((1.0, 1.0),)}, "worker[1].silences[0]"),
        ({"silences": ((1.0, 3.0), (2.0, 4.0))}, "worker[1].silences[1]"),
        ({"partitions": ((1.0, float("inf")),)}, "worker[1].partitions[0]"),
        ({"throttles": ((1.0, 0.0),)}, "worker[1].throttles[0]"),
        ({"throttles": ((2.0, 0.5), (1.0, 0.5))}, "worker[1].throttles[1]"),
        ({"frame_noise": NAN}, "worker[1].frame_noise"),
        ({"load": 0.5}, "worker[1].load"),
        ({"name": "w1"}, "worker[1].name"),
        ({"name": ""}, "worker[1].name"),
    ],
)
def test_a_worker_that_makes_no_sense(fields: dict[str, Any], path: str) -> None:
    other = worker(**{"name": "w2", **fields})
    with pytest.raises(UsageError) as refused:
        check_world(small_world(worker("w1"), other))
    assert str(refused.value).startswith(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"workers": ()}, "workers"),
        ({"cuts": (0,)}, "cuts"),
        ({"cuts": (0, 5, 5)}, "cuts"),
        ({"cost": (1.0,)}, "cost"),
        ({"cost": (1.0, 0.0) + (1.0,) * 58}, "cost[1]"),
        ({"latency_seconds": -1.0}, "latency_seconds"),
        ({"heartbeats": False, "workers": (worker("w1", dies_at_seconds=1.0),)}, "worker[0]"),
    ],
)
def test_a_world_that_makes_no_sense(change: dict[str, Any], path: str) -> None:
    with pytest.raises(UsageError) as refused:
        Simulation(replace(small_world(worker("w1")), **change))
    assert str(refused.value).startswith(path)


def test_options_that_make_no_sense() -> None:
    with pytest.raises(UsageError, match="lease_seconds"):
        Simulation(small_world(worker("w1"), lease_seconds=2.0, heartbeat_seconds=2.0))
    with pytest.raises(UsageError, match="no policy"):
        Simulation(small_world(worker("w1"), policy="best"))
    with pytest.raises(UsageError, match="at least one frame"):
        world_of([worker("w1")], 0)


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("fleet", FLEETS)
def test_the_benchmark_grid(fleet: str, condition: str) -> None:
    """Every cell is a world that makes sense, the same for the same seed, and can be finished."""
    world = CONDITIONS[condition](grid_world(fleet, 1))
    check_world(world)
    assert world == CONDITIONS[condition](grid_world(fleet, 1))
    assert 0 < lower_bound_seconds(world) < 1000
    if condition == "scenes":
        assert world.cost is not None
        assert sum(world.cost) == pytest.approx(world.frames)


def test_another_seed_is_another_world() -> None:
    def speeds(world: World) -> list[float]:
        return [spec.fps for spec in world.workers]

    assert speeds(grid_world("M16", 1)) != speeds(grid_world("M16", 2))
    assert speeds(grid_world("A", 0)) == [30.0, 30.0, 12.0, 2.0]
    assert sorted(speeds(grid_world("A", 5))) == [2.0, 12.0, 30.0, 30.0]


def test_fresh_fleets() -> None:
    worlds = [random_world(seed) for seed in range(40)]
    for world in worlds:
        check_world(world)
    assert len({len(world.workers) for world in worlds}) > 15
    assert {random_condition(seed) for seed in range(100)} == set(CONDITIONS)
