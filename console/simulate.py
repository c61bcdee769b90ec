"""``uneven simulate``: one job in virtual time, and what came of it: figures, workers, a timeline.

Rules of this file:
- the figures are the simulator's own: it sees every frame that is rendered, the relay only those it is told
  of; the table of workers is folded from the events, as for a live run;
- the timeline shows the whole run; a cell is a slice of time and shows what was last begun in it.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from console import text
from console.model import Model
from console.presentation import Presentation
from console.streams import give_line
from console.summary import render_text, summarize
from console.timeline import Span
from console.trials import Trial, spell
from farm.captions import Reel
from farm.clock import MonotonicClock
from farm.events import ClaimGranted, DrainStarted, OperatorActed, Record
from farm.playback import Log, Playback
from farm.scenario.expect import Verdict, is_judged, judge
from farm.simulation.runs import SimResult, WorkerResult, simulate
from farm.simulation.source import SimulatedSource

#: Workers that get a row in the table and the timeline.
ROWS_MAX = 64

#: As in the console (console.theme.SYMBOLS), which needs textual.
_SIGNS = {
    "claim": "#",
    "duplicate": "=",
    "lapsed": "!",
    "refused": "x",
    "split": "/",
    "idle": "_",
    "stalled": "~",
}
_LEGEND = {
    "|": "a claim begins",
    "-": "overhead",
    "#": "rendering",
    "=": "rendering a duplicate",
    "_": "without a claim",
    "!": "lapsed, from its last word on",
    "~": "stopped, or silent since a lapse",
    "x": "refused",
    "/": "the rest of its chunk went to another",
    " ": "not there",
}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--ui json`` writes. Seconds are virtual; None: not finished, or no bound."""

    schedule: str
    fleet: str
    condition: str
    seed: int
    frames: int
    part: int
    finishing_seconds: float | None
    lower_bound_seconds: float | None
    ratio: float | None
    credited_frames: int
    wasted_frames: int
    claims: int
    duplicates: int
    splits: int
    lapses: int
    refusals: int
    losses: int
    idle_seconds: float
    workers: tuple[WorkerResult, ...]
    expectations: tuple[Verdict, ...] = ()  #: of the scenario


class History(Model):
    """A model that keeps all spans, where any other keeps the newest only; and, if it is ``judged``, the
    records by which expectations are."""

    def __init__(self, judged: bool = False) -> None:
        super().__init__("simulated")
        self._judged = judged
        self.telling: list[Record] = []  #: as farm.scenario.expect.is_judged has them
        self.spans: dict[str, list[Span]] = {}  #: of each worker
        self.works_from: dict[str, float] = {}  #: when the overhead of a claim was over, by its token
        self.told_to_stop = False  #: the user ended it before its end

    def fold(self, record: Record) -> None:
        super().fold(record)
        if self._judged and is_judged(record):
            self.telling.append(record)
        event = record.event
        self.told_to_stop |= isinstance(event, DrainStarted)
        self.told_to_stop |= isinstance(event, OperatorActed) and event.action == "stop now"
        worker = self.workers.get(getattr(record.event, "worker", None) or "")
        if worker is None:
            return
        if isinstance(record.event, ClaimGranted):
            self.works_from[record.event.token] = record.at + worker.overhead_seconds
        kept = self.spans.setdefault(worker.name, [])
        del kept[max(min(len(kept), worker.spans_total) - 2, 0) :]  # the last ones may have been replaced
        fresh = worker.spans_total - len(kept)
        kept.extend(list(worker.spans)[-fresh:] if fresh else ())


class Seen(NamedTuple):
    """A simulation that was watched, as far as it came."""

    history: History
    result: SimResult
    left: bool = False  #: by the user, before its end


