"""What the console knows of a run: the fields that ``console.model`` folds events into, and how to read them.

Rules of this file:
- memory is bounded by parts and workers: the list of events, spans and throughput are rings with totals;
- no clock: what depends on the present is asked for with ``now``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from console.chunks import ChunkBook
from console.eventlines import EventLines
from console.forecast import Forecast, forecast, overall_progress
from console.partmap import CLAIMED, CREDITED, DUPLICATE, LAPSED, OPEN, SET_ASIDE, PartMap
from console.timeline import GONE, ClaimModel, PartDelivery, Throughput, WorkerModel
from farm import events as ev
from farm.frames import PartGrid
from farm.view import World

EVENTS_MAX: Final = 10_000
_NO_GRID: Final = PartGrid((0, 1))
#: Depends on what is not journalled (progress of a phase, estimates), or is compared in another form.
_NOT_DIGESTED: Final = frozenset(
    {
        "world",
        "at",
        "records",
        "phase_fraction",
        "vitals",
        "vitals_at",
        "_progress",
        "map",
        "throughput",
        "estimated",
        "estimated_at",
        "gauges",
        "book",
    }
)


@dataclass(frozen=True, slots=True)
class Header:
    """What the run is; from ``RunOpened``."""

    run_id: str
    input: str
    output: str
    frames: int
    frame_rate: float | None
    settings: str
    fleet: tuple[str, ...]


class Credit(msgspec.Struct, frozen=True, gc=False):
    """What a part brought when it was credited, to be taken back if it is voided."""

    worker: str | None  #: None: adopted from the store
    epoch: int  #: of the relay that credited it
    size_bytes: int
    lost_frames: int = 0
    chunk: int = -1  #: -1: adopted from the store


class RunState:
    """What is known of one run. Read it freely; only ``Model.fold`` writes."""

    def __init__(self, world: World = "live") -> None:
        self.world: World = world
        self.header: Header | None = None
        self.options = ev.RelayOptions()
        self.epoch = 0
        self.at = 0.0  #: time of the newest record
        self.records = 0

        self.phase: str | None = None
        self.phase_fraction = 0.0
        self.paused_since: float | None = None
        self.pause_seconds = 0.0  #: of the pauses that have ended
        self.drain_reason: str | None = None
        self.drain_until: float | None = None  #: when a drain is cut short
        self.held = ""  #: why nothing more is granted
        self.gauges: ev.Gauges | None = None  #: the newest
        self.never_came: list[str] = []  #: faults that were to be injected, at the relay's last end
        self.stood_still = 0  #: times the relay stood still, and the longest, for any reason
        self.stood_still_seconds = 0.0
        self.loop: ev.LoopMeasured | None = None  #: of the last stretch of work that has ended
        self.measured: ev.FleetMeasured | None = None
        self.estimated: ev.FinishEstimated | None = None  #: the newest; None: the log has none
        self.estimated_at = 0.0
        self.work: ev.WorkFinished | None = None
        self.finish: ev.RunFinished | None = None
        self.first_grant_at: float | None = None
        self.steady_since: float | None = None  #: first grant since the relay started or a pause ended
        self.steady_frames = 0  #: credited by then, of ``throughput.total``
        self.last_credit_at: float | None = None
        self.last_finish_at: float | None = None

        self.workers: dict[str, WorkerModel] = {}
        self.added: dict[str, str] = {}  #: profiles of the workers that were added, as JSON
        self.vitals: dict[str, ev.WorkerVitals] = {}  #: how their processes did when last looked at
        self.vitals_at = 0.0  #: when that was
        self.claims: dict[str, ClaimModel] = {}  #: all and only the live claims, by token
        self.chunks: dict[str, list[ClaimModel]] = {}  #: chunks in flight with their live claims
        self.map = PartMap(_NO_GRID)  #: of one open part until ``RunOpened``
        self.book = ChunkBook()  #: every chunk and its story
        self.credits: dict[int, Credit] = {}  #: of every credited part

        self.adopted_frames = 0
        self.sample: frozenset[int] | None = None  #: the parts that are given out, where not all are
        self.deferred_frames = 0  #: of parts that are open and wait for the sample's end
        self.predicted: ev.SamplePredicted | None = None  #: the newest
        self.resumed_frames = 0  #: credited before the present start of the relay
        self.duplicated = 0  #: chunks in flight with two live claims or more
        self.granted = 0  #: claims ever granted, duplicates included
        self.duplicates = 0  #: duplicate claims ever granted
        self.splits = 0
        self.lapses = 0
        self.refusals = 0
        self.failures = 0  #: parts that workers said failed; lost workers and lapses are counted apart
        self.losses = 0
        self.wasted_frames = 0
        self.voided_frames = 0  #: credited, and taken back
        self.lost_frames = 0  #: of the source, that could not be decoded
        self.delivered_bytes = 0  #: size of the credited parts

        self.stored_blocks = 0  #: of parts that came in blocks, each counted once
        self.blocks_of: dict[int, int] = {}  #: blocks that are there, of parts on their way

        self.events = EventLines(EVENTS_MAX)
        self.throughput = Throughput()
        self._progress = 0.0

    # --- reading -----------------------------------------------------------------------------------------

    @property
    def frames(self) -> int:
        return self.header.frames if self.header else 0

    @property
    def target_frames(self) -> int:
        """What the present work is to come to: all frames, but for those that wait for a sample's end."""
        return self.frames - self.deferred_frames

    @property
    def grid(self) -> PartGrid:
        return self.map.grid

    @property
    def parts(self) -> int:
        return len(self.map) if self.header else 0

    @property
    def part_state(self) -> bytearray:
        """One state for each part: OPEN, CLAIMED, DUPLICATE, CREDITED, LAPSED or SET_ASIDE."""
        return self.map.state

    @property
    def credited_frames(self) -> int:
        return self.map.frames_in[CREDITED]

    @property
    def open_frames(self) -> int:
        if not self.header:
            return 0
        return self.map.frames_in[OPEN] + self.map.frames_in[LAPSED] - self.deferred_frames

    @property
    def in_flight_frames(self) -> int:
        return self.map.frames_in[CLAIMED] + self.map.frames_in[DUPLICATE]

    @property
    def duplicated_frames(self) -> int:
        return self.map.frames_in[DUPLICATE]

    @property
    def set_aside_frames(self) -> int:
        return self.map.frames_in[SET_ASIDE]

    @property
    def rendered_frames(self) -> int:
        """Frames encoded in live claims and not credited."""
        return self.map.rendered_frames

    @property
    def deliveries(self) -> tuple[PartDelivery, ...]:
        """The parts that are on their way in blocks."""
        return tuple(c.delivering for c in self.claims.values() if c.delivering is not None)

    @property
    def in_flight_chunks(self) -> int:
        return len(self.chunks)

    @property
    def paused(self) -> bool:
        return self.paused_since is not None

    @property
    def fleet_is_alive(self) -> bool:
        """Whether some worker is left that could still deliver."""
        return any(worker.state not in GONE for worker in self.workers.values())

    @property
    def silence_seconds(self) -> float:
        """How long a worker with a claim may be unheard before it is taken for silent."""
        return self.options.silent_seconds

    def paused_seconds(self, now: float) -> float:
        """All pauses until ``now``."""
        running = 0.0 if self.paused_since is None else max(now - self.paused_since, 0.0)
        return self.pause_seconds + running

    def shade(self, part: int) -> float:
        """How much of a part is encoded, 0 to 1; 1 once it is credited."""
        return self.map.shade(part)

    def take_dirty(self) -> set[int]:
        """The parts to draw again since the last call; after the run was opened, all of them."""
        return self.map.take_dirty()

    @property
    def events_total(self) -> int:
        """Events with words that there ever were; ``events`` keeps the newest."""
        return self.events.total

    def progress(self) -> float:
        """How far the whole job is, 0 to 1, all phases weighted; never goes back."""
        self._progress = max(self._progress, overall_progress(self))
        return self._progress

    def restart_progress(self) -> None:
        """Other work begins, of which nothing is done."""
        self._progress = 0.0

    def fps(self, now: float, seconds: int = 30) -> float:
        """Credited frames per second of late: over the last ``seconds`` of steady work."""
        if self.steady_since is None:
            return 0.0
        elapsed = now - self.steady_since
        if elapsed >= seconds:
            return self.throughput.fps(now, seconds)
        return (self.throughput.total - self.steady_frames) / elapsed if elapsed > 0 else 0.0

    def eta(self, now: float) -> Forecast | None:
        """Seconds until the last credit as (low, mid, high); None: unknown."""
        return forecast(self, now)

    def digest(self) -> dict[str, object]:
        """All states as plain data: equal for two models of the same log. What is not journalled (how far a
        phase is) is left out."""
        values: dict[str, object] = {
            name: repr(value) for name, value in vars(self).items() if name not in _NOT_DIGESTED
        }
        values["parts"] = bytes(self.map.state)
        values["rendered"] = self.map.rendered.tolist()
        values["frames_in"] = tuple(self.map.frames_in)
        values["chunks_told"] = self.book.digest()
        values["throughput"] = self.throughput.digest()
        return values
