"""The options of the command line, each defined once, and how they become settings; those of input and output
are in ``console.sourceoptions``, those of how a run is shown in ``console.showoptions``.

Rule: a value that can't be is refused here, with the option's name and what would be right.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from console.settingsfile import take_settings
from farm.errors import UsageError
from farm.events import RelayOptions
from farm.faults import Fault
from farm.fleet import WorkerProfile, uniform_fleet
from farm.halt import parse_halt
from farm.machine import size, total_memory_bytes
from farm.plan import JobRequest
from farm.policies.registry import from_anywhere, parse_policy, parse_tail
from farm.scenario.faults import parse_fault
from farm.scenario.fleets import load_fleet
from farm.scenario.scenario import Scenario, read_scenario

DEFAULT_SCHEDULE = "fair"
DEFAULT_TAIL = "split"

Workers = Annotated[
    int | None,
    typer.Option("-w", "--workers", "-j", "--jobs", help="That many unthrottled workers; 0: auto."),
]
Fleet = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        metavar="FLEET",
        help="30,30,max,2: a worker each, of at most that many fps; or a .toml file.",
    ),
]
Overhead = Annotated[
    float, typer.Option("--overhead", metavar="SECONDS", help="Time lost at the start of every claim.")
]
FitFleet = Annotated[
    bool, typer.Option("--fit-fleet", help="Scale the fleet's speeds down to what this machine has.")
]
Schedule = Annotated[
    str,
    typer.Option(
        "--schedule",
        metavar="NAME,…",
        help="Policy, with parameters: fair; guided,12; fixed,48; FILE.py:Name; …",
    ),
]
Tail = Annotated[
    str,
    typer.Option(
        "--tail", metavar="RULE", help="none, split, late or duplicate-oldest[,from=frontier|start]."
    ),
]
Lease = Annotated[float, typer.Option("--lease", metavar="SECONDS", help="How long a silent claim lives.")]
Heartbeat = Annotated[float, typer.Option("--heartbeat", metavar="SECONDS", help="How often workers report.")]
StallTimeout = Annotated[
    float,
    typer.Option("--stall-timeout", metavar="SECONDS", help="Alive without progress for that long: over."),
]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="LIMIT", help="Hard limit a part: 90s, or 300% of the median part."),
]
ClaimAhead = Annotated[
    bool | None,
    typer.Option(
        "--claim-ahead/--no-claim-ahead",
        help="Workers ask for the next claim before the last one ends (default: with fair).",
    ),
]
MaxTries = Annotated[
    int, typer.Option("--max-tries", min=1, help="Failures after which a part is set aside.")
]
AllowNondeterministic = Annotated[
    bool,
    typer.Option(
        "--allow-nondeterministic",
        help="Take an encoder that gives other bytes each time; the promise of equal bytes falls.",
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="SHARE",
        help="Render parts spread over the film alone (5%, or 20 parts) and predict size and time.",
    ),
]
Backoff = Annotated[
    float,
    typer.Option(
        "--backoff", metavar="SECONDS", help="Rest before a failed part is tried again; doubled each time."
    ),
]
HaltWhen = Annotated[
    str | None,
    typer.Option(
        "--halt", metavar="WHEN", help="soon,fail=N or now,fail=N: stop when N parts were set aside."
    ),
]
Memfree = Annotated[
    str | None,
    typer.Option(
        "--memfree", metavar="SIZE", help="Begin nothing with less memory free than that: 2G, 500M."
    ),
]
Nice = Annotated[
    int | None, typer.Option("--nice", min=0, max=19, help="Let others go first: niceness of workers.")
]
Overwrite = Annotated[
    bool, typer.Option("-y", "--overwrite", help="Replace an existing output, once verified.")
]
NeverOverwrite = Annotated[bool, typer.Option("-n", "--never-overwrite", help="Never replace an output.")]
Decode = Annotated[
    bool, typer.Option("--decode", help="Decode all of the output to verify it, not a sample.")
]
Manifest = Annotated[
    bool,
    typer.Option("--manifest", help="Write OUTPUT.manifest.json, which 'uneven verify' compares with, too."),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the run folder after a good end.")]
Temp = Annotated[
    Path | None,
    typer.Option("--temp", metavar="DIR", help="Put the run folder there, not beside the output."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")]
Detach = Annotated[
    bool, typer.Option("--detach", help="Let it run on without this terminal; see attach, status and stop.")
]
SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        is_eager=True,
        callback=take_settings,
        help="Options by their long names from a TOML file; what is typed counts more.",
    ),
]

FaultLines = Annotated[
    list[str] | None,
    typer.Option(
        "--fault",
        metavar="FAULT",
        help="Inject one: 'stall w3 at 10 for 30', 'kill w1 when it has delivered 2 parts'; again for more.",
    ),
]

ScenarioPath = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="FILE",
        help="Fleet, policy and faults from a scenario file; what is typed beside it counts more.",
    ),
]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)s\Z", re.ASCII)
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%\Z", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKMGT]?)(i?)B?\Z", re.ASCII)


def overwrite(yes: bool, never: bool) -> bool | None:
    if yes and never:
        raise UsageError("-y and -n exclude each other")
    return True if yes else False if never else None


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """A group of options (console.groups)."""

    schedule: Schedule = DEFAULT_SCHEDULE
    tail: Tail = DEFAULT_TAIL
    lease: Lease = 20.0
    heartbeat: Heartbeat = 2.0
    stall_timeout: StallTimeout = 120.0
    timeout: Timeout = None
    max_tries: MaxTries = 3
    claim_ahead: ClaimAhead = None
    backoff: Backoff = 1.0
    halt: HaltWhen = None
    memfree: Memfree = None
    nice: Nice = None
    allow_nondeterministic: AllowNondeterministic = False

    def options(self) -> RelayOptions:
        """Raises UsageError."""
        self._check_times()
        limit_seconds, limit_share = _part_limit(self.timeout)
        fair = self.schedule.partition(",")[0] == "fair"
        options = RelayOptions(
            policy=from_anywhere(self.schedule),
            tail=self.tail,
            lease_seconds=self.lease,
            heartbeat_seconds=self.heartbeat,
            stall_timeout_seconds=self.stall_timeout,
            part_timeout_seconds=limit_seconds,
            part_timeout_share=limit_share,
            max_tries=self.max_tries,
            claim_ahead=fair if self.claim_ahead is None else self.claim_ahead,
            backoff_seconds=self.backoff,
            allow_nondeterministic=self.allow_nondeterministic,
        )
        check_schedule(options)
        return with_limits(options, self.halt, self.memfree, self.nice)

    def _check_times(self) -> None:
        times = (("lease", self.lease), ("heartbeat", self.heartbeat), ("stall-timeout", self.stall_timeout))
        for name, seconds in times:
            if not (math.isfinite(seconds) and 0.05 <= seconds <= 86400):
                raise UsageError(f"--{name} {seconds:g}: give seconds from 0.05 to 86400")
        if self.lease < 2 * self.heartbeat:
            raise UsageError(
                f"--lease {self.lease:g} is less than two heartbeats of {self.heartbeat:g} s: healthy claims "
                "would lapse"
            )
        if not (math.isfinite(self.backoff) and 0 <= self.backoff <= 3600):
            raise UsageError(f"--backoff {self.backoff:g}: give seconds from 0 to 3600")


def changed_options(
    options: RelayOptions, schedule: str | None, tail: str | None, timeout: str | None, max_tries: int | None
) -> RelayOptions:
    """A run's options with what is asked otherwise from here on. Raises UsageError."""
    changes: dict[str, Any] = {}
    if schedule is not None:
        changes["policy"] = from_anywhere(schedule)
    if tail is not None:
        changes["tail"] = tail
    if timeout is not None:
        changes["part_timeout_seconds"], changes["part_timeout_share"] = _part_limit(timeout)
    if max_tries is not None:
        changes["max_tries"] = max_tries
    changed = msgspec.structs.replace(options, **changes)
    check_schedule(changed)
    return changed


