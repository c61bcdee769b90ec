"""``--detach``: a run that goes on without a terminal.

The command starts itself anew, in a session of its own, and waits until that one has begun to work or has
failed. So a detached run goes through the same checks as any other, and nothing with threads is ever forked.

Rules of this file:
- what the new process has to say before it began is handed on to standard error when it is known whether it
  did; its errors and exit codes are those of the command;
- it keeps no stream of its caller open: who waits for the end of a pipe (ssh, a script) is not kept waiting;
- from the start of the work on, its words are in ``logs/run.log`` of the run folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from console.interrupts import hold_interrupts
from console.streams import give_line
from farm.errors import ExitCode, OutputError, UsageError
from farm.paths import printable, reason

if TYPE_CHECKING:
    import typer

LOG_NAME = "run.log"
_STARTED_BYTES_MAX = 64 << 10
_FAREWELL_SECONDS = 10.0


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What the new process says when it has begun."""

    run_id: str
    pid: int
    log: str


class Report:
    """The new process's line to who started it."""

    def __init__(self, handle: int) -> None:
        os.set_inheritable(handle, False)
        self._handle: int | None = handle

    def started(self, run_id: str, logs: Path) -> None:
        """The work begins: say so, and let go of everything that is the caller's. Raises OutputError."""
        assert self._handle is not None
        log = logs.absolute() / LOG_NAME
        try:
            written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise OutputError(f"the log {printable(log)} can't be written: {reason(error)}") from error
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.dup2(written, 1)
        os.dup2(written, 2)
        os.close(written)
        said = Started(run_id=run_id, pid=os.getpid(), log=str(log))
        with suppress(BrokenPipeError):  # the caller was killed; the run goes on
            os.write(self._handle, msgspec.json.encode(said))
        os.close(self._handle)
        self._handle = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """How the command was called; the ``obj`` of typer's context. ``report``: of a detached run's process."""

    arguments: Sequence[str]
    report: Report | None = None

    @property
    def goes_alone(self) -> bool:
        return self.report is not None


def invocation(context: typer.Context) -> Invocation:
    """How the command that ``context`` is of was called."""
    return context.obj if isinstance(context.obj, Invocation) else Invocation(())


def ui_of_detached(ui: str) -> str:
    """What a run without a terminal writes to its log. Raises UsageError for a view that needs one."""
    if ui not in ("auto", "plain", "none"):
        raise UsageError(
            f"--ui {ui} and --detach exclude each other; look at the run with 'uneven attach --ui {ui}'"
        )
    return "none" if ui == "none" else "plain"


def start_detached(arguments: Sequence[str]) -> int:
    """Have the same command done by a process that goes on by itself; returns the exit code, which is 0 as
    soon as the work has begun. Raises OutputError if there can be no such process."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as words, os.fdopen(reader, "rb") as line:
        let_go = hold_interrupts()  # a process that isn't known yet could not be ended
        try:
            process = _start(arguments, writer, words)
        except OSError as error:
            let_go()
            raise OutputError(f"the run can't be started: {reason(error)}") from error
        finally:
            os.close(writer)
        try:
            let_go()
            said = line.read(_STARTED_BYTES_MAX)
            code = None if said else process.wait()
        except BaseException:  # Ctrl-C: one that has begun by now drains
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_FAREWELL_SECONDS)
            raise
        _hand_on(words)
    if code is None:
        give_line(_told(msgspec.json.decode(said, type=Started)))
        return ExitCode.DONE
    if code < 0:
        raise OutputError(
            f"the run's process was killed ({signal.Signals(-code).name}) before it began to work"
        )
    return code


def _start(arguments: Sequence[str], report: int, words: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "console.detached", str(report), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=words,
        stderr=words,
        pass_fds=(report,),
        start_new_session=True,
    )


def _hand_on(words: IO[bytes]) -> None:
    words.seek(0)
    sys.stderr.flush()
    with open(sys.stderr.fileno(), "wb", closefd=False) as stream:
        shutil.copyfileobj(words, stream)


def _told(started: Started) -> str:
    name = shlex.quote(started.run_id)
    return "\n".join(
        (
            f"{started.run_id} runs on by itself (process {started.pid})",
            f"look at it     uneven attach {name}",
            f"how it stands  uneven status {name}",
            f"end it         uneven stop {name}",
            f"its words      {printable(started.log)}",
        )
    )
