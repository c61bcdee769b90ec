"""A real run on a real terminal: whatever ends the console, the terminal is given back as it was, and nothing
that a worker, an encoder or a library prints reaches the screen. RG48, RG49, RG51, RG52."""

from __future__ import annotations

import contextlib
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

from farm.scratch import Scratch
from tests.attach.telling import until
from tests.console.test_terminal import MODES
from tests.e2e.command import run
from tests.e2e.test_terminal import LIMIT_SECONDS, Screen, environment

SLOW = ("--fleet", "4,4", "--part", "12,fixed", "--lease", "6", "--heartbeat", "0.3")
#: Drawn once there is a fleet.
RENDERING = b"rendering"


@pytest.fixture(autouse=True)
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    scratch = Scratch()
    monkeypatch.setenv("UNEVEN_RUNTIME_DIR", str(scratch.path / "run"))
    yield
    scratch.remove()


def uneven(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "console", *map(str, arguments)]


@contextlib.contextmanager
def on_screen(folder: Path, *arguments: str | Path, hangs_up: bool = False) -> Iterator[Screen]:
    screen = Screen(uneven(*arguments), folder, columns=120, hangs_up=hangs_up)
    try:
        yield screen
    finally:
        screen.close()


def assert_restored(screen: Screen) -> None:
    """Of a command that has ended, with whoever else had the terminal open."""
    for mode in MODES:
        on, off = (screen.output.rfind(f"\x1b[?{mode}{c}".encode()) for c in "hl")
        assert on < off, f"mode {mode} is still on"
    assert screen.output.rfind(b"\x1b[?25h") > screen.output.rfind(b"\x1b[?25l"), "no cursor"
    fresh = pty.openpty()
    try:
        plain, now = termios.tcgetattr(fresh[1]), termios.tcgetattr(screen.master)
        assert now[:4] == plain[:4], "the line is still raw"
    finally:
        for handle in fresh:
            os.close(handle)


