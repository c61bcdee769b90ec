"""Whole runs through the command line: the same packets whatever happens, and nobody left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.command import Command, gone, run
from tests.shared import made_once

QUICK = ("--preset", "ultrafast", "--part", "12")
GUIDED = ("--schedule", "guided,12", "--tail", "duplicate-oldest")
FAIR = ("--schedule", "fair", "--tail", "split")
UNEVEN_FLEET = ("--fleet", "60,60,24,4", "--lease", "3", "--heartbeat", "0.5")

either_policy = pytest.mark.parametrize(
    "policy", [pytest.param(GUIDED, id="guided", marks=pytest.mark.slow), pytest.param(FAIR, id="fair")]
)


@contextmanager
def started(*arguments: str | Path, cwd: Path) -> Iterator[Command]:
    command = Command(*arguments, cwd=cwd)
    try:
        yield command
    finally:
        command.close()


@pytest.fixture(scope="module")
def packets(clip: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sha256 of the packets that one worker makes."""

    def make(cwd: Path) -> None:
        command = run("render", clip, "-o", "one.mp4", "--workers", "1", *QUICK, cwd=cwd)
        assert command.process.returncode == 0, command.stderr
        assert command.summary is not None
        assert sorted(path.name for path in cwd.iterdir()) == ["one.mp4", "state"]
        (cwd / "sha256").write_text(command.summary["packets_sha256"])

    return (made_once(tmp_path_factory, "one", make) / "sha256").read_text()


def assert_done(command: Command, packets: str) -> None:
    assert command.finish() == 0, command.stderr
    assert command.summary is not None
    assert command.summary["packets_sha256"] == packets
    assert command.summary["credited_frames"] == 480
    credited = [event["part"] for event in command.of("part_credited")]
    voided = len(command.of("part_voided"))
    assert len(credited) == len(set(credited)) + voided, "a part was credited twice"


def test_two_workers_and_another_policy(clip: Path, packets: str, tmp_path: Path) -> None:
    schedule = ("--schedule", "fixed,48", "--tail", "none")
    command = run("render", clip, "-o", "two.mp4", "--workers", "2", *QUICK, *schedule, cwd=tmp_path)
    assert_done(command, packets)
    verified = run("verify", "two.mp4", "--against", clip, cwd=tmp_path, json=False)
    assert verified.process.returncode == 0, verified.stderr


@either_policy
def test_an_uneven_fleet_with_a_worker_killed_in_mid_chunk(
    clip: Path, packets: str, policy: tuple[str, ...], tmp_path: Path
) -> None:
    """RG20: a death is noticed at once, and the chunk goes on with somebody else."""
    with started("render", clip, "-o", "killed.mp4", *QUICK, *UNEVEN_FLEET, *policy, cwd=tmp_path) as command:
        claim = command.wait_for("claim_granted", worker="w1")
        command.wait_for("part_credited", token=claim["token"])
        os.kill(command.pid_of("w1"), signal.SIGKILL)
        lost = command.wait_for("worker_left", worker="w1", lost=True)
        assert "SIGKILL" in lost["reason"]
        assert_done(command, packets)
        assert command.summary is not None and command.summary["losses"] == 1


@either_policy
def test_the_console_killed_and_the_run_resumed(
    clip: Path, packets: str, policy: tuple[str, ...], tmp_path: Path
) -> None:
    """RG23: none of its processes outlives a console that is killed. RG16: what was finished counts on."""
    with started("render", clip, "-o", "again.mp4", *QUICK, *UNEVEN_FLEET, *policy, cwd=tmp_path) as command:
        for _ in range(4):
            command.wait_for("part_credited", worker="w2")
        children = command.children()
        command.process.kill()
        command.finish()
        assert not gone(children), "workers outlived the console"
        finished = {event["part"] for event in command.of("part_credited")}
    again = run("resume", "again.mp4", cwd=tmp_path)
    assert_done(again, packets)
    second = [event for event in again.events if event["event"] == "relay_started"][-1]
    rendered = again.events[again.events.index(second) :]
    rerendered = {event["part"] for event in rendered if event["event"] == "part_credited"}
    assert not rerendered & finished, "finished work was rendered again"


