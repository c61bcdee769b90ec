"""``uneven replay``: a run that is over, played again: in the console, as lines, or as JSON.

Rules of this file:
- a run is what the user calls it (console.report.records_of); a damaged recording is said before anything is
  shown;
- without a console the log is printed at once and whole, as results, to standard output.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from console import showoptions as show
from console.plain import caption_text, event_text
from console.presentation import Presentation
from console.report import records_of
from console.streams import give
from console.terminal import choose_ui
from console.wording import describe
from farm.captions import Caption, Reel
from farm.clock import MonotonicClock
from farm.errors import ExitCode, InputError, UsageError, shorten
from farm.events import Record, encode_record
from farm.playback import Log, Playback
from farm.scenario.scenario import read_scenario

_CLOCK = re.compile(r"(?:(\d{1,4}):)?(?:(\d{1,5}):)?(\d{1,9}(?:\.\d{1,6})?)\Z", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%\Z", re.ASCII)
#: Lines written at once.
_CHUNK = 1000


def replay(
    run: Annotated[
        str,
        typer.Argument(metavar="[RUN|FILE]", help="An id, an output, a run folder, a recording, or 'last'."),
    ] = "last",
    speed: Annotated[
        float, typer.Option("--speed", metavar="X", help="In the console: seconds of the run a second.")
    ] = 1.0,
    start_at: Annotated[
        str | None,
        typer.Option("--start-at", metavar="TIME", help="Begin there: 90, 1:30, or 50% of its time."),
    ] = None,
    pause_on: show.PauseOn = None,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="FILE", help="Show the captions of this scenario file."),
    ] = None,
    no_captions: show.NoCaptions = False,
    ui: show.UiName = "auto",
    refresh: show.Refresh = 10.0,
    ascii_only: show.Ascii = False,
    loop: show.Loop = False,
) -> int:
    """Play a run again.

    In the console: space halts, [ and ] change the speed, . and , step by event, h and l seek, g and G go to
    the ends, n and N jump to the next or last lapse, duplicate, split, refusal, kill or loss (K: which).
    With --ui plain the log is printed as lines, with --ui json as JSON. Nothing is run and nothing changes.
    """
    showing = choose_ui(ui, os.environ, sys.stdin.isatty(), sys.stderr.isatty())
    show.check_refresh(refresh)
    if not (math.isfinite(speed) and 0 < speed <= 1e6):
        raise UsageError(f"--speed {speed:g}: give seconds of the run a second, above 0")
    stops = show.pause_on(pause_on, showing)
    captions = read_scenario(scenario).captions if scenario is not None and not no_captions else ()
    log = _log_of(run)
    begins = _start(start_at, log)
    if showing == "tui":
        from console.app import ConsoleApp

        source = Playback(log, MonotonicClock(), rate=speed, pause_on=stops)
        source.seek(begins)
        presentation = Presentation(captions=captions, loop=loop)
        app = ConsoleApp(
            source,
            refresh_hz=refresh,
            ascii_only=ascii_only,
            exit_when_done=False,
            presentation=presentation,
        )
        return ExitCode.BUG if app.run() is None else ExitCode.DONE
    if showing == "plain":
        _print(log, begins, captions)
    elif showing == "json":
        _print_json(log, begins)
    return ExitCode.DONE


def _log_of(run: str) -> Log:
    """Raises UsageError, InputError or OutputError."""
    log = Log(records_of(run))
    if not len(log):
        raise InputError(f"the recording of {run} is empty: its run ended before anything happened")
    return log


def _start(text: str | None, log: Log) -> float:
    """The time that is meant, within the log. Raises UsageError."""
    begins, ends = log.times[0], log.ends_at
    if text is None:
        return begins
    if found := _SHARE.match(text):
        return begins + (ends - begins) * min(float(found[1]), 100.0) / 100
    if found := _CLOCK.match(text):
        hours, minutes = (found[1], found[2]) if found[2] is not None else (None, found[1])
        seconds = int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(found[3])
        if seconds > ends:
            raise UsageError(f"--start-at {shorten(text)}: the recording ends at {ends:.1f} s")
        return max(seconds, begins)
    raise UsageError(f"--start-at {shorten(text)}: give seconds (90), minutes (1:30) or a share (50%)")


def _print(log: Log, begins: float, captions: Iterable[Caption]) -> None:
    """The log in words, with the captions where they come due."""
    reel = Reel(tuple(captions))

    def lines() -> Iterator[str]:
        for record in log.records:
            reel.see(record)
            due = reel.take_due(record.at)
            if record.at < begins:
                continue
            yield from (caption_text(shown) for shown in due)
            line = describe(record.at, record.event)
            if line is not None:
                yield event_text(line)

    chunk: list[str] = []
    for line in lines():
        chunk.append(line)
        if len(chunk) == _CHUNK:
            if not give("\n".join(chunk) + "\n"):
                return
            chunk.clear()
    if chunk:
        give("\n".join(chunk) + "\n")


def _print_json(log: Log, begins: float) -> None:
    first = next(index for index, at in enumerate(log.times) if at >= begins)
    for start in range(first, len(log), _CHUNK):
        records: list[Record] = log.records[start : start + _CHUNK]
        if not give(b"".join(encode_record(record) + b"\n" for record in records)):
            return
