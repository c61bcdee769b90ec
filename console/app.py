"""The console as a Textual app: events in, commands out.

Rules of this file:
- it reads one thing, a ``farm.view.Source``, and writes one thing, commands to it;
- one tick drains what came since the last, folds it, and has the screen show what changed; never one
  message for one event;
- it draws; it does not own the run. When it ends, its ``Outcome`` tells the caller why, and the caller
  decides what becomes of the run;
- the terminal is restored at every end: quit, exception, SIGTERM, SIGHUP and SIGINT.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTSTP, Signals
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from textual import constants
from textual.app import App
from textual.binding import Binding, BindingType

from console.driver import ConsoleDriver
from console.modals.confirm import kill_question, quit_question
from console.modals.dialog import Dialog, Question
from console.modals.fault import chosen_fault, fault_question
from console.modals.help import Help
from console.modals.worker import WorkerDetail
from console.model import Model
from console.screens.live import LiveScreen
from console.terminal import SignalBox
from console.theme import DARK, LIGHT, Look, textual_theme
from console.timeline import WorkerModel
from console.widgets.key_bar import SaidRow
from console.widgets.lines import LineWidget
from farm.commands import AnyCommand, Drain, InjectFault, KillWorker, Pause, Resume, StallWorker, StopNow
from farm.view import Source

SAID_SECONDS = 6.0
#: Records in a tick from which on the panels take turns: nobody reads a thousand events a second.
BUSY_RECORDS = 100
#: Virtual seconds a second, from the slowest to the fastest that keys give.
RATE_MIN, RATE_MAX = 1 / 64, 4096.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why the console closed. ``ended``: the run is over. ``quit``: the user left (only a run that is over, a
    recording, or read only: else quitting ends the run first). ``abandoned``: stopping at once was asked for
    and the user would not wait for it. ``signal``: closed by ``signal``; the caller drains or stops."""

    why: Literal["ended", "quit", "abandoned", "signal"]
    signal: Signals | None = None


@runtime_checkable
class VirtualTime(Protocol):
    """A source whose clock can be hurried, slowed, halted and stepped (farm.simulation.source)."""

    @property
    def rate(self) -> float: ...

    @property
    def halted(self) -> bool: ...

    def set_rate(self, rate: float) -> None: ...

    def halt(self, halted: bool) -> None: ...

    def step(self) -> None: ...


