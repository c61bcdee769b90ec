"""Every change of state in a run, as data. The journal stores these, the console folds them, recovery
replays them.

Rules of this file:
- an event is a small frozen struct; its docstring says when it happens;
- ``Record`` puts a number and a time on it: ``at`` is lease time in seconds since the run's first start;
- new fields are optional, so that an old recording still opens; fields are never renamed;
- frames are half-open ranges of the job; parts are numbers of the grid in ``RunOpened.cuts``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from farm.contents import StreamContents

#: Version of the recording format; a reader refuses a higher one.
SCHEMA_VERSION = 1

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


def _tag(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class Event(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=_tag, omit_defaults=True, gc=False
):
    """Base of all events. None refers back to what refers to it (``gc=False``), so the garbage collector need
    not look at them: with 100,000 credits in the books it would hold up the relay's loop for 0.1 s."""


#: Heartbeats after which a worker that was not heard is taken for silent, long before its lease runs out.
SILENT_HEARTBEATS = 2.5


class RelayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What of a run may change in flight or at resume. Times in seconds."""

    policy: str = "guided,12"
    tail: str = "duplicate-oldest,from=frontier"
    lease_seconds: float = 20.0
    heartbeat_seconds: float = 2.0
    stall_timeout_seconds: float = 120.0
    part_timeout_seconds: float | None = None
    part_timeout_share: float | None = None  #: of the median part, 3.0 = 300 %
    max_tries: int = 3
    claim_ahead: bool = False  #: workers may hold a second claim before the first one ends
    max_outstanding: int | None = None  #: chunks in flight up to which the tail duplicates; None: 2 x workers
    block_after_failures: int = 3
    block_seconds: float = 60.0
    backoff_seconds: float = 0.0  #: before a part that failed is tried again; doubled with each try
    halt: str = ""  #: stop early when parts are set aside (farm.halt)
    memfree_bytes: int = 0  #: with less memory available nothing more is granted and no worker started
    nice: int = 0  #: added to the niceness of workers

    @property
    def silent_seconds(self) -> float:
        """How long a worker with a claim may be unheard before it is taken for silent."""
        return SILENT_HEARTBEATS * self.heartbeat_seconds

    def lease_fault(self, heartbeat_seconds: float) -> str | None:
        """Why the lease is too short for workers that beat so far apart, in one sentence; None: it isn't."""
        if 0 < heartbeat_seconds < self.lease_seconds:
            return None
        return (
            f"a lease of {self.lease_seconds:g} s would lapse between two heartbeats, which are "
            f"{heartbeat_seconds:g} s apart; give a longer one"
        )


# --- the run ---------------------------------------------------------------------------------------------


class RunOpened(Event, frozen=True, kw_only=True):
    """The run was planned; always the first record of a journal."""

    run_id: str
    input: str
    output: str
    frames: int
    cuts: tuple[int, ...]
    settings_hash: str
    fingerprint: str  #: of the input: size, mtime-free content hash
    build: str  #: PyAV, encoder libraries and CPU architecture
    options: RelayOptions
    frame_rate: float | None = None
    settings: str = ""  #: the job's settings as JSON
    fleet: tuple[str, ...] = ()
    schema: int = SCHEMA_VERSION


class RelayStarted(Event, frozen=True, kw_only=True):
    """A relay opened the books; claims of older epochs are closed by the events that follow."""

    epoch: int
    wall_time: str = ""  #: ISO 8601, for people only


class OptionsChanged(Event, frozen=True, kw_only=True):
    """Policy, tail, lease or limits were changed in flight or at resume (``PolicyChanged`` in DESIGN.md)."""

    options: RelayOptions
    by: str = "operator"


class PhaseStarted(Event, frozen=True, kw_only=True):
    """The job entered a phase of its life."""

    phase: Literal["probe", "measure", "work", "stitch", "verify", "report"]


class PhaseProgressed(Event, frozen=True, kw_only=True):
    """How far the present phase is, 0 to 1; never runs backwards within a phase. Not journalled."""

    phase: str
    fraction: float


class FinishEstimated(Event, frozen=True, kw_only=True):
    """When the last part will be credited, in seconds from this record's time. None: not known. Not
    journalled."""

    likely_seconds: float | None = None
    low_seconds: float | None = None
    high_seconds: float | None = None
    by: Literal["", "replay", "T", "rate"] = ""


