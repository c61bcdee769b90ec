"""The last row: the keys that do something here, or what was just said. Keys that can't be used now are
faint; keys for which there is no room are dropped from the right, so the ways out and to help stand first."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip

from console.theme import Look, Mark
from console.widgets.lines import Line, LineWidget, clip


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is shown. ``action`` is what a click on it does."""

    key: str
    label: str
    action: str
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class KeysRow:
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class SaidRow:
    """A sentence in place of the keys."""

    text: str
    alert: bool


class KeyBar(LineWidget):
    """One row: ``KeysRow`` or ``SaidRow``."""

    class Pressed(Message):
        """A key was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def draw(self, row: Hashable, width: int) -> Strip:
        match row:
            case KeysRow():
                return draw_keys(row, width, self.look)
            case SaidRow():
                style = self.look.ink(Mark.LAPSED if row.alert else Mark.CLAIMED, bold=True)
                line = Line(self.look.ground).add(" ! " if row.alert else "   ", style)
                return line.add(clip(row.text, width - 4, self.look.ellipsis), style).strip(width)
            case _:
                return Strip.blank(width, self.ground)

    def on_click(self, event: events.Click) -> None:
        row = self.rows[0] if self.rows else None
        if not isinstance(row, KeysRow):
            return
        for key, start, stop in placed(row.keys, self.size.width):
            if start <= event.x < stop and key.enabled:
                self.post_message(self.Pressed(key.action))


def placed(keys: tuple[Key, ...], width: int) -> list[tuple[Key, int, int]]:
    """The keys that fit, with the cells ``[start, stop)`` they take."""
    places = []
    at = 1
    for key in keys:
        stop = at + cell_len(key.key) + 1 + cell_len(key.label)
        if stop > width:
            break
        places.append((key, at, stop))
        at = stop + 2
    return places


def draw_keys(row: KeysRow, width: int, look: Look) -> Strip:
    line = Line(look.ground)
    for key, start, _ in placed(row.keys, width):
        line.pad_to(start)
        line.add(key.key, look.ink(Mark.CLAIMED, bold=True) if key.enabled else look.faint)
        line.add(" " + key.label, look.muted if key.enabled else look.faint)
    return line.strip(width)