def with_limits(
    options: RelayOptions, halt: str | None, memfree: str | None, nice: int | None
) -> RelayOptions:
    """Options with what is asked otherwise. Raises UsageError."""
    changes: dict[str, Any] = {}
    if halt is not None:
        changes["halt"] = halt if parse_halt(halt) is not None else ""
    if memfree is not None:
        changes["memfree_bytes"] = _size(memfree)
    if nice is not None:
        changes["nice"] = nice
    return msgspec.structs.replace(options, **changes)


def _size(memfree: str) -> int:
    """Bytes: ``2G`` is 2 * 10^9, ``2Gi`` 2 * 2^30. Raises UsageError, also for more than can ever be free."""
    found = _SIZE.match(memfree)
    if found is None or (found[3] and not found[2]):
        raise UsageError(f"--memfree {memfree}: give a size such as 500M or 2G")
    step = 1024 if found[3] else 1000
    asked = int(float(found[1]) * step ** " KMGT".index(found[2].upper() or " "))
    total = total_memory_bytes()
    if asked >= total:
        raise UsageError(f"--memfree {memfree}: nothing would ever begin, for this machine has {size(total)}")
    return asked


def check_schedule(options: RelayOptions) -> None:
    """Raises UsageError for a policy or tail rule that isn't one."""
    parse_policy(options.policy)
    parse_tail(options.tail)


