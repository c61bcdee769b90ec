"""Run one function in a child process and take its result: probe, measure, stitch, verify.

A native crash, a hang or a stray print of a media library stays in the child. The function is named by a
string and imported there. What it returns must be picklable by types that live outside ``farm.media``: this
side refuses to import media code for the sake of a result.
"""

from __future__ import annotations

import asyncio
import io
import pickle
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import msgspec

import farm.errors
from farm.engines.forkserver import (
    EXIT_UNKNOWN,
    ServerLost,
    describe_exit,
    end_child,
    kill_child,
    kill_server,
    resolve,
    signal_name,
    start_child,
)
from farm.errors import UnevenError

#: How long a child may take to end after it handed over its result.
EXIT_SECONDS = 1.0

#: How long the fork server may take to start a child that is no longer wanted.
CANCEL_SECONDS = 2.0

#: A step of progress smaller than this isn't sent, so that a call per frame costs nothing.
PROGRESS_STEP = 0.001

#: Without news from the child, what was heard last is told again that often.
REPEAT_SECONDS = 1.0

_LOG_LINES = 20
_LOG_TAIL_BYTES = 16 << 10


class ChildFailed(Exception):
    """The function raised something that is our own bug; ``traceback`` is the child's, as text."""

    def __init__(self, target: str, summary: str, traceback: str) -> None:
        self.traceback = traceback
        super().__init__(f"{target} failed in a child process: {summary}\n{traceback}")


class ChildCrashed(Exception):
    """The child ended without a result; ``signal_name`` is None if it exited of itself."""

    def __init__(self, target: str, code: int, log_lines: tuple[str, ...]) -> None:
        self.exit_code = code
        self.signal_name = signal_name(code)
        self.log_lines = log_lines
        story = "\n".join(("", *log_lines)) if log_lines else ""
        super().__init__(f"{target} crashed in a child process: {describe_exit(code)}{story}")


async def run_in_child(
    target: str, *args: object, log: Path, on_progress: Callable[[float], None] | None = None
) -> object:
    """What ``target`` ("package.module:function") returns for ``args``, run in a child process.

    The child's output is appended to ``log``. With ``on_progress`` the function gets a keyword argument of
    that name, to be called with 0.0 to 1.0; the calls arrive in this event loop, about a thousand at most if
    they never run backwards. Cancelling kills the child.

    Raises what the function raised if it is an UnevenError; ChildFailed for any other exception;
    ChildCrashed if the child ended without a result.
    """
    loop = asyncio.get_running_loop()

    def report(fraction: float) -> None:
        assert on_progress is not None
        loop.call_soon_threadsafe(on_progress, fraction)

    run = _ChildRun(target, args, log, None if on_progress is None else report)
    job = loop.run_in_executor(None, run.result)
    job.add_done_callback(_take_note)
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        run.cancel()
        await asyncio.wait([job])
        raise


def _take_note(job: asyncio.Future[object]) -> None:
    """An error that nobody is left to hear, because whoever asked was cancelled, is no error."""
    if not job.cancelled():
        job.exception()


def run_in_child_blocking(
    target: str, *args: object, log: Path, on_progress: Callable[[float], None] | None = None
) -> object:
    """``run_in_child`` for callers without an event loop; ``on_progress`` is called in this thread, and again
    with what it heard last while there is nothing new, so that who waits can be told that it goes on."""
    return _ChildRun(target, args, log, on_progress, repeat=True).result()


# --- what travels from the child to us


class _Progress(msgspec.Struct, frozen=True):
    fraction: float


class _Result(msgspec.Struct, frozen=True):
    value: object


class _Refusal(msgspec.Struct, frozen=True):
    """An UnevenError, by the names of its classes: the first that farm.errors knows is raised here."""

    names: tuple[str, ...]
    sentence: str  #: what it says; the class that says it may not be known here
    attributes: dict[str, object]


class _Failure(msgspec.Struct, frozen=True):
    summary: str
    traceback: str


class _ResultUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "av" or module.startswith("farm.media"):
            raise pickle.UnpicklingError(f"a result may not hold a {module}.{name}")
        return super().find_class(module, name)


