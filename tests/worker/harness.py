"""A worker loop in a thread, a relay's end of its socket driven by the test, and a renderer without av."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from farm.clock import MonotonicClock
from farm.engines.base import FrameSplitter, frame
from farm.fleet import WorkerProfile
from farm.frames import PartGrid
from farm.messages import (
    AnyAnswer,
    AnyRequest,
    Beat,
    Bye,
    Claim,
    Complete,
    Completed,
    Declined,
    Deliver,
    Delivered,
    Granted,
    Heartbeat,
    Join,
    Leave,
    Message,
    Offer,
    Welcome,
    decode_request,
    encode,
)
from farm.parts import PartFacts, PartHeader, PartPacket, PartWriter, check_part
from farm.settings import JobSettings
from farm.worker.loop import WorkerLoop
from farm.worker.orders import Orders
from farm.worker.renderer import Progress
from farm.worker.spec import WorkerSpec

PATIENCE_SECONDS = 20.0
GRID = PartGrid((0, 10, 20, 30, 40, 50, 60))
R = TypeVar("R", bound=Message)


class Stories:
    """A Log that remembers its lines by claim."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.by_token: dict[str, list[str]] = {}
        self._token = ""

    def begin(self, token: str) -> None:
        self._token = token

    def end(self) -> None:
        self._token = ""

    def line(self, text: str) -> None:
        self.lines.append(text)
        self.by_token.setdefault(self._token, []).append(text)


class RenderTrouble(Exception):
    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(message)


def write_part(
    path: Path,
    part: int,
    start: int,
    stop: int,
    frame_bytes: int = 0,
    filler: bytes = b".",
    before: Callable[[int], None] = lambda number: None,
) -> PartFacts:
    """A part file with frames of at least ``frame_bytes``; ``before`` is called before each. Another
    ``filler``, other bytes."""
    header = PartHeader(
        part=part,
        start=start,
        stop=stop,
        settings_hash="hash",
        codec="fake",
        width=1,
        height=1,
        pix_fmt="gray",
        time_base=(1, 24),
        extradata=b"",
    )
    with PartWriter(path, header) as writer:
        for number in range(start, stop):
            before(number)
            data = (b"frame %d " % number).ljust(frame_bytes, filler)
            writer.add(PartPacket(number, number, 1, number == start, data))
        return writer.finish(frames=stop - start, first_frame_crc=start, next_frame_crc=stop)


class FakeRenderers:
    """Opens renderers that make a part file of a few bytes a frame.

    ``hold_at`` names frames at which rendering waits until ``go_on`` is called; ``trouble`` maps a part to
    what its rendering raises. Everything that was rendered whole is in ``rendered``.
    """

    def __init__(self, frame_bytes: int = 0) -> None:
        self.frame_bytes = frame_bytes
        self.filler = b"."
        self.opened: list[bool] = []
        self.closed = 0
        self.rendered: list[int] = []
        self.hold_at: set[int] = set()
        self.trouble: dict[int, BaseException] = {}
        self.at: queue.Queue[int] = queue.Queue()
        self._go_on = threading.Semaphore(0)

    def open(self, linear: bool) -> FakeRenderers:
        self.opened.append(linear)
        return self

    def close(self) -> None:
        self.closed += 1

    def wait_at(self, number: int) -> None:
        assert self.at.get(timeout=PATIENCE_SECONDS) == number

    def go_on(self) -> None:
        self._go_on.release()

    def render(self, part: int, start: int, stop: int, path: Path, progress: Progress) -> PartFacts:
        if part in self.trouble:
            raise self.trouble[part]

        def before(number: int) -> None:
            progress.decoded()
            if number in self.hold_at:
                self.at.put(number)
                assert self._go_on.acquire(timeout=PATIENCE_SECONDS)
            progress.before_frame(number)

        facts = write_part(path, part, start, stop, self.frame_bytes, self.filler, before)
        self.rendered.append(part)
        return facts


