"""The base of every screen of a run: head, panels, filter prompt, key bar, and how they go together.

Rules of this file:
- a screen holds what a person chose (cursor, filter, panel that fills the screen); what the run does is the
  model's. ``update_view`` shows the model as it is, and must bear any size, and being asked too early;
- panels are ``LineWidget``s with the class ``panel``: tab goes from one to the next, z lets the one in focus
  fill the screen, and the same key or escape brings the others back;
- app-wide keys are bound by the app (``console.app``); a screen binds what only makes sense on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from console.model import Model
from console.theme import Look
from console.widgets import view
from console.widgets.caption_bar import CaptionBar
from console.widgets.header import BarRow, Header, TitleRow
from console.widgets.key_bar import Key, KeyBar, KeysRow
from console.widgets.lines import LineWidget
from console.widgets.prompt import FilterPrompt
from console.widgets.replay_bar import ReplayRow

if TYPE_CHECKING:
    from console.app import ConsoleApp

#: Keys and words for the help sheet.
HelpKeys = tuple[tuple[str, str], ...]


AnyLines = TypeVar("AnyLines", bound=LineWidget)


def as_panel(widget: AnyLines) -> AnyLines:
    """Make it one of the panels of a screen."""
    widget.add_class("panel")
    widget.can_focus = True
    return widget


class RunScreen(Screen[None], inherit_bindings=False):
    """A numbered screen. Subclasses give ``compose_body``, ``update_view``, ``own_keys``, ``HELP_KEYS``."""

    ALLOW_SELECT = False
    AUTO_FOCUS = ".panel"
    #: What the key to this screen, and the help, call it.
    NAME: ClassVar[str] = ""
    #: Whether ``/`` filters what it lists.
    CAN_FILTER: ClassVar[bool] = False
    HELP_KEYS: ClassVar[HelpKeys] = ()

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "next panel", show=False),
        Binding("shift+tab", "app.focus_previous", "previous panel", show=False),
        Binding("z", "zoom", "let the panel fill the screen"),
        Binding("slash", "filter", "filter by words"),
        Binding("n", "match(1)", "next match"),
        Binding("N", "match(-1)", "previous match"),
        Binding("escape", "back", "back"),
    ]

    # Not CSS: that of a screen is scoped to its own class and would not reach a screen made from this one.
    DEFAULT_CSS = """
    RunScreen { background: $background; color: $foreground; overflow: hidden; layers: default captions; }
    RunScreen LineWidget { width: 1fr; height: auto; }
    RunScreen #head, RunScreen #keys { height: 1; }
    RunScreen .panel {
        border-title-color: $foreground; border-subtitle-color: $muted;
        border-title-style: none; border-subtitle-style: none;
    }
    RunScreen.framed .panel { border: round $frame; }
    RunScreen.framed .panel:focus { border: round $accent; border-title-style: bold; }
    RunScreen.framed.ascii .panel { border: ascii $frame; }
    RunScreen.framed.ascii .panel:focus { border: ascii $accent; }
    """

    def __init__(self, look: Look, *, id: str) -> None:
        super().__init__(id=id)
        self.head = Header(look, id="head")
        self.keys = KeyBar(look, id="keys")
        self.prompt = FilterPrompt()
        self.caption_bar = CaptionBar(look, id="caption")
        self.needle = ""  #: what the list is filtered by, in lower case
        self.zoomed: LineWidget | None = None  #: the panel that fills the screen
        self.stale = True  #: something else was shown since the last update

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    @property
    def model(self) -> Model:
        return self.console_app.model

    def compose(self) -> ComposeResult:
        yield self.head
        yield from self.compose_body()
        yield self.prompt
        yield self.caption_bar
        yield self.keys

    def compose_body(self) -> ComposeResult:
        """What is between the head and the last row."""
        raise NotImplementedError

    def panels(self) -> Iterator[LineWidget]:
        """The panels in the order in which tab goes through them."""
        yield from self.query(".panel").results(LineWidget)

    def on_mount(self) -> None:
        self.set_class(self.console_app.look.ascii_only, "ascii")

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self.console_app.repaint)

    def on_screen_resume(self) -> None:
        self.stale = True
        self.call_after_refresh(self.console_app.repaint)

    # --- what is shown -----------------------------------------------------------------------------------

    def update_view(self, now: float, turn: bool | None = None) -> None:
        """Show the model as it is at ``now``, in lease seconds; only what differs is drawn.

        Under load (``turn`` is not None) a screen of several panels may let them take turns.
        """
        raise NotImplementedError

    def time_shown(self, now: float) -> float:
        """The time as it is shown here: while that stays the same and nothing happens, nothing is drawn."""
        return now

    def head_rows(self, now: float) -> tuple[TitleRow, BarRow | ReplayRow]:
        """The rows that every screen begins with: what is run, and how far it is."""
        app, model = self.console_app, self.model
        clock = app.virtual_time
        title = view.title_row(
            model,
            now,
            readonly=app.readonly,
            ended=app.ended,
            rate=None if clock is None else clock.rate,
            halted=clock is not None and clock.halted,
        )
        if facts := app.replay_facts():
            title = replace(title, facts=(*facts, *title.facts))
        return title, app.replay_bar(now) or view.bar_row(model, now, app.look)

    def update_keys(self) -> None:
        self.keys.show((self.console_app.said or KeysRow(self.key_list()),))

    def key_list(self) -> tuple[Key, ...]:
        """The keys of the last row, most needed first; at 80 columns there is room for eight."""
        app = self.console_app
        others = (
            Key(number, name, f"app.show_screen('{name}')")
            for number, name in app.screen_keys()
            if name != self.NAME
        )
        back = (Key("esc", "back", "back"),) if self.is_narrowed else ()
        search = (Key("/", "filter", "filter"),) if self.CAN_FILTER else ()
        fixed = app.playback is not None and app.source.world == "recording"  # nothing can be done to that
        own = tuple(key for key in self.own_keys() if key.enabled or not fixed)
        return (
            Key("q", app.QUIT_LABEL, "app.ask_quit"),
            Key("?", "help", "app.help"),
            *back,
            Key("space", "resume" if app.standing else "pause", "app.pause", app.allowed("pause") is True),
            *self._time_keys(),
            *own[:3],
            *search,
            Key("^p", "more", "app.command_palette"),
            *own[3:],
            *others,
            Key("z", "zoom", "zoom"),
            Key("m", "colours" if app.look.symbols else "symbols", "app.symbols", not app.look.ascii_only),
            Key("d", "light" if app.look.palette.dark else "dark", "app.dark"),
            Key("e", "export", "app.export"),
        )

    def _time_keys(self) -> tuple[Key, ...]:
        """Where one can go to and fro in time."""
        app = self.console_app
        if app.playback is None:
            return ()
        return (
            Key("n", f"next {app.looking_for}" if app.looking_for != "any" else "next", "app.moment(1)"),
            Key(".", "step", "app.step", app.allowed("step") is True),
            Key(",", "back", "app.step_back"),
            Key("[ ]", "speed", "app.speed(2)", app.allowed("speed") is True),
        )

    def own_keys(self) -> tuple[Key, ...]:
        """The keys that make sense on this screen alone, most needed first."""
        return ()

    def copied(self) -> str | None:
        """What ``y`` copies: the id of what is under the cursor. None: there is nothing."""
        return self.model.header.run_id if self.model.header else None

    # --- keys --------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter":
            return self.CAN_FILTER
        if action == "match":
            return self.CAN_FILTER and bool(self.needle)
        return True

    @property
    def is_narrowed(self) -> bool:
        """Whether escape has something to give up here."""
        return bool(self.needle) or self.zoomed is not None

    async def action_back(self) -> None:
        """Give up the filter, then the panel that fills the screen, then the screen."""
        if self.needle:
            self.take_needle("")
        elif self.zoomed is not None:
            self.action_zoom()
        else:
            await self.console_app.action_show_screen(self.console_app.HOME)

    def action_zoom(self) -> None:
        focused = self.focused
        if self.zoomed is not None:
            self.zoomed = None
        elif isinstance(focused, LineWidget) and focused.has_class("panel"):
            self.zoomed = focused
        self.console_app.repaint()

    def action_filter(self) -> None:
        self.prompt.open(self.needle)
        self.keys.display = False

    def action_match(self, steps: int) -> None:
        """Go to the next or previous match of the filter."""

    def take_needle(self, needle: str) -> None:
        """Filter by other words."""
        self.needle = needle.strip().casefold()
        self.console_app.repaint()

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        if self.prompt.is_open:
            self.take_needle(message.value)

    def on_filter_prompt_closed(self, message: FilterPrompt.Closed) -> None:
        self.keys.display = True
        # Told once more: the last letters may still be on their way.
        self.take_needle(message.text)

    async def on_key_bar_pressed(self, message: KeyBar.Pressed) -> None:
        await self.run_action(message.action)
