"""What others do to a run in its middle: frozen, killed and cut off processes, files taken away."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.e2e.command import Command, gone
from tests.e2e.test_run import started

QUICK = ("--preset", "ultrafast", "--part", "12")
SLOW = ("--fleet", "24,24,4", "--lease", "1.5", "--heartbeat", "0.3", *QUICK)


def helpers(command: Command) -> list[psutil.Process]:
    """What the fork server started: workers, or the child that measures, joins or verifies."""
    return [child for child in command.children() if child.ppid() != command.process.pid]


def fork_server(command: Command) -> psutil.Process:
    return helpers(command)[0].parent()


def told(command: Command) -> str:
    """The one sentence that a run ended with, without the hint how to go on."""
    assert "Traceback" not in command.stderr, command.stderr
    return next(line for line in command.stderr.splitlines() if line.startswith("uneven: "))


def test_a_drain_ends_although_a_worker_is_frozen(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "f.mp4", *SLOW, cwd=tmp_path) as command:
        command.wait_for("part_credited", worker="w1")
        children = command.children()
        os.kill(command.pid_of("w1"), signal.SIGSTOP)
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
        assert command.of("claim_ended", worker="w1", how="lapsed")
        assert not gone(children)


def test_a_frozen_worker_does_not_outlive_a_killed_console(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "k.mp4", *SLOW, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        children = command.children()
        os.kill(command.pid_of("w1"), signal.SIGSTOP)
        command.process.kill()
        command.finish()
        assert not gone(children)


def test_a_helper_that_is_killed_is_tried_once_more(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "h.mp4", "--fleet", "240,240", *QUICK, cwd=tmp_path) as command:
        command.wait_for("phase_started", phase="measure")
        kill_first_helper(command)
        assert command.finish() == 0, command.stderr
        assert command.of("notice", text=lambda text: "tried once more" in text and "SIGKILL" in text)


def kill_first_helper(command: Command) -> None:
    while not (found := helpers(command)):
        assert command.process.poll() is None
    found[0].kill()


def test_a_part_that_the_stitch_finds_damaged_is_told_of_in_words(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "d.mp4", "--fleet", "240,120", *QUICK, cwd=tmp_path) as command:
        file = command.wait_for("part_credited", part=0)["file"]
        part = tmp_path / "d.mp4.uneven" / "store" / file
        part.write_bytes(part.read_bytes()[:-40])
        voided = command.wait_for("part_voided", part=0)
        assert voided["reason"].startswith(file)
        assert command.of("notice", text=lambda text: text.startswith(f"part 0 is rendered again: {file} is"))
        assert command.finish() == 0, command.stderr
        assert not command.of("message_refused"), "a worker spoke after its good-bye"


def test_a_replaced_input_ends_the_run(clip: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.mp4"
    shutil.copy(clip, source)
    with started("render", source, "-o", "r.mp4", *SLOW, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        source.write_bytes(b"something else" * 1000)
        assert command.finish() == 3
        assert "in.mp4 was changed while it was rendered" in told(command)
        assert not command.of("part_set_aside")


def test_an_input_that_was_only_touched_is_the_same(clip: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.mp4"
    shutil.copy(clip, source)
    with started("render", source, "-o", "t.mp4", "--fleet", "240,120", *QUICK, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        source.touch()
        assert command.finish() == 0, command.stderr


@pytest.mark.parametrize(
    ("remove", "name"),
    [
        (shutil.rmtree, "journal.db"),
        (lambda folder: [file.unlink() for file in folder.glob("journal.db*")], "journal.db"),
        (lambda folder: shutil.rmtree(folder / "store"), "store"),
        (lambda folder: (folder / "index.msgpack").unlink(), "index.msgpack"),
    ],
    ids=["the folder", "the journal", "the store", "the index"],
)
def test_a_run_folder_that_is_taken_away_ends_the_run(
    clip: Path, tmp_path: Path, remove: Callable[[Path], object], name: str
) -> None:
    with started("render", clip, "-o", "g.mp4", *SLOW, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        children = command.children()
        remove(tmp_path / "g.mp4.uneven")
        assert command.finish() == 4
        assert f"g.mp4.uneven/{name} was removed while the run was on" in told(command)
        assert not gone(children)


def test_a_frozen_fork_server_can_not_keep_a_run_from_stopping(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "s.mp4", *SLOW, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        children = command.children()
        fork_server(command).suspend()
        command.send_signal(signal.SIGINT)
        command.wait_for("drain_started")
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
        assert not gone(children)


@pytest.mark.slow
def test_a_drain_ends_with_a_frozen_fork_server(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "s.mp4", *SLOW, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        children = command.children()
        fork_server(command).suspend()
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
        assert not gone(children)


@pytest.mark.slow
def test_joining_that_waits_for_a_frozen_fork_server_can_be_stopped(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "j.mp4", "--fleet", "240,120", *QUICK, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        server = fork_server(command)
        children = command.children()
        command.wait_for("work_finished")
        server.suspend()
        command.wait_for("phase_started", phase="stitch")
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
        assert not gone(children)
