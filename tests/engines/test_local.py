"""What is particular to local processes: logs, signals, imports, and the death of the console."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
from multiprocessing import forkserver
from pathlib import Path

import psutil
import pytest

from farm.engines.local import LocalEngine, prepare
from farm.errors import UsageError

from .harness import Recorder, alive, run, spec, until

ROOT = Path(__file__).parents[2]
SCRIPTED = "tests.engines.fakes:scripted"


def test_workers_print_into_their_log_and_nowhere_else(tmp_path, capfd):
    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        await engine.start([spec(tmp_path)], recorder)
        engine.send("w1", b"print")
        await until(lambda: b"printed" in recorder.messages["w1"])
        await engine.stop(5.0)

    run(body())
    log = (tmp_path / "w1.log").read_text()
    assert "printed by a worker" in log and "complained by a worker" in log
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_can_not_start_is_gone_with_its_story_in_the_log(tmp_path, capfd):
    async def body() -> None:
        for target in ("tests.engines.fakes:broken", "tests.engines.no_such_module:main"):
            engine, recorder = LocalEngine(target, preload=()), Recorder()
            await engine.start([spec(tmp_path)], recorder)
            await until(lambda found=recorder: "w1" in found.ends)
            assert recorder.ends["w1"] == ("exited with code 1", True)
            await engine.stop(5.0)

    run(body())
    log = (tmp_path / "w1.log").read_text()
    assert "this worker can't start" in log and "no_such_module" in log
    assert capfd.readouterr() == ("", "")


def test_a_signal_to_the_group_does_not_end_workers(tmp_path):
    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        await engine.start([spec(tmp_path)], recorder)
        engine.send("w1", b"signals")
        await until(lambda: b"still here" in recorder.messages["w1"])
        await engine.stop(5.0)

    run(body())


def test_a_worker_that_cannot_be_added_costs_the_others_nothing(tmp_path, monkeypatch):
    import farm.engines.local as local

    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        await engine.start([spec(tmp_path)], recorder)
        with monkeypatch.context() as patched:
            patched.setattr(local, "start_child", _too_many_files)
            with pytest.raises(UsageError, match=r"worker w2 can't be started \(Too many open files\)"):
                await engine.start([spec(tmp_path, "w2")], recorder)
        engine.send("w1", b"still there?")
        await until(lambda: b"still there?" in recorder.messages["w1"])
        await engine.stop(5.0)

    run(body())


def _too_many_files(*args, **kwargs):
    raise OSError(24, "Too many open files")


def test_too_many_descriptors_is_a_clear_error_and_leaves_nothing(tmp_path, monkeypatch):
    import farm.engines.local as local

    real, calls = local.start_child, []

    def start_child(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise OSError(24, "Too many open files")
        return real(*args, **kwargs)

    monkeypatch.setattr(local, "start_child", start_child)

    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        with pytest.raises(UsageError, match=r"worker w3 can't be started \(Too many open files\)"):
            await engine.start([spec(tmp_path, f"w{n}") for n in range(1, 5)], recorder)
        assert set(recorder.ends) == set(recorder.pids) == {"w1", "w2"}
        assert not [pid for pid in recorder.pids.values() if alive(pid)]

    run(body())


def test_the_end_of_the_fork_server_is_not_taken_for_a_certain_death(tmp_path):
    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        await engine.start([spec(tmp_path)], recorder)
        server = forkserver._forkserver._forkserver_pid
        os.kill(server, signal.SIGKILL)
        await until(lambda: "w1" in recorder.ends)
        assert recorder.ends["w1"][1] is False
        await until(lambda: not alive(recorder.pids["w1"]), "the lost worker to be killed by its pid")
        await engine.stop(1.0)
        await engine.start([spec(tmp_path, "w2")], recorder)  # a new server is started
        await until(lambda: recorder.messages["w2"])
        await engine.stop(5.0)

    run(body())


CONSOLE = """
    import asyncio, sys
    from pathlib import Path
    import rich  # what a console would have imported, and a child should not
    from farm.engines.local import LocalEngine, prepare
    from tests.engines.harness import Recorder, spec

    class Printer(Recorder):
        def up(self, worker, pid, host):
            super().up(worker, pid, host)
            print("up", worker, pid, flush=True)

        def message(self, worker, data):
            print("message", worker, data.decode(), flush=True)

    async def main():
        folder = Path(sys.argv[1])
        scripted = LocalEngine("tests.engines.fakes:scripted", preload=())
        await scripted.start([spec(folder, "idle"), spec(folder, "asked")], Printer())
        scripted.send("asked", b"modules")
        deaf = LocalEngine("tests.engines.fakes:deaf", preload=())
        await deaf.start([spec(folder, "deaf")], Printer())
        if len(sys.argv) > 2:
            sys.exit("left without a stop")
        await asyncio.Event().wait()

    asyncio.run(main())
