"""What a run and those who look at it say to each other: frames of msgpack, each after its length.

    client                         run
    Hello        ------------->
                 <-------------    Welcome, or Refused and the end
                 <-------------    Records: the log from ``Hello.since`` on, in order, without a gap
                 <-------------    Passing: what is not journalled, once the log has been caught up with
    Order        ------------->
                 <-------------    Answer
                 <-------------    Bye: the run is over, and how

Rules of this file:
- both sides believe nothing: a frame is bounded before it is read, and what doesn't decode ends that
  connection only;
- a record travels as the bytes that the journal has, so that a log is sent without being understood;
- another version of the protocol, or of uneven, is refused in words: there is no guessing.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from farm.commands import AnyCommand
from farm.events import SCHEMA_VERSION

PROTOCOL_VERSION: Final = 1
#: The largest frame a run reads: a command with every option in it is far below.
ORDER_BYTES_MAX: Final = 64 << 10
#: The largest frame a client reads: the first record of a run of a million parts is below.
FRAME_BYTES_MAX: Final = 64 << 20
#: A piece of the log: so many records or bytes, but one record at least.
PIECE_RECORDS: Final = 500
PIECE_BYTES: Final = 256 << 10

LENGTH: Final = struct.Struct(">I")


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """Base of all messages."""


class Hello(Message, frozen=True, kw_only=True):
    """The first word of who connects."""

    protocol: int
    build: str
    since: int = 0  #: number of the first record that is wanted
    readonly: bool = False  #: no orders will come; those that do are refused


class Order(Message, frozen=True, kw_only=True):
    """A command to the run; ``number`` is the client's own."""

    number: int
    command: AnyCommand


class Welcome(Message, frozen=True, kw_only=True):
    """What run this is, and how far its log has come."""

    run_id: str
    output: str
    folder: str
    pid: int
    host: str
    now: float  #: lease seconds
    records: int  #: in the log at this moment
    history: int = 0  #: of them, from earlier starts of the run


class Refused(Message, frozen=True, kw_only=True):
    """No: and in one sentence why."""

    reason: str


class Records(Message, frozen=True, kw_only=True):
    """The next records, as ``farm.events.encode_record`` makes them. ``first``: number of the first one."""

    first: int
    lines: tuple[bytes, ...]
    now: float


class Passing(Message, frozen=True, kw_only=True):
    """The time, and records without a number (farm.eventlog): of each kind the newest."""

    now: float
    lines: tuple[bytes, ...] = ()


class Answer(Message, frozen=True, kw_only=True):
    """What became of an order. ``refusal`` empty: it was taken."""

    number: int
    refusal: str = ""


class Bye(Message, frozen=True, kw_only=True):
    """The run is over. ``records``: how many there are; a client that has fewer was too slow for the end."""

    exit_code: int
    message: str  #: one sentence; empty when all went well
    records: int


FromClient = Hello | Order
FromRun = Welcome | Refused | Records | Passing | Answer | Bye

_encoder = msgspec.msgpack.Encoder()
_client_decoder = msgspec.msgpack.Decoder(FromClient)
_run_decoder = msgspec.msgpack.Decoder(FromRun)


def this_build() -> str:
    """What both sides must have in common to understand each other's records."""
    from importlib.metadata import PackageNotFoundError, version  # slow, and few runs are looked at

    try:
        release = version("uneven")
    except PackageNotFoundError:
        release = "unknown"
    return f"uneven {release}, records {SCHEMA_VERSION}"


def frame(message: Message) -> bytes:
    """A message as it travels."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


def from_client(body: bytes) -> FromClient:
    """Raises msgspec.DecodeError."""
    return _client_decoder.decode(body)


def from_run(body: bytes) -> FromRun:
    """Raises msgspec.DecodeError."""
    return _run_decoder.decode(body)


class Unframer:
    """Cuts a stream of bytes into the bodies of frames. Raises ValueError for a frame that is too long."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that ``data`` completes."""
        self._held += data
        bodies: list[bytes] = []
        start = 0
        while len(self._held) - start >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._held, start)
            if length > self._limit:
                raise ValueError(f"a frame of {length} bytes; {self._limit} are the most")
            stop = start + LENGTH.size + length
            if len(self._held) < stop:
                break
            bodies.append(bytes(self._held[start + LENGTH.size : stop]))
            start = stop
        del self._held[:start]
        return bodies
