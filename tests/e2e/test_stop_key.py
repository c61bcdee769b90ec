"""Ctrl-Z under a shell with job control, on a terminal of its own: all stop, and after ``fg`` all go on."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from console.suspend import workers_stopped
from tests.e2e.command import run

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 60.0
CTRL_Z = b"\x1a"


class Shell:
    """An interactive bash."""

    def __init__(self, folder: Path) -> None:
        own = {"UNEVEN_STATE_DIR": str(folder / "state"), "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        environment = os.environ | own | {"PS1": "$ ", "HISTFILE": ""}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:  # pragma: no cover - another process
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        termios.tcsetwinsize(self.terminal, (40, 120))
        self.output = b""

    def type(self, text: bytes) -> None:
        os.write(self.terminal, text)

    def read_until(self, ready: bytes | Callable[[], object]) -> None:
        """Read on until a text comes after all that was read before, or a condition holds."""
        start = len(self.output)
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (ready in self.output[start:] if isinstance(ready, bytes) else ready()):
            assert time.monotonic() < deadline, self.output[-1500:].decode(errors="replace")
            if select.select([self.terminal], [], [], 0.05)[0]:
                self.output += os.read(self.terminal, 65536)

    def states(self) -> list[str]:
        """Of the command's processes in the shell's job."""
        found = []
        for process in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == os.getsid(self.pid):
                    found.append(process.status())
        return found

    def close(self) -> None:
        for process in psutil.Process(self.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.kill()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    shell = Shell(tmp_path)
    try:
        yield shell
    finally:
        shell.close()


@pytest.mark.slow
@pytest.mark.parametrize("ui", ["plain", "tui"])
def test_ctrl_z_stops_the_workers_too_and_after_fg_nothing_has_lapsed(
    ui: str, clip: Path, tmp_path: Path, shell: Shell
) -> None:
    limits = "--fleet 40,30 --lease 1.5 --heartbeat 0.4 --part 12 --preset ultrafast"
    shell.type(f"{sys.executable} -m console render {clip} -o z.mp4 {limits} --ui {ui} --keep\n".encode())
    store = tmp_path / "z.mp4.uneven" / "store"
    shell.read_until(lambda: store.is_dir() and len(list(store.iterdir())) >= 2)
    shell.type(CTRL_Z)
    shell.read_until(b"Stopped")
    shell.read_until(lambda: set(shell.states()) == {psutil.STATUS_STOPPED})
    assert len(shell.states()) >= 5, "the command, the fork server, its helper, two workers"
    if ui == "tui":
        assert shell.output.rfind(b"\x1b[?1049l") > shell.output.rfind(b"\x1b[?1049h"), (
            "the screen is given back"
        )
    time.sleep(3.2)  # more than two leases, which count for nothing
    before = len(shell.output)
    shell.type(b"fg\n")
    if ui == "tui":
        shell.read_until(b"\x1b[?1049h")
        shell.read_until(b"workers")
    shell.read_until(b"done and verified: ")
    asked = len(shell.output)
    shell.type(b"echo code=$?; stty -a | grep -o -- '-*icanon'\n")
    shell.read_until(lambda: re.search(rb"code=\d+\r\n.*icanon\r\n", shell.output[asked:], re.DOTALL))
    told = shell.output[shell.output.rfind(b"code=") :]
    assert told.startswith(b"code=0\r\n") and b"-icanon" not in told, "the terminal is as it was"
    report = run("report", "z.mp4.uneven", cwd=tmp_path, json=False)
    assert report.process.returncode == 0, report.stderr
    said = shell.output[before:].decode(errors="replace")
    assert "0 lapses, 0 refusals, 0 failures, 0 workers lost" in said


def test_workers_go_on_after_a_stop_but_for_those_that_were_frozen_before() -> None:
    family = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & echo ready; wait"], stdout=subprocess.PIPE)
    assert family.stdout is not None and family.stdout.readline() == b"ready\n"
    moving, frozen = psutil.Process(family.pid).children()
    try:
        frozen.suspend()
        wait_for(lambda: frozen.status() == psutil.STATUS_STOPPED)
        with workers_stopped():
            wait_for(lambda: moving.status() == psutil.STATUS_STOPPED)
            frozen.resume()  # as the shell's ``fg`` does to the whole group
        wait_for(lambda: moving.status() != psutil.STATUS_STOPPED)
        wait_for(lambda: frozen.status() == psutil.STATUS_STOPPED)
    finally:
        for process in (moving, frozen):
            process.kill()
        family.kill()
        family.wait()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
