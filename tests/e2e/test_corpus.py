"""Real files through the whole farm: the frames and times of one pass over the source, audio in step.

The judge (tests.e2e.judge) uses nothing of ours; what is expected of each file is in the corpus' manifest.
docs/corpus.md has the table of all of them, made by scripts/corpus_doc.py.
"""

from __future__ import annotations

import csv
import os
from fractions import Fraction
from pathlib import Path

import pytest

from tests.e2e import judge
from tests.e2e.command import run
from tests.media.clips import CORPUS

MANIFEST = CORPUS / "manifest.tsv"
#: Without loss they take minutes (scripts/corpus_doc.py does it).
LONG = {"S10", "S11"}
#: Small files, and each a trouble of its own: open GOP and edit list; a transport stream cut in the middle.
EVERYDAY = ["S04", "S22"]
#: Run in CI: a codec, container or trouble each; UNEVEN_CORPUS_ALL runs all the others, too.
SPREAD = ["S05", "S07", "S13", "S14", "S23", "S26", "S29", "S30", "S35", "S42", "S47", "S48"]
WITH_SOUND = ["S01", "S03", "S06", "S16", "S18", "S19", "S20", "S22", "S32", "S37"]
TWO = ("--fleet", "max,60")
UNEVEN = ("--fleet", "30,30,12,2")


def rows() -> dict[str, dict[str, str]]:
    if not MANIFEST.is_file():
        return {}
    with MANIFEST.open(newline="") as file:
        found = csv.DictReader(file, delimiter="\t")
        return {row["file"][:3]: row for row in found if not row["file"].startswith("Seq")}


USABLE = [name for name, row in rows().items() if not row["expect"].startswith("refuse")]


def part_length(frames: int) -> str:
    """At least four parts a file, as far as it has frames for them."""
    return str(max(1, min(240, frames // 4)))


def expected_frames(name: str) -> int:
    return int(rows()[name]["pyav_decoded"])


def assert_lossless(corpus: Path, name: str, folder: Path) -> None:
    source = next(corpus.glob(f"{name}-*"))
    frames = expected_frames(name)
    lossless = ("-e", "ffv1", "--part", f"{part_length(frames)},fixed", *TWO)
    command = run("render", source, "-o", "out.mkv", *lossless, cwd=folder)
    assert command.process.returncode == 0, command.stderr
    assert len(command.of("part_credited")) >= min(4, frames)
    found = judge.compare(source, folder / "out.mkv", tick=Fraction(1, 1000))
    assert (found.frames_in, found.frames_out) == (frames, frames)
    assert found.right, found
    assert found.times.startswith("equal"), found
    assert found.hashes.startswith("equal"), found


@pytest.mark.parametrize("name", EVERYDAY)
def test_small_files_without_loss(corpus: Path, name: str, tmp_path: Path) -> None:
    assert_lossless(corpus, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPREAD)
def test_files_of_many_kinds_without_loss(corpus: Path, name: str, tmp_path: Path) -> None:
    assert_lossless(corpus, name, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif("UNEVEN_CORPUS_ALL" not in os.environ, reason="minutes: set UNEVEN_CORPUS_ALL")
@pytest.mark.parametrize("name", [name for name in USABLE if name not in {*LONG, *EVERYDAY, *SPREAD}])
def test_all_files_without_loss(corpus: Path, name: str, tmp_path: Path) -> None:
    assert_lossless(corpus, name, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif("UNEVEN_CORPUS_LONG" not in os.environ, reason="minutes: set UNEVEN_CORPUS_LONG")
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_files(corpus: Path, name: str, tmp_path: Path) -> None:
    assert_times_and_sound(corpus, name, tmp_path, TWO)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_SOUND)
def test_times_are_exact_in_mp4_and_sound_is_in_step(corpus: Path, name: str, tmp_path: Path) -> None:
    assert_times_and_sound(corpus, name, tmp_path, UNEVEN)


def assert_times_and_sound(corpus: Path, name: str, folder: Path, fleet: tuple[str, ...]) -> None:
    source = next(corpus.glob(f"{name}-*"))
    frames = expected_frames(name)
    quick = ("--preset", "ultrafast", "--crf", "35", "--part", part_length(frames))
    command = run("render", source, "-o", "out.mp4", *quick, *fleet, cwd=folder)
    assert command.process.returncode == 0, command.stderr
    found = judge.compare(source, folder / "out.mp4", lossless=False)
    assert found.right and found.frames_out == frames, found
    seen, heard = judge.heard_and_seen(source)
    new_seen, new_heard = judge.heard_and_seen(folder / "out.mp4")
    assert len(new_heard) == len(heard)
    for before, after in zip(heard, new_heard, strict=True):
        assert None not in (seen, new_seen, before, after)
        assert abs((new_seen - after) - (seen - before)) < Fraction(1, 120)  # type: ignore[operator]


def test_the_judge_sees_what_is_wrong(corpus: Path) -> None:
    """A frame dropped, shown at another time, or another picture in its place."""
    before = judge.one_pass(next(corpus.glob("S14-*")))
    late = [*before[:-1], judge.Shown((before[-1].time or Fraction(0)) + Fraction(1, 90_000), *_rest(before))]
    assert judge.compare_times(before, before) == "equal"
    assert judge.compare_times(before, before[1:]).startswith("NOT: 75 frames in, 74 out")
    assert judge.compare_times(before, late).startswith("NOT: frame 74 is off")
    assert judge.compare_hashes(before, before, Path()) == "equal"
    swapped = [before[1], before[0], *before[2:]]
    assert judge.compare_hashes(before, swapped, Path()).startswith("NOT: 2 of 75 frames, the first 0")


def _rest(shown: list[judge.Shown]) -> tuple[tuple[int, int], str, int]:
    return shown[-1].size, shown[-1].pix_fmt, shown[-1].crc
