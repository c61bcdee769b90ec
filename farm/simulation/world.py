"""What is simulated, as data: the workers, the part grid, what each frame costs, and the relay's options.

Rules of this file:
- times are virtual seconds since the start of the job; intervals are half open, ``[start, stop)``;
- a frame of cost 1.0 takes ``1/fps`` seconds on a worker in its normal state;
- everything that is drawn at random comes from ``World.seed``, so that one world has one outcome;
- a world that makes no sense is refused by ``check_world`` with the path of the field that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from farm.errors import UsageError, shorten
from farm.events import RelayOptions
from farm.faults import Fault
from farm.fleet import LinkProfile
from farm.scenario.faults import check_faults
from farm.source import part_cuts

Interval = tuple[float, float]


class SimWorker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One worker: how fast it is, and what happens to it."""

    name: str
    fps: float  #: frames of cost 1.0 per second
    overhead_seconds: float = 0.0  #: between a grant and the first frame that is worked on
    arrives_at_seconds: float = 0.0
    dies_at_seconds: float | None = None  #: from then on it does and says nothing
    silences: tuple[Interval, ...] = ()  #: its process is stopped: it renders nothing and says nothing
    #: It is cut off: it goes on rendering, but what it says, and what is said to it, arrives when the cut
    #: ends, in order (as on a TCP connection that survives). Without an answer for three leases it gives up
    #: what it has, as a real worker does, and joins again when the cut ends.
    partitions: tuple[Interval, ...] = ()
    throttles: tuple[tuple[float, float], ...] = ()  #: (from when on, factor of its speed)
    frame_noise: float = 0.0  #: sigma of a lognormal factor, mean 1, on what each frame costs it
    #: Its parts go to the store through this, in blocks; None: at once, as on one disk.
    link: LinkProfile | None = None
    load: float = 0.0  #: mean share of its speed that is lost to other work, drawn anew every 5 s


