"""``uneven compare``: many policies in virtual time, or runs that were made, as one table.

Rules of this file:
- options in, a table out; what is simulated and how is elsewhere (trials.py, compare.py, compare_runs.py);
- results go to standard output or a file, progress to standard error and only to a terminal;
- the simulator is imported by the command, not with this file: ``uneven render`` never loads it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console import laboptions as given
from console import options as opt
from console import showoptions as show
from console.streams import give
from farm.errors import ExitCode, UsageError, shorten
from farm.paths import atomic_file, check_place

if TYPE_CHECKING:
    from console.compare import Format
    from console.contest import Heat
    from console.trials import Score, Trial

SEEDS_MAX = 1000


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
    frames: given.Frames = None,
    overhead: given.Overhead = 2.0,
    part: given.PartFrames = 1,
    heartbeat: opt.Heartbeat = 2.0,
    lease: opt.Lease = 20.0,
    no_heartbeats: given.NoHeartbeats = False,
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
    speed: given.Speed = 10.0,
    refresh: show.Refresh = 10.0,
    ascii_only: show.Ascii = False,
) -> int:
    """Many policies over many fleets and conditions, in virtual time: one table.

    Without options: all built-in policies on the article's two fleets. With --ui tui the policies of each
    fleet are played in step on one clock first, the eight best of more; q leaves that. With --runs it is runs
    that were made which are compared: uneven compare --runs RUN RUN.
    """
    from console import article as told
    from console import compare as lab
    from console.tapes import heats_of, watch_heats
    from console.trials import parse_conditions, parse_fleets, parse_schedule
    from farm.simulation.grid import FRESH

    chosen = _format(form)
    watched = given.showing(ui, speed, refresh) == "tui"
    if ui not in ("auto", "plain", "tui"):
        raise UsageError(f"--ui {shorten(ui)}: choose auto, tui or plain; --format json gives JSON")
    if watched and article:
        raise UsageError("--ui tui can't show --article; name its policies and fleets instead")
    if not 0 <= processes <= 256:
        raise UsageError(f"--processes {processes}: give 0 (as many as cores) to 256")
    if output is not None:
        check_place(output)
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
    setting = given.setting(frames, part, overhead, heartbeat, lease, not no_heartbeats)
    named = [*(policies or ()), *(more or ())] or list(lab.ALL_POLICIES)
    schedules = list(dict.fromkeys(parse_schedule(text) for text in named))
    places = parse_fleets(fleets)
    given.check_frames(frames, places)
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
