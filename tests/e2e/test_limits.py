"""Limits, signals and reports of whole runs: memory caps, halts, time to drain, and everything that stops."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from tests.e2e.command import Command, gone, run
from tests.e2e.test_run import started

QUICK = ("--preset", "ultrafast", "--part", "12")
FLEET = ("--fleet", "120,80")
SLOWLY = ("--fleet", "60,40")
LAPSES = ("lapsed", "stalled", "timed out")


def sleep_stopped(seconds: float) -> None:
    """The one thing that only time can show: that time in which processes are stopped counts for nothing."""
    time.sleep(seconds)


def assert_nothing_lapsed(command: Command) -> None:
    assert command.finish() == 0, command.stderr
    ends = [event["how"] for event in command.of("claim_ended")]
    assert ends and not set(ends) & set(LAPSES), ends
    assert not command.of("claim_refused") and not command.of("worker_left", lost=True)


# --- time that does not count ----------------------------------------------------------------------------


@pytest.mark.slow
def test_no_claim_lapses_while_the_whole_machine_sleeps_for_three_leases(clip: Path, tmp_path: Path) -> None:
    """RG42, RG43: all processes stopped, as in a laptop that was closed."""
    short = ("--lease", "1", "--heartbeat", "0.3")
    with started("render", clip, "-o", "z.mp4", *QUICK, *SLOWLY, *short, cwd=tmp_path) as command:
        command.wait_for("part_credited", worker="w2")
        os.killpg(command.process.pid, signal.SIGSTOP)
        sleep_stopped(3.2)
        os.killpg(command.process.pid, signal.SIGCONT)
        assert_nothing_lapsed(command)
        assert command.of("loop_stalled"), "the relay noticed that it stood still"


@pytest.mark.slow
def test_no_claim_lapses_while_the_relay_alone_stands_still_for_three_leases(
    clip: Path, tmp_path: Path
) -> None:
    short = ("--lease", "1", "--heartbeat", "0.3")
    with started("render", clip, "-o", "z.mp4", *QUICK, *SLOWLY, *short, cwd=tmp_path) as command:
        command.wait_for("part_credited", worker="w2")
        command.send_signal(signal.SIGSTOP)
        sleep_stopped(3.2)
        command.send_signal(signal.SIGCONT)
        assert_nothing_lapsed(command)


@pytest.mark.slow
def test_a_wall_clock_that_jumps_by_an_hour_changes_nothing(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RG41: in every process of the run the wall clock is stepped one hour forth and back all the time."""
    (tmp_path / "sitecustomize.py").write_text(
        "import itertools, time\n"
        "_steps, _time, _time_ns = itertools.cycle((0, 3600, 0, -3600)), time.time, time.time_ns\n"
        "time.time = lambda: _time() + next(_steps)\n"
        "time.time_ns = lambda: _time_ns() + next(_steps) * 10**9\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    short = ("--lease", "2", "--heartbeat", "0.3")
    with started("render", clip, "-o", "z.mp4", *QUICK, *SLOWLY, *short, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        assert_nothing_lapsed(command)
        assert not command.of("loop_stalled", seconds=lambda seconds: seconds > 100)


# --- signals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_a_signal_drains_within_its_time_and_says_how_long_that_is(
    clip: Path, tmp_path: Path, number: signal.Signals
) -> None:
    slow = ("--fleet", "24,24", *QUICK, "--drain-timeout", "25", "--nice", "7")
    with started("render", clip, "-o", "t.mp4", *slow, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        children = command.children()
        mine = os.getpriority(os.PRIO_PROCESS, 0)
        assert psutil.Process(command.pid_of("w1")).nice() == min(mine + 7, 19)
        assert psutil.Process(command.process.pid).nice() == mine
        assert psutil.Process(command.pid_of("w1")).num_threads() <= 12, "RG22: threads are bounded"
        command.send_signal(number)
        drain = command.wait_for("drain_started")
        assert (drain["reason"], drain["limit_seconds"]) == (number.name, 25.0)
        assert command.finish() == 130
        assert "Draining: parts in progress are finished and kept. 25 s are left for that." in command.stderr
        assert not command.of("worker_left", lost=True) and not gone(children)


@pytest.mark.slow
def test_a_drain_that_takes_longer_than_its_time_is_cut_short(clip: Path, tmp_path: Path) -> None:
    slow = ("--fleet", "1", "--part", "120", "--preset", "ultrafast", "--drain-timeout", "0.3")
    with started("render", clip, "-o", "t.mp4", *slow, cwd=tmp_path) as command:
        command.wait_for("claim_granted")
        children = command.children()
        command.send_signal(signal.SIGTERM)
        assert command.finish() == 130
        assert "The time to drain is over" in command.stderr
        assert not gone(children)


# --- memory ----------------------------------------------------------------------------------------------


def capped_fleet(folder: Path, *memory_gb: float | None) -> Path:
    path = folder / "fleet.toml"
    workers = ("[[worker]]\n" + (f"memory_gb = {gb}\n" if gb else "") for gb in memory_gb)
    path.write_text("\n".join(workers))
    return path


def test_a_worker_capped_below_its_need_is_out_of_memory_and_its_chunk_moves_on(
    clip: Path, tmp_path: Path
) -> None:
    fleet = capped_fleet(tmp_path, 0.02, None)
    command = run("render", clip, "-o", "m.mp4", *QUICK, "--fleet", fleet, cwd=tmp_path)
    assert command.process.returncode == 0, command.stderr
    lost = command.of("worker_left", worker="w1", lost=True)
    assert lost and all(event["reason"].startswith("out of memory: it used") for event in lost)
    assert command.summary is not None and command.summary["credited_frames"] == 480


@pytest.mark.slow
def test_a_fleet_capped_below_its_need_stops_with_that_reason_and_can_be_resumed(
    clip: Path, tmp_path: Path
) -> None:
    fleet = capped_fleet(tmp_path, 0.02)
    fleet.write_text(fleet.read_text() + "fps = 12\n")  # so that it is measured before a part is done
    command = run("render", clip, "-o", "m.mp4", *QUICK, "--fleet", fleet, cwd=tmp_path)
    assert command.process.returncode == 5
    (sentence,) = [line for line in command.stderr.splitlines() if line.startswith("uneven: ")]
    assert "no worker is left" in sentence and "w1 out of memory: it used" in sentence
    again = run("resume", "m.mp4", "--workers", "2", cwd=tmp_path)
    assert again.process.returncode == 0, again.stderr


# --- failures --------------------------------------------------------------------------------------------


def test_set_aside_parts_halt_the_run_and_are_told_with_their_story(clip: Path, tmp_path: Path) -> None:
    hasty = (
        "--part",
        "120",
        "--fleet",
        "30",
        "--timeout",
        "0.2s",
        "--max-tries",
        "1",
        "--halt",
        "now,fail=2",
    )
    command = run("render", clip, "-o", "h.mp4", "--preset", "ultrafast", *hasty, cwd=tmp_path)
    assert command.process.returncode == 5
    assert "uneven: halted: 2 parts were set aside (--halt now,fail=2)" in command.stderr
    assert len(command.of("part_set_aside")) == 2
    assert "part 0 was set aside: failed 1 times, by w1" in command.stderr
    assert "timed out: the part took longer than 0.2 s" in command.stderr
    assert "| " in command.stderr and "w1 claims c0#1@e1" in command.stderr, "the attempt's log"
    calm = ("--retry-failed", "--timeout", "90s", "--halt", "never", "--workers", "2")
    again = run("resume", "h.mp4", *calm, cwd=tmp_path)
    assert again.process.returncode == 0, again.stderr


# --- the report ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_hardware_table_of_a_run_that_is_over_and_of_one_that_is_not(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "r.mp4", *QUICK, "--fleet", "24,12", cwd=tmp_path) as command:
        command.wait_for("part_credited", worker="w2")
        busy = run("report", "r.mp4", cwd=tmp_path, json=False)
        assert busy.process.returncode == 4 and "in use by process" in busy.stderr
        command.send_signal(signal.SIGINT)
        command.finish()
    unfinished = table("r.mp4", cwd=tmp_path)
    assert unfinished["outcome"] == "interrupted"
    assert 0 < unfinished["credited_frames"] < 480
    assert run("resume", "r.mp4", *FLEET, cwd=tmp_path).process.returncode == 0
    finished = table("last", cwd=tmp_path)
    assert (finished["outcome"], finished["credited_frames"]) == ("done and verified", 480)
    rows = finished["workers"]
    assert [row["worker"] for row in rows] == ["w1", "w2"]
    assert sum(row["credited_frames"] for row in rows) == 480
    assert [row["fair_share"] for row in rows] == pytest.approx([0.6, 0.4])
    assert all(row["peak_memory_bytes"] > 10_000_000 for row in rows)
    text = run("report", cwd=tmp_path, json=False)
    assert "fair share" in text.stdout and "w2" in text.stdout


def table(name: str, *, cwd: Path) -> dict[str, Any]:
    command = run("report", name, "--json", cwd=cwd, json=False)
    assert command.process.returncode == 0, command.stderr
    found: dict[str, Any] = msgspec.json.decode(command.stdout)
    return found
