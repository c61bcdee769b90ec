"""The commands ``render`` and ``resume``: options in, a job that is carried to its end or a sentence out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace as replace_fields

from console import burnoptions as burn
from console import options as opt
from console import showoptions as show
from console import sourceoptions as src
from console.batch import once_each, outputs_for, render_each
from console.detach import invocation, start_detached, ui_of_detached
from console.drive import ShowOptions
from console.groups import grouped
from console.interrupts import heed_interrupts
from console.run import carry_out, new_run_id, print_plan
from console.waiting import waiting
from farm.errors import ExitCode, UsageError
from farm.folder import holds_run
from farm.journal import RunCatalogue
from farm.paths import FOLDER_SUFFIX, printable, run_folder_path
from farm.plan import JobRequest, Plan, make_plan, request_of
from farm.sampling import parse_sample
from farm.trim import parse_trim


@grouped
def render(
    context: typer.Context,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="INPUT", help="A video, or images: frame_%04d.png. Several: in turn."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Where it goes: .mp4, .mov, .mkv, .webm, .ts; frame_%05d.png; a folder."
        ),
    ] = None,
    input_option: Annotated[Path | None, typer.Option("-i", "--input", help="Same as INPUT.")] = None,
    *,
    encoder: src.Encoder = src.DEFAULT_ENCODER,
    crf: src.Crf = None,
    preset: src.Preset = None,
    pix_fmt: src.PixFmt = None,
    option: src.EncoderOption = None,
    threads: src.Threads = 1,
    audio: src.Audio = "auto",
    video_stream: src.VideoStream = None,
    fps: src.Fps = None,
    rotate: src.Rotate = "keep",
    on_size_change: src.OnSizeChange = "scale",
    on_error: src.OnError = "skip",
    part: src.Part = None,
    cuts: src.CutsFile = None,
    burning: burn.Burning,
    on_gap: src.OnGap = "fail",
    conform: src.Conform = None,
    start: src.Start = None,
    stop: src.Stop = None,
    frames: src.Frames = None,
    every: src.Every = 1,
    start_number: src.StartNumber = None,
    skip_existing: src.SkipExisting = False,
    extension: src.Extension = None,
    filters: src.Filters = None,
    one_pass: src.OnePass = False,
    settings_file: opt.SettingsFile = None,
    workers: opt.Workers = None,
    fleet: opt.Fleet = None,
    overhead: opt.Overhead = 0.0,
    fit_fleet: opt.FitFleet = False,
    scheduling: opt.Scheduling,
    sample: opt.Sample = None,
    fault: opt.FaultLines = None,
    scenario: opt.ScenarioPath = None,
    overwrite: opt.Overwrite = False,
    never_overwrite: opt.NeverOverwrite = False,
    decode: opt.Decode = False,
    manifest: opt.Manifest = False,
    keep: opt.Keep = False,
    temp: opt.Temp = None,
    dry_run: opt.DryRun = False,
    detach: opt.Detach = False,
    pause_on: show.PauseOn = None,
    no_captions: show.NoCaptions = False,
    showing: show.Showing,
    drain_timeout: show.DrainTimeout = 30.0,
) -> int:
    """Render INPUT on a fleet of workers and verify the result.

    A run that was stopped or killed goes on where it was when the same command is given again.
    """
    several = once_each([*(sources or []), *([input_option] if input_option is not None else [])])
    pairs = outputs_for(several, output, extension)
    if detach:
        if pairs is not None and len(pairs) > 1:
            raise UsageError("--detach is for one input; give a command for each")
        showing = replace(showing, ui=ui_of_detached(showing.ui))
        if not dry_run and not invocation(context).goes_alone:
            return start_detached(invocation(context).arguments)
    if pairs is not None:
        alike = context.params | {"input_option": None, "extension": None}

        def one(source: Path, target: Path) -> int:
            return render(context=context, **(alike | {"sources": [source], "output": target}))

        done = "planned" if dry_run else "sampled" if sample is not None else "done"
        return render_each(pairs, one, heed_interrupts, keep_existing=never_overwrite, done=done)
    source = sources[0] if sources else None
    typed = opt.typed(context)
    plot = opt.scenario(scenario, typed)
    if plot is not None and source is None and input_option is None:
        source = plot.input
    source = src.one_input(source, input_option)
    if output is None:
        raise UsageError("say where the result goes: -o OUTPUT")
    taken = src.source_settings(video_stream, fps, rotate, on_size_change, on_error)
    settings = src.job_settings(
        output, encoder, crf, preset, pix_fmt, option or [], threads, audio, part, taken, cuts
    )
    trim = parse_trim(start, stop, frames, every)
    settings = src.taking(settings, on_gap, conform, trim, start_number)
    settings = src.filtering(settings, filters, one_pass)
    settings = replace_fields(settings, burn=burning.settings())
    request = JobRequest(
        source=source,
        output=output,
        settings=settings,
        options=scheduling.options(),
        fleet=opt.fleet(workers, fleet, overhead, threads),
        overwrite=opt.overwrite(overwrite, never_overwrite),
        temp=temp,
        manifest=manifest,
        keep=keep,
        decode="all" if decode else "sample",
        fit_fleet=fit_fleet,
        faults=opt.faults(fault),
        skip_existing=skip_existing,
        sample=None if sample is None else parse_sample(sample),
    )
    if plot is not None:
        request = opt.played(request, plot, typed)
    shown = showing.options(drain_timeout)
    captions = plot.captions if plot is not None and not no_captions else ()
    shown = show.presented(shown, pause_on, captions)
    plan = _planned(request, shown)
    if dry_run:
        print_plan(plan)
        return ExitCode.DONE
    expectations = plot.expectations if plot is not None else ()
    report = invocation(context).report
    return carry_out(plan, shown, new_run_id(), report=report, expectations=expectations)


@grouped
def resume(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="An id, an output, a run folder, or 'last'.")
    ] = "last",
    *,
    workers: opt.Workers = None,
    fleet: opt.Fleet = None,
    overhead: opt.Overhead = 0.0,
    fit_fleet: opt.FitFleet = False,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Another policy from here on.")] = None,
    tail: Annotated[str | None, typer.Option("--tail", help="Another tail rule from here on.")] = None,
    timeout: opt.Timeout = None,
    max_tries: Annotated[int | None, typer.Option("--max-tries", min=1)] = None,
    halt: opt.HaltWhen = None,
    memfree: opt.Memfree = None,
    nice: opt.Nice = None,
    allow_nondeterministic: opt.AllowNondeterministic = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Take up parts again that were set aside.")
    ] = False,
    overwrite: opt.Overwrite = False,
    never_overwrite: opt.NeverOverwrite = False,
    decode: opt.Decode = False,
    manifest: opt.Manifest = False,
    keep: opt.Keep = False,
    detach: opt.Detach = False,
    showing: show.Showing,
    drain_timeout: show.DrainTimeout = 30.0,
) -> int:
    """Go on with a run that was stopped or killed. What is finished is checked and kept."""
    if detach:
        showing = replace(showing, ui=ui_of_detached(showing.ui))
        if not invocation(context).goes_alone:
            return start_detached(invocation(context).arguments)
    folder = _find_run(run)
    request = request_of(folder)
    options = request.options
    options = opt.changed_options(options, schedule, tail, timeout, max_tries)
    options = opt.with_limits(options, halt, memfree, nice)
    if allow_nondeterministic:
        options = replace_fields(options, allow_nondeterministic=True)
    changes: dict[str, Any] = {
        "options": options,
        "folder": folder,
        "retry_failed": retry_failed,
        "overwrite": opt.overwrite(overwrite, never_overwrite),
        "decode": "all" if decode else "sample",
        "manifest": manifest,
        "keep": keep,
        "fit_fleet": fit_fleet,
    }
    if workers is not None or fleet is not None:
        changes["fleet"] = opt.fleet(workers, fleet, overhead)
    shown = showing.options(drain_timeout)
    request = replace(request, **changes)
    return carry_out(_planned(request, shown), shown, new_run_id(), report=invocation(context).report)


def _planned(request: JobRequest, shown: ShowOptions) -> Plan:
    """The plan of a job; whoever waits for it is told how far it is. Raises UnevenError."""
    silent = shown.quiet or shown.ui == "none"
    doing = f"reading {printable(request.source)}"
    with waiting(doing, silent=silent, then="done; trying the encoder") as on_progress:
        return make_plan(request, on_progress=on_progress)


def _find_run(name: str) -> Path:
    """The run folder that is meant. Raises UsageError."""
    path = Path(name)
    if path.name.endswith(FOLDER_SUFFIX) and holds_run(path):
        return path
    beside = run_folder_path(path)
    if holds_run(beside):
        return beside
    entry = RunCatalogue().find(name)
    if not holds_run(Path(entry.folder)):
        raise UsageError(f"the run {name} has ended and left nothing to resume")
    return Path(entry.folder)