def _part_limit(timeout: str | None) -> tuple[float | None, float | None]:
    if timeout is None:
        return None, None
    seconds, share = _DURATION.match(timeout), _SHARE.match(timeout)
    if seconds and float(seconds[1]) > 0:
        return float(seconds[1]), None
    if share and float(share[1]) > 100:
        return None, float(share[1]) / 100
    raise UsageError(f"--timeout {timeout}: give seconds (90s), or more than 100 % of the median part (300%)")


def fleet(
    workers: int | None, fleet: str | None, overhead: float, threads: int | None = None
) -> tuple[WorkerProfile, ...]:
    """Empty: as many as suit the machine."""
    if not (math.isfinite(overhead) and 0 <= overhead <= 3600):
        raise UsageError(f"--overhead {overhead:g}: give seconds from 0 to 3600")
    if workers is not None and fleet is not None:
        raise UsageError("--workers and --fleet exclude each other")
    if fleet is not None:
        return load_fleet(fleet, overhead, threads)
    if workers:
        return uniform_fleet(workers, overhead)
    return ()


def faults(lines: Sequence[str] | None) -> tuple[Fault, ...]:
    """``--fault``, each. Raises UsageError."""
    return tuple(parse_fault(line) for line in lines or ())


def typed(context: typer.Context) -> frozenset[str]:
    """The names of the parameters that were given on the command line."""
    return frozenset(
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    )


def scenario(path: str | None, typed: Collection[str]) -> Scenario | None:
    """``--scenario``. Raises UsageError."""
    for option in ("fleet", "workers"):
        if path is not None and option in typed:
            raise UsageError(f"--{option} and --scenario exclude each other: the scenario has its workers")
    return None if path is None else read_scenario(path)


def played(request: JobRequest, scenario: Scenario, typed: Collection[str]) -> JobRequest:
    """A request with what the scenario says, except of what was ``typed``. Raises UsageError."""
    grid = scenario.grid
    settings = request.settings
    if grid is not None and "part" not in typed:
        settings = msgspec.structs.replace(settings, grid=grid)
    return dataclasses.replace(
        request,
        settings=settings,
        options=scenario.options(request.options, typed),
        fleet=scenario.profiles(),
        faults=(*scenario.faults, *request.faults),
    )
