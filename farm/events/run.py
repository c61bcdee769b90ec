"""What happens to the run as a whole: its phases, what an operator or a fault did, how its loop keeps up."""

from __future__ import annotations

from typing import Literal

from farm.contents import StreamContents
from farm.events.base import SCHEMA_VERSION, Event
from farm.events.options import RelayOptions


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


class FaultNeverCame(Event, frozen=True, kw_only=True):
    """The work ended, and the moment of a fault that was to be injected had not come."""

    fault: str  #: as it was asked for


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


class SampleChosen(Event, frozen=True, kw_only=True):
    """Only these parts are given out until the relay starts again; the others wait (``--sample``)."""

    parts: tuple[int, ...]  #: ascending


class SamplePredicted(Event, frozen=True, kw_only=True):
    """What the whole film will come to, by the parts that are rendered. About nine in ten films lie within
    low and high. None: not known."""

    parts: int  #: that this was learnt from
    frames: int
    video_bytes: int  #: of these parts
    likely_bytes: int  #: of the whole film's video, without sound and container
    low_bytes: int
    high_bytes: int
    likely_seconds: float | None = None  #: rendering the whole film on this fleet
    low_seconds: float | None = None
    high_seconds: float | None = None
    rest_seconds: float | None = None  #: of these, for what is not rendered yet


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
    sample: bool = False  #: only a sample was asked for; the run goes on when it is asked for the rest

    @property
    def is_whole(self) -> bool:
        """Whether the film is done, and nothing is left to go on with."""
        return self.exit_code == 0 and not self.sample


RunEvent = (
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
    | FaultNeverCame
    | JobPaused
    | JobResumed
    | DrainStarted
    | WorkFinished
    | SampleChosen
    | SamplePredicted
    | OutputRead
    | PacketsRead
    | OutputVerified
    | RunFinished
)
