"""The write-up's figures and the prototype's, from the simulator (scheduling.md)."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from farm.simulation.bound import lower_bound_seconds
from farm.simulation.fleets import fleet_of
from farm.simulation.runs import simulate
from tests.simulation.worlds import A, B, fleet_world

START = "duplicate-oldest,from=start"


@pytest.mark.parametrize("heartbeats", [False, True])
@pytest.mark.parametrize(
    ("fleet", "policy", "tail", "seconds", "claims"),
    [
        (A, "fixed,48", "none", 133.2, 100),
        (B, "fixed,48", "none", 150.0, 100),
        (A, "guided,12", START, 102.433, 39),
        (B, "guided,12", START, 103.833, None),
        (A, "fixed,120", START, 96.0, 42),
        (B, "fixed,120", START, 98.0, None),
        (A, "guided,12", "none", 203.0, None),
        (B, "guided,12", "none", 404.0, None),
    ],
)
def test_finishing_time(
    fleet: tuple[float, ...], policy: str, tail: str, seconds: float, claims: int | None, heartbeats: bool
) -> None:
    result = simulate(replace(fleet_world(fleet, policy, tail), heartbeats=heartbeats))
    assert result.makespan_seconds == pytest.approx(seconds, abs=0.0005)
    assert result.credited_frames == 4800
    assert claims is None or result.claims == claims


@pytest.mark.parametrize(("fleet", "seconds"), [(A, 66.865), (B, 67.753)])
def test_lower_bound(fleet: tuple[float, ...], seconds: float) -> None:
    assert lower_bound_seconds(fleet_world(fleet, "fixed,48", "none")) == pytest.approx(seconds, abs=0.0005)


@pytest.mark.parametrize(("fleet", "fastest", "slowest"), [(A, 102.1, 126.3), (B, 103.8, 109.3)])
def test_who_asks_first_matters(fleet: tuple[float, ...], fastest: float, slowest: float) -> None:
    """Over all orders of asking: the range that scheduling.md gives."""
    world = fleet_world(fleet, "guided,12", START)
    orders = sorted(set(permutations(fleet)))
    results = [simulate(replace(world, workers=fleet_of(order))) for order in orders]
    makespans = [result.makespan_seconds for result in results if result.makespan_seconds is not None]
    assert min(makespans) == pytest.approx(fastest, abs=0.051)
    assert max(makespans) == pytest.approx(slowest, abs=0.051)


@pytest.mark.parametrize(("fleet", "seconds"), [(A, 96.8), (B, 100.4)])
def test_duplicates_from_the_frontier(fleet: tuple[float, ...], seconds: float) -> None:
    """The prototype heard of the frontier by heartbeat only, the relay's workers with every acknowledgement:
    hence up to 0.2 s less."""
    result = simulate(fleet_world(fleet, "guided,12", "duplicate-oldest,from=frontier"))
    assert result.makespan_seconds == pytest.approx(seconds, abs=0.2)
