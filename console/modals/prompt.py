"""A box that asks for a line of text, and says what is wrong with it before it takes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.widgets import Input

from console.modals.dialog import TEXT_CELLS_MAX, Dialog, Pieces, wrapped
from console.theme import Look
from console.widgets.entry import Entry

#: Rows of the entry with its frame.
ENTRY_LINES = 3


class Prompt(Dialog):
    """``check`` says in a sentence what is wrong with a text; None: it is taken. ``body`` is asked for again
    at every repaint: the run goes on behind the box."""

    DEFAULT_CSS = """
    Prompt Input { border: round $accent; background: $background; height: 3; padding: 0 1; }
    Prompt Input:focus { border: round $accent; background: $background; }
    Prompt.ascii Input { border: ascii $accent; }
    Prompt.ascii Input:focus { border: ascii $accent; }
    """
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "close")]

    def __init__(
        self,
        look: Look,
        title: str,
        body: Callable[[], Sequence[str]],
        check: Callable[[str], str | None],
        *,
        value: str = "",
        hint: str = "enter take it  esc stay",
    ) -> None:
        super().__init__(look, title, hint)
        self._body = body
        self._check = check
        self.entry = Entry(value, select_on_focus=False)
        self.fault = ""  #: what is wrong with what was last entered

    def compose(self) -> ComposeResult:
        yield self.sheet
        yield self.entry

    def on_mount(self) -> None:
        self.entry.action_select_all()  # what is typed takes its place
        self.entry.gather()

    async def on_key(self, event: events.Key) -> None:
        """What the entry takes by itself doesn't come here."""
        await self.entry.hear(event)

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        width = min(width, TEXT_CELLS_MAX)
        fault = wrapped(self.fault, "alert", width) if self.fault else []
        said = [row for paragraph in self._body() for row in wrapped(paragraph, width=width)]
        return [*said[: max(height - len(fault), 0)], *fault]

    def update_rows(self, size: Size | None = None) -> None:
        size = size or self.app.size
        super().update_rows(Size(size.width, max(size.height - ENTRY_LINES, 1)))
        self.entry.styles.width = self.sheet.styles.width

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        if self.fault:
            self.fault = ""
            self.update_rows()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.fault = self._check(message.value) or ""
        if self.fault:
            self.update_rows()
        else:
            self.dismiss(message.value)
