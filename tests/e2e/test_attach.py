"""Detach and attach, as a user does it: real runs, real processes, sockets and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from farm.scratch import Scratch
from tests.attach.telling import until
from tests.e2e.command import Command, run

SLOW = ("--fleet", "4,4", "--part", "12,fixed", "--lease", "6", "--heartbeat", "0.3")


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for sockets that is this test's alone, and whose name is short."""
    scratch = Scratch()
    monkeypatch.setenv("UNEVEN_RUNTIME_DIR", str(scratch.path / "run"))
    yield scratch.path / "run"
    scratch.remove()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[int]]:
    """Pids of detached runs; what is left of them in the end is killed."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            for child in (*process.children(recursive=True), process):
                with contextlib.suppress(psutil.Error):
                    child.kill()


def detach(started: list[int], cwd: Path, *arguments: str | Path) -> str:
    """A detached run's id. That this returns shows that it keeps no pipe of ours open."""
    done = run(*arguments, "--detach", cwd=cwd, json=False)
    assert done.process.returncode == 0, done.stderr
    run_id = done.stdout.split(maxsplit=1)[0]
    assert f"uneven attach {run_id}" in done.stdout and f"uneven stop {run_id}" in done.stdout
    started.append(int(done.stdout.partition("(process ")[2].partition(")")[0]))
    return run_id


