"""A simulated worker with what its world gives it: a link or none, and whether faults may strike it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from farm.faults import Troubles
from farm.frames import PartGrid
from farm.simulation.agenda import Agenda
from farm.simulation.bench import Bench
from farm.simulation.delivery import Deliveries
from farm.simulation.line import Line
from farm.simulation.links import LinkedDeliveries, Places
from farm.simulation.mishaps import TroubledDeliveries, TroubledLink
from farm.simulation.noise import Stream
from farm.simulation.troubled import TroubledWorker
from farm.simulation.worker import Worker
from farm.simulation.world import SimWorker, World


def make_worker(
    spec: SimWorker,
    world: World,
    grid: PartGrid,
    bench: Bench,
    agenda: Agenda,
    line: Line,
    places: Places,
    *,
    troubled: bool,
) -> Worker:
    """One that faults may strike (``troubled``) costs more at every step. ``places``: those at the store, for
    which workers with a link wait in turn."""
    link = None
    if spec.link is not None:
        link = (places, spec.link, world.frame_bytes, Stream(world.seed, "link", spec.name))
    deliveries: Callable[[], Deliveries]
    if not troubled:
        deliveries = partial(LinkedDeliveries, line, agenda, *link) if link else partial(Deliveries, line)
        return Worker(spec, grid, bench, agenda, line, deliveries, beats=world.heartbeats)
    troubles = Troubles()
    if link:
        deliveries = partial(TroubledLink, line, agenda, troubles, *link)
    else:
        deliveries = partial(TroubledDeliveries, line, agenda, troubles)
    return TroubledWorker(
        spec, grid, bench, agenda, line, deliveries, beats=world.heartbeats, troubles=troubles
    )
