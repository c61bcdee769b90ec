"""``uneven compare``: many schedules over many fleets and conditions, as one table.

Rules of this file:
- a cell is a fleet under a condition; with several seeds it is their mean;
- a job that some seed can't finish has no finishing time: its cell says so, and no mean hides it;
- the text table is for reading, CSV and JSON have every figure, a line or an object for each cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Literal

import msgspec

from console.tables import csv_table, text_table
from console.trials import Score, Setting, Trial, run_trials, spell
from farm.scenario.fleets import is_fleet_file
from farm.simulation.grid import FRESH, Schedule, percentile

Format = Literal["text", "csv", "json"]

#: Every policy of ours, with the tail its source has, or the one that suits it.
ALL_POLICIES = (
    "fair+split",
    "fair+split+no-ahead",
    "static+none",
    "static+split",
    "fixed,48+none",
    "fixed,120+duplicate-oldest",
    "decaying+duplicate-oldest",
    "granular,4+duplicate-oldest",
    "adaptive+duplicate-oldest",
    "guided,12+duplicate-oldest",
    "guided,12+duplicate-oldest,from=start",
    "guided,12+late",
    "guided,12+split",
    "gss,min=12+duplicate-oldest",
    "tss+duplicate-oldest",
    "fac2,min=12+duplicate-oldest",
    "wf,min=12+duplicate-oldest",
    "awf-b+duplicate-oldest",
    "awf-c+duplicate-oldest",
    "af+duplicate-oldest",
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule on one fleet under one condition: means over the seeds. None: some seed did not finish."""

    schedule: str
    fleet: str
    condition: str
    seeds: int
    seconds: float | None
    lower_bound_seconds: float | None
    ratio: float | None
    ratios: tuple[float | None, ...]  #: of each seed
    claims: float
    duplicates: float
    splits: float
    lapses: float
    wasted_frames: float
    idle_seconds: float


class Overall(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule over all cells. None: some cell has no ratio."""

    schedule: str
    mean: float | None
    p95: float | None
    worst: float | None
    worst_at: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    setting: dict[str, float]
    cells: tuple[Cell, ...]
    overall: tuple[Overall, ...]


def compare(
    schedules: Sequence[Schedule],
    fleets: Sequence[str],
    conditions: Sequence[str],
    seeds: Sequence[int],
    setting: Setting,
    *,
    processes: int = 0,
    on_done: Callable[[int, int], None] = lambda done, of: None,
    show: Callable[[Sequence[Trial], Sequence[Score]], object] = lambda trials, scores: None,
) -> Comparison:
    """Run all of it. ``on_done``: trials that are over, of all; ``show`` may let somebody watch them
    afterwards, which changes no figure. Raises UsageError."""
    keys = list(product(schedules, fleets, conditions))
    trials = [Trial(*key, seed, setting) for key in keys for seed in seeds]
    for trial in trials[: len(fleets) * len(conditions) * len(seeds) : len(seeds)]:
        trial.world()  # one that makes no sense is refused before any work
    scores = run_trials(trials, processes=processes, on_done=lambda done: on_done(done, len(trials)))
    show(trials, scores)
    count = len(seeds)
    cells = tuple(
        cell_of(*key, scores[number * count : (number + 1) * count]) for number, key in enumerate(keys)
    )
    spelled = [spell(schedule) for schedule in schedules]
    return Comparison(
        setting={
            "part": setting.part,
            "overhead_seconds": setting.overhead_seconds,
            "heartbeat_seconds": setting.heartbeat_seconds,
            "lease_seconds": setting.lease_seconds,
        },
        cells=cells,
        overall=tuple(
            overall_of(name, [cell for cell in cells if cell.schedule == name]) for name in spelled
        ),
    )


def cell_of(schedule: Schedule, fleet: str, condition: str, scores: Sequence[Score]) -> Cell:
    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None and math.isfinite(value)]
        return fmean(known) if len(known) == len(values) else None

    return Cell(
        schedule=spell(schedule),
        fleet=fleet,
        condition=condition,
        seeds=len(scores),
        seconds=mean([score.seconds for score in scores]),
        lower_bound_seconds=mean([score.bound_seconds for score in scores]),
        ratio=mean([score.ratio for score in scores]),
        ratios=tuple(score.ratio for score in scores),
        claims=fmean(score.claims for score in scores),
        duplicates=fmean(score.duplicates for score in scores),
        splits=fmean(score.splits for score in scores),
        lapses=fmean(score.lapses for score in scores),
        wasted_frames=fmean(score.wasted_frames for score in scores),
        idle_seconds=fmean(score.idle_seconds for score in scores),
    )


def overall_of(schedule: str, cells: Sequence[Cell]) -> Overall:
    """Of fresh fleets each is a cell of its own."""
    ratios: list[tuple[float | None, str]] = []
    for cell in cells:
        where = f"{_short(cell.fleet)} {cell.condition}"
        if cell.fleet == FRESH:
            ratios += [(ratio, f"{where}, run {run}") for run, ratio in enumerate(cell.ratios, 1)]
        else:
            ratios.append((cell.ratio, where))
    known = [ratio for ratio, _ in ratios if ratio is not None]
    if len(known) < len(ratios):
        lost = next(where for ratio, where in ratios if ratio is None)
        return Overall(schedule=schedule, mean=None, p95=None, worst=None, worst_at=lost)
    worst, where = max(ratios, key=lambda found: found[0] or 0.0)
    return Overall(
        schedule=schedule, mean=fmean(known), p95=percentile(known, 0.95), worst=worst, worst_at=where
    )


# --- showing ---------------------------------------------------------------------------------------------


def render(comparison: Comparison, form: Format, width: int) -> str:
    """With a line end at the end."""
    if form == "json":
        return msgspec.json.encode(comparison).decode() + "\n"
    if form == "csv":
        fields = [field for field in Cell.__struct_fields__ if field != "ratios"]
        rows = [[_plain(getattr(cell, field)) for field in fields] for cell in comparison.cells]
        return csv_table(fields, rows)
    return "\n".join(text_lines(comparison, width)) + "\n"


def text_lines(comparison: Comparison, width: int) -> list[str]:
    columns = list(dict.fromkeys((cell.fleet, cell.condition) for cell in comparison.cells))
    by_place = {(cell.schedule, cell.fleet, cell.condition): cell for cell in comparison.cells}
    head = [
        "schedule",
        *(f"{_short(fleet)} {condition}" for fleet, condition in columns),
        "mean",
        "p95",
        "worst",
        "at",
    ]
    rows = [
        [
            overall.schedule,
            *(_shown(by_place[overall.schedule, *column]) for column in columns),
            ratio_text(overall.mean),
            ratio_text(overall.p95),
            ratio_text(overall.worst),
            overall.worst_at,
        ]
        for overall in comparison.overall
    ]
    seeds = comparison.cells[0].seeds
    note = "Seconds (finishing time / lower bound)" + (f", means of {seeds} seeds." if seeds > 1 else ".")
    return [note, "", *text_table(head, rows, width)]


def _short(fleet: str) -> str:
    """A fleet file by its name alone: a path would make its column wider than the figures in it."""
    return Path(fleet).stem if is_fleet_file(fleet) else fleet


def _shown(cell: Cell) -> str:
    if cell.seconds is None:
        return "not finished"
    return f"{cell.seconds:.1f} ({ratio_text(cell.ratio)})"


def ratio_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
