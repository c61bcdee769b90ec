"""All keys and signs on one sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from console.modals.dialog import Dialog, Pieces, Role
from console.theme import SYMBOLS, Look, Mark

_KEYS: tuple[tuple[str, str], ...] = (
    ("q", "quit; while the run goes on, asks how"),
    ("ctrl+c", "drain; once more: stop at once"),
    ("ctrl+z", "back to the shell, workers too; fg goes on"),
    ("space p", "pause or resume the job"),
    ("j k ↓ ↑", "select a worker (g G: first, last)"),
    ("enter", "what the selected worker did"),
    ("s", "stall or unstall it"),
    ("x", "kill it (asks)"),
    ("i", "inject a fault: a menu"),
    ("f", "events: follow or hold"),
    ("pgup pgdn", "events: older, newer"),
    ("m", "map and bars: colours or symbols"),
    ("d", "dark or light"),
    ("ctrl+s", "save a picture (SVG)"),
)

#: In a simulation, where space halts virtual time.
_VIRTUAL_KEYS: tuple[tuple[str, str], ...] = (
    ("space p", "virtual time: halt or go on"),
    ("[ ] .", "virtual time: slower, faster, next event"),
)

_SIGNS: tuple[tuple[Mark, Role, str], ...] = (
    (Mark.DONE, "done", "credited: checked, synced, counted once"),
    (Mark.CLAIMED, "claimed", "claimed: brighter as frames are encoded"),
    (Mark.DUPLICATED, "duplicated", "duplicated: two workers, first one counts"),
    (Mark.LAPSED, "lapsed", "lapsed: its lease ran out; open again"),
    (Mark.OPEN, "open", "open: nobody has it"),
    (Mark.FAILED, "alert", "set aside, refused, or a worker that died"),
    (Mark.STALLED, "alert", "stalled: alive, standing still"),
)


class Help(Dialog):
    BINDINGS: ClassVar[list[BindingType]] = [("question_mark,q,enter,space", "dismiss", "close")]

    def __init__(self, look: Look, *, readonly: bool, virtual: bool = False) -> None:
        super().__init__(look, "keys and signs")
        self._readonly = readonly
        own = _VIRTUAL_KEYS if virtual else ()
        self._keys = (*(key for key in _KEYS if key[0] not in dict(own)), *own)

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        keys: list[Pieces] = []
        for key, words in self._keys:
            shown = key.replace("↓ ↑", "down up") if self.sheet.look.ascii_only else key
            keys.append(((f"{shown:<11}", "key"), (words, "text")))
        signs: list[Pieces] = [
            ((f"{SYMBOLS[mark]}  ", role), (words, "text")) for mark, role, words in _SIGNS
        ]
        note: list[Pieces] = []
        if self._readonly:
            note.append((("read only: this console sends no commands", "alert"),))
        if width >= 100:
            return [*_beside(keys, signs, 52), *note]
        if height >= len(keys) + len(signs) + 1:
            return [*keys, (), *signs, *note]
        return [*keys, *signs, *note]


def _beside(left: Sequence[Pieces], right: Sequence[Pieces], column: int) -> list[Pieces]:
    rows: list[Pieces] = []
    for index in range(max(len(left), len(right))):
        first = left[index] if index < len(left) else ()
        used = sum(len(text) for text, _ in first)
        gap: Pieces = ((" " * max(column - used, 1), "text"),)
        rows.append(first + gap + right[index] if index < len(right) else first)
    return rows
