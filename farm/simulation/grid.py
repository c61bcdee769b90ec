"""Cells of a benchmark: a fleet under a condition, worked by a policy and a tail rule. Data in, data out, so
that cells can be spread over processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import product
from math import ceil, inf

import msgspec
from msgspec.structs import replace

from farm.engines.simulated import Simulation, StandStill
from farm.events import RelayOptions
from farm.simulation.bound import lower_bound_seconds
from farm.simulation.conditions import CONDITIONS, random_condition
from farm.simulation.fleets import FLEETS, grid_world, random_world
from farm.simulation.runs import result_of
from farm.simulation.world import World

#: The fleet name of cells that are made from nothing but a seed.
FRESH = "fresh"
#: A run that takes longer than so many lower bounds is not waited for.
BOUNDS_MAX = 100.0


class Schedule(msgspec.Struct, frozen=True):
    """How work is given out."""

    policy: str
    tail: str
    claim_ahead: bool = False

    @property
    def name(self) -> str:
        return f"{self.policy} + {self.tail}" + (" + ahead" if self.claim_ahead else "")


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``fleet``: of the benchmark grid, or ``FRESH``, which takes everything from the seed."""

    schedule: Schedule
    fleet: str
    condition: str
    seed: int
    part: int = 1


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    cell: Cell
    ratio: float  #: finishing time / lower bound; infinite if it did not finish
    makespan_seconds: float
    claims: int
    splits: int
    duplicates: int
    lapses: int
    wasted_share: float  #: of the job's frames
    idle_share: float  #: of the time that its workers were there


def world_of_cell(cell: Cell) -> World:
    """Raises KeyError for an unknown fleet or condition."""
    schedule = cell.schedule
    options = RelayOptions(policy=schedule.policy, tail=schedule.tail, claim_ahead=schedule.claim_ahead)
    if cell.fleet == FRESH:
        world = random_world(cell.seed, part=cell.part)
    else:
        world = grid_world(cell.fleet, cell.seed, part=cell.part)
    return replace(CONDITIONS[cell.condition](world), options=options)


def run_cell(cell: Cell) -> CellResult:
    """Raises UsageError for a schedule that makes no sense. What takes longer than BOUNDS_MAX lower bounds
    counts as not finished; so does a world that stands still, which a table should show rather than hide."""
    world = world_of_cell(cell)
    simulation = Simulation(world)
    with contextlib.suppress(StandStill):
        simulation.run_until(BOUNDS_MAX * lower_bound_seconds(world))
    result = result_of(simulation)
    makespan = inf if result.makespan_seconds is None else result.makespan_seconds
    return CellResult(
        cell=cell,
        ratio=makespan / result.bound_seconds,
        makespan_seconds=makespan,
        claims=result.claims,
        splits=result.splits,
        duplicates=result.duplicates,
        lapses=result.lapses,
        wasted_share=result.wasted_frames / result.frames,
        idle_share=result.idle_seconds / (simulation.now * len(result.workers)),
    )


def grid_cells(
    schedules: Iterable[Schedule],
    *,
    fleets: Iterable[str] = FLEETS,
    conditions: Iterable[str] = tuple(CONDITIONS),
    seeds: Iterable[int] = (1, 2, 3),
    part: int = 1,
) -> Iterator[Cell]:
    """The benchmark grid of scheduling.md: fleets x conditions x seeds."""
    for schedule, fleet, condition, seed in product(
        tuple(schedules), tuple(fleets), tuple(conditions), tuple(seeds)
    ):
        yield Cell(schedule=schedule, fleet=fleet, condition=condition, seed=seed, part=part)


def fresh_cells(
    schedules: Iterable[Schedule], *, count: int = 40, first_seed: int = 1, part: int = 1
) -> Iterator[Cell]:
    """Fleets that nothing was tuned on, each under a condition of its own."""
    for schedule in schedules:
        for seed in range(first_seed, first_seed + count):
            condition = random_condition(seed)
            yield Cell(schedule=schedule, fleet=FRESH, condition=condition, seed=seed, part=part)


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least ``share`` of them don't exceed. Raises ValueError for no values."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered[max(ceil(share * len(ordered)) - 1, 0)]
