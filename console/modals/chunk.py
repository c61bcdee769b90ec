"""One chunk: its frames and state, every claim on it, and its story with the reason of each decision. Goes on
while it is open."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from console.chunklist import STATE_WORDS, TRAIT_WORDS
from console.chunks import Attempt, ChunkState, ChunkStory
from console.decisions import decided
from console.modals.dialog import Dialog, Pieces, Role
from console.model import Model
from console.text import count, duration, moment, plural, safe, size
from console.theme import Look
from console.widgets.lines import fit
from farm import events as ev

if TYPE_CHECKING:
    from console.app import ConsoleApp

#: Cells that the box takes at most; sentences are hard to read in longer lines.
WIDE_MAX = 104

_STATE_ROLES: dict[ChunkState, Role] = {
    ChunkState.UNKNOWN: "muted",
    ChunkState.IN_FLIGHT: "claimed",
    ChunkState.DUPLICATED: "duplicated",
    ChunkState.DONE: "done",
    ChunkState.GIVEN_BACK: "alert",
}
_HOW: dict[str, tuple[str, Role]] = {
    "": ("live", "claimed"),
    "completed": ("done", "done"),
    "superseded": ("too late", "muted"),
    "lapsed": ("LAPSED", "alert"),
    "stalled": ("LAPSED", "alert"),
    "timed out": ("LAPSED", "alert"),
    "failed": ("failed", "alert"),
}


class ChunkDetail(Dialog):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,q", "dismiss", "close"),
        Binding("j,down", "repeated(1)", "next chunk with several claims"),
        Binding("k,up", "repeated(-1)", "previous chunk with several claims"),
        Binding("pagedown", "older(-3)", "further down the story"),
        Binding("pageup", "older(3)", "further up the story"),
        Binding("y", "copy", "copy the id"),
    ]

    def __init__(self, look: Look, model: Model, number: int, clock: Callable[[], float]) -> None:
        super().__init__(look, f"chunk c{number}", "j/k next with several claims  y copy  esc close")
        self.number = number
        self._model = model
        self._clock = clock
        self._up = 0  #: lines of the story's end that are scrolled out of view
        self._followed: tuple[object, int, list[int]] | None = None
        self._worded: tuple[object, list[Pieces]] | None = None

    def rows(self, width: int, height: int) -> Sequence[Pieces]:
        wide = min(width, WIDE_MAX)
        story = self._model.book.story(self.number)
        facts = self._facts(story, wide)
        if story is None:
            told = "its claims are not kept any more: only the newest chunks have a story"
            return [*facts, (), ((fit(told, wide), "muted"),)]
        table = attempt_rows(story, wide, self.sheet.look)
        lines = self._story_rows(story, wide)
        room = height - len(facts) - len(table) - 3
        if room < 2:
            return [*facts, *table, *lines][:height]
        self._up = min(self._up, max(len(lines) - room, 0))
        stop = len(lines) - self._up
        shown = lines[max(stop - room, 0) : stop]
        cut = story.told - len(story.records)
        words = f"story  ({len(shown)} of {len(lines)} lines shown)" if len(shown) < len(lines) else "story"
        words += f"  ({plural(cut, 'older event')} not kept)" if cut else ""
        heading: Pieces = ((fit(words, wide), "muted"),)
        return [*facts, (), *table, (), heading, *shown]

    def _facts(self, story: ChunkStory | None, wide: int) -> list[Pieces]:
        book, number = self._model.book, self.number
        state = ChunkState(book.state[number])
        frames = book.frames(number)
        traits = [words for trait, words in TRAIT_WORDS.items() if book.traits[number] & trait]
        since = book.from_seconds[number]
        if number in book.live:
            time = f"since {moment(since)}, for {duration(max(self._clock() - since, 0.0))}"
        else:
            until = book.until_seconds[number]
            time = f"{moment(since)} to {moment(until)}, {duration(until - since)}"
        credited = f"{count(book.credited[number])} of {count(frames)} credited; {time}"
        rows: list[Pieces] = [
            (
                (f"frames [{count(book.start[number])}, {count(book.stop[number])}) ", "text"),
                (f"({plural(frames, 'frame')})  ", "muted"),
                (STATE_WORDS[state].upper(), _STATE_ROLES[state]),
            ),
            ((fit(credited, wide).rstrip(), "text"),),
        ]
        if traits:
            rows.append((("was ", "muted"), (", ".join(traits), "text")))
        followers = self._followers()
        if followers:
            names = ", ".join(f"c{other} ({safe(book.worker_of(other))})" for other in followers[:6])
            more = f" and {len(followers) - 6} more" if len(followers) > 6 else ""
            rows.append((("what it gave back went to ", "muted"), (fit(names + more, wide - 26), "text")))
        return rows

    def _followers(self) -> list[int]:
        """Looked for among the chunks that came since the last look, unless more was given back."""
        book, story = self._model.book, self._model.book.story(self.number)
        key = (self.number, story.given_back if story is not None else ())
        if self._followed is None or self._followed[0] != key:
            self._followed = (key, 0, [])
        _, seen, found = self._followed
        self._followed = (key, len(book), [*found, *book.followers(self.number, seen)])
        return self._followed[2]

    def _story_rows(self, story: ChunkStory, wide: int) -> list[Pieces]:
        """Worded again only when there is more to tell."""
        key = (self.number, story.told, wide)
        if self._worded is None or self._worded[0] != key:
            self._worded = (key, story_rows(story, wide))
        return self._worded[1]

    # --- keys --------------------------------------------------------------------------------------------

    def action_repeated(self, step: int) -> None:
        other = self._model.book.repeated(self.number, step)
        if other is not None:
            self.number, self._up = other, 0
            self.sheet.title(f"chunk c{other}", "j/k next with several claims  y copy  esc close")
            self.update_rows()

    def action_older(self, lines: int) -> None:
        self._up = max(self._up + lines, 0)
        self.update_rows()

    def action_copy(self) -> None:
        cast("ConsoleApp", self.app).copy(f"c{self.number}")


def attempt_rows(story: ChunkStory, wide: int, look: Look) -> list[Pieces]:
    """A table of the claims on a chunk."""
    names = ("claim", "worker", "from", "to", "how", "frames", "bytes", "digest")
    widths = [7, 10, 11, 11, 10, 8, 10, 10]
    least = {"digest": 80, "bytes": 70, "from": 60, "to": 50}
    columns = [pair for pair in zip(names, widths, strict=True) if wide >= least.get(pair[0], 0)]
    rows: list[Pieces] = [tuple((fit(name, cells), "muted") for name, cells in columns)]
    for attempt in story.attempts.values():
        cells_of = _cells_of(attempt)
        pieces: list[tuple[str, Role]] = []
        for name, cells in columns:
            text, role = cells_of[name]
            pieces.append((fit(text, cells - 1, look.ellipsis) + " ", role))
        rows.append(tuple(pieces))
    return rows


def _cells_of(attempt: Attempt) -> dict[str, tuple[str, Role]]:
    how, role = _HOW.get(attempt.how, (attempt.how, "text"))
    number = attempt.token.partition("#")[2].partition("@")[0]
    digest = attempt.sha256
    return {
        "claim": (f"#{number} dup", "duplicated") if attempt.duplicate else (f"#{number}", "text"),
        "worker": (safe(attempt.worker), "text"),
        "from": (moment(attempt.from_seconds), "text"),
        "to": ("-" if attempt.until_seconds is None else moment(attempt.until_seconds), "text"),
        "how": (how, role),
        "frames": (count(attempt.frames), "text"),
        "bytes": (size(attempt.size_bytes) if attempt.size_bytes else "-", "text"),
        "digest": (digest[:8] if digest else "-", "muted"),
    }


def story_rows(story: ChunkStory, wide: int) -> list[Pieces]:
    """Each event as a sentence under its time, wrapped."""
    rows: list[Pieces] = []
    for record in story.records:
        at, event = record.at, record.event
        time = f"{moment(at):<10} "
        trouble = isinstance(event, ev.ClaimRefused | ev.PartFailed | ev.PartSetAside | ev.PartDiverged) or (
            isinstance(event, ev.ClaimEnded) and event.how in ("lapsed", "stalled", "timed out", "failed")
        )
        role: Role = "alert" if trouble else "text"
        for number, line in enumerate(textwrap.wrap(decided(at, event), max(wide - len(time), 10)) or [""]):
            rows.append(((time if number == 0 else " " * len(time), "muted"), (line, role)))
    return rows
