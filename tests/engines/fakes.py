"""What the engine tests run in child processes: a scripted worker, and functions for ``run_in_child``."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from farm.engines.base import FrameSplitter, frame
from farm.errors import InputError, VerificationError
from farm.worker.spec import WorkerSpec


def scripted(spec: WorkerSpec, sock: socket.socket) -> None:
    """A worker that does what the messages say, until end of file."""
    splitter = FrameSplitter()
    sock.sendall(frame(b"hello from " + spec.name.encode()))
    while data := sock.recv(1 << 16):
        splitter.feed(data)
        while (message := splitter.next()) is not None:
            verb, _, rest = message.partition(b":")
            match verb:
                case b"burst":
                    for number in range(int(rest)):
                        sock.sendall(frame(b"%d" % number))
                case b"last words":
                    sock.sendall(b"".join(frame(b"%d" % number) for number in range(int(rest))))
                    os._exit(0)
                case b"exit":
                    os._exit(int(rest))
                case b"garbage":
                    sock.sendall(struct.pack(">I", 0xFFFFFFFF) + b"garbage")
                case b"hang up":
                    sock.sendall(b"".join(frame(b"%d" % number) for number in range(int(rest))))
                    sock.close()
                    threading.Event().wait()
                case b"deaf":
                    threading.Event().wait()
                case b"print":
                    print("printed by a worker")
                    print("complained by a worker", file=sys.stderr, flush=True)
                    sys.stdout.flush()
                    sock.sendall(frame(b"printed"))
                case b"modules":
                    sock.sendall(frame(",".join(sorted(sys.modules)).encode()))
                case b"signals":
                    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                        os.kill(os.getpid(), number)
                    sock.sendall(frame(b"still here"))
                case _:
                    sock.sendall(frame(message))


def deaf(spec: WorkerSpec, sock: socket.socket) -> None:
    """A worker that never looks at its socket and sends a few bytes to show it is there."""
    sock.sendall(frame(b"deaf"))
    while True:
        time.sleep(60)


def broken(spec: WorkerSpec, sock: socket.socket) -> None:
    raise RuntimeError("this worker can't start")


class Odd(InputError):
    """Not known to farm.errors."""

    def __init__(self, path: str, frames: int) -> None:
        super().__init__(f"{path}: {frames} frames are odd")
        self.frames = frames


class Damaged(VerificationError):
    """Keeps its facts in ``args``, as an error that is pickled must."""

    def __init__(self, part: int, reason: str) -> None:
        super().__init__(part, reason)
        self.part = part

    def __str__(self) -> str:
        return f"part {self.part} can't be used: {self.args[1]}"


def double(value: int) -> int:
    print("a stray print")
    return value * 2


def count_up(steps: int, on_progress: Callable[[float], None]) -> str:
    for step in range(steps):
        on_progress(step / steps)
    on_progress(1.0)
    return "counted"


def rest_halfway(path: str, on_progress: Callable[[float], None]) -> str:
    """Until there is a file at ``path``."""
    on_progress(0.5)
    while not Path(path).exists():
        time.sleep(0.01)
    return "rested"


def refuse(path: str) -> None:
    raise InputError(f"{path} is not a video")


def refuse_oddly(path: str) -> None:
    raise Odd(path, 7)


def refuse_damage() -> None:
    raise Damaged(3, "cut off")


def fail() -> None:
    raise ZeroDivisionError("one over none")


def crash() -> None:
    print("about to crash", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(code: int) -> None:
    os._exit(code)


def forever(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(str(os.getpid()))
    while True:
        time.sleep(60)


class Unpicklable:
    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("can't be sent")


def unpicklable() -> object:
    return Unpicklable()


def modules() -> list[str]:
    return sorted(sys.modules)


class _Media:
    def __reduce__(self) -> str | tuple[object, ...]:
        return _from_media, ()


def _from_media() -> None: ...


_from_media.__module__ = "farm.media"
_from_media.__qualname__ = "MediaThing"


def media_result() -> object:
    import farm.media

    farm.media.MediaThing = _from_media  # type: ignore[attr-defined]
    return _Media()
