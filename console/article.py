"""``uneven compare --article``: what the relay write-up printed, and what a prototype of this simulator
measured, beside what the simulator gives.

Rules of this file:
- figures of others stand here as they were printed, and ours are run, never copied;
- what the published table hides is said below it, from runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations

import msgspec

from console.compare import Format
from console.tables import csv_table, text_table
from console.trials import Score, Setting, Trial, parse_schedule, run_trials

#: Fleets of the write-up, in the order of asking that it used.
FLEETS = ("30,30,12,2", "24,24,24,1")

#: Nobody beats and no lease is judged: the write-up's model.
PLAIN = Setting(heartbeats=False)

_GUIDED = "guided,12+duplicate-oldest,from=start"


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of somebody's table: seconds on both fleets; ``claims`` where they were given."""

    schedule: str
    seconds: tuple[float, float]
    claims: tuple[int, int] | None = None


PUBLISHED = (Printed("fixed,48+none", (133.2, 150.0)), Printed(_GUIDED, (102.4, 103.8)))
PUBLISHED_BOUNDS = (66.9, 67.8)

PROTOTYPE = (
    Printed("fixed,48+none", (133.20, 150.00), (100, 100)),
    Printed("fixed,120+duplicate-oldest,from=start", (96.00, 98.00), (42, 41)),
    Printed(_GUIDED, (102.43, 103.83), (39, 38)),
    Printed("guided,12+split", (92.63, 93.42), (40, 41)),
    Printed("granular,4+duplicate-oldest,from=start", (84.00, 87.00), (18, 17)),
    Printed("awf-b+duplicate-oldest,from=start", (83.40, 87.29), (34, 34)),
    Printed("af+duplicate-oldest,from=start", (79.60, 81.08), (27, 26)),
    Printed("static+split", (72.17, 72.38), (12, 11)),
    Printed("fair,first=0.5+split+no-ahead", (70.20, 72.00), (8, 8)),
    Printed("fair,first=0.05+split+no-ahead", (69.17, 70.00), (9, 7)),
    Printed("fair,known=1+split+no-ahead", (67.00, 68.00), (4, 4)),
)

#: What the published table hides: other pairings of the same two sizes.
_HIDDEN = (
    "fixed,120+duplicate-oldest,from=start",
    "guided,12+none",
    "guided,12+duplicate-oldest,from=frontier",
)
#: The same again on parts of 12 frames, to which sizes are rounded.
_ROUNDED = Setting(heartbeats=False, part=12)


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of somebody's and ours. Seconds."""

    schedule: str
    fleet: str
    theirs: float
    ours: float
    lower_bound_seconds: float
    their_claims: int | None
    our_claims: int

    @property
    def differs(self) -> float:
        """Share by which ours is longer; what rounding alone makes is none."""
        return self.ours / self.theirs - 1


class Article(msgspec.Struct, frozen=True, kw_only=True):
    published: tuple[Beside, ...]
    prototype: tuple[Beside, ...]
    hidden: dict[str, tuple[float, float]]  #: seconds on both fleets
    orders: tuple[tuple[float, float], ...]  #: least and most seconds of guided, over all orders of asking


def run_article(on_done: Callable[[int, int], None] = lambda done, of: None, processes: int = 0) -> Article:
    """Run all of it: some seventy short simulations."""
    trials: list[Trial] = []

    def put(schedule: str, fleet: str, setting: Setting) -> int:
        trials.append(Trial(parse_schedule(schedule), fleet, setting=setting))
        return len(trials) - 1

    published = [[put(row.schedule, fleet, PLAIN) for fleet in FLEETS] for row in PUBLISHED]
    prototype = [[put(row.schedule, fleet, Setting()) for fleet in FLEETS] for row in PROTOTYPE]
    hidden = {name: [put(name, fleet, PLAIN) for fleet in FLEETS] for name in _HIDDEN}
    hidden[f"{_GUIDED}, parts of 12"] = [put(_GUIDED, fleet, _ROUNDED) for fleet in FLEETS]
    orders = [[put(_GUIDED, order, PLAIN) for order in orders_of(fleet)] for fleet in FLEETS]
    scores = run_trials(trials, processes=processes, on_done=lambda done: on_done(done, len(trials)))

    def seconds(number: int) -> float:
        score = scores[number].seconds
        assert score is not None, "nothing goes wrong in these worlds"
        return score

    return Article(
        published=tuple(_beside(PUBLISHED, published, scores)),
        prototype=tuple(_beside(PROTOTYPE, prototype, scores)),
        hidden={name: (seconds(a), seconds(b)) for name, (a, b) in hidden.items()},
        orders=tuple((min(map(seconds, numbers)), max(map(seconds, numbers))) for numbers in orders),
    )


def orders_of(fleet: str) -> list[str]:
    """All orders in which the workers of a fleet can ask."""
    return sorted({",".join(order) for order in permutations(fleet.split(","))})


