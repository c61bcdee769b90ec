"""The live screen: progress, part map, workers with their last minute, throughput and events.

Rules of this file:
- the screen holds what a person chose (selected worker, following or not); what the run does is the model's;
- heights are planned for the size at hand, from 300x80 down to 40x10: what matters least goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.geometry import Size

from console.screens.base import RunScreen, as_panel
from console.theme import Look
from console.timeline import WorkerModel
from console.widgets import view
from console.widgets.event_list import EventList, Matches, tail
from console.widgets.key_bar import Key
from console.widgets.lines import LineWidget
from console.widgets.part_map import MapLayout, PartMap, plan_map
from console.widgets.row_list import RowList
from console.widgets.span_chart import SpanCells
from console.widgets.throughput import Throughput
from console.widgets.workers import Columns, HeadRow, WorkerRow, Workers

HEAD_LINES = 3
EVENT_LINES_MIN = 3
#: From this size on there is a row for how full queues and memory are.
GAUGES_SIZE = Size(76, 24)
#: Keys that act on the selected worker, and of these on what it holds.
_ON_WORKER = frozenset({"stall", "kill", "inject", "throttle", "send_away", "release", "copy_chunk"})
_ON_CHUNK = frozenset({"release", "copy_chunk"})


@dataclass(frozen=True, slots=True)
class Plan:
    """Heights in rows, frames not included; 0 leaves a part out."""

    framed: bool
    head: int
    map: int
    column_names: bool
    workers: int
    bottom: int  #: events, and the plot beside them
    plot_width: int  #: frame included


def map_lines_max(height: int) -> int:
    """Rows that the part map may take on a screen of ``height`` rows; 0 where there is no room for it."""
    body = height - HEAD_LINES - 1
    return max(body // 6, 1) if body >= 12 else 0


def plan_screen(width: int, height: int, workers: int, map_lines: int, gauges: bool = False) -> Plan:
    """Share out the rows. ``map_lines``: what the part map needs, at most ``map_lines_max``; ``gauges``:
    there are some to show, where there is room."""
    framed = width >= 50 and height >= 16
    frame = 2 if framed else 0
    head = HEAD_LINES if height >= 8 else min(2, max(height - 2, 1))
    head += gauges and width >= GAUGES_SIZE.width and height >= GAUGES_SIZE.height
    body = max(height - head - 1, 0)
    rest = body - (map_lines + frame if map_lines else 0)
    bottom_min = max(EVENT_LINES_MIN, body // 6) + frame if body >= 10 else min(body // 4, 1)
    column_names = framed and rest - bottom_min - frame - 1 >= min(workers, 8)
    names = 1 if column_names else 0
    rows = min(max(workers, 1), max(rest - bottom_min - frame - names, 0))
    bottom = rest - rows - names - frame - frame
    if bottom < 1:
        rows, bottom = rows + max(bottom + frame, 0), 0
    plot = width * 2 // 5 if framed and width >= 100 and bottom >= 6 else 0
    return Plan(framed, head, map_lines, column_names, rows, bottom, plot)


def plan_zoomed(width: int, height: int, panel: str, gauges: bool) -> Plan:
    """One panel (its id) fills what the head leaves."""
    plan = plan_screen(width, height, 0, 0, gauges)
    rows = max(height - plan.head - 1 - (2 if plan.framed else 0), 0)
    return Plan(
        framed=plan.framed,
        head=plan.head,
        map=rows if panel == "map" else 0,
        column_names=panel == "workers" and rows > 1,
        workers=max(rows - 1, 1) if panel == "workers" else 0,
        bottom=rows if panel in ("plot", "events") else 0,
        plot_width=width if panel == "plot" else 0,
    )


class LiveScreen(RunScreen):
    """The first screen: the run at a glance."""

    NAME = "live"
    CAN_FILTER = True
    AUTO_FOCUS = "#workers"
    HELP_KEYS = (
        ("j k ↓ ↑", "select a worker (g G: first, last)"),
        ("enter", "what the selected worker did"),
        ("s", "stall or unstall it"),
        ("x", "kill it (asks)"),
        ("t", "throttle it to frames per second"),
        ("w", "send it away, its part finished (asks)"),
        ("r c", "its chunk: release (asks), have copied"),
        ("i", "inject a fault: a menu"),
        ("f", "events: follow or hold"),
        ("/", "events: only those with these words"),
        ("pgup pgdn", "events: older, newer"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "stall", "stall or unstall the worker"),
        Binding("x", "kill", "kill the worker"),
        Binding("t", "throttle", "throttle the worker"),
        Binding("w", "send_away", "send the worker away"),
        Binding("r", "release", "release the worker's chunk"),
        Binding("c", "copy_chunk", "have the worker's chunk copied"),
        Binding("i", "inject", "inject a fault"),
        Binding("enter", "detail", "what the worker did"),
        Binding("j,down", "select(1)", "next worker"),
        Binding("k,up", "select(-1)", "previous worker"),
        Binding("g,home", "select_end(0)", "first worker"),
        Binding("G,end", "select_end(1)", "last worker"),
        Binding("pageup", "older(5)", "older events"),
        Binding("pagedown", "older(-5)", "newer events"),
        Binding("f", "follow", "events: follow or hold"),
    ]

    DEFAULT_CSS = """
    LiveScreen #bottom { height: 1fr; }
    LiveScreen #plot, LiveScreen #events { height: 1fr; }
    """

    def __init__(self, look: Look) -> None:
        super().__init__(look, id="live")
        self.part_map = PartMap(look, id="map")
        self.worker_list = Workers(look, id="workers")
        self.curve = Throughput(look, id="plot")
        self.event_list = EventList(look, id="events")
        self.selected: str | None = None
        self.held_at: int | None = None  #: number of the event line above which nothing newer is shown
        self._map_titled: tuple[MapLayout, Size, Look] | None = None
        self._curve_drawn: tuple[int, Size, Look] | None = None
        self._cells = SpanCells()
        self._matches = Matches()
        self._start = 0  #: first worker in view
        self._plan: Plan | None = None
        self._names: list[str] = []

    def compose_body(self) -> ComposeResult:
        yield as_panel(self.part_map)
        yield as_panel(self.worker_list)
        with Horizontal(id="bottom"):
            yield as_panel(self.curve)
            yield as_panel(self.event_list)

    # --- what is shown -----------------------------------------------------------------------------------

    def worker_order(self) -> list[WorkerModel]:
        workers = self.model.workers
        if len(self._names) != len(workers):
            self._names = sorted(workers, key=view.natural_key)
        return [workers[name] for name in self._names]

    @property
    def selected_worker(self) -> WorkerModel | None:
        """The worker under the cursor; the first one until somebody chose."""
        order = self.worker_order()
        if self.selected in self.model.workers:
            return self.model.workers[self.selected or ""]
        return order[0] if order else None

    def update_view(self, now: float, turn: bool | None = None) -> None:
        """Show the model as it is now; only what differs is drawn.

        Under load the panels take turns, which halves the work: the workers with ``turn`` True, map, curve
        and events with False, all with None; the head always.
        """
        width, height = self.size
        if not width or not height:
            return
        model, look = self.model, self.console_app.look
        order = self.worker_order()
        self._arrange(width, height, len(order), look)
        plan = self._plan
        assert plan is not None
        gauges = model.gauges if plan.head > HEAD_LINES else None
        trend = "" if plan.plot_width else view.trend(model, now, look)
        self.head.show(
            (
                *self.head_rows(now),
                view.counts_row(model, now, "" if gauges else trend),
                *(() if gauges is None else (view.gauges_row(gauges, trend),)),
            )[: plan.head]
        )
        if turn is not False:
            self._update_workers(order, plan, now)
        if turn is not True:
            self._update_map(plan)
            self._update_bottom(plan, now, look)
        self.update_keys()

    def time_shown(self, now: float) -> float:
        """Clock, silences, forecast and the cells of the last minute go by the second."""
        return int(now)

    def _arrange(self, width: int, height: int, workers: int, look: Look) -> None:
        """Plan the rows anew when the size, the fleet, the grid or the panel in front changed."""
        halves = not (look.symbols or look.ascii_only)
        gauges = self.model.gauges is not None
        if self.zoomed is None:
            most = plan_map(self.model.parts, width - 2, map_lines_max(height), halves=halves).lines
            plan = plan_screen(width, height, workers, most, gauges)
        else:
            plan = plan_zoomed(width, height, self.zoomed.id or "", gauges)
        if plan == self._plan:
            return
        self._plan = plan
        self.set_class(plan.framed, "framed")
        frame = 2 if plan.framed else 0
        self.head.styles.height = plan.head
        self._set_lines(self.part_map, plan.map, frame)
        self._set_lines(self.worker_list, plan.workers + plan.column_names, frame)
        self.query_one("#bottom").display = plan.bottom > 0
        self.event_list.display = plan.plot_width < width
        self.curve.display = plan.plot_width > 0
        self.curve.styles.width = plan.plot_width or 1

    @staticmethod
    def _set_lines(widget: LineWidget, lines: int, frame: int) -> None:
        widget.display = lines > 0
        widget.styles.height = lines + frame if lines else 0

    def _update_map(self, plan: Plan) -> None:
        app, model = self.console_app, self.model
        if not plan.map:
            return
        halves = not (app.look.symbols or app.look.ascii_only)
        layout = plan_map(model.parts, self.part_map.size.width, plan.map, halves=halves)
        dirty = model.take_dirty()
        changed = self.part_map.lay_out(layout) or self.stale
        self.stale = False
        if changed or dirty:
            parts = range(layout.parts) if changed else dirty
            self.part_map.update_parts(parts, model.part_state, model.shade)
        titled = (layout, self.part_map.size, app.look)
        if titled != self._map_titled:
            self._map_titled = titled
            self.part_map.title(*view.map_title(layout, self.part_map.size.width, app.look))

    def _update_workers(self, order: Sequence[WorkerModel], plan: Plan, now: float) -> None:
        model, width = self.model, self.worker_list.size.width
        worker = self.selected_worker
        index = self._names.index(worker.name) if worker is not None else 0
        window = view.window_of(len(order), plan.workers, index, self._start)
        self._start = window.start
        rows: list[HeadRow | WorkerRow] = [HeadRow()] if plan.column_names else []
        timeline = view.last_minute(now, Columns.of(width).timeline)
        for at in range(window.start, window.stop):
            cells = self._cells.of(order[at], timeline, now)
            rows.append(view.worker_row(model, order[at], now, selected=at == window.selected, cells=cells))
        self.worker_list.show(rows)
        self.worker_list.title(*view.workers_title(model, window, width))

    def _update_bottom(self, plan: Plan, now: float, look: Look) -> None:
        if not plan.bottom:
            return
        model = self.model
        if plan.plot_width:
            # The curve is made of whole seconds: between them there is nothing new to draw.
            drawn = (int(now), self.curve.size, look)
            if drawn != self._curve_drawn:
                self._curve_drawn = drawn
                self.curve.show(view.plot(model, now, *self.curve.size, look))
                self.curve.title(*view.plot_title(model, now))
        stop = model.events_total if self.held_at is None else self.held_at
        height = self.event_list.size.height
        if self.needle:
            self.event_list.show(self._matches.newest(model, self.needle, stop, height))
        else:
            self.event_list.show(tail(model.events, model.events_total, stop, height))
        words = view.events_title(model, self.held_at, self.event_list.size.width)
        self.event_list.title(words[0] + (f"  with {self.needle!r}" if self.needle else ""), words[1])

    def own_keys(self) -> tuple[Key, ...]:
        app = self.console_app
        worker = self.selected_worker
        on_worker = app.can_control and worker is not None and not worker.is_gone
        on_chunk = on_worker and worker is not None and worker.token is not None
        return (
            Key("enter", "detail", "detail", worker is not None),
            Key("s", "unstall" if worker and worker.state == "stalled" else "stall", "stall", on_worker),
            Key("x", "kill", "kill", on_worker),
            Key("t", "throttle", "throttle", on_worker),
            Key("a", "add", "app.add_worker", app.can_control),
            Key("o", "policy", "app.policy", app.can_control),
            Key("r", "release", "release", on_chunk),
            Key("c", "copy", "copy_chunk", on_chunk),
            Key("w", "send away", "send_away", on_worker),
            Key("i", "fault", "inject", on_worker),
            Key("f", "follow" if self.held_at is not None else "hold", "follow"),
        )

    def copied(self) -> str | None:
        """The claim of the selected worker, else the run."""
        worker = self.selected_worker
        return worker.token if worker is not None and worker.token else super().copied()

    # --- keys --------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "select_end" and self.console_app.playback is not None:
            return False  # the keys are for the ends of time
        if action in _ON_WORKER:
            worker = self.selected_worker
            able = self.console_app.can_control and worker is not None and not worker.is_gone
            if able and worker is not None and action in _ON_CHUNK:
                able = worker.token is not None
            return True if able else None
        return super().check_action(action, parameters)

    def action_select(self, steps: int) -> None:
        worker = self.selected_worker
        if worker is not None:
            index = self._names.index(worker.name) + steps
            self.selected = self._names[min(max(index, 0), len(self._names) - 1)]
            self.console_app.repaint()

    def action_select_end(self, last: int) -> None:
        if self.worker_order():
            self.selected = self._names[-1 if last else 0]
            self.console_app.repaint()

    def action_follow(self) -> None:
        self.held_at = self.model.events_total if self.held_at is None else None
        self.console_app.repaint()

    def action_older(self, lines: int) -> None:
        """Scroll towards older events; past the newest one the list follows again."""
        total = self.model.events_total
        oldest = total - len(self.model.events) + self.event_list.size.height
        at = (total if self.held_at is None else self.held_at) - lines
        self.held_at = None if at >= total or oldest >= total else max(at, oldest)
        self.console_app.repaint()

    def action_match(self, steps: int) -> None:
        self.action_older(steps)

    def action_stall(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.stall(worker)

    def action_kill(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.ask_kill(worker)

    def action_throttle(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.ask_throttle(worker)

    def action_send_away(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.ask_remove(worker)

    def action_release(self) -> None:
        worker = self.selected_worker
        if worker is not None and worker.claim is not None:
            self.console_app.action_release_chunk(worker.claim.chunk)

    def action_copy_chunk(self) -> None:
        worker = self.selected_worker
        if worker is not None and worker.claim is not None:
            self.console_app.action_copy_chunk(worker.claim.chunk)

    def action_inject(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.ask_fault(worker)

    def action_detail(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.show_worker(worker.name)

    def on_row_list_picked(self, message: RowList.Picked) -> None:
        self.worker_order()
        names = 1 if self._plan is not None and self._plan.column_names else 0
        index = self._start + message.index - names
        if 0 <= index < len(self._names):
            self.selected = self._names[index]
            self.console_app.repaint()

    def on_row_list_scrolled(self, message: RowList.Scrolled) -> None:
        self.action_select(message.steps)

    def on_event_list_scrolled(self, message: EventList.Scrolled) -> None:
        self.action_older(message.lines)
