"""The timeline screen: what every worker did, from the first claim to now, at any scale.

Rules of this file:
- rows are workers, columns moments; the cursor is a worker and one of its spans, and a line below says in
  words what that span is;
- a window that follows the present goes with it; one that was scrolled away stays where it is.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.chunks import chunk_of
from console.screens.base import RunScreen, as_panel
from console.text import count, duration, moment, safe
from console.theme import Look
from console.timeline import Span, WorkerModel
from console.widgets import view
from console.widgets.key_bar import Key
from console.widgets.row_list import RowList
from console.widgets.span_chart import (
    AxisRow,
    Columns,
    SpanCells,
    SpanChart,
    SpanRow,
    chart_legend,
    chosen_cells,
)
from console.widgets.span_note import SpanNote
from console.widgets.time_window import Cells, TimeWindow, axis_text

_KINDS = {
    "claim": "claim",
    "duplicate": "duplicate",
    "lapsed": "silent until its lapse",
    "refused": "refused",
    "split": "split: the rest went to another worker",
    "idle": "waits",
    "stalled": "stalled",
}


class TimelineScreen(RunScreen):
    """The second screen."""

    NAME = "timeline"
    CAN_FILTER = True
    AUTO_FOCUS = "#chart"
    HELP_KEYS = (
        ("j k ↓ ↑", "next, previous worker (g G: first, last)"),
        ("tab ← →", "next, previous span of that worker"),
        ("enter", "the story of the span's claim"),
        ("h l", "scroll back, forward in time"),
        ("+ -", "zoom in, out"),
        ("0 f", "the whole run; follow the present"),
        ("/ n N", "only workers with these letters"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "detail", "the story of the claim"),
        Binding("j,down", "select(1)", "next worker"),
        Binding("k,up", "select(-1)", "previous worker"),
        Binding("g,home", "select_end(0)", "first worker"),
        Binding("G,end", "select_end(1)", "last worker"),
        Binding("pagedown", "page(1)", "a page of workers down"),
        Binding("pageup", "page(-1)", "a page of workers up"),
        Binding("right,tab", "span(1)", "next span"),
        Binding("left,shift+tab", "span(-1)", "previous span"),
        Binding("h", "scroll(-0.25)", "back in time"),
        Binding("l", "scroll(0.25)", "forward in time"),
        Binding("plus,equals_sign", "zoom_time(1)", "zoom in"),
        Binding("minus", "zoom_time(-1)", "zoom out"),
        Binding("0", "whole", "the whole run"),
        Binding("f", "follow", "follow the present"),
    ]

    DEFAULT_CSS = """
    TimelineScreen #chart { height: 1fr; }
    TimelineScreen #note { height: 1; }
    """

    def __init__(self, look: Look) -> None:
        super().__init__(look, id="timeline")
        self.chart = SpanChart(look, id="chart")
        self.note = SpanNote(look, id="note")
        self.window = TimeWindow()
        self.selected: str | None = None  #: the worker under the cursor
        self.moment: float | None = None  #: where the cursor is in time; None: at the newest span
        self._number: tuple[str, int] | None = None  #: worker and number ever of the span that was chosen
        self._cells = SpanCells()
        self._start = 0  #: first worker in view
        self._names: list[str] = []
        self._named: tuple[int, str] = (-1, "")

    def compose_body(self) -> ComposeResult:
        yield as_panel(self.chart)
        yield self.note

    # --- what is shown -----------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The workers that are listed, in the order of their names."""
        key = (len(self.model.workers), self.needle)
        if key != self._named:
            self._named = key
            found = (name for name in self.model.workers if self.needle in name.casefold())
            self._names = sorted(found, key=view.natural_key)
        return self._names

    def worker(self) -> WorkerModel | None:
        """The worker under the cursor; the first one until somebody chose."""
        names = self.names()
        if self.selected in names:
            return self.model.workers[self.selected or ""]
        return self.model.workers[names[0]] if names else None

    def span(self) -> Span | None:
        """The span under the cursor: the newest one until somebody chose, or when the chosen one is not kept
        any more."""
        worker = self.worker()
        if worker is None or not worker.spans:
            return None
        return worker.spans[self._span_index(worker)]

    def _span_index(self, worker: WorkerModel) -> int:
        """Which of a worker's spans the cursor is on. Several may begin at one moment, so a number decides
        where one was chosen."""
        last = len(worker.spans) - 1
        if self.moment is None:
            return last
        if self._number is not None and self._number[0] == worker.name:
            return min(max(self._number[1] - (worker.spans_total - len(worker.spans)), 0), last)
        starts = [span.start_seconds for span in worker.spans]
        return max(bisect_right(starts, self.moment) - 1, 0)

    @property
    def chart_cells(self) -> int:
        return max(Columns.of(self.chart.size.width).chart, 1)

    def update_view(self, now: float, turn: bool | None = None) -> None:
        width, height = self.size
        if not width or not height:
            return
        self.set_class(width >= 50 and height >= 16, "framed")
        head = self.head_rows(now)[: 1 if height < 8 else 2]
        self.head.styles.height = len(head)
        self.head.show(head)
        self.note.display = height >= 6
        if self.chart.size.width and turn is not False:
            self._update_chart(now)
        self.note.show((self._note(now),))
        self.update_keys()

    def _update_chart(self, now: float) -> None:
        model, names, width = self.model, self.names(), self.chart.size.width
        cells = self.window.cells(now, self.chart_cells)
        worker, span = self.worker(), self.span()
        axis = 1 if self.chart.size.height > 2 else 0
        room = max(self.chart.size.height - axis, 0)
        at = names.index(worker.name) if worker is not None else 0
        seen = view.window_of(len(names), room, at, self._start)
        self._start = seen.start
        rows: list[AxisRow | SpanRow] = [AxisRow(axis_text(cells))] if axis else []
        for index in range(seen.start, seen.stop):
            one = model.workers[names[index]]
            state, mark = view.worker_state(model, one, now)
            chosen = None
            if index == seen.selected and span is not None:
                chosen = chosen_cells(span, cells, now)
            drawn = self._cells.of(one, cells, now)
            rows.append(SpanRow(safe(one.name), state, mark, drawn, index == seen.selected, chosen))
        self.chart.show(rows)
        shown = seen.stop - seen.start
        all_of = len(model.workers)
        few = f"  {count(shown)} of {count(all_of)} workers shown" if shown < all_of else ""
        words = {"follow": "follows", "whole": "whole run", "free": "stays"}[self.window.mode]
        title = f"timeline  {moment_range(cells)}  {each_cell(cells.seconds)}  {words}{few}"
        self.chart.title(title, chart_legend(self.console_app.look, width - 4))

    def _note(self, now: float) -> str:
        worker, span = self.worker(), self.span()
        if worker is None:
            return "no worker has come yet" if not self.needle else "no worker has these letters"
        if span is None:
            return f"{safe(worker.name)}  has done nothing yet"
        kept, total = len(worker.spans), worker.spans_total
        place = self._span_index(worker) + 1 + total - kept
        of = f"{count(place)} of {count(total)}" + (f" ({count(kept)} kept)" if kept < total else "")
        label = f" {safe(span.label)}" if span.label else ""
        stop = now if span.stop_seconds is None else span.stop_seconds
        if span.kind in ("refused", "split"):
            time = moment(span.start_seconds)
        else:
            until = "now" if span.stop_seconds is None else moment(stop)
            time = f"{moment(span.start_seconds)} to {until}, {duration(max(stop - span.start_seconds, 0.0))}"
        return f"{safe(worker.name)}  {_KINDS[span.kind]}{label}  {time}  span {of}"

    def own_keys(self) -> tuple[Key, ...]:
        return (
            Key("enter", "story", "detail", self.span() is not None),
            Key("h/l", "time", "scroll(-0.25)"),
            Key("+/-", "zoom", "zoom_time(1)"),
            Key("0", "all", "whole"),
            Key("f", "follow", "follow", self.window.mode != "follow"),
        )

    def copied(self) -> str | None:
        """The claim of the span under the cursor, else the run."""
        span = self.span()
        return span.label if span is not None and chunk_of(span.label) >= 0 else super().copied()

    # --- keys --------------------------------------------------------------------------------------------

    def _go(self, index: int) -> None:
        names = self.names()
        if names:
            # The moment stays: what did the others do meanwhile?
            if self.moment is None and self.window.mode == "free":
                span = self.span()
                self.moment = span.start_seconds if span is not None else None
            self.selected = names[min(max(index, 0), len(names) - 1)]
        self.console_app.repaint()

    def _at(self) -> int:
        worker = self.worker()
        return self.names().index(worker.name) if worker is not None else 0

    def action_select(self, steps: int) -> None:
        self._go(self._at() + steps)

    def action_page(self, pages: int) -> None:
        self._go(self._at() + pages * max(self.chart.size.height - 2, 1))

    def action_select_end(self, last: int) -> None:
        self._go(len(self.names()) - 1 if last else 0)

    def action_match(self, steps: int) -> None:
        names = self.names()
        if names:
            self._go((self._at() + steps) % len(names))

    def action_span(self, steps: int) -> None:
        worker, now = self.worker(), self.console_app.now()
        if worker is not None and worker.spans:
            index = min(max(self._span_index(worker) + steps, 0), len(worker.spans) - 1)
            span = worker.spans[index]
            newest = index == len(worker.spans) - 1
            self.selected = worker.name
            self.moment = None if newest else span.start_seconds
            self._number = (worker.name, index + worker.spans_total - len(worker.spans))
            stop = now if span.stop_seconds is None else span.stop_seconds
            self.window = self.window.showing(span.start_seconds, stop, now, self.chart_cells)
        self.console_app.repaint()

    def action_scroll(self, share: float) -> None:
        self.window = self.window.scrolled(share, self.console_app.now(), self.chart_cells)
        self.console_app.repaint()

    def action_zoom_time(self, steps: int) -> None:
        """About the span under the cursor if it is in view, else about the middle."""
        now = self.console_app.now()
        cells, span = self.window.cells(now, self.chart_cells), self.span()
        about = min((cells.start + cells.stop) / 2, now)
        if span is not None and cells.start <= span.start_seconds < cells.stop:
            about = span.start_seconds
        self.window = self.window.zoomed(steps, about, now, self.chart_cells)
        self.console_app.repaint()

    def action_whole(self) -> None:
        self.window = TimeWindow(self.window.scale, 0.0, "whole")
        self.console_app.repaint()

    def action_follow(self) -> None:
        self.window = TimeWindow(self.window.scale, 0.0, "follow")
        self.moment = None
        self.console_app.repaint()

    def action_detail(self) -> None:
        """The claim's story; what a worker did where there is no claim in it."""
        worker, span = self.worker(), self.span()
        number = chunk_of(span.label) if span is not None else -1
        if 0 <= number < len(self.model.book):
            self.console_app.show_chunk(number)
        elif worker is not None:
            self.console_app.show_worker(worker.name)

    def on_row_list_picked(self, message: RowList.Picked) -> None:
        """A click is on a worker, and on a moment if it is in the chart."""
        rows = len(self.chart.rows) - (self._axis_rows())
        index = self._start + message.index - self._axis_rows()
        if 0 <= index - self._start < rows and index < len(self.names()):
            self.selected = self.names()[index]
            cell = message.x - Columns.of(self.chart.size.width).before
            if cell >= 0:
                cells = self.window.cells(self.console_app.now(), self.chart_cells)
                self.moment, self._number = (cells.first + cell + 0.5) * cells.seconds, None
            self.console_app.repaint()
            if message.opened:
                self.action_detail()

    def _axis_rows(self) -> int:
        return 1 if self.chart.rows and isinstance(self.chart.rows[0], AxisRow) else 0

    def on_row_list_scrolled(self, message: RowList.Scrolled) -> None:
        self.action_select(message.steps)


def moment_range(cells: Cells) -> str:
    return f"{moment(cells.start)[:-4]} to {moment(cells.stop)[:-4]}"


def each_cell(seconds: float) -> str:
    """``1 cell = 0.5 s``."""
    return f"1 cell = {seconds:g} s" if seconds < 60 else f"1 cell = {duration(seconds)}"