def status(cwd: Path, *arguments: str) -> dict[str, object]:
    done = run("status", *arguments, "--json", cwd=cwd, json=False)
    assert done.process.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_detached_run_is_seen_from_two_terminals_stopped_resumed_and_told_afterwards(
    clip: Path, tmp_path: Path, started: list[int], sockets: Path
) -> None:
    run_id = detach(started, tmp_path, "render", clip, "-o", "o.mp4", *SLOW)
    process = psutil.Process(started[0])
    assert os.getsid(started[0]) == started[0] and process.terminal() is None
    views = [Command("attach", run_id, cwd=tmp_path), Command("attach", "o.mp4", "--readonly", cwd=tmp_path)]
    try:
        for view in views:
            view.wait_for("part_credited")
        stands = status(tmp_path, "last")
        assert (stands["run_id"], stands["state"], stands["live"]) == (run_id, "work", True)
        assert stands["pid"] == started[0] and stands["exit_code"] is None
        stopped = run("stop", cwd=tmp_path, json=False)
        assert stopped.process.returncode == 0 and f"{run_id} drains" in stopped.stdout
        assert [view.finish() for view in views] == [130, 130]
    finally:
        for view in views:
            view.close()
    numbered = [[e for e in view.events if e["event"] != "gauges"] for view in views]
    known = ("run_opened", "claim_granted", "part_credited", "drain_started", "run_finished")
    logs = [[e for e in events if e["event"] in known] for events in numbered]
    assert logs[0] == logs[1]
    assert views[0].summary == views[1].summary
    assert "Go on with: uneven resume" in views[0].stderr
    psutil.wait_procs([process], timeout=30)

    # What is over is told, and the next start is the same run.
    assert not list(sockets.glob("*.sock"))
    stands = status(tmp_path, run_id)
    assert (stands["state"], stands["exit_code"], stands["live"]) == ("stopped", 130, False)
    again = run("attach", run_id, cwd=tmp_path, json=False)
    assert again.process.returncode == 0 and "ended with exit code 130" in again.stderr
    assert run("stop", cwd=tmp_path, json=False).process.returncode == 2
    assert detach(started, tmp_path, "resume", "o.mp4", "--fleet", "max,max") == run_id
    code = run("attach", run_id, cwd=tmp_path)
    assert code.process.returncode == 0, code.stderr
    until(lambda: not psutil.pid_exists(started[1]) or not psutil.Process(started[1]).is_running())
    assert status(tmp_path, run_id)["state"] == "done"
    listed = run("runs", "--json", cwd=tmp_path, json=False)
    assert [(r["run_id"], r["state"]) for r in msgspec.json.decode(listed.stdout)] == [(run_id, "done")]
    assert run("verify", "o.mp4", cwd=tmp_path, json=False).process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["render", "nothing.mp4", "-o", "o.mp4"], 3, "uneven: there is no file /"),
        (["resume", "nothing.mp4"], 2, "uneven: there is no run 'nothing.mp4'"),
        (["render", "a.mp4", "b.mp4", "-o", "."], 2, "uneven: --detach is for one input"),
        pytest.param(
            ["render", "nothing.mp4", "-o", "o.avi"],
            2,
            "uneven: o.avi: the container follows",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ["render", "nothing.mp4", "-o", "o.mp4", "--ui", "json"],
            2,
            "uneven: --ui json and --detach exclude",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_wrong_is_told_before_the_terminal_is_left(
    arguments: list[str], code: int, says: str, tmp_path: Path
) -> None:
    done = run(*arguments, "--detach", cwd=tmp_path, json=False)
    assert done.process.returncode == code
    assert done.stderr.startswith(says) and done.stderr.count("\n") == 1
    assert done.stdout == "" and not list(tmp_path.glob("o.*"))


@pytest.mark.slow
def test_a_detached_run_drains_on_sigterm_and_what_it_said_is_in_its_log(
    clip: Path, tmp_path: Path, started: list[int]
) -> None:
    run_id = detach(started, tmp_path, "render", clip, "-o", "o.mp4", *SLOW)
    until(lambda: status(tmp_path, run_id)["credited_frames"] != 0, "a part")
    os.kill(started[0], signal.SIGTERM)
    psutil.wait_procs([psutil.Process(started[0])], timeout=60)
    stands = status(tmp_path, run_id)
    assert (stands["exit_code"], stands["outcome"]) == (130, "interrupted")
    log = (tmp_path / "o.mp4.uneven" / "logs" / "run.log").read_text()
    assert "Draining" in log and "Go on with: uneven resume" in log


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_a_view_ends_the_view_only(
    number: signal.Signals, clip: Path, tmp_path: Path, started: list[int]
) -> None:
    run_id = detach(started, tmp_path, "render", clip, "-o", "o.mp4", *SLOW)
    view = Command("attach", cwd=tmp_path)
    try:
        view.wait_for("claim_granted")
        view.send_signal(number)
        assert view.finish() == 0
    finally:
        view.close()
    assert f"The run goes on. Look again: uneven attach {run_id}" in view.stderr
    assert status(tmp_path, run_id)["live"] is True


def test_a_run_that_is_killed_while_it_is_looked_at_is_said_to_be_gone(
    clip: Path, tmp_path: Path, started: list[int], sockets: Path
) -> None:
    run_id = detach(started, tmp_path, "render", clip, "-o", "o.mp4", *SLOW)
    view = Command("attach", cwd=tmp_path)
    try:
        view.wait_for("part_credited")
        os.kill(started[0], signal.SIGKILL)
        assert view.finish() == 5
    finally:
        view.close()
    assert view.stderr == (
        f"uneven: the run {run_id} is gone: its process was killed; what was credited is kept\n"
        f"Go on with: uneven resume {tmp_path / 'o.mp4.uneven'}\n"
    )
    assert not list(sockets.glob("*.sock"))
    stands = status(tmp_path, run_id)
    assert (stands["state"], stands["exit_code"]) == ("cut off", None)


@pytest.mark.slow
def test_with_several_live_runs_one_has_to_say_which(clip: Path, tmp_path: Path, started: list[int]) -> None:
    ids = [detach(started, tmp_path, "render", clip, "-o", f"{n}.mp4", *SLOW) for n in "ab"]
    for command in ("attach", "stop"):
        done = run(command, cwd=tmp_path, json=False)
        assert done.process.returncode == 2
        assert done.stderr.startswith("uneven: several runs are live: ") and "a.mp4" in done.stderr
    lines = run("status", cwd=tmp_path, json=False).stdout.splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(ids)
    assert run("stop", "b.mp4", "--now", cwd=tmp_path, json=False).process.returncode == 0
    psutil.wait_procs([psutil.Process(started[1])], timeout=60)
    left = msgspec.json.decode(run("status", "--json", cwd=tmp_path, json=False).stdout)
    assert [stands["run_id"] for stands in left] == ids[:1]


@pytest.mark.slow
def test_a_run_in_the_foreground_is_attached_to_as_well(clip: Path, tmp_path: Path) -> None:
    command = Command("render", clip, "-o", "o.mp4", "--fleet", "60,60", "--part", "12,fixed", cwd=tmp_path)
    try:
        command.wait_for("claim_granted")
        view = run("attach", "o.mp4", cwd=tmp_path)
        assert command.finish() == 0
    finally:
        command.close()
    assert view.process.returncode == 0
    credited = [sorted(e["part"] for e in c.of("part_credited")) for c in (command, view)]
    assert credited[0] == credited[1] == list(range(40))
    assert view.summary == command.summary


@pytest.mark.slow
def test_ctrl_c_while_a_detached_run_begins_ends_it_without_an_output(clip: Path, tmp_path: Path) -> None:
    # On a busy machine the work may begin all the same; slow enough, it can't be done before it drains.
    slow = ("--fleet", "2", "--part", "4")
    process = subprocess.Popen(
        [sys.executable, "-m", "console", "render", str(clip), "-o", "o.mp4", "--detach", *slow],
        cwd=tmp_path,
        env=os.environ | {"UNEVEN_STATE_DIR": str(tmp_path / "state")},
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: bool(psutil.Process(process.pid).children()), "the run's process")
    child = psutil.Process(process.pid).children()[0]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "uneven: interrupted\n"
    assert not psutil.wait_procs([child], timeout=30)[1]
    assert not (tmp_path / "o.mp4").exists()
