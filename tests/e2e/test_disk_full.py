"""A disk that fills up at any moment: one sentence, code 4, nothing lost, and on it goes once there is room.

Needs a file system of its own, so these tests run as root only.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import Command, run

SIZE = "72m"
QUICK = ("--preset", "ultrafast", "--part", "12")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no small file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, leave_bytes: int) -> Path:
    ballast = folder / "ballast"
    file = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(file, bytes(1 << 16))
    except OSError:
        os.ftruncate(file, os.fstat(file).st_size - leave_bytes)
    finally:
        os.close(file)
    return ballast


def assert_full_and_resumable(
    clip: Path, tmp_path: Path, disk: Path, event: str, leave_bytes: int, said: str
) -> None:
    output = disk / "out.mp4"
    output.write_bytes(b"what was there before")
    command = Command("render", clip, "-o", output, "-y", *QUICK, "--fleet", "90,90", cwd=tmp_path)
    try:
        command.wait_for(event)
        ballast = fill(disk, leave_bytes)
        assert command.finish() == 4, command.stderr
    finally:
        command.close()
    sentence = next(line for line in command.stderr.splitlines() if line.startswith("uneven: "))
    assert said in sentence and str(disk) in sentence and "Traceback" not in command.stderr
    assert output.read_bytes() == b"what was there before"
    assert {path.name for path in disk.iterdir()} == {"out.mp4", "out.mp4.uneven", "ballast"}
    assert not command.of("part_set_aside") and not command.of("part_failed"), "no part is to blame"
    finished = {credit["part"] for credit in command.of("part_credited")}
    ballast.unlink()

    again = run("resume", output, "-y", "--workers", "2", cwd=tmp_path)
    assert again.process.returncode == 0, again.stderr
    start = again.events.index([e for e in again.events if e["event"] == "relay_started"][-1])
    rendered = {e["part"] for e in again.events[start:] if e["event"] in ("part_credited", "part_voided")}
    assert not rendered & finished
    assert {path.name for path in disk.iterdir()} == {"out.mp4"}


def test_while_rendering(clip: Path, tmp_path: Path, disk: Path) -> None:
    """RG31: the output that was there before is untouched by a job that fails."""
    assert_full_and_resumable(clip, tmp_path, disk, "part_credited", 0, "is full")


@pytest.mark.slow
@pytest.mark.parametrize("leave_bytes", [24_000, 36_000, 60_000], ids=str)
def test_while_delivering_or_journalling(clip: Path, tmp_path: Path, disk: Path, leave_bytes: int) -> None:
    assert_full_and_resumable(clip, tmp_path, disk, "part_credited", leave_bytes, "is full")


@pytest.mark.slow
def test_while_joining(clip: Path, tmp_path: Path, disk: Path) -> None:
    """RG27: no partial copies, the parts are kept, and it says what is full."""
    assert_full_and_resumable(clip, tmp_path, disk, "work_finished", 20_000, "the disk is full")


def test_at_the_start(clip: Path, tmp_path: Path, disk: Path) -> None:
    fill(disk, 1 << 20)
    command = run("render", clip, "-o", disk / "out.mp4", cwd=tmp_path)
    assert command.process.returncode == 4
    assert "make room, or put the run folder on another disk with --temp" in command.stderr
    assert {path.name for path in disk.iterdir()} == {"ballast"}


@pytest.mark.slow
def test_the_run_folder_can_be_on_another_disk(clip: Path, tmp_path: Path, disk: Path) -> None:
    """Joining is across file systems then, and the output still appears whole, by rename."""
    command = run("render", clip, "-o", "out.mp4", *QUICK, "--temp", disk, cwd=tmp_path)
    assert command.process.returncode == 0, command.stderr
    assert (tmp_path / "out.mp4").stat().st_dev != disk.stat().st_dev
    assert list(disk.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"out.mp4", "disk", "state"}
