"""The keys that act on the run: pause, the clock of a simulation, and what is done to a worker.

Rules of this file: what can't be undone asks first and names what is lost; every command is said, and so
is its refusal (``ConsoleBase.command``); keys that can't be used now are grey, through ``allowed``.
"""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from console.consolebase import ConsoleBase
from console.modals.confirm import kill_question
from console.modals.fault import chosen_fault, fault_question
from console.timeline import WorkerModel
from farm.commands import InjectFault, KillWorker, Pause, Resume, StallWorker

#: Virtual seconds a second, from the slowest to the fastest that keys give.
RATE_MIN, RATE_MAX = 1 / 64, 4096.0


class Operating(ConsoleBase):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,p", "pause", "pause or go on"),
        Binding("left_square_bracket", "speed(0.5)", "virtual time: slower"),
        Binding("right_square_bracket", "speed(2)", "virtual time: faster"),
        Binding("full_stop", "step", "virtual time: next event"),
    ]

    def allowed(self, action: str) -> bool | None:
        """Whether one of the actions of this file can be used now; None: it is shown grey."""
        if action == "pause":
            return True if self.can_control or self.virtual_time is not None else None
        if action in ("speed", "step"):
            return self.virtual_time is not None and not (self.ended and self.source.world == "simulated")
        return True

    def action_speed(self, factor: float) -> None:
        clock = self.virtual_time
        if clock is not None:
            clock.set_rate(min(max(clock.rate * factor, RATE_MIN), RATE_MAX))
            if clock.halted:
                self._say_halted(f", then {clock.rate:g} times as fast as real time")
            else:
                self.say(f"{self._time} runs {clock.rate:g} times as fast as real time.")

    def action_step(self) -> None:
        """Halt, and go to the next event."""
        clock = self.virtual_time
        if clock is not None:
            clock.step()
            self.tick()
            self._say_halted()

    def _say_halted(self, how: str = "") -> None:
        self.say(f"{self._time} is halted at {self.now():.2f} s: . steps, space goes on{how}.", seconds=None)

    @property
    def _time(self) -> str:
        return "The recording" if self.source.world == "recording" else "Virtual time"

    def action_pause(self) -> None:
        clock = self.virtual_time
        if clock is not None:
            clock.halt(not clock.halted)
            if clock.halted:
                self._say_halted()
            else:
                self.say(f"{self._time} runs on, {clock.rate:g} times as fast as real time.")
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