class FleetMeasured(Event, frozen=True, kw_only=True):
    """The machine's own speed on this clip was measured before the work, in frames per second."""

    fps_asked: float
    fps_possible: float
    fitted: bool = False


class Notice(Event, frozen=True, kw_only=True):
    """Something a person should know."""

    level: Literal["info", "warning", "error"]
    text: str


class LoopStalled(Event, frozen=True, kw_only=True):
    """The relay's own loop stood still (busy, stopped or asleep); lease time did not count it."""

    seconds: float


class LoopMeasured(Event, frozen=True, kw_only=True):
    """How often the relay's loop was late during a stretch of work, and the worst of it; told at its end."""

    stalls: int
    worst_seconds: float


class Gauges(Event, frozen=True, kw_only=True):
    """How full everything is that is bounded, about once a second. Not journalled."""

    inbox: int  #: messages waiting at the relay
    inbox_max: int
    deliveries: int  #: checked and synced at this moment
    deliveries_max: int
    parts_waiting: int  #: delivered, and waiting for their turn
    memory_bytes: int  #: of all workers together
    memory_gate_bytes: int  #: what they may fill; 0: not known
    stalls: int  #: of the relay's loop so far
    stall_worst_seconds: float


class GrantsHeld(Event, frozen=True, kw_only=True):
    """Nothing more is granted until there is room; what is held goes on."""

    reason: str


class GrantsFreed(Event, frozen=True, kw_only=True):
    """There is room again."""


class OperatorActed(Event, frozen=True, kw_only=True):
    """A person or a fault script did something to the run or to a worker."""

    action: str
    worker: str | None = None
    detail: str = ""


class CommandRefused(Event, frozen=True, kw_only=True):
    """What an operator asked for was not done; nothing changed."""

    command: str  #: its kind, as in farm.commands
    reason: str
    by: str = "operator"


class FaultInjected(Event, frozen=True, kw_only=True):
    """A fault was brought about on purpose (farm.faults), by a scenario, an option or the console."""

    kind: str
    worker: str | None = None
    seconds: float | None = None  #: how long it lasts; None: see farm.faults.KINDS
    amount: float | None = None
    fault: str = ""  #: as it was asked for


class FaultLifted(Event, frozen=True, kw_only=True):
    """A fault that was injected for a time is over."""

    kind: str
    worker: str | None = None


class JobPaused(Event, frozen=True, kw_only=True):
    """No new claims; parts in progress are finished, leases held, stall clocks stopped."""

    by: str = "operator"


class JobResumed(Event, frozen=True, kw_only=True):
    """Work goes on after ``seconds`` of pause, which count apart from the finishing time."""

    seconds: float


class DrainStarted(Event, frozen=True, kw_only=True):
    """Workers finish the part in progress, deliver it, release the rest and leave."""

    reason: str
    limit_seconds: float | None = None  #: after so long the run stops at once


class WorkFinished(Event, frozen=True, kw_only=True):
    """Nothing is open or in flight any more; first grant to last credit is the finishing time."""

    credited_frames: int
    set_aside_frames: int
    makespan_seconds: float


class OutputRead(Event, frozen=True, kw_only=True):
    """The joined output was read back and is as it should be; this and the ``PacketsRead`` that follow make
    its manifest (farm.manifest)."""

    container: str  #: as in ``farm.contents.Contents``
    size_bytes: int
    duration_seconds: float
    video: StreamContents
    others: tuple[StreamContents, ...] = ()
    part_packets: tuple[int, ...] = ()  #: packets of each part, in order
    lost_pts: tuple[int, ...] = ()  #: of frames that could not be decoded, in the source's time base


class PacketsRead(Event, frozen=True, kw_only=True):
    """The next packets of the output's video, in decoding order."""

    pts: tuple[int, ...]  #: in ticks of the stream; of an output of images the numbers of the files
    crc32: str  #: of their data, eight hex digits each


class OutputVerified(Event, frozen=True, kw_only=True):
    """The joined output was verified and is about to get its name; a run that is cut off in between knows its
    own output by this."""

    packets_sha256: str
    output_bytes: int
    stream_frames: int


