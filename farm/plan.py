"""What is settled before any work: the request, what the probe found, and the run folder it will live in.

Rule: everything that can be known to fail is refused here, in one sentence, and nothing is left behind.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from farm import events as ev
from farm.engines.child import ChildCrashed, run_in_child_blocking
from farm.errors import InputError, OutputError
from farm.facts import Probed
from farm.faults import Fault
from farm.fleet import WorkerProfile, uniform_fleet
from farm.folder import JOURNAL_NAME, RunFolder
from farm.frames import PartGrid
from farm.journal import Journal
from farm.machine import automatic_workers
from farm.paths import check_output, printable, run_folder_path
from farm.policies.registry import parse_policy, parse_tail
from farm.relay.books import Books
from farm.scenario.faults import check_faults
from farm.settings import GridSettings, JobSettings, settings_hash
from farm.source import SourceIndex, part_cuts, save_index

#: Assumed where a source has no frame rate at all, for the default length of parts only.
_RATE_UNKNOWN = 25.0
#: Below this much room a run is not begun.
_ROOM_BYTES_MIN = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What the user asks for."""

    source: Path
    output: Path
    settings: JobSettings
    options: ev.RelayOptions
    fleet: tuple[WorkerProfile, ...]
    overwrite: bool | None = None
    temp: Path | None = None
    keep: bool = False
    decode: Literal["sample", "all"] = "sample"
    fit_fleet: bool = False
    resume_only: bool = False  #: there must be a run to resume
    folder: Path | None = None  #: the run folder, where it isn't where it would be made
    retry_failed: bool = False  #: take up parts again that were set aside
    faults: tuple[Fault, ...] = ()  #: injected on purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job that could begin."""

    request: JobRequest
    probed: Probed
    grid: PartGrid
    settings_hash: str
    folder_path: Path
    resumes: bool  #: an earlier run is in the folder

    @property
    def index(self) -> SourceIndex:
        return self.probed.index


@dataclass(slots=True, kw_only=True)
class OpenedRun:
    """A plan with its run folder held and its books folded from the journal, if there was one."""

    plan: Plan
    folder: RunFolder
    journal: Journal
    books: Books
    last_at: float  #: lease seconds of the newest record
    history: tuple[ev.Record, ...]

    @property
    def run_id(self) -> str:
        """The id the run was given when it began; empty for a new one."""
        first = self.history[0].event if self.history else None
        return first.run_id if isinstance(first, ev.RunOpened) else ""


def make_plan(request: JobRequest, log: Path | None = None) -> Plan:
    """Check the output, probe the input in a child process, cut the grid.

    Raises UsageError, InputError or OutputError, and leaves nothing behind.
    """
    check_output(request.source, request.output, request.overwrite)
    parse_policy(request.options.policy)
    parse_tail(request.options.tail)
    folder_path = request.folder or run_folder_path(request.output, request.temp)
    with tempfile.TemporaryDirectory(prefix="uneven-") as scratch:
        probed = _probe(request, log or Path(scratch) / "probe.log")
    grid = PartGrid(cut_grid(probed.index, request.settings.grid))
    if not request.fleet:
        workers = automatic_workers(probed.index, request.settings)
        request = replace(request, fleet=uniform_fleet(workers))
    check_faults(request.faults, [profile.name for profile in request.fleet], live=True)
    resumes = (folder_path / JOURNAL_NAME).exists()
    if request.resume_only and not resumes:
        raise OutputError(f"there is no unfinished run in {printable(folder_path)}; start it with render")
    return Plan(
        request=request,
        probed=probed,
        grid=grid,
        settings_hash=settings_hash(request.settings, probed.build, probed.index.fingerprint),
        folder_path=folder_path,
        resumes=resumes,
    )


def _probe(request: JobRequest, log: Path) -> Probed:
    try:
        probed = run_in_child_blocking(
            "farm.media.tasks:probe_job", request.source.absolute(), request.settings, log=log
        )
    except ChildCrashed as crash:
        raise InputError(
            f"{printable(request.source)} can't be used: reading it crashed the media library "
            f"({crash.signal_name or crash.exit_code})"
        ) from crash
    assert isinstance(probed, Probed)
    return probed


def cut_grid(index: SourceIndex, grid: GridSettings) -> tuple[int, ...]:
    """The part grid of a job: from the index and the settings alone. Raises UsageError."""
    target = grid.frames
    if target is None:
        rate = index.frame_rate[0] / index.frame_rate[1] if index.frame_rate else _RATE_UNKNOWN
        target = max(1, round((grid.seconds or 4.0) * rate))
    return part_cuts(index.frames, target, index.keys, fixed=grid.fixed)


