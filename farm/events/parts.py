"""What becomes of a part: delivered, credited, failed, set aside, or taken back."""

from __future__ import annotations

from farm.events.base import Event


class BlockStored(Event, frozen=True, kw_only=True):
    """Of a part that is delivered in blocks, the first ``done`` of ``of`` are on disk: what need not be sent
    again if the delivery breaks."""

    part: int
    token: str
    worker: str
    done: int
    of: int
    size_bytes: int = 0  #: of these blocks


class PartCredited(Event, frozen=True, kw_only=True):
    """A part is durable, checked and accepted; its frames count from here on, once."""

    part: int
    frames: int
    token: str
    worker: str
    file: str
    size_bytes: int
    sha256: str
    render_seconds: float = 0.0
    first_frame_crc: int | None = None  #: of the decoded picture; the seam check compares neighbours
    next_frame_crc: int | None = None
    lost_frames: int = 0  #: frames of the source that could not be decoded
    chunk: int | None = None  #: whose part it was, if a split had moved it from the claim's own chunk
    claim_rendered: int = 0  #: frames rendered under the claim when this part was done
    claim_seconds: float = 0.0  #: seconds spent rendering under the claim when this part was done


class PartSuperseded(Event, frozen=True, kw_only=True):
    """A part came from a live or superseded claim after someone else's copy: acknowledged, zero frames."""

    part: int
    token: str
    worker: str
    frames: int  #: frames wasted
    sha256: str = ""
    reason: str = ""
    claim_rendered: int = 0
    claim_seconds: float = 0.0


class PartAdopted(Event, frozen=True, kw_only=True):
    """A valid part found in the store at resume that had not reached the journal."""

    part: int
    frames: int
    file: str
    size_bytes: int
    sha256: str
    first_frame_crc: int | None = None
    next_frame_crc: int | None = None


class PartVoided(Event, frozen=True, kw_only=True):
    """A credited part is not to be trusted any more; its frames are open again."""

    part: int
    reason: str


class PartFailed(Event, frozen=True, kw_only=True):
    """A part failed, or a worker died on it; ``tries`` so far."""

    part: int
    token: str
    worker: str
    kind: str
    message: str
    tries: int


class PartSetAside(Event, frozen=True, kw_only=True):
    """A part failed too often; the job goes on without it and ends incomplete."""

    part: int
    tries: int
    reason: str


class PartRetried(Event, frozen=True, kw_only=True):
    """A part that was set aside is taken up again, with a clean record."""

    part: int


class PartDiverged(Event, frozen=True, kw_only=True):
    """Two copies of a part with different bytes: the promise of equal bytes is broken (rule 13). The part is
    taken back, and a third worker's copy decides."""

    part: int
    token: str
    worker: str
    sha256: str
    credited_sha256: str


class PartSettled(Event, frozen=True, kw_only=True):
    """A third copy of a part in dispute is like one of the two; the worker of the other one is not trusted
    any more, and what it was credited with is taken back by the events that follow."""

    part: int
    sha256: str  #: of the right copy
    by: str  #: who made the third one
    odd: str | None = None  #: who made the wrong one; None: a part that was found in the store


class PartUnsettled(Event, frozen=True, kw_only=True):
    """No third copy can decide between two that differ: nothing can be trusted, the run ends."""

    part: int
    reason: str


class SeamMismatched(Event, frozen=True, kw_only=True):
    """The frame after a part, as its reader saw it, is not the first frame of the next part: the source
    does not seek reliably. The job turns to linear reading."""

    part: int
    next_part: int


PartEvent = (
    BlockStored
    | PartCredited
    | PartSuperseded
    | PartAdopted
    | PartVoided
    | PartFailed
    | PartSetAside
    | PartRetried
    | PartDiverged
    | PartSettled
    | PartUnsettled
    | SeamMismatched
)