class World(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One job on one fleet. ``workers`` ask for their first claim in this order."""

    workers: tuple[SimWorker, ...]
    cuts: tuple[int, ...]  #: of the part grid, as in farm.frames.PartGrid
    options: RelayOptions = RelayOptions()
    cost: tuple[float, ...] | None = None  #: of each frame; None: 1.0 for all
    seed: int = 0
    name: str = "simulated"
    frame_bytes: float = 20_000.0  #: of a rendered frame; matters to workers with a link only
    latency_seconds: float = 0.0  #: one way, worker to relay and back
    #: False: nobody beats and no lease is judged, as in the write-up's published table.
    heartbeats: bool = True
    #: True: the engine sees a death and tells the relay at once, as on one machine. False: the lease decides.
    deaths_reported: bool = False
    faults: tuple[Fault, ...] = ()  #: injected at their times and events
    sample: int | None = None  #: parts, spread over the job, that are rendered alone; None: all are

    @property
    def frames(self) -> int:
        return self.cuts[-1]


def world_of(
    workers: Sequence[SimWorker], frames: int, *, part: int = 1, options: RelayOptions | None = None
) -> World:
    """``frames`` of cost 1.0 in parts of ``part`` frames. Raises UsageError."""
    if frames < 1 or part < 1:
        raise UsageError(f"a job has at least one frame and parts of at least one; got {frames} and {part}")
    cuts = part_cuts(frames, part, fixed=True)
    return World(workers=tuple(workers), cuts=cuts, options=options or RelayOptions())


def patience_seconds(world: World) -> float:
    """A stall timeout that no healthy worker of this world runs into: as ``render`` has it, or twice as long
    as the slowest worker may take over the costliest frame, since progress is told in whole frames."""
    frame_seconds = max(map(_frame_seconds_max, world.workers), default=0.0)
    return max(RelayOptions().stall_timeout_seconds, 2.0 * max(world.cost or (1.0,)) * frame_seconds)


def _frame_seconds_max(worker: SimWorker) -> float:
    """Of a frame of cost 1.0. Noise is taken at four sigma, other work at the half of a speed it may take."""
    factor = min((factor for _, factor in worker.throttles), default=1.0)
    fps = worker.fps * min(factor, 1.0) * (0.5 if worker.load else 1.0)
    return math.exp(4.0 * worker.frame_noise) / fps


# --- checking --------------------------------------------------------------------------------------------


def check_world(world: World) -> None:
    """Raises UsageError with the first field that is wrong, as in ``worker[1].fps``."""
    if not world.workers:
        raise UsageError("workers: a fleet has at least one worker")
    cuts = world.cuts
    if len(cuts) < 2 or cuts[0] != 0 or any(a >= b for a, b in pairwise(cuts)):
        raise UsageError("cuts: the part grid must start at 0, increase strictly and end at the frame count")
    if world.cost is not None:
        if len(world.cost) != world.frames:
            raise UsageError(f"cost: {len(world.cost)} values for {world.frames} frames; give one for each")
        for frame, cost in enumerate(world.cost):
            _positive(cost, f"cost[{frame}]")
    _positive(world.frame_bytes, "frame_bytes")
    _not_negative(world.latency_seconds, "latency_seconds")
    options = world.options
    _positive(options.heartbeat_seconds, "heartbeat_seconds")
    if not options.heartbeat_seconds < options.lease_seconds < math.inf:
        raise UsageError(
            f"lease_seconds: {options.lease_seconds!r} is not longer than the heartbeats, which are "
            f"{options.heartbeat_seconds:g} s apart"
        )
    names: dict[str, int] = {}
    for number, worker in enumerate(world.workers):
        _check_worker(worker, f"worker[{number}]")
        if worker.name in names:
            raise UsageError(
                f"worker[{number}].name: {worker.name!r} is worker[{names[worker.name]}]'s already"
            )
        names[worker.name] = number
        if not world.heartbeats and (worker.dies_at_seconds is not None or worker.silences):
            raise UsageError(
                f"worker[{number}]: without heartbeats nobody would notice that a worker stops or dies"
            )
    if world.sample is not None and world.sample < 1:
        raise UsageError(f"sample: {world.sample} is not a number of parts; give 1 or more")
    check_faults(world.faults, list(names), live=False)
    if world.faults and not world.heartbeats:
        raise UsageError("faults: without heartbeats nobody would notice them")


def _check_worker(worker: SimWorker, path: str) -> None:
    if not worker.name:
        raise UsageError(f"{path}.name: a worker needs a name")
    _positive(worker.fps, f"{path}.fps")
    _not_negative(worker.overhead_seconds, f"{path}.overhead_seconds")
    _not_negative(worker.arrives_at_seconds, f"{path}.arrives_at_seconds")
    if worker.dies_at_seconds is not None:
        _not_negative(worker.dies_at_seconds, f"{path}.dies_at_seconds")
    for field, intervals in (("silences", worker.silences), ("partitions", worker.partitions)):
        _check_intervals(intervals, f"{path}.{field}")
    last = 0.0
    for number, (at, factor) in enumerate(worker.throttles):
        _not_negative(at, f"{path}.throttles[{number}]")
        _positive(factor, f"{path}.throttles[{number}]")
        if at < last:
            raise UsageError(f"{path}.throttles[{number}]: they must be in the order of their times")
        last = at
    if worker.link is not None:
        _check_link(worker.link, f"{path}.link")
    _not_negative(worker.frame_noise, f"{path}.frame_noise")
    if not 0.0 <= worker.load < 0.5:
        raise UsageError(f"{path}.load: {worker.load!r} is not a share from 0 up to 0.5")


def _check_link(link: LinkProfile, path: str) -> None:
    if link.mib_per_second is not None:
        _positive(link.mib_per_second, f"{path}.mib_per_second")
    _not_negative(link.latency_seconds, f"{path}.latency_seconds")
    if not 0.0 <= link.drop_rate < 1.0:
        raise UsageError(f"{path}.drop_rate: {link.drop_rate!r} is not a probability below 1")
    _positive(link.block_bytes, f"{path}.block_bytes")


def _check_intervals(intervals: tuple[Interval, ...], path: str) -> None:
    last = 0.0
    for number, (start, stop) in enumerate(intervals):
        if not (math.isfinite(stop) and last <= start < stop):
            raise UsageError(
                f"{path}[{number}]: [{start!r}, {stop!r}) must end after it starts, and start after the last"
            )
        last = stop


def _positive(value: float, path: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{path}: {shorten(value)} is not a number above 0")


def _not_negative(value: float, path: str) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{path}: {shorten(value)} is not 0 or a number above it")
