"""``uneven simulate``: one job in virtual time.

Rules of this file:
- options in, a report out; what is simulated and how is elsewhere (trials.py, simulate.py);
- results go to standard output, progress to standard error and only to a terminal;
- the simulator is imported by the commands, not with this file: ``uneven render`` never loads it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from console import laboptions as given
from console import options as opt
from console import showoptions as show
from console.plain import caption_text
from console.presentation import Presentation
from console.terminal import Ui
from console.verdicts import verdict_lines
from farm.captions import Reel
from farm.errors import ExitCode, UsageError, shorten

if TYPE_CHECKING:
    from console.trials import Trial


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
    frames: given.Frames = None,
    overhead: given.Overhead = 2.0,
    part: given.PartFrames = 1,
    frame_kb: given.FrameKb = 20.0,
    schedule: opt.Schedule = opt.DEFAULT_SCHEDULE,
    tail: opt.Tail = opt.DEFAULT_TAIL,
    claim_ahead: opt.ClaimAhead = None,
    heartbeat: opt.Heartbeat = 2.0,
    lease: opt.Lease = 20.0,
    stall_timeout: given.StallTimeout = None,
    no_heartbeats: given.NoHeartbeats = False,
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
    speed: given.Speed = 10.0,
    refresh: show.Refresh = 10.0,
    ascii_only: show.Ascii = False,
    stay: show.Stay = False,
    pause_on: show.PauseOn = None,
    no_captions: show.NoCaptions = False,
) -> int:
    """Work one job in virtual time, with the relay and the policies of a live run.

    Prints the finishing time, its lower bound, waste, claims, what each worker did, and a timeline. In the
    console (--ui tui) space halts virtual time, [ and ] slow and hurry it, . and , step, n and N jump.
    """
    from console.trials import Trial, parse_conditions
    from farm.simulation.grid import Schedule

    showing = given.showing(ui, speed, refresh)
    if not (math.isfinite(frame_kb) and 0 < frame_kb <= 1e6):
        raise UsageError(f"--frame-kb {frame_kb:g}: give kilobytes above 0 and at most 1,000,000")
    typed = opt.typed(context)
    plot = opt.scenario(scenario, typed)
    patience = 120.0 if stall_timeout is None else stall_timeout
    options = opt.Scheduling(
        schedule=schedule,
        tail=tail,
        lease=lease,
        heartbeat=heartbeat,
        stall_timeout=patience,
        claim_ahead=claim_ahead,
    ).options()
    if plot is not None:
        options = plot.options(options, typed)
        if plot.relay.stall_timeout is not None:
            stall_timeout = options.stall_timeout_seconds
        fleet, frames = scenario or fleet, frames or plot.frames
        part = part if "part" in typed else plot.job.part or part
    heartbeat, lease = options.heartbeat_seconds, options.lease_seconds
    setting = given.setting(frames, part, overhead, heartbeat, lease, not no_heartbeats)
    setting = replace(setting, frame_bytes=frame_kb * 1000, stall_timeout_seconds=stall_timeout)
    conditions = parse_conditions(condition, "--condition")
    if len(conditions) != 1:
        raise UsageError(f"--condition {shorten(condition)}: one at a time; 'uneven compare' takes many")
    chosen = Schedule(options.policy, options.tail, options.claim_ahead)
    trial = Trial(chosen, fleet, conditions[0], seed, setting, plot, opt.faults(fault))
    given.check_frames(frames, [fleet])
    captions = plot.captions if plot is not None and not no_captions else ()
    presentation = Presentation(captions=captions, pause_on=show.pause_on(pause_on, showing))
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
