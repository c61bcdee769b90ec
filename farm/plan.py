"""What is settled before any work: the request, what the probe found, and the run folder it will live in.

Rule: everything that can be known to fail is refused here, in one sentence, and nothing is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from farm import events as ev
from farm.cuts import cuts_of_job, scene_grid, words_for_cuts
from farm.engines.child import ChildCrashed, run_in_child_blocking
from farm.engines.forkserver import EXIT_UNKNOWN
from farm.errors import FinishedAlready, InputError, OutputError, UsageError
from farm.facts import Probed
from farm.faults import Fault
from farm.fleet import WorkerProfile, uniform_fleet
from farm.folder import INDEX_NAME, NOTE_NAME, RunFolder, holds_run, remove_shell
from farm.frames import PartGrid
from farm.journal import Journal, JournalDamaged, RunCatalogue
from farm.machine import automatic_workers, fit_fleet, read_machine
from farm.manifest import check_manifest, manifest_path
from farm.outputs import as_ranges, check_images_free, existing_numbers, image_pattern
from farm.paths import check_free, check_output, check_run_folder, printable, reason, run_folder_path
from farm.policies.registry import parse_policy, parse_tail
from farm.relay.books import Books
from farm.salvage import finish, noted_run, read_note, take_journal
from farm.sampling import SampleSize
from farm.scenario.faults import check_faults
from farm.scratch import scratch_folder, sweep
from farm.sequence import changes
from farm.settings import IMAGES, GridSettings, JobSettings, settings_hash
from farm.source import SourceIndex, changed_files, load_index, save_index
from farm.store import Store

#: Assumed where a source has no frame rate at all, for the default length of parts only.
_RATE_UNKNOWN = 25.0
#: Settings that may be others when a run goes on, for no part depends on them.
_IN_NO_PART = ("on_error", "on_size_change", "audio")
#: Below this much room a run is not begun.
_ROOM_BYTES_MIN = 64 << 20
#: Of a list in a setting, when two runs are compared.
_SHOWN_ENTRIES_MAX = 8


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
    manifest: bool = False  #: write one beside the output, once that is verified
    skip_existing: bool = False  #: of an output of images: leave out those that are there
    faults: tuple[Fault, ...] = ()  #: injected on purpose
    sample: SampleSize | None = None  #: render so much of the film and say what the whole will come to


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job that could begin."""

    request: JobRequest
    probed: Probed
    grid: PartGrid
    settings_hash: str
    folder_path: Path
    resumes: bool  #: an earlier run is in the folder
    memory_note: str = ""  #: what memory did to the fleet, in a sentence

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
    history: int  #: records in the journal; they are not kept, for a long run has too many
    run_id: str = ""  #: the id the run was given when it began; empty for a new one
    damage: str = ""  #: what became of the journal, in words: then the store has to prove what is finished
    placed: ev.OutputVerified | None = None  #: the output is there, and seems to be this run's


