"""From the model to what the widgets show: pure functions, one for each part of the live screen.

Rules of this file:
- nothing is computed here that an event tells already (that is the model's work); here it is put into words,
  shares and cells;
- what is unknown is said to be unknown, what was cut says "n of m shown".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from rich.text import Text

from console.draining import drain_text
from console.forecast import lower_bound
from console.model import Model
from console.text import count, duration, plural, safe, share, size
from console.theme import Look, Mark
from console.timeline import WorkerModel
from console.widgets.event_list import time_text
from console.widgets.header import BarRow, Count, CountsRow, TitleRow
from console.widgets.part_map import MapLayout, legend
from console.widgets.throughput import (
    PLOT_SECONDS,
    SMOOTH_SECONDS,
    PlotRow,
    plot_rows,
    smooth,
    trend_line,
)
from console.widgets.time_window import Cells
from console.widgets.timeline import cell_window, timeline_cells
from console.widgets.workers import WINDOW_SECONDS, WorkerRow
from farm.events import Gauges

TREND_CELLS = 8
_PHASE_WORDS = {
    "probe": "reading the input's index",
    "measure": "measuring this machine's speed",
    "stitch": "joining the parts",
    "verify": "verifying the output",
    "report": "writing the report",
}


def title_row(
    model: Model, now: float, *, readonly: bool, ended: bool, rate: float | None = None, halted: bool = False
) -> TitleRow:
    """``rate``: virtual seconds a second, in a simulation; ``halted``: virtual time stands still."""
    header = model.header
    name = safe(PurePath(header.input).name) if header else "opening"
    badge, mark = _badge(model, ended=ended)
    if halted and model.finish is None and not ended:
        badge, mark = "HALTED", Mark.DUPLICATED
    policy, _, _ = model.options.tail.partition(",")
    facts = [f"policy {model.options.policy}", f"tail {policy}"]
    if rate is not None and model.finish is None:
        facts.insert(0, f"{rate:g} x real time")
    if model.sample is not None and model.finish is None:
        facts.insert(0, f"a sample, {plural(len(model.sample), 'part')}")
    if readonly:
        facts.insert(0, "read only")
    if model.epoch > 1:
        facts.append(f"epoch {model.epoch}")
    clock = "t " + time_text(now, tenths=False)
    return TitleRow(name, badge, mark, tuple(safe(fact) for fact in facts), clock)


def _badge(model: Model, *, ended: bool) -> tuple[str, Mark]:
    if model.finish is not None:
        done = "SAMPLED" if model.finish.sample else "DONE"
        return (done, Mark.DONE) if model.finish.exit_code == 0 else ("ENDED", Mark.LAPSED)
    if ended:
        return "ENDED", Mark.LAPSED
    if model.drain_reason is not None:
        return "DRAINING", Mark.LAPSED
    if model.paused:
        return "PAUSED", Mark.DUPLICATED
    if model.held:
        return "HELD", Mark.LAPSED
    if model.world == "live" and model.phase not in (None, "work"):
        return str(model.phase).upper(), Mark.CLAIMED
    return {"live": "LIVE", "simulated": "SIMULATED", "recording": "RECORDING"}[model.world], Mark.CLAIMED


def bar_row(model: Model, now: float, look: Look) -> BarRow:
    """Frames while there is work, else how far the phase is."""
    if model.finish is not None:
        outcome = safe(model.finish.outcome)
        makespan = "" if model.work is None else f" in {duration(model.work.makespan_seconds)}"
        bound = lower_bound(model) if model.work is not None else None
        beside = "" if bound is None else f", bound {duration(bound)}"
        done = _part_of(model.credited_frames, model.target_frames)
        percent = _percent(share(model.credited_frames, model.target_frames))
        return BarRow(done, 0.0, 0.0, percent, (outcome + makespan + beside, outcome + makespan, outcome))
    words = _PHASE_WORDS.get(model.phase or "")
    if words is not None:
        percent = f"{model.phase_fraction * 100:.1f}%"
        return BarRow(model.phase_fraction, 0.0, 0.0, percent, (words, str(model.phase)))
    rendered = model.rendered_frames
    duplicated = min(model.duplicated_frames, max(model.in_flight_frames - rendered, 0))
    return BarRow(
        _part_of(model.credited_frames, model.target_frames),
        _part_of(rendered, model.target_frames),
        _part_of(duplicated, model.target_frames),
        _percent(share(model.credited_frames, model.target_frames)),
        eta_remarks(model, now, look),
    )


def _part_of(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _percent(text: str) -> str:
    return text.replace(" ", "")


def eta_remarks(model: Model, now: float, look: Look) -> tuple[str, ...]:
    """The time left at falling length: with its range, without, and in the fewest cells."""
    if model.paused:
        return (f"paused for {duration(now - (model.paused_since or now))}", "paused")
    if model.drain_reason is not None:
        return drain_text(model, now), "draining"
    if model.held:
        return safe(model.held), "held: memory"
    eta = model.eta(now)
    if eta is None:
        return "ETA unknown", "ETA ?"
    low, rest, high = (_whole_seconds(seconds) for seconds in eta)
    if low.endswith(" s") and high.endswith(" s"):
        low = low.removesuffix(" s")
    ranged = f"ETA {rest} ({low}{look.dash}{high})"
    bound, began = lower_bound(model), model.first_grant_at
    if bound is None or began is None:
        return ranged, f"ETA {rest}", rest
    # Of the whole work, so that the two can be compared: what is left says nothing about the best there is.
    whole = _whole_seconds(max(now - began - model.paused_seconds(now), 0.0) + eta.mid)
    best = _whole_seconds(bound)
    return (
        f"{ranged}   in all {whole}, bound {best}",
        f"{ranged}  bound {best}",
        ranged,
        f"ETA {rest}",
        rest,
    )


def _whole_seconds(seconds: float) -> str:
    """``5 s``, ``1:58``: tenths of a forecast would only flicker."""
    return f"{round(seconds)} s" if round(seconds) < 60 else duration(seconds)


def trend(model: Model, now: float, look: Look) -> str:
    """The throughput of the last minute in a few cells, where there is no room for the plot."""
    samples = model.throughput.last(now, int(WINDOW_SECONDS) + SMOOTH_SECONDS - 1)
    return trend_line(smooth(samples), TREND_CELLS, ascii_only=look.ascii_only)


def counts_row(model: Model, now: float, trend: str = "") -> CountsRow:
    """Counters in falling order of weight: what is left out on a narrow screen comes last. ``trend`` goes to
    the end of the row."""
    frames = f"{count(model.credited_frames)}/{count(model.target_frames)}"
    fps = model.fps(now, SMOOTH_SECONDS)
    waste = model.wasted_frames
    counts = [
        Count("credited", "done", frames, Mark.DONE),
        Count("in flight", "fly", count(model.in_flight_chunks), Mark.CLAIMED),
        Count("duplicated", "dup", count(model.duplicated), Mark.DUPLICATED, model.duplicated > 0),
        Count("lapses", "lap", count(model.lapses), Mark.LAPSED, model.lapses > 0),
        Count("refused", "ref", count(model.refusals), Mark.FAILED, spare=model.refusals == 0),
    ]
    for number, name, short in (
        (model.failures, "failures", "fail"),
        (model.set_aside_frames, "set aside", "aside"),
        (model.losses, "lost", "lost"),
    ):
        if number:
            counts.append(Count(name, short, count(number), Mark.LAPSED, True))
    if deliveries := model.deliveries:
        done, of = sum(part.done for part in deliveries), sum(part.of for part in deliveries)
        counts.append(Count("delivering", "deliv", f"{count(done)}/{count(of)} blocks", Mark.CLAIMED))
        counts.append(Count("rendered", "rend", count(model.rendered_frames), spare=True))
    counts.append(Count("wasted", "waste", _percent(share(waste, waste + model.credited_frames))))
    counts.append(Count("fps", "fps", f"{fps:.0f}" if fps >= 10 else f"{fps:.1f}"))
    counts.append(Count("open", "open", count(model.open_frames), Mark.OPEN, spare=True))
    return CountsRow(tuple(counts), trend)


def gauges_row(gauges: Gauges, trend: str = "") -> CountsRow:
    """How full everything is that is bounded. ``trend`` as in ``counts_row``."""
    memory = size(gauges.memory_bytes)
    if gauges.memory_gate_bytes:
        memory += f"/{size(gauges.memory_gate_bytes)}"
    full = gauges.inbox >= gauges.inbox_max
    late = f"{count(gauges.stalls)}x, worst {gauges.stall_worst_seconds * 1000:.0f} ms"
    return CountsRow(
        (
            Count("inbox", "in", f"{gauges.inbox}/{gauges.inbox_max}", Mark.LAPSED if full else None, full),
            Count("deliveries", "del", f"{gauges.deliveries}/{gauges.deliveries_max}"),
            Count("parts waiting", "wait", count(gauges.parts_waiting)),
            Count("memory", "mem", memory),
            Count("loop late", "late", late),
        ),
        trend,
    )


def map_title(layout: MapLayout, width: int, look: Look) -> tuple[str, Text]:
    """Title and subtitle of the part map's frame."""
    each = layout.parts_per_cell
    scale = "" if each <= 1 else f"  (1 cell = {each:.3g} parts)"
    title = f"parts {count(layout.parts)}{scale}" if layout.parts else "parts"
    keys = legend(look)
    return title, keys if width >= keys.cell_len + 8 else Text()


