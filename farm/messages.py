"""What workers and relay say to each other, version 1.

Rules of this file:
- one JSON object a message, ``type`` names it; the transport adds a length prefix (engines/base.py);
- a message with raw bytes (Block) is a zero byte, the length of its JSON as four bytes, big endian, the JSON,
  and the bytes as they are: five times as fast for both sides as base64 (docs/decisions);
- a new field is optional with a default that means "as before", and unknown fields are ignored, so that a
  worker of an earlier version carries on (tests/test_wire.py speaks the first version by hand);
- ``seq`` numbers a worker's requests. A repeated number gets the first answer verbatim. A worker that
  sends none has none of its messages taken for a repeat;
- every answer about a live claim carries ``next`` (its first uncredited frame) and ``stop`` (its present
  end); the worker drops what lies outside.
"""

from __future__ import annotations

import struct
from typing import Literal

import msgspec

from farm.events import ClaimProgress

WIRE_VERSION = 1

#: The kind of a failure that is no fault of the part or of the worker, and ends the run.
DISK_FULL = "disk full"


class Message(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=True, omit_defaults=True, gc=False
):
    """Base of all messages."""


class Request(Message, frozen=True, kw_only=True):
    """Base of what a worker sends."""

    seq: int | None = None


class Join(Request, frozen=True, kw_only=True):
    """First message of a worker: who it is."""

    worker: str
    version: int = 1
    pid: int | None = None
    host: str = ""
    build: str = ""
    fps_cap: float | None = None
    overhead_seconds: float = 0.0


class Claim(Request, frozen=True, kw_only=True):
    """The worker is idle and asks for a chunk; or, ``ahead``, its present claim ends soon and it asks for the
    next one, so that the overhead of that passes meanwhile."""

    ahead: bool = False


class Heartbeat(Request, frozen=True, kw_only=True):
    """The worker is alive; lists all its claims."""

    claims: tuple[ClaimProgress, ...] = ()


class Deliver(Request, frozen=True, kw_only=True):
    """A part was put into the store under an attempt-unique name. The relay's shell checks the file and fills
    in what it found before the relay hears of it; only that counts."""

    token: str | None = None
    part: int | None = None
    file: str = ""
    frames: int = 0
    size_bytes: int = 0
    sha256: str = ""
    render_seconds: float = 0.0
    first_frame_crc: int | None = None
    next_frame_crc: int | None = None
    lost_frames: int = 0
    linear: bool = False
    claim_rendered: int = 0
    claim_seconds: float = 0.0
    blocks: int = 0  #: it came in so many blocks, whose last one is stored; the shell names the file


class Begin(Request, frozen=True, kw_only=True):
    """The worker is about to deliver a part in blocks, or to go on with it, and asks from which block on. The
    answer, BlockStored, may be a while in coming: so many deliveries at once and no more."""

    token: str | None = None
    part: int | None = None
    size_bytes: int = 0  #: of the whole part file
    sha256: str = ""  #: of the whole part file
    block_bytes: int = 0  #: of every block but the last
    of: int = 0  #: how many blocks that makes
    stored: int = 0  #: filled in by the relay's shell: blocks it holds, from the first on
    stored_bytes: int = 0  #: and their bytes


class Block(Request, frozen=True, kw_only=True):
    """One block of a part file. It is on disk when the answer, BlockStored, comes."""

    token: str | None = None
    part: int | None = None
    index: int = 0
    of: int = 0
    crc: int = 0  #: crc32 of ``data``
    data: bytes = b""
    stored: int = 0  #: filled in by the relay's shell: blocks it holds, from the first on
    stored_bytes: int = 0  #: and their bytes


class Offer(Request, frozen=True, kw_only=True):
    """A worker has a finished part in its spool from before a restart and asks for a claim to deliver it."""

    part: int
    maker: str = ""  #: who rendered it, if that was another worker, in whose place this one offers it


class Complete(Request, frozen=True, kw_only=True):
    """The worker has nothing more to deliver under this claim; checked against the credits."""

    token: str | None = None


class Fail(Request, frozen=True, kw_only=True):
    """A part could not be rendered."""

    token: str | None = None
    part: int | None = None
    kind: str = "error"  #: error, out of memory, disk full, source, encoder, count
    message: str = ""


class Release(Request, frozen=True, kw_only=True):
    """The worker gives the rest of a claim back in good order."""

    token: str | None = None


class Leave(Request, frozen=True, kw_only=True):
    """Good-bye."""

    reason: str = ""


AnyRequest = Join | Claim | Heartbeat | Deliver | Begin | Block | Offer | Complete | Fail | Release | Leave


class Answer(Message, frozen=True, kw_only=True):
    """Base of what the relay sends; ``seq`` is the request's, None for a push."""

    seq: int | None = None