def watch(trial: Trial, reel: Reel | None = None) -> Seen:
    """Run it; ``reel`` hears what happens. Raises UsageError for a world that makes no sense."""
    history = History(judged=_expects(trial))

    def take(record: Record) -> None:
        history.fold(record)
        if reel is not None:
            reel.see(record)

    result = simulate(trial.world(), on_record=take)
    return Seen(history, result)


def watch_in_console(
    trial: Trial,
    *,
    rate: float,
    refresh_hz: float,
    ascii_only: bool,
    stay: bool,
    presentation: Presentation | None = None,
) -> Seen:
    """Run it in the console, ``rate`` virtual seconds a second. Raises UsageError."""
    # Imported late: textual is for those who want it.
    from console.app import ConsoleApp

    presentation = presentation or Presentation()
    world, clock = trial.world(), MonotonicClock()
    made: list[SimulatedSource] = []

    def begin() -> SimulatedSource:
        made.append(SimulatedSource(world, clock, rate=rate))
        return made[-1]

    source = Playback(Log(), clock, rate=rate, present=begin(), pause_on=presentation.pause_on, again=begin)
    app = ConsoleApp(
        source,
        refresh_hz=refresh_hz,
        ascii_only=ascii_only,
        exit_when_done=not stay,
        presentation=presentation,
    )
    app.model = history = History(judged=_expects(trial))
    outcome = app.run()
    source.halt(True)
    source.to_end()  # what is told is how far it came, wherever the user was last
    while app.take():
        pass
    left = outcome is None or outcome.why != "ended" or history.told_to_stop
    return Seen(history, made[-1].result(), left)


def _expects(trial: Trial) -> bool:
    return trial.scenario is not None and bool(trial.scenario.expectations)


def verdicts_of(trial: Trial, seen: Seen) -> tuple[Verdict, ...]:
    """How the scenario's expectations were met; none of a run that was left before its end."""
    if trial.scenario is None or (seen.left and seen.result.credited_frames < seen.result.frames):
        return ()
    return judge(trial.scenario.expectations, seen.history.telling)


# --- what is said ----------------------------------------------------------------------------------------


def report_of(trial: Trial, result: SimResult, verdicts: tuple[Verdict, ...] = ()) -> Report:
    return Report(
        schedule=spell(trial.schedule),
        fleet=trial.fleet,
        condition=trial.condition,
        seed=trial.seed,
        frames=result.frames,
        part=trial.setting.part,
        finishing_seconds=result.makespan_seconds,
        lower_bound_seconds=_finite(result.bound_seconds),
        ratio=result.ratio,
        credited_frames=result.credited_frames,
        wasted_frames=result.wasted_frames,
        claims=result.claims,
        duplicates=result.duplicates,
        splits=result.splits,
        lapses=result.lapses,
        refusals=result.refusals,
        losses=result.losses,
        idle_seconds=result.idle_seconds,
        workers=result.workers,
        expectations=verdicts,
    )


def report_json(report: Report) -> str:
    return msgspec.json.encode(report).decode()


def report_lines(trial: Trial, seen: Seen, width: int) -> list[str]:
    """Title, figures, workers, timeline; each at most ``width`` cells."""
    model, result = seen.history, seen.result
    rendered = result.credited_frames + result.wasted_frames
    summary = msgspec.structs.replace(
        summarize(model),
        finishing_seconds=result.makespan_seconds,
        lower_bound_seconds=_finite(result.bound_seconds),
        ratio=result.ratio,
        wasted_frames=result.wasted_frames,
        wasted_share=result.wasted_frames / rendered if rendered else 0.0,
        duplicates=result.duplicates,
        splits=result.splits,
        lapses=result.lapses,
    )
    shown = msgspec.structs.replace(summary, workers=summary.workers[:ROWS_MAX])
    figures, _, table = render_text(shown, width).partition("\n\n")
    lines = [text.fit(line, width) for line in title_lines(trial, result)]
    lines += [*figures.split("\n"), text.fit(_idle_line(result, model), width), ""]
    lines += [*table.split("\n"), ""]
    lines += timeline_lines(seen, result.makespan_seconds or model.at, width)
    if len(result.workers) > ROWS_MAX:
        lines.append(f"{ROWS_MAX} of {len(result.workers)} workers shown")
    return lines


