"""Many simulated runs: which worlds, under which policies, and what came of each.

Rules of this file:
- a trial is data: it runs in this process or in others, which share nothing with it;
- results come in the order of the trials, whichever was done first, so that a table is the same every time;
- one world has one outcome (farm.simulation.world), so the figures are the same on every machine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass

from msgspec.structs import replace

from farm.errors import UnevenError, UsageError, shorten
from farm.events import RelayOptions
from farm.faults import Fault
from farm.policies.parameters import did_you_mean
from farm.policies.registry import from_anywhere, parse_policy, parse_tail
from farm.scenario.fleets import is_fleet_file, load_sim_workers
from farm.scenario.scenario import Scenario
from farm.simulation.conditions import CONDITIONS, random_condition
from farm.simulation.fleets import FLEETS, grid_world, random_world
from farm.simulation.grid import FRESH, Schedule
from farm.simulation.noise import Stream
from farm.simulation.runs import simulate
from farm.simulation.world import World, patience_seconds, world_of

#: The condition that a seed draws.
DRAWN = "drawn"
#: Policies for which workers claim ahead unless it is said otherwise, as in ``render``.
_AHEAD_BY_NATURE = ("fair",)


def claims_ahead(policy: str) -> bool:
    """Whether workers claim ahead under ``policy`` if nothing is said."""
    return policy.partition(",")[0].strip() in _AHEAD_BY_NATURE


def parse_schedule(text: str) -> Schedule:
    """``policy+tail``, as in ``guided,12+duplicate-oldest``; behind it ``+ahead`` or ``+no-ahead``. Without a
    tail: split for fair, else none. Raises UsageError."""
    policy, *rest = (field.strip() for field in text.split("+"))
    ahead = claims_ahead(policy)
    if rest and rest[-1] in ("ahead", "no-ahead"):
        ahead = rest.pop() == "ahead"
    if len(rest) > 1:
        raise UsageError(f"--policies {shorten(text)}: give POLICY+TAIL, and +ahead or +no-ahead behind it")
    tail = rest[0] if rest else "split" if policy.partition(",")[0] == "fair" else "none"
    policy = from_anywhere(policy)
    parse_policy(policy, "--policies")
    parse_tail(tail, "--policies: tail")
    return Schedule(policy, tail, ahead)


def spell(schedule: Schedule) -> str:
    """As ``parse_schedule`` reads it."""
    usual = schedule.claim_ahead is claims_ahead(schedule.policy)
    return f"{schedule.policy}+{schedule.tail}" + ("" if usual else _AHEAD[schedule.claim_ahead])


_AHEAD = {True: "+ahead", False: "+no-ahead"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all trials of a comparison share. ``frames`` is for fleets of the user's own: the benchmark's and
    fresh ones have theirs, and fresh ones their overhead too."""

    frames: int = 4800
    part: int = 1  #: frames
    overhead_seconds: float = 2.0
    heartbeat_seconds: float = 2.0
    lease_seconds: float = 20.0
    heartbeats: bool = True
    frame_bytes: float = 20_000.0  #: matters to workers with a link
    stall_timeout_seconds: float | None = None  #: None: ``patience_seconds`` of the world


#: Options of the command line that a trial's schedule and setting hold.
_IN_TRIAL = frozenset(("schedule", "tail", "claim_ahead", "heartbeat", "lease", "stall_timeout"))


