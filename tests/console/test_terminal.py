"""The choice of the user interface, and that the terminal is restored at every end (in a real pty)."""

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
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from console.driver import TerminalWriter
from console.interrupts import Interrupted, heed_interrupts
from console.showoptions import Showing
from console.terminal import ENDING_SIGNALS, SignalBox, choose_ui
from farm.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
XTERM = {"TERM": "xterm-256color"}


# --- the choice ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requested", "env", "stdin", "stderr", "chosen"),
    [
        ("auto", XTERM, True, True, "tui"),
        ("auto", XTERM, False, True, "plain"),
        ("auto", XTERM, True, False, "plain"),
        ("auto", {"TERM": "dumb"}, True, True, "plain"),
        ("auto", {}, True, True, "plain"),  # RG52: TERM unset
        ("auto", {**XTERM, "UNEVEN_UI": "json"}, True, True, "json"),
        ("auto", {**XTERM, "UNEVEN_UI": "plain"}, True, True, "plain"),
        ("auto", {**XTERM, "UNEVEN_UI": ""}, True, True, "tui"),
        ("auto", {**XTERM, "UNEVEN_UI": "auto"}, True, True, "tui"),
        ("tui", XTERM, True, True, "tui"),
        ("plain", XTERM, True, True, "plain"),
        ("json", {**XTERM, "UNEVEN_UI": "plain"}, False, False, "json"),
        ("none", {}, False, False, "none"),
    ],
)
def test_the_interface_follows_request_then_environment_then_terminal(
    requested: str, env: dict[str, str], stdin: bool, stderr: bool, chosen: str
) -> None:
    assert choose_ui(requested, env, stdin, stderr) == chosen


def test_what_cannot_be_shown_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="--ui tui: the console needs a terminal"):
        choose_ui("tui", XTERM, True, False)
    with pytest.raises(UsageError, match="UNEVEN_UI tui"):
        choose_ui("auto", {**XTERM, "UNEVEN_UI": "tui"}, False, False)
    with pytest.raises(UsageError, match="UNEVEN_UI 'fancy': choose auto, tui, plain, json, none"):
        choose_ui("auto", {**XTERM, "UNEVEN_UI": "fancy"}, True, True)
    with pytest.raises(UsageError, match="--ui 'TUI'"):
        choose_ui("TUI", XTERM, True, True)


def test_the_choice_does_not_load_textual() -> None:
    check = "import sys, console.terminal; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_time_to_drain_that_cannot_be_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="--drain-timeout"):
        Showing(ui="none").options(seconds)


# --- signals ---------------------------------------------------------------------------------------------


def test_signals_are_kept_in_order_and_wake_whoever_listens_next() -> None:
    box, woken = SignalBox(), []
    before = [signal.getsignal(number) for number in ENDING_SIGNALS]
    box.install()
    try:
        signal.raise_signal(signal.SIGHUP)
        box.listen(lambda: woken.append(box.first))
        assert woken == [signal.SIGHUP]
        signal.raise_signal(signal.SIGTERM)
        box.listen(None)
        signal.raise_signal(signal.SIGINT)
        assert woken == [signal.SIGHUP, signal.SIGHUP]
        taken = [box.take() for _ in range(4)]
    finally:
        box.remove()
    assert taken == [signal.SIGHUP, signal.SIGTERM, signal.SIGINT, None]
    assert [signal.getsignal(number) for number in ENDING_SIGNALS] == before


def test_a_hangup_that_is_ignored_stays_so() -> None:
    """nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    box = SignalBox()
    try:
        box.install()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        box.remove()
        signal.signal(signal.SIGHUP, before)


# --- a console in a pty ----------------------------------------------------------------------------------

CONSOLE = """
import sys, time
from console.app import ConsoleApp
from tests.console.player import Player
from tests.console.story import play

began = time.monotonic()
player = Player(play(), clock=lambda: 30 + time.monotonic() - began)

class App(ConsoleApp):
    def action_export(self):
        raise RuntimeError("as if by a bug")

app = App(player, exit_when_done=False, readonly="readonly" in sys.argv)
outcome = app.run()
sent = [type(command).__name__ for command in player.commands]
with open(sys.argv[1], "w") as file:
    print(outcome and outcome.why, outcome and outcome.signal, sent, file=file)
