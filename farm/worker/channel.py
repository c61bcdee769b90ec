"""The worker's end of its connection: questions with answers, over a blocking socket.

Any thread may send or ask. One thread reads: every answer goes to ``on_answer`` first, in the order the relay
sent it, and then wakes whoever asked; so when ``ask`` returns, what the answer says is known everywhere.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

import msgspec

from farm.engines.base import FrameError, FrameSplitter, frame
from farm.messages import AnyAnswer, AnyRequest, decode_answer, encode
from farm.worker.faults import Wire

_READ_BYTES = 256 << 10


class ChannelClosed(Exception):
    """The relay can't be reached any more; the message says why."""


class Channel:
    def __init__(
        self,
        sock: Wire,
        on_answer: Callable[[AnyAnswer], None],
        on_closed: Callable[[str], None],
    ) -> None:
        self._sock = sock
        self._on_answer = on_answer
        self._on_closed = on_closed
        self._lock = threading.Lock()  # of what follows
        self._seq = 0
        self._waiting: dict[int, Future[AnyAnswer]] = {}
        self._closed = ""
        self._send_lock = threading.Lock()  # held while a message goes out; a full socket blocks the sender
        self._reader = threading.Thread(target=self._read, name="channel", daemon=True)

    def start(self) -> None:
        self._reader.start()

    def send(self, request: AnyRequest) -> None:
        """Send without waiting for the answer. Blocks while the relay holds reading. Raises ChannelClosed."""
        self._send(request, None)

    def ask(self, request: AnyRequest, timeout_seconds: float | None = None) -> AnyAnswer:
        """Send and wait for the answer. Raises ChannelClosed, and TimeoutError if a timeout was given."""
        answer: Future[AnyAnswer] = Future()
        self._send(request, answer)
        return answer.result(timeout_seconds)

    def close(self, reason: str) -> None:
        """End the connection; everyone who waits gets ChannelClosed. The first reason is kept."""
        with self._lock:
            first = not self._closed
            self._closed = self._closed or reason
            waiting = list(self._waiting.values())
            self._waiting.clear()
        if first:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._on_closed(reason)  # before the answers fail, so that nobody begins anything in between
        for answer in waiting:
            with contextlib.suppress(InvalidStateError):
                answer.set_exception(ChannelClosed(self._closed))

    def _send(self, request: AnyRequest, answer: Future[AnyAnswer] | None) -> None:
        with self._send_lock:
            with self._lock:
                if self._closed:
                    raise ChannelClosed(self._closed)
                self._seq += 1
                seq = self._seq
                if answer is not None:
                    self._waiting[seq] = answer
            try:
                self._sock.sendall(frame(encode(msgspec.structs.replace(request, seq=seq))))
                return
            except OSError as error:
                failure = error
        self.close(f"the connection broke: {failure}")
        raise ChannelClosed(self._closed)

    def _read(self) -> None:
        splitter = FrameSplitter()
        try:
            while data := self._sock.recv(_READ_BYTES):
                splitter.feed(data)
                while (message := splitter.next()) is not None:
                    self._take(decode_answer(message))
            reason = "the relay closed the connection"
        except OSError as error:
            reason = f"the connection broke: {error}"
        except (FrameError, msgspec.DecodeError) as error:
            reason = f"the relay said something that can't be understood: {error}"
        self.close(reason)

    def _take(self, answer: AnyAnswer) -> None:
        self._on_answer(answer)
        if answer.seq is None:
            return
        with self._lock:
            waiting = self._waiting.pop(answer.seq, None)
        if waiting is not None:
            waiting.set_result(answer)
