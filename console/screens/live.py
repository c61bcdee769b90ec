"""The live screen: progress, part map, workers with their last minute, throughput and events.

Rules of this file:
- the screen holds what a person chose (selected worker, following or not); what the run does is the model's;
- heights are planned for the size at hand, from 300x80 down to 40x10: what matters least goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.geometry import Size
from textual.screen import Screen

from console.model import Model
from console.theme import Look
from console.timeline import WorkerModel
from console.widgets import view
from console.widgets.event_list import EventList, tail
from console.widgets.header import Header
from console.widgets.key_bar import Key, KeyBar, KeysRow, SaidRow
from console.widgets.lines import LineWidget
from console.widgets.part_map import MapLayout, PartMap, plan_map
from console.widgets.throughput import Throughput
from console.widgets.workers import Columns, HeadRow, WorkerRow, Workers

if TYPE_CHECKING:
    from console.app import ConsoleApp

HEAD_LINES = 3
EVENT_LINES_MIN = 3
#: From this size on there is a row for how full queues and memory are.
GAUGES_SIZE = Size(90, 30)


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


class LiveScreen(Screen[None]):
    """The first and, for now, only screen."""

    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.ask_quit", "quit"),
        Binding("question_mark", "app.help", "help"),
        Binding("space,p", "app.pause", "pause"),
        Binding("s", "stall", "stall"),
        Binding("x", "kill", "kill"),
        Binding("i", "inject", "fault"),
        Binding("enter", "detail", "detail"),
        Binding("j,down", "select(1)", "next worker"),
        Binding("k,up", "select(-1)", "previous worker"),
        Binding("g,home", "select_end(0)", "first worker"),
        Binding("G,end", "select_end(1)", "last worker"),
        Binding("pageup", "older(5)", "older events"),
        Binding("pagedown", "older(-5)", "newer events"),
        Binding("f", "follow", "follow"),
        Binding("m", "app.symbols", "symbols"),
        Binding("d", "app.dark", "light"),
        Binding("ctrl+s", "app.picture", "picture"),
    ]

    CSS = """
    LiveScreen { background: $background; color: $foreground; overflow: hidden; }
    LiveScreen LineWidget { width: 1fr; height: auto; }
    LiveScreen #head, LiveScreen #keys { height: 1; }
    LiveScreen #bottom { height: 1fr; }
    LiveScreen #plot, LiveScreen #events { height: 1fr; }
    LiveScreen .panel {
        border-title-color: $foreground; border-subtitle-color: $muted;
        border-title-style: none; border-subtitle-style: none;
    }
    LiveScreen.framed .panel { border: round $frame; }
    LiveScreen.framed.ascii .panel { border: ascii $frame; }
    """

    def __init__(self, look: Look) -> None:
        super().__init__(id="live")
        self.head = Header(look, id="head")
        self.part_map = PartMap(look, id="map")
        self.worker_list = Workers(look, id="workers")
        self.curve = Throughput(look, id="plot")
        self.event_list = EventList(look, id="events")
        self.keys = KeyBar(look, id="keys")
        self.selected: str | None = None
        self.held_at: int | None = None  #: number of the event line above which nothing newer is shown
        self.said: SaidRow | None = None
        self._map_titled: tuple[MapLayout, Size, Look] | None = None
        self._curve_drawn: tuple[int, Size, Look] | None = None
        self._cells = view.TimelineCells()
        self._start = 0  #: first worker in view
        self._plan: Plan | None = None
        self._names: list[str] = []

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    @property
    def model(self) -> Model:
        return self.console_app.model

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.part_map
        yield self.worker_list
        with Horizontal(id="bottom"):
            yield self.curve
            yield self.event_list
        yield self.keys

    def on_mount(self) -> None:
        for panel in (self.part_map, self.worker_list, self.curve, self.event_list):
            panel.add_class("panel")
        self.set_class(self.console_app.look.ascii_only, "ascii")

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.console_app.repaint)

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
        app, model, look = self.console_app, self.model, self.console_app.look
        clock = app.virtual_time
        order = self.worker_order()
        self._arrange(width, height, len(order), look)
        plan = self._plan
        assert plan is not None
        self.head.show(
            (
                view.title_row(
                    model,
                    now,
                    readonly=app.readonly,
                    ended=app.ended,
                    rate=None if clock is None else clock.rate,
                    halted=clock is not None and clock.halted,
                ),
                view.bar_row(model, now, look),
                view.counts_row(model, now),
                *(() if model.gauges is None else (view.gauges_row(model.gauges),)),
            )[: plan.head]
        )
        if turn is not False:
            self._update_workers(order, plan, now)
        if turn is not True:
            self._update_map(plan)
            self._update_bottom(plan, now, look)
        self.update_keys()

    def _arrange(self, width: int, height: int, workers: int, look: Look) -> None:
        """Plan the rows anew when the size, the fleet or the grid changed."""
        halves = not (look.symbols or look.ascii_only)
        inner = width - 2
        most = plan_map(self.model.parts, inner, map_lines_max(height), halves=halves).lines
        plan = plan_screen(width, height, workers, most, self.model.gauges is not None)
        if plan == self._plan:
            return
        self._plan = plan
        self.set_class(plan.framed, "framed")
        frame = 2 if plan.framed else 0
        self.head.styles.height = plan.head
        self._set_lines(self.part_map, plan.map, frame)
        self._set_lines(self.worker_list, plan.workers + plan.column_names, frame)
        self.query_one("#bottom").display = plan.bottom > 0
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
        changed = self.part_map.lay_out(layout)
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
        timeline = Columns.of(width).timeline
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
        lines = tail(model.events, model.events_total, stop, self.event_list.size.height)
        self.event_list.show(lines)
        self.event_list.title(*view.events_title(model, self.held_at, self.event_list.size.width))

    def update_keys(self) -> None:
        self.keys.show((self.said or KeysRow(self.key_list()),))

    def key_list(self) -> tuple[Key, ...]:
        """The keys of the last row, most needed first."""
        app = self.console_app
        worker = self.selected_worker
        can = app.can_control
        on_worker = can and worker is not None and not worker.is_gone
        return (
            Key("q", "quit", "app.ask_quit"),
            Key("?", "help", "app.help"),
            Key("space", "resume" if app.standing else "pause", "app.pause", can),
            Key("enter", "detail", "detail", worker is not None),
            Key("s", "unstall" if worker and worker.state == "stalled" else "stall", "stall", on_worker),
            Key("x", "kill", "kill", on_worker),
            Key("i", "fault", "inject", on_worker),
            Key("f", "follow" if self.held_at is not None else "hold", "follow"),
            Key("m", "colours" if app.look.symbols else "symbols", "app.symbols", not app.look.ascii_only),
            Key("d", "light" if app.look.palette.dark else "dark", "app.dark"),
            Key("^s", "picture", "app.picture"),
        )

    # --- keys --------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("stall", "kill", "inject"):
            worker = self.selected_worker
            able = self.console_app.can_control and worker is not None and not worker.is_gone
            return True if able else None
        return True

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

    def action_stall(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.stall(worker)

    def action_kill(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.ask_kill(worker)

    def action_inject(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.ask_fault(worker)

    def action_detail(self) -> None:
        worker = self.selected_worker
        if worker is not None:
            self.console_app.show_worker(worker.name)

    def on_workers_picked(self, message: Workers.Picked) -> None:
        self.worker_order()
        names = 1 if self._plan is not None and self._plan.column_names else 0
        index = self._start + message.index - names
        if 0 <= index < len(self._names):
            self.selected = self._names[index]
            self.console_app.repaint()

    def on_workers_scrolled(self, message: Workers.Scrolled) -> None:
        self.action_select(message.steps)

    def on_event_list_scrolled(self, message: EventList.Scrolled) -> None:
        self.action_older(message.lines)

    async def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        await self.run_action(message.action)
