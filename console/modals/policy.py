"""What an idle worker gets from now on: all policies and tail rules with what they are, and a line to change.

Up and down go through the list; what is under the cursor takes the place of its kind in the line, where its
parameters can be changed. What is taken is what the line says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from console.modals.dialog import Pieces, wrapped
from console.modals.prompt import Prompt
from console.theme import Look
from console.widgets.lines import clip
from farm.policies.catalogue import Entry, policies, tails

Kind = Literal["policy", "tail"]


class PolicyPrompt(Prompt):
    """``value``: the line to begin with."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "choose(-1)", "the one before", priority=True),
        Binding("down", "choose(1)", "the next one", priority=True),
    ]

    def __init__(self, look: Look, value: str, check: Callable[[str], str | None]) -> None:
        hint = "up/down choose  enter apply  esc stay"
        super().__init__(look, "policy and tail from now on", lambda: (), check, value=value, hint=hint)
        self._choices: list[tuple[Kind, Entry]] = [
            *(("policy", entry) for entry in policies()),
            *(("tail", entry) for entry in tails()),
        ]
        self._cursor: int | None = None  #: None: nothing was chosen yet
        self._top = 0

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        width = min(width, 100)
        fault = wrapped(self.fault, "alert", width) if self.fault else []
        listed = self._listed(width)
        room = max(height - len(fault), 1)
        at = next((n for n, (index, _) in enumerate(listed) if index == self._cursor), 0)
        if self._cursor is not None:
            self._top = min(max(self._top, at - room + 1), at)
        self._top = max(min(self._top, len(listed) - room), 0)
        return [*(row for _, row in listed[self._top : self._top + room]), *fault]

    def _listed(self, width: int) -> list[tuple[int | None, Pieces]]:
        """Rows, with the number of the choice that a row is."""
        now = self.entry.value.split()
        rows: list[tuple[int | None, Pieces]] = []
        heading: Kind | None = None
        for index, (kind, entry) in enumerate(self._choices):
            if kind != heading:
                heading = kind
                words = (
                    "policies: how much an idle worker gets"
                    if kind == "policy"
                    else "tails: when nothing is open"
                )
                rows.append((None, ((words, "muted"),)))
            mark = ">" if index == self._cursor else "*" if _in_use(kind, entry, now) else " "
            spelt = f"{entry.name},{entry.parameters}" if entry.parameters else entry.name
            name = clip(f"{mark} {spelt}", 40, self.sheet.look.ellipsis).ljust(41)
            about = clip(entry.about, max(width - len(name), 0), self.sheet.look.ellipsis)
            rows.append(
                (
                    index,
                    ((name, "key" if mark == ">" else "strong" if mark == "*" else "text"), (about, "muted")),
                )
            )
        return rows

    def action_choose(self, steps: int) -> None:
        last = len(self._choices) - 1
        start = -1 if steps > 0 else last + 1
        self._cursor = min(max((start if self._cursor is None else self._cursor) + steps, 0), last)
        kind, entry = self._choices[self._cursor]
        words = self.entry.value.split()
        place = next((n for n, word in enumerate(words) if _kind_of(word) == kind), None)
        if place is None:
            place = 0 if kind == "policy" else min(1, len(words))
            words.insert(place, "")
        words[place] = entry.name
        self.entry.value = " ".join(words)
        self.entry.cursor_position = len(" ".join(words[: place + 1]))  # where parameters go
        self.update_rows()


def _in_use(kind: Kind, entry: Entry, words: Sequence[str]) -> bool:
    if kind == "tail":
        return any(word in (entry.name, f"{entry.name},from=frontier") for word in words)
    return any(word.partition(",")[0] == entry.name for word in words)


def _kind_of(word: str) -> Kind | None:
    name = word.partition(",")[0]
    if name in {entry.name for entry in tails()}:
        return "tail"
    return None if word.partition("=")[0] in ("lease", "heartbeat") else "policy"
