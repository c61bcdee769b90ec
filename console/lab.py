"""The commands of the scheduling lab: ``uneven simulate`` and ``uneven compare``.

Rules of this file:
- options in, a table out; what is simulated and how is elsewhere (trials.py, simulate.py, compare.py);
- results go to standard output, progress to standard error and only to a terminal;
- the simulator is imported by the commands, not with this file: ``uneven render`` never loads it.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console import options as opt
from console.plain import caption_text
from console.presentation import Presentation
from console.streams import give
from console.terminal import Ui, choose_ui
from console.verdicts import verdict_lines
from farm.captions import Reel
from farm.errors import ExitCode, OutputError, UsageError, shorten
from farm.paths import atomic_file, printable

if TYPE_CHECKING:
    from console.compare import Format
    from console.contest import Heat
    from console.trials import Setting, Trial

#: More would take minutes and gigabytes.
PARTS_MAX = 2_000_000
SEEDS_MAX = 1000

Frames = Annotated[
    int | None, typer.Option("--frames", help="Frames of the job (default 4800; A to X500 have their own).")
]
PartFrames = Annotated[int, typer.Option("--part", metavar="FRAMES", help="Frames a part.")]
Overhead = Annotated[
    float, typer.Option("--overhead", metavar="SECONDS", help="Time lost at the start of every claim.")
]
FrameKb = Annotated[
    float,
    typer.Option("--frame-kb", metavar="KB", help="Size of a rendered frame, for workers with a link."),
]
NoHeartbeats = Annotated[
    bool,
    typer.Option(
        "--no-heartbeats", help="Nobody reports between parts and no claim lapses, as in the article."
    ),
]
StallTimeout = Annotated[
    float | None,
    typer.Option(
        "--stall-timeout",
        metavar="SECONDS",
        help="Alive without progress for that long: over (default 120; more where a frame may take longer).",
    ),
]
Speed = Annotated[float, typer.Option("--speed", help="With --ui tui: virtual seconds a second.")]


def simulate(
    context: typer.Context,
    fleet: Annotated[
        str,
        typer.Option(
            "--fleet",
            metavar="FLEET",
            help="30,30,12,2: fps each; a .toml file; A, B, H4, M16, M64, X500 or fresh.",
        ),
    ] = "30,30,12,2",
    frames: Frames = None,
    overhead: Overhead = 2.0,
    part: PartFrames = 1,
    frame_kb: FrameKb = 20.0,
    schedule: opt.Schedule = opt.DEFAULT_SCHEDULE,
    tail: opt.Tail = opt.DEFAULT_TAIL,
    claim_ahead: opt.ClaimAhead = None,
    heartbeat: opt.Heartbeat = 2.0,
    lease: opt.Lease = 20.0,
    stall_timeout: StallTimeout = None,
    no_heartbeats: NoHeartbeats = False,
    fault: opt.FaultLines = None,
    scenario: opt.ScenarioPath = None,
    condition: Annotated[
        str,
        typer.Option(
            "--condition", help="stall, die, throttle, noise, scenes, late, 'h 0.1', 'h 10' or base."
        ),
    ] = "base",
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="For what is drawn; 0: workers ask in the order listed.")
    ] = 0,
    ui: Annotated[str, typer.Option("--ui", help="plain (auto), tui, json or none.")] = "plain",
    speed: Speed = 10.0,
    refresh: opt.Refresh = 10.0,
    ascii_only: opt.Ascii = False,
    stay: opt.Stay = False,
    pause_on: opt.PauseOn = None,
    no_captions: opt.NoCaptions = False,
) -> int:
    """Work one job in virtual time, with the relay and the policies of a live run.

    Prints the finishing time, its lower bound, waste, claims, what each worker did, and a timeline. In the
    console (--ui tui) space halts virtual time, [ and ] slow and hurry it, . and , step, n and N jump.
    """
    from console.trials import Trial, parse_conditions
    from farm.simulation.grid import Schedule

    showing = _showing(ui, speed, refresh)
    if not (math.isfinite(frame_kb) and 0 < frame_kb <= 1e6):
        raise UsageError(f"--frame-kb {frame_kb:g}: give kilobytes above 0 and at most 1,000,000")
    typed = opt.typed(context)
    plot = opt.scenario(scenario, typed)
    patience = 120.0 if stall_timeout is None else stall_timeout
    options = opt.relay_options(schedule, tail, lease, heartbeat, patience, None, 3, claim_ahead)
    if plot is not None:
        options = plot.options(options, typed)
        if plot.relay.stall_timeout is not None:
            stall_timeout = options.stall_timeout_seconds
        fleet, frames = scenario or fleet, frames or plot.frames
        part = part if "part" in typed else plot.job.part or part
    heartbeat, lease = options.heartbeat_seconds, options.lease_seconds
    setting = _setting(frames, part, overhead, heartbeat, lease, not no_heartbeats)
    setting = replace(setting, frame_bytes=frame_kb * 1000, stall_timeout_seconds=stall_timeout)
    conditions = parse_conditions(condition, "--condition")
    if len(conditions) != 1:
        raise UsageError(f"--condition {shorten(condition)}: one at a time; 'uneven compare' takes many")
    chosen = Schedule(options.policy, options.tail, options.claim_ahead)
    trial = Trial(chosen, fleet, conditions[0], seed, setting, plot, opt.faults(fault))
    _check_frames(frames, [fleet])
    captions = plot.captions if plot is not None and not no_captions else ()
    presentation = Presentation(captions=captions, pause_on=opt.pause_on(pause_on, showing))
    return watched(trial, showing, presentation, speed, refresh, ascii_only, stay)


def watched(
    trial: Trial,
    showing: Ui,
    presentation: Presentation,
    rate: float,
    refresh_hz: float,
    ascii_only: bool,
    stay: bool,
) -> int:
    """Show a simulated run and say what came of it; returns the exit code. Raises UsageError."""
    from console import simulate as lab

    reel = Reel(presentation.captions)
    if showing == "tui":
        seen = lab.watch_in_console(
            trial,
            rate=rate,
            refresh_hz=refresh_hz,
            ascii_only=ascii_only,
            stay=stay,
            presentation=presentation,
        )
    else:
        seen = lab.watch(trial, reel)
    verdicts = lab.verdicts_of(trial, seen)
    if showing == "json":
        lab.say([lab.report_json(lab.report_of(trial, seen.result, verdicts))])
    elif showing != "none":
        if told := [caption_text(shown) for shown in reel.take_due(seen.history.at)]:
            lab.say([*told, ""])
        lab.say([*lab.report_lines(trial, seen, lab.terminal_width()), *verdict_lines(verdicts)])
    if seen.left and seen.result.credited_frames < seen.result.frames:
        return ExitCode.INTERRUPTED
    if not all(verdict.met for verdict in verdicts):
        return ExitCode.EXPECTATION
    return ExitCode.DONE if seen.result.credited_frames == seen.result.frames else ExitCode.INCOMPLETE


def compare(
    context: typer.Context,
    fleets: Annotated[
        str,
        typer.Option(
            "--fleets",
            metavar="A,B,…",
            help="A, B, H4, M16, M64, X500, all, fresh, .toml files; speeds after a ';': A;10,10,3.",
        ),
    ] = "A,B",
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policies",
            metavar="POLICY+TAIL",
            help="As in 'guided,12+late', with +ahead or +no-ahead behind; again for more.",
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[POLICY+TAIL…]", help="More of them; with --runs, the runs."),
    ] = None,
    runs: Annotated[
        bool,
        typer.Option(
            "--runs", help="Compare 2 to 8 runs that were made: ids, outputs, recordings; or the last two."
        ),
    ] = False,
    conditions: Annotated[
        str,
        typer.Option(
            "--conditions",
            metavar="base,stall,…",
            help="base, 'h 0.1', 'h 10', stall, die, throttle, noise, scenes, late; all; drawn by the seed.",
        ),
    ] = "base",
    seeds: Annotated[int, typer.Option("--seeds", help="Seeds a cell; the first is 0 (fresh: 1).")] = 1,
    frames: Frames = None,
    overhead: Overhead = 2.0,
    part: PartFrames = 1,
    heartbeat: opt.Heartbeat = 2.0,
    lease: opt.Lease = 20.0,
    no_heartbeats: NoHeartbeats = False,
    article: Annotated[
        bool, typer.Option("--article", help="The published table and the prototype's, beside ours.")
    ] = False,
    form: Annotated[str, typer.Option("--format", help="text, csv or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file; it is replaced.")
    ] = None,
    processes: Annotated[int, typer.Option("--processes", help="0: as many as cores.")] = 0,
    ui: Annotated[
        str, typer.Option("--ui", help="plain (auto); tui: side by side in the console, then the table.")
    ] = "plain",
    speed: Speed = 10.0,
    refresh: opt.Refresh = 10.0,
    ascii_only: opt.Ascii = False,
) -> int:
    """Many policies over many fleets and conditions, in virtual time: one table.

    Without options: all built-in policies on the article's two fleets. With --ui tui the policies of each
    fleet are played in step on one clock first, the eight best of more; q leaves that. With --runs it is runs
    that were made which are compared: uneven compare --runs RUN RUN.
    """
    from console import article as told
    from console import compare as lab
    from console.tapes import heats_of, watch_heats
    from console.trials import Score, parse_conditions, parse_fleets, parse_schedule
    from farm.simulation.grid import FRESH

    chosen = _format(form)
    watched = _showing(ui, speed, refresh) == "tui"
    if ui not in ("auto", "plain", "tui"):
        raise UsageError(f"--ui {shorten(ui)}: choose auto, tui or plain; --format json gives JSON")
    if watched and article:
        raise UsageError("--ui tui can't show --article; name its policies and fleets instead")
    if not 0 <= processes <= 256:
        raise UsageError(f"--processes {processes}: give 0 (as many as cores) to 256")
    _check_writable(output)
    watch = partial(watch_heats, rate=speed, refresh_hz=refresh, ascii_only=ascii_only)
    if runs:
        _check_runs_only(opt.typed(context))
        _compare_runs(more or (), chosen, output, watch if watched else None)
        return ExitCode.DONE
    if article:
        found = told.run_article(_progress(), processes)
        _give(told.render(found, chosen, _width(output)), output)
        return ExitCode.DONE
    if not 1 <= seeds <= SEEDS_MAX:
        raise UsageError(f"--seeds {seeds}: give 1 to {SEEDS_MAX:,}")
    setting = _setting(frames, part, overhead, heartbeat, lease, not no_heartbeats)
    named = [*(policies or ()), *(more or ())] or list(lab.ALL_POLICIES)
    schedules = list(dict.fromkeys(parse_schedule(text) for text in named))
    places = parse_fleets(fleets)
    _check_frames(frames, places)
    first = 1 if places == [FRESH] else 0

    def show(trials: Sequence[Trial], scores: Sequence[Score]) -> None:
        if watched:
            watch(heats_of(trials, scores))

    comparison = lab.compare(
        schedules,
        places,
        parse_conditions(conditions),
        range(first, first + seeds),
        setting,
        processes=processes,
        on_done=_progress(),
        show=show,
    )
    _give(lab.render(comparison, chosen, _width(output)), output)
    return ExitCode.DONE


_FOR_RUNS = frozenset(("runs", "more", "form", "output", "ui", "speed", "refresh", "ascii_only"))


def _check_runs_only(typed: Collection[str]) -> None:
    """Raises UsageError for an option that says what to simulate."""
    wrong = sorted(set(typed) - _FOR_RUNS)
    if wrong:
        raise UsageError(
            f"--{wrong[0].replace('_', '-')} and --runs exclude each other: it says what to simulate"
        )


def _compare_runs(
    names: Sequence[str], form: Format, output: Path | None, watch: Callable[[Sequence[Heat]], None] | None
) -> None:
    """Raises UsageError, InputError or OutputError."""
    from console import compare_runs as told

    tapes = told.read_runs(told.named_or_newest(names))
    if watch is not None:
        watch([told.heat_of(tapes)])
    _give(told.render(told.compared(tapes), form, _width(output)), output)


# --- what the options mean -------------------------------------------------------------------------------


def _showing(ui: str, speed: float, refresh: float) -> Ui:
    """Raises UsageError."""
    showing = choose_ui("plain" if ui == "auto" else ui, os.environ, sys.stdin.isatty(), sys.stderr.isatty())
    opt.check_refresh(refresh)
    if not (math.isfinite(speed) and 0 < speed <= 1e6):
        raise UsageError(f"--speed {speed:g}: give virtual seconds a second, above 0")
    return showing


def _setting(
    frames: int | None, part: int, overhead: float, heartbeat: float, lease: float, heartbeats: bool
) -> Setting:
    """Raises UsageError."""
    from console.trials import Setting

    frames = 4800 if frames is None else frames
    if frames < 1:
        raise UsageError(f"--frames {frames}: a job has at least one frame")
    if part < 1:
        raise UsageError(f"--part {part}: a part has at least one frame")
    if frames > PARTS_MAX * part:
        raise UsageError(
            f"--frames {frames} are more than {PARTS_MAX:,} parts of {part}; give a longer --part"
        )
    if not (math.isfinite(overhead) and 0 <= overhead <= 3600):
        raise UsageError(f"--overhead {overhead:g}: give seconds from 0 to 3600")
    opt.relay_options(opt.DEFAULT_SCHEDULE, opt.DEFAULT_TAIL, lease, heartbeat, 120.0, None, 3)
    return Setting(
        frames=frames,
        part=part,
        overhead_seconds=overhead,
        heartbeat_seconds=heartbeat,
        lease_seconds=lease,
        heartbeats=heartbeats,
    )


def _check_frames(frames: int | None, fleets: Sequence[str]) -> None:
    """Raises UsageError for frames that a fleet would not heed."""
    from farm.simulation.fleets import FLEETS
    from farm.simulation.grid import FRESH

    for fleet in fleets:
        if frames is not None and fleet in (*FLEETS, FRESH):
            raise UsageError(f"--frames {frames}: fleet {fleet} comes with frames of its own")


def _format(text: str) -> Format:
    """Raises UsageError."""
    formats: dict[str, Format] = {"text": "text", "csv": "csv", "json": "json"}
    if text not in formats:
        raise UsageError(f"--format {shorten(text)}: choose {', '.join(formats)}")
    return formats[text]


def _width(output: Path | None) -> int:
    """Cells of a line: the terminal's, and as many as a table needs where nobody looks."""
    if output is not None or not sys.stdout.isatty():
        return 10_000
    return shutil.get_terminal_size().columns


def _check_writable(output: Path | None) -> None:
    """Before all the work. Raises OutputError."""
    if output is None:
        return
    if output.is_dir():
        raise OutputError(f"{printable(output)} can't be written: it is a folder")
    if not output.parent.is_dir():
        raise OutputError(
            f"{printable(output)} can't be written: there is no folder {printable(output.parent)}"
        )
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise OutputError(f"{printable(output)} can't be written: permission denied")


def _give(written: str, output: Path | None) -> None:
    """Raises OutputError."""
    if output is None:
        give(written)
        return
    with atomic_file(output) as file:
        file.write(written.encode())


def _progress() -> Callable[[int, int], None]:
    """A line on standard error that says how far it is, if somebody looks."""
    if not sys.stderr.isatty():
        return lambda done, of: None

    def say(done: int, of: int) -> None:
        end = "\r\x1b[K" if done == of else ""
        print(f"\r{done:,} of {of:,} runs{end}", end="", file=sys.stderr, flush=True)

    return say