@either_policy
def test_a_worker_stopped_past_its_lease_is_not_the_claimant_when_it_wakes(
    clip: Path, packets: str, policy: tuple[str, ...], tmp_path: Path
) -> None:
    fleet = ("--fleet", "30,30,12,2", "--lease", "2", "--heartbeat", "0.4")
    """RG35, RG42."""
    with started("render", clip, "-o", "stopped.mp4", *QUICK, *fleet, *policy, cwd=tmp_path) as command:
        claim = command.wait_for("claim_granted", worker="w3")
        command.wait_for("part_credited", token=claim["token"])
        pid = command.pid_of("w3")
        os.kill(pid, signal.SIGSTOP)
        lapsed = command.wait_for("claim_ended", worker="w3", how="lapsed")
        if policy is GUIDED:  # with fair a duplicate may hold the chunk by then
            command.wait_for("range_reopened", chunk=int(lapsed["token"][1:].partition("#")[0]))
        os.kill(pid, signal.SIGCONT)
        refused = command.wait_for("claim_refused", worker="w3")
        assert refused["token"] == lapsed["token"] and "lapsed" in refused["reason"]
        assert_done(command, packets)
        assert command.of("part_credited", token=claim["token"]), "what was credited stays"


def test_the_slow_workers_last_chunk_is_duplicated_and_the_loser_is_no_failure(
    clip: Path, packets: str, tmp_path: Path
) -> None:
    """RG46: the loser of a duplicate is stopped and is no failure. Which of two that is depends on the
    machine; that one of them is doesn't."""
    fleet = ("--fleet", "60,60,24,4")  # with a lease that nobody runs into
    command = run("render", clip, "-o", "tail.mp4", *QUICK, *fleet, *GUIDED, cwd=tmp_path)
    assert_done(command, packets)
    duplicates = command.of("claim_granted", duplicate=True)
    assert duplicates
    ends = {event["token"]: event["how"] for event in command.of("claim_ended")}
    for duplicate in duplicates:
        chunk = duplicate["token"].partition("#")[0]
        hows = sorted(how for token, how in ends.items() if token.partition("#")[0] == chunk)
        assert hows == ["completed", *["superseded"] * (len(hows) - 1)] and len(hows) > 1
    assert command.summary is not None and command.summary["failures"] == 0
    zero = command.of("part_superseded")
    assert all(event["frames"] >= 0 for event in zero)
    wasted = command.summary["wasted_frames"]
    assert wasted == sum(event.get("wasted_frames", 0) for event in command.of("claim_ended")) + sum(
        event["frames"] for event in zero
    )


