"""``uneven crashtest``: a small job, killed wherever it touches the disk and resumed: nothing may be lost."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console import text
from console.streams import tell
from farm.errors import ExitCode, InputError, UsageError
from farm.paths import printable

if TYPE_CHECKING:
    from farm.crashtest.campaign import Trial

_SHOWN_EVERY_SECONDS = 10.0


def crashtest(
    source: Annotated[
        Path | None, typer.Argument(metavar="INPUT", help="A small video; default: a clip of 48 frames.")
    ] = None,
    points: Annotated[
        int | None,
        typer.Option("--points", min=0, help="So many crash points, chosen by the seed (default: all)."),
    ] = None,
    kills: Annotated[
        int,
        typer.Option("--random", min=0, help="Then so many kills at random times: console, worker or both."),
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Another choice of points and times.")] = 0,
    only: Annotated[
        str,
        typer.Option(
            "--only", metavar="PATTERN", help="Points whose words match, as: console: fsync .* \\(power\\)"
        ),
    ] = "",
    over_existing: Annotated[
        bool,
        typer.Option("--over-existing", help="With an output that is there already and may be replaced."),
    ] = False,
    without_sync: Annotated[
        str,
        typer.Option(
            "--without-sync",
            metavar="PATTERN",
            help="Leave out the syncs of names that match, to see the crash test find that.",
        ),
    ] = "",
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the folders of crashes that went wrong.")
    ] = False,
    temp: Annotated[
        Path | None, typer.Option("--temp", metavar="DIR", help="Work there (default: the temporary folder).")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for each crash, on standard output.")
    ] = False,
) -> int:
    """Crash a small job at every file operation and journal write, and prove that nothing is lost.

    Each crash is a SIGKILL of the whole run, of one process, or a power cut, in which what was not synced is
    lost. Then the same command is given again: it has to end with the same bytes, without rendering a
    finished part again and without leaving anything behind. Ends with 7 if a crash went wrong.
    """
    from farm.crashtest.campaign import Campaign, Request
    from farm.engines.local import prepare

    if source is not None and not source.is_file():
        raise InputError(f"there is no file {printable(source)}")
    for option, pattern in (("--only", only), ("--without-sync", without_sync)):
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{option} {pattern} is no regular expression: {error}") from error
    request = Request(
        command=(sys.executable, "-m", "console"),
        source=source,
        points=points,
        kills=kills,
        seed=seed,
        over_existing=over_existing,
        only=only,
        unsynced=without_sync,
        keep=keep,
        folder=temp,
    )
    prepare()
    report = _Report(as_json)
    with Campaign(request) as campaign:
        for trial in campaign.trials(report.note):
            report.trial(trial)
    return report.finish()


class _Report:
    """Says how it goes: a line now and then, the story of what went wrong, the count at the end."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._began = self._said = time.monotonic()
        self._counts: Counter[str] = Counter()

    def note(self, line: str) -> None:
        tell(text.safe(line))

    def trial(self, trial: Trial) -> None:
        verdict = trial.verdict
        outcome = "failed" if trial.failed else "passed" if verdict.reached else "not reached"
        self._counts[outcome] += 1
        if self._as_json:
            line = {
                "crash": trial.what,
                "outcome": outcome,
                "broken": verdict.broken,
                "lost": verdict.lost,
                "seconds": round(verdict.seconds, 3),
                "folder": str(trial.folder or ""),
                "story": verdict.story if trial.failed else (),
            }
            print(json.dumps(line, ensure_ascii=False), flush=True)
        if trial.failed:
            self.note(f"FAILED {trial.what}")
            for sentence in (*verdict.broken, *(f"lost: {name}" for name in verdict.lost), *verdict.story):
                self.note(f"    {sentence}")
            if trial.folder is not None:
                self.note(f"    see {trial.folder}")
        now = time.monotonic()
        if now - self._said >= _SHOWN_EVERY_SECONDS:
            self._said = now
            left_seconds = (now - self._began) / trial.number * (trial.of - trial.number)
            self.note(f"{trial.number} of {trial.of}, about {left_seconds / 60:.0f} min left: {trial.what}")

    def finish(self) -> int:
        counts = self._counts
        made = sum(counts.values())
        minutes = (time.monotonic() - self._began) / 60
        self.note(
            f"{made} crashes in {minutes:.1f} min: {counts['passed']} passed, {counts['failed']} failed, "
            f"{counts['not reached']} not reached"
        )
        return ExitCode.EXPECTATION if counts["failed"] else ExitCode.DONE
