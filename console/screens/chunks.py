"""The chunks screen: the map of parts, and every chunk there ever was, by what happened to it.

Rules of this file:
- the list is virtual: only rows in view are made; what is filtered is an index, not a copy;
- it follows the newest chunk until somebody moves the cursor, and again from ``f`` or ``G`` on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.chunklist import Filter, chosen, matching
from console.screens.base import RunScreen, as_panel
from console.text import count
from console.theme import Look
from console.widgets import view
from console.widgets.chunk_list import ChunkHead, ChunkList, ChunkRow, chunk_row, list_title
from console.widgets.key_bar import Key
from console.widgets.part_map import PartMap, plan_map
from console.widgets.row_list import RowList

#: Above this many chunks a search is made again only when there are one in a hundred more, or the run ended.
SEARCH_AT_ONCE_MAX = 5_000


class ChunksScreen(RunScreen):
    """The third screen."""

    NAME = "chunks"
    CAN_FILTER = True
    AUTO_FOCUS = "#chunk-list"
    HELP_KEYS = (
        ("j k ↓ ↑", "next, previous chunk (g G: first, newest)"),
        ("h l ← →", "which: all, in flight, lapsed, ..."),
        ("/ n N", "search ids, states, workers; next, previous"),
        ("enter", "its story: every claim, and why"),
        ("f", "follow the newest"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "detail", "the chunk's story"),
        Binding("j,down", "select(1)", "next chunk"),
        Binding("k,up", "select(-1)", "previous chunk"),
        Binding("pagedown", "page(1)", "a page down"),
        Binding("pageup", "page(-1)", "a page up"),
        Binding("g,home", "select_end(0)", "first chunk"),
        Binding("G,end", "select_end(1)", "newest chunk"),
        Binding("l,right", "kind(1)", "next kind of chunks"),
        Binding("h,left", "kind(-1)", "previous kind of chunks"),
        Binding("f", "follow", "follow the newest chunk"),
    ]

    DEFAULT_CSS = """
    ChunksScreen #chunk-list { height: 1fr; }
    """

    def __init__(self, look: Look) -> None:
        super().__init__(look, id="chunks")
        self.part_map = PartMap(look, id="chunk-map")
        self.chunk_list = ChunkList(look, id="chunk-list")
        self.kind = Filter.ALL
        self.selected: int | None = None  #: number of the chunk under the cursor
        self.following = True
        self._index = 0  #: of the selected one in what is listed
        self._start = 0  #: first row in view
        self._found: tuple[tuple[object, ...], list[int]] | None = None

    def compose_body(self) -> ComposeResult:
        yield as_panel(self.part_map)
        yield as_panel(self.chunk_list)

    # --- what is shown -----------------------------------------------------------------------------------

    def update_view(self, now: float, turn: bool | None = None) -> None:
        width, height = self.size
        if not width or not height:
            return
        framed = width >= 50 and height >= 16
        self.set_class(framed, "framed")
        head = self.head_rows(now)[: 1 if height < 8 else 2]
        self.head.styles.height = len(head)
        self.head.show(head)
        self._arrange(width, height, len(head), 2 if framed else 0)
        if turn is not True and self.part_map.display:
            self._update_map()
        if turn is not False and self.chunk_list.display:
            self._update_list(now)
        self.update_keys()

    def _arrange(self, width: int, height: int, head: int, frame: int) -> None:
        body = max(height - head - 1, 0)
        lines = body // 4 if body >= 12 else 0
        if self.zoomed is not None:
            lines = max(body - frame, 0) if self.zoomed is self.part_map else 0
        halves = not (self.part_map.look.symbols or self.part_map.look.ascii_only)
        needed = plan_map(self.model.parts, width - frame, lines, halves=halves).lines
        self.part_map.display = needed > 0
        self.part_map.styles.height = needed + frame
        self.chunk_list.display = self.zoomed is not self.part_map

    def _update_map(self) -> None:
        model, part_map, look = self.model, self.part_map, self.console_app.look
        width, lines = part_map.size
        layout = plan_map(model.parts, width, lines, halves=not (look.symbols or look.ascii_only))
        dirty = model.take_dirty()
        changed = part_map.lay_out(layout) or self.stale
        self.stale = False
        if changed or dirty:
            parts = range(layout.parts) if changed else dirty
            part_map.update_parts(parts, model.part_state, model.shade)
        part_map.title(*view.map_title(layout, width, look))

    def _update_list(self, now: float) -> None:
        model, width = self.model, self.chunk_list.size.width
        numbers = self.numbers()
        names = 1 if self.chunk_list.size.height > 4 else 0
        room = max(self.chunk_list.size.height - names, 0)
        window = view.window_of(len(numbers), room, self._find(numbers), self._start)
        self._start = window.start
        rows: list[ChunkHead | ChunkRow] = [ChunkHead()] if names else []
        for at in range(window.start, window.stop):
            rows.append(chunk_row(model, numbers[at], now, selected=at == window.selected))
        self.chunk_list.show(rows)
        shown = window.stop - window.start
        words = f"{count(shown)} of {count(len(numbers))} shown" + ("  following" if self.following else "")
        words = f"with {self.needle!r}  {words}" if self.needle else words
        self.chunk_list.title(list_title(model.book, self.kind, width), words)

    def numbers(self) -> Sequence[int]:
        """The chunks that are listed, by number."""
        book = self.model.book
        base = chosen(book, self.kind)
        if not self.needle:
            return base
        # A search through a hundred thousand takes a tenth of a second: not at every change.
        at_once = len(base) <= SEARCH_AT_ONCE_MAX or self.console_app.ended
        fresh = book.changes if at_once else -math.floor(100 * math.log(len(base)))
        key = (self.needle, self.kind, fresh)
        if self._found is None or self._found[0] != key:
            self._found = (key, list(matching(book, base, self.needle)))
        return self._found[1]

    def _find(self, numbers: Sequence[int]) -> int:
        """Where the cursor is among ``numbers``; it stays in its place when its chunk is not listed now."""
        last = len(numbers) - 1
        if last < 0:
            self._index, self.selected = 0, None
            return 0
        if self.following:
            self._index = last
        elif not (self._index <= last and numbers[self._index] == self.selected):
            try:
                self._index = numbers.index(self.selected)
            except ValueError:
                self._index = min(self._index, last)
        self.selected = numbers[self._index]
        return self._index

    def own_keys(self) -> tuple[Key, ...]:
        return (
            Key("enter", "story", "detail", self.selected is not None),
            Key("h/l", "which", "kind(1)"),
            Key("f", "hold" if self.following else "follow", "follow"),
        )

    def copied(self) -> str | None:
        return super().copied() if self.selected is None else f"c{self.selected}"

    # --- keys --------------------------------------------------------------------------------------------

    def _go(self, index: int) -> None:
        numbers = self.numbers()
        if numbers:
            self.following = False
            self._index = min(max(index, 0), len(numbers) - 1)
            self.selected = numbers[self._index]
        self.console_app.repaint()

    def action_select(self, steps: int) -> None:
        self._go(self._index + steps)

    def action_page(self, pages: int) -> None:
        self._go(self._index + pages * max(self.chunk_list.size.height - 2, 1))

    def action_select_end(self, last: int) -> None:
        if last:
            self.following = True
            self.console_app.repaint()
        else:
            self._go(0)

    def action_match(self, steps: int) -> None:
        numbers = self.numbers()
        if numbers:
            self._go((self._index + steps) % len(numbers))

    def action_kind(self, steps: int) -> None:
        self.kind = Filter((self.kind + steps) % len(Filter))
        self.console_app.repaint()

    def action_follow(self) -> None:
        self.following = not self.following
        self.console_app.repaint()

    def action_detail(self) -> None:
        if self.selected is not None:
            self.console_app.show_chunk(self.selected)

    def on_row_list_picked(self, message: RowList.Picked) -> None:
        row = self.chunk_list.rows[message.index] if message.index < len(self.chunk_list.rows) else None
        if isinstance(row, ChunkRow):
            self.following = False
            self.selected = int(row.id[1:])
            self.console_app.repaint()
            if message.opened:
                self.action_detail()

    def on_row_list_scrolled(self, message: RowList.Scrolled) -> None:
        self.action_select(message.steps)
