"""Scenario files: a job, a fleet, what goes wrong and what must come of it; for the farm and the simulator.

    about = "two of eight workers die"
    [job]
    frames = 4800                     # simulated, or of a clip that is made
    part = 48                         # frames
    [relay]
    policy = "fair"
    tail = "split"
    lease = 20.0
    [[worker]]                        # as in a fleet file
    count = 8
    fps = 6.0
    [[fault]]                         # farm.scenario.faults
    do = "kill"
    on = ["w3", "w5"]
    when = "40 % is credited"
    [[caption]]                       # farm.scenario.captions
    when = "w3 lapses"
    text = "What it had not delivered is open again."
    [[expect]]                        # farm.scenario.expect
    what = "credited_frames"
    at_least = 4800

Rules: what the file doesn't say is as on the command line, and what is typed there counts more than the file;
an error is one sentence with the path of the field.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import msgspec
from msgspec.structs import replace

from farm.captions import Caption
from farm.errors import UsageError, shorten
from farm.events import RelayOptions
from farm.faults import Fault
from farm.fleet import WorkerProfile
from farm.policies.registry import from_anywhere, parse_policy, parse_tail
from farm.scenario.captions import CaptionTable, captions_of
from farm.scenario.expect import Expectation, check_expectation
from farm.scenario.faults import FaultTable, check_faults, fault_of
from farm.scenario.fleets import Fleet, FleetWorker, check_fleet, to_profiles, to_sim_workers, worker_names
from farm.scenario.load import number, parse_toml, read_toml
from farm.settings import GridSettings
from farm.simulation.world import SimWorker, World, world_of

#: As ``uneven simulate`` has it, where nothing is said.
_FRAMES = 4800
_FRAMES_MAX = 100_000_000
_SECONDS_MAX = 86_400.0


class JobTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[job]``."""

    frames: int | None = None  #: of a simulated job or a made clip
    part: int | None = None  #: frames; cut regularly, as in the simulator
    input: str | None = None  #: a video for a live run, beside the scenario file
    overhead: float | None = None  #: seconds a claim, for workers that don't say otherwise


class RelayTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[relay]``: what the options of those names mean. Times in seconds."""

    policy: str | None = None
    tail: str | None = None
    lease: float | None = None
    heartbeat: float | None = None
    stall_timeout: float | None = None
    timeout: float | None = None
    max_tries: int | None = None
    claim_ahead: bool | None = None


class ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    about: str = ""  #: for the reader
    job: JobTable = JobTable()
    relay: RelayTable = RelayTable()
    worker: tuple[FleetWorker, ...] = ()
    fault: tuple[FaultTable, ...] = ()
    caption: tuple[CaptionTable, ...] = ()
    expect: tuple[Expectation, ...] = ()


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that makes sense. ``where`` names its file in errors."""

    where: str
    about: str
    job: JobTable
    relay: RelayTable
    fleet: Fleet
    faults: tuple[Fault, ...]
    expectations: tuple[Expectation, ...]
    captions: tuple[Caption, ...] = ()

    @property
    def frames(self) -> int:
        return self.job.frames or _FRAMES

    @property
    def workers(self) -> tuple[str, ...]:
        return worker_names(self.fleet, self.where)

    @property
    def input(self) -> Path | None:
        """A relative path counts from the scenario file."""
        return None if self.job.input is None else Path(self.where).parent / self.job.input

    @property
    def grid(self) -> GridSettings | None:
        """None: as the command line says."""
        part = self.job.part
        return None if part is None else GridSettings(frames=part, seconds=None, fixed=True)

    def options(self, otherwise: RelayOptions, typed: Container[str] = ()) -> RelayOptions:
        """``otherwise``, with what the scenario says, but not of what was ``typed`` (the names of the command
        line's options). Raises UsageError."""
        relay = self.relay
        given = {
            ("policy", "schedule"): None if relay.policy is None else from_anywhere(relay.policy),
            ("tail", "tail"): relay.tail,
            ("lease_seconds", "lease"): relay.lease,
            ("heartbeat_seconds", "heartbeat"): relay.heartbeat,
            ("stall_timeout_seconds", "stall_timeout"): relay.stall_timeout,
            ("part_timeout_seconds", "timeout"): relay.timeout,
            ("max_tries", "max_tries"): relay.max_tries,
            ("claim_ahead", "claim_ahead"): self._claim_ahead("schedule" in typed),
        }
        changes = {name: value for (name, option), value in given.items() if option not in typed}
        options = replace(otherwise, **{name: value for name, value in changes.items() if value is not None})
        if options.lease_seconds < 2 * options.heartbeat_seconds:
            raise UsageError(
                f"{self.where}: relay.lease: {options.lease_seconds:g} s are less than two heartbeats of "
                f"{options.heartbeat_seconds:g} s"
            )
        return options

    def _claim_ahead(self, other_policy: bool) -> bool | None:
        """As on the command line: with fair, unless it is said otherwise."""
        if self.relay.claim_ahead is None and self.relay.policy is not None and not other_policy:
            return self.relay.policy.partition(",")[0] == "fair"
        return self.relay.claim_ahead

    def profiles(self, overhead_seconds: float = 0.0) -> tuple[WorkerProfile, ...]:
        """The fleet for a live run. Raises UsageError for what a live run can't do."""
        check_faults(self.faults, self.workers, live=True)
        return to_profiles(self.fleet, self.where, self._overhead(overhead_seconds))

    def sim_workers(self, overhead_seconds: float = 0.0) -> tuple[SimWorker, ...]:
        """The fleet for the simulator. Raises UsageError for a worker without a speed."""
        return to_sim_workers(self.fleet, self.where, self._overhead(overhead_seconds))

    def world(
        self,
        options: RelayOptions,
        *,
        frames: int | None = None,
        part: int | None = None,
        overhead_seconds: float = 0.0,
    ) -> World:
        """The scenario in virtual time; ``options`` as ``options`` made them, frames and part as the scenario
        has them unless they are given. Raises UsageError."""
        check_faults(self.faults, self.workers, live=False)
        workers = self.sim_workers(overhead_seconds)
        world = world_of(workers, frames or self.frames, part=part or self.job.part or 1, options=options)
        return replace(world, name=self.where, faults=self.faults)

    def _overhead(self, otherwise: float) -> float:
        return otherwise if self.job.overhead is None else self.job.overhead


