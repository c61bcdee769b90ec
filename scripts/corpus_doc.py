"""Makes docs/corpus.md: every file and image sequence of the corpus through the farm, on two unlike workers,
without loss into .mkv and to .mp4, compared frame by frame with one pass of the library over the source.

    python -m scripts.corpus_doc                # all, two at a time: some twenty minutes on two cores
    python -m scripts.corpus_doc S04 Seq-exr    # these only; the other rows stay

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
from concurrent.futures import ThreadPoolExecutor, as_completed
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
#: Of images nobody gave a rate, frames a second.
RATE = Fraction(24)
REFUSED_WITHIN_SECONDS = 10
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
    said = [line.replace(f"{CORPUS}/", "") for line in said]
    left = [path.name for path in folder.iterdir() if path.name != "state"]
    credited = {event["part"] for event in events if event.get("event") == "part_credited"}
    return Run(output, done.returncode, seconds, said, left, len(credited))


def part_length(frames: int) -> str:
    """At least four chunks a file, as far as it has frames for them."""
    return str(max(1, min(240, frames // 4)))


def check(row: dict[str, str], folder: Path) -> list[str]:
    source = CORPUS / row["file"]
    if source.is_dir():
        return check_sequence(row, source, folder)
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
    if run.seconds > REFUSED_WITHIN_SECONDS:
        wrong.append(f"took {run.seconds:.0f} s")
    if run.left:
        wrong.append(f"left behind {run.left}")
    return "NO: " + "; ".join(wrong) if wrong else ""


def check_sequence(row: dict[str, str], source: Path, folder: Path) -> list[str]:
    """Images: all frames in numeric order; or refused where they differ, and as asked with --conform."""
    frames = len(list(source.iterdir()))
    part = ("--part", f"{part_length(frames)},fixed")
    small = ("-e", "libx264", "--preset", "ultrafast", "--crf", "35")
    refused = render(source, folder / "mkv" / "out.mkv", "-e", "ffv1", *part)
    if not row["expect"].startswith("refuse"):
        mp4 = render(source, folder / "mp4" / "out.mp4", *small, *part)
        return compare({**row, "pyav_decoded": str(frames)}, source, refused, mp4)
    wrong = [words] if (words := refused_wrongly(refused)) else []
    found: list[judge.Comparison] = []
    for extension in ("mkv", "mp4"):
        output = folder / extension / f"conformed.{extension}"
        run = render(source, output, "--conform", "400x300", *small, *part)
        if run.code != 0:
            return [row["file"], *["-"] * 6, str(run.code), f"NO: .{extension} with --conform", *run.said[:1]]
        found.append(judge.compare_images(source, output, RATE, lossless=False))
        wrong += [found[-1].wrong] if found[-1].wrong else []
        if {shown.size for shown in judge.one_pass(output)} != {(400, 300)}:
            wrong.append(f"conformed, .{extension} has pictures of other sizes")
    mkv, mp4 = found
    cells = [str(mkv.frames_in), str(mkv.frames_out), mkv.times, mp4.times, "- (sizes differ)", "-"]
    codes = f"{refused.code}, with --conform 0"
    verdict = f"NO: {'; '.join(wrong)}" if wrong else "yes"
    return [row["file"], *cells, codes, verdict, refused.said[0] if refused.said else ""]


def compare(row: dict[str, str], source: Path, mkv: Run, mp4: Run) -> list[str]:
    wrong = []
    said = list(dict.fromkeys([*mkv.said, *mp4.said]))
    times = ["-", "-"]
    hashes, frames_in, frames_out = "-", "-", "-"
    if mkv.code == 0:
        found = compared(source, mkv.output, lossless=True)
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
        found = compared(source, mp4.output, lossless=False)
        times[1] = found.times
        wrong += [f"mp4: {found.wrong}"] if found.wrong else []
        wrong += [] if source.is_dir() else offset(source, mp4.output)
    elif not unencodable(mp4):
        wrong.append(f"mp4: exit {mp4.code}")
    streams = "-" if source.is_dir() else kept(source, mkv, mp4)
    codes = f"{mkv.code}" if mkv.code == mp4.code else f"mkv {mkv.code}, mp4 {mp4.code}"
    verdict = "NO: " + "; ".join(wrong) if wrong else "yes"
    return [
        *(row["file"], frames_in, frames_out, *times, hashes, streams),
        *(codes, verdict, "; ".join(said) or "-"),
    ]


def compared(source: Path, output: Path, *, lossless: bool) -> judge.Comparison:
    if source.is_dir():
        return judge.compare_images(source, output, RATE, lossless=lossless)
    return judge.compare(source, output, tick=MILLISECOND if lossless else Fraction(0), lossless=lossless)


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


def row_of(row: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="uneven-corpus-") as scratch:
        folder = Path(scratch)
        (folder / "mkv").mkdir()
        (folder / "mp4").mkdir()
        return check(row, folder)


def main() -> int:
    chosen = tuple(sys.argv[1:])
    with (CORPUS / "manifest.tsv").open(newline="") as file:
        rows = [{**row, "file": row["file"].rstrip("/")} for row in csv.DictReader(file, delimiter="\t")]
    if chosen:
        rows = [row for row in rows if row["file"].startswith(chosen)]
    table = known_rows() if chosen else {}
    rows.sort(key=lambda row: row["file"][:3] not in LONG)
    with ThreadPoolExecutor(2) as pool:
        for done in as_completed([pool.submit(row_of, row) for row in rows]):
            line = done.result()
            table[line[0]] = line
            print(" | ".join(line), flush=True)
            DOCUMENT.write_text(document(sorted(table.values())))
    return not all(line[8] == "yes" for line in table.values())


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
trackers complain of, and 3 sequences of images) through `uneven render` on two unlike workers (one
unthrottled, one of 60 frames a second), cut so that each file has at least min(4, frames) parts: without
loss (FFV1; x264 with qp 0 for the two long ones) into an .mkv, and with x264 into an .mp4. *Frames in* is
what one pass of the library decodes, *out* what the .mkv decodes to; *times* are compared as fractions (.mkv
counts milliseconds), *hashes* picture by picture; *streams* tells how many of the other streams with
something in them arrived. Images are shown at 24 a second; those that differ in size are refused, and
rendered with --conform. {good} of {len(table)} are as the manifest expects.
""",
            *markdown_table(HEAD, cells),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
