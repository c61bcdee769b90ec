"""Fleet files: the workers of a run, in TOML, for the farm and for the simulator alike.

    overhead = 2.0                    # seconds a claim, for who doesn't say otherwise
    [[worker]]
    name = "laptop"                   # else w1, w2, …
    count = 2                         # laptop-1 and laptop-2
    fps = 12.0                        # frames per second; left out or "max": as fast as it can
    link = { mib_per_second = 2.0, latency = 0.05, drop_rate = 0.01 }   # else it shares the store's disk

Rules: times are seconds since the start of the run, intervals half open, sizes GiB, speeds frames per second.
Every error is one sentence with the file and the path of the field, ``worker[1].fps``. What only happens in
virtual time (arrives, dies, silent, cut, throttle, noise, load) is refused for a live run, not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from farm.errors import UsageError, shorten
from farm.fleet import (
    BLOCK_BYTES_MAX,
    FPS_MAX,
    FPS_MIN,
    MIB,
    WORKERS_MAX,
    LinkProfile,
    WorkerProfile,
    parse_fleet,
)
from farm.scenario.load import number, parse_toml, read_toml
from farm.simulation.world import SimWorker

Pair = tuple[float, float]

#: Fields that only the simulator can bring about.
SIMULATED_ONLY = ("arrives", "dies", "silent", "cut", "throttle", "noise", "load")

_BLOCK_MIB_MIN = 1 / 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}\Z", re.ASCII)
_SECONDS_MAX = 1e7
#: The simulator takes its work from a list: more than this is a typing error too.
_SIMULATED_MAX = 10_000


class FleetLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The network between a worker and the store; parts go through it in blocks."""

    mib_per_second: float | None = None  #: left out: without limit
    latency: float = 0.0  #: seconds, for every block
    drop_rate: float = 0.0  #: probability that a block breaks the delivery
    block_mib: float = BLOCK_BYTES_MAX / MIB

    def profile(self) -> LinkProfile:
        return LinkProfile(
            mib_per_second=self.mib_per_second,
            latency_seconds=self.latency,
            drop_rate=self.drop_rate,
            block_bytes=round(self.block_mib * MIB),
        )


class FleetWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[worker]]``: a machine, or ``count`` of the same kind."""

    name: str | None = None
    count: int = 1
    fps: float | str | None = None  #: "max" and None: as fast as it can
    overhead: float | None = None  #: seconds between a grant and the first frame that is worked on
    threads: int | None = None  #: of its encoder; the same for the whole job, or the bytes would differ
    cores: int | None = None  #: what the machine has, for the reader
    memory_gb: float | None = None  #: GiB; a live worker that grows beyond them is stopped
    link: FleetLink | None = None  #: None: it shares the store's disk
    arrives: float = 0.0
    dies: float | None = None
    silent: tuple[Pair, ...] = ()  #: stopped: renders nothing and says nothing
    cut: tuple[Pair, ...] = ()  #: cut off: renders on, but is not heard
    throttle: tuple[Pair, ...] = ()  #: (from when on, factor of its speed)
    noise: float = 0.0  #: sigma of a lognormal factor on each frame's cost
    load: float = 0.0  #: mean share of its speed that other work takes


class Fleet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fleet file."""

    about: str = ""  #: for the reader
    overhead: float | None = None
    worker: tuple[FleetWorker, ...] = ()


# --- reading ---------------------------------------------------------------------------------------------


def load_fleet(
    text: str, overhead_seconds: float = 0.0, threads: int | None = None
) -> tuple[WorkerProfile, ...]:
    """What ``--fleet`` names, for a live run: the shorthand ``30,30,max,2`` or a ``.toml`` file.

    ``overhead_seconds`` is for workers of which the file says nothing, ``threads`` the encoder threads of the
    job, None for unknown. Raises UsageError.
    """
    if not is_fleet_file(text):
        return _as_typed(text, overhead_seconds, hint=", or 'max' for no limit")
    return to_profiles(read_fleet(text), text, overhead_seconds, threads)


def load_sim_workers(
    text: str, overhead_seconds: float = 0.0, option: str = "--fleet"
) -> tuple[SimWorker, ...]:
    """What ``--fleet``, or another ``option``, names, for the simulator. Raises UsageError, also for a worker
    without a speed."""
    if is_fleet_file(text):
        return to_sim_workers(read_fleet(text), text, overhead_seconds)
    workers = []
    for place, profile in enumerate(_as_typed(text, overhead_seconds, hint="", option=option), 1):
        if profile.fps_cap is None:
            raise UsageError(f"{option} {text}: worker {place} is 'max'; a simulated one needs a speed")
        workers.append(SimWorker(name=profile.name, fps=profile.fps_cap, overhead_seconds=overhead_seconds))
    return tuple(workers)