@dataclass(frozen=True, slots=True)
class Window:
    """Which of the workers are in view: ``[start, stop)`` of all, and the selected one."""

    start: int
    stop: int
    selected: int | None


def window_of(total: int, rows: int, selected: int, start: int) -> Window:
    """Move the view that began at ``start`` as little as needed to show ``selected``."""
    if total == 0:
        return Window(0, 0, None)
    rows = max(rows, 0)
    selected = min(max(selected, 0), total - 1)
    start = min(start, selected, max(total - rows, 0))
    start = max(start, selected - rows + 1, 0)
    return Window(start, min(start + rows, total), selected)


def natural_key(name: str) -> tuple[str, int, str]:
    """Sorts w2 before w10."""
    digits = len(name) - len(name.rstrip("0123456789"))
    number = name[len(name) - digits :]
    return name[: len(name) - digits], int(number) if number.isascii() and number else -1, name


def worker_row(model: Model, worker: WorkerModel, now: float, *, selected: bool, cells: bytes) -> WorkerRow:
    """``cells``: of the timeline."""
    state, mark = worker_state(model, worker, now)
    claim = worker.claim
    fps = worker.fps
    return WorkerRow(
        name=safe(worker.name),
        state=state,
        mark=mark,
        claim="" if claim is None else claim.token.partition("@")[0],
        frames="" if claim is None else f"{claim.position - claim.start}/{claim.stop - claim.start}",
        fps="" if fps is None else f"{fps:.1f}",
        duplicates=str(worker.duplicates),
        lapses=str(worker.lapses),
        selected=selected,
        cells=cells,
    )