@dataclass(frozen=True, slots=True)
class Trial:
    """One run. ``fleet``: a name of the benchmark's, ``fresh``, a fleet file or speeds like ``30,30,12,2``;
    ``condition``: a name, or ``drawn``. Seed 0: the workers ask in the order they are listed."""

    schedule: Schedule
    fleet: str
    condition: str = "base"
    seed: int = 0
    setting: Setting = Setting()
    scenario: Scenario | None = None  #: whose workers and faults they are, in the place of ``fleet``'s
    faults: tuple[Fault, ...] = ()  #: beside the scenario's

    def world(self) -> World:
        """Raises UsageError."""
        setting, chosen = self.setting, self.schedule
        options = RelayOptions(
            policy=chosen.policy,
            tail=chosen.tail,
            claim_ahead=chosen.claim_ahead,
            heartbeat_seconds=setting.heartbeat_seconds,
            lease_seconds=setting.lease_seconds,
        )
        if self.scenario is None and self.fleet in FLEETS:
            world = grid_world(
                self.fleet,
                self.seed,
                part=setting.part,
                overhead_seconds=setting.overhead_seconds,
                options=options,
            )
        elif self.scenario is None and self.fleet == FRESH:
            world = random_world(self.seed, part=setting.part, options=options)
        else:
            world = self._own_world(options)
        name = random_condition(self.seed) if self.condition == DRAWN else self.condition
        faults = (*world.faults, *self.faults)
        world = replace(
            world,
            faults=faults,
            heartbeats=setting.heartbeats,
            frame_bytes=setting.frame_bytes,
            # What a fault kills is a process, as on the farm: its death is seen at once, not by its lease.
            deaths_reported=world.deaths_reported or bool(faults),
        )
        world = CONDITIONS[name](world)
        stall_seconds = setting.stall_timeout_seconds or patience_seconds(world)
        return replace(world, options=replace(world.options, stall_timeout_seconds=stall_seconds))

    def _own_world(self, options: RelayOptions) -> World:
        setting = self.setting
        if self.scenario is not None:
            world = self.scenario.world(
                self.scenario.options(options, _IN_TRIAL),
                frames=setting.frames,
                part=setting.part,
                overhead_seconds=setting.overhead_seconds,
            )
            return replace(world, seed=self.seed)
        workers = list(load_sim_workers(self.fleet, setting.overhead_seconds))
        if self.seed:
            workers = Stream(self.seed, "fleet", self.fleet).shuffled(workers)
        world = world_of(workers, setting.frames, part=setting.part, options=options)
        return replace(world, name=self.fleet, seed=self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What came of a trial. Seconds are virtual; None: the job could not be finished."""

    seconds: float | None
    bound_seconds: float
    frames: int
    credited_frames: int
    claims: int
    duplicates: int
    splits: int
    lapses: int
    wasted_frames: int
    idle_seconds: float

    @property
    def ratio(self) -> float | None:
        """Finishing time / lower bound."""
        return None if self.seconds is None else self.seconds / self.bound_seconds


def run_trial(trial: Trial) -> Score:
    """Raises UsageError for a world that makes no sense."""
    result = simulate(trial.world())
    return Score(
        seconds=result.makespan_seconds,
        bound_seconds=result.bound_seconds,
        frames=result.frames,
        credited_frames=result.credited_frames,
        claims=result.claims,
        duplicates=result.duplicates,
        splits=result.splits,
        lapses=result.lapses,
        wasted_frames=result.wasted_frames,
        idle_seconds=result.idle_seconds,
    )


def run_trials(
    trials: Sequence[Trial],
    *,
    processes: int = 0,
    on_done: Callable[[int], None] = lambda done: None,
) -> list[Score]:
    """The scores, in the order of the trials. ``processes``: 0 for as many as there are cores, 1 for this one
    alone; ``on_done`` hears how many are over. Raises UsageError for a world that makes no sense."""
    if processes == 0:
        processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    processes = min(processes, len(trials))
    if processes <= 1:
        scores = []
        for trial in trials:
            scores.append(run_trial(trial))
            on_done(len(scores))
        return scores
    return _spread(trials, processes, on_done)


def _spread(trials: Sequence[Trial], processes: int, on_done: Callable[[int], None]) -> list[Score]:
    # The longest first, or one process would be left with it at the end.
    order = sorted(range(len(trials)), key=lambda number: -_effort(trials[number]))
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_follow_the_parent)
    try:
        with _no_interrupts():
            futures = {number: pool.submit(run_trial, trials[number]) for number in order}
        for done, future in enumerate(as_completed(futures.values()), 1):
            future.result()
            on_done(done)
        return [futures[number].result() for number in range(len(trials))]
    except BrokenProcessPool as broken:
        raise UnevenError(
            "a process of the comparison was killed, perhaps for lack of memory; try --processes 1"
        ) from broken
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.kill()  # a run may take minutes, and nobody waits for it any more
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait, or children that are half started, by us or in their own minds, would tell
    the user a traceback. They inherit the waiting and end it when they are so far."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _effort(trial: Trial) -> int:
    """A guess at how long it takes, for the order only."""
    return FLEETS.index(trial.fleet) if trial.fleet in FLEETS else 0


def _follow_the_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it ends, however that comes about."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def parse_fleets(text: str) -> list[str]:
    """``A,B,M16``, ``all``, ``fresh``, files, and speeds behind a ``;``: ``A,B;10,10,3;fleet.toml``. Raises
    UsageError."""
    fleets: list[str] = []
    for group in (group.strip() for group in text.split(";")):
        fields = [field.strip() for field in group.split(",")]
        if group == "all":
            fleets += FLEETS
        elif all(field in (*FLEETS, FRESH) or is_fleet_file(field) for field in fields):
            fleets += fields
        elif not all(fields):
            raise UsageError(f"--fleets {shorten(text)}: name at least one, as in A,B,M16, and none empty")
        elif any(map(_is_name, fields)):
            known = (*FLEETS, FRESH)
            wrong = next(field for field in fields if field not in known)
            raise UsageError(
                f"--fleets {shorten(text)}: no fleet {shorten(wrong)}{did_you_mean(wrong, known)}; known: "
                f"{', '.join(known)}, a .toml file, or speeds as in A,B;10,10,3"
            )
        else:
            load_sim_workers(group, option="--fleets")
            fleets.append(group)
    return list(dict.fromkeys(fleets))


def _is_name(field: str) -> bool:
    """Whether it must be meant as a name, and not as a worker's speed (``nan`` is a wrong speed)."""
    return field[:1].isalpha() and field.lower() not in ("max", "nan", "inf", "infinity")


def parse_conditions(text: str, option: str = "--conditions") -> list[str]:
    """``base,stall``, or ``all``; ``option`` is what it was given to. Raises UsageError."""
    known = {name.replace(" ", ""): name for name in (*CONDITIONS, DRAWN)}
    if text.strip() == "all":
        return list(CONDITIONS)
    conditions = []
    for field in (field.strip() for field in text.split(",")):
        if not field:
            raise UsageError(
                f"{option} {shorten(text)}: name at least one condition, and one beside each comma"
            )
        name = known.get(field.replace(" ", ""))
        if name is None:
            raise UsageError(
                f"{option}: {shorten(field)} is not a condition{did_you_mean(field, tuple(known))}; "
                f"known: {', '.join(known.values())}"
            )
        conditions.append(name)
    return list(dict.fromkeys(conditions))
