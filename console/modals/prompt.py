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

#: Rows of the entry with its frame.
ENTRY_LINES = 3
#: Who types fast, or on a busy machine, is there before the box: some keys come by the screen below it
#: (``Controlling.on_key``), and others overtake them. So the first moments' keys are put in order.
SETTLE_SECONDS = 0.1


class Entry(Input):
    """Takes keys in the order in which they were typed. (Textual's takes a letter at once, and enter and
    backspace, which are bindings, only after they went all the way up to the app: of keys that come in one
    read they are the last.)"""

    async def _on_key(self, event: events.Key) -> None:
        if event.key in ("enter", "backspace"):
            event.stop()
            event.prevent_default()
            await self.take(event)
        else:
            await super()._on_key(event)

    async def take(self, key: events.Key) -> None:
        """Do what a key says."""
        match key.key:
            case "enter":
                await self.action_submit()
            case "backspace":
                self.action_delete_left()
            case _:
                self.insert_text_at_cursor(key.character or "")


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
        self._settled = False
        self._early: list[events.Key] = []  # typed before that
        self.fault = ""  #: what is wrong with what was last entered

    def compose(self) -> ComposeResult:
        yield self.sheet
        yield self.entry

    def on_mount(self) -> None:
        self.entry.cursor_position = len(self.entry.value)
        self.set_timer(SETTLE_SECONDS, self._settle)

    async def on_key(self, event: events.Key) -> None:
        """What the entry takes by itself doesn't come here."""
        if event.key in ("enter", "backspace") or event.is_printable:
            event.stop()
            event.prevent_default()
            if self._settled:
                await self.entry.take(event)
            else:
                self._early.append(event)

    async def _settle(self) -> None:
        self._settled = True
        self.entry.focus()
        for key in sorted(self._early, key=lambda key: key.time):
            await self.entry.take(key)

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
