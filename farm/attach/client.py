"""A run of another process as the console sees it: a ``farm.view.Source`` behind a socket.

A thread reads what the run tells. When the line is lost without a farewell it comes back and asks for what it
missed; where nobody listens any more the run itself is gone, and that is what is said.

Rules of this file:
- nothing the run's process does can hold up who looks at it: ``take`` and ``send`` never wait;
- who looks and doesn't take holds up the thread, never the run: then nothing more is read, and the run's
  side waits or cuts the line;
- the records come in order and without a gap, also over several connections.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from farm.attach import wire
from farm.attach.address import connect
from farm.commands import AnyCommand
from farm.errors import OutputError, UnevenError, UsageError
from farm.events import Notice, Record, decode_record
from farm.pipe import RecordPipe
from farm.view import World

#: Records that wait to be taken; beyond them nothing more is read.
WAITING_MAX = 4_000
#: A run that says nothing for so long stands still, or its process does.
SILENCE_SECONDS = 10.0
CONNECT_SECONDS = 10.0
#: Connections that were lost in a row, each without any news, before it is given up.
_TRIES = 5
_READ_BYTES = 1 << 18
_BREATH_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Ending:
    """Why no more will come. ``ended``: the run is over, with ``exit_code`` and ``message`` (empty: all went
    well). ``lost``: its process is gone without a word. ``broken``: it is there, and can't be followed."""

    why: Literal["ended", "lost", "broken"]
    exit_code: int = 0
    message: str = ""


class AttachedRun:
    """Follows the run that listens at ``path``. All methods may be called from any thread.

    ``leftover``: the records of a run that is over, from number so and so on, for a line that was too slow to
    have them all by the end; may raise UnevenError.
    """

    def __init__(
        self,
        path: Path,
        *,
        readonly: bool = False,
        leftover: Callable[[int], Iterable[Record]] = lambda first: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connects. Raises NotListening, UsageError if the run refuses, OutputError."""
        self._path = path
        self._readonly = readonly
        self._leftover = leftover
        self._clock = clock
        self._records = RecordPipe()
        self._done = threading.Event()
        self._room = threading.Event()
        self._current = threading.Event()
        self._answers: dict[int, str] = {}
        self._answered = threading.Condition()
        self._closing = False
        self._next = 0  #: number of the next record
        self._total = 0  #: records of the whole run, once it is over
        self._orders = 0
        self._silent = False
        self._told_at = 0.0
        self._told = 0.0  #: lease time at ``_told_at``
        self._bodies: deque[bytes] = deque()
        self.refusals: deque[str] = deque(maxlen=16)  #: of orders that were sent; take them from the left
        self.ending: Ending | None = None
        self._line, self.welcome = self._connect()
        self._thread = threading.Thread(target=self._main, name="attached", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Leave. The run goes on."""
        self._closing = True
        self._room.set()
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(1.0)
        self._line.close()

    def wait_news(self, timeout_seconds: float) -> None:
        """Wait until there are records to take, the end came, or the time is over."""
        self._records.wait(timeout_seconds)

    def wait_current(self, timeout_seconds: float) -> None:
        """Wait until all that is known has come, also what isn't in the log, or the time is over."""
        self._current.wait(timeout_seconds)

    def order(self, command: AnyCommand, timeout_seconds: float) -> str | None:
        """As ``send``, but waits for what the run says to it."""
        with self._answered:
            refusal = self.send(command)
            number = self._orders
            if refusal is not None:
                return refusal
            if not self._answered.wait_for(lambda: number in self._answers or self.ended, timeout_seconds):
                return "it doesn't answer"
            return self._answers.get(number, "the run is over") or None

    @property
    def caught_up(self) -> bool:
        """Whether all that had happened when this connected has come."""
        return self._next >= self.welcome.records

    # --- Source ------------------------------------------------------------------------------------------

    @property
    def world(self) -> World:
        return "live"

    @property
    def ended(self) -> bool:
        return self._done.is_set()

    def now(self) -> float:
        """The run's lease time, as it was last told and with what passed since. A run that is silent stands
        still."""
        passed = 0.0 if self._silent or self.ended else self._clock() - self._told_at
        return self._told + min(passed, SILENCE_SECONDS)

    def take(self) -> Sequence[Record]:
        taken = self._records.take()
        self._room.set()
        return taken

    def send(self, command: AnyCommand) -> str | None:
        if self._readonly:
            return "this view was opened read-only"
        if self.ended:
            return "the run is over"
        self._orders += 1
        data = wire.frame(wire.Order(number=self._orders, command=command))
        try:
            sent = self._line.send(data)
        except BlockingIOError:
            return "the run takes no orders just now"
        except OSError:
            return "the line to the run is broken; it is being mended"
        if sent < len(data):  # the rest can't be sent without waiting: half an order must not stay behind
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)
            return "the run takes no orders just now"
        return None

    # --- the thread --------------------------------------------------------------------------------------

    def _connect(self) -> tuple[socket.socket, wire.Welcome]:
        """A line, and the welcome on it. A process that is just dying still takes lines and drops them, so a
        dropped one is tried again. Raises as the class says."""
        for _ in range(_TRIES):
            line = connect(self._path, CONNECT_SECONDS)
            if line is None:
                raise NotListening("nobody listens there")
            try:
                return line, self._greet(line)
            except BaseException as error:
                line.close()
                if not isinstance(error, ConnectionError):
                    raise
            time.sleep(_BREATH_SECONDS)
        raise OutputError("the run drops every line to it")

    def _greet(self, line: socket.socket) -> wire.Welcome:
        """Raises ConnectionError when the line is dropped, UsageError, OutputError."""
        hello = wire.Hello(
            protocol=wire.PROTOCOL_VERSION,
            build=wire.this_build(),
            since=self._next,
            readonly=self._readonly,
        )
        unframer = wire.Unframer(wire.FRAME_BYTES_MAX)
        self._bodies.clear()
        try:
            line.sendall(wire.frame(hello))
            while not self._bodies:
                data = line.recv(_READ_BYTES)
                if not data:
                    raise ConnectionResetError
                self._bodies.extend(unframer.feed(data))
            said = wire.from_run(self._bodies.popleft())
        except ConnectionError:
            raise
        except TimeoutError as error:
            raise OutputError("the run doesn't answer: its process is stopped, or very busy") from error
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise OutputError(f"what listens at {self._path} can't be understood: {error}") from error
        if not isinstance(said, wire.Welcome):
            raise UsageError(said.reason if isinstance(said, wire.Refused) else "the run said no welcome")
        self._unframer = unframer
        self._clock_told(said.now)
        line.setblocking(False)
        return said

    def _main(self) -> None:
        try:
            ending = self._follow()
            if ending.why == "ended" and self._next < self._total and not self._closing:
                self._take_leftover()
        except Exception as error:
            ending = Ending("broken", message=f"the view failed: {error!r}")
        self.ending = ending
        self._done.set()
        self._records.wake()
        self._current.set()
        with self._answered:
            self._answered.notify_all()

    def _follow(self) -> Ending:
        tries = 0
        while True:
            before = self._next
            ending = self._listen()
            if ending is not None:
                return ending
            tries = 0 if self._next > before else tries + 1
            if self._closing or tries > _TRIES:
                return Ending("broken", message="the line to the run breaks again and again")
            self._line.close()
            try:
                self._line, _ = self._connect()
            except NotListening:
                return Ending("lost")
            except UnevenError as error:
                return Ending("broken", message=str(error))
            self._tell("info", "the line to the run was cut and is back; nothing was missed")

    def _listen(self) -> Ending | None:
        """Until the farewell; None: the line is lost."""
        while True:
            while self._bodies:
                ending = self._hear(self._bodies.popleft())
                if ending is not None:
                    return ending
                self._wait_for_room()
                if self._closing:
                    return None
            try:
                if not self._readable():
                    self._fall_silent()
                    continue
                data = self._line.recv(_READ_BYTES)
                if not data:
                    return None
                self._bodies.extend(self._unframer.feed(data))
            except BlockingIOError:
                continue
            except (OSError, ValueError):
                return None

    def _readable(self) -> bool:
        """Wait for something to read; False: nothing came for ``SILENCE_SECONDS``. Raises OSError."""
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        return bool(poll.poll(SILENCE_SECONDS * 1000))

    def _hear(self, body: bytes) -> Ending | None:
        self._silent = False
        try:
            said = wire.from_run(body)
            match said:
                case wire.Records(first=first, lines=lines, now=now):
                    if first != self._next:
                        return Ending("broken", message=f"record {self._next} is missing")
                    self._clock_told(now)
                    self._arrived([decode_record(line) for line in lines])
                    self._next += len(lines)
                case wire.Passing(now=now, lines=lines):
                    self._clock_told(now)
                    self._arrived([decode_record(line) for line in lines])
                    self._current.set()
                case wire.Answer(number=number, refusal=refusal):
                    self._answer(number, refusal)
                case wire.Bye(exit_code=code, message=message, records=total):
                    self._total = total
                    return Ending("ended", code, message)
                case wire.Refused(reason=reason):
                    return Ending("broken", message=reason)
                case _:
                    pass
        except msgspec.DecodeError as error:
            return Ending("broken", message=f"what the run says can't be understood: {error}")
        return None

    def _answer(self, number: int, refusal: str) -> None:
        if refusal:
            self.refusals.append(refusal)
            self._tell("warning", f"refused: {refusal}")
        with self._answered:
            self._answers = {number: refusal}  # whoever waits, waits for the newest
            self._answered.notify_all()

    def _arrived(self, records: Sequence[Record]) -> None:
        if records:
            self._records.put(records)

    def _wait_for_room(self) -> None:
        while len(self._records) > WAITING_MAX and not self._closing:
            self._room.clear()
            self._room.wait(_BREATH_SECONDS)

    def _fall_silent(self) -> None:
        if not self._silent:
            self._tell(
                "warning", f"the run has said nothing for {SILENCE_SECONDS:g} s: is its process stopped?"
            )
        self._told = self.now()
        self._silent = True

    def _take_leftover(self) -> None:
        """What was missing at the farewell."""
        with contextlib.suppress(UnevenError):
            for record in self._leftover(self._next):
                if record.seq == self._next:
                    self._next += 1
                    self._arrived([record])
                    self._wait_for_room()

    def _clock_told(self, now: float) -> None:
        self._told, self._told_at = now, self._clock()

    def _tell(self, level: Literal["info", "warning"], text: str) -> None:
        """A notice of our own, in this view only."""
        self._arrived([Record(-1, self.now(), Notice(level=level, text=text))])


class NotListening(OutputError):
    """No process listens at that address: the run is over or was killed, or never was."""


def look(path: Path) -> wire.Welcome:
    """What run listens there, and no more. Raises as ``AttachedRun``."""
    run = AttachedRun(path, readonly=True)
    run.close()
    return run.welcome
