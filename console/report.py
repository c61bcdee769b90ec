"""``uneven report``: the hardware table of a run that is over, as text or as JSON.

Rule: a run is what the user calls it: a recording, a run folder, an output, an id, or ``last``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from console import text
from console.tables import text_table
from farm.errors import UsageError
from farm.events import Record
from farm.folder import JOURNAL_NAME, RunFolder
from farm.journal import Journal, RunCatalogue, read_recording
from farm.journal.recording import RECORDING_SUFFIX
from farm.paths import printable
from farm.reports.hardware import HardwareReport, HardwareRow

_UNKNOWN = "-"


def records_of(name: str) -> Iterator[Record]:
    """All records of a run. Raises UsageError for a name that is none, OutputError or InputError, also on the
    way, for a journal or recording that is in use or damaged."""
    path = Path(name)
    if path.name.endswith(RECORDING_SUFFIX) and path.is_file():
        return read_recording(path)
    if (path / JOURNAL_NAME).is_file():
        return _journalled(path)
    entry = RunCatalogue().find(name)
    folder = Path(entry.folder)
    if entry.folder and (folder / JOURNAL_NAME).is_file():
        return _journalled(folder)
    if entry.recording:
        return read_recording(Path(entry.recording))
    raise UsageError(f"the run {name} has ended and left no recording")


def _journalled(path: Path) -> Iterator[Record]:
    with RunFolder.open(path) as folder:
        journal = Journal.open(folder.journal)
        try:
            yield from journal.records()
        finally:
            journal.close()


def report_text(report: HardwareReport, width: int) -> str:
    """The table in lines of at most ``width`` cells, where it can be cut."""
    lines = [
        f"run       {text.safe(report.run_id)}: {text.safe(report.outcome)}",
        f"input     {printable(report.input)}",
        f"output    {printable(report.output)}",
        f"frames    {text.count(report.credited_frames)} of {text.count(report.frames)} credited to workers",
    ]
    if report.loop_stalls is not None and report.loop_worst_seconds is not None:
        worst = f"{report.loop_worst_seconds * 1000:,.0f} ms"
        lines.append(
            f"loop      late by more than 50 ms {text.plural(report.loop_stalls, 'time')}, {worst} at worst"
        )
    head = (
        "worker",
        "cores",
        "memory cap",
        "peak",
        "fps cap",
        "fps",
        "stalls",
        "chunks",
        "lapses",
        "dup won",
        "dup lost",
        "died",
        "failed",
        "wasted",
        "frames",
        "share",
        "fair share",
    )
    return "\n".join([*lines, "", *text_table(head, [_cells(row) for row in report.workers], width)])


def _cells(row: HardwareRow) -> tuple[str, ...]:
    return (
        text.name(row.worker, 32),
        _UNKNOWN if row.cores is None else str(row.cores),
        _UNKNOWN if row.memory_cap_bytes is None else text.size(row.memory_cap_bytes),
        _UNKNOWN if row.peak_memory_bytes is None else text.size(row.peak_memory_bytes),
        "max" if row.fps_cap is None else f"{row.fps_cap:g}",
        _UNKNOWN if row.fps is None else f"{row.fps:.1f}",
        str(row.stalls),
        text.count(row.chunks),
        str(row.lapses),
        str(row.duplicates_won),
        str(row.duplicates_lost),
        str(row.losses),
        str(row.failures),
        text.count(row.wasted_frames),
        text.count(row.credited_frames),
        f"{row.share:.1%}",
        _UNKNOWN if row.fair_share is None else f"{row.fair_share:.1%}",
    )
