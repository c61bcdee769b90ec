"""Numbered images in and out, and ranges of a film, through the whole farm."""

from __future__ import annotations

import signal
from pathlib import Path

import av
import pytest

from tests.e2e.command import Command, run
from tests.media.test_sequence import make_images

LOSSLESS = ("-e", "ffv1", "--part", "3", "-w", "2")
SLOW = ("--fleet", "12", "--part", "3", "--schedule", "fixed,3")


def count(path: Path) -> int:
    with av.open(str(path)) as file:
        return sum(1 for _ in file.decode(video=0))


def bytes_of(folder: Path, pattern: str = "*.png") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(pattern)}


def stop_after_a_part(*arguments: str | Path, cwd: Path, hard: bool = False) -> None:
    command = Command(*arguments, cwd=cwd)
    try:
        command.wait_for("part_credited")
        command.send_signal(signal.SIGKILL if hard else signal.SIGINT)
        command.finish()
    finally:
        command.close()
    assert command.process.returncode != 0


def test_rg33_a_gap_is_reported_and_the_count_is_as_chosen(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", [n for n in range(1, 13) if n not in (5, 9)])
    refused = run("render", folder, "-o", "out.mkv", *LOSSLESS, cwd=tmp_path)
    assert refused.process.returncode == 3
    assert "2 numbers are missing: 5, 9" in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    for choice, frames in (("hold", 12), ("skip", 10)):
        output = f"{choice}.mkv"
        done = run("render", folder / "f_####.png", "-o", output, "--on-gap", choice, *LOSSLESS, cwd=tmp_path)
        assert done.process.returncode == 0, done.stderr
        assert count(tmp_path / output) == frames
        assert done.of("notice", level="warning", text=lambda text: "5, 9" in text)


def test_a_changed_sequence_is_not_resumed_and_what_changed_is_said(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(24))
    arguments = ("render", folder, "-o", "out.mkv", "-e", "ffv1", *SLOW)
    stop_after_a_part(*arguments, cwd=tmp_path)
    before = (folder / "f_0020.png").read_bytes()
    (folder / "f_0020.png").write_bytes(before + b"\0")
    refused = run(*arguments, cwd=tmp_path)
    assert refused.process.returncode == 4
    assert "the input has changed (f_0020.png is changed)" in refused.stderr


@pytest.mark.slow
def test_images_out_are_the_same_after_a_kill(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(1, 25))
    for name in ("once", "twice"):
        (tmp_path / name).mkdir()
    once = run("render", folder, "-o", "once/o_%03d.png", "--part", "3", "-w", "2", cwd=tmp_path)
    assert once.process.returncode == 0, once.stderr
    arguments = ("render", folder, "-o", "twice/o_%03d.png")
    stop_after_a_part(*arguments, *SLOW, cwd=tmp_path, hard=True)
    assert not list((tmp_path / "twice").glob("*.png")), "no image has its name before all are verified"
    again = run(*arguments, "--part", "3", "-w", "2", cwd=tmp_path)
    assert again.process.returncode == 0, again.stderr
    assert bytes_of(tmp_path / "once") == bytes_of(tmp_path / "twice")
    assert len(bytes_of(tmp_path / "twice")) == 24
    assert sorted(path.suffix for path in (tmp_path / "twice").iterdir()) == [".png"] * 24
    assert again.summary is not None and once.summary is not None
    assert again.summary["packets_sha256"] == once.summary["packets_sha256"]


@pytest.mark.slow
def test_images_that_are_there_are_kept_or_replaced_as_asked(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(1, 9))
    (tmp_path / "out").mkdir()
    arguments = ("render", folder, "-o", "out/o_%d.jpg", "-w", "2", "--part", "2")
    first = run(*arguments, cwd=tmp_path)
    assert first.process.returncode == 0, first.stderr
    done = bytes_of(tmp_path / "out", "*.jpg")
    assert sorted(done) == [f"o_{n}.jpg" for n in range(1, 9)]
    assert run(*arguments, cwd=tmp_path).process.returncode == 4
    (tmp_path / "out" / "o_4.jpg").unlink()
    (tmp_path / "out" / "o_6.jpg").write_bytes(b"")  # somebody's render that failed
    (tmp_path / "out" / "o_7.jpg").write_bytes(b"mine")
    second = run(*arguments, "--skip-existing", cwd=tmp_path)
    assert second.process.returncode == 0, second.stderr
    assert second.summary is not None and second.summary["credited_frames"] == 2
    assert bytes_of(tmp_path / "out", "*.jpg") == done | {"o_7.jpg": b"mine"}
    third = run(*arguments, "--skip-existing", cwd=tmp_path)
    assert (third.process.returncode, third.stderr) == (0, "uneven: all 8 images are there already\n")
    assert run(*arguments, "-y", cwd=tmp_path).process.returncode == 0
    assert bytes_of(tmp_path / "out", "*.jpg") == done
    good = run("verify", "out/o_%d.jpg", cwd=tmp_path, json=False)
    assert good.process.returncode == 0 and "frames    8" in good.stdout, good.stderr
    (tmp_path / "out" / "o_5.jpg").unlink()
    assert run("verify", "out/o_%d.jpg", cwd=tmp_path, json=False).process.returncode == 6


@pytest.mark.slow
def test_a_range_is_the_same_on_any_fleet_and_after_a_stop(clip: Path, tmp_path: Path) -> None:
    taken = ("--frames", "100:196", "--part", "12", "--preset", "ultrafast")
    one = run("render", clip, "-o", "one.mp4", *taken, "-w", "1", cwd=tmp_path)
    assert one.process.returncode == 0, one.stderr
    stop_after_a_part("render", clip, "-o", "two.mp4", *taken, "--fleet", "12,5", cwd=tmp_path)
    other = run("render", clip, "-o", "two.mp4", *taken[2:], "--frames", "100:200", cwd=tmp_path)
    assert other.process.returncode == 4 and "196" in other.stderr, "another range is another job"
    two = run("resume", "two.mp4", "--fleet", "60,60,20", cwd=tmp_path)
    assert two.process.returncode == 0, two.stderr
    assert one.summary is not None and two.summary is not None
    assert one.summary["packets_sha256"] == two.summary["packets_sha256"]
    assert count(tmp_path / "two.mp4") == 96


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--conform", "8x8"), 2, "--conform is for image sequences"),
        (("--start", "9:99"), 2, "--start 9:99"),
        (("--frames", "480:"), 2, "480 frames"),
    ],
)
def test_what_makes_no_sense_is_refused(
    clip: Path, options: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    refused = run("render", clip, "-o", "out.mp4", *options, cwd=tmp_path)
    assert refused.process.returncode == code and words in refused.stderr
    assert not list(tmp_path.iterdir())
