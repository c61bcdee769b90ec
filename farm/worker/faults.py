"""The faults that are injected into this worker (farm.faults), asked for at each point where one may strike.

Nothing is wrong until the relay's shell sends ``Inject``; until then every question is answered at once. What
a fault does here it does for real: the part is damaged, the memory is full, the line is dead.

Rules of this file:
- one call at each point of the loop, the heartbeats, the channel and the delivery, and nothing more there;
- time is the worker's clock; a fault that has a length ends by itself.
"""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Protocol

import msgspec
import psutil

from farm.clock import Clock
from farm.faults import BACKOFF_SECONDS, BACKOFF_SECONDS_MAX, BAD_TOKEN, KINDS, Kind, Troubles
from farm.messages import AnyAnswer, Deliver, Inject
from farm.parts import PartFacts, PartReader, PartWriter
from farm.worker.link import LinkBroken, StoreBusy
from farm.worker.log import Log

_MIB = 1 << 20
_FOR_EVER_SECONDS = 1e6

#: Waits so many seconds; True if something made an end of it.
Sleep = Callable[[float], bool]


class Wire(Protocol):
    """What a channel needs of a socket."""

    def sendall(self, data: bytes, /) -> None: ...
    def recv(self, size: int, /) -> bytes: ...
    def shutdown(self, how: int, /) -> None: ...


