"""What every part of the console app stands on: the source, the model, the look, and the last row's sentence.

Rules of this file:
- ``console.app`` is put together from this base, ``console.operating`` (what acts on the run) and
  ``console.leaving`` (the ways out); a part that needs more of the app declares it here;
- commands go through ``command`` alone, so that every refusal is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from signal import Signals
from typing import ClassVar, Literal, Protocol, runtime_checkable

from textual import constants
from textual.app import App

from console.driver import ConsoleDriver
from console.model import Model
from console.theme import DARK, LIGHT, Look, textual_theme
from console.widgets.key_bar import SaidRow
from farm.commands import AnyCommand
from farm.view import Source

SAID_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why the console closed. ``ended``: the run is over. ``quit``: the user left (only a run that is over, a
    recording, or read only: else quitting ends the run first). ``abandoned``: stopping at once was asked for
    and the user would not wait for it. ``signal``: closed by ``signal``; the caller drains or stops.
    ``restart``: the run is to begin anew; it was told to stop."""

    why: Literal["ended", "quit", "abandoned", "signal", "restart"]
    signal: Signals | None = None


@runtime_checkable
class VirtualTime(Protocol):
    """A source whose clock can be hurried, slowed, halted and stepped (farm.playback, farm.simulation)."""

    @property
    def rate(self) -> float: ...

    @property
    def halted(self) -> bool: ...

    def set_rate(self, rate: float) -> None: ...

    def halt(self, halted: bool) -> None: ...

    def step(self) -> None: ...


class ConsoleBase(App[Outcome], inherit_bindings=False):
    """One run, how it is drawn, and a word to the user."""

    QUIT_LABEL: ClassVar[str] = "quit"  #: in the last row
    OTHER_KEYS: ClassVar[dict[str, str]] = {}  #: keys that do something else here, for the help

    def __init__(self, source: Source, *, readonly: bool, ascii_only: bool) -> None:
        super().__init__(driver_class=None if constants.DRIVER else ConsoleDriver)
        self.source = source
        self.model = Model(source.world)
        self.readonly = readonly
        self.ended = False
        self.said: SaidRow | None = None  #: what the last row says in place of the keys
        self._said_number = 0
        self.commands_sent = 0
        plain = ascii_only or self.no_color or self.console.color_system in (None, "standard", "windows")
        self.look = Look(DARK, ascii_only=ascii_only, symbols=plain)
        for palette in (DARK, LIGHT):
            self.register_theme(textual_theme(palette))
        self.theme = "uneven-dark"

    def tick(self) -> None:
        """Take in what happened and show it."""
        raise NotImplementedError

    def repaint(self, turn: bool | None = None) -> None:
        """Show the model as it is at this moment; ``turn`` as in ``RunScreen.update_view``."""
        raise NotImplementedError

    def now(self) -> float:
        """The present, in lease seconds of the run."""
        return max(self.source.now(), self.model.at)

    @property
    def can_control(self) -> bool:
        """Whether commands can be sent at all."""
        return not (self.readonly or self.ended or self.source.world == "recording")

    @property
    def virtual_time(self) -> VirtualTime | None:
        """The clock of what can be hurried, slowed and halted; None where time can't be helped."""
        source = self.source
        return source if isinstance(source, VirtualTime) else None

    @property
    def standing(self) -> bool:
        """Whether space makes it go on: virtual time is halted, or the job is paused."""
        clock = self.virtual_time
        return self.model.paused if clock is None else clock.halted

    def command(self, command: AnyCommand, done: str) -> bool:
        """Send a command and say what became of it."""
        self.commands_sent += 1
        refusal = self.source.send(command)
        self.say(refusal or done, alert=refusal is not None)
        return refusal is None

    def say(self, text: str, *, alert: bool = False, seconds: float | None = SAID_SECONDS) -> None:
        """Put a sentence in the last row for a while; the newest one stays its full time."""
        self._said_number += 1
        number = self._said_number
        self.said = SaidRow(text, alert)
        self.repaint()
        if seconds is not None:
            self.set_timer(seconds, lambda: self._unsay(number))

    def _unsay(self, number: int) -> None:
        if number == self._said_number:
            self.said = None
            self.repaint()