class _ChildRun:
    """One call in one child, driven by a thread that may block; ``cancel`` comes from any other."""

    def __init__(
        self,
        target: str,
        args: tuple[object, ...],
        log: Path,
        on_progress: Callable[[float], None] | None,
        *,
        repeat: bool = False,
    ) -> None:
        self._target = target
        self._args = args
        self._log = log
        self._on_progress = on_progress
        self._repeat = repeat and on_progress is not None
        self._lock = threading.Lock()
        self._process: ForkServerProcess | None = None
        self._starting = True
        self._cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._process is not None:
                kill_child(self._process)
            elif self._starting:
                hurry = threading.Timer(CANCEL_SECONDS, self._stop_start)
                hurry.daemon = True
                hurry.start()

    def _stop_start(self) -> None:
        if self._starting:
            kill_server()

    def result(self) -> object:
        log_start = self._log.stat().st_size if self._log.exists() else 0
        reader, writer = Pipe(duplex=False)
        with reader:
            try:
                with writer:
                    process = self._start(writer)
            except ServerLost as error:
                raise ChildCrashed(self._target, EXIT_UNKNOWN, ()) from error
            finally:
                self._starting = False
            with self._lock:
                self._process = process
                if self._cancelled:
                    kill_child(process)
            grace = 0.0
            try:
                outcome = self._receive(reader)
                grace = EXIT_SECONDS
            finally:
                with self._lock:
                    self._process = None
                code = end_child(process, grace)
        match outcome:
            case _Result(value):
                return value
            case _Refusal():
                raise _revive(outcome)
            case _Failure(summary, text):
                raise ChildFailed(self._target, summary, text)
            case _:
                raise ChildCrashed(self._target, code, _tail(self._log, log_start))

    def _start(self, writer: Connection[Any, Any]) -> ForkServerProcess:
        return start_child(
            "farm.engines.child:_serve",
            (writer, self._target, self._args, self._on_progress is not None),
            name=self._target,
            log=self._log,
        )

    def _receive(self, reader: Connection[Any, Any]) -> object:
        """The outcome, or None if the child ended without one."""
        heard = 0.0
        while True:
            try:
                while self._repeat and not reader.poll(REPEAT_SECONDS):
                    self._tell(heard)
                data = reader.recv_bytes()
            except (EOFError, OSError):
                return None
            message: object = _ResultUnpickler(io.BytesIO(data)).load()
            if not isinstance(message, _Progress):
                return message
            heard = message.fraction
            self._tell(heard)

    def _tell(self, fraction: float) -> None:
        if self._on_progress is not None:
            self._on_progress(fraction)


def _revive(refusal: _Refusal) -> UnevenError:
    kind = next(getattr(farm.errors, name) for name in refusal.names if hasattr(farm.errors, name))
    error: UnevenError = kind.__new__(kind)
    error.args = (refusal.sentence,)
    error.__dict__.update(refusal.attributes)
    return error


def _tail(log: Path, start: int) -> tuple[str, ...]:
    try:
        with log.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(max(start, size - _LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(text.splitlines()[-_LOG_LINES:])


# --- in the child


def _serve(writer: Connection[Any, Any], target: str, args: tuple[object, ...], wants_progress: bool) -> None:
    last = -1.0

    def on_progress(fraction: float) -> None:
        nonlocal last
        if abs(fraction - last) >= PROGRESS_STEP or (fraction >= 1.0 > last):
            last = fraction
            writer.send(_Progress(fraction))

    try:
        function = resolve(target)
        value = function(*args, on_progress=on_progress) if wants_progress else function(*args)
        data = pickle.dumps(_Result(value))
    except UnevenError as error:
        names = tuple(kind.__name__ for kind in type(error).__mro__)
        data = pickle.dumps(_Refusal(names, str(error), error.__dict__))
    except BaseException as error:
        summary = traceback.format_exception_only(error)[-1].strip()
        data = pickle.dumps(_Failure(summary, traceback.format_exc()))
    writer.send_bytes(data)
    writer.close()