class Faults:
    """All methods may be called from any thread."""

    def __init__(self, clock: Clock, log: Log) -> None:
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._troubles = Troubles()
        self._wire: CutWire | None = None

    # --- told --------------------------------------------------------------------------------------------

    def hear(self, answer: AnyAnswer) -> bool:
        """Whether it was about faults."""
        if not isinstance(answer, Inject):
            return False
        if answer.kind in KINDS:
            self._begin(answer.kind, answer.seconds, answer.amount)
        return True

    def _begin(self, kind: Kind, seconds: float | None, amount: float | None) -> None:
        length = "" if seconds is None else f" for {seconds:g} s"
        self._log.line(f"fault: {kind}{'' if amount is None else f' {amount:g}'}{length}")
        if kind == "cut" and self._wire is not None:
            self._wire.cut(seconds)
        else:
            with self._lock:
                self._troubles.begin(kind, self._clock.now(), seconds, amount)

    def _has(self, kind: Kind) -> bool:
        with self._lock:
            return self._troubles.has(kind, self._clock.now())

    def _take(self, kind: Kind) -> bool:
        if not self._troubles:
            return False
        with self._lock:
            return self._troubles.take(kind, self._clock.now())

    # --- asked -------------------------------------------------------------------------------------------

    def wire(self, sock: socket.socket) -> Wire:
        """The worker's end of its connection, which can be cut."""
        self._wire = CutWire(sock, self._clock)
        return self._wire

    @property
    def speed(self) -> float:
        """The share of its speed that is left."""
        if not self._troubles:
            return 1.0
        with self._lock:
            return self._troubles.amount("slow", self._clock.now()) or 1.0

    @property
    def mute(self) -> bool:
        """Heartbeats are lost."""
        return bool(self._troubles) and self._has("lose-heartbeats")

    def before_frame(self, sleep: Sleep) -> None:
        """Stand still for as long as that is the fault, or until ``sleep`` is cut short. Raises MemoryError
        if the memory is full."""
        while self._troubles and (left := self._standing_seconds()) is not None:
            if sleep(left):
                return
        if self._take("fill-memory"):
            with self._lock:
                mib = self._troubles.last_amount("fill-memory") or 1.0
            fill_memory(mib)

    def _standing_seconds(self) -> float | None:
        with self._lock:
            now = self._clock.now()
            until = self._troubles.until("stand-still", now)
            return None if until is None else min(until - now, _FOR_EVER_SECONDS)

    def before_delivery(self, sleep: Sleep) -> None:
        """Wait for as long as the store refuses, with backoff; or until ``sleep`` is cut short."""
        patience = BACKOFF_SECONDS
        while self._take("rate-limit"):
            self._log.line(f"the store refuses for now (rate limit); again in {patience:g} s")
            if sleep(patience):
                return
            patience = min(patience * 2, BACKOFF_SECONDS_MAX)

    def shorten(self, facts: PartFacts, path: Path) -> PartFacts:
        """The part at ``path`` before it is delivered: it may lose a frame."""
        return drop_last_packet(path) if self._take("wrong-count") else facts

    def corrupt(self, path: Path) -> None:
        """The part that came into the store at ``path`` by rename: it may be damaged."""
        if self._take("corrupt"):
            flip_byte(path, path.stat().st_size // 2)

    def block(self, part: int, index: int, data: bytes) -> bytes:
        """A block of a part before the link carries it (farm.worker.link.LinkFaults): damaged, refused with
        StoreBusy, or LinkBroken while the worker is cut off."""
        if self._take("rate-limit"):
            raise StoreBusy
        if self._wire is not None and self._wire.is_cut:
            raise LinkBroken(f"the link is cut at block {index + 1} of part {part}")
        if not self._take("corrupt"):
            return data
        middle = len(data) // 2
        return data[:middle] + bytes((data[middle] ^ 0xFF,)) + data[middle + 1 :]

    def report(self, ask: Callable[[Deliver], AnyAnswer], request: Deliver, sleep: Sleep) -> AnyAnswer:
        """``ask(request)``, unless something is wrong with the report."""
        if not self._troubles:
            return ask(request)
        if self._take("bad-id"):
            request = msgspec.structs.replace(request, token=BAD_TOKEN)
        with self._lock:
            late = self._troubles.amount("report-late", self._clock.now())
        if self._take("report-late") and late is not None:
            self._log.line(f"part {request.part}: its report is held back for {late:g} s")
            sleep(late)
        twice = self._take("report-twice")
        answer = ask(request)
        if twice:
            self._log.line(f"part {request.part}: reported once more")
            ask(request)
        return answer


# --- what is done for real ---------------------------------------------------------------------------------


def drop_last_packet(path: Path) -> PartFacts:
    """Make a part file that is right in itself and has one frame too few."""
    short = path.with_name(path.name + ".short")
    with PartReader(path) as reader:
        packets = list(reader.packets())
        footer = reader.facts().footer
        with PartWriter(short, reader.header) as writer:
            for packet in packets[:-1]:
                writer.add(packet)
            facts = writer.finish(
                frames=footer.frames - 1,
                first_frame_crc=footer.first_frame_crc,
                next_frame_crc=footer.next_frame_crc,
                lost_frames=footer.lost_frames,
                damaged_pts=footer.damaged_pts,
                resized_pts=footer.resized_pts,
                reformatted_pts=footer.reformatted_pts,
            )
    short.replace(path)
    return facts


def flip_byte(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes((byte[0] ^ 0xFF,)))


def fill_memory(mib: float) -> None:
    """Take memory until the system refuses it to this process, which it does after ``mib`` MiB more than it
    has now; give it all back and raise the MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    ceiling = psutil.Process().memory_info().vms + int(mib * _MIB)
    if soft != resource.RLIM_INFINITY:
        ceiling = min(ceiling, soft)
    blocks: list[bytes] = []
    try:
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
        while len(blocks) < mib:  # where the limit isn't heeded, this one is
            blocks.append(b"\1" * _MIB)
    except MemoryError:
        pass
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        taken = len(blocks)
        blocks.clear()
    raise MemoryError(f"the memory was full after {taken} MiB more, by an injected fault")


class CutWire:
    """A connection that can be cut for a time. What is said either way meanwhile waits, in order, and arrives
    when the cut ends, as on a TCP connection that survives."""

    def __init__(self, sock: socket.socket, clock: Clock) -> None:
        self._sock = sock
        self._clock = clock
        self._changed = threading.Condition()
        self._until: float | None = None  # clock time; None: not cut
        self._waiting: list[bytes] = []
        self._closed = False

    def cut(self, seconds: float | None) -> None:
        with self._changed:
            running = self._until is not None
            self._until = inf if seconds is None else self._clock.now() + seconds
            self._changed.notify_all()
        if not running:
            threading.Thread(target=self._heal_in_time, name="cut", daemon=True).start()

    @property
    def is_cut(self) -> bool:
        return self._until is not None

    def sendall(self, data: bytes, /) -> None:
        with self._changed:
            if self._until is not None:
                self._waiting.append(data)
            else:
                self._sock.sendall(data)

    def recv(self, size: int, /) -> bytes:
        data = self._sock.recv(size)
        if self._until is not None:
            with self._changed:
                self._changed.wait_for(lambda: self._until is None or self._closed)
        return data

    def shutdown(self, how: int, /) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._sock.shutdown(how)

    def _heal_in_time(self) -> None:
        with self._changed:
            while not self._closed and self._until is not None:
                left = self._until - self._clock.now()
                if left <= 0:
                    break
                self._changed.wait(min(left, _FOR_EVER_SECONDS))
            waiting, self._waiting = self._waiting, []
            try:
                for data in waiting if not self._closed else ():
                    self._sock.sendall(data)
            except OSError:
                pass  # whoever sends next finds out
            self._until = None
            self._changed.notify_all()
