"""A list of which a person picks a row: what clicks and the wheel mean there."""

from __future__ import annotations

from textual import events
from textual.message import Message

from console.widgets.lines import LineWidget


class RowList(LineWidget):
    """Its screen keeps the cursor; the list tells what the mouse asks for."""

    class Picked(Message):
        """A row was clicked, ``x`` cells from the left. ``index`` counts the rows of the widget. ``opened``:
        twice."""

        def __init__(self, index: int, x: int, *, opened: bool) -> None:
            super().__init__()
            self.index = index
            self.x = x
            self.opened = opened

    class Scrolled(Message):
        """The wheel asks for the cursor to move by ``steps``."""

        def __init__(self, steps: int) -> None:
            super().__init__()
            self.steps = steps

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= offset.y < len(self.rows):
            self.post_message(self.Picked(offset.y, offset.x, opened=event.chain > 1))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Scrolled(1))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Scrolled(-1))
