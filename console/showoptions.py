"""The options of how a run is shown, each defined once, and how they become settings.

Rule: a value that can't be is refused here, with the option's name and what would be right.
"""

from __future__ import annotations

import dataclasses
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from console.drive import ShowOptions
from console.presentation import Presentation
from console.terminal import choose_ui
from farm.captions import Caption
from farm.errors import UsageError
from farm.moments import Kind, parse_kinds

UiName = Annotated[str, typer.Option("--ui", help="auto, tui, plain, json or none (also UNEVEN_UI).")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Plain mode: warnings only.")]
Refresh = Annotated[float, typer.Option("--refresh", metavar="HZ", help="How often the console repaints.")]
Readonly = Annotated[bool, typer.Option("--readonly", help="The console shows and doesn't control.")]
Ascii = Annotated[bool, typer.Option("--ascii", help="Draw the console with ASCII alone.")]
Stay = Annotated[bool, typer.Option("--stay", help="Leave the console open when the run has ended.")]
DrainTimeout = Annotated[
    float, typer.Option("--drain-timeout", metavar="SECONDS", help="Patience after SIGTERM or SIGHUP.")
]

PauseOn = Annotated[
    str | None,
    typer.Option(
        "--pause-on",
        metavar="MOMENT,…",
        help="In the console, halt (a live job: pause) at a lapse, duplicate, split, refusal, kill, loss or "
        "failure (all: any of these), stall, wake, finish.",
    ),
]
NoCaptions = Annotated[bool, typer.Option("--no-captions", help="Don't show the scenario's captions.")]
Loop = Annotated[bool, typer.Option("--loop", help="In the console: begin anew at the end.")]


@dataclass(frozen=True, kw_only=True)
class Showing:
    """A group of options (console.groups)."""

    ui: UiName = "auto"
    quiet: Quiet = False
    refresh: Refresh = 10.0
    readonly: Readonly = False
    ascii_only: Ascii = False
    stay: Stay = False

    def options(self, drain_timeout: float = 0.0) -> ShowOptions:
        """Raises UsageError."""
        check_refresh(self.refresh)
        if not (math.isfinite(drain_timeout) and 0 <= drain_timeout <= 86400):
            raise UsageError(f"--drain-timeout {drain_timeout:g}: give seconds from 0 to 86400")
        chosen = choose_ui(self.ui, os.environ, sys.stdin.isatty(), sys.stderr.isatty())
        return ShowOptions(
            ui="plain" if self.quiet and chosen == "tui" and self.ui == "auto" else chosen,
            quiet=self.quiet,
            refresh_hz=self.refresh,
            readonly=self.readonly,
            ascii_only=self.ascii_only,
            stay=self.stay,
            drain_timeout_seconds=drain_timeout,
        )


def check_refresh(refresh: float) -> None:
    """Raises UsageError."""
    if not (math.isfinite(refresh) and 0.5 <= refresh <= 60):
        raise UsageError(f"--refresh {refresh:g}: give 0.5 to 60 repaints a second")


def pause_on(text: str | None, ui: str) -> frozenset[Kind]:
    """``--pause-on``. Raises UsageError."""
    kinds = frozenset[Kind]() if text is None else parse_kinds(text)
    if kinds and ui != "tui":
        raise UsageError(f"--pause-on {text}: without the console nobody could let it go on; use --ui tui")
    return kinds


def presented(
    showing: ShowOptions,
    pausing: str | None,
    captions: Sequence[Caption] = (),
    *,
    loop: bool = False,
    can_restart: bool = False,
) -> ShowOptions:
    """Live: ``--pause-on`` pauses the job. Raises UsageError."""
    stops = pause_on(pausing, showing.ui)
    if stops and showing.readonly:
        raise UsageError("--pause-on pauses the job, which --readonly forbids; leave one of them out")
    presentation = Presentation(captions=tuple(captions), pause_on=stops, loop=loop, can_restart=can_restart)
    return dataclasses.replace(showing, presentation=presentation)