class RunFinished(Event, frozen=True, kw_only=True):
    """The last record of a run that came to its end; ``exit_code`` is what the command returned."""

    exit_code: int
    outcome: str
    packets_sha256: str = ""
    output_bytes: int = 0
    stream_frames: int = 0
    kept: bool = False  #: the run folder was to stay after a good end


# --- workers ---------------------------------------------------------------------------------------------


class WorkerJoined(Event, frozen=True, kw_only=True):
    """A worker introduced itself and may ask for work."""

    worker: str
    pid: int | None = None
    host: str = ""
    fps_cap: float | None = None
    overhead_seconds: float = 0.0
    wire_version: int = 1
    build: str = ""


class WorkerLeft(Event, frozen=True, kw_only=True):
    """A worker is gone; ``lost`` tells a death from a good-bye."""

    worker: str
    reason: str
    lost: bool


class WorkerAdded(Event, frozen=True, kw_only=True):
    """An operator had a worker started while the run goes on; it joins a moment later."""

    worker: str
    profile: str = ""  #: as JSON, as in ``RunOpened.fleet``
    by: str = "operator"


class WorkerThrottled(Event, frozen=True, kw_only=True):
    """An operator changed the cap on a worker's speed."""

    worker: str
    fps_cap: float | None = None  #: frames per second from now on; None: as fast as it can
    by: str = "operator"


class WorkerDismissed(Event, frozen=True, kw_only=True):
    """An operator sent a worker away: it finishes the part it is at, gives back the rest and leaves."""

    worker: str
    by: str = "operator"


class WorkerVitals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How a worker's process is doing."""

    worker: str
    cpu_share: float = 0.0  #: of one core, since the last look; 1.5: a core and a half
    memory_bytes: int = 0  #: resident
    log_line: str = ""  #: the last line of its log
    log_age_seconds: float | None = None  #: since that was written; None: nothing was


class VitalsSampled(Event, frozen=True, kw_only=True):
    """How the workers' processes are doing, every second or so. Not journalled."""

    workers: tuple[WorkerVitals, ...] = ()


class WorkerPeaked(Event, frozen=True, kw_only=True):
    """A worker's memory reached a new peak; told when it grew by a quarter, and at its end."""

    worker: str
    peak_bytes: int  #: resident


class WorkerParked(Event, frozen=True, kw_only=True):
    """A worker asked and can be given nothing now; it is woken by the next useful event."""

    worker: str
    why: str


class WorkerBlocked(Event, frozen=True, kw_only=True):
    """A worker failed several parts in a row and gets nothing until lease time ``until``."""

    worker: str
    failures: int
    until: float


class WorkerForgiven(Event, frozen=True, kw_only=True):
    """A blocked worker may ask again."""

    worker: str


# --- claims ----------------------------------------------------------------------------------------------


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


# --- parts -----------------------------------------------------------------------------------------------


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


AnyEvent = (
    RunOpened
    | RelayStarted
    | OptionsChanged
    | PhaseStarted
    | PhaseProgressed
    | FinishEstimated
    | FleetMeasured
    | Notice
    | LoopStalled
    | LoopMeasured
    | Gauges
    | GrantsHeld
    | GrantsFreed
    | OperatorActed
    | CommandRefused
    | FaultInjected
    | FaultLifted
    | JobPaused
    | JobResumed
    | DrainStarted
    | WorkFinished
    | OutputRead
    | PacketsRead
    | OutputVerified
    | RunFinished
    | WorkerJoined
    | WorkerLeft
    | WorkerAdded
    | WorkerThrottled
    | WorkerDismissed
    | VitalsSampled
    | WorkerPeaked
    | WorkerParked
    | WorkerBlocked
    | WorkerForgiven
    | ClaimGranted
    | LeaseRenewed
    | ClaimEnded
    | DuplicateWanted
    | ClaimReleased
    | RangeReopened
    | ChunkSplit
    | ChunkCompleted
    | ClaimRefused
    | MessageRefused
    | BlockStored
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


class Record(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the log: ``seq`` from 0 without gaps, ``at`` in lease seconds."""

    seq: int
    at: float
    event: AnyEvent


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """One JSON object, without a line end; the same bytes for the same record."""
    return _encoder.encode(record)


def decode_record(line: bytes) -> Record:
    """Raises msgspec.DecodeError or ValidationError for what is not a record."""
    return _decoder.decode(line)
