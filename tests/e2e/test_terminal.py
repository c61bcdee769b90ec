"""The command and its terminal: Ctrl-C at every moment of its life, streams that are closed or full.

A signal is sent by the process itself at a named place in its own code (``TRIP``), so that the moment is
exact and no test waits for a time.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.shared import demo_clip

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 60.0
#: Half a minute of work; of a part, which a drain waits for, three seconds.
SLOW = ("--fleet", "2,2", "--part", "6")

#: ``uneven`` that interrupts itself once: when a module is about to be imported, when the probe's child was
#: started, or when Python is about to end.
TRIP = """
import atexit, os, signal, sys

def trip():
    os.kill(os.getpid(), signal.SIGINT)

class Importing:
    def __init__(self, name):
        self.name = name
    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            sys.meta_path.remove(self)
            trip()

where = sys.argv.pop(1)
if where == "end":
    atexit.register(trip)
elif where == "probe":
    import farm.engines.child as child
    receive = child._ChildRun._receive
    def tripping(self, reader):
        trip()
        return receive(self, reader)
    child._ChildRun._receive = tripping
elif where != "never":
    sys.meta_path.insert(0, Importing(where))

from console.__main__ import main
main()
"""


@pytest.fixture(scope="module")
def short_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_clip(tmp_path_factory, 120)


def environment(folder: Path) -> dict[str, str]:
    own = {"UNEVEN_STATE_DIR": str(folder / "state"), "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    return os.environ | own


def tripping(where: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", TRIP, where, *map(str, arguments)]


class Screen:
    """The command on a terminal of its own.

    ``hangs_up``: it is the terminal's session leader, as what a terminal window runs. Linux throws away what
    such a one wrote last and nobody has read yet when it ends, so who wants to read that does without.
    """

    def __init__(
        self, command: list[str], folder: Path, columns: int = 80, *, hangs_up: bool = False
    ) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24 if columns else 0, columns))
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_make_controlling if hangs_up else None,
        )
        os.close(slave)
        self.output = b""

    def read_until(self, text: bytes | None = None) -> None:
        """Read on until ``text`` was drawn; None: until the command ended."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while text is None or text not in self.output:
            assert time.monotonic() < deadline, self.output[-600:]
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                data = b""
            self.output += data
            if not data:
                assert text is None, self.output[-600:]
                return

    def finish(self) -> tuple[int, str]:
        self.read_until()
        return self.process.wait(LIMIT_SECONDS), self.output.decode(errors="replace").replace("\r", "")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self.master)


def _make_controlling() -> None:
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def ended(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in that folder, when it has ended."""
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


# --- Ctrl-C at every moment ------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["typer", "msgspec", "farm.paths", "probe"])
def test_ctrl_c_before_there_is_a_run_ends_with_a_word_and_130(
    where: str, short_clip: Path, tmp_path: Path
) -> None:
    command = tripping(where, "render", short_clip, "-o", "o.mp4", "-w", "1", "--ui", "plain")
    done = ended(command, tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (130, "uneven: interrupted\n", "")
    assert not list(tmp_path.glob("o.mp4*"))


def test_ctrl_c_after_the_last_line_changes_nothing(short_clip: Path, tmp_path: Path) -> None:
    command = tripping("end", "verify", short_clip)
    done = ended(command, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("where", ["console.app", "textual.drivers.linux_driver"])
def test_ctrl_c_while_the_console_is_loaded_drains(where: str, short_clip: Path, tmp_path: Path) -> None:
    screen = Screen(tripping(where, "render", short_clip, "-o", "o.mp4", *SLOW), tmp_path)
    try:
        code, said = screen.finish()
    finally:
        screen.close()
    assert code == 130
    assert "Draining" in said and "Go on with: uneven resume" in said
    assert not (tmp_path / "o.mp4").exists()


def test_ctrl_c_as_soon_as_the_console_has_the_terminal_drains(short_clip: Path, tmp_path: Path) -> None:
    """From here on it comes as a key, and the first ones come before there is a screen."""
    screen = Screen(tripping("never", "render", short_clip, "-o", "o.mp4", *SLOW), tmp_path)
    try:
        screen.read_until(b"\x1b[?1049h")
        os.write(screen.master, b"\x03")
        code, said = screen.finish()
    finally:
        screen.close()
    assert (code, "Go on with: uneven resume" in said) == (130, True)


# --- streams ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ui", "closed", "code"),
    [("json", ">&-", 0), ("plain", "2>&-", 0), ("auto", "<&- >&- 2>&-", 0), ("json", ">/dev/full", 4)],
)
def test_a_closed_or_full_stream_costs_the_view_and_not_the_run(
    ui: str, closed: str, code: int, short_clip: Path, tmp_path: Path
) -> None:
    line = f'exec "$0" -m console render "$1" -o o.mp4 -w 1 --part 60 --ui {ui} {closed}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, short_clip],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == code, done.stderr
    assert (tmp_path / "o.mp4").exists() and not (tmp_path / "o.mp4.uneven").exists()
    if code:
        lost = "uneven: the JSON could not be written to standard output: No space left on device"
        assert done.stderr == f"{lost}; the output is in place\n"
    else:
        assert "Traceback" not in done.stderr


def test_a_terminal_of_no_width_is_one_of_80_columns(short_clip: Path, tmp_path: Path) -> None:
    """As under ``script`` without a terminal, ``expect`` and in CI."""
    command = [sys.executable, "-m", "console", "render", str(short_clip), "-o", "o.mp4", "-w", "1"]
    screen = Screen([*command, "--ui", "plain"], tmp_path, columns=0)
    try:
        code, said = screen.finish()
    finally:
        screen.close()
    lines = said.splitlines()
    assert code == 0
    assert any("stitch: joining the parts" in line for line in lines)
    assert any(line.startswith("packets sha256  ") and len(line) == 80 for line in lines)


@pytest.mark.parametrize("ui", ["tui", "plain"])
def test_a_terminal_that_is_closed_drains_the_run(ui: str, clip: Path, tmp_path: Path) -> None:
    """The window is closed: SIGHUP comes, and whatever is written from then on fails."""
    where = ["-o", "o.mp4", "--fleet", "20,20", "--part", "12", "--preset", "ultrafast", "--ui", ui]
    screen = Screen([sys.executable, "-m", "console", "render", str(clip), *where], tmp_path, hangs_up=True)
    try:
        store = tmp_path / "o.mp4.uneven" / "store"
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (store.is_dir() and any(store.iterdir())):
            assert time.monotonic() < deadline
            if select.select([screen.master], [], [], 0.1)[0]:
                os.read(screen.master, 65536)
        os.close(screen.master)
        assert screen.process.wait(LIMIT_SECONDS) == 130
    finally:
        screen.close()
    ended = subprocess.run(
        [sys.executable, "-m", "console", "status", "o.mp4"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert "came to no end" not in ended.stdout and "interrupted" in ended.stdout, ended.stdout


@pytest.mark.parametrize(
    "arguments", ["simulate --frames 480", "compare --fleets A fair", "runs", "--help", "clean --dry-run"]
)
def test_a_result_that_can_not_be_written_is_an_error(arguments: str, tmp_path: Path) -> None:
    line = f'exec "$0" -m console {arguments} >/dev/full'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 4
    said = "uneven: standard output can't be written: No space left on device; the result is lost\n"
    assert done.stderr == said
