"""Writing to a stream that somebody else may close: a pipe to ``head``, a terminal that went away.

Losing the reader costs the view, never the run: the first failure makes the stream a sink.
"""

from __future__ import annotations

import os
from typing import Protocol, TypeVar

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
        _to_nowhere(stream)
        return error
    except ValueError as error:
        return error
    return None


def _to_nowhere(stream: Stream[_Data]) -> None:
    """Python flushes the stream once more when it exits, which would fail again and loudly."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, number)
    os.close(sink)