class Welcome(Answer, frozen=True, kw_only=True):
    """Joined; may claim."""

    epoch: int
    lease_seconds: float
    heartbeat_seconds: float
    version: int = 1
    claim_ahead: bool = False  #: the worker may ask ahead


class Granted(Answer, frozen=True, kw_only=True):
    """A claim on frames ``[start, stop)``. As a push it answers a Claim that was parked."""

    token: str
    start: int
    stop: int
    next: int
    lease_seconds: float
    linear: bool = False  #: read the source from its start instead of seeking


class Parked(Answer, frozen=True, kw_only=True):
    """Nothing now. Don't ask again: a Granted or Finished follows as a push."""

    why: str = ""


class Finished(Answer, frozen=True, kw_only=True):
    """There is no more work, or none for this worker: leave."""

    why: str = ""


class ClaimState(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a claim stands, in an answer to a heartbeat."""

    token: str
    live: bool
    next: int = 0
    stop: int = 0
    reason: str = ""  #: why it is not live


class Beat(Answer, frozen=True, kw_only=True):
    """Answer to a heartbeat; pushed without a seq when a claim changed in between."""

    claims: tuple[ClaimState, ...] = ()
    hold: bool = False  #: finish the part in progress, then wait
    drain: bool = False  #: finish the part in progress, release the rest and leave
    orphan_spools: tuple[str, ...] = ()  #: of workers that are gone for good; offer what is finished in them
    fps_cap: float | None = None  #: frames per second from now on, 0 without limit; None: as before


class Delivered(Answer, frozen=True, kw_only=True):
    """A delivery was acknowledged; ``frames`` 0 means somebody else's copy counts."""

    token: str
    part: int
    frames: int
    next: int
    stop: int
    live: bool = True
    reason: str = ""


class BlockStored(Answer, frozen=True, kw_only=True):
    """Answer to Begin and Block, and to a Deliver whose blocks turned out not to be what was rendered: the
    relay has all blocks before ``next_block``; go on there."""

    token: str
    part: int
    next_block: int
    next: int
    stop: int
    live: bool = True
    reason: str = ""


class Declined(Answer, frozen=True, kw_only=True):
    """Answer to an Offer that is not granted: remove the part, or ``keep`` it, it may be wanted later."""

    part: int
    why: str
    keep: bool = False


class Completed(Answer, frozen=True, kw_only=True):
    """Answer to Complete: ``done``, or the claim goes on at ``next``."""

    token: str
    done: bool
    next: int
    stop: int


class Ended(Answer, frozen=True, kw_only=True):
    """Answer to Fail and Release: the claim is over."""

    token: str


class NotClaimant(Answer, frozen=True, kw_only=True):
    """That claim is not yours, or not any more. Stop working on it."""

    token: str
    reason: str
    holder: str | None = None


class Refused(Answer, frozen=True, kw_only=True):
    """A message that can't be taken, with what was received."""

    received: str
    reason: str
    kind: Literal["id", "state", "version"] = "id"


class Bye(Answer, frozen=True, kw_only=True):
    """Answer to Leave."""


class Inject(Answer, frozen=True, kw_only=True):
    """Pushed: this fault (farm.faults) is to happen in the worker, as of now."""

    kind: str
    seconds: float | None = None
    amount: float | None = None


AnyAnswer = (
    Welcome
    | Granted
    | Parked
    | Finished
    | Beat
    | Delivered
    | BlockStored
    | Declined
    | Completed
    | Ended
    | NotClaimant
    | Refused
    | Bye
    | Inject
)

_RAW = struct.Struct(">xI")  # a zero byte, with which no JSON begins, and the length of the JSON
_encoder = msgspec.json.Encoder()
_request_decoder = msgspec.json.Decoder(AnyRequest)
_answer_decoder = msgspec.json.Decoder(AnyAnswer)


def encode(message: Message) -> bytes:
    if isinstance(message, Block) and message.data:
        head = _encoder.encode(msgspec.structs.replace(message, data=b""))
        return b"".join((_RAW.pack(len(head)), head, message.data))
    return _encoder.encode(message)


def decode_request(data: bytes) -> AnyRequest:
    """Raises msgspec.DecodeError or ValidationError."""
    if data[:1] != b"\0" or len(data) < _RAW.size:
        return _request_decoder.decode(data)
    start = _RAW.size
    stop = start + _RAW.unpack_from(data)[0]
    request = _request_decoder.decode(data[start:stop])
    if not isinstance(request, Block):
        raise msgspec.DecodeError("only a block carries raw bytes")
    return msgspec.structs.replace(request, data=data[stop:])


def decode_answer(data: bytes) -> AnyAnswer:
    """Raises msgspec.DecodeError or ValidationError."""
    return _answer_decoder.decode(data)
