"""The newest events in plain words. Following, the list shows the end of the log; held, it stands still while
the log goes on, and its title says how many lines came since."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice

from textual import events
from textual.message import Message
from textual.strip import Strip

from console.runstate import RunState
from console.theme import Look, Mark
from console.widgets.lines import Line, LineWidget, clip, fit
from console.wording import WARNINGS, EventLine

_MARKS: dict[str, Mark] = {
    "lapse": Mark.LAPSED,
    "warning": Mark.LAPSED,
    "failure": Mark.LAPSED,
    "set aside": Mark.LAPSED,
    "lost": Mark.FAILED,
    "error": Mark.FAILED,
    "refusal": Mark.LAPSED,
    "duplicate": Mark.DUPLICATED,
    "superseded": Mark.DUPLICATED,
    "claim": Mark.CLAIMED,
    "credit": Mark.DONE,
}
#: Kinds that say little on their own; drawn quieter.
_QUIET = {"end", "idle", "reopen"}


def tail(ring: Sequence[EventLine], total: int, stop: int, count: int) -> list[EventLine]:
    """At most ``count`` lines before number ``stop`` (counted from the first ever), newest first; what the
    ring has dropped is not there."""
    oldest = total - len(ring)
    stop = min(max(stop, oldest), total)
    newest_first = islice(reversed(ring), total - stop, total - stop + max(count, 0))
    return list(newest_first)


class Matches:
    """The lines with certain words, kept up to date as the log grows: each line is looked at once."""

    def __init__(self) -> None:
        self._needle = ""
        self._seen = 0  #: lines ever that were looked at
        self._found: deque[tuple[int, EventLine]] = deque()  #: with the number of each

    def newest(self, model: RunState, needle: str, stop: int, count: int) -> list[EventLine]:
        """At most ``count`` matching lines before number ``stop``, newest first; what the ring of events has
        dropped is not there. ``needle`` is in lower case."""
        total, oldest = model.events_total, model.events_total - len(model.events)
        if needle != self._needle or self._seen > total:
            self._needle, self._seen = needle, 0
            self._found.clear()
        new = total - max(self._seen, oldest)
        for number, line in enumerate(model.events[len(model.events) - new :], total - new):
            if needle in f"{line.worker} {line.text}".casefold():
                self._found.append((number, line))
        self._seen = total
        while self._found and self._found[0][0] < oldest:
            self._found.popleft()
        return list(islice((line for number, line in reversed(self._found) if number < stop), max(count, 0)))


class EventList(LineWidget):
    """Rows of ``EventLine``, newest at the top."""

    class Scrolled(Message):
        """The wheel asks for ``lines`` towards older (positive) or newer events."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.post_message(self.Scrolled(2))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.post_message(self.Scrolled(-2))

    def draw(self, row: Hashable, width: int) -> Strip:
        assert isinstance(row, EventLine)
        return draw_event(row, width, self.look)


def time_text(at: float, *, tenths: bool) -> str:
    """``3:12.4``, or ``1:03:12`` from one hour on."""
    whole = int(at)
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes:02d}:{seconds:02d}" + (f".{int(at * 10) % 10}" if tenths else "")


def draw_event(event: EventLine, width: int, look: Look) -> Strip:
    line = Line(look.ground).add(" ")
    line.add(fit(time_text(event.at, tenths=True), 8), look.muted)
    line.add(fit(event.worker or look.dot, 5, look.ellipsis) + " ", look.text if event.worker else look.faint)
    mark = _MARKS.get(event.kind)
    if mark in (None, Mark.DONE, Mark.CLAIMED):
        style = look.muted if event.kind in _QUIET or event.kind == "claim" else look.text
        line.add("  ")
    else:
        style = look.ink(Mark.LAPSED if mark is Mark.FAILED else mark, bold=event.kind in WARNINGS)
        symbol = {Mark.LAPSED: "!", Mark.FAILED: "x", Mark.DUPLICATED: "="}[mark]
        line.add(symbol + " ", style)
    line.add(clip(event.text, width - line.cells, look.ellipsis), style)
    return line.strip(width)
