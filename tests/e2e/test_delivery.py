"""Whole runs over links: the same packets whatever breaks, and nothing finished is rendered again."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.e2e.command import Command, run
from tests.e2e.test_run import QUICK, started
from tests.shared import demo_clip, made_once

FRAMES = 96
#: A part of 12 frames is some 20 KB: ten blocks, and a third of a second on this link.
LINK = "link = { mib_per_second = 0.06, latency = 0.005, block_mib = 0.002 }"


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight parts."""
    return demo_clip(tmp_path_factory, FRAMES)


@pytest.fixture(scope="module")
def packets(clip: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sha256 of the packets that one worker makes without any link."""

    def make(cwd: Path) -> None:
        command = run("render", clip, "-o", "one.mp4", "-w", "1", *QUICK, cwd=cwd)
        assert command.summary is not None, command.stderr
        (cwd / "sha256").write_text(command.summary["packets_sha256"])

    return (made_once(tmp_path_factory, "one-short", make) / "sha256").read_text()


def assert_done(command: Command, packets: str) -> None:
    assert command.finish() == 0, command.stderr
    assert command.summary is not None
    assert command.summary["packets_sha256"] == packets
    assert command.summary["credited_frames"] == FRAMES


def fleet(folder: Path, *workers: str) -> Path:
    path = folder / "fleet.toml"
    path.write_text("".join(f"[[worker]]\n{worker}\n" for worker in workers))
    return path


def renders(folder: Path) -> list[int]:
    """Every part that was rendered to its end, as the workers' logs tell; once for each time."""
    return sorted(
        int(part)
        for log in (folder / "logs").glob("*.log")
        for part in re.findall(r"part (\d+): rendered", log.read_text())
    )


def test_a_worker_killed_in_mid_delivery_goes_on_where_it_was(
    clip: Path, packets: str, tmp_path: Path
) -> None:
    file = fleet(tmp_path, LINK)
    with started("render", clip, "-o", "l.mp4", *QUICK, "--fleet", file, "--keep", cwd=tmp_path) as command:
        token = command.wait_for("block_stored", part=2, done=3)["token"]
        os.kill(command.pid_of("w1"), signal.SIGKILL)
        command.wait_for("worker_left", worker="w1", lost=True)
        resumed = command.wait_for("block_stored", part=2, token=lambda other: other != token)
        assert resumed["done"] >= 3, "what was acknowledged is not sent again"
        assert_done(command, packets)
    rendered = renders(tmp_path / "l.mp4.uneven")
    assert rendered.count(2) == 1
    assert not list((tmp_path / "l.mp4.uneven").glob("store/incoming/*"))
    assert not list((tmp_path / "l.mp4.uneven").glob("spool/*/*"))


@pytest.mark.slow
def test_everything_killed_in_mid_delivery_and_resumed(clip: Path, packets: str, tmp_path: Path) -> None:
    file = fleet(tmp_path, LINK, LINK, "")
    with started("render", clip, "-o", "k.mp4", *QUICK, "--fleet", file, cwd=tmp_path) as command:
        stored = command.wait_for("block_stored", worker="w2", done=3)
        command.process.kill()
        command.finish()
    part = stored["part"]
    before = renders(tmp_path / "k.mp4.uneven")
    assert part in before
    again = run("resume", "k.mp4", "--keep", cwd=tmp_path)
    assert_done(again, packets)
    resumed = again.of("block_stored", part=part, token=lambda token: "@e2" in token)
    assert resumed[0]["done"] >= 3
    finished = {event["part"] for event in again.of("part_credited", token=lambda token: "@e2" not in token)}
    assert renders(tmp_path / "k.mp4.uneven").count(part) == 1
    assert finished <= set(before)


@pytest.mark.slow
def test_a_bad_network_makes_the_same_packets(clip: Path, packets: str, tmp_path: Path) -> None:
    bad = "fps = 60\nlink = { mib_per_second = 0.5, latency = 0.01, drop_rate = 0.2, block_mib = 0.002 }"
    file = fleet(tmp_path, bad, bad, "fps = 24")
    command = run("render", clip, "-o", "b.mp4", *QUICK, "--fleet", file, "--keep", cwd=tmp_path)
    assert_done(command, packets)
    logs = (tmp_path / "b.mp4.uneven" / "logs").glob("*.log")
    broken = [log for log in logs if "the link broke" in log.read_text()]
    assert broken and not command.of("claim_ended", how="lapsed") and not command.of("message_refused")


@pytest.mark.slow
def test_another_worker_delivers_what_one_that_is_gone_had_rendered(
    clip: Path, packets: str, tmp_path: Path
) -> None:
    """Both lie on one disk. The old one is not in the fleet of the resumed run."""
    file = fleet(tmp_path, f'name = "old"\n{LINK}')
    common = ("render", clip, "-o", "o.mp4", *QUICK)
    with started(*common, "--fleet", file, cwd=tmp_path) as command:
        command.wait_for("block_stored", part=2, done=3)
        command.process.kill()
        command.finish()
    before = renders(tmp_path / "o.mp4.uneven")
    again = run(*common, "--fleet", fleet(tmp_path, f'name = "new"\n{LINK}'), "--keep", cwd=tmp_path)
    assert_done(again, packets)
    resumed = again.of("block_stored", part=2, token=lambda token: "@e2" in token)[0]
    assert resumed["worker"] == "new" and resumed["done"] >= 3
    after = renders(tmp_path / "o.mp4.uneven")
    assert all(after.count(part) == 1 for part in before)
    assert not (tmp_path / "o.mp4.uneven" / "spool" / "old").exists()


def test_injected_faults_strike_blocks_and_change_no_packet(clip: Path, packets: str, tmp_path: Path) -> None:
    """Damage, a refusal and a cut, each on a link of its own."""
    faults = (
        "corrupt w1 when it has delivered 1 part",
        "rate-limit w2 when it has delivered 1 part for 0.5",
        "cut w3 when it has delivered 1 part for 0.8",
    )
    file = fleet(tmp_path, LINK, LINK, LINK)
    lines = [word for fault in faults for word in ("--fault", fault)]
    even = ("--schedule", "fixed,12", "--tail", "none", "--lease", "8", "--heartbeat", "0.5")
    command = run(
        "render", clip, "-o", "f.mp4", *QUICK, "--fleet", file, *even, *lines, "--keep", cwd=tmp_path
    )
    assert_done(command, packets)
    assert {event["kind"] for event in command.of("fault_injected")} == {"corrupt", "rate-limit", "cut"}
    assert not command.of("part_failed") and not command.of("claim_ended", how="lapsed")
    told = "".join(log.read_text() for log in sorted((tmp_path / "f.mp4.uneven" / "logs").glob("*.log")))
    assert "came damaged" in told and "the store takes no more for now" in told and "fault: cut" in told
    assert renders(tmp_path / "f.mp4.uneven") == list(range(8)), "none is rendered twice"
