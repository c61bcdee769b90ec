"""Ctrl-Z: the workers stop with the process that has their books, and go on with it.

Rules of this file:
- workers ignore the terminal's own SIGTSTP (farm.engines.forkserver) and are stopped from here, so that one
  that was frozen before stays frozen afterwards;
- we stop ourselves by SIGTSTP, which the kernel passes over where nobody could ever say ``fg`` (a session
  without job control); then everything goes on at once;
- leases don't run meanwhile: relay and workers don't count the time in which they were stopped.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import psutil


@contextlib.contextmanager
def workers_stopped() -> Iterator[None]:
    """Within it, our processes are stopped; after it they go on, but for those that were stopped before."""
    moving: list[psutil.Process] = []
    frozen: list[psutil.Process] = []
    for process in _ours():
        with contextlib.suppress(psutil.Error):
            # The terminal may have stopped the fork server a moment ago; workers it can't stop.
            worker = process.ppid() != os.getpid()
            stopped = worker and process.status() == psutil.STATUS_STOPPED
            (frozen if stopped else moving).append(process)
    _each(moving, signal.SIGSTOP)
    try:
        yield
    finally:
        _each(frozen, signal.SIGSTOP)  # ``fg`` thaws the whole process group
        _each(moving, signal.SIGCONT)


def stop_here() -> None:
    """Stop this process until somebody lets it go on. Main thread only."""
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, handler)


class StopKey:
    """Ctrl-Z without the console, which has a way of its own. Install it in the main thread."""

    def install(self) -> None:
        """Take over from what SIGTSTP does by default; where it is ignored it stays so."""
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not the main thread: an app under test
                signal.signal(signal.SIGTSTP, self._stop)
                signal.signal(signal.SIGCONT, signal.SIG_DFL)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        with workers_stopped():
            stop_here()


def _ours() -> list[psutil.Process]:
    """The processes under this one in its process group: not the reaper, which must never sleep."""
    group = os.getpgrp()
    ours = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError):
            if os.getpgid(process.pid) == group:
                ours.append(process)
    return ours


def _each(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)
