"""What the commands of the command line do once their options are understood."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from console import text
from console.detach import Report
from console.drive import ShowOptions, show
from console.report import records_of
from console.stories import story_lines
from console.streams import give_line, tell
from console.verdicts import tell_verdicts
from farm.burnin import Wording
from farm.cuts import cuts_of_job
from farm.engines.child import run_in_child_blocking
from farm.engines.local import LocalEngine, prepare
from farm.errors import ExitCode, OutputError, UnevenError, UsageError
from farm.events import RelayOptions
from farm.fleet import WorkerProfile
from farm.folder import JOURNAL_NAME
from farm.journal import RunCatalogue
from farm.paths import check_free, printable
from farm.plan import JobRequest, OpenedRun, Plan, open_run
from farm.sampling import SAMPLED, SampleSize, sample_parts
from farm.scenario.expect import Expectation
from farm.scratch import scratch_folder
from farm.settings import CONTAINERS, GridSettings, JobSettings, VideoSettings
from farm.stories import set_aside_stories

if TYPE_CHECKING:  # what runs a job is loaded when there is one
    from farm.attach.server import AttachServer
    from farm.live import LiveRun


def new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def carry_out(
    plan: Plan,
    showing: ShowOptions,
    run_id: str,
    *,
    report: Report | None = None,
    expectations: Sequence[Expectation] = (),
) -> int:
    """Run a planned job, show it, say how it ended and whether it was as expected; returns the exit code.
    ``report``: of a detached run, told once nothing more can be refused."""
    prepare()
    from farm.live import LiveRun

    opened = open_run(plan)
    request = plan.request
    catalogue = RunCatalogue()
    try:
        catalogue.register(
            opened.run_id or run_id,
            input=request.source,
            output=request.output,
            folder=plan.folder_path,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    except OutputError as error:
        tell(f"uneven: {error}; the run goes on, and 'last' won't find it")
    live = LiveRun(opened, run_id=run_id, engine=LocalEngine, wall_time=lambda: datetime.now(UTC).isoformat())
    run_id = opened.run_id or run_id
    server = serve(live, opened, run_id)
    try:
        if report is not None:
            report.started(run_id, opened.folder.logs)
        result, summary = show(live, showing, request.fleet)
        with suppress(OutputError):
            outcome = SAMPLED if result.sample else result.message or "done and verified"
            catalogue.note_end(run_id, result.exit_code, outcome)
    finally:
        server.close()
    if result.exit_code is ExitCode.BUG:
        tell("uneven: this is a bug of uneven; what follows helps to mend it:")
        tell(result.message)
    elif result.exit_code is not ExitCode.DONE:
        nothing = result.exit_code is ExitCode.INTERRUPTED and not summary.credited_frames
        tell("uneven: stopped before any part was finished" if nothing else f"uneven: {result.message}")
        if summary.set_aside_parts and showing.ui != "none":
            _tell_set_aside(plan.folder_path)
        resumable = result.exit_code in (ExitCode.INTERRUPTED, ExitCode.INCOMPLETE, ExitCode.OUTPUT)
        # A run that is done and only lost its JSON has nothing to go on with; nor has a lost folder.
        if resumable and summary.exit_code != 0 and (plan.folder_path / JOURNAL_NAME).exists():
            retry = " --retry-failed" if summary.set_aside_frames else ""
            if request.sample is not None:
                tell("The sample goes on with the same command; the whole film does with the next line.")
            tell(f"Go on with: uneven resume {shlex.quote(str(plan.folder_path))}{retry}")
    elif result.sample and showing.ui != "none":
        tell(f"Render the rest with: uneven resume {shlex.quote(str(plan.folder_path))}")
    records = result.recording or plan.folder_path
    return tell_verdicts(expectations, records, result.exit_code, showing.ui, tell)


def serve(live: LiveRun, opened: OpenedRun, run_id: str) -> AttachServer:
    """Have the run listen to other terminals. Where it can't it goes on all the same, and says so."""
    from farm.attach.address import socket_path
    from farm.attach.server import About, AttachServer

    path = opened.folder.path
    about = About(
        run_id=run_id,
        output=str(opened.plan.request.output.absolute()),
        folder=str(path.absolute()),
        pid=os.getpid(),
        history=opened.history,
    )
    server = AttachServer(about, now=live.now, send=live.send)
    try:
        server.start(socket_path(path))
        live.witness = server
    except OutputError as error:
        tell(f"uneven: {error}; the run goes on, and can't be attached to")
    return server


def _tell_set_aside(path: Path) -> None:
    """How parts came to be set aside; the run has its say already, so a journal that can't be read is no
    further error."""
    with suppress(UnevenError):
        for line in story_lines(set_aside_stories(records_of(str(path)), path / "logs")):
            tell(line)