def make_plan(
    request: JobRequest,
    log: Path | None = None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> Plan:
    """Check the output, probe the input in a child process, cut the grid. ``on_progress`` hears fractions
    from 0 to 1, of each pass over the input.

    Raises UsageError, InputError or OutputError, and leaves nothing behind.
    """
    folder_path = request.folder or run_folder_path(request.output, request.temp)
    check_run_folder(folder_path, request.temp)
    resumes = holds_run(folder_path)
    if os.path.lexists(request.output) and not resumes:  # refused below: then nothing else tidies up
        remove_shell(folder_path)
        sweep()
        RunCatalogue().sweep()
    # An output that is there may be the earlier run's own: that is seen when its journal is open.
    check_output(request.source, request.output, True if resumes else request.overwrite)
    if request.manifest:
        check_manifest(request.output, True if resumes else request.overwrite)
    if request.settings.container == IMAGES:
        request = _with_existing(request, folder_path / NOTE_NAME)
    parse_policy(request.options.policy)
    parse_tail(request.options.tail)
    with scratch_folder() as scratch:
        probed = _probe(request, log or scratch / "probe.log", on_progress)
    if probed.not_alike and not request.options.allow_nondeterministic:
        raise UsageError(
            f"{probed.not_alike}: the film would come out otherwise each time; choose other options, or give "
            "--allow-nondeterministic to do without the promise of equal bytes"
        )
    grid = PartGrid(cut_grid(probed.index, request.settings.grid))
    words = words_for_cuts(probed.index, request.settings.grid, grid.parts)
    probed = msgspec.structs.replace(probed, warnings=(*probed.warnings, *words))
    machine, video = read_machine(), request.settings.video
    if not request.fleet:
        workers = automatic_workers(probed.index, video, machine)
        if probed.index.filtered is not None and probed.index.filtered.whole:
            workers = 1
        request = replace(request, fleet=uniform_fleet(workers))
    check_faults(request.faults, [profile.name for profile in request.fleet], live=True)
    fleet, memory_note = fit_fleet(request.fleet, probed.index, video, machine)
    request = replace(request, fleet=fleet)
    if request.resume_only and not resumes:
        raise OutputError(f"there is no unfinished run in {printable(folder_path)}; start it with render")
    if request.settings.container == IMAGES:
        overwrite = True if resumes else request.overwrite
        keep = request.skip_existing
        check_images_free(request.output, probed.index, overwrite, keep_existing=keep)
    if probed.index.images:  # the sequence itself, should another one come into its folder
        request = replace(request, source=Path(probed.index.path))
    return Plan(
        request=request,
        probed=probed,
        grid=grid,
        settings_hash=settings_hash(request.settings, probed.build, probed.index.contents),
        folder_path=folder_path,
        resumes=resumes,
        memory_note=memory_note,
    )


def _with_existing(request: JobRequest, note: Path) -> JobRequest:
    """With the images that are there already, if they are to be left out: those that were there when the run
    began, for some may be its own by now. Raises UsageError."""
    pattern = image_pattern(request.output)
    if not request.skip_existing:
        return request
    begun = read_note(note)
    if begun is None:
        existing = as_ranges(existing_numbers(pattern))
    else:
        existing = msgspec.json.decode(begun.settings or "{}", type=JobSettings).images.existing
    images = msgspec.structs.replace(request.settings.images, existing=existing)
    return replace(request, settings=msgspec.structs.replace(request.settings, images=images))


def _probe(request: JobRequest, log: Path, on_progress: Callable[[float], None]) -> Probed:
    def ask() -> object:
        return run_in_child_blocking(
            "farm.media.tasks:probe_job",
            request.source.absolute(),
            request.settings,
            log=log,
            on_progress=on_progress,
        )

    try:
        try:
            probed = ask()
        except ChildCrashed as crash:
            if crash.exit_code != EXIT_UNKNOWN:
                raise
            probed = ask()  # the process that starts children was lost, which says nothing of the input
    except ChildCrashed as crash:
        doing = "reading it, or its --filter," if request.settings.filters.graph else "reading it"
        raise InputError(
            f"{printable(request.source)} can't be used: {doing} crashed the media library "
            f"({crash.signal_name or crash.exit_code})"
        ) from crash
    assert isinstance(probed, Probed)
    return probed


def cut_grid(index: SourceIndex, grid: GridSettings) -> tuple[int, ...]:
    """The part grid of a job: from the index and the settings alone. Raises UsageError."""
    if index.filtered is not None and index.filtered.whole:
        return 0, index.frames
    target = grid.frames
    if target is None:
        rate = index.frame_rate[0] / index.frame_rate[1] if index.frame_rate else _RATE_UNKNOWN
        target = max(1, round((grid.seconds or 4.0) * rate))
    cuts = cuts_of_job(index, grid)
    return scene_grid(index.frames, target, index.keys, cuts, fixed=grid.fixed)


def open_run(plan: Plan) -> OpenedRun:
    """Take the run folder: a new one, or an earlier run's if it matches.

    Raises OutputError if it is held by another process, holds a run that differs (saying in what), or can't
    be made; FinishedAlready if the earlier run only has to be tidied away, and was.
    """
    opened = _reopen(plan) if plan.resumes else None
    return _create(plan) if opened is None else opened


def _create(plan: Plan) -> OpenedRun:
    folder = RunFolder.create(plan.folder_path)
    try:
        folder.guard(plan.request.output)
        folder.require_free(_ROOM_BYTES_MIN)
        _save_index(plan, folder)
        journal = Journal.create(folder.journal)
        damage = "the journal was gone" if Store(folder.store).scan() else ""
    except BaseException:
        if Store(folder.store).scan():
            folder.close()  # finished parts of a run that lost its journal
        else:
            folder.remove()
        raise
    return OpenedRun(
        plan=plan, folder=folder, journal=journal, books=Books(), last_at=0.0, history=0, damage=damage
    )


def _reopen(plan: Plan) -> OpenedRun | None:
    """The run in the folder; None if that was over and its folder is removed: a new one may begin."""
    folder = RunFolder.open(plan.folder_path)
    try:
        folder.guard(plan.request.output)
        taken = take_journal(folder)
        history = taken.history
        try:
            if isinstance(history.last, ev.RunFinished) and history.last.is_whole:
                taken.journal.close()
                _tidy(plan, folder, history.last, taken.opened)
                return None
            if history.records or (taken.damage and taken.opened is not None):
                _check_same(plan, taken.opened)
            placed = _placed(plan, history.verified)
            folder.require_free(_ROOM_BYTES_MIN)
            _save_index(plan, folder)
        except BaseException:
            taken.journal.close()
            raise
    except BaseException:
        folder.close()
        raise
    return OpenedRun(
        plan=plan,
        folder=folder,
        journal=taken.journal,
        books=history.books,
        last_at=history.last_at,
        history=history.records,
        run_id=taken.opened.run_id if taken.opened is not None else "",
        damage=taken.damage,
        placed=placed,
    )


def _save_index(plan: Plan, folder: RunFolder) -> None:
    try:
        save_index(plan.index, folder.index)
    except OSError as error:
        raise OutputError(f"{printable(folder.index)} can't be written: {reason(error)}") from error


def _tidy(plan: Plan, folder: RunFolder, last: ev.RunFinished, opened: ev.RunOpened | None) -> None:
    """Remove what is left of a run that is over. Raises OutputError if its folder was to be kept,
    FinishedAlready if it is the run that is asked for."""
    if last.kept:
        raise OutputError(
            f"{printable(plan.folder_path)} is the kept folder of a finished run; remove or rename it"
        )
    request = plan.request
    manifest = manifest_path(plan.request.output) if plan.request.manifest else None
    finish(folder, opened.run_id if opened is not None else "unknown", keep=False, manifest=manifest)
    asked_for = opened is not None and opened.settings_hash == plan.settings_hash
    if request.resume_only or (asked_for and request.output.exists() and not request.overwrite):
        raise FinishedAlready(f"{printable(request.output)} is done; what was left of its run is removed")
    check_free(request.output, request.overwrite)


def _placed(plan: Plan, verified: ev.OutputVerified | None) -> ev.OutputVerified | None:
    """The run's own output, if that may be what has the output's name by now: the run was cut off just then.
    Raises OutputError for another file that may not be replaced."""
    output = plan.request.output
    if verified is not None and output.is_file() and output.stat().st_size == verified.output_bytes:
        return verified
    check_free(output, plan.request.overwrite)
    return None


def _check_same(plan: Plan, opened: ev.AnyEvent | None) -> None:
    """A run goes on only with the same input, encoding settings and build. Raises OutputError."""
    name = printable(plan.folder_path)
    if not isinstance(opened, ev.RunOpened):
        raise OutputError(f"the journal in {name} does not begin with a run; remove the folder")
    differs = []
    if opened.fingerprint != plan.index.fingerprint:
        differs.append(f"the input has changed{_how(plan)}")
    if opened.build != plan.probed.build:
        differs.append("it was made with another build of PyAV or on another kind of processor")
    before = msgspec.json.decode(opened.settings or "{}", type=JobSettings)
    differs += _differences(before, plan.request.settings)
    if not differs and opened.settings_hash != plan.settings_hash:
        differs.append(_other_files(plan) or "its settings differ")
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
    apart = ("video", "grid", "source", "sequence", "trim", "images", "filters", "burn")
    free = (*_IN_NO_PART, "cuts_made_for", "font_path", "folder")
    pairs = [*((getattr(before, name), getattr(now, name)) for name in apart), (before, now)]
    return [
        f"{name} {_shown(getattr(old, name))} there, {_shown(getattr(new, name))} here"
        for old, new in pairs
        for name in old.__struct_fields__
        if name not in (*apart, *free) and getattr(old, name) != getattr(new, name)
    ]


def _how(plan: Plan) -> str:
    """In which way a sequence is another one, as far as the index of the earlier run tells."""
    before = _index_before(plan)
    words = changes(before.images, plan.index.images) if before is not None else ""
    return f" ({words})" if before is not None and before.images and words else ""


def _other_files(plan: Plan) -> str:
    """Which file of a filter is another one, as far as the index of the earlier run tells; empty: none."""
    before = _index_before(plan)
    changed = changed_files(before, plan.index) if before is not None else []
    return f"{printable(Path(changed[0]))}, which a filter reads, has changed" if changed else ""


def _index_before(plan: Plan) -> SourceIndex | None:
    try:
        return load_index(plan.folder_path / INDEX_NAME)
    except (OSError, msgspec.MsgspecError):
        return None


def _shown(value: object) -> str:
    if isinstance(value, tuple) and len(value) > _SHOWN_ENTRIES_MAX:
        return f"{len(value)} entries from {value[0]} to {value[-1]}"
    return "not set" if value in (None, "") else str(value)


def request_of(run: Path) -> JobRequest:
    """The request of the run in that folder, to resume it as it was: from its journal, or from its note if
    the journal is damaged or gone.

    Raises OutputError if there is none or it is held by another process.
    """
    with RunFolder.open(run) as folder:
        if not holds_run(run):
            raise OutputError(f"{printable(run)} holds no run; start it with render")
        try:
            opened, options = _begun_with(folder)
        except JournalDamaged as error:
            opened, options = noted_run(folder), None
            if opened is None:
                raise OutputError(
                    f"{error}, and what the run was begun with is lost, too; give the same render command "
                    "again: parts that are finished are kept"
                ) from error
    if opened is None:
        raise OutputError(f"{printable(run)} recorded nothing yet; start it with render")
    return JobRequest(
        source=Path(opened.input),
        output=Path(opened.output),
        settings=msgspec.json.decode(opened.settings, type=JobSettings),
        options=options or opened.options,
        fleet=tuple(msgspec.json.decode(profile, type=WorkerProfile) for profile in opened.fleet),
        resume_only=True,
    )


def _begun_with(folder: RunFolder) -> tuple[ev.RunOpened | None, ev.RelayOptions | None]:
    """From the journal: how the run was begun, and its options by now. Raises JournalDamaged."""
    journal = Journal.open(folder.journal)
    try:
        opened: ev.RunOpened | None = None
        options: ev.RelayOptions | None = None
        for record in journal.records():
            event = record.event
            if isinstance(event, ev.RunOpened):
                opened = opened or event
            if isinstance(event, ev.RunOpened | ev.OptionsChanged):
                options = event.options
    finally:
        journal.close()
    return (opened or noted_run(folder)), options
