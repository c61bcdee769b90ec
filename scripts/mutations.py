"""Breaks files of the corpus by chance and renders them by the real command on two workers: no traceback, no
hang, and exit code 0 only with what one pass over the broken file gives (tests/e2e/mutations.py says how).

    python -m scripts.mutations 500              # seeds 0 to 499, two at a time
    python -m scripts.mutations 20 --seed 500    # seeds 500 to 519
    python -m scripts.mutations 1 --seed 77 -v   # one, with what was said

Prints each that isn't right, and a summary. Exits with 1 if one came out wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.mutations import Outcome, try_one


def attempt(seed: int) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="uneven-mutation-") as folder:
        try:
            return try_one(seed, Path(folder))
        except Exception as error:
            return Outcome(seed, "?", "?", f"WRONG: the judge failed: {error!r}", "", 0.0)


def line(outcome: Outcome, width: int) -> str:
    said = outcome.said if len(outcome.said) <= width else outcome.said[:width] + "…"
    facts = f"{outcome.seed:5d} {outcome.source}, {outcome.what}, {outcome.seconds:.1f} s"
    return f"{facts}: {outcome.verdict}; {said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(attempt, range(options.seed, options.seed + options.count)):
            outcomes.append(outcome)
            if options.verbose or outcome.verdict not in ("right", "refused"):
                print(line(outcome, 1000 if options.verbose else 200), flush=True)
    counts = Counter("WRONG" if outcome.wrong else outcome.verdict for outcome in outcomes)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    kinds = Counter(outcome.what for outcome in outcomes if outcome.verdict == "right")
    print("right: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    print(f"longest: seed {slowest.seed} with {slowest.seconds:.1f} s")
    return any(outcome.wrong for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(main())