"""

#: Private modes that are switched on: alternate screen, mouse, focus, bracketed paste.
MODES = ("1049", "1000", "1003", "1006", "1004", "2004")


@dataclass
class Terminal:
    """A pty with a console in it. Reads whatever it draws."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    before: list[object]
    said: Path  #: where the script writes what the console returned
    output: bytes = b""
    modes: dict[str, bool] = field(default_factory=dict)

    def read_until(self, *, text: bytes | None = None, ended: bool = False, seconds: float = 30.0) -> None:
        """Read on until ``text`` was drawn, or until the console ended and everything was read."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if text is not None and text in self.output:
                return
            over = self.process.poll() is not None
            ready = select.select([self.master], [], [], 0.05)[0]
            if ready:
                self.output += os.read(self.master, 65536)
            elif over and ended:
                return
            elif over:
                break
        raise AssertionError(f"waited for {text!r}, ended={ended}; got the end {self.output[-600:]!r}")

    @property
    def outcome(self) -> str:
        return self.said.read_text().strip()

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def assert_restored(self) -> None:
        """Every mode that was switched on was switched off after, the cursor shows, the line is cooked."""
        for mode in MODES:
            on = self.output.rfind(f"\x1b[?{mode}h".encode())
            off = self.output.rfind(f"\x1b[?{mode}l".encode())
            assert on < off, f"mode {mode} is still on"
        assert self.output.rfind(b"\x1b[?25h") > self.output.rfind(b"\x1b[?25l"), "no cursor"
        assert self.output.rfind(b"\x1b[<u") > self.output.rfind(b"\x1b[>"), "kitty keys still on"
        assert termios.tcgetattr(self.slave) == self.before, "the line is still raw"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    yield from start(tmp_path)


def start(tmp_path: Path, *arguments: str) -> Iterator[Terminal]:
    script = tmp_path / "console_in_pty.py"
    script.write_text(CONSOLE)
    said = tmp_path / "outcome"
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    before = termios.tcgetattr(slave)
    env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, str(script), str(said), *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        start_new_session=True,
        preexec_fn=make_controlling,
    )
    terminal = Terminal(process, master, slave, before, said)
    try:
        terminal.read_until(text=b"nightfall.mkv")
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for fd in (master, slave):
            with contextlib.suppress(OSError):
                os.close(fd)


def make_controlling() -> None:
    """The pty becomes the child's controlling terminal, so that closing it hangs the child up."""
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal_and_is_told_to_the_caller(
    terminal: Terminal, number: signal.Signals
) -> None:
    terminal.process.send_signal(number)
    terminal.read_until(ended=True)
    terminal.assert_restored()
    assert terminal.outcome == f"signal {int(number)} []"


def test_stopping_from_the_keyboard_restores_the_terminal(terminal: Terminal) -> None:
    terminal.press("q")
    terminal.read_until(text=b"stop now")
    terminal.press("\x1b")
    terminal.press("\x03\x03\x03")  # drain, stop at once, leave
    terminal.read_until(ended=True)
    terminal.assert_restored()
    assert terminal.outcome == "abandoned None ['Drain', 'StopNow']"


def test_an_exception_restores_the_terminal_and_shows_its_story(terminal: Terminal) -> None:
    terminal.press("\x13")  # ctrl+s
    terminal.read_until(ended=True)
    terminal.assert_restored()
    assert b"as if by a bug" in terminal.output
    assert terminal.outcome == "None None []"


def test_readonly_q_restores_the_terminal_and_sends_nothing(tmp_path: Path) -> None:
    for terminal in start(tmp_path, "readonly"):
        terminal.press(" sxq")
        terminal.read_until(ended=True)
        terminal.assert_restored()
        assert terminal.outcome == "quit None []"


def test_a_terminal_that_stops_reading_does_not_hold_the_console(terminal: Terminal) -> None:
    """Ctrl-S or a stuck connection: frames are dropped, and a signal still ends the console."""
    terminal.press("d" * 60)
    terminal.press("q")
    terminal.process.send_signal(signal.SIGTERM)
    terminal.process.wait(timeout=20)
    assert terminal.outcome == f"signal {int(signal.SIGTERM)} []"


def test_a_slow_terminal_loses_frames_and_is_told_when_it_caught_up() -> None:
    reader, pipe = os.pipe()
    writer = TerminalWriter(pipe)
    writer.start()
    frame = "x" * 60_000
    for _ in range(20):
        writer.write(frame)
    assert not writer.take_caught_up()
    writer.write("y")  # nothing blocked so far, though nobody reads
    got = 0
    while not writer.take_caught_up():
        got += len(os.read(reader, 1 << 20))
    assert 0 < got < 20 * len(frame)
    assert not writer.take_caught_up()
    writer.write("again")
    while b"again" not in os.read(reader, 1 << 20):
        pass
    os.close(reader)
    writer.write("swallowed")
    writer.stop()
    os.close(pipe)


def test_a_lost_line_ends_the_console(terminal: Terminal) -> None:
    """The terminal goes away (SSH cut, window closed): the console ends instead of spinning."""
    os.close(terminal.slave)
    os.close(terminal.master)
    terminal.process.wait(timeout=20)
    assert terminal.outcome == f"signal {int(signal.SIGHUP)} []"


def test_a_signal_whose_exception_was_lost_is_not() -> None:
    """Python drops what a handler raises within a finaliser: the run that then begins has to hear of it."""
    before = signal.getsignal(signal.SIGTERM)
    box = SignalBox()
    try:
        heed_interrupts()
        with contextlib.suppress(Interrupted):  # as a finaliser does
            signal.raise_signal(signal.SIGTERM)
        box.install()
        assert box.take() is signal.SIGTERM and box.take() is None
        box.remove()
        heed_interrupts()
        box.install()
        assert box.take() is None, "a new command has heard of nothing"
    finally:
        box.remove()
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
