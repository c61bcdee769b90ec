"""Damaged, lost and finished runs as a user meets them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from farm.errors import OutputError
from farm.events import RelayOptions, RunFinished
from farm.fleet import uniform_fleet
from farm.folder import RunFolder
from farm.journal import Journal
from farm.plan import JobRequest, make_plan, open_run
from farm.settings import JobSettings
from tests.e2e.command import Command, run
from tests.e2e.test_run import QUICK, assert_done, packets, started
from tests.journal.helpers import write_part

__all__ = ["packets"]
FLEET = ("--fleet", "60,60,24", "--lease", "3", "--heartbeat", "0.5")


def killed_run(clip: Path, cwd: Path) -> set[int]:
    """A run that was killed with some parts finished; returns those."""
    with started("render", clip, "-o", "out.mp4", *QUICK, *FLEET, cwd=cwd) as command:
        command.wait_for("part_credited", part=0)
        command.wait_for("part_credited", worker="w2")
        os.killpg(command.process.pid, signal.SIGKILL)
        command.finish()
        return {event["part"] for event in command.of("part_credited")}


def news(command: Command) -> list[dict[str, object]]:
    start = [event for event in command.events if event["event"] == "relay_started"][-1]
    return command.events[command.events.index(start) :]


@pytest.mark.parametrize("how", ["garbage", pytest.param("gone", marks=pytest.mark.slow)])
def test_a_run_goes_on_without_its_journal(how: str, clip: Path, packets: str, tmp_path: Path) -> None:
    finished = killed_run(clip, tmp_path)
    folder = tmp_path / "out.mp4.uneven"
    for path in folder.glob("journal.db*"):
        path.unlink() if how == "gone" else path.write_bytes(b"garbage" * 999)
    (folder / "index.msgpack").write_bytes(b"\xc1")
    again = run("resume", "out.mp4", "--workers", "2", cwd=tmp_path)
    assert_done(again, packets)
    rendered = {event["part"] for event in news(again) if event["event"] == "part_credited"}
    assert not rendered & finished
    told = [event["text"] for event in again.of("notice", level="warning")]
    assert len(told) == 1 and "are proved by the store and kept" in told[0]
    assert not folder.exists()


@pytest.mark.slow
def test_without_journal_and_note_the_same_command_goes_on(clip: Path, packets: str, tmp_path: Path) -> None:
    finished = killed_run(clip, tmp_path)
    folder = tmp_path / "out.mp4.uneven"
    (folder / "journal.db").write_bytes(b"")
    (folder / "run.json").write_bytes(b"{}")
    lost = run("resume", "out.mp4", cwd=tmp_path)
    assert lost.process.returncode == 4
    assert "give the same render command again" in lost.stderr and "Traceback" not in lost.stderr
    again = run("render", clip, "-o", "out.mp4", *QUICK, "--workers", "2", cwd=tmp_path)
    assert_done(again, packets)
    rendered = {event["part"] for event in news(again) if event["event"] == "part_credited"}
    assert not rendered & finished


def test_finished_parts_stay_when_their_run_can_not_go_on_yet(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.mp4.uneven"
    with RunFolder.create(path) as folder:
        write_part(folder.store / "p000000-c0.1.e1.part")
        folder.guard(tmp_path / "other.mp4")
    monkeypatch.setenv("UNEVEN_STATE_DIR", str(tmp_path / "state"))
    request = JobRequest(
        source=clip,
        output=tmp_path / "out.mp4",
        settings=JobSettings(),
        options=RelayOptions(),
        fleet=uniform_fleet(1),
    )
    plan = make_plan(request)
    with RunFolder.create(tmp_path / "holder.uneven") as holder:
        holder.guard(tmp_path / "out.mp4")
        with pytest.raises(OutputError, match=r"out\.mp4 is in use by process"):
            open_run(plan)
    assert [file.name for file in (path / "store").iterdir()] == ["p000000-c0.1.e1.part"]


@pytest.fixture
def finished_run(clip: Path, tmp_path: Path) -> Path:
    """The folder of a finished run whose removal was cut off."""
    done = run("render", clip, "-o", "out.mp4", *QUICK, "--workers", "2", "--keep", cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    path = tmp_path / "out.mp4.uneven"
    with RunFolder.open(path) as folder:
        journal = Journal.open(folder.journal)
        records = list(journal.records())
        journal.close()
        folder.journal.unlink()
        journal = Journal.create(folder.journal)
        last = records[-1].event
        assert isinstance(last, RunFinished) and last.kept
        ended = RunFinished(exit_code=0, outcome=last.outcome, packets_sha256=last.packets_sha256)
        journal.append([*records[:-1], type(records[-1])(records[-1].seq, records[-1].at, ended)])
        journal.close()
    return path


def test_a_finished_run_whose_removal_was_cut_off_is_tidied(
    clip: Path, finished_run: Path, tmp_path: Path
) -> None:
    before = (tmp_path / "out.mp4").read_bytes()
    again = run("render", clip, "-o", "out.mp4", *QUICK, cwd=tmp_path)
    assert again.process.returncode == 0
    assert "out.mp4 is done; what was left of its run is removed" in again.stderr
    assert (tmp_path / "out.mp4").read_bytes() == before
    assert not finished_run.exists()


@pytest.mark.slow
def test_a_kept_folder_of_a_finished_run_stays(clip: Path, tmp_path: Path) -> None:
    done = run("render", clip, "-o", "out.mp4", *QUICK, "--workers", "2", "--keep", cwd=tmp_path)
    assert done.process.returncode == 0
    again = run("resume", "out.mp4", cwd=tmp_path)
    assert again.process.returncode == 4
    assert "is the kept folder of a finished run" in again.stderr
    assert (tmp_path / "out.mp4.uneven" / "journal.db").exists()


def test_two_runs_with_their_folders_elsewhere_do_not_make_the_same_output(
    clip: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    slow = ("--fleet", "10,10", *QUICK)
    with started("render", clip, "-o", "out.mp4", "--temp", "a", *slow, cwd=tmp_path) as command:
        command.wait_for("part_credited")
        second = run("render", clip, "-o", "out.mp4", "--temp", "b", *slow, cwd=tmp_path)
        assert second.process.returncode == 4
        assert f"out.mp4 is in use by process {command.process.pid} on" in second.stderr
        assert list((tmp_path / "b").iterdir()) == []
        command.send_signal(signal.SIGINT)
        assert command.finish() == 130
    assert not list(tmp_path.glob(".uneven-*"))
