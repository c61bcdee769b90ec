"""``uneven demo``: a real render to look at. Without options, a guided tour; with them, a fleet of one's own.

Rules of this file:
- the tour is a scenario file like any other, tour.toml beside this file, so that it needs no clone;
- what is typed counts more: who names a fleet, frames or a policy gets them, and no tour.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from console import lab
from console import options as opt
from console import showoptions as show
from console.detach import invocation, start_detached, ui_of_detached
from console.drive import Restart
from console.groups import grouped
from console.presentation import Presentation
from console.run import carry_out, demo_request, new_run_id
from farm.captions import Caption
from farm.errors import UsageError
from farm.events import RelayOptions
from farm.plan import make_plan
from farm.scenario.scenario import Scenario, read_scenario

if TYPE_CHECKING:
    from console.trials import Trial

TOUR: Final = Path(__file__).with_name("tour.toml")
#: Options that make it another demo than the tour.
_OF_ONES_OWN: Final = frozenset(("fleet", "frames", "overhead", "schedule", "tail", "fault"))
_PART_FRAMES: Final = 12  #: as ``demo_request`` has it
_LEASE_SECONDS, _HEARTBEAT_SECONDS, _STALL_SECONDS = 6.0, 0.5, 60.0


@grouped
def demo(
    context: typer.Context,
    *,
    scenario: Annotated[
        str | None, typer.Argument(metavar="[SCENARIO]", help="A scenario file to show instead.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the demo's result goes.")] = Path(
        "demo.mp4"
    ),
    fleet: opt.Fleet = "30,30,12,2",
    frames: Annotated[int, typer.Option("--frames", help="Length of the demo's clip.", min=60)] = 1200,
    overhead: opt.Overhead = 0.5,
    schedule: opt.Schedule = opt.DEFAULT_SCHEDULE,
    tail: opt.Tail = opt.DEFAULT_TAIL,
    fault: opt.FaultLines = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="In virtual time: nothing is rendered or written.")
    ] = False,
    no_captions: show.NoCaptions = False,
    loop: show.Loop = False,
    pause_on: show.PauseOn = None,
    overwrite: opt.Overwrite = False,
    detach: opt.Detach = False,
    showing: show.Showing,
    drain_timeout: show.DrainTimeout = 30.0,
) -> int:
    """See it work: a guided tour of about a minute, with a real render, captions and a few accidents.

    With --fleet, --frames, --schedule, --tail, --overhead or --fault it is a demo of your own, by default on
    workers of 30, 30, 12 and 2 fps: stall a worker (s) or kill one (x) and see what becomes of its claim. In
    the console enter skips a caption and R begins anew.
    """
    if detach:
        if simulate or loop:
            raise UsageError(f"--detach and --{'simulate' if simulate else 'loop'} exclude each other")
        showing = dataclasses.replace(showing, ui=ui_of_detached(showing.ui))
        if not invocation(context).goes_alone:
            return start_detached(invocation(context).arguments)
    typed = opt.typed(context)
    if scenario is None and not typed & _OF_ONES_OWN:
        plot: Scenario | None = read_scenario(str(TOUR))
    else:
        plot = opt.scenario(scenario, typed)
    captions: Sequence[Caption] = plot.captions if plot is not None and not no_captions else ()
    options = _options(schedule, tail)
    shown = showing.options(drain_timeout)
    if simulate:
        trial = _trial(plot, typed, fleet, frames, overhead, schedule, tail, fault)
        stops = show.pause_on(pause_on, shown.ui)
        presentation = Presentation(captions=tuple(captions), pause_on=stops, loop=loop)
        return lab.watched(
            trial, shown.ui, presentation, 1.0, showing.refresh, showing.ascii_only, showing.stay
        )
    shown = show.presented(shown, pause_on, captions, loop=loop, can_restart=True)
    workers = opt.fleet(None, fleet, overhead)
    if plot is not None and plot.job.frames is not None and "frames" not in typed:
        frames = plot.job.frames
    while True:
        with demo_request(output, workers, frames, options, overwrite) as request:
            request = dataclasses.replace(request, faults=opt.faults(fault))
            if plot is not None:
                request = opt.played(request, plot, typed)
            plan = make_plan(request)
            try:
                report = invocation(context).report
                expectations = plot.expectations if plot is not None else ()
                return carry_out(plan, shown, new_run_id(), report=report, expectations=expectations)
            except Restart:
                # From the first frame: what the demo has made so far is its own, and nobody wants it.
                shutil.rmtree(plan.folder_path, ignore_errors=True)
                overwrite = True


def _options(schedule: str, tail: str) -> RelayOptions:
    """Raises UsageError."""
    return opt.Scheduling(
        schedule=schedule,
        tail=tail,
        lease=_LEASE_SECONDS,
        heartbeat=_HEARTBEAT_SECONDS,
        stall_timeout=_STALL_SECONDS,
    ).options()


def _trial(
    plot: Scenario | None,
    typed: Collection[str],
    fleet: str | None,
    frames: int,
    overhead: float,
    schedule: str,
    tail: str,
    fault: list[str] | None,
) -> Trial:
    """The same in virtual time. Raises UsageError."""
    from console.trials import Setting, Trial
    from farm.simulation.grid import Schedule

    options = _options(schedule, tail)
    part = _PART_FRAMES
    if plot is not None:
        options = plot.options(options, typed)
        frames = frames if "frames" in typed else plot.frames
        part = plot.job.part or part
    setting = Setting(
        frames=frames,
        part=part,
        overhead_seconds=overhead,
        heartbeat_seconds=options.heartbeat_seconds,
        lease_seconds=options.lease_seconds,
    )
    chosen = Schedule(options.policy, options.tail, options.claim_ahead)
    where = fleet or "" if plot is None else plot.where
    return Trial(chosen, where, setting=setting, scenario=plot, faults=opt.faults(fault))
