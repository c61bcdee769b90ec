"""Makes the table of faults in docs/reliability.md, between its two marks, by running every case again.

    python scripts/reliability_doc.py              # live and simulated: some minutes
    python scripts/reliability_doc.py --simulated  # the live columns are left out
    python scripts/reliability_doc.py --only late  # only the rows of faults with that text; the others stay

Exits with 1 if a case is not as it must be; the table is written all the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from console.tables import markdown_table
from farm.engines.local import prepare
from farm.faultgrid import (
    CASES,
    FRAMES,
    HEARTBEAT_SECONDS,
    LEASE_SECONDS,
    PART,
    POLICIES,
    SPEEDS,
    STALL_SECONDS,
    Case,
    Outcome,
    make_clip,
    run_case,
    simulate_case,
)

DOCUMENT = Path(__file__).parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- faults: scripts/reliability_doc.py -->", "<!-- end of faults -->"
HEAD = """## Faults
Each fault that can be injected (samples/scenarios/README.md), on its own, under two policies, in virtual time
and on real processes. What must come of each: every frame is credited once, the packets of the output are the
same bytes as undisturbed, the run ends in bounded time, and its exit code tells the truth (0: done and
verified, 5: incomplete).
"""


def row(case: Case, policy: str, simulated: Outcome, live: Outcome | None) -> list[str]:
    cells = [f"`{case.name}`", policy]
    for outcome in (simulated, live) if live is not None else (simulated,):
        trouble = (
            (outcome.lapses, "lapse"),
            (outcome.refusals, "refusal"),
            (outcome.failures, "failure"),
            (outcome.losses, "loss"),
        )
        told = ", ".join(f"{count} {_plural(noun, count)}" for count, noun in trouble if count) or "-"
        cells += [f"{outcome.seconds:.1f} s", told, str(outcome.exit_code)]
    wrong = [*simulated.wrong, *(live.wrong if live is not None else ())]
    return [*cells, "; ".join(wrong) or "yes"]


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}es" if noun.endswith("s") else f"{noun}s"


def table(live: bool, only: str = "", known: Sequence[str] = ()) -> tuple[list[str], bool]:
    """The lines between the marks, and whether all was as it must be. With ``only``, rows of faults without
    that text are taken from the ``known`` lines."""
    rows = []
    head = ["fault", "policy", "simulated", "trouble", "exit"]
    head += ["live", "trouble", "exit", "as it must be"] if live else ["as it must be"]
    with tempfile.TemporaryDirectory(prefix="uneven-faults-") as scratch:
        folder = Path(scratch)
        os.environ["UNEVEN_STATE_DIR"] = str(folder / "state")
        clip, reference = Path(), ""
        if live:
            prepare()
            clip = make_clip(folder)
            reference = run_case(None, "fair", clip, folder).packets_sha256
        pairs = [(case, policy) for case in CASES for policy in POLICIES]
        for number, (case, policy) in enumerate(pairs):
            real = None
            if only not in case.name:
                beginning = f"| `{case.name}` | {policy} | "
                line = next(line for line in known if line.startswith(beginning))
                rows.append([cell.strip() for cell in line.strip("| ").split(" | ")])
                continue
            if live:
                own = folder / str(number)
                own.mkdir()
                real = run_case(case, policy, clip, own, reference)
            rows.append(row(case, policy, simulate_case(case, policy), real))
            print(f"{number + 1} of {len(pairs)}: {' | '.join(rows[-1])}", file=sys.stderr, flush=True)
    speeds = ", ".join(f"{name} {fps:g} fps" for name, fps in SPEEDS.items())
    lines = [
        HEAD,
        f"{FRAMES} frames in parts of {PART} on {speeds}; lease {LEASE_SECONDS:g} s, heartbeat "
        f"{HEARTBEAT_SECONDS:g} s, stall timeout {STALL_SECONDS:g} s. `fair` with splits, `guided,12` with "
        "duplicates. Seconds are lease time from the start of the run to its last record; live ones include "
        "starting, measuring, joining and verifying.",
        "",
        *markdown_table(head, rows),
    ]
    return lines, all(cells[-1] == "yes" for cells in rows)


def replaced(document: str, lines: Sequence[str]) -> str:
    """The document with ``lines`` between the marks; at its end if it has none."""
    section = "\n".join((BEGIN, *lines, END))
    before, begin, rest = document.partition(BEGIN)
    if not begin:
        return f"{document.rstrip()}\n\n{section}\n"
    return before + section + rest.partition(END)[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="virtual time only")
    parser.add_argument("--only", default="", help="make only the rows of faults with that text anew")
    arguments = parser.parse_args()
    document = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else "# Reliability\n"
    lines, right = table(not arguments.simulated, arguments.only, document.splitlines())
    DOCUMENT.write_text(replaced(document, lines), encoding="utf-8")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