def is_fleet_file(text: str) -> bool:
    return text.strip().lower().endswith(".toml")


def read_fleet(path: str) -> Fleet:
    """A fleet file, checked. Raises UsageError."""
    return parse_fleet_file(read_toml(path), path)


def parse_fleet_file(text: str, where: str) -> Fleet:
    """The text of a fleet file, checked; ``where`` begins every error. Raises UsageError."""
    fleet = parse_toml(text, where, Fleet)
    check_fleet(fleet, where)
    return fleet


def check_fleet(fleet: Fleet, where: str) -> None:
    """Raises UsageError for a fleet that makes no sense."""
    if fleet.overhead is not None:
        number(f"{where}: overhead", fleet.overhead, high=_SECONDS_MAX, unit="seconds")
    for place, worker in enumerate(fleet.worker):
        _check(worker, f"{where}: worker[{place}]")
    total = sum(worker.count for worker in fleet.worker)
    if not 1 <= total <= _SIMULATED_MAX:
        raise UsageError(f"{where}: worker: a fleet has 1 to {_SIMULATED_MAX:,} workers, not {total:,}")
    _names(fleet, where)


def worker_names(fleet: Fleet, where: str) -> tuple[str, ...]:
    """The name of each worker. Raises UsageError for one given twice."""
    return tuple(name for name, _ in _names(fleet, where))


def _as_typed(
    text: str, overhead_seconds: float, hint: str, option: str = "--fleet"
) -> tuple[WorkerProfile, ...]:
    try:
        return parse_fleet(text, overhead_seconds, hint=hint, option=option)
    except UsageError as error:
        if any(mark in text for mark in "/\\.") and not re.fullmatch(r"[\d., max]*", text):
            raise UsageError(f"{option} {shorten(text)}: a fleet file's name ends in .toml") from None
        raise error


# --- using -----------------------------------------------------------------------------------------------


def to_profiles(
    fleet: Fleet, where: str, overhead_seconds: float = 0.0, threads: int | None = None
) -> tuple[WorkerProfile, ...]:
    """The fleet for a live run. Raises UsageError for what a live run can't do."""
    total = sum(worker.count for worker in fleet.worker)
    if total > WORKERS_MAX:
        raise UsageError(f"{where}: worker: a live run has 1 to {WORKERS_MAX} workers, not {total}")
    for place, worker in enumerate(fleet.worker):
        for field in SIMULATED_ONLY:
            if getattr(worker, field) != _DEFAULTS[field]:
                raise UsageError(
                    f"{where}: worker[{place}].{field}: happens in virtual time only; leave it out, or use "
                    "this file with 'uneven simulate'"
                )
        if threads is not None and worker.threads not in (None, threads):
            raise UsageError(
                f"{where}: worker[{place}].threads: {worker.threads} differs from the job's {threads}; an "
                "encoder with another number of threads writes other bytes"
            )
    return tuple(
        WorkerProfile(
            name=name,
            fps_cap=worker.fps if isinstance(worker.fps, float) else None,
            overhead_seconds=_overhead(worker, fleet, overhead_seconds),
            link=None if worker.link is None else worker.link.profile(),
            memory_bytes=None if worker.memory_gb is None else int(worker.memory_gb * (1 << 30)),
            cores=worker.cores,
        )
        for name, worker in _names(fleet, where)
    )


def to_sim_workers(fleet: Fleet, where: str, overhead_seconds: float = 0.0) -> tuple[SimWorker, ...]:
    """The fleet for the simulator. Raises UsageError for a worker without a speed."""
    for place, worker in enumerate(fleet.worker):
        if not isinstance(worker.fps, float):
            raise UsageError(f"{where}: worker[{place}].fps: a simulated worker needs a speed")
    return tuple(
        SimWorker(
            name=name,
            fps=worker.fps,
            overhead_seconds=_overhead(worker, fleet, overhead_seconds),
            arrives_at_seconds=worker.arrives,
            dies_at_seconds=worker.dies,
            silences=worker.silent,
            partitions=worker.cut,
            throttles=worker.throttle,
            frame_noise=worker.noise,
            load=worker.load,
            link=None if worker.link is None else worker.link.profile(),
        )
        for name, worker in _names(fleet, where)
        if isinstance(worker.fps, float)
    )


