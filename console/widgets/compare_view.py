"""From a contest to what the Compare screen shows: pure functions, one for each part of the screen.

Rules of this file:
- one time axis for all runs; its cells lie on a fixed grid, so that nothing flickers while it scrolls;
- a run's cells are computed again only when its spans or its present cell changed, and of a large fleet not
  every run at every tick.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from console import text
from console.contest import Contest, Figures, Lane
from console.theme import Mark
from console.timeline import WorkerModel
from console.widgets.bands import (
    Axis,
    HeadRow,
    RulerRow,
    StackBand,
    WorkerBand,
    ruler,
    share_rows,
    stack_rows,
)
from console.widgets.event_list import time_text
from console.widgets.header import TitleRow
from console.widgets.span_chart import SpanCells
from console.widgets.standings import RunRow, TitlesRow, best_of, run_values
from console.widgets.time_window import Cells
from console.widgets.view import natural_key, window_of
from console.winner import Run, Verdict, verdict

#: Part of the whole that the axis has beyond the last end, so that the ends are seen.
MARGIN = 0.02
CELL_SECONDS_MIN = 0.01
#: Workers whose cells are looked at in one tick, of all runs.
WORKERS_A_TICK = 96


@dataclass(frozen=True, slots=True)
class Plan:
    """Heights in rows, frames not included; 0 leaves a part out."""

    framed: bool
    words: int
    titles: bool
    standings: int
    bands: int


def plan_compare(width: int, height: int, runs: int) -> Plan:
    """Share out the rows: a title, words, the table, the bands, and the keys."""
    framed = width >= 50 and height >= 16
    frame = 2 if framed else 0
    rest = max(height - 2, 0)
    words = 3 if rest >= 28 else 2 if rest >= 16 else 1 if rest >= 3 else 0
    rest -= words
    titles = framed or rest >= 10
    standings = min(runs, max(rest - 2 * frame - titles - 3, 1) if rest else 0)
    bands = rest - standings - titles - 2 * frame
    if bands < 2:
        standings, bands, titles = max(rest - frame, 0) and min(runs, rest), 0, False
    return Plan(framed, words, titles, standings, bands)


def plan_zoomed(plan: Plan, height: int, bands: bool, runs: int) -> Plan:
    """The bands, or the table, fill what the title leaves."""
    rows = max(height - 2 - (2 if plan.framed else 0), 0)
    if bands:
        return Plan(plan.framed, 0, False, 0, rows)
    return Plan(plan.framed, 0, rows > 1, min(runs, max(rows - 1, 1)), 0)


# --- the axis --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """What part of the axis is looked at: ``seconds`` from ``start``; None: the whole."""

    start: float = 0.0
    seconds: float | None = None

    def axis(self, end: float, width: int) -> Axis:
        whole = end * (1 + MARGIN)
        seconds = whole if self.seconds is None else self.seconds
        cell = max(seconds / max(width, 1), CELL_SECONDS_MIN)
        return Axis(math.floor(max(self.start, 0.0) / cell + 1e-9), cell, max(width, 0))

    def zoomed(self, factor: float, end: float, width: int, around: float) -> View:
        """``factor`` below 1 comes closer; ``around`` is a moment that stays in place where it can."""
        whole = end * (1 + MARGIN)
        seconds = whole if self.seconds is None else self.seconds
        closer = max(seconds * factor, CELL_SECONDS_MIN * max(width, 1))
        if closer >= whole:
            return View()
        share = (around - self.start) / seconds
        share = share if 0 <= share <= 1 else 0.5
        start = around - share * closer if 0 <= (around - self.start) <= seconds else self.start
        return View(min(max(start, 0.0), max(whole - closer, 0.0)), closer)

    def scrolled(self, share: float, end: float) -> View:
        """By ``share`` of what is in view; the whole doesn't move."""
        if self.seconds is None:
            return self
        start = self.start + share * self.seconds
        return View(min(max(start, 0.0), max(end * (1 + MARGIN) - self.seconds, 0.0)), self.seconds)

    def following(self, now: float) -> View:
        """Moved so that ``now`` is in view, with room ahead."""
        if self.seconds is None or self.start <= now <= self.start + 0.9 * self.seconds:
            return self
        return View(max(now - 0.6 * self.seconds, 0.0), self.seconds)


