"""What users of other tools reported (docs/reliability.md, Public bug reports), done to a whole run of ours.
Reports that other tests reproduce are named there."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.command import LIMIT_SECONDS, Command, gone, run
from tests.e2e.test_disk_full import disk
from tests.e2e.test_run import started

__all__ = ["disk"]

#: How long the decoders are kept busy; ten minutes by hand.
SOAK_SECONDS = float(os.environ.get("UNEVEN_SOAK_SECONDS", "12"))
#: Of a worker with one encoder thread: its own few, and the decoder's.
THREADS_MAX = 12


def test_the_command_ends_when_its_work_does(clip: Path, tmp_path: Path) -> None:
    """RG21: threaded decoders and encoders in children, and nobody hangs at exit."""
    threaded = ("--threads", "4", "--preset", "ultrafast", "--part", "48", "--workers", "3")
    with started("render", clip, "-o", "t.mp4", *threaded, cwd=tmp_path) as command:
        command.wait_for("worker_joined")
        children = command.children()
        command.wait_for("run_finished")
        assert command.process.wait(20) == 0, "it hangs"
        assert not gone(children)


def busy_threads(command: Command) -> Iterator[int]:
    """Threads of each worker, looked at until the command has ended."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while command.process.poll() is None and time.monotonic() < deadline:
        for event in command.of("worker_joined"):
            try:
                yield psutil.Process(event["pid"]).num_threads()
            except psutil.Error:
                continue
        time.sleep(0.02)


@pytest.mark.slow
def test_many_decoders_at_once_stay_bounded_and_none_hangs(clip: Path, tmp_path: Path) -> None:
    """RG22: many decoders, opened anew for every part, run after run. Threads are bounded for each worker;
    one that hung would be found by the stall timeout, and none does."""
    until, runs, most = time.monotonic() + SOAK_SECONDS, 0, 0
    eight = ("--workers", "8", "--preset", "ultrafast", "--part", "3,fixed", "--stall-timeout", "30")
    while runs == 0 or time.monotonic() < until:
        with started("render", clip, "-o", "s.mp4", "-y", *eight, cwd=tmp_path) as command:
            most = max(most, *busy_threads(command))
            assert command.finish() == 0, command.stderr
            assert not command.of("claim_ended", how="stalled") and not command.of("part_failed")
            assert not command.of("worker_left", lost=True)
        runs += 1
    assert most <= THREADS_MAX, f"{most} threads in a worker"


def used_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).used


@pytest.mark.slow
def test_inputs_that_are_poison_leave_nothing_however_often_they_come(
    corpus: Path, disk: Path, tmp_path: Path
) -> None:
    """RG26: truncated, corrupt, unopenable and empty files in a queue, on a small disk, again and again. What
    can't be read is refused and leaves nothing; what can be read in part ends, and leaves no more than it did
    the first time."""
    names = ["S38-truncated-mdat.mp4", "S39-corrupt-vp9.webm", "S40-unopenable.mp4", "S43-zero-length.webm"]
    before, after = used_bytes(disk), []
    for _ in range(2):
        for name in names:
            poisoned = run(
                *("render", corpus / name, "-o", disk / f"{name}.mp4", "-y", "--workers", "1"),
                *("--preset", "ultrafast"),
                cwd=tmp_path,
            )
            readable = name.startswith("S38")
            assert poisoned.process.returncode in ((0, 3, 5, 6) if readable else (3,)), poisoned.stderr
            assert "Traceback" not in poisoned.stderr
            assert readable or name in poisoned.stderr
        after.append(used_bytes(disk))
    assert max(after) == after[0], "it grows"
    assert after[0] - before < 4 << 20
    assert not list(disk.glob("*.partial")) and not list(disk.glob("S39*")) and not list(disk.glob("S4*"))
