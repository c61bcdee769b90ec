"""A console that is killed: the terminal is given back by the keeper (RG48), and only then."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from console import keeper
from tests.console.test_terminal import Terminal, start

#: A console reduced to what matters here.
TAKING = """
import time
from console.keeper import Keeper
Keeper().taken(0)
print("taken", flush=True)
time.sleep(60)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    yield from start(tmp_path)


def until_restored(terminal: Terminal) -> None:
    deadline = time.monotonic() + 30
    while True:
        while select.select([terminal.master], [], [], 0.05)[0]:
            terminal.output += os.read(terminal.master, 65536)
        try:
            terminal.assert_restored()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        else:
            return


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGABRT, marks=pytest.mark.slow),
        pytest.param(signal.SIGSEGV, marks=pytest.mark.slow),
    ],
)
def test_rg48_a_console_that_is_killed_leaves_no_raw_terminal_and_no_mouse(
    terminal: Terminal, number: signal.Signals
) -> None:
    with pytest.raises(AssertionError):
        terminal.assert_restored()  # it has the terminal
    terminal.process.send_signal(number)
    assert terminal.process.wait(timeout=20) == -number
    until_restored(terminal)


def test_the_keeper_ends_with_the_console_and_leaves_no_process(terminal: Terminal) -> None:
    children = psutil.Process(terminal.process.pid).children()
    assert [child for child in children if "keeper.py" in " ".join(child.cmdline())]
    terminal.process.terminate()
    terminal.read_until(ended=True)
    terminal.assert_restored()
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_a_shell_that_was_faster_keeps_its_line() -> None:
    """As readline sets it for a prompt: neither cooked nor as a console leaves it."""
    master, slave = pty.openpty()
    try:
        cooked = termios.tcgetattr(slave)
        prompt = termios.tcgetattr(slave)
        prompt[3] &= ~(termios.ICANON | termios.ECHO)
        process = subprocess.Popen(
            [sys.executable, "-c", TAKING],
            cwd=Path(keeper.__file__).parents[1],
            stdin=slave,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None and process.stdout.readline() == b"taken\n"
        children = psutil.Process(process.pid).children()
        assert len(children) == 1
        termios.tcsetattr(slave, termios.TCSANOW, prompt)
        process.kill()
        process.wait()
        assert not psutil.wait_procs(children, timeout=20)[1]
        after = termios.tcgetattr(slave)
        assert after[3] == prompt[3] != cooked[3]
        assert os.read(master, 4096) == keeper.RESTORE  # what a terminal ignores that has it already
    finally:
        os.close(master)
        os.close(slave)