# --- words and figures -----------------------------------------------------------------------------------


def title_row(contest: Contest) -> TitleRow:
    facts = [f"{contest.rate:g} x real time"]
    heat = contest.heat
    if contest.heats > 1:
        facts.append(f"{contest.number + 1} of {contest.heats}")
    shown = len(contest.lanes)
    if heat.left_out:
        facts.append(f"the best {shown} of {shown + heat.left_out} shown")
    if contest.over:
        badge, mark = "OVER", Mark.DONE
        facts = facts[1:]
    else:
        badge, mark = ("HALTED", Mark.DUPLICATED) if contest.halted else ("PLAYING", Mark.CLAIMED)
    clock = "t " + time_text(contest.at, tenths=False)
    return TitleRow(f"compare  {text.safe(heat.title)}", badge, mark, tuple(facts), clock)


def figures_of(contest: Contest) -> list[Figures]:
    now = contest.at
    return [lane.figures(now) for lane in contest.lanes]


def verdict_of(contest: Contest, figures: Sequence[Figures]) -> Verdict:
    return verdict(
        [
            Run(text.safe(lane.name), each, lane.ended_at is not None)
            for lane, each in zip(contest.lanes, figures, strict=True)
        ]
    )


def word_lines(found: Verdict, width: int, rows: int) -> list[tuple[str, bool]]:
    """At most ``rows`` lines of the verdict; the headline's are strong."""
    room = max(width - 2, 8)
    lines = [(line, True) for line in textwrap.wrap(found.headline, room)]
    lines += [(line, False) for line in textwrap.wrap(found.reasons, room)]
    if len(lines) > rows > 0:
        last, strong = lines[rows - 1]
        rest = " ".join([last, *(line for line, _ in lines[rows:])])
        lines[rows - 1] = text.fit(rest, room), strong
    return lines[: max(rows, 0)]


def standing_rows(
    contest: Contest, figures: Sequence[Figures], found: Verdict, rows: int, titles: bool
) -> list[Hashable]:
    """The table; of more runs than rows, those around the selected one."""
    places = places_of(figures)
    best = best_of(figures) if contest.over else [frozenset[int]()] * len(figures)
    shown: list[Hashable] = [TitlesRow()] if titles else []
    window = window_of(len(figures), rows, contest.selected, 0)
    for index in range(window.start, window.stop):
        lane, each = contest.lanes[index], figures[index]
        over = lane.ended_at is not None
        place = places[index] or (1 if found.winner == index and contest.over else 0)
        shown.append(
            RunRow(
                number=lane.number,
                name=text.safe(lane.name),
                place=place,
                progress=each.progress,
                over=over,
                values=run_values(each, over),
                best=best[index],
                selected=index == contest.selected,
            )
        )
    return shown


def places_of(figures: Sequence[Figures]) -> list[int]:
    """The place of each run that has finished, from 1; the same time is the same place. By ratio where the
    jobs are not the same."""
    by_ratio = len({each.frames for each in figures}) > 1
    values = [each.ratio if by_ratio else each.seconds for each in figures]
    known = sorted(value for value in values if value is not None)
    return [0 if value is None else known.index(value) + 1 for value in values]


# --- bands -----------------------------------------------------------------------------------------------


