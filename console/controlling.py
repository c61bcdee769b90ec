"""What an operator does to workers, chunks and the schedule beyond stopping things: throttle, add and send
away workers, copy a chunk, take a claim away, another policy.

Rules of this file: as in ``console.operating``. Actions on a chunk take its id, so that any screen that shows
chunks can bind a key to them; where something is lost, they ask and name it.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from console.modals.confirm import release_question, send_away_question
from console.modals.policy import PolicyPrompt
from console.modals.prompt import Prompt
from console.operating import Operating
from console.optionsline import parse_options, spell_options
from console.profiles import cap_words, encoder_threads, profile_words
from console.screens.base import RunScreen
from console.text import safe
from console.timeline import WorkerModel
from farm.commands import (
    AddWorker,
    ChangeOptions,
    DuplicateChunk,
    ReleaseClaim,
    RemoveWorker,
    ThrottleWorker,
)
from farm.errors import UsageError
from farm.events import CommandRefused
from farm.scenario.joining import parse_caps, parse_workers

_COMMANDS = frozenset({"add_worker", "policy", "release_chunk", "copy_chunk"})


class Controlling(Operating):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add_worker", "add a worker"),
        Binding("o", "policy", "another policy, tail or lease"),
    ]

    def allowed(self, action: str) -> bool | None:
        if action in _COMMANDS:
            return True if self.can_control else None
        return super().allowed(action)

    async def on_key(self, event: events.Key) -> None:
        """Typed so soon after a key that opens a box that it went to the screen below: it is meant for the
        box, or ``t6`` and enter would take another cap than 6; and ``/q`` would quit."""
        if isinstance(self.screen, Prompt):
            await self.screen.on_key(event)
        elif isinstance(self.screen, RunScreen) and self.screen.prompt.is_open:
            await self.screen.prompt.hear(event)

    def hear_refusal(self, event: CommandRefused) -> None:
        """Say what the run refused since this console began to send commands: a live run answers later."""
        if self.commands_sent and self.can_control:
            self.say(f"Refused: {event.reason}", alert=True)

    # --- workers -----------------------------------------------------------------------------------------

    def ask_throttle(self, worker: WorkerModel) -> None:
        name = safe(worker.name)

        def body() -> list[str]:
            speed = "" if worker.fps is None else f", renders {worker.fps:.3g} fps now"
            return [
                f"{name} has {cap_words(worker.fps_cap)}{speed}.",
                "Frames per second from its next frame on, or max. A process in its place has the same cap.",
            ]

        def check(text: str) -> str | None:
            try:
                return (
                    None if len(parse_caps(text)) == 1 else "One worker has one cap: give one number, or max."
                )
            except UsageError as error:
                return str(error)

        def answered(text: str | None) -> None:
            if text is not None:
                (fps,) = parse_caps(text)
                words = "no limit any more" if fps is None else f"{cap_words(fps)} from now on"
                self.command(ThrottleWorker(worker=worker.name, fps=fps), f"{name}: {words}.")

        value = "max" if worker.fps_cap is None else f"{worker.fps_cap:g}"
        self.push_screen(Prompt(self.look, f"throttle {name}", body, check, value=value), answered)

    def action_add_worker(self) -> None:
        limit = "" if self.virtual_time is not None else ", or max for no limit"
        body = [
            f"Frames per second{limit}; several with commas. Or fields as in a fleet file:",
            "fps = 12, memory_gb = 1, link = { mib_per_second = 2 }",
        ]

        def check(text: str) -> str | None:
            try:
                parse_workers(text, self._threads())
            except UsageError as error:
                return str(error)
            return None

        def answered(text: str | None) -> None:
            for profile in parse_workers(text, self._threads()) if text is not None else ():
                self.command(AddWorker(profile=profile), f"Adding a worker: {profile_words(profile)}.")

        value = "max" if limit else "12"
        self.push_screen(Prompt(self.look, "add a worker", lambda: body, check, value=value), answered)

    def _threads(self) -> int | None:
        """Of the job's encoder, which every worker has to have."""
        header = self.model.header
        return encoder_threads(header.settings) if header is not None else None

    def ask_remove(self, worker: WorkerModel) -> None:
        def answered(answer: str | None) -> None:
            if answer == "send away":
                words = f"{safe(worker.name)} finishes its part, gives back the rest and leaves."
                self.command(RemoveWorker(worker=worker.name), words)

        self.push_screen(send_away_question(self.look, worker), answered)

    # --- chunks ------------------------------------------------------------------------------------------

    def action_release_chunk(self, chunk: str) -> None:
        """Take the claims on a chunk away from their workers, by its id (``c12``); asks."""

        def answered(answer: str | None) -> None:
            if answer == "release":
                self.command(ReleaseClaim(claim=chunk), f"{chunk} is taken away and open again.")

        self.push_screen(release_question(self.look, self.model, chunk), answered)

    def action_copy_chunk(self, chunk: str) -> None:
        """Have a second worker take a copy of a chunk in flight, by its id. Nothing is lost by that."""
        words = f"A copy of {chunk} is wanted: the next worker that asks gets it."
        self.command(DuplicateChunk(chunk=chunk), words)

    # --- the schedule ------------------------------------------------------------------------------------

    def action_policy(self) -> None:
        def check(text: str) -> str | None:
            try:
                parse_options(text, self.model.options)
            except UsageError as error:
                return str(error)
            return None

        def answered(text: str | None) -> None:
            if text is not None:
                options = parse_options(text, self.model.options)
                words = f"From the next grant on: {spell_options(options)}."
                self.command(ChangeOptions(options=options), words)

        self.push_screen(PolicyPrompt(self.look, spell_options(self.model.options), check), answered)
