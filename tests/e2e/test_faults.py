"""Faults on real processes: every frame credited once, the same packets as undisturbed, an end, and an exit
code that tells the truth. Each kind under two policies is in the slow suite; a sample is in this one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm import commands as cmd
from farm import events as ev
from farm.engines.local import prepare
from farm.errors import ExitCode
from farm.faultgrid import CASES, LIMIT_SECONDS, POLICIES, Case, live_run, make_clip, run_case
from farm.scenario.faults import parse_fault
from tests.e2e.command import run
from tests.e2e.test_run import QUICK, assert_done, packets, started
from tests.shared import made_once

__all__ = ["packets"]

#: Damage in the store, and a stop of everything.
EVERYDAY = (
    (next(case for case in CASES if case.name.startswith("corrupt w1")), "guided"),
    (next(case for case in CASES if case.name.startswith("suspend")), "fair"),
)
ALL = [(case, policy) for case in CASES for policy in POLICIES if (case, policy) not in EVERYDAY]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A clip, and the sha256 of its packets when nothing goes wrong."""

    def make(folder: Path) -> None:
        sound = run_case(None, "guided", make_clip(folder), folder)
        assert sound.wrong == () and sound.packets_sha256
        (folder / "sha256").write_text(sound.packets_sha256)

    before = os.environ.get("UNEVEN_STATE_DIR")
    os.environ["UNEVEN_STATE_DIR"] = str(tmp_path_factory.mktemp("grid") / "state")
    prepare()
    folder = made_once(tmp_path_factory, "grid", make)
    yield folder / "clip.mp4", (folder / "sha256").read_text()
    if before is None:
        del os.environ["UNEVEN_STATE_DIR"]
    else:
        os.environ["UNEVEN_STATE_DIR"] = before


@pytest.mark.parametrize(("case", "policy"), EVERYDAY, ids=lambda value: getattr(value, "name", value))
def test_a_sample_of_faults(case: Case, policy: str, grid: tuple[Path, str], tmp_path: Path) -> None:
    clip, reference = grid
    assert run_case(case, policy, clip, tmp_path, reference).wrong == ()


@pytest.mark.slow
@pytest.mark.parametrize(("case", "policy"), ALL, ids=lambda value: getattr(value, "name", value))
def test_every_fault(case: Case, policy: str, grid: tuple[Path, str], tmp_path: Path) -> None:
    clip, reference = grid
    assert run_case(case, policy, clip, tmp_path, reference).wrong == ()


@pytest.mark.slow
def test_the_console_injects_into_a_run(grid: tuple[Path, str], tmp_path: Path) -> None:
    """What the console does at a key: a command to the source, at any moment."""
    clip, reference = grid
    run = live_run(None, "fair", clip, tmp_path)
    run.start()
    records: list[ev.Record] = []

    def saw(kind: type[ev.Event]) -> list[ev.AnyEvent]:
        if not run.ended:
            run.wait_news(LIMIT_SECONDS)
        records.extend(run.take())
        return [record.event for record in records if isinstance(record.event, kind)]

    while not saw(ev.PartCredited):
        assert not run.ended
    assert run.send(cmd.InjectFault(fault=parse_fault("slow w1 to 0.1 at 99 for 1"))) is None
    assert run.send(cmd.InjectFault(fault=parse_fault("kill w9 at 0"))) is None
    assert run.wait(LIMIT_SECONDS)
    (injected,) = saw(ev.FaultInjected)
    assert isinstance(injected, ev.FaultInjected) and (injected.kind, injected.worker) == ("slow", "w1")
    assert any("there is no worker w9" in str(event) for event in saw(ev.CommandRefused))
    (finished,) = saw(ev.RunFinished)
    assert isinstance(finished, ev.RunFinished) and finished.packets_sha256 == reference


@pytest.mark.slow
def test_two_of_eight_workers_die_and_nothing_of_it_shows(clip: Path, packets: str, tmp_path: Path) -> None:
    faults = ("--fault", "kill w2 when 30 % is credited", "--fault", "kill w7 when 50 % is credited")
    fleet = ("--fleet", ",".join(["12"] * 8), "--lease", "3", "--heartbeat", "0.5")
    with started("render", clip, "-o", "eight.mp4", *QUICK, *fleet, *faults, cwd=tmp_path) as command:
        assert_done(command, packets)
        assert len(command.of("fault_injected")) == 2
        lost = [event["worker"] for event in command.of("worker_left") if event["worker"] in ("w2", "w7")]
        assert sorted(lost) == ["w2", "w7"], "they don't come back"
        assert command.of("part_credited", worker="w7"), "what they had delivered counts"