class BandCells:
    """The cells of every worker of every run, as they were computed last."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], tuple[Axis, bytes]] = {}
        self._spans: dict[int, SpanCells] = {}
        self._names: dict[int, list[str]] = {}
        self._tick = 0

    def clear(self) -> None:
        """Another heat, or from the start again."""
        self._known.clear()
        self._spans.clear()
        self._names.clear()

    def begin(self) -> None:
        """Another tick."""
        self._tick += 1

    def workers_of(self, lane: Lane) -> list[WorkerModel]:
        names = self._names.get(lane.number, [])
        if len(names) != len(lane.model.workers):
            names = self._names[lane.number] = sorted(lane.model.workers, key=natural_key)
        return [lane.model.workers[name] for name in names]

    def of(self, lane: Lane, worker: WorkerModel, axis: Axis, now: float, lanes: int) -> bytes:
        """The cells of one worker of one of ``lanes`` runs, up to ``now`` of the comparison."""
        known = self._known.get((lane.number, worker.name))
        turns = max(1, lane.workers * lanes // WORKERS_A_TICK)
        if known is not None and known[0] == axis and (self._tick + lane.number) % turns:
            return known[1]
        at = lane.tape.lease_time(lane.time(now))
        offset = lane.tape.lease_time(0.0)
        first = axis.first + round(offset / axis.cell_seconds)
        spans = self._spans.setdefault(lane.number, SpanCells())
        cells = spans.of(worker, Cells(first, axis.width, axis.cell_seconds), at)
        self._known[lane.number, worker.name] = axis, cells
        return cells


def band_rows(
    contest: Contest,
    figures: Sequence[Figures],
    found: Verdict,
    axis: Axis,
    rows: int,
    cells: BandCells,
) -> list[Hashable]:
    """A ruler, and a band for each run; of more runs than rows, those around the selected one."""
    if rows < 1:
        return []
    now = contest.at
    shown: list[Hashable] = [RulerRow(ruler(axis), None if contest.over else axis.cell(now))]
    cells.begin()
    lanes = contest.lanes
    window = window_of(len(lanes), rows - 1, contest.selected, 0)
    seen = lanes[window.start : window.stop]
    counts = [lane.workers for lane in seen]
    heights = share_rows(counts, rows - 1)
    spaced = rows - 1 - sum(heights) >= len(seen) - 1 > 0 and min(heights) > 1
    for lane, height in zip(seen, heights, strict=True):
        if spaced and lane is not seen[0]:
            shown.append(None)
        index = lane.number - 1
        each = figures[index]
        bound = None if each.bound_seconds is None else axis.cell(each.bound_seconds)
        selected = index == contest.selected
        workers = cells.workers_of(lane)
        if height > 1:
            note = band_note(each, lane.ended_at is not None, found.winner == index)
            name = text.safe(lane.name)
            shown.append(HeadRow(lane.number, name, note, selected, found.winner == index, bound))
        body = height - 1 if height > 1 else height
        drawn = [cells.of(lane, worker, axis, now, len(lanes)) for worker in workers]
        if len(workers) <= body and height > 1:
            shown += [
                WorkerBand(text.safe(worker.name), row, selected, bound)
                for worker, row in zip(workers, drawn, strict=True)
            ]
        else:
            label = f"{len(workers)} w" if height > 1 else f"{lane.number}"
            shown += [
                StackBand(label if place == 0 else "", row, selected, bound, alone=height == 1)
                for place, row in enumerate(stack_rows(drawn, body))
            ]
    return shown


def lanes_in(rows: Sequence[Hashable]) -> int:
    """How many runs have a band among these rows."""
    return sum(isinstance(row, HeadRow) or (isinstance(row, StackBand) and row.alone) for row in rows)


def band_note(figures: Figures, over: bool, first: bool) -> str:
    if figures.seconds is not None:
        ratio = "" if figures.ratio is None else f", {figures.ratio:.3f} x the bound"
        return ("first: " if first else "") + text.seconds(figures.seconds) + ratio
    return "not finished" if over else text.share(figures.progress, 1.0)


def bands_title(contest: Contest, axis: Axis, shown: int) -> tuple[str, str]:
    of = f"  ({shown} of {len(contest.lanes)} shown)" if shown < len(contest.lanes) else ""
    bound = contest.lane.tape.final.bound_seconds
    stop = min(axis.stop, max(contest.end_at, axis.start + axis.cell_seconds))
    span = f"{text.about(axis.start)} to {text.about(stop)}"
    return f"what the workers did{of}  {span}", "" if bound is None else f"lower bound {text.seconds(bound)}"
