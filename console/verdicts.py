"""What came of a scenario's expectations, said once the run is over.

Rules of this file:
- a line for each expectation, met or not; with ``--ui json`` one object with all of them, after the summary;
- an expectation that was not met ends the command with 7, unless something worse has its own exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from console.report import records_of
from console.streams import Stream, pour
from farm.errors import ExitCode, UnevenError
from farm.scenario.expect import Expectation, Verdict, judge

#: Ends that say how the work went, which is what expectations are about. Of others nothing can be concluded.
_ENDED = (ExitCode.DONE, ExitCode.INCOMPLETE, ExitCode.VERIFICATION)


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """For people; nothing where nothing was expected."""
    return ["", "expectations", *(f"  {verdict}" for verdict in verdicts)] if verdicts else []


def tell_verdicts(
    expectations: Sequence[Expectation], run: Path, code: ExitCode, ui: str, say: Callable[[str], None]
) -> ExitCode:
    """Judge a live run that ended with ``code``; returns with what the command ends. ``run``: its recording
    or its folder; ``say`` writes a line to standard error."""
    if not expectations or code in (ExitCode.INTERRUPTED, ExitCode.BUG):
        return code  # it did not come to an end of its own
    try:
        verdicts = judge(expectations, records_of(str(run)))
    except UnevenError as error:
        say(f"uneven: whether the expectations were met can't be told: {error}")
        return code if code is not ExitCode.DONE else ExitCode.EXPECTATION
    if ui == "json":
        line = msgspec.json.encode({"expectations": verdicts}) + b"\n"
        pour(cast("Stream[bytes]", sys.stdout.buffer), line)
    for verdict in verdicts:
        if ui not in ("json", "none") or not verdict.met:
            say(f"expectation {verdict}")
    unmet = not all(verdict.met for verdict in verdicts)
    return ExitCode.EXPECTATION if unmet and code in _ENDED else code
