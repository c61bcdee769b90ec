"""How far off the estimated finishing time is, at shares of the run, and how often the end lay in the range.

    python benchmarks/estimate_errors.py                 # the usual rows, 24 orders or seeds each
    python benchmarks/estimate_errors.py --seeds 6 "A noise fair + split"

A row is "FLEET CONDITION POLICY + TAIL [+ ahead] [+ part N]". Errors are medians over the seeds, in
seconds; "extrapolated" is what elapsed time and credited frames alone would say. A seed is an order of the
workers, and all that is drawn in the condition.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from multiprocessing import Pool
from statistics import fmean, median

import msgspec
from msgspec.structs import replace

from farm.engines.simulated import Simulation
from farm.events import FinishEstimated, RelayOptions
from farm.forecast import Forecaster, estimate, outlook_of
from farm.simulation.conditions import CONDITIONS
from farm.simulation.fleets import grid_world
from farm.simulation.world import World

MARKS = (0.10, 0.20, 0.30, 0.50, 0.70, 0.95)
#: Virtual seconds between estimates, as in a live run.
EVERY_SECONDS = 1.0

USUAL = (
    "A base fair + split + ahead",
    "A base fair + split",
    "B base fair + split + ahead",
    "B base fair + split",
    "A base fair + split + ahead + part 48",
    "A base guided,12 + duplicate-oldest",
    "B base guided,12 + duplicate-oldest",
    "A base guided,12 + duplicate-oldest + part 48",
    "A base fixed,48 + none",
    "A base fixed,48 + duplicate-oldest",
    "A noise fair + split + ahead",
    "A noise guided,12 + duplicate-oldest",
    "A scenes fair + split + ahead",
    "A stall fair + split + ahead",
    "A stall guided,12 + duplicate-oldest",
    "M16 base fair + split + ahead",
    "M16 noise fair + split + ahead",
    "M16 noise guided,12 + duplicate-oldest",
    "M64 noise fair + split + ahead",
)


class Row(msgspec.Struct, frozen=True):
    fleet: str
    condition: str
    policy: str
    tail: str
    ahead: bool
    part: int
    seed: int


class Seen(msgspec.Struct, frozen=True):
    """At one mark of one run. Seconds; None: no estimate."""

    error: float | None  #: estimated end - end
    extrapolated: float | None
    within: bool
    width: float | None
    by: str


def parse_row(text: str, seed: int) -> Row:
    where, *rest = [field.strip() for field in text.split("+")]
    fleet, *words = where.split()
    condition, policy = " ".join(words[:-1]), words[-1]
    part = next((int(field.removeprefix("part ")) for field in rest if field.startswith("part ")), 1)
    return Row(fleet, condition, policy, rest[0], "ahead" in rest, part, seed)


def world_of_row(row: Row) -> World:
    options = RelayOptions(policy=row.policy, tail=row.tail, claim_ahead=row.ahead)
    world = CONDITIONS[row.condition](grid_world(row.fleet, row.seed, part=row.part))
    return replace(world, options=options)


def look(row: Row) -> list[Seen]:
    """One run: to its end first, to know it, then again with an estimate every second."""
    world = world_of_row(row)
    first = Simulation(world)
    first.run()
    end = first.books.last_credit_at or 0.0
    again, forecaster = Simulation(world), Forecaster()
    marks, seen, second = [share * end for share in MARKS], [], 0.0
    while len(seen) < len(marks):
        at_mark = marks[len(seen)] <= second + EVERY_SECONDS
        now = marks[len(seen)] if at_mark else second + EVERY_SECONDS
        again.run_until(now)
        told = forecaster.tell(now, estimate(outlook_of(again.books, *again.relay.schedule, now)))
        if at_mark:
            seen.append(compare(told, again, now, end))
        second = now if not at_mark else second
    return seen


def compare(told: FinishEstimated, simulation: Simulation, now: float, end: float) -> Seen:
    done, books = simulation.books.credited_frames, simulation.books
    plain = now * books.grid.frames / done - end if done else None
    if told.likely_seconds is None or told.low_seconds is None or told.high_seconds is None:
        return Seen(None, plain, False, None, "")
    left = end - now
    return Seen(
        error=told.likely_seconds - left,
        extrapolated=plain,
        within=told.low_seconds - 0.05 <= left <= told.high_seconds + 0.05,
        width=told.high_seconds - told.low_seconds,
        by=told.by,
    )


def figures(seen: Sequence[Seen]) -> tuple[str, str, str, str]:
    """Median error, median error of extrapolating, share within the range, median width."""
    errors = [abs(each.error) for each in seen if each.error is not None]
    plain = [abs(each.extrapolated) for each in seen if each.extrapolated is not None]
    widths = [each.width for each in seen if each.width is not None]
    return (
        f"{median(errors):.1f}" if errors else "-",
        f"{median(plain):.1f}" if plain else "-",
        f"{fmean(each.within for each in seen):.0%}",
        f"{median(widths):.1f}" if widths else "-",
    )


def print_rows(texts: Sequence[str], seeds: Sequence[int], runs: Sequence[list[Seen]]) -> None:
    columns = "".join(f"{mark:>7.0%}" for mark in MARKS)
    print(f"{'':46}{'':14}{columns}")
    for number, text in enumerate(texts):
        own = runs[number * len(seeds) : (number + 1) * len(seeds)]
        table = [figures([run[mark] for run in own]) for mark in range(len(MARKS))]
        by = ", ".join(dict.fromkeys(each.by for run in own for each in run if each.by))
        for line, name in enumerate(("error, s", "extrapolated", "in the range", "its width, s")):
            head = text if line == 0 else f"  by {by}" if line == 1 else ""
            print(f"{head:46}{name:14}" + "".join(f"{row[line]:>7}" for row in table))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", default=USUAL)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    seeds = range(1, chosen.seeds + 1)
    rows = [parse_row(text, seed) for text in chosen.rows for seed in seeds]
    runs = []
    with Pool(chosen.processes) as pool:
        for number, run in enumerate(pool.imap(look, rows), 1):
            runs.append(run)
            if sys.stderr.isatty():
                print(f"\r{number} of {len(rows)}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print_rows(chosen.rows, seeds, runs)


if __name__ == "__main__":
    main()