def read_scenario(path: str) -> Scenario:
    """A scenario file, checked. Raises UsageError."""
    return parse_scenario(read_toml(path), path)


def parse_scenario(text: str, where: str) -> Scenario:
    """The text of a scenario file, checked; ``where`` begins every error. Raises UsageError."""
    file = parse_toml(text, where, ScenarioFile)
    _check_job(file.job, where)
    _check_relay(file.relay, where)
    fleet = Fleet(about=file.about, worker=file.worker)
    check_fleet(fleet, where)
    faults = tuple(fault_of(table, f"{where}: fault[{place}]") for place, table in enumerate(file.fault))
    names = worker_names(fleet, where)
    for place, fault in enumerate(faults):
        for name in (*fault.workers, getattr(fault.when, "worker", None)):
            if name not in (None, "all", *names):
                raise UsageError(f"{where}: fault[{place}].on: there is no worker {shorten(name)}")
    for place, expectation in enumerate(file.expect):
        check_expectation(expectation, names, f"{where}: expect[{place}]")
    return Scenario(
        where=where,
        about=file.about,
        job=file.job,
        relay=file.relay,
        fleet=fleet,
        faults=faults,
        expectations=file.expect,
        captions=captions_of(file.caption, names, where),
    )


def _check_job(job: JobTable, where: str) -> None:
    for field, value in (("frames", job.frames), ("part", job.part)):
        if value is not None:
            number(f"{where}: job.{field}", value, low=1, high=_FRAMES_MAX, unit="frames")
    if job.overhead is not None:
        number(f"{where}: job.overhead", job.overhead, high=3600, unit="seconds")
    if job.input is not None and not job.input.strip():
        raise UsageError(f"{where}: job.input: name a video, or leave it out")


def _check_relay(relay: RelayTable, where: str) -> None:
    for field in ("lease", "heartbeat", "stall_timeout", "timeout"):
        value = getattr(relay, field)
        if value is not None:
            number(f"{where}: relay.{field}", value, low=0.05, high=_SECONDS_MAX, unit="seconds")
    if relay.max_tries is not None:
        number(f"{where}: relay.max_tries", relay.max_tries, low=1, high=1_000_000, unit="tries")
    if relay.policy is not None:
        parse_policy(relay.policy, f"{where}: relay.policy:")
    if relay.tail is not None:
        parse_tail(relay.tail, f"{where}: relay.tail:")