def title_lines(trial: Trial, result: SimResult) -> list[str]:
    setting = trial.setting
    facts = [
        f"{text.plural(result.frames, 'frame')} in parts of {setting.part}",
        f"fleet {text.fit(text.safe(trial.fleet), 40)}",
        f"seed {trial.seed}",
    ]
    if trial.condition != "base":
        facts.insert(2, f"condition {trial.condition}")
    if not setting.heartbeats:
        facts.append("no heartbeats")
    return [f"{text.safe(spell(trial.schedule))} in virtual time", ", ".join(facts), ""]


def _idle_line(result: SimResult, model: Model) -> str:
    end = result.makespan_seconds or model.at
    there = end * len(result.workers)
    return (
        f"idle            {text.seconds(result.idle_seconds)} of all workers together, "
        f"{text.share(result.idle_seconds, there)} of {len(result.workers)} x {text.seconds(end)}"
    )


def timeline_lines(seen: Seen, end: float, width: int) -> list[str]:
    """A row for each worker from 0 to ``end`` seconds, an axis above and the legend below."""
    history = seen.history
    names = [worker.name for worker in seen.result.workers[:ROWS_MAX]]
    name_cells = min(max(map(text.width, names), default=0), 16)
    cells = max(width - name_cells - 2, 10)
    each = end / cells if end > 0 else 1.0
    drawn = [draw(history.spans.get(name, ()), history.works_from, end, cells) for name in names]
    axis = f"{'':{name_cells}}  0 s{text.seconds(end):>{max(cells - 3, 0)}}"
    rows = [
        f"{text.pad(text.name(name, name_cells), name_cells)}  {row}".rstrip()
        for name, row in zip(names, drawn, strict=True)
    ]
    return [axis, *rows, *legend_lines("".join(drawn), each, width)]


def draw(spans: Iterable[Span], works_from: Mapping[str, float], end: float, cells: int) -> str:
    """One worker's row. ``works_from``: when the overhead of a claim was over, by its token; one that was
    claimed ahead may have none to show. A moment takes a cell and is not painted over by what follows."""
    row = [" "] * cells
    each = end / cells if end > 0 else 1.0
    claim = ""
    for span in spans:
        stop = end if span.stop_seconds is None else min(span.stop_seconds, end)
        low = int(span.start_seconds / each)
        high = max(math.ceil(stop / each - 1e-9), low + 1)
        if low < cells and row[low] in "!x/":
            low += 1
        row[low:high] = _SIGNS[span.kind] * max(min(high, cells) - low, 0)
        if span.kind in ("claim", "duplicate"):
            waits = int(works_from.get(span.label, 0.0) / each)
            row[low:waits] = "-" * max(min(waits, high, cells) - low, 0)
            if span.label != claim and low < cells:
                row[low] = "|"
            claim = span.label
    return "".join(row)


def legend_lines(drawn: str, cell_seconds: float, width: int) -> list[str]:
    """What a cell is, and what the symbols in ``drawn`` mean."""
    signs = [
        f"{'blank' if sign == ' ' else sign} {words}" for sign, words in _LEGEND.items() if sign in drawn
    ]
    said = [f"a cell is {cell_seconds:.2g} s: what was last begun in it", *signs]
    lines = [""]
    for words in said:
        if lines[-1] and text.width(lines[-1]) + 3 + text.width(words) > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + text.fit(words, width)
    return lines


def _finite(value: float) -> float | None:
    return value if value != float("inf") else None


def say(lines: Iterable[str]) -> None:
    """Write a result to standard output; a reader that left is no error. Raises OutputError."""
    give_line("\n".join(lines))


def terminal_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns
