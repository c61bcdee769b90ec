"""All keys and signs on one sheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from textual.binding import Binding, BindingType

from console.modals.dialog import Dialog, Pieces, Role
from console.theme import SYMBOLS, Look, Mark

_KEYS: tuple[tuple[str, str], ...] = (
    ("q", "quit; while the run goes on, asks how"),
    ("ctrl+c", "drain; once more: stop at once"),
    ("ctrl+z", "back to the shell, workers too; fg goes on"),
    ("space p", "pause or resume the job"),
    ("a", "add a worker, with a profile"),
    ("o", "another policy, tail rule or lease"),
    ("ctrl+p", "every command by its name"),
    ("tab z", "next panel; let it fill the screen"),
    ("esc", "back: no filter, all panels, screen 1"),
    ("y", "copy the id under the cursor"),
    ("m d", "colours or symbols; dark or light"),
    ("e ctrl+s", "save a picture (SVG)"),
)

#: In a simulation, where space halts virtual time.
_VIRTUAL_KEYS: tuple[tuple[str, str], ...] = (
    ("space p", "virtual time: halt or go on"),
    ("[ ] .", "virtual time: slower, faster, next event"),
)
#: Where one can go to and fro: in recordings, and in simulations.
_PLAYED_KEYS: tuple[tuple[str, str], ...] = (
    (",", "back by one event"),
    ("h l ← →", "back and forward in time (g G: the ends)"),
    ("n N", "to the next or last lapse, split, kill, …"),
    ("K", "which of these n and N look for"),
    ("L", "to the present of a simulation"),
    ("R", "begin anew"),
    ("enter", "skip the caption"),
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
    """``own``: keys of the screen it was asked on; ``screens``: key and name of each screen; ``others``: keys
    that do something else here than in most consoles."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,q,enter,space", "dismiss", "close"),
        Binding("j,down", "scroll(1)", "further down"),
        Binding("k,up", "scroll(-1)", "back up"),
    ]

    def __init__(
        self,
        look: Look,
        own: Sequence[tuple[str, str]],
        screens: Sequence[tuple[str, str]],
        *,
        readonly: bool,
        virtual: bool = False,
        played: bool = False,
        others: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(look, "keys and signs", "j/k scroll  esc close")
        self._readonly = readonly
        clock = (*(_VIRTUAL_KEYS if virtual else ()), *(_PLAYED_KEYS if played else ()))
        shared = [(k, others.get(k, words)) for k, words in _KEYS if k not in dict(clock)] + [*clock]
        if len(screens) > 1:
            keys, names = (" ".join(column) for column in zip(*screens, strict=True))
            shared.insert(4, (keys, "screens: " + names.replace(" ", ", ")))
        self._own, self._shared = tuple(own), tuple(shared)
        self._top = 0  #: first row in view

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        signs: list[Pieces] = [
            ((f"{SYMBOLS[mark]}  ", role), (words, "text")) for mark, role, words in _SIGNS
        ]
        note: list[Pieces] = []
        if self._readonly:
            note.append((("read only: this console sends no commands", "alert"),))
        own, shared = self._key_rows(self._own), self._key_rows(self._shared)
        if width >= 106:
            rows = [*_beside([*own, (), *signs], shared, 54), *note]
        else:
            rows = [*note, *own, (), *shared, (), *signs]
        self._top = min(self._top, max(len(rows) - height, 0))
        return rows[self._top :]

    def _key_rows(self, keys: Sequence[tuple[str, str]]) -> list[Pieces]:
        rows: list[Pieces] = []
        for key, words in keys:
            shown = key.replace("↓ ↑", "down up").replace("← →", "arrows")
            rows.append(((f"{shown if self.sheet.look.ascii_only else key:<11} ", "key"), (words, "text")))
        return rows

    def action_scroll(self, rows: int) -> None:
        self._top = max(self._top + rows, 0)
        self.update_rows()


def _beside(left: Sequence[Pieces], right: Sequence[Pieces], column: int) -> list[Pieces]:
    rows: list[Pieces] = []
    for index in range(max(len(left), len(right))):
        first = left[index] if index < len(left) else ()
        used = sum(len(text) for text, _ in first)
        gap: Pieces = ((" " * max(column - used, 1), "text"),)
        rows.append(first + gap + right[index] if index < len(right) else first)
    return rows
