"""The console on a run of another process: the same, but for the ways out. Leaving it never touches the run.

Rule of this file: whatever ends the run is asked for with what it costs; what only ends the view is not.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from console.app import ConsoleApp
from console.consolebase import Outcome
from console.modals.dialog import Choice, Question
from console.model import Model
from console.text import count, plural
from console.theme import Look
from farm.attach.client import AttachedRun


class LeaveQuestion(Question):
    """How to leave a run that goes on elsewhere. Enter leaves the view: nothing is lost by that."""

    def __init__(self, look: Look, model: Model) -> None:
        self._model = model
        super().__init__(look, "leave?", self._told, self._offered)

    def on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            self.dismiss("leave")
        else:
            super().on_key(event)

    def _told(self) -> list[str]:
        model = self._model
        left = model.target_frames - model.credited_frames - model.set_aside_frames
        lines = [f"The run goes on without this view: {count(left)} frames are not credited yet."]
        if model.drain_reason is not None:
            lines.append("It is draining already: parts in progress are being finished.")
        return lines

    def _offered(self) -> list[Choice]:
        lost = plural(self._model.rendered_frames, "frame")
        return [
            Choice("q", "leave this view; the run goes on (also enter, ctrl+c)", "leave"),
            Choice("d", "drain: finish and keep the parts in progress, then end the run", "drain"),
            Choice("x", f"stop the run now: loses {lost} rendered and not delivered", "stop"),
            Choice("s", "stay", "stay"),
        ]


class AttachedConsole(ConsoleApp):
    """On a ``farm.attach.client.AttachedRun``. Its ``Outcome`` is ``quit`` when the user left."""

    QUIT_LABEL: ClassVar[str] = "leave"
    OTHER_KEYS: ClassVar[dict[str, str]] = {
        "q": "leave this view; the run goes on",
        "ctrl+c": "asks: leave, drain or stop the run",
        "ctrl+z": "back to the shell; the run goes on",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+q", "ask_quit", "leave this view; the run goes on"),
        Binding("ctrl+c", "interrupt", "leave, drain or stop", priority=True, show=False),
        Binding("ctrl+z", "stop", "back to the shell", priority=True, show=False),
    ]

    def tick(self) -> None:
        super().tick()
        if isinstance(self.source, AttachedRun):
            while self.source.refusals:
                self.say(self.source.refusals.popleft(), alert=True)

    def _on_end(self) -> None:
        ending = self.source.ending if isinstance(self.source, AttachedRun) else None
        super()._on_end()
        if ending is not None and ending.why == "lost":
            self.say("The run's process is gone: it was killed. q leaves.", alert=True, seconds=None)
        elif ending is not None and ending.why == "broken":
            self.say("The line to the run is broken. q leaves.", alert=True, seconds=None)

    def action_ask_quit(self) -> None:
        self.exit(Outcome("ended" if self.ended else "quit"))

    def action_interrupt(self) -> None:
        if not self.can_control or isinstance(self.screen, LeaveQuestion):
            self.action_ask_quit()
        else:
            self.push_screen(LeaveQuestion(self.look, self.model), self._leave_answered)

    def _leave_answered(self, answer: str | None) -> None:
        if answer == "leave":
            self.action_ask_quit()
        else:
            self._quit_answered(answer)
