"""Makes the figures of docs/scheduling.md, between the two marks in it, by running everything again.

    python scripts/scheduling_doc.py                     # all of it: an hour or so on two cores of one's own
    python scripts/scheduling_doc.py grid fresh          # these sections alone; the others stay as they are
    python scripts/scheduling_doc.py policies --others A,B,H4,M16,M64,X500

``fair`` is run on all fleets of the grid, the other policies on ``--others``: they are there to be compared
with. What the figures were made of is said above them; the same command gives the same figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from console.article import prototype_rows, published_rows, run_article
from console.compare import ALL_POLICIES, Comparison, compare, overall_of, ratio_text
from console.tables import markdown_table
from console.trials import DRAWN, Setting, parse_fleets, parse_schedule
from farm.simulation.conditions import CONDITIONS
from farm.simulation.grid import FRESH

DOCUMENT = Path(__file__).parents[1] / "docs" / "scheduling.md"
BEGIN, END = "<!-- figures: scripts/scheduling_doc.py -->", "<!-- end of figures -->"

#: What is run on the whole grid: the default.
CHOSEN = ("fair+split", "fair+split+no-ahead")
#: Fleets that take so long that they get fewer seeds.
LARGE = ("X500",)
#: What of fair was tried, to choose its defaults.
VARIANTS = tuple(
    f"fair,first={first:g}+split{ahead}" for first in (0.05, 0.1, 0.25, 0.5) for ahead in ("", "+no-ahead")
)


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


def joined(*comparisons: Comparison) -> Comparison:
    """Of the same schedules, each on fleets of its own."""
    cells = tuple(cell for comparison in comparisons for cell in comparison.cells)
    names = [overall.schedule for overall in comparisons[0].overall]
    overall = tuple(overall_of(name, [cell for cell in cells if cell.schedule == name]) for name in names)
    return Comparison(setting=comparisons[0].setting, cells=cells, overall=overall)


def run(
    what: str, texts: Sequence[str], fleets: Sequence[str], seeds: Sequence[int], chosen: argparse.Namespace
) -> Comparison:
    """Under every condition, or, for fresh fleets, the one that each seed draws."""
    conditions = [DRAWN] if list(fleets) == [FRESH] else list(CONDITIONS)
    schedules = [parse_schedule(text) for text in texts]
    return compare(
        schedules,
        fleets,
        conditions,
        seeds,
        Setting(),
        processes=chosen.processes,
        on_done=_progress(what),
    )


def published(chosen: argparse.Namespace) -> list[str]:
    article = run_article(_progress("article"), chosen.processes)
    theirs = "The prototype's rows; theirs/ours in the columns of claims:"
    return [
        *markdown_table(*published_rows(article)),
        "",
        theirs,
        "",
        *markdown_table(*prototype_rows(article)),
    ]


def grid(chosen: argparse.Namespace) -> list[str]:
    fleets = parse_fleets(chosen.fleets)
    small = [fleet for fleet in fleets if fleet not in LARGE]
    large = [fleet for fleet in fleets if fleet in LARGE]
    parts = [run("grid", CHOSEN, small, range(chosen.seeds), chosen)] if small else []
    if large:
        parts.append(run("large fleets", CHOSEN, large, range(chosen.large_seeds), chosen))
    found = joined(*parts)
    lines = [
        f"{', '.join(fleets)} x {len(CONDITIONS)} conditions, parts of one frame; seeds: {chosen.seeds}"
        f", {chosen.large_seeds} on {', '.join(LARGE)}. Ratios: finishing time / lower bound.",
        "",
        *markdown_table(*overall_rows(found)),
    ]
    for name in CHOSEN:
        lines += ["", f"`{name}` cell by cell:", "", *markdown_table(*cell_rows(found, name))]
    return lines


def fresh(chosen: argparse.Namespace) -> list[str]:
    found = run("fresh fleets", CHOSEN, [FRESH], range(1, chosen.fresh + 1), chosen)
    return [
        f"{chosen.fresh} fleets that nothing was tuned on, each under a condition that its seed draws.",
        "",
        *markdown_table(*overall_rows(found)),
    ]


def policies(chosen: argparse.Namespace) -> list[str]:
    return _some("every policy", ALL_POLICIES, chosen)


def variants(chosen: argparse.Namespace) -> list[str]:
    return _some("variants of fair", VARIANTS, chosen)


def _some(what: str, texts: Sequence[str], chosen: argparse.Namespace) -> list[str]:
    fleets = parse_fleets(chosen.others)
    found = run(what, texts, fleets, [0], chosen)
    note = f"{', '.join(fleets)} x {len(CONDITIONS)} conditions, seed 0, parts of one frame."
    return [note, "", *markdown_table(*overall_rows(found))]


#: Sections of the document, in its order: their titles and what makes them.
SECTIONS: dict[str, tuple[str, Callable[[argparse.Namespace], list[str]]]] = {
    "published": ("The published table", published),
    "grid": ("`fair` on the benchmark grid", grid),
    "fresh": ("Fresh fleets", fresh),
    "policies": ("Every policy", policies),
    "variants": ("What `fair` begins with, and claiming ahead", variants),
}


def replace_section(document: str, name: str, lines: Sequence[str]) -> str:
    """The document with one section between the marks made anew. Raises ValueError for a document without the
    marks."""
    before, begin, rest = document.partition(BEGIN)
    figures, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the marks {BEGIN} and {END} are not both in it")
    _, *found = figures.split("\n### ")
    bodies = {title: body.strip() for title, _, body in (section.partition("\n") for section in found)}
    bodies[SECTIONS[name][0]] = "\n".join(lines)
    texts = [f"### {title}\n\n{bodies[title]}\n\n" for title, _ in SECTIONS.values() if title in bodies]
    return before + BEGIN + "\n\n" + "".join(texts) + END + after


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
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is named")
    parser.add_argument("--fleets", default="all")
    parser.add_argument("--others", default="A,B,H4,M16", help="fleets for the other policies")
    parser.add_argument("--seeds", type=int, default=3, help="seeds a cell of the grid")
    parser.add_argument("--large-seeds", type=int, default=1, help=f"the same for {', '.join(LARGE)}")
    parser.add_argument("--fresh", type=int, default=40, help="fresh fleets")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    for name in chosen.sections or SECTIONS:
        replace_section(chosen.document.read_text(encoding="utf-8"), name, ())  # before all the work
        lines = SECTIONS[name][1](chosen)
        document = chosen.document.read_text(encoding="utf-8")
        chosen.document.write_text(replace_section(document, name, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
