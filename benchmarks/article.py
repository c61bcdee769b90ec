"""The relay write-up's figures, live: 4,800 small frames, 2 s of overhead a claim, real worker processes.

    python benchmarks/article.py            # fleet 30,30,12,2: about four minutes
    python benchmarks/article.py --fleet B  # fleet 24,24,24,1

Each figure is a run of the ``uneven`` command; the published one stands beside it. The grid must divide the
chunks: fixed,48 runs on parts of 48 frames and guided,12 on parts of 12.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from farm.engines.child import run_in_child_blocking

FLEETS = {"A": "30,30,12,2", "B": "24,24,24,1"}
CASES = [
    # part, policy, tail, published figure by fleet
    ("48,fixed", "fixed,48", "none", {"A": 133.2, "B": 150.0}),
    ("12,fixed", "guided,12", "duplicate-oldest,from=start", {"A": 102.4, "B": 103.8}),
]


def finishing_seconds(clip: Path, folder: Path, fleet: str, part: str, policy: str, tail: str) -> float:
    command = [sys.executable, "-m", "console", "render", str(clip), "-o", str(folder / "out.mp4"), "-y"]
    command += ["--preset", "ultrafast", "--fleet", fleet, "--overhead", "2", "--part", part]
    command += ["--schedule", policy, "--tail", tail, "--ui", "json"]
    environment = os.environ | {"UNEVEN_STATE_DIR": str(folder / "state")}
    done = subprocess.run(command, check=True, capture_output=True, env=environment)
    summary = msgspec.json.decode(done.stdout.splitlines()[-1])["summary"]
    if summary["machine_was_slower"]:
        print("  this machine was slower than the fleet asked for", file=sys.stderr)
    return float(summary["finishing_seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fleet", choices=FLEETS, default="A")
    chosen = parser.parse_args().fleet
    with tempfile.TemporaryDirectory(prefix="uneven-article-") as scratch:
        folder = Path(scratch)
        clip = folder / "clip.mp4"
        run_in_child_blocking("farm.media.tasks:make_demo_clip", clip, 4800, log=folder / "clip.log")
        print(f"{'part':10} {'policy':10} {'tail':28} {'published':>9} {'live':>8} {'differs':>8}")
        for part, policy, tail, published in CASES:
            live = finishing_seconds(clip, folder, FLEETS[chosen], part, policy, tail)
            figure = published[chosen]
            print(f"{part:10} {policy:10} {tail:28} {figure:9.1f} {live:8.2f} {live / figure - 1:+8.2%}")


if __name__ == "__main__":
    main()
