"""The filter prompt: ``/`` opens it in place of the key bar, enter keeps the filter, escape gives it up."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from console.widgets.entry import Entry


class FilterPrompt(Horizontal):
    """One row, not displayed while it is closed. What is typed is told by Textual's ``Input.Changed``."""

    DEFAULT_CSS = """
    FilterPrompt { height: 1; display: none; background: $background; }
    FilterPrompt Static { width: 10; color: $muted; }
    FilterPrompt Input { width: 1fr; background: $background; }
    FilterPrompt Input:focus { background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "no filter", show=False)]

    class Closed(Message):
        """``text``: what is filtered by from now on; nothing, when it was given up by escape."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self.input = Entry(compact=True, select_on_focus=False, id="needle")
        self._before: Widget | None = None  #: what was in focus

    def compose(self) -> ComposeResult:
        yield Static(" filter /")
        yield self.input

    def on_mount(self) -> None:
        self.input.can_focus = False  # tab must not come by

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    def open(self, text: str) -> None:
        self._before = self.screen.focused
        self.display = True
        self.input.can_focus = True
        self.input.value = text
        self.input.cursor_position = len(text)
        self.input.gather()

    async def hear(self, event: events.Key) -> None:
        """A key that was typed before the line had the focus."""
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.action_give_up()
        else:
            await self.input.hear(event)

    def _close(self, text: str) -> None:
        self.display = False
        self.input.forget()
        self.input.can_focus = False
        self.screen.set_focus(self._before)
        self.post_message(self.Closed(text))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._close(message.value)

    def action_give_up(self) -> None:
        self._close("")
