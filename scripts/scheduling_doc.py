"""Makes the figures of docs/scheduling.md, between the two marks in it, by running everything again.

    python scripts/scheduling_doc.py                     # all of it: hours on two cores, most of it X500
    python scripts/scheduling_doc.py --fleets A,B,H4,M16,M64 --seeds 2

What the figures were made of is said above them; the same command gives the same figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from console.article import prototype_rows, published_rows, run_article
from console.compare import ALL_POLICIES, Comparison, compare, ratio_text
from console.tables import markdown_table
from console.trials import DRAWN, Setting, parse_fleets, parse_schedule
from farm.simulation.conditions import CONDITIONS
from farm.simulation.grid import FRESH

DOCUMENT = Path(__file__).parents[1] / "docs" / "scheduling.md"
BEGIN, END = "<!-- figures: scripts/scheduling_doc.py -->", "<!-- end of figures -->"

#: What of fair was tried, to choose its defaults.
VARIANTS = tuple(
    f"fair,first={first:g}+split{ahead}" for first in (0.05, 0.1, 0.25, 0.5) for ahead in ("", "+no-ahead")
)
#: The schedule whose cells are shown one by one.
SHOWN = "fair+split"


def overall_rows(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Best mean first."""
    ranked = sorted(comparison.overall, key=lambda overall: (overall.mean is None, overall.mean or 0.0))
    rows = [
        [
            f"`{overall.schedule}`",
            ratio_text(overall.mean),
            ratio_text(overall.p95),
            ratio_text(overall.worst),
            overall.worst_at,
        ]
        for overall in ranked
    ]
    return ["schedule", "mean", "p95", "worst", "at"], rows


def cell_rows(comparison: Comparison, schedule: str) -> tuple[list[str], list[list[str]]]:
    """Fleets across, conditions down."""
    cells = {(cell.fleet, cell.condition): cell for cell in comparison.cells if cell.schedule == schedule}
    fleets = list(dict.fromkeys(fleet for fleet, _ in cells))
    conditions = list(dict.fromkeys(condition for _, condition in cells))
    rows = [
        [condition, *(ratio_text(cells[fleet, condition].ratio) for fleet in fleets)]
        for condition in conditions
    ]
    return ["condition", *fleets], rows


def figures(fleets: Sequence[str], seeds: int, fresh: int, processes: int) -> list[str]:
    """The lines between the marks."""
    article = run_article(_progress("article"), processes)
    schedules = [parse_schedule(text) for text in ALL_POLICIES]
    conditions = list(CONDITIONS)

    def grid(texts: Sequence[str], what: str) -> Comparison:
        chosen = [parse_schedule(text) for text in texts]
        return compare(
            chosen, fleets, conditions, range(seeds), Setting(), processes=processes, on_done=_progress(what)
        )

    everything = grid(ALL_POLICIES, "grid")
    variants = grid(VARIANTS, "variants of fair")
    unknown = compare(
        schedules,
        [FRESH],
        [DRAWN],
        range(1, fresh + 1),
        Setting(),
        processes=processes,
        on_done=_progress("fresh fleets"),
    )
    means = f"means of {seeds} seeds" if seeds > 1 else "seed 0"
    cells = f"{', '.join(fleets)} x {len(conditions)} conditions, {means}"
    return [
        "### The published table",
        "",
        *markdown_table(*published_rows(article)),
        "",
        "### The prototype's rows",
        "",
        "Theirs/ours in the columns of claims.",
        "",
        *markdown_table(*prototype_rows(article)),
        "",
        "### Every policy on the benchmark grid",
        "",
        f"{cells}, parts of one frame. Ratios: finishing time / lower bound.",
        "",
        *markdown_table(*overall_rows(everything)),
        "",
        f"`{SHOWN}` cell by cell:",
        "",
        *markdown_table(*cell_rows(everything, SHOWN)),
        "",
        "### Fresh fleets",
        "",
        f"{fresh} fleets that nothing was tuned on, each under a condition that its seed draws.",
        "",
        *markdown_table(*overall_rows(unknown)),
        "",
        "### What `fair` begins with, and claiming ahead",
        "",
        f"{cells}.",
        "",
        *markdown_table(*overall_rows(variants)),
    ]


def replace_figures(document: str, lines: Sequence[str]) -> str:
    """Raises ValueError for a document without the marks."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the marks {BEGIN} and {END} are not both in it")
    return before + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + after


def _progress(what: str) -> Callable[[int, int], None]:
    began = time.monotonic()

    def say(done: int, of: int) -> None:
        if done == of or done % max(of // 20, 1) == 0:
            print(f"{what}: {done} of {of}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    return say


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fleets", default="all")
    parser.add_argument("--seeds", type=int, default=3, help="seeds a cell of the grid")
    parser.add_argument("--fresh", type=int, default=40, help="fresh fleets")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    document = chosen.document.read_text(encoding="utf-8")
    replace_figures(document, ())  # before hours of work
    lines = figures(parse_fleets(chosen.fleets), chosen.seeds, chosen.fresh, chosen.processes)
    chosen.document.write_text(replace_figures(document, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
