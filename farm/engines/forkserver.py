"""Child processes by multiprocessing's fork server: one starts in about 10 ms with av loaded, and the process
that starts them, which holds the books and the terminal, never loads it.

What each rule here is for (measured, engines.md §4):
- the server is started with SIGINT, SIGTERM and SIGHUP blocked, and children ignore them: a signal to the
  whole process group reaches the console only, which then drains with its workers alive; they ignore SIGTSTP
  as well, since the console stops them when it is stopped;
- standard error is the real one while a child starts: Textual replaces it by an object without a file
  descriptor, and multiprocessing passes that on and fails;
- the caller's ``__main__`` is hidden while a child starts: each child would import it again, and with it the
  whole command line;
- a child's first act is to send its standard output and error to a log; they'd land on the terminal;
- a child waits in a thread for its parent's death. (End of file on its channel comes too late for a child
  that is busy, and PR_SET_PDEATHSIG does not work under a fork server, which outlives the parent.) A child
  that is stopped can't: for that there is the reaper;
- nobody waits for the server for ever: one that doesn't answer is killed, and the next start makes a new one.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection, forkserver, resource_tracker, util
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil

from farm.engines.reaper import Reaper
from farm.scratch import Scratch, socket_root

#: Imported once by the fork server, by name: never in this process.
PRELOAD = ("av", "farm.media.tasks", "farm.worker.main")

#: What multiprocessing reports when the fork server itself ended: the child's fate is unknown.
EXIT_UNKNOWN = 255

#: How long the server may take to start a child: a busy machine needs seconds to import PRELOAD.
START_SECONDS = 60.0

#: How long the server may take to say that a child has ended.
REPORT_SECONDS = 1.5

_SHIELDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# multiprocessing keeps one server and one list of children a process, and both starting and polling a child
# may read the exit status of another; two threads that do so at once make a status 255.
_lock = threading.RLock()
_reaper = Reaper()


class ServerLost(Exception):
    """The fork server ended, or had to be killed, while it should start a child."""


def prepare(preload: Sequence[str] = PRELOAD) -> None:
    """Start the fork server if it is not running. Call before a Textual app starts; costs the caller a few
    milliseconds, since the server imports ``preload`` by itself. Callable from any thread."""
    with _lock, _real_stderr():
        _keep_address_in_scratch()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
        try:
            resource_tracker.ensure_running()  # ends with SIGINT and SIGTERM unblocked, so it comes first
            signal.pthread_sigmask(signal.SIG_BLOCK, _SHIELDED)
            multiprocessing.set_forkserver_preload(list(preload))
            before_pid = server_pid()
            forkserver.ensure_running()
            pid = server_pid()
            if pid is not None and pid != before_pid:
                _reaper.watch(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _keep_address_in_scratch() -> None:
    """Have the server's socket in a folder of ours: of a killed process multiprocessing's own stays for
    ever, ours goes with the next start."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None:
        scratch = Scratch(socket_root())
        config["tempdir"] = str(scratch.path)
        util.Finalize(None, scratch.remove, exitpriority=-100)


def start_child(
    target: str, args: tuple[object, ...], *, name: str, log: Path, preload: Sequence[str] = PRELOAD
) -> ForkServerProcess:
    """Start a child that calls ``target`` ("package.module:function"), imported there, with ``args``.

    Sockets and connections in ``args`` are duplicated; close your own ends afterwards. The child's output is
    appended to ``log``, or lost if that can't be opened. Blocks until the child exists. Raises OSError if
    the system has no process or descriptor left, ServerLost if the server doesn't answer.
    """
    with _lock, _real_stderr(), _hidden_main():
        prepare(preload)
        process = multiprocessing.get_context("forkserver").Process(
            target=_enter, args=(target, args, log), name=name, daemon=True
        )
        patience = threading.Timer(START_SECONDS, kill_server)
        patience.daemon = True
        patience.start()
        try:
            process.start()
        except (EOFError, BrokenPipeError, ConnectionError) as error:
            _await_end_of_server()
            raise ServerLost("the fork server doesn't answer") from error
        finally:
            patience.cancel()
    if process.pid is not None:
        _reaper.watch(process.pid)
    return process


def server_pid() -> int | None:
    """The fork server's pid, None if none was started."""
    pid: int | None = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return pid


def kill_server() -> None:
    """SIGKILL for the fork server: whoever waits for it goes on, and its children's fate is unknown. Waits
    for nothing, so it may be called while another thread waits for the server."""
    pid = server_pid()
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _await_end_of_server() -> None:
    """Let the server's end be seen by the next start, which else would turn to it once more. The status is
    left for multiprocessing to collect."""
    kill_server()
    pid = server_pid()
    if pid is not None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def exit_code(process: ForkServerProcess) -> int | None:
    """The exit code, minus the signal's number for a death by signal. None while it runs, or while another
    thread starts a child: then it can't be asked for, and waiting might take long."""
    if not _lock.acquire(blocking=False):
        return None
    try:
        return process.exitcode
    finally:
        _lock.release()


def send_signal(process: ForkServerProcess, number: signal.Signals) -> None:
    """Signal a child; does nothing if it has ended. Waits for nothing."""
    if process.pid is not None and not connection.wait([process.sentinel], 0):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def kill_child(process: ForkServerProcess) -> None:
    """SIGKILL; does nothing if it has ended. Waits for nothing."""
    send_signal(process, signal.SIGKILL)


def has_ended(pid: int | None) -> bool:
    """Whether a child has ended, by the system's word: the fork server's may not come."""
    try:
        return pid is None or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


def end_child(process: ForkServerProcess, grace_seconds: float = 0.0) -> int:
    """Wait up to ``grace_seconds`` for the end, then kill; free what it held and return its exit code."""
    if not connection.wait([process.sentinel], grace_seconds):
        kill_child(process)
        while not connection.wait([process.sentinel], REPORT_SECONDS):
            if has_ended(process.pid):
                kill_server()
    with _lock:
        process.join()
        code = process.exitcode
        process.close()
    assert code is not None
    return code


def describe_exit(code: int) -> str:
    """The end of a child in words."""
    if code == EXIT_UNKNOWN:
        return "lost sight of it: the fork server ended"
    if code < 0:
        return f"killed by {signal_name(code)}"
    return "exited" if code == 0 else f"exited with code {code}"


def signal_name(code: int) -> str | None:
    """The signal that ended a child, or None if none did."""
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def resolve(target: str) -> Callable[..., object]:
    """The function a name stands for. Raises ImportError, AttributeError."""
    module, _, function = target.partition(":")
    found: Callable[..., object] = getattr(importlib.import_module(module), function)
    return found


def _enter(target: str, args: tuple[object, ...], log: Path) -> None:
    """The first of our code that runs in a child."""
    redirect_output(log)
    for number in (*_SHIELDED, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SHIELDED)
    threading.Thread(target=_end_with_parent, name="parent watch", daemon=True).start()
    if "UNEVEN_CRASHTEST" in os.environ:
        from farm.crashtest.probe import install_if_asked

        install_if_asked(multiprocessing.current_process().name)
    resolve(target)(*args)


def redirect_output(log: Path) -> None:
    """Point file descriptors 1 and 2 at the end of ``log`` and 0 at nothing."""
    sys.stdout.flush()
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError:
        output = os.dup(nothing)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(nothing)
    os.close(output)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


@contextlib.contextmanager
def _real_stderr() -> Iterator[None]:
    with contextlib.redirect_stderr(sys.__stderr__):
        yield


@contextlib.contextmanager
def _hidden_main() -> Iterator[None]:
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
