"""The frame of every box: lines of text with roles, keys that answer, as large as its text and no larger than
the screen."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.strip import Strip

from console.theme import Look, Mark
from console.widgets.lines import Line, LineWidget

Role = Literal["text", "muted", "strong", "key", "alert", "done", "claimed", "duplicated", "lapsed", "open"]

#: Text and role pieces of one line.
Pieces = tuple[tuple[str, Role], ...]

TEXT_CELLS_MAX = 66


@dataclass(frozen=True, slots=True)
class Choice:
    """A key that answers the question with ``answer``."""

    key: str
    label: str
    answer: str


class Sheet(LineWidget):
    """Rows of ``Pieces``."""

    def draw(self, row: Hashable, width: int) -> Strip:
        line = Line(self.look.ground)
        assert isinstance(row, tuple)
        for text, role in row:
            line.add(text, style_of(role, self.look))
        return line.strip(width)


def style_of(role: Role, look: Look) -> Style:
    match role:
        case "text":
            return look.text
        case "muted":
            return look.muted
        case "strong":
            return look.strong
        case "key":
            return look.ink(Mark.CLAIMED, bold=True)
        case "alert" | "lapsed":
            return look.ink(Mark.LAPSED, bold=True)
        case "done":
            return look.ink(Mark.DONE)
        case "claimed":
            return look.ink(Mark.CLAIMED)
        case "duplicated":
            return look.ink(Mark.DUPLICATED)
        case "open":
            return look.ink(Mark.OPEN)


def wrapped(text: str, role: Role = "text", width: int = TEXT_CELLS_MAX) -> list[Pieces]:
    """``text`` as lines of at most ``width`` characters."""
    return [((line, role),) for line in textwrap.wrap(text, max(width, 10))] or [()]


class Dialog(ModalScreen[str | None]):
    """A box with a title and rows. Escape closes it without an answer."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "close")]

    # Not CSS: that of a screen is scoped to its own class and would not reach a box made from this one.
    DEFAULT_CSS = """
    Dialog { align: center middle; background: $background 55%; }
    Dialog Sheet { border: round $accent; padding: 1 2; background: $background;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $muted; }
    Dialog.ascii Sheet { border: ascii $accent; }
    Dialog.tight Sheet { padding: 0 1; }
    """

    def __init__(self, look: Look, title: str, hint: str = "esc close") -> None:
        super().__init__()
        self.sheet = Sheet(look)
        self._heading = title
        self._hint = hint

    def compose(self) -> ComposeResult:
        yield self.sheet

    def on_mount(self) -> None:
        self.set_class(self.sheet.look.ascii_only, "ascii")
        self.sheet.title(self._heading, self._hint)
        self.update_rows()

    def on_resize(self, event: events.Resize) -> None:
        self.update_rows(event.size)

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        """What the box says in a box of at most ``width`` by ``height`` cells of text."""
        raise NotImplementedError

    def update_rows(self, size: Size | None = None) -> None:
        """Say it again, for a run that went on or a screen that changed."""
        size = size or self.app.size
        tight = size.width < 60 or size.height < 20
        self.set_class(tight, "tight")
        across, down = (4, 2) if tight else (6, 4)
        rows = list(self.rows(max(size.width - across, 1), max(size.height - down, 1)))
        rows = rows[: max(size.height - down, 1)]
        width = max((sum(cell_len(text) for text, _ in row) for row in rows), default=0)
        width = max(width, cell_len(self._heading) + 4, cell_len(self._hint) + 4)
        width = min(width, max(size.width - across, 1))
        self.sheet.styles.width = width + across
        self.sheet.styles.height = len(rows) + down
        self.sheet.show(rows)


class Question(Dialog):
    """Asks; one key for each answer. There is no key that answers by accident: enter and space do nothing.

    ``body`` and ``choices`` are asked for again at every repaint: the run goes on behind the question.
    """

    def __init__(
        self,
        look: Look,
        title: str,
        body: Callable[[], Sequence[str]],
        choices: Callable[[], Sequence[Choice]],
    ) -> None:
        super().__init__(look, title, "esc stay")
        self._body = body
        self._choices = choices

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        rows: list[Pieces] = []
        choices = self._choices()
        for paragraph in self._body():
            rows.extend(wrapped(paragraph, width=min(width, TEXT_CELLS_MAX)))
        keys = max(len(choice.key) for choice in choices)
        answers: list[Pieces] = [
            ((f"{choice.key:<{keys}}", "key"), (f"  {choice.label}", "text")) for choice in choices
        ]
        room = height - len(answers)
        if not rows or len(rows) + 1 > room:
            return rows[: max(room, 0)] + answers
        return [*rows, (), *answers]

    def on_key(self, event: events.Key) -> None:
        for choice in self._choices():
            if event.key == choice.key:
                event.stop()
                self.dismiss(choice.answer)
                return
