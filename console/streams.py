"""Writing to a stream that somebody else may close: a pipe to ``head``, a terminal that went away.

Rules of this file:
- losing the reader costs the view, never the run: the first failure makes the stream a sink;
- words on standard error (``tell``) never fail, whoever is gone;
- a result on standard output (``give``) that can't be written is an error with a code, but for a reader that
  has left, who has had enough.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Protocol, TypeVar

from farm.errors import OutputError

_Data = TypeVar("_Data", str, bytes, contravariant=True)


class Stream(Protocol[_Data]):
    """What is needed of a text or binary stream."""

    def write(self, data: _Data, /) -> object: ...

    def flush(self) -> None: ...

    def fileno(self) -> int: ...


def pour(stream: Stream[_Data], data: _Data) -> bool:
    """Write and flush. False: nobody reads any more, and what is left in the stream's buffer goes nowhere."""
    return attempt(stream, data) is None


def attempt(stream: Stream[_Data], data: _Data) -> OSError | ValueError | None:
    """As ``pour``; returns what went wrong: BrokenPipeError when the reader left, ValueError when the stream
    is closed on our side."""
    try:
        stream.write(data)
        stream.flush()
    except OSError as error:
        gone = error.errno == errno.EIO and _is_device(stream)
        _to_nowhere(stream)
        return BrokenPipeError(errno.EPIPE, "the terminal is gone") if gone else error
    except ValueError as error:
        return error
    return None


def tell(words: str) -> None:
    """A line, or some, on standard error."""
    pour(sys.stderr, words + "\n")


def give(result: str | bytes) -> bool:
    """Write a result to standard output. False: the reader has left. Raises OutputError."""
    lost = attempt(sys.stdout.buffer, result) if isinstance(result, bytes) else attempt(sys.stdout, result)
    if lost is None or isinstance(lost, BrokenPipeError):
        return lost is None
    raise OutputError(unwritten(lost))


def give_line(line: str) -> bool:
    """As ``give``, with an end of line."""
    return give(line + "\n")


def unwritten(lost: OSError | ValueError) -> str:
    return f"standard output can't be written: {cause(lost)}; the result is lost"


def cause(lost: OSError | ValueError) -> str:
    return getattr(lost, "strerror", None) or str(lost)


def _is_device(stream: Stream[_Data]) -> bool:
    """A terminal is one, also when it was closed."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _to_nowhere(stream: Stream[_Data]) -> None:
    """Python flushes the stream once more when it exits, which would fail again and loudly."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, number)
    os.close(sink)
