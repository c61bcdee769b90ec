"""What the console may see of a run: an event stream, a clock and a way to send commands. The same for a
live run, a simulation and a recording (DESIGN.md §7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from farm.commands import AnyCommand
from farm.events import Record

World = Literal["live", "simulated", "recording"]


class Source(Protocol):
    """Implementations are thread-safe: the console polls from its own thread."""

    @property
    def world(self) -> World: ...

    @property
    def ended(self) -> bool:
        """No record will follow those that ``take`` has not handed out yet."""
        ...

    def now(self) -> float:
        """Lease seconds since the run's first start; comparable to ``Record.at``."""
        ...

    def take(self) -> Sequence[Record]:
        """The records since the last call, oldest first. Never blocks."""
        ...

    def send(self, command: AnyCommand) -> str | None:
        """Ask for something. None: accepted; else one sentence that says why not. Never blocks."""
        ...
