"""A process that outlives the console for a moment, to end what the console can't any more.

Children end by themselves when the console dies; one that is stopped (SIGSTOP) can't, and with it the fork
server stays. So the console tells a reaper of every process it starts, one pid a line. End of file means that
the console is gone: what is left then gets SIGKILL, which a stopped process obeys as well. Each pid is looked
up as it is told, so that a later process of the same number isn't taken for it.

Rules of this file: run as a script, it imports psutil and the standard library only. It is in a session of
its own, where no signal of a terminal reaches it, and ends with the console, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable

#: Processes that ended are forgotten whenever so many are known.
_KNOWN_MAX = 256


class Reaper:
    """Our end of it; one a process. Callable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """None before anything was watched."""
        return None if self._process is None else self._process.pid

    def watch(self, pid: int) -> None:
        """Have that process killed if it is still there when this one is gone. What can't be watched, because
        the system has no process left for it, isn't: that is no reason not to work."""
        with self._lock, contextlib.suppress(OSError):
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._process is not None and self._process.stdin is not None
            os.write(self._process.stdin.fileno(), b"%d\n" % pid)

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", os.path.abspath(__file__)],  # noqa: PTH100
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def reap(lines: Iterable[str]) -> None:
    """Watch the pids in ``lines`` until there are no more; then kill those that are still there."""
    import psutil

    known: list[psutil.Process] = []
    for line in lines:
        if len(known) >= _KNOWN_MAX:
            known = [process for process in known if process.is_running()]
        with contextlib.suppress(psutil.Error, ValueError):
            known.append(psutil.Process(int(line)))
    for process in known:
        with contextlib.suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    reap(iter(sys.stdin.readline, ""))