class ConsoleApp(App[Outcome]):
    """Shows one run. ``run()`` returns an ``Outcome``, or None if the console itself failed (its traceback
    was printed, and the run goes on).

    ``refresh_hz``: ticks a second. ``readonly``: sends no commands. ``ascii_only``: draws with ASCII alone.
    ``exit_when_done``: close by itself ``settle_seconds`` after the run ended, else wait for q.
    ``signals``: a box that is installed already; a signal in it closes the console, and stays in it.
    """

    ENABLE_COMMAND_PALETTE = False
    INHERIT_BINDINGS = False
    TITLE = "uneven"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", "drain, then stop", priority=True, show=False),
        Binding("ctrl+q", "ask_quit", "quit", show=False),
        Binding("ctrl+z", "stop", "stop", priority=True, show=False),
        Binding("left_square_bracket", "speed(0.5)", "slower", show=False),
        Binding("right_square_bracket", "speed(2)", "faster", show=False),
        Binding("full_stop", "step", "step", show=False),
    ]

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
    ) -> None:
        super().__init__(driver_class=None if constants.DRIVER else ConsoleDriver)
        self.source = source
        self.model = Model(source.world)
        self.readonly = readonly
        self.ended = False
        self._refresh_hz = refresh_hz
        self._exit_when_done = exit_when_done
        self._settle_seconds = settle_seconds
        self._picture_folder = picture_folder or Path()
        self._signals = signals
        self._interrupts = 0
        self._said = 0
        self._busy = False  #: the last tick brought more than BUSY_RECORDS
        self._turn: bool | None = None
        plain = ascii_only or self.no_color or self.console.color_system in (None, "standard", "windows")
        self.look = Look(DARK, ascii_only=ascii_only, symbols=plain)
        for palette in (DARK, LIGHT):
            self.register_theme(textual_theme(palette))
        self.theme = "uneven-dark"
        self.live = LiveScreen(self.look)

    # --- life --------------------------------------------------------------------------------------------

    def on_load(self) -> None:
        # Before the terminal is touched, so that no signal can leave it raw.
        if self._signals is not None:
            loop = asyncio.get_running_loop()
            self._signals.listen(lambda: loop.call_soon_threadsafe(self._on_signal))

    async def on_mount(self) -> None:
        await self.push_screen(self.live)
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
        try:
            return super().run(*args, **options)
        finally:
            assert self._signals is not None
            self._signals.listen(None)
            if own is not None:
                own.remove()

    def _on_signal(self) -> None:
        signal = self._signals.first if self._signals is not None else None
        if signal is not None:
            self.exit(Outcome("signal", signal), return_code=128 + signal)

    def tick(self) -> None:
        """Take in what happened and show it."""
        ended = self.source.ended
        records = self.source.take()
        for record in records:
            self.model.fold(record)
        # Twice in a row: a burst alone (a resume, a jump) is shown whole at once.
        was_busy, self._busy = self._busy, len(records) > BUSY_RECORDS
        self._turn = not self._turn if was_busy and self._busy else None
        if ended and not self.ended:
            self.ended = True
            self._on_end()
        self.repaint(self._turn)
        if isinstance(self._driver, ConsoleDriver) and self._driver.take_caught_up():
            self.screen.refresh()

    def _on_end(self) -> None:
        if self._exit_when_done:
            self.set_timer(self._settle_seconds, lambda: self.exit(Outcome("ended")))
        else:
            self.say("The run has ended; q leaves.", seconds=None)

    def now(self) -> float:
        return max(self.source.now(), self.model.at)

    def repaint(self, turn: bool | None = None) -> None:
        """Show the model as it is at this moment; ``turn`` as in ``LiveScreen.update_view``."""
        if not self.live.is_mounted:
            return
        now = self.now()
        self.live.update_view(now, turn)
        if isinstance(self.screen, WorkerDetail | Question):
            self.screen.update_rows()

    # --- commands ----------------------------------------------------------------------------------------

    @property
    def can_control(self) -> bool:
        """Whether commands can be sent at all."""
        return not (self.readonly or self.ended or self.source.world == "recording")

    def command(self, command: AnyCommand, done: str) -> bool:
        """Send a command and say what became of it."""
        refusal = self.source.send(command)
        self.say(refusal or done, alert=refusal is not None)
        return refusal is None

    def say(self, text: str, *, alert: bool = False, seconds: float | None = SAID_SECONDS) -> None:
        """Put a sentence in the last row for a while; the newest one stays its full time."""
        self._said += 1
        number = self._said
        self.live.said = SaidRow(text, alert)
        self.repaint()
        if seconds is not None:
            self.set_timer(seconds, lambda: self._unsay(number))

    def _unsay(self, number: int) -> None:
        if number == self._said:
            self.live.said = None
            self.repaint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "pause" and not self.can_control:
            return None
        if action in ("speed", "step"):
            return self.virtual_time is not None and not self.ended
        return True

    @property
    def virtual_time(self) -> VirtualTime | None:
        """The clock of a simulation; None where time can't be helped."""
        source = self.source
        return source if source.world == "simulated" and isinstance(source, VirtualTime) else None

    @property
    def standing(self) -> bool:
        """Whether space makes it go on: virtual time is halted, or the job is paused."""
        clock = self.virtual_time
        return self.model.paused if clock is None else clock.halted

    def action_speed(self, factor: float) -> None:
        clock = self.virtual_time
        if clock is not None:
            clock.set_rate(min(max(clock.rate * factor, RATE_MIN), RATE_MAX))
            if clock.halted:
                self._say_halted(f", then {clock.rate:g} times as fast as real time")
            else:
                self.say(f"Virtual time runs {clock.rate:g} times as fast as real time.")

    def action_step(self) -> None:
        """Halt, and go to the next event."""
        clock = self.virtual_time
        if clock is not None:
            clock.step()
            self.tick()
            self._say_halted()

    def _say_halted(self, how: str = "") -> None:
        self.say(f"Virtual time is halted at {self.now():.2f} s: . steps, space goes on{how}.", seconds=None)

    def action_pause(self) -> None:
        clock = self.virtual_time
        if clock is not None:
            clock.halt(not clock.halted)
            if clock.halted:
                self._say_halted()
            else:
                self.say(f"Virtual time runs on, {clock.rate:g} times as fast as real time.")
        elif self.model.paused:
            self.command(Resume(), "Going on.")
        else:
            self.command(Pause(), "Pausing: parts in progress are finished, nothing more is granted.")

    def stall(self, worker: WorkerModel) -> None:
        stalled = worker.state != "stalled"
        words = "frozen; its lease runs on" if stalled else "thawed"
        self.command(StallWorker(worker=worker.name, stalled=stalled), f"{worker.name} is {words}.")

    def ask_kill(self, worker: WorkerModel) -> None:
        def answered(answer: str | None) -> None:
            if answer == "kill":
                self.command(KillWorker(worker=worker.name), f"Killing {worker.name}.")

        self.push_screen(kill_question(self.look, worker), answered)

    def ask_fault(self, worker: WorkerModel) -> None:
        def answered(answer: str | None) -> None:
            if answer is not None:
                fault = chosen_fault(answer, worker.name)
                whom = f" for {worker.name}" if fault.workers else ""
                self.command(InjectFault(fault=fault), f"Injecting {fault.kind}{whom}.")

        self.push_screen(fault_question(self.look, worker), answered)

    # --- leaving -----------------------------------------------------------------------------------------

    def action_ask_quit(self) -> None:
        if self.ended:
            self.exit(Outcome("ended"))
        elif not self.can_control:
            self.exit(Outcome("quit"))
        elif not isinstance(self.screen, Dialog):
            self.push_screen(quit_question(self.look, self.model), self._quit_answered)

    def _quit_answered(self, answer: str | None) -> None:
        if answer == "drain":
            self._drain()
        elif answer == "stop":
            self._stop_now()

    def action_interrupt(self) -> None:
        """Ctrl-C: drain, then stop at once, then leave whatever happens."""
        if not self.can_control:
            self.action_ask_quit()
            return
        self._interrupts += 1
        if self._interrupts == 1 and self.model.drain_reason is None:
            self._drain()
        elif self._interrupts <= 2:
            self._interrupts = 2
            self._stop_now()
        else:
            self.exit(Outcome("abandoned"))

    def action_stop(self) -> None:
        """Ctrl-Z: back to the shell, workers and all, until ``fg``."""
        if self._driver is not None and self._driver.can_suspend:
            os.kill(os.getpid(), SIGTSTP)
        else:
            self.say("Ctrl-Z does nothing on this terminal: space pauses the run, q leaves it.")

    def _drain(self) -> None:
        if self.virtual_time is not None:
            self.virtual_time.halt(False)  # what is in progress takes time to be finished
        self._interrupts = max(self._interrupts, 1)
        self.command(
            Drain(reason="asked from the console"),
            "Draining: parts in progress are finished and kept. Ctrl-C stops at once.",
        )

    def _stop_now(self) -> None:
        self._interrupts = 2
        self.command(
            StopNow(reason="asked from the console"),
            "Stopping at once: what is credited is kept, the run can be resumed.",
        )

    # --- looks -------------------------------------------------------------------------------------------

    def _take_look(self, look: Look) -> None:
        self.look = look
        for screen in self.screen_stack:
            for widget in screen.query(LineWidget):
                widget.look = look
        self.repaint()

    def action_symbols(self) -> None:
        self._take_look(self.look.with_symbols(not self.look.symbols))

    def action_dark(self) -> None:
        palette = LIGHT if self.look.palette.dark else DARK
        self.theme = textual_theme(palette).name
        self._take_look(self.look.with_palette(palette))

    def action_help(self) -> None:
        virtual = self.virtual_time is not None
        self.push_screen(Help(self.look, readonly=not self.can_control, virtual=virtual))

    def show_worker(self, name: str) -> None:
        self.push_screen(WorkerDetail(self.look, self.model, name, self.now))

    def action_picture(self) -> None:
        run = self.model.header.run_id if self.model.header else "run"
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in f"uneven-{run}-{self.now():.0f}s")
        path = self._picture_folder / f"{name}.svg"
        try:
            path.write_text(self.export_screenshot(simplify=True), encoding="utf-8")
        except OSError as error:
            self.say(f"The picture can't be written to {path}: {error.strerror}.", alert=True)
        else:
            self.say(f"Picture saved as {path}.")
