"""Where the runs of a comparison come from: policies worked in virtual time, and recordings of runs.

Rules of this file:
- a simulated run is made anew each time it is played, for one world has one outcome; nothing is kept of it;
- a recording is read through once for its figures, and again when it is played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from math import isfinite

from console.contest import RUNS_MAX, Contest, Figures, Heat
from console.model import Model
from console.summary import summarize
from console.trials import Score, Trial, spell
from farm.clock import MonotonicClock, VirtualClock
from farm.engines.simulated import Simulation
from farm.errors import UsageError, shorten
from farm.events import Record
from farm.view import World


class SimulatedTape:
    """A trial, and what came of it when it was run before. To be rewound before it is played."""

    def __init__(self, name: str, trial: Trial, score: Score) -> None:
        self.name = name
        self._trial = trial
        self._records: list[Record] = []
        self._simulation: Simulation | None = None
        self.final = Figures(
            frames=score.frames,
            credited_frames=score.credited_frames,
            seconds=score.seconds,
            bound_seconds=score.bound_seconds if isfinite(score.bound_seconds) else None,
            wasted_frames=score.wasted_frames,
            claims=score.claims,
            duplicates=score.duplicates,
            splits=score.splits,
            lapses=score.lapses,
            idle_seconds=score.idle_seconds,
        )

    @property
    def world(self) -> World:
        return "simulated"

    @property
    def end_at(self) -> float | None:
        return self.final.seconds

    @property
    def next_at(self) -> float | None:
        simulation = self._simulation
        if simulation is None or simulation.ended:
            return None
        at = simulation.next_at
        return simulation.now if at is None else at  # nothing is left but to close it

    def step(self) -> Sequence[Record]:
        if self._simulation is not None:
            self._simulation.step()
        taken = tuple(self._records)
        self._records.clear()
        return taken

    def lease_time(self, at: float) -> float:
        return at if self._simulation is None else self._simulation.lease_time.of(at)

    def rewind(self) -> None:
        self._records.clear()
        self._simulation = Simulation(self._trial.world(), on_record=self._records.append)


class RecordedTape:
    """A run that was made, from its first grant on. ``read`` gives its records from the start, each time; to
    be rewound before it is played. Raises what ``read`` raises, and UsageError for a run in which nothing was
    ever granted."""

    def __init__(self, name: str, read: Callable[[], Iterator[Record]]) -> None:
        self.name = name
        self._read = read
        model, last = Model("recording"), 0.0
        for record in read():
            model.fold(record)
            last = max(last, record.at)
        if model.first_grant_at is None:
            raise UsageError(
                f"the run {shorten(name)} has nothing to compare: no work was ever granted in it"
            )
        header, options = model.header, model.options
        self.run_id = header.run_id if header else ""
        self.input, self.output = (header.input, header.output) if header else ("", "")
        self.schedule = f"{options.policy}+{options.tail}"
        self.outcome = model.finish.outcome if model.finish else "not finished"
        self._start = model.first_grant_at
        self.end_at: float | None = max(last - self._start, 0.0)
        self.final = figures_of(model)
        self._records: Iterator[Record] = iter(())
        self._next: Record | None = None

    @property
    def world(self) -> World:
        return "recording"

    @property
    def next_at(self) -> float | None:
        return None if self._next is None else max(self._next.at - self._start, 0.0)

    def step(self) -> Sequence[Record]:
        record, self._next = self._next, next(self._records, None)
        return () if record is None else (record,)

    def lease_time(self, at: float) -> float:
        return at + self._start

    def rewind(self) -> None:
        self._records = self._read()
        self._next = next(self._records, None)


def figures_of(model: Model) -> Figures:
    """Of a run that was recorded to its end, or as far as it came."""
    summary = summarize(model)
    return Figures(
        frames=summary.frames,
        credited_frames=summary.credited_frames,
        seconds=summary.finishing_seconds if summary.credited_frames == summary.frames else None,
        bound_seconds=summary.lower_bound_seconds,
        wasted_frames=summary.wasted_frames,
        claims=summary.claims,
        duplicates=summary.duplicates,
        splits=summary.splits,
        lapses=summary.lapses,
        idle_seconds=sum(worker.idle_seconds for worker in summary.workers),
    )


def heats_of(trials: Sequence[Trial], scores: Sequence[Score]) -> list[Heat]:
    """The policies of each world against each other, at its first seed; with one policy alone, its worlds.

    Of more than ``RUNS_MAX`` the ones that finish first are taken, in the order in which they were named.
    """
    seeds = {trial.seed for trial in trials}
    first = min(seeds)
    runs = [pair for pair in zip(trials, scores, strict=True) if pair[0].seed == first]
    if len({trial.schedule for trial, _ in runs}) == 1:
        return [_heat(spell(runs[0][0].schedule), [(f"{t.fleet} {t.condition}", t, s) for t, s in runs])]

    def world(run: tuple[Trial, Score]) -> tuple[str, str]:
        return run[0].fleet, run[0].condition

    places = list(dict.fromkeys(map(world, runs)))
    grouped = {
        key: list(some) for key, some in groupby(sorted(runs, key=lambda r: places.index(world(r))), world)
    }
    return [
        _heat(
            f"fleet {fleet}" + ("" if condition == "base" else f", {condition}"),
            [(spell(trial.schedule), trial, score) for trial, score in grouped[fleet, condition]],
        )
        for fleet, condition in places
    ]


def _heat(title: str, runs: Sequence[tuple[str, Trial, Score]]) -> Heat:
    order = sorted(range(len(runs)), key=lambda n: _sort_key(runs[n][2]))
    taken = sorted(order[:RUNS_MAX])
    return Heat(title, tuple(SimulatedTape(*runs[number]) for number in taken), len(runs) - len(taken))


def _sort_key(score: Score) -> tuple[bool, float]:
    return score.seconds is None, score.seconds or 0.0


def watch_heats(heats: Sequence[Heat], *, rate: float, refresh_hz: float, ascii_only: bool) -> None:
    """Show them in the console, ``rate`` seconds of the runs a second, until the user leaves."""
    # Imported late: textual is for those who want it.
    from console.compare_app import CompareApp

    contest = Contest(heats, VirtualClock(MonotonicClock(), rate))
    CompareApp(contest, refresh_hz=refresh_hz, ascii_only=ascii_only).run()