def _beside(rows: tuple[Printed, ...], numbers: list[list[int]], scores: list[Score]) -> list[Beside]:
    found = []
    for row, places in zip(rows, numbers, strict=True):
        for column, place in enumerate(places):
            score = scores[place]
            assert score.seconds is not None
            found.append(
                Beside(
                    schedule=row.schedule,
                    fleet=FLEETS[column],
                    theirs=row.seconds[column],
                    ours=score.seconds,
                    lower_bound_seconds=score.bound_seconds,
                    their_claims=row.claims[column] if row.claims else None,
                    our_claims=score.claims,
                )
            )
    return found


# --- showing ---------------------------------------------------------------------------------------------


def render(article: Article, form: Format, width: int) -> str:
    """With a line end at the end."""
    if form == "json":
        return msgspec.json.encode(article).decode() + "\n"
    if form == "csv":
        head = ["table", "schedule", "fleet", "theirs", "ours", "their_claims", "our_claims"]
        rows = [
            [
                table,
                beside.schedule,
                beside.fleet,
                f"{beside.theirs:g}",
                f"{beside.ours:.3f}",
                "" if beside.their_claims is None else str(beside.their_claims),
                str(beside.our_claims),
            ]
            for table, found in (("published", article.published), ("prototype", article.prototype))
            for beside in found
        ]
        return csv_table(head, rows)
    return "\n".join(article_lines(article, width)) + "\n"


def article_lines(article: Article, width: int) -> list[str]:
    return [
        "Published table: 4,800 frames, 2 s of overhead a claim, parts of one frame. Seconds.",
        "",
        *text_table(*published_rows(article), width),
        "",
        *note_lines(article),
        "",
        "Measured in a prototype of this simulator: heartbeats every 2 s, leases of 20 s. Seconds.",
        "",
        *text_table(*prototype_rows(article), width),
        "",
        *(_SPLITS_DIFFER if any(abs(beside.differs) > 0.01 for beside in article.prototype) else ()),
    ]


#: Found by experiment: see docs/scheduling.md.
_SPLITS_DIFFER = (
    "Rows that differ by more than 1 % split, and ours are quicker: the prototype handed over more and",
    "smaller pieces. docs/scheduling.md has the experiment.",
)


def published_rows(article: Article) -> tuple[list[str], list[list[str]]]:
    head = ["schedule", *(f"{fleet} {whose}" for fleet in FLEETS for whose in ("printed", "ours"))]
    rows = [
        [name, *(cell for beside in pair for cell in (f"{beside.theirs:.1f}", f"{beside.ours:.1f}"))]
        for name, pair in _pairs(article.published)
    ]
    _, pair = _pairs(article.published)[0]
    bounds = zip(PUBLISHED_BOUNDS, pair, strict=True)
    rows.append(
        [
            "lower bound",
            *(c for told, ours in bounds for c in (f"{told:.1f}", f"{ours.lower_bound_seconds:.1f}")),
        ]
    )
    return head, rows


def prototype_rows(article: Article) -> tuple[list[str], list[list[str]]]:
    fields = ("theirs", "ours", "differs", "claims")
    head = ["schedule", *(f"{name} {field}" for name in "AB" for field in fields)]
    rows = []
    for name, pair in _pairs(article.prototype):
        row = [name]
        for beside in pair:
            claims = f"{beside.their_claims}/{beside.our_claims}"
            row += [f"{beside.theirs:.2f}", f"{beside.ours:.2f}", f"{_percent(beside.differs)}", claims]
        rows.append(row)
    return head, rows


def note_lines(article: Article) -> list[str]:
    """What the published table hides."""
    fixed, bare, frontier, rounded = article.hidden.values()
    (a_least, a_most), (b_least, b_most) = article.orders
    return [
        "The table compares fixed sizes without duplicates to guided ones with them. The duplicates make the",
        f"gain: fixed,120 with duplicates takes {fixed[0]:.1f} and {fixed[1]:.1f} s, less than guided;",
        f"guided without them {bare[0]:.0f} and {bare[1]:.0f} s. Guided with duplicates also depends on who",
        f"asks first ({a_least:.1f} to {a_most:.1f} and {b_least:.1f} to {b_most:.1f} s over all orders) and",
        "on the rounding of its sizes to whole parts",
        f"(parts of 12 frames, rounded to the nearest: {rounded[0]:.1f} and {rounded[1]:.1f} s).",
        f"Duplicates from the first part not yet credited on give {frontier[0]:.1f} and {frontier[1]:.1f} s.",
    ]


def _pairs(found: tuple[Beside, ...]) -> list[tuple[str, tuple[Beside, Beside]]]:
    return [(a.schedule, (a, b)) for a, b in zip(found[::2], found[1::2], strict=True)]


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %" if abs(share) >= 0.0005 else "0.0 %"