def test_ctrl_c_drains_and_the_run_can_be_resumed(clip: Path, packets: str, tmp_path: Path) -> None:
    """RG24: none of its processes runs on after Ctrl-C."""
    with started("render", clip, "-o", "int.mp4", *QUICK, *UNEVEN_FLEET, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        children = command.children()
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
        assert command.of("drain_started") and not command.of("worker_left", lost=True)
        assert "uneven resume int.mp4.uneven" in command.stderr
        assert not gone(children)
        assert not (tmp_path / "int.mp4").exists()
    assert_done(run("render", clip, "-o", "int.mp4", *QUICK, "--workers", "2", cwd=tmp_path), packets)
    assert not (tmp_path / "int.mp4.uneven").exists()


def test_a_second_ctrl_c_stops_at_once(clip: Path, tmp_path: Path) -> None:
    slow = ("--fleet", "1,1", "--part", "120", "--preset", "ultrafast")
    with started("render", clip, "-o", "now.mp4", *slow, cwd=tmp_path) as command:
        command.wait_for("lease_renewed")
        children = command.children()
        command.send_signal(signal.SIGINT)
        command.wait_for("drain_started")
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
        assert not gone(children)
        assert not command.of("part_credited"), "it waited for a part"


def test_a_damaged_or_missing_part_is_rendered_again_at_resume(
    clip: Path, packets: str, tmp_path: Path
) -> None:
    """RG15: missing, cut off, changed, empty, half there; RG17: empty, as a failed encoder leaves it:
    the list of what is done is not believed."""
    with started("render", clip, "-o", "bad.mp4", *QUICK, "--fleet", "20,20", cwd=tmp_path) as command:
        for part in range(5):
            command.wait_for("part_credited", part=part)
        command.send_signal(signal.SIGINT)
        command.finish()
    store = tmp_path / "bad.mp4.uneven" / "store"
    first, second, third, fourth, fifth = (next(store.glob(f"p{part:06d}-*")) for part in range(5))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-40])
    data = bytearray(third.read_bytes())
    data[len(data) // 2] ^= 1
    third.write_bytes(data)
    fourth.write_bytes(b"")
    fifth.write_bytes(fifth.read_bytes()[: fifth.stat().st_size // 2])
    again = run("resume", tmp_path / "bad.mp4.uneven", "--workers", "2", cwd=tmp_path)
    assert_done(again, packets)
    assert {event["part"] for event in again.of("part_voided")} == {0, 1, 2, 3, 4}


def test_other_settings_are_refused_and_say_what_differs(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "x.mp4", *QUICK, "--fleet", "12,12", cwd=tmp_path) as command:
        command.wait_for("part_credited")
        held = run("render", clip, "-o", "x.mp4", *QUICK, cwd=tmp_path)
        assert held.process.returncode == 4 and "in use by process" in held.stderr
        command.process.kill()
        command.finish()
    other = run("render", clip, "-o", "x.mp4", *QUICK, "--crf", "30", cwd=tmp_path)
    assert other.process.returncode == 4
    assert "crf not set there, 30.0 here" in other.stderr
    assert len(other.stderr.strip().splitlines()) == 1


def test_an_output_that_appears_during_the_run_is_left_alone(clip: Path, tmp_path: Path) -> None:
    with started("render", clip, "-o", "k.mp4", *QUICK, "--fleet", "90,90", cwd=tmp_path) as command:
        command.wait_for("part_credited")
        (tmp_path / "k.mp4").write_bytes(b"precious")
        assert command.finish() == 4
        assert "appeared while" in command.stderr
    assert (tmp_path / "k.mp4").read_bytes() == b"precious"
    verified = run("verify", "--against", clip, tmp_path / "k.mp4.partial", cwd=tmp_path, json=False)
    assert verified.process.returncode == 0, "what is in a file decides, not its name"


def test_parts_set_aside_are_taken_up_again_when_asked(clip: Path, tmp_path: Path) -> None:
    hasty = ("--part", "240", "--fleet", "30,30", "--timeout", "0.4s", "--max-tries", "2")
    first = run("render", clip, "-o", "hasty.mp4", "--preset", "ultrafast", *hasty, cwd=tmp_path)
    assert first.process.returncode == 5, first.stderr
    assert "uneven resume hasty.mp4.uneven --retry-failed" in first.stderr
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (tmp_path / "hasty.mp4.uneven").rename(moved / "hasty.mp4.uneven")
    calm = ("--retry-failed", "--timeout", "90s", "--workers", "2")
    again = run("resume", "elsewhere/hasty.mp4.uneven", *calm, cwd=tmp_path)
    assert again.finish() == 0, again.stderr
    assert again.summary is not None and again.summary["credited_frames"] == 480
    assert again.of("part_retried") and (tmp_path / "hasty.mp4").exists()


def test_a_sample_predicts_and_the_full_run_uses_its_parts(clip: Path, packets: str, tmp_path: Path) -> None:
    """1. Five parts of forty alone: exit 0, no output, a prediction in log and summary. 2. The same
    command without --sample renders the rest alone; the packets are those of any other run."""
    arguments = ("render", clip, "-o", "out.mp4", "--workers", "2", *QUICK)
    sample = run(*arguments, "--sample", "5", cwd=tmp_path)
    assert sample.process.returncode == 0, sample.stderr
    assert "Render the rest with: uneven resume" in sample.stderr
    assert not (tmp_path / "out.mp4").exists() and (tmp_path / "out.mp4.uneven").is_dir()
    first = {event["part"] for event in sample.of("part_credited")}
    assert first == {0, 10, 20, 29, 39}
    (predicted,) = sample.of("sample_predicted")
    assert predicted["parts"] == 5 and predicted["frames"] == 60
    assert predicted["low_bytes"] < predicted["likely_bytes"] < predicted["high_bytes"]
    assert predicted["likely_seconds"] > predicted["rest_seconds"] > 0
    assert sample.summary is not None and sample.summary["sample_frames"] == 60
    assert sample.summary["predicted"]["likely_bytes"] == predicted["likely_bytes"]
    whole = run(*arguments, cwd=tmp_path)
    assert_done_with(whole, packets)
    rest = {event["part"] for event in whole.of("part_credited")} - first
    assert len(rest) == 35, "what the sample rendered was rendered again"
    assert not (tmp_path / "out.mp4.uneven").exists()


def assert_done_with(command: Command, packets: str) -> None:
    assert command.process.returncode == 0, command.stderr
    assert command.summary is not None and command.summary["packets_sha256"] == packets


def test_a_promise_taken_back_is_taken_back_aloud(clip: Path, tmp_path: Path) -> None:
    """In the warnings, in the summary and in the recording."""
    flags = ("--allow-nondeterministic", "--frames", "0:24")
    command = run("render", clip, "-o", "out.mp4", "--workers", "1", *QUICK, *flags, cwd=tmp_path)
    assert command.process.returncode == 0, command.stderr
    assert command.of("notice", level="warning", text=lambda text: "no promise of equal bytes" in text)
    assert command.of("run_opened")[0]["options"]["allow_nondeterministic"] is True
    assert command.summary is not None and command.summary["allow_nondeterministic"]