def test_a_scenario_renders_its_input_with_its_workers_and_faults(
    clip: Path, packets: str, tmp_path: Path
) -> None:
    # Without a tail nobody may take the stalled worker's chunk before its lease is out.
    shutil.copy(clip, tmp_path / "film.mp4")
    (tmp_path / "s.toml").write_text(
        '[job]\ninput = "film.mp4"\npart = 12\n'
        '[relay]\npolicy = "fixed,48"\ntail = "none"\nlease = 1.0\nheartbeat = 0.3\n'
        '[[worker]]\ncount = 2\nfps = 60\n[[worker]]\nname = "slow"\nfps = 30\n'
        '[[fault]]\ndo = "stall"\non = "slow"\nwhen = "it has delivered 1 part"\nfor = 2\n'
        '[[fault]]\ndo = "report-twice"\non = "w1"\nat = 0\nfor = 10\n'
        '[[expect]]\nwhat = "lapses"\nworker = "slow"\nat_least = 1\n'
    )
    command = run("render", "-o", "s.mp4", "--scenario", "s.toml", "--preset", "ultrafast", cwd=tmp_path)
    assert_done(command, packets)
    stall = command.wait_for("fault_injected", worker="slow")
    assert (stall["kind"], stall["seconds"]) == ("stall", 2.0)
    assert command.of("claim_ended", worker="slow", how="lapsed")
    assert command.of("part_superseded", worker="w1", reason="this part is credited already")
    assert command.events[0]["options"]["policy"] == "fixed,48"
    (told,) = command.expectations
    assert (told["what"], told["worker"], told["met"]) == ("lapses", "slow", True) and told["value"] >= 1


def test_an_expectation_that_is_not_met_ends_a_live_run_with_7(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        "[job]\nframes = 60\n[[worker]]\ncount = 2\nfps = 300\n"
        '[[expect]]\nwhat = "credited_frames"\nequals = 60\n[[expect]]\nwhat = "faults"\nat_least = 1\n'
    )
    command = run("demo", "s.toml", "--ui", "plain", cwd=tmp_path, json=False)
    assert command.process.returncode == 7, command.stderr
    assert "expectation met      credited_frames: exactly 60; it is 60\n" in command.stderr
    assert "expectation not met  faults: at least 1; it is 0\n" in command.stderr
    assert (tmp_path / "demo.mp4").exists(), "the output is none the worse for it"


def test_a_fault_of_a_worker_that_there_is_not_ends_in_one_sentence(clip: Path, tmp_path: Path) -> None:
    fault = ("--fleet", "60,60", "--fault", "stall w9 at 1")
    command = run("render", clip, "-o", "x.mp4", *fault, cwd=tmp_path)
    assert command.process.returncode == 2
    assert "there is no worker 'w9'" in command.stderr and "Traceback" not in command.stderr
    assert not (tmp_path / "x.mp4.uneven").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 80 MiB of its own: more than a run asks for at its start."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_full_ends_the_run_and_it_goes_on_once_there_is_room(
    clip: Path, packets: str, small_disk: Path, tmp_path: Path
) -> None:
    """A run folder on a disk of its own; the run's ends gives back what the fault had taken."""
    fleet = ("--fleet", "120,60", "--temp", small_disk)
    fault = ("--fault", "fill-disk when 30 % is credited for 60")
    full = run("render", clip, "-o", "d.mp4", *QUICK, *fleet, *fault, cwd=tmp_path)
    assert full.process.returncode in (ExitCode.OUTPUT, ExitCode.INCOMPLETE), full.stderr
    assert "Traceback" not in full.stderr and not (tmp_path / "d.mp4").exists()
    assert [event["kind"] for event in full.of("fault_injected")] == ["fill-disk"]
    again = run("render", clip, "-o", "d.mp4", *QUICK, *fleet, "--max-tries", "9", cwd=tmp_path)
    assert_done(again, packets)
