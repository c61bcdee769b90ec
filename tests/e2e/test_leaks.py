"""Many runs in a row, some of them interrupted: no process, descriptor or file is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from farm.engines.local import LocalEngine
from farm.events import RelayOptions
from farm.fleet import uniform_fleet
from farm.job import Job
from farm.plan import JobRequest, make_plan, open_run
from farm.settings import GridSettings, JobSettings, VideoSettings
from tests.e2e.command import Command, gone, run
from tests.e2e.test_run import QUICK

RUNS = int(os.environ.get("UNEVEN_LEAK_RUNS", "8"))


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of its own, with a short name."""
    folder = Path(tempfile.mkdtemp(prefix="leak-", dir="/tmp"))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def left_in(temporary: Path) -> list[Path]:
    """All but the folder in which the sockets of a user's runs are made, and its lock."""
    sockets = temporary / f"uneven_{os.getuid()}"
    return [path for path in temporary.rglob("*") if path not in (sockets, sockets / "lock")]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_runs_in_a_row_leave_nothing(clip: Path, tmp_path: Path, temporary: Path) -> None:
    """Every fifth is interrupted: drained, stopped at once, or killed; then resumed."""
    ways = [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
    for number in range(RUNS):
        output = f"{number}.mp4"
        if number % 5 == 1:
            how, code = ways[number // 5 % len(ways)]
            command = Command("render", clip, "-o", output, *QUICK, "--fleet", "60,60", cwd=tmp_path)
            try:
                command.wait_for("part_credited")
                children = command.children()
                command.send_signal(how)
                assert command.finish() == code
                assert not gone(children), "a process outlived the run"
            finally:
                command.close()
        done = run("render", clip, "-o", output, *QUICK, "--workers", "2", cwd=tmp_path)
        assert done.process.returncode == 0, done.stderr
    assert left_in(temporary) == []
    assert {path.name for path in tmp_path.iterdir()} == {"state", *(f"{n}.mp4" for n in range(RUNS))}
    runs = {path.name for path in (tmp_path / "state" / "runs").iterdir()}
    assert all(name.endswith((".json", ".jsonl.gz")) for name in runs)
    ours = [
        p
        for p in psutil.process_iter(["environ"])
        if (p.info["environ"] or {}).get("TMPDIR") == str(temporary)
    ]
    assert not ours


@pytest.mark.slow
def test_jobs_in_one_process_leave_no_descriptor(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNEVEN_STATE_DIR", str(tmp_path / "state"))
    me = psutil.Process()

    def job(number: int) -> None:
        request = JobRequest(
            source=clip,
            output=tmp_path / f"{number}.mp4",
            settings=JobSettings(
                video=VideoSettings(preset="ultrafast"), grid=GridSettings(frames=48, seconds=None)
            ),
            options=RelayOptions(),
            fleet=uniform_fleet(2),
        )

        async def carry() -> int:
            opened = open_run(make_plan(request))
            engine = LocalEngine()
            made = Job(
                opened, run_id=f"r{number}", engine=engine, publish=lambda records: None, wall_time=str
            )
            return (await made.run()).exit_code

        assert asyncio.run(carry()) == 0

    job(0)  # what is made once: the fork server, its scratch folder
    before = me.num_fds()
    for number in range(1, 5):
        job(number)
    assert me.num_fds() <= before
