"""Runs that are looked at on their way, with an estimate every so often."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from farm.engines.simulated import Simulation
from farm.events import FinishEstimated, RelayOptions
from farm.forecast import Forecaster, Outlook, estimate, outlook_of
from farm.simulation.conditions import CONDITIONS
from farm.simulation.fleets import grid_world
from farm.simulation.world import World


@dataclass(frozen=True)
class Look:
    share: float  #: of the run
    left: float  #: seconds to its end, as it turned out
    told: FinishEstimated

    @property
    def error(self) -> float:
        assert self.told.likely_seconds is not None
        return abs(self.told.likely_seconds - self.left)

    @property
    def within(self) -> bool:
        low, high = self.told.low_seconds, self.told.high_seconds
        assert low is not None and high is not None
        return low - 0.05 <= self.left <= high + 0.05


def world_with(
    schedule: str,
    fleet: str = "A",
    *,
    condition: str = "base",
    seed: int = 1,
    part: int = 1,
    ahead: bool = True,
) -> World:
    """``schedule``: policy+tail."""
    policy, tail = schedule.split("+")
    world = CONDITIONS[condition](grid_world(fleet, seed, part=part))
    return replace(world, options=RelayOptions(policy=policy, tail=tail, claim_ahead=ahead))


def outlook_at(simulation: Simulation, now: float) -> Outlook:
    simulation.run_until(now)
    return outlook_of(simulation.books, *simulation.relay.schedule, simulation.now)


def look(world: World, *, every_share: float = 0.05) -> list[Look]:
    """All along a run, which has run to its end before, so that this is known."""
    first = Simulation(world)
    first.run()
    end = first.books.last_credit_at
    assert end is not None
    again, forecaster, looks = Simulation(world), Forecaster(), []
    for number in range(1, int(1 / every_share)):
        now = number * every_share * end
        told = forecaster.tell(now, estimate(outlook_at(again, now)))
        looks.append(Look(now / end, end - now, told))
    return looks