class Peer:
    """The relay's end. ``expect`` takes the worker's next request; heartbeats are answered on the way, with
    ``beat``, and offers declined, unless they are what is expected."""

    def __init__(self, sock: socket.socket) -> None:
        self.beat = Beat()
        self.beats: list[Heartbeat] = []
        self.mute = False  # leave heartbeats unanswered
        self._sock = sock
        self._sock.settimeout(PATIENCE_SECONDS)
        self._splitter = FrameSplitter()

    def say(self, answer: AnyAnswer, to: AnyRequest | None = None) -> None:
        """Answer a request, or push."""
        seq = None if to is None else to.seq
        self._sock.sendall(frame(encode(msgspec.structs.replace(answer, seq=seq))))

    def expect(self, kind: type[R], /, **fields: object) -> R:
        while True:
            request = self._next()
            if isinstance(request, Heartbeat) and kind is not Heartbeat:
                self.beats.append(request)
                if not self.mute:
                    self.say(self.beat, to=request)
                continue
            if isinstance(request, Offer) and kind is not Offer:
                self.say(Declined(part=request.part, why="not wanted any more"), to=request)
                continue
            assert isinstance(request, kind), f"{request} instead of {kind.__name__}"
            for name, value in fields.items():
                assert getattr(request, name) == value, f"{name} of {request} is not {value!r}"
            return request

    def expect_beat(self, matches: Callable[[Heartbeat], bool] = lambda beat: True) -> Heartbeat:
        """The next heartbeat that matches, answered; others are answered on the way."""
        while True:
            beat = self.expect(Heartbeat)
            self.say(self.beat, to=beat)
            if matches(beat):
                return beat

    def expect_closed(self) -> None:
        with contextlib.suppress(ConnectionError):
            while data := self._sock.recv(1 << 16):
                self._splitter.feed(data)
                while (message := self._splitter.next()) is not None:
                    request = decode_request(message)
                    assert isinstance(request, Heartbeat), f"{request} instead of the end"

    def close(self) -> None:
        self._sock.close()

    def _next(self) -> AnyRequest:
        while (message := self._splitter.next()) is None:
            data = self._sock.recv(1 << 16)
            assert data, "the worker closed the connection"
            self._splitter.feed(data)
        return decode_request(message)


class Rig:
    """One worker under test."""

    def __init__(self, folder: Path, **profile: object) -> None:
        self.store = folder / "store"
        self.spool = folder / "spool"
        self.store.mkdir()
        self.spool.mkdir(exist_ok=True)
        self.clock = MonotonicClock()
        self.log = Stories()
        self.renderers = FakeRenderers()
        self.heartbeat_seconds = 0.05
        self.lease_seconds = 20.0
        self.spec = WorkerSpec(
            profile=WorkerProfile(name="w1", **profile),  # type: ignore[arg-type]
            index_path=folder / "index",
            settings=JobSettings(),
            settings_hash="hash",
            cuts=GRID.cuts,
            store_dir=self.store,
            spool_dir=self.spool,
            log_dir=folder,
            build="build 1",
        )
        ours, theirs = socket.socketpair()
        self.peer = Peer(ours)
        self.loop = WorkerLoop(self.spec, theirs, self.renderers.open, self.log, self.clock)
        self.exit_code: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.exit_code = self.loop.run()

    def join(self) -> None:
        """See the worker join, and welcome it."""
        self.peer.say(
            Welcome(epoch=1, lease_seconds=self.lease_seconds, heartbeat_seconds=self.heartbeat_seconds),
            to=self.peer.expect(Join),
        )

    def grant(self, start: int, stop: int, token: str = "c0#1@e1", **fields: object) -> str:
        """See the worker ask for a claim, and grant it."""
        granted = Granted(token=token, start=start, stop=stop, next=start, lease_seconds=self.lease_seconds)
        self.peer.say(msgspec.structs.replace(granted, **fields), to=self.peer.expect(Claim))
        return token

    def credit(self, part: int, stop: int, token: str = "c0#1@e1", **fields: object) -> Deliver:
        """See a part delivered, check the file, and credit it."""
        deliver = self.peer.expect(Deliver, part=part, token=token)
        start, end = GRID.start(part), GRID.stop(part)
        facts = check_part(self.store / deliver.file, part=part, start=start, stop=end, settings_hash="hash")
        assert (deliver.sha256, deliver.size_bytes) == (facts.sha256, facts.size_bytes)
        delivered = Delivered(token=token, part=part, frames=end - start, next=end, stop=stop)
        self.peer.say(msgspec.structs.replace(delivered, **fields), to=deliver)
        return deliver

    def complete(self, token: str = "c0#1@e1") -> None:
        complete = self.peer.expect(Complete, token=token)
        self.peer.say(Completed(token=token, done=True, next=0, stop=0), to=complete)

    def bye(self) -> Leave:
        """See the worker leave and its connection end."""
        leave = self.peer.expect(Leave)
        self.peer.say(Bye(), to=leave)
        self.peer.expect_closed()
        self.finish()
        return leave

    def until(self, condition: Callable[[Orders], object]) -> None:
        """Wait until the worker has heard of something that it doesn't show from outside."""
        assert self.loop.orders.wait(
            lambda: bool(condition(self.loop.orders)), self.clock.now() + PATIENCE_SECONDS
        )

    def finish(self) -> None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the worker did not end"

    def stored(self) -> list[str]:
        return sorted(path.name for path in self.store.iterdir())

    def spooled(self) -> list[str]:
        return sorted(path.name for path in self.spool.iterdir())


@contextlib.contextmanager
def rig(folder: Path, **profile: object) -> Iterator[Rig]:
    found = Rig(folder, **profile)
    try:
        yield found
    finally:
        found.peer.close()
        for _ in range(100):
            found.renderers.go_on()
        found.finish()
