"""Schedules over the benchmark grid of docs/scheduling.md, or over fresh fleets made from seeds.

    python benchmarks/policy_grid.py                 # 6 fleets x 9 conditions x 3 seeds, the usual schedules
    python benchmarks/policy_grid.py --fresh 40      # 40 fleets nothing was tuned on
    python benchmarks/policy_grid.py --seeds 1 --fleets A,B --part 48 "fair + split" "fair + split + ahead"

A schedule is spelt "policy + tail", with "+ ahead" for claims held ahead. Ratio = finishing time / lower
bound (clairvoyant); a cell is a fleet under a condition, its ratio the mean over the seeds.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from multiprocessing import Pool
from statistics import fmean

import msgspec

from farm.simulation.conditions import CONDITIONS
from farm.simulation.fleets import FLEETS
from farm.simulation.grid import Cell, CellResult, Schedule, fresh_cells, grid_cells, percentile, run_cell

USUAL = (
    "fair + split + ahead",
    "fair + split",
    "static + split",
    "af + duplicate-oldest",
    "guided,12 + duplicate-oldest",
    "fixed,120 + duplicate-oldest",
)


def parse_schedule(text: str) -> Schedule:
    policy, *rest = [field.strip() for field in text.split("+")]
    ahead = "ahead" in rest
    tails = [field for field in rest if field != "ahead"]
    return Schedule(policy, tails[0] if tails else "split", ahead)


def run_all(cells: Sequence[Cell], processes: int) -> list[CellResult]:
    """Large cells first, so that the processes end together."""
    order = sorted(cells, key=lambda cell: -FLEETS.index(cell.fleet) if cell.fleet in FLEETS else 0)
    results = []
    with Pool(processes) as pool:
        for number, result in enumerate(pool.imap_unordered(run_cell, order), 1):
            results.append(result)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(order)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return results


def by_cell(results: Iterable[CellResult], *, fresh: bool) -> dict[tuple[str, str], float]:
    """Mean ratio of each cell; each fresh fleet is a cell of its own."""
    ratios = defaultdict(list)
    for result in sorted(results, key=lambda result: result.cell.seed):
        cell = result.cell
        ratios[str(cell.seed) if fresh else cell.fleet, cell.condition].append(result.ratio)
    return {key: fmean(values) for key, values in ratios.items()}


def print_summary(schedules: Sequence[Schedule], results: Sequence[CellResult], *, fresh: bool) -> None:
    head = f"{'schedule':38} {'mean':>6} {'p95':>6} {'worst':>6}  worst cell"
    print(head + " " * 14 + f"{'waste':>6} {'idle':>6} {'claims':>9}")
    for schedule in schedules:
        own = [result for result in results if result.cell.schedule == schedule]
        cells = by_cell(own, fresh=fresh)
        worst = max(sorted(cells), key=lambda key: cells[key])
        ratios = cells.values()
        waste, idle = fmean(r.wasted_share for r in own), fmean(r.idle_share for r in own)
        claims = sum(r.claims for r in own)
        print(
            f"{schedule.name:38} {fmean(ratios):6.3f} {percentile(ratios, 0.95):6.3f} {cells[worst]:6.3f}  "
            f"{' '.join(worst):22}  {waste:6.1%} {idle:6.1%} {claims:9}"
        )


def print_cells(schedule: Schedule, results: Sequence[CellResult]) -> None:
    cells = by_cell((r for r in results if r.cell.schedule == schedule), fresh=False)
    fleets = [fleet for fleet in FLEETS if any(key[0] == fleet for key in cells)]
    print(f"\n{schedule.name}\n{'':10}" + "".join(f"{fleet:>8}" for fleet in fleets))
    for condition in CONDITIONS:
        row = [cells.get((fleet, condition)) for fleet in fleets]
        if any(value is not None for value in row):
            print(f"{condition:10}" + "".join(f"{'' if v is None else format(v, '8.3f'):>8}" for v in row))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("schedules", nargs="*", default=USUAL)
    parser.add_argument("--fleets", default=",".join(FLEETS))
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--seeds", type=int, default=3, help="seeds a cell (default: 3)")
    parser.add_argument(
        "--fresh", type=int, default=0, metavar="COUNT", help="fresh fleets instead of the grid"
    )
    parser.add_argument("--part", type=int, default=1, help="frames a part (default: 1)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="one line of JSON a run instead of tables")
    chosen = parser.parse_args()
    schedules = [parse_schedule(text) for text in chosen.schedules]
    if chosen.fresh:
        cells = list(fresh_cells(schedules, count=chosen.fresh, part=chosen.part))
    else:
        cells = list(
            grid_cells(
                schedules,
                fleets=chosen.fleets.split(","),
                conditions=chosen.conditions.split(","),
                seeds=range(1, chosen.seeds + 1),
                part=chosen.part,
            )
        )
    results = run_all(cells, chosen.processes)
    if chosen.json:
        for result in results:
            print(msgspec.json.encode(result).decode())
        return
    print_summary(schedules, results, fresh=bool(chosen.fresh))
    if not chosen.fresh:
        for schedule in schedules:
            print_cells(schedule, results)


if __name__ == "__main__":
    main()