"""


def _console(tmp_path: Path, *args: str) -> subprocess.Popen[str]:
    script = tmp_path / "console.py"
    script.write_text(textwrap.dedent(CONSOLE))
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path), *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _read_until(process: subprocess.Popen[str], *beginnings: str) -> list[list[str]]:
    """Lines of the console's output until each of these beginnings was seen."""
    assert process.stdout is not None
    lines: list[list[str]] = []
    missing = set(beginnings)
    while missing:
        line = process.stdout.readline()
        assert line, f"the console ended before {missing}: {process.stderr and process.stderr.read()}"
        lines.append(line.split())
        missing = {beginning for beginning in missing if not line.startswith(beginning)}
    return lines


def test_workers_end_when_the_console_is_killed(tmp_path):
    """RG23."""
    process = _console(tmp_path)
    lines = _read_until(process, "message deaf", "message idle", "message asked hello", "message asked _")
    pids = [int(line[2]) for line in lines if line[0] == "up"]
    assert len(pids) == 3
    process.kill()
    process.wait()

    async def body() -> None:
        await until(lambda: not [pid for pid in pids if alive(pid)], "the workers to end")

    run(body())


def test_stopped_workers_and_a_stopped_fork_server_end_when_the_console_is_killed(tmp_path):
    process = _console(tmp_path)
    _read_until(process, "message deaf", "message idle", "message asked hello", "message asked _")
    children = psutil.Process(process.pid).children(recursive=True)
    for child in children:
        if not {"reaper", "resource_tracker"} & set(re.findall(r"\w+", " ".join(child.cmdline()))):
            child.suspend()
    process.kill()
    process.wait()

    async def body() -> None:
        await until(lambda: not [child for child in children if alive(child.pid)], "all of them to end")

    run(body())


def test_a_program_that_ends_without_stop_ends_and_leaves_nothing(tmp_path):
    """RG21: nor does it wait for its children at exit."""
    process = _console(tmp_path, "leave")
    output, errors = process.communicate(timeout=30)
    assert "left without a stop" in errors and process.returncode == 1
    pids = [int(line.split()[2]) for line in output.splitlines() if line.startswith("up")]

    async def body() -> None:
        await until(lambda: not [pid for pid in pids if alive(pid)], "the workers to end")

    run(body())


def test_workers_do_not_import_the_program_that_starts_them(tmp_path):
    process = _console(tmp_path)
    try:
        lines = _read_until(process, "message asked _")
        modules = next(line[2] for line in lines if line[0] == "message" and "," in line[2]).split(",")
        assert "farm.worker.spec" in modules
        assert not {"rich", "asyncio"} & set(modules)
    finally:
        process.kill()
        process.communicate()


def test_prepare_works_without_a_usable_standard_error(tmp_path, monkeypatch):
    class Captured:
        def write(self, text: str) -> int:
            return len(text)

        def flush(self) -> None: ...

        def fileno(self) -> int:
            return -1

    monkeypatch.setattr(sys, "stderr", Captured())
    forkserver._forkserver._stop()
    from multiprocessing import resource_tracker

    resource_tracker._resource_tracker._stop()
    prepare(preload=())

    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        await engine.start([spec(tmp_path)], recorder)
        await until(lambda: recorder.messages["w1"])
        await engine.stop(5.0)

    run(body())


def test_stopping_while_workers_are_started_ends_them_once_and_quietly(tmp_path):
    """As when a disk is full while the fleet is started: the start is cut off and cleans up after itself at
    the same time as the engine is stopped."""

    async def body() -> None:
        engine, recorder = LocalEngine(SCRIPTED, preload=()), Recorder()
        starting = asyncio.create_task(engine.start([spec(tmp_path, f"w{n}") for n in range(1, 5)], recorder))
        await until(lambda: len(recorder.pids) >= 2, "two workers to be there")
        starting.cancel()
        await asyncio.gather(engine.stop(0.0), engine.stop(1.0))
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert set(recorder.ends) == set(recorder.pids)
        assert not [pid for pid in recorder.pids.values() if alive(pid)]

    run(body())
