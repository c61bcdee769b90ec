"""The console as a Textual app: events in, commands out.

Rules of this file:
- it reads one thing, a ``farm.view.Source``, and writes one thing, commands to it;
- one tick drains what came since the last, folds it, and has the screen in front show what changed; never one
  message for one event;
- it draws; it does not own the run. When it ends, its ``Outcome`` tells the caller why, and the caller
  decides what becomes of the run;
- the terminal is restored at every end: quit, exception, SIGTERM, SIGHUP and SIGINT;
- keys that act on the run are in ``console.operating``, the ways out in ``console.leaving``, those that go
  to and fro in time in ``console.presenting``, those of one screen with that screen; here are the screens
  themselves and what all of them share.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.command import CommandPalette

from console.consolebase import Outcome, VirtualTime
from console.controlling import Controlling
from console.driver import ConsoleDriver
from console.keycommands import KeyCommands
from console.leaving import Leaving
from console.modals.chunk import ChunkDetail
from console.modals.dialog import Dialog
from console.modals.help import Help
from console.modals.worker import WorkerDetail
from console.operating import RATE_MAX, RATE_MIN
from console.presentation import Presentation
from console.presenting import Presenting
from console.screens.base import RunScreen
from console.screens.chunks import ChunksScreen
from console.screens.live import LiveScreen
from console.screens.timeline import TimelineScreen
from console.terminal import SignalBox
from console.theme import DARK, LIGHT, Look, textual_theme
from console.widgets.lines import LineWidget
from farm.events import CommandRefused
from farm.view import Source

__all__ = ["BUSY_RECORDS", "RATE_MAX", "RATE_MIN", "ConsoleApp", "Outcome", "VirtualTime"]

#: Records in a tick from which on the panels take turns: nobody reads a thousand events a second.
BUSY_RECORDS = 100
#: New objects after which the garbage collector looks for garbage. Drawing makes many, hardly any in cycles.
COLLECT_AFTER = 5_000
#: The key to each screen. One that a run has no use for isn't there (``ConsoleApp.make_screens``).
SCREEN_KEYS = {"live": "1", "timeline": "2", "chunks": "3", "compare": "4"}


class ConsoleApp(Controlling, Leaving, Presenting):
    """Shows one run. ``run()`` returns an ``Outcome``, or None if the console itself failed (its traceback
    was printed, and the run goes on).

    ``refresh_hz``: ticks a second. ``readonly``: sends no commands. ``ascii_only``: draws with ASCII alone.
    ``exit_when_done``: close by itself ``settle_seconds`` after the run ended, else wait for q.
    ``signals``: a box that is installed already; a signal in it closes the console, and stays in it.
    ``presentation``: captions and the like.
    """

    TITLE = "uneven"
    #: The screen that it opens with and that escape leads back to.
    HOME = "live"
    COMMANDS = {KeyCommands}  # noqa: RUF012 - declared so by Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "all keys and signs"),
        *(Binding(key, f"show_screen('{name}')", f"the {name} screen") for name, key in SCREEN_KEYS.items()),
        Binding("y", "copy_id", "copy the id"),
        Binding("m", "symbols", "colours or symbols"),
        Binding("d", "dark", "dark or light"),
        Binding("e,ctrl+s", "export", "export a picture (SVG)"),
    ]
    CSS = """
    CommandPalette SearchIcon { display: none; }
    CommandPalette CommandList {
        scrollbar-background: $raised; scrollbar-background-hover: $raised;
        scrollbar-background-active: $raised;
        scrollbar-color: $frame; scrollbar-color-hover: $accent; scrollbar-color-active: $accent;
    }
    CommandPalette.ascii #--input { border: none; }
    CommandPalette.ascii CommandList { border: none; scrollbar-size-vertical: 0; }
    CommandPalette.ascii LoadingIndicator { display: none; }
    """

    def __init__(
        self,
        source: Source,
        *,
        refresh_hz: float = 10.0,
        readonly: bool = False,
        ascii_only: bool = False,
        exit_when_done: bool = True,
        settle_seconds: float = 1.0,
        picture_folder: Path | None = None,
        signals: SignalBox | None = None,
        presentation: Presentation | None = None,
    ) -> None:
        super().__init__(source, readonly=readonly, ascii_only=ascii_only)
        self.present(presentation or Presentation())
        self._refresh_hz = refresh_hz
        self._exit_when_done = exit_when_done
        self._settle_seconds = settle_seconds
        self._picture_folder = picture_folder or Path()
        self._signals = signals
        self._busy = False  #: the last tick brought more than BUSY_RECORDS
        self._turn: bool | None = None
        self._moment: tuple[object, ...] | None = None  #: of the last tick, if it brought nothing
        self.live = LiveScreen(self.look)
        self.timeline = TimelineScreen(self.look)
        self.chunks = ChunksScreen(self.look)
        self.run_screens: dict[str, RunScreen] = {screen.NAME: screen for screen in self.make_screens()}

    def make_screens(self) -> Iterable[RunScreen]:
        """The screens that this run has, in the order of their keys."""
        yield self.live
        yield self.timeline
        yield self.chunks

    # --- life --------------------------------------------------------------------------------------------

    def on_load(self) -> None:
        # Before the terminal is touched, so that no signal can leave it raw.
        if self._signals is not None:
            loop = asyncio.get_running_loop()
            self._signals.listen(lambda: loop.call_soon_threadsafe(self._on_signal))

    async def on_mount(self) -> None:
        for name, screen in self.run_screens.items():
            self.install_screen(screen, name)
        await self.push_screen(self.run_screens[self.HOME])
        self.set_interval(1 / self._refresh_hz, self.tick)
        self.tick()

    def on_unmount(self) -> None:
        if self._signals is not None:
            self._signals.listen(None)

    def run(self, *args: Any, **options: Any) -> Outcome | None:
        """As Textual's, with the ending signals in a box; one of our own gives them back at the end."""
        own = SignalBox() if self._signals is None else None
        if own is not None:
            own.install()
            self._signals = own
        thresholds = gc.get_threshold()
        # A collection holds the screen up. What is loaded by now stays, and needs no looking through.
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
        try:
            return super().run(*args, **options)
        finally:
            gc.set_threshold(*thresholds)
            assert self._signals is not None
            self._signals.listen(None)
            if own is not None:
                own.remove()

    def _on_signal(self) -> None:
        signal = self._signals.first if self._signals is not None else None
        if signal is not None:
            self.exit(Outcome("signal", signal), return_code=128 + signal)

    def tick(self) -> None:
        ended = self.source.ended
        records = self.take()
        for record in records:
            if type(record.event) is CommandRefused:
                self.hear_refusal(record.event)
        # Twice in a row: a burst alone (a resume, a jump) is shown whole at once.
        was_busy, self._busy = self._busy, len(records) > BUSY_RECORDS
        self._turn = not self._turn if was_busy and self._busy else None
        if ended != self.ended:
            self.ended = ended
            self.note_end(ended)
            if ended:
                self._on_end()
        before, self._moment = self._moment, None if records else self._quiet_moment()
        if self._moment is None or self._moment != before:
            self.repaint(self._turn)
        if isinstance(self._driver, ConsoleDriver) and self._driver.take_caught_up():
            self.screen.refresh()

    def _quiet_moment(self) -> tuple[object, ...] | None:
        """What changes the screen in a tick that brought nothing; None: it is to be drawn anyway. What a key
        changes is drawn at once, by what the key does."""
        front = self.front
        if front is None or self.screen is not front or self.virtual_time is not None:
            return None
        return front, front.time_shown(self.now()), self.ended, self.caption

    def _on_end(self) -> None:
        if self._exit_when_done or self.presentation.loop:
            self.set_timer(self._settle_seconds, self._after_end)
        elif self.source.world == "recording":
            self.say("The recording is over: , steps back, R plays it again, q leaves.", seconds=None)
        else:
            self.say("The run has ended; q leaves.", seconds=None)

    def _after_end(self) -> None:
        """Once whoever reads has read."""
        if not self.ended:
            return  # they went back
        finish, played = self.model.finish, self.source.world == "recording"
        if self.caption is not None:
            self.set_timer(0.2, self._after_end)
        elif self.presentation.loop and (played or (finish is not None and finish.exit_code == 0)):
            self.action_restart()
        else:
            self.exit(Outcome("ended"))

    @property
    def takes_keys(self) -> bool:
        front = self.front
        return front is not None and self.screen is front and not front.prompt.is_open

    # --- screens -----------------------------------------------------------------------------------------

    @property
    def front(self) -> RunScreen | None:
        """The numbered screen that is shown, be there a box on top of it or not; None before the first."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, RunScreen)), None)

    def screen_keys(self) -> list[tuple[str, str]]:
        """Key and name of each screen there is."""
        return [(SCREEN_KEYS[name], name) for name in self.run_screens]

    def repaint(self, turn: bool | None = None) -> None:
        front = self.front
        if front is None or not front.is_mounted:
            return
        front.update_view(self.now(), turn)
        front.caption_bar.say(self.caption, *front.size)
        if isinstance(self.screen, Dialog) and self.screen.is_mounted:
            self.screen.update_rows()

    async def action_show_screen(self, name: str) -> None:
        if self.screen in self.run_screens.values():
            await self.switch_screen(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "show_screen":
            return parameters[0] in self.run_screens
        if action == "symbols":
            return None if self.look.ascii_only else True
        allowed = self.allowed(action)
        return self.presents(action) if allowed is True else allowed

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            ascii_only = "ascii" if self.look.ascii_only else None
            self.push_screen(CommandPalette(placeholder="what to do", classes=ascii_only))

    def action_help(self) -> None:
        front = self.front
        if front is not None:
            virtual = self.virtual_time is not None
            keys, screens = front.HELP_KEYS, self.screen_keys()
            self.push_screen(
                Help(
                    self.look,
                    keys,
                    screens,
                    readonly=not self.can_control,
                    virtual=virtual,
                    others=self.OTHER_KEYS,
                    played=self.playback is not None,
                )
            )

    def show_worker(self, name: str) -> None:
        self.push_screen(WorkerDetail(self.look, self.model, name, self.now))

    def show_chunk(self, number: int) -> None:
        """Tell a chunk's story, if there is such a chunk."""
        if 0 <= number < len(self.model.book):
            self.push_screen(ChunkDetail(self.look, self.model, number, self.now))

    # --- looks and exports -------------------------------------------------------------------------------

    def _take_look(self, look: Look) -> None:
        self.look = look
        for screen in {*self.screen_stack, *self.run_screens.values()}:
            for widget in screen.query(LineWidget):
                widget.look = look
        self.repaint()

    def action_symbols(self) -> None:
        self._take_look(self.look.with_symbols(not self.look.symbols))

    def action_dark(self) -> None:
        palette = LIGHT if self.look.palette.dark else DARK
        self.theme = textual_theme(palette).name
        self._take_look(self.look.with_palette(palette))

    def action_copy_id(self) -> None:
        """Put the id under the cursor into the terminal's clipboard (OSC 52)."""
        copied = self.front.copied() if self.front is not None else None
        if copied is None:
            self.say("There is nothing to copy yet.", alert=True)
        else:
            self.copy(copied)

    def copy(self, text: str) -> None:
        self.copy_to_clipboard(text)
        self.say(f"Copied {text}, if this terminal lets programs copy (OSC 52).")

    def action_export(self) -> None:
        run = self.model.header.run_id if self.model.header else "run"
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in f"uneven-{run}-{self.now():.0f}s")
        path = self._picture_folder / f"{name}.svg"
        try:
            path.write_text(self.export_screenshot(simplify=True), encoding="utf-8")
        except OSError as error:
            self.say(f"The picture can't be written to {path}: {error.strerror}.", alert=True)
        else:
            self.say(f"Picture saved as {path}.")