def forked(screen: Screen) -> list[psutil.Process]:
    """The fork server's children: workers and helpers."""
    return [
        grandchild
        for child in psutil.Process(screen.process.pid).children()
        for grandchild in child.children()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_a_run_restores_the_terminal(number: signal.Signals, clip: Path, tmp_path: Path) -> None:
    with on_screen(tmp_path, "render", clip, "-o", "o.mp4", *SLOW) as screen:
        screen.read_until(RENDERING)
        screen.process.send_signal(number)
        code, said = screen.finish()
        assert_restored(screen)
    assert code == 130 and "Go on with: uneven resume" in said


@pytest.mark.slow
def test_the_death_of_workers_leaves_the_screen_to_the_console(clip: Path, tmp_path: Path) -> None:
    with on_screen(tmp_path, "render", clip, "-o", "o.mp4", *SLOW) as screen:
        screen.read_until(RENDERING)
        until(lambda: len(forked(screen)) >= 2, "two workers")
        for process in forked(screen):
            process.kill()
        screen.read_until(b"lost")
        os.write(screen.master, b"\x03\x03")
        code, _ = screen.finish()
        assert_restored(screen)
    assert code == 130


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_rg48_a_run_that_is_killed_gives_the_terminal_back_and_leaves_no_process(
    number: signal.Signals, clip: Path, tmp_path: Path
) -> None:
    with on_screen(tmp_path, "render", clip, "-o", "o.mp4", *SLOW) as screen:
        screen.read_until(RENDERING)
        children = psutil.Process(screen.process.pid).children(recursive=True)
        screen.process.send_signal(number)
        code, _ = screen.finish()
        assert code == -number
        assert_restored(screen)
        assert not psutil.wait_procs(children, timeout=30)[1]


@pytest.mark.slow
def test_views_of_a_detached_run_come_and_go_in_every_way(clip: Path, tmp_path: Path) -> None:
    started = run("render", clip, "-o", "o.mp4", "--detach", *SLOW, cwd=tmp_path, json=False)
    assert started.process.returncode == 0, started.stderr
    try:
        with on_screen(tmp_path, "attach", hangs_up=True) as screen:
            screen.read_until(RENDERING)
            os.close(screen.master)  # the line is cut
            assert screen.process.wait(LIMIT_SECONDS) == 0
        for way in ("q", "ctrl+c", "kill"):
            with on_screen(tmp_path, "attach") as screen:
                screen.read_until(RENDERING)
                if way == "kill":
                    screen.process.kill()
                else:
                    os.write(screen.master, b"q" if way == "q" else b"\x03\x03")
                code, said = screen.finish()
                assert_restored(screen)
                assert code == (-signal.SIGKILL if way == "kill" else 0)
                assert ("The run goes on." in said) == (way != "kill")
    finally:
        stopped = run("stop", "--now", cwd=tmp_path, json=False)
    assert stopped.process.returncode == 0, stopped.stderr


# --- what others print -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "word"), [("libsvtav1", b"Svt["), ("libx265", b"x265 [")])
def test_what_an_encoder_prints_by_itself_is_in_the_log_and_not_on_the_screen(
    encoder: str, word: bytes, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write to standard error from native code."""
    monkeypatch.setenv("SVT_LOG", "4")
    preset = "12" if encoder == "libsvtav1" else "ultrafast"
    options = ("-e", encoder, "--preset", preset, "-w", "2", "--keep", "--part", "240,fixed")
    with on_screen(tmp_path, "render", clip, "-o", "o.mp4", *options) as screen:
        code, said = screen.finish()
        assert_restored(screen)
    assert code == 0, said[-2000:]
    logs = b"".join(p.read_bytes() for p in (tmp_path / "o.mp4.uneven" / "logs").iterdir())
    assert word in logs  # else this test shows nothing
    assert word not in screen.output


# --- RG49, RG51, RG52 ------------------------------------------------------------------------------------

IDLE = """
from console.app import ConsoleApp
from tests.console.player import Player
from tests.console.story import play
player = Player(play())
player.time, player.open_end = 60.0, True
ConsoleApp(player, exit_when_done=False).run()
"""
IDLE_SECONDS = 5.0


def test_rg49_a_console_on_which_nothing_happens_takes_next_to_no_cpu(tmp_path: Path) -> None:
    """At most 2 % of a core: process time, not the clock's, so that a busy machine doesn't matter."""
    screen = Screen([sys.executable, "-c", IDLE], tmp_path, columns=120)
    try:
        screen.read_until(b"nightfall")
        process = psutil.Process(screen.process.pid)
        shares = []
        for _ in range(4):  # the first second or two may still be the beginning
            before, began = process.cpu_times(), time.monotonic()
            while time.monotonic() < began + IDLE_SECONDS:
                if select.select([screen.master], [], [], 0.1)[0]:
                    os.read(screen.master, 65536)
            after = process.cpu_times()
            used = after.user + after.system - before.user - before.system
            shares.append(used / (time.monotonic() - began))
            if shares[-1] <= 0.02:
                break
        assert shares[-1] <= 0.02, shares
    finally:
        screen.close()


@pytest.mark.slow
def test_rg51_eight_workers_have_one_writer_of_whole_lines(clip: Path, tmp_path: Path) -> None:
    with on_screen(
        tmp_path, "render", clip, "-o", "o.mp4", "-w", "8", "--part", "12,fixed", "--ui", "plain"
    ) as screen:
        code, _ = screen.finish()
    assert code == 0
    assert b"\r\n" in screen.output
    assert b"\r" not in screen.output.replace(b"\r\n", b"")  # no line is written over
    assert b"\x1b[A" not in screen.output and b"\x1b[K" not in screen.output
    for line in screen.output.decode().replace("\r", "").splitlines():
        assert line.count(" credited") <= 1 and line.count("fps,") <= 1, line


@pytest.mark.parametrize("how", ["pipe", pytest.param("null", marks=pytest.mark.slow)])
def test_rg52_without_a_terminal_or_term_there_are_plain_lines_and_the_same_exit_code(
    how: str, clip: Path, tmp_path: Path
) -> None:
    env = {k: v for k, v in environment(tmp_path).items() if k not in ("TERM", "COLORTERM")} | {
        "NO_COLOR": "1"
    }
    done = subprocess.run(
        uneven("render", clip, "-o", "o.mp4", "-w", "1", "--part", "240,fixed"),
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if how == "pipe" else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stderr and b"\r" not in done.stderr
    assert b"work: rendering" in done.stderr and b"done and verified" in done.stderr
    assert not done.stdout
