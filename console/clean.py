"""``uneven clean``: list what old runs left behind, and remove it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from console import text
from console.streams import give_line, tell
from farm.cleaning import LeftOver, find_leftovers, remove
from farm.errors import ExitCode, UnevenError, UsageError
from farm.journal import RunCatalogue
from farm.paths import printable

_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])\Z", re.ASCII)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def clean(
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN…", help="Ids, outputs or run folders; default: all runs that are known."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would go, and stop.")] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Only what wasn't touched for that long: 12h, 7d, 4w."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Remove without asking.")] = False,
) -> int:
    """Remove run folders and recordings of old runs, after listing them.

    Outputs stay. So does a run that is on, and whatever somebody else put into a run folder. An unfinished
    run that is removed can't be resumed.
    """
    catalogue = RunCatalogue()
    found = find_leftovers(catalogue, runs or (), _age_seconds(older_than), time.time())
    doomed = [left for left in found if not left.live]
    for left in found:
        give_line(_line(left))
    if not doomed:
        give_line("Nothing to remove.")
        return ExitCode.DONE
    total = f"{text.plural(len(doomed), 'run')}, {text.size(sum(left.size_bytes for left in doomed))}"
    if dry_run:
        give_line(f"Would remove {total}.")
        return ExitCode.DONE
    if not yes and not _agreed(total):
        give_line("Nothing was removed.")
        return ExitCode.DONE
    return _remove(doomed, catalogue, total)


def _remove(doomed: Sequence[LeftOver], catalogue: RunCatalogue, total: str) -> int:
    failed: UnevenError | None = None
    for left in doomed:
        try:
            stays = remove(left, catalogue)
        except UnevenError as error:
            _say(f"uneven: {error}")
            failed = failed or error
            continue
        for path in stays:
            _say(f"{printable(path)} is not uneven's, and stays")
    if failed is not None:
        return failed.exit_code
    give_line(f"Removed {total}.")
    return ExitCode.DONE


def _line(left: LeftOver) -> str:
    what = [
        f"folder {printable(left.folder)}" if left.folder is not None else "",
        "recording" if left.recording is not None else "",
    ]
    age = text.duration(left.age_seconds) if left.size_bytes else "-"
    return (
        f"{left.run_id or '-':<20}  {left.state:<10}  {age:>9}  {text.size(left.size_bytes):>9}  "
        f"{printable(left.output)}: {', '.join(filter(None, what)) or 'only its entry'}"
        + ("; it is on, and stays" if left.live else "")
    )


def _agreed(total: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("clean asks before it removes; say -y to agree, or --dry-run to look")
    return input(f"Remove {total}? [y/N] ").strip().lower() in ("y", "yes")


def _age_seconds(age: str | None) -> float:
    if age is None:
        return 0.0
    match = _AGE.match(age)
    if match is None:
        raise UsageError(f"--older-than {age}: give a number and s, m, h, d or w, as in 7d")
    return float(match[1]) * _UNIT_SECONDS[match[2]]


def _say(line: str) -> None:
    tell(text.safe(line))