def open_run(plan: Plan) -> OpenedRun:
    """Take the run folder: a new one, or an earlier run's if it matches.

    Raises OutputError if it is held by another process, holds a run that differs (saying in what), is
    damaged, or can't be made.
    """
    if plan.resumes:
        return _reopen(plan)
    folder = RunFolder.create(plan.folder_path)
    try:
        folder.require_free(_ROOM_BYTES_MIN)
        save_index(plan.index, folder.index)
        journal = Journal.create(folder.journal)
    except BaseException:
        folder.remove()
        raise
    return OpenedRun(plan=plan, folder=folder, journal=journal, books=Books(), last_at=0.0, history=())


def _reopen(plan: Plan) -> OpenedRun:
    folder = RunFolder.open(plan.folder_path)
    try:
        folder.require_free(_ROOM_BYTES_MIN)
        journal = Journal.open(folder.journal)
        try:
            history = tuple(journal.records())
            if history:
                _check_unfinished(plan, history[-1].event)
                _check_same(plan, history[0].event)
            save_index(plan.index, folder.index)
        except BaseException:
            journal.close()
            raise
    except BaseException:
        folder.close()
        raise
    books = Books()
    for record in history:
        books.apply(record.at, record.event)
    last_at = history[-1].at if history else 0.0
    return OpenedRun(plan=plan, folder=folder, journal=journal, books=books, last_at=last_at, history=history)


def _check_unfinished(plan: Plan, last: ev.AnyEvent) -> None:
    """Raises OutputError for a run that is over and was kept."""
    if isinstance(last, ev.RunFinished) and last.exit_code == 0:
        raise OutputError(
            f"{printable(plan.folder_path)} is the kept folder of a finished run; remove or rename it"
        )


def _check_same(plan: Plan, opened: ev.AnyEvent) -> None:
    """A run goes on only with the same input, encoding settings and build. Raises OutputError."""
    name = printable(plan.folder_path)
    if not isinstance(opened, ev.RunOpened):
        raise OutputError(f"the journal in {name} does not begin with a run; remove the folder")
    differs = []
    if opened.fingerprint != plan.index.fingerprint:
        differs.append("the input has changed")
    if opened.build != plan.probed.build:
        differs.append("it was made with another build of PyAV or on another kind of processor")
    before = msgspec.json.decode(opened.settings or "{}", type=JobSettings)
    differs += _differences(before, plan.request.settings)
    if not differs and opened.settings_hash != plan.settings_hash:
        differs.append("its settings differ")
    if not differs and opened.cuts != plan.grid.cuts:
        differs.append("it is cut into other parts")
    if differs:
        advice = (
            "put back what it was begun with"
            if plan.request.resume_only
            else "resume it as it was with 'uneven resume'"
        )
        raise OutputError(
            f"{name} holds an unfinished run that differs: {'; '.join(differs)}; {advice}, or remove the "
            "folder to start anew"
        )


def _differences(before: JobSettings, now: JobSettings) -> list[str]:
    pairs = [(before.video, now.video), (before.grid, now.grid), (before, now)]
    return [
        f"{name} {_shown(getattr(old, name))} there, {_shown(getattr(new, name))} here"
        for old, new in pairs
        for name in old.__struct_fields__
        if name not in ("video", "grid") and getattr(old, name) != getattr(new, name)
    ]


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)


def request_of(run: Path) -> JobRequest:
    """The request of the run in that folder, from its journal, to resume it as it was.

    Raises OutputError if there is none or it is held by another process.
    """
    with RunFolder.open(run) as folder:
        if not folder.journal.exists():
            raise OutputError(f"{printable(run)} holds no run; start it with render")
        journal = Journal.open(folder.journal)
        try:
            opened: ev.AnyEvent | None = None
            options: ev.RelayOptions | None = None
            for record in journal.records():
                event = record.event
                opened = opened or event
                if isinstance(event, ev.RunOpened | ev.OptionsChanged):
                    options = event.options
        finally:
            journal.close()
    if not isinstance(opened, ev.RunOpened) or options is None:
        raise OutputError(f"{printable(run)} recorded nothing yet; start it with render")
    return JobRequest(
        source=Path(opened.input),
        output=Path(opened.output),
        settings=msgspec.json.decode(opened.settings, type=JobSettings),
        options=options,
        fleet=tuple(msgspec.json.decode(profile, type=WorkerProfile) for profile in opened.fleet),
        resume_only=True,
    )
