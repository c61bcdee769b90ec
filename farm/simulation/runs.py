"""One simulated run from start to end, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import msgspec

from farm.engines.simulated import OnRecord, Simulation
from farm.events import Record, encode_record
from farm.simulation.bound import lower_bound_seconds
from farm.simulation.world import World


class WorkerResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker did. Frames are whole ones."""

    name: str
    rendered_frames: int  #: whatever became of them
    credited_frames: int
    idle_seconds: float  #: without a claim, from its arrival until the end or its own


class SimResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a simulated run went. Seconds are virtual."""

    makespan_seconds: float | None  #: start to last credited part, pauses taken out; None: it did not finish
    bound_seconds: float  #: farm.simulation.bound
    frames: int
    credited_frames: int
    set_aside_frames: int
    claims: int  #: grants, duplicates included
    duplicates: int
    splits: int
    lapses: int
    refusals: int
    losses: int
    wasted_frames: int  #: rendered and never credited
    stimuli: int  #: messages and ticks the relay handled
    workers: tuple[WorkerResult, ...]
    records: tuple[Record, ...] = ()  #: with ``keep_log``

    @property
    def finished(self) -> bool:
        return self.makespan_seconds is not None

    @property
    def ratio(self) -> float | None:
        """Finishing time / lower bound."""
        return None if self.makespan_seconds is None else self.makespan_seconds / self.bound_seconds

    @property
    def idle_seconds(self) -> float:
        return fsum(worker.idle_seconds for worker in self.workers)


def simulate(
    world: World,
    *,
    on_record: OnRecord | None = None,
    keep_log: bool = False,
    validate_every: int = 0,
    until: float | None = None,
) -> SimResult:
    """Run ``world`` to its end, or to virtual time ``until``. Raises UsageError for a world that makes no
    sense, and BooksWrong if ``validate_every`` finds the relay's books wrong."""
    simulation = Simulation(world, on_record=on_record, keep_log=keep_log, validate_every=validate_every)
    if until is None:
        simulation.run()
    else:
        simulation.run_until(until)
    return result_of(simulation)


def result_of(simulation: Simulation) -> SimResult:
    """What has come of a simulation so far."""
    books = simulation.books
    makespan = None
    if books.finished and books.last_credit_at is not None:
        makespan = books.last_credit_at - books.paused_seconds
    credited = dict.fromkeys(simulation.workers, 0)
    grid = books.grid
    for part, credit in books.credits.items():
        worker = getattr(credit, "worker", None)
        if worker is not None:
            credited[worker] += grid.size(part)
    workers = tuple(
        WorkerResult(
            name=worker.name,
            rendered_frames=worker.rendered_frames,
            credited_frames=credited[worker.name],
            idle_seconds=worker.idle_seconds,
        )
        for worker in simulation.workers.values()
    )
    return SimResult(
        makespan_seconds=makespan,
        bound_seconds=lower_bound_seconds(simulation.world),
        frames=grid.frames,
        credited_frames=books.credited_frames,
        set_aside_frames=books.set_aside_frames,
        claims=books.chunk_count + books.duplicates,
        duplicates=books.duplicates,
        splits=books.splits,
        lapses=books.lapses,
        refusals=books.refusals,
        losses=books.losses,
        wasted_frames=sum(worker.rendered_frames for worker in workers) - books.credited_frames,
        stimuli=simulation.stimuli,
        workers=workers,
        records=tuple(simulation.records),
    )


def encode_log(records: Sequence[Record]) -> bytes:
    """One JSON object a line; the same bytes for the same world, wherever it runs."""
    return b"".join(encode_record(record) + b"\n" for record in records)
