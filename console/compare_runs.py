"""``uneven compare --runs``: runs that were made, side by side: as a table, or on the Compare screen.

Rules of this file:
- a run is what the user calls it (console.report.records_of), and is shown by what tells it from the others:
  its output's name, else its id, and its schedule;
- each run is read through once; one that can't be read ends it before anything is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from textwrap import wrap
from typing import Literal

import msgspec

from console import text
from console.contest import RUNS_MAX, Heat
from console.report import records_of
from console.tables import csv_table, text_table
from console.tapes import RecordedTape
from console.winner import Run, verdict
from farm.errors import UsageError
from farm.journal import RunCatalogue


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. None: not finished, or unknown."""

    run: str
    run_id: str
    schedule: str
    outcome: str
    frames: int
    credited_frames: int
    seconds: float | None
    lower_bound_seconds: float | None
    ratio: float | None
    claims: int
    duplicates: int
    splits: int
    lapses: int
    wasted_frames: int
    wasted_share: float
    idle_seconds: float


class RunsComparison(msgspec.Struct, frozen=True, kw_only=True):
    runs: tuple[ComparedRun, ...]
    winner: str | None
    verdict: str


def named_or_newest(names: Sequence[str]) -> list[str]:
    """The runs to compare: those named, or the two that were made last. Raises UsageError for too few or too
    many."""
    chosen = list(names)
    if not chosen:
        kept = [entry.run_id for entry in RunCatalogue().entries() if entry.recording]
        chosen = kept[1::-1]  # the older one first
        if len(chosen) < 2:
            raise UsageError(
                f"compare --runs: name two or more runs; {text.plural(len(kept), 'recording')} of a run "
                f"{'is' if len(kept) == 1 else 'are'} known here"
            )
    if not 2 <= len(chosen) <= RUNS_MAX:
        raise UsageError(f"compare --runs: give 2 to {RUNS_MAX} runs, not {len(chosen)}")
    return chosen


def read_runs(names: Sequence[str]) -> list[RecordedTape]:
    """Raises UsageError, InputError or OutputError for one that can't be read or has nothing in it."""
    tapes = [RecordedTape(name, partial(records_of, name)) for name in names]
    name_apart(tapes)
    return tapes


def name_apart(tapes: Sequence[RecordedTape]) -> None:
    """Give each a name that no other has."""
    outputs = [PurePath(tape.output).name for tape in tapes]
    apart = len(set(outputs)) == len(outputs) and all(outputs)
    names = [
        f"{text.safe(output if apart else tape.run_id or tape.name)}  {tape.schedule}"
        for tape, output in zip(tapes, outputs, strict=True)
    ]
    seen: Counter[str] = Counter()
    for tape, name in zip(tapes, names, strict=True):
        seen[name] += 1
        tape.name = name if seen[name] == 1 else f"{name}  ({seen[name]})"


def heat_of(tapes: Sequence[RecordedTape]) -> Heat:
    inputs = {PurePath(tape.input).name for tape in tapes}
    return Heat(inputs.pop() if len(inputs) == 1 else f"{len(tapes)} runs", tuple(tapes))


def compared(tapes: Sequence[RecordedTape]) -> RunsComparison:
    found = verdict([Run(tape.name, tape.final, True) for tape in tapes])
    return RunsComparison(
        runs=tuple(_compared(tape) for tape in tapes),
        winner=None if found.winner is None else tapes[found.winner].name,
        verdict=" ".join(filter(None, (found.headline, found.reasons))),
    )


def _compared(tape: RecordedTape) -> ComparedRun:
    final = tape.final
    return ComparedRun(
        run=tape.name,
        run_id=tape.run_id,
        schedule=tape.schedule,
        outcome=tape.outcome,
        frames=final.frames,
        credited_frames=final.credited_frames,
        seconds=final.seconds,
        lower_bound_seconds=final.bound_seconds,
        ratio=final.ratio,
        claims=final.claims,
        duplicates=final.duplicates,
        splits=final.splits,
        lapses=final.lapses,
        wasted_frames=final.wasted_frames,
        wasted_share=final.wasted_share,
        idle_seconds=final.idle_seconds,
    )


def render(comparison: RunsComparison, form: Literal["text", "csv", "json"], width: int) -> str:
    """With a line end at the end."""
    if form == "json":
        return msgspec.json.encode(comparison).decode() + "\n"
    if form == "csv":
        fields = ComparedRun.__struct_fields__
        return csv_table(fields, [[_plain(getattr(run, name)) for name in fields] for run in comparison.runs])
    return "\n".join(text_lines(comparison, width)) + "\n"


def text_lines(comparison: RunsComparison, width: int) -> list[str]:
    head = ["run", "finished", "bound", "ratio", "wasted", "claims", "dup", "split", "lapse", "idle"]
    rows = [
        [
            run.run,
            "not finished" if run.seconds is None else text.seconds(run.seconds),
            "-" if run.lower_bound_seconds is None else text.seconds(run.lower_bound_seconds),
            "-" if run.ratio is None else f"{run.ratio:.3f}",
            text.share(run.wasted_share, 1.0),
            text.count(run.claims),
            text.count(run.duplicates),
            text.count(run.splits),
            text.count(run.lapses),
            text.seconds(run.idle_seconds),
        ]
        for run in comparison.runs
    ]
    return [*text_table(head, rows, width), "", *wrap(comparison.verdict, max(width, 20))]


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
