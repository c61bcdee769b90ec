"""The ways out: q, ctrl+c (drain, then stop, then leave), ctrl+z, and the signals that end a program.

Rule of this file: a live run is never dropped by accident. Leaving it drains it or stops it, and says so.
"""

from __future__ import annotations

import os
from signal import SIGTSTP
from typing import ClassVar

from textual.binding import Binding, BindingType

from console.consolebase import ConsoleBase, Outcome
from console.modals.confirm import quit_question
from console.modals.dialog import Dialog
from farm.commands import Drain, StopNow


class Leaving(ConsoleBase):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+q", "ask_quit", "quit"),
        Binding("ctrl+c", "interrupt", "drain; once more: stop at once", priority=True, show=False),
        Binding("ctrl+z", "stop", "back to the shell, workers too", priority=True, show=False),
    ]

    _interrupts = 0

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