def print_plan(plan: Plan) -> None:
    """What ``--dry-run`` shows, on standard output."""
    index, request = plan.index, plan.request
    source = index if index.filtered is None else index.filtered.source
    rate = f"{source.frame_rate[0] / source.frame_rate[1]:.3f} fps" if source.frame_rate else "no frame rate"
    sizes = [plan.grid.size(part) for part in range(plan.grid.parts)]
    video = request.settings.video
    speeds = ", ".join(_speed(profile) for profile in request.fleet)
    lines = [
        f"input     {printable(request.source)}",
        f"video     {source.codec} {source.width}x{source.height} {source.pix_fmt}, {rate}, "
        f"{text.count(source.frames)} frames",
        *_filter_lines(plan),
        *_burnt_lines(plan),
        f"reading   {'from the start: ' + index.linear_reason if index.linear else 'by seeking'}",
        f"parts     {text.count(plan.grid.parts)}, of {min(sizes)} to {max(sizes)} frames" + _cuts(plan),
        f"encoder   {video.encoder}"
        + (f", crf {video.crf:g}" if video.crf is not None else "")
        + (f", preset {video.preset}" if video.preset else ""),
        *((f"sample    {_sample(plan, request.sample)}",) if request.sample is not None else ()),
        *(f"stream    {line}" for line in plan.probed.streams),
        f"fleet     {text.plural(len(request.fleet), 'worker')}: {speeds}",
        f"policy    {request.options.policy}, tail {request.options.tail}",
        f"output    {printable(request.output)}",
        f"folder    {printable(plan.folder_path)}" + (" (resumed)" if plan.resumes else ""),
        *(f"warning   {line}" for line in (*plan.probed.warnings, plan.memory_note) if line),
    ]
    give_line("\n".join(lines))


def _filter_lines(plan: Plan) -> list[str]:
    filtered = plan.index.filtered
    if filtered is None:
        return []
    source, index, needed = filtered.source, plan.index, "each frame by itself"
    if filtered.before or filtered.after:
        needed = f"with {filtered.before} frames before a part and {filtered.after} behind it"
    if filtered.whole:
        needed = "over the whole film, as one part"
    return [
        f"filters   {' '.join(map(str.strip, plan.request.settings.filters.graph.splitlines()))}",
        f"          {needed}; from {source.width}x{source.height} {source.pix_fmt} to "
        f"{index.width}x{index.height} {index.pix_fmt}, {text.count(source.frames)} frames in, "
        f"{text.count(index.frames)} out",
        *(f"          reads {printable(Path(file.path))}" for file in filtered.files),
    ]


def _burnt_lines(plan: Plan) -> list[str]:
    """Each text, with what it says in the first frame."""
    wording, lines = Wording(plan.index, plan.request.settings), []
    for number, line in enumerate(wording.lines):
        first = wording.text(number, 0, 0)
        said = f", in the first frame {first}" if first != line.text else ""
        lines.append(f"burnt in  {line.place}: {line.text}{said}")
    return lines


def _cuts(plan: Plan) -> str:
    if not plan.request.settings.grid.cuts or plan.grid.parts == 1:
        return ""
    used = len(cuts_of_job(plan.index, plan.request.settings.grid))
    return f"; {text.plural(used, 'cut')} from --cuts"


def _sample(plan: Plan, size: SampleSize) -> str:
    chosen = sample_parts(plan.grid.parts, size)
    return f"{text.plural(len(chosen), 'part')}, {text.count(sum(map(plan.grid.size, chosen)))} frames"


def _speed(profile: WorkerProfile) -> str:
    return "unthrottled" if profile.fps_cap is None else f"{profile.fps_cap:g} fps"


@contextmanager
def demo_request(
    output: Path,
    fleet: tuple[WorkerProfile, ...],
    frames: int,
    options: RelayOptions,
    overwrite: bool,
) -> Iterator[JobRequest]:
    """A job on a clip of its own, which is removed afterwards; small parts, so that a slow worker shows."""
    if output.suffix.lower() not in CONTAINERS:
        raise UsageError(f"{output.name}: use {', '.join(sorted(CONTAINERS))}")
    check_free(output, overwrite or None)
    with scratch_folder() as scratch:
        clip = scratch / "numbered.mp4"
        tell("Making the demo's clip …")
        run_in_child_blocking("farm.media.tasks:make_demo_clip", clip, frames, log=scratch / "clip.log")
        yield JobRequest(
            source=clip,
            output=output,
            settings=JobSettings(
                video=VideoSettings(preset="veryfast", crf=26),
                grid=GridSettings(frames=12, seconds=None, fixed=True),
                container=CONTAINERS[output.suffix.lower()],
            ),
            options=options,
            fleet=fleet,
            overwrite=overwrite or None,
        )
