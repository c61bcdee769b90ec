"""A worker's story on disk: one log per attempt, and one of its own for what lies between attempts.

File descriptors 1 and 2 of the process point at the log of the claim in hand, so that what an encoder prints
stands beside the step that made it print.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Protocol

from farm.engines.forkserver import redirect_output


def file_safe(token: str) -> str:
    """A claim token as part of a file name: ``c12#3@e2`` becomes ``c12.3.e2``."""
    return token.replace("#", ".").replace("@", ".").replace("/", ".")


class Log(Protocol):
    def begin(self, token: str) -> None:
        """What follows is about this claim."""
        ...

    def end(self) -> None:
        """What follows is about no claim."""
        ...

    def line(self, text: str) -> None:
        """One step of the story. Callable from any thread."""
        ...


class FileLog:
    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker

    def begin(self, token: str) -> None:
        redirect_output(self._folder / f"{self._worker}-{file_safe(token)}.log")

    def end(self) -> None:
        redirect_output(self._folder / f"{self._worker}.log")

    def line(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}\n".encode(errors="backslashreplace")
        with contextlib.suppress(OSError):  # a full disk must not end the work for want of its story
            os.write(1, line)