def worker_state(model: Model, worker: WorkerModel, now: float) -> tuple[str, Mark | None]:
    """A worker's state in at most ten cells; silence shows before the lease runs out."""
    match worker.state:
        case "stalled":
            return "STALLED", Mark.STALLED
        case "killed":
            return "LOST", Mark.FAILED
        case "left":
            return "left", None
        case "blocked":
            return "BLOCKED", Mark.LAPSED
    if worker.is_silent(now, model.silence_seconds):
        return f"silent {min(now - worker.heard_at, 999):.0f}s", Mark.LAPSED
    if worker.state == "rendering":
        duplicate = worker.claim is not None and worker.claim.duplicate
        return ("duplicate", Mark.DUPLICATED) if duplicate else ("rendering", Mark.CLAIMED)
    return {"waiting": "starting"}.get(worker.state, worker.state), None


def last_minute(now: float, width: int) -> Cells:
    """The cells of the window that ends with now."""
    first, cell_seconds = cell_window(now, width, WINDOW_SECONDS)
    return Cells(first, width, cell_seconds)


def worker_cells(worker: WorkerModel, first: int, width: int, cell_seconds: float, now: float) -> bytes:
    """The cells of a window that begins with cell ``first``; where the worker died is marked."""
    cells = timeline_cells(worker.spans, first, width, cell_seconds, now, worker.overhead_seconds)
    if worker.state == "killed":
        died = int(worker.since / cell_seconds) - first
        if 0 <= died < width:
            return cells[:died] + bytes([Mark.FAILED]) + cells[died + 1 :]
    return cells


def workers_title(model: Model, window: Window, width: int) -> tuple[str, str]:
    workers = model.workers.values()
    busy = sum(worker.state in ("rendering", "waiting") for worker in workers)
    here = sum(not worker.is_gone for worker in workers)
    shown = window.stop - window.start
    title = "workers" + (f"  ({shown} of {len(workers)} shown)" if shown < len(workers) else "")
    if width < 60:
        return title, ""
    return f"{title}  last {WINDOW_SECONDS:.0f} s", f"{here} here, {busy} busy"


def plot(model: Model, now: float, width: int, height: int, look: Look) -> tuple[PlotRow, ...]:
    seconds = next((seconds for seconds in PLOT_SECONDS if seconds >= now), PLOT_SECONDS[-1])
    samples = model.throughput.last(now, seconds + SMOOTH_SECONDS - 1)
    return plot_rows(smooth(samples), width, height, ascii_only=look.ascii_only)


def plot_title(model: Model, now: float) -> tuple[str, str]:
    now_fps = model.fps(now, SMOOTH_SECONDS)
    mean_fps = model.throughput.fps(now, PLOT_SECONDS[-1])
    return f"credited frames/s  mean of {SMOOTH_SECONDS} s", f"now {now_fps:.0f}  mean {mean_fps:.0f}"


def events_title(model: Model, stop: int | None, width: int) -> tuple[str, str]:
    """``stop``: the number of the line at which the list was held, or None while it follows."""
    total = model.events_total
    if stop is None:
        title = "events"
    else:
        newer = total - stop
        title = f"events  held, {count(newer)} newer (f follows)"
    kept = len(model.events)
    if kept < total and width >= 50:
        return title, f"{count(kept)} of {count(total)} kept"
    return title, count(total) if width >= 50 else ""
