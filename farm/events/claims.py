"""What happens to a claim or a chunk, from its grant to its end, and what is refused."""

from __future__ import annotations

from typing import Literal

import msgspec

from farm.events.base import Event

ClaimEnd = Literal[
    "completed",  # all its parts are credited
    "superseded",  # another holder delivered first: no fault
    "lapsed",  # the lease ran out in silence
    "stalled",  # alive, but no progress for the stall timeout
    "timed out",  # a part took longer than the hard limit
    "failed",  # the worker said a part failed
    "released",  # given back in good order
    "worker left",  # its worker left or died
    "relay restarted",  # an earlier epoch's claim, closed at recovery
    "voided",  # the reading of the source changed under it
    "revoked",  # taken back before it was begun, for somebody who idles: no fault
]


class ClaimGranted(Event, frozen=True, kw_only=True):
    """A worker got a hold on frames ``[start, stop)`` of a chunk until its lease runs out.

    A new chunk begins with its first attempt; ``duplicate``: a further live claim on a chunk in flight.
    """

    token: str
    worker: str
    start: int
    stop: int
    lease_seconds: float
    duplicate: bool = False
    reopened: bool = False  #: the range had been in a claim before
    why: str = ""  #: the decision in words


class ClaimProgress(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a heartbeat says of one claim. Counts are since the claim's grant and never go down."""

    token: str
    position: int = 0  #: the next frame to be encoded, in frames of the job
    rendered: int = 0  #: frames encoded
    decoded: int = 0  #: frames decoded, also those thrown away
    delivered_bytes: int = 0  #: bytes the store acknowledged
    #: spent rendering, or waiting for a link that is slower; neither overhead nor other waiting counts
    render_seconds: float = 0.0
    queued: bool = False  #: it waits for the store to take a part, through no fault of its own


class LeaseRenewed(Event, frozen=True, kw_only=True):
    """A heartbeat was heard; the leases of the live claims it lists start anew."""

    worker: str
    claims: tuple[ClaimProgress, ...]


class ClaimEnded(Event, frozen=True, kw_only=True):
    """A claim is over; whatever comes under its token from now on is refused, except from ``superseded``."""

    token: str
    worker: str
    how: ClaimEnd
    reason: str = ""
    wasted_frames: int = 0  #: encoded under this claim and never credited, as far as reported


class DuplicateWanted(Event, frozen=True, kw_only=True):
    """An operator asked for a second claim on a chunk in flight; the next worker that may have it gets it."""

    chunk: int
    by: str = "operator"


class ClaimReleased(Event, frozen=True, kw_only=True):
    """An operator takes a claim away from its worker; how it ends follows."""

    token: str
    worker: str
    by: str = "operator"


class RangeReopened(Event, frozen=True, kw_only=True):
    """Uncredited frames of an ended chunk are open again, at the head of the queue."""

    start: int
    stop: int
    chunk: int


class ChunkSplit(Event, frozen=True, kw_only=True):
    """A chunk ends at frame ``at`` from now on; what it had beyond is open again, or goes to another worker
    by the grant that follows."""

    chunk: int
    at: int
    why: str = ""


class ChunkCompleted(Event, frozen=True, kw_only=True):
    """Every part of a chunk is credited or set aside, and its claims are over."""

    chunk: int


class ClaimRefused(Event, frozen=True, kw_only=True):
    """*Not claimant*: a message under a claim that is not live; nothing else changed."""

    worker: str
    asked: str  #: deliver, complete, fail, release, heartbeat
    token: str
    reason: str
    holder: str | None = None  #: who holds that chunk now, if anyone


class MessageRefused(Event, frozen=True, kw_only=True):
    """A message with an id that is malformed, out of range or not understood; nothing else changed."""

    worker: str
    asked: str
    received: str
    reason: str


ClaimEvent = (
    ClaimGranted
    | LeaseRenewed
    | ClaimEnded
    | DuplicateWanted
    | ClaimReleased
    | RangeReopened
    | ChunkSplit
    | ChunkCompleted
    | ClaimRefused
    | MessageRefused
)