def _overhead(worker: FleetWorker, fleet: Fleet, otherwise: float) -> float:
    return next(s for s in (worker.overhead, fleet.overhead, otherwise) if s is not None)


def _names(fleet: Fleet, where: str) -> list[tuple[str, FleetWorker]]:
    """Each worker by its own name. Raises UsageError for a name given twice."""
    named: dict[str, tuple[int, FleetWorker]] = {}
    for place, worker in enumerate(fleet.worker):
        for n in range(1, worker.count + 1):
            name = worker.name or f"w{len(named) + 1}"
            if worker.name and worker.count > 1:
                name = f"{worker.name}-{n}"
            if name in named:
                raise UsageError(
                    f"{where}: worker[{place}].name: {name!r} is worker[{named[name][0]}]'s already"
                )
            named[name] = (place, worker)
    return [(name, worker) for name, (_, worker) in named.items()]


# --- checking --------------------------------------------------------------------------------------------

_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(FleetWorker)}


def _check(worker: FleetWorker, path: str) -> None:
    if worker.name is not None and not _NAME.match(worker.name):
        raise UsageError(
            f"{path}.name: {shorten(worker.name)} must be 1 to 32 letters, digits, '-', '_' or '.', and "
            "begin with a letter or digit"
        )
    number(f"{path}.count", worker.count, low=1, high=_SIMULATED_MAX, unit="a number of workers")
    if isinstance(worker.fps, str) and worker.fps != "max":
        raise UsageError(f'{path}.fps: give frames per second or "max", not {shorten(worker.fps)}')
    if isinstance(worker.fps, float):
        number(f"{path}.fps", worker.fps, low=FPS_MIN, high=FPS_MAX, unit="frames per second")
    for field, low, high, unit in (
        ("overhead", 0, _SECONDS_MAX, "seconds"),
        ("threads", 1, 1024, "a number of threads"),
        ("cores", 1, 100_000, "a number of cores"),
        ("arrives", 0, _SECONDS_MAX, "seconds"),
        ("dies", 0, _SECONDS_MAX, "seconds"),
        ("noise", 0, 5, "a sigma"),
    ):
        value = getattr(worker, field)
        if value is not None:
            number(f"{path}.{field}", value, low=low, high=high, unit=unit)
    if worker.memory_gb is not None:
        number(f"{path}.memory_gb", worker.memory_gb, above=True, high=1e6, unit="GiB")
    if not 0 <= worker.load < 0.5:
        raise UsageError(f"{path}.load: give a share of its speed from 0 to below 0.5, not {worker.load!r}")
    if worker.dies is not None and worker.dies <= worker.arrives:
        raise UsageError(
            f"{path}.dies: {worker.dies:g} s is not after it arrives, at {worker.arrives:g} s; leave it out"
        )
    if worker.link is not None:
        _check_link(worker.link, f"{path}.link")
    _check_intervals(f"{path}.silent", worker.silent)
    _check_intervals(f"{path}.cut", worker.cut)
    _check_throttle(f"{path}.throttle", worker.throttle)


def _check_link(link: FleetLink, path: str) -> None:
    if link.mib_per_second is not None:
        number(f"{path}.mib_per_second", link.mib_per_second, above=True, high=1e6, unit="MiB per second")
    number(f"{path}.latency", link.latency, high=60, unit="seconds")
    number(f"{path}.drop_rate", link.drop_rate, high=0.9, unit="a probability")
    high = BLOCK_BYTES_MAX / MIB
    number(f"{path}.block_mib", link.block_mib, low=_BLOCK_MIB_MIN, high=high, unit="MiB")


def _check_intervals(path: str, intervals: Iterable[Pair]) -> None:
    before = 0.0
    for place, (start, stop) in enumerate(intervals):
        number(f"{path}[{place}][0]", start, low=before, high=_SECONDS_MAX, unit="seconds")
        number(f"{path}[{place}][1]", stop, low=start, above=True, high=_SECONDS_MAX, unit="seconds")
        before = stop


def _check_throttle(path: str, steps: Iterable[Pair]) -> None:
    before = 0.0
    for place, (at, factor) in enumerate(steps):
        number(f"{path}[{place}][0]", at, low=before, high=_SECONDS_MAX, unit="seconds")
        number(f"{path}[{place}][1]", factor, above=True, high=1000, unit="a factor of its speed")
        before = at
