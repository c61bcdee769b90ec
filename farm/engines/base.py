"""The engine boundary: how workers come to exist and how bytes reach them.

Rules:
- an engine carries messages as opaque bytes and knows nothing of chunks, leases or time;
- what it says about deaths only makes the relay faster. ``gone(sure=True)`` means the process has ended and
  its claims can be taken at once; ``sure=False`` means contact was lost, which is left to the lapse;
- for each worker the order is: one ``up``, any number of ``message`` in the order they were sent, one
  ``gone``. Nothing follows ``gone``;
- on a byte stream every message is preceded by its length, four bytes, big endian (``frame``,
  ``FrameSplitter``); a length above FRAME_LIMIT_BYTES is a protocol error and ends the worker.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

from farm.worker.spec import WorkerSpec

#: Longest message on the wire; a block of a part is at most 5 MiB (DESIGN.md §6).
FRAME_LIMIT_BYTES = 8 << 20

_LENGTH = struct.Struct(">I")


class EngineEvents(Protocol):
    """What an engine reports. Called in the engine's event loop; must not block."""

    def up(self, worker: str, pid: int | None, host: str) -> None:
        """The worker's process exists and can be sent to. ``host`` is empty on this machine."""
        ...

    def message(self, worker: str, data: bytes) -> None:
        """A whole message arrived."""
        ...

    def gone(self, worker: str, reason: str, sure: bool) -> None:
        """The worker ended (``sure``) or was lost sight of; ``reason`` is a phrase for people."""
        ...


class Engine(Protocol):
    """All methods are called in one event loop."""

    async def start(self, specs: Sequence[WorkerSpec], events: EngineEvents) -> None:
        """Start the workers in this order. Raises UsageError if one can't be started; those that were
        started are stopped again."""
        ...

    def send(self, worker: str, data: bytes) -> None:
        """Send a message. Never blocks; does nothing if the worker is gone."""
        ...

    def hold_reading(self, hold: bool) -> None:
        """Back-pressure: while held, no worker's messages are read and none is reported, nor a ``gone`` that
        unread messages precede. Nothing is lost."""
        ...

    def stall(self, worker: str, stalled: bool) -> None:
        """Freeze a worker or thaw it. Does nothing if the worker is gone."""
        ...

    async def kill(self, worker: str) -> None:
        """End a worker at once; returns when its process has ended."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Close every connection, which tells workers to end, wait up to ``grace_seconds``, then kill. When
        this returns no worker process is left and each worker was reported gone."""
        ...


class FrameError(Exception):
    """A byte stream that does not hold messages as agreed."""


def frame(data: bytes) -> bytes:
    """A message as it travels on a byte stream. Raises FrameError if it is too long."""
    if len(data) > FRAME_LIMIT_BYTES:
        raise FrameError(f"a message of {len(data)} bytes; at most {FRAME_LIMIT_BYTES} are allowed")
    return _LENGTH.pack(len(data)) + data


class FrameSplitter:
    """Cuts a byte stream back into messages: ``feed`` what arrived, then call ``next`` until None."""

    __slots__ = ("_buffer", "_position")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._position = 0  # of the first byte that was not handed out; what is before it goes at ``feed``

    def feed(self, data: bytes) -> None:
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
        self._buffer += data

    def next(self) -> bytes | None:
        """The next whole message, or None. Raises FrameError for a length above the limit."""
        start = self._position + _LENGTH.size
        if len(self._buffer) < start:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, self._position)
        if length > FRAME_LIMIT_BYTES:
            raise FrameError(
                f"a message of {length} bytes was announced; at most {FRAME_LIMIT_BYTES} are allowed"
            )
        if len(self._buffer) < start + length:
            return None
        self._position = start + length
        return bytes(self._buffer[start : start + length])
