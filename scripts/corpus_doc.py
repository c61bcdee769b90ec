"""Makes docs/corpus.md: every file of the corpus through the farm, on two unlike workers, without loss into
.mkv and to .mp4, compared frame by frame with one pass of the library over the source.

    python -m scripts.corpus_doc                # all: some twenty minutes on two cores
    python -m scripts.corpus_doc S04 S22        # these only; the other rows stay

The document is written after every file. Exits with 1 if a file is not as the manifest expects.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from console.tables import markdown_table
from tests.e2e import judge

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "corpus.md"
CORPUS = Path(os.environ.get("UNEVEN_CORPUS", ROOT.parent / "shared" / "corpus"))
#: Their pictures without loss would fill a disk as FFV1.
LONG = ("S10", "S11")
MILLISECOND = Fraction(1, 1000)
FLEET = ("--fleet", "max,60")
HEAD = [
    *("file", "frames in", "frames out", "times, mkv", "times, mp4", "hashes", "streams in mp4 (mkv)"),
    *("exit", "as expected", "what was said"),
]


@dataclass
class Run:
    """One rendering by the command."""

    output: Path
    code: int
    seconds: float
    said: list[str]  #: lines on standard error, warnings of the run
    left: list[str] = field(default_factory=list)  #: what lies there after a refusal
    chunks: int = 0


def render(source: Path, output: Path, *options: str) -> Run:
    folder = output.parent
    command = [sys.executable, "-m", "console", "render", str(source), "-o", str(output), *options]
    environment = os.environ | {"UNEVEN_STATE_DIR": str(folder / "state")}
    begun = time.monotonic()
    done = subprocess.run(
        [*command, *FLEET, "--ui", "json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=3600,
    )
    seconds = time.monotonic() - begun
    events = [json.loads(line).get("event", {}) for line in done.stdout.splitlines() if line.startswith("{")]
    said = [line.removeprefix("uneven: ") for line in done.stderr.splitlines()]
    said += [event["text"] for event in events if event.get("level") == "warning"]
    said = [line for line in said if "fps asked" not in line]  # what is said of this machine
    left = [path.name for path in folder.iterdir() if path.name != "state"]
    credited = {event["part"] for event in events if event.get("event") == "part_credited"}
    return Run(output, done.returncode, seconds, said, left, len(credited))


def part_length(frames: int) -> str:
    """At least four chunks a file, as far as it has frames for them."""
    return str(max(1, min(240, frames // 4)))


def check(row: dict[str, str], folder: Path) -> list[str]:
    source = CORPUS / row["file"]
    name = row["file"][:3]
    part = ("--part", f"{part_length(int(row['pyav_decoded'] or 0))},fixed")
    small = ("-e", "libx264", "--preset", "ultrafast")
    lossless = (*small, "--option", "qp=0") if name in LONG else ("-e", "ffv1")
    mkv = render(source, folder / "mkv" / "out.mkv", *lossless, *part)
    if row["expect"].startswith("refuse"):
        wrong = refused_wrongly(mkv)
        said = mkv.said[0] if mkv.said else ""
        return [row["file"], "-", "-", "-", "-", "-", "-", str(mkv.code), wrong or "yes", said]
    mp4 = render(source, folder / "mp4" / "out.mp4", *small, "--crf", "35", *part)
    return compare(row, source, mkv, mp4)


def refused_wrongly(run: Run) -> str:
    wrong = []
    if run.code == 0 or run.code == 70:
        wrong.append(f"exit code {run.code}")
    if len(run.said) != 1:
        wrong.append(f"{len(run.said)} lines were said")
    if run.seconds > 10:
        wrong.append(f"took {run.seconds:.0f} s")
    if run.left:
        wrong.append(f"left behind {run.left}")
    return "NO: " + "; ".join(wrong) if wrong else ""


def compare(row: dict[str, str], source: Path, mkv: Run, mp4: Run) -> list[str]:
    wrong = []
    said = list(dict.fromkeys([*mkv.said, *mp4.said]))
    times = ["-", "-"]
    hashes, frames_in, frames_out = "-", "-", "-"
    if mkv.code == 0:
        found = judge.compare(source, mkv.output, tick=MILLISECOND)
        frames_in, frames_out, times[0], hashes = (
            str(found.frames_in),
            str(found.frames_out),
            found.times,
            found.hashes,
        )
        wrong += [f"mkv: {found.wrong}"] if found.wrong else []
        if frames_out != row["pyav_decoded"]:
            wrong.append(f"the manifest says {row['pyav_decoded']} frames")
        if mkv.chunks < min(4, found.frames_in):
            wrong.append(f"{mkv.chunks} parts only")
    else:
        wrong.append(f"mkv: exit {mkv.code}")
    if mp4.code == 0:
        found = judge.compare(source, mp4.output, lossless=False)
        times[1] = found.times
        wrong += [f"mp4: {found.wrong}"] if found.wrong else []
        wrong += offset(source, mp4.output)
    elif not unencodable(mp4):
        wrong.append(f"mp4: exit {mp4.code}")
    streams = kept(source, mkv, mp4)
    codes = f"{mkv.code}" if mkv.code == mp4.code else f"mkv {mkv.code}, mp4 {mp4.code}"
    verdict = "NO: " + "; ".join(wrong) if wrong else "yes"
    return [
        *(row["file"], frames_in, frames_out, *times, hashes, streams),
        *(codes, verdict, "; ".join(said) or "-"),
    ]


def unencodable(run: Run) -> bool:
    """x264 has no 4:2:0 of odd sizes, and says so before anything is done."""
    return run.code == 2 and len(run.said) == 1 and not run.left


def offset(source: Path, output: Path) -> list[str]:
    """What is wrong with the distance of sound and picture."""
    seen, heard = judge.heard_and_seen(source)
    new_seen, new_heard = judge.heard_and_seen(output)
    if seen is None or new_seen is None:
        return []
    found = []
    for number, (old, new) in enumerate(zip(heard, new_heard, strict=False)):
        if old is not None and new is not None and abs((new - new_seen) - (old - seen)) > Fraction(1, 120):
            moved = float((new - new_seen) - (old - seen))
            found.append(f"sound {number} moved by {moved:+.3f} s against the picture")
    return found


def kept(source: Path, mkv: Run, mp4: Run) -> str:
    before = judge.stream_kinds(source)
    after = [judge.stream_kinds(run.output) if run.code == 0 else Counter[str]() for run in (mp4, mkv)]
    words = []
    for kind, count in sorted(before.items()):
        words.append(f"{kind} {after[0][kind]}/{count} ({after[1][kind]}/{count})")
    return ", ".join(words) or "-"


def main() -> int:
    chosen = sys.argv[1:]
    with (CORPUS / "manifest.tsv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if not row["file"].startswith("Seq")]
    if chosen:
        rows = [row for row in rows if row["file"][:3] in chosen]
    table = known_rows() if chosen else {}
    good = True
    for row in sorted(rows, key=lambda row: row["file"][:3] in LONG):
        with tempfile.TemporaryDirectory(prefix="uneven-corpus-") as scratch:
            folder = Path(scratch)
            (folder / "mkv").mkdir()
            (folder / "mp4").mkdir()
            line = table[row["file"]] = check(row, folder)
        good = good and line[8] == "yes"
        print(" | ".join(line), flush=True)
        DOCUMENT.write_text(document(sorted(table.values())))
    return not good


def known_rows() -> dict[str, list[str]]:
    """The rows that the document has by now."""
    if not DOCUMENT.is_file():
        return {}
    lines = [line.strip("| ").split(" | ") for line in DOCUMENT.read_text().splitlines() if "| S" in line]
    return {line[0]: line for line in lines if len(line) == len(HEAD)}


def document(table: list[list[str]]) -> str:
    good = sum(line[8] == "yes" for line in table)
    cells = [[cell.replace("|", "\\|") for cell in line] for line in table]
    return "\n".join(
        [
            "# Real files through the farm",
            f"""
Made by `python -m scripts.corpus_doc`, which runs every file of the corpus (49 real files that peers'
trackers complain of) through `uneven render` on two unlike workers (one unthrottled, one of 60 frames a
second), cut so that each file has at least min(4, frames) parts: without loss (FFV1; x264 with qp 0 for the
two long ones) into an .mkv, and with x264 into an .mp4. *Frames in* is what one pass of the library decodes,
*out* what the .mkv decodes to; *times* are compared as fractions (.mkv counts milliseconds), *hashes* picture
by picture; *streams* tells how many of the other streams with something in them arrived. {good} of
{len(table)} are as the manifest expects.
""",
            *markdown_table(HEAD, cells),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
