"""A process that outlives a console that is killed, for the moment it takes to give the terminal back.

A console that gets SIGKILL, or dies in native code, restores nothing: the shell is left on the alternate
screen, raw, with mouse codes for input. So while a console has the terminal, a keeper waits at the end of a
pipe. End of file without a word means that the console is gone, and the keeper does what it could not.

Rules of this file:
- run as a script it imports the standard library only, and is in a session of its own, where no signal of the
  terminal reaches it and where it may set the line though it isn't in the foreground;
- a console that gave the terminal back (its end, Ctrl-Z) has no keeper: the screen is somebody else's then;
- the line is set only while it is as a console leaves it. A shell that was faster keeps what it has set.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import termios
from typing import Any

#: What a console may have switched on, off again: paste, no wrap, resize, mouse, keys, alternate screen,
#: cursor, focus.
RESTORE = (
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l\x1b[0m"
)
_GIVEN = b"given\n"
_LFLAG, _CC = 3, 6
#: How long a keeper tries to write to a terminal that doesn't read.
_TRY_SECONDS = 5
_END_SECONDS = 1.0


class Keeper:
    """The console's end of it. Without a process to spare there is none, which is no reason not to show."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def taken(self, terminal: int) -> None:
        """The console is about to take the terminal, whose line is still as it will have to be again."""
        self.given()
        with contextlib.suppress(OSError, termios.error):
            line = termios.tcgetattr(terminal)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", os.path.abspath(__file__)],  # noqa: PTH100
                stdin=subprocess.PIPE,
                stdout=terminal,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._process.stdin.write(json.dumps(_plain(line)).encode() + b"\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]

    def given(self) -> None:
        """The terminal is as it was."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                process.communicate(_GIVEN, timeout=_END_SECONDS)


def _plain(line: list[Any]) -> list[Any]:
    """Settings of a line as JSON can have them."""
    return [*line[:_CC], [c[0] if isinstance(c, bytes) else c for c in line[_CC]]]


def keep(pipe: int, terminal: int) -> None:
    """Wait for the end of ``pipe``; restore the terminal unless it was given back."""
    said = b""
    while data := os.read(pipe, 4096):
        said += data
    if said.endswith(_GIVEN):
        return
    if hasattr(signal, "alarm"):
        signal.alarm(_TRY_SECONDS)
    with contextlib.suppress(OSError, ValueError, termios.error):
        before = json.loads(said)
        now = termios.tcgetattr(terminal)
        if not now[_LFLAG] & (termios.ICANON | termios.ISIG):
            termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
    with contextlib.suppress(OSError):
        os.write(terminal, RESTORE)


if __name__ == "__main__":
    keep(0, 1)
