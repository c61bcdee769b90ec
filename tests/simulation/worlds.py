"""Small worlds for these tests."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from farm import events as ev
from farm.simulation.fleets import fleet_of
from farm.simulation.runs import SimResult, simulate
from farm.simulation.world import SimWorker, World, world_of

A = (30.0, 30.0, 12.0, 2.0)
B = (24.0, 24.0, 24.0, 1.0)

Kind = TypeVar("Kind", bound=ev.Event)


def fleet_world(speeds: tuple[float, ...], policy: str, tail: str, **options: Any) -> World:
    """The published table's: 4,800 frames, parts of one, h = 2 s."""
    return world_of(fleet_of(speeds), 4800, options=ev.RelayOptions(policy=policy, tail=tail, **options))


def small_world(*workers: SimWorker, frames: int = 60, part: int = 5, **options: Any) -> World:
    given = {"policy": "fixed,20", "tail": "duplicate-oldest,from=frontier", **options}
    return world_of(workers, frames, part=part, options=ev.RelayOptions(**given))


def worker(name: str, fps: float = 10.0, **fields: Any) -> SimWorker:
    return SimWorker(name=name, fps=fps, **fields)


def run(world: World, **changes: Any) -> SimResult:
    """With everything checked and kept."""
    return simulate(replace(world, **changes), keep_log=True, validate_every=1)


def saw(result: SimResult, kind: type[Kind], **fields: Any) -> list[tuple[float, Kind]]:
    """The events of a kind with these fields, and when they happened."""
    return [
        (record.at, record.event)
        for record in result.records
        if isinstance(record.event, kind)
        and all(getattr(record.event, name) == value for name, value in fields.items())
    ]
