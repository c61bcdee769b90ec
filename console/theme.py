"""Colours, symbols and glyphs: one table that every widget draws with.

Rules of this file:
- every state of work has a colour *and* a symbol, and no pair of states differs by hue alone (the dark
  fills were chosen by computed colour distance, for normal and colour-blind eyes and in grey);
- a *fill* paints an area (map, bars); an *ink* is the same state as text, bright enough to be read;
- widgets ask ``Look``: whether there is colour at all, and whether only ASCII may be drawn, is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache

from rich.style import Style
from textual.theme import Theme


class Mark(IntEnum):
    """What a cell of the map, the bar or a timeline shows."""

    BLANK = 0  #: nothing known, nothing there
    OPEN = 1
    CLAIMED = 2
    DUPLICATED = 3
    DONE = 4
    LAPSED = 5
    FAILED = 6  #: set aside, killed, refused
    IDLE = 7
    STALLED = 8  #: alive and standing still
    SPLIT = 9  #: the rest of its chunk went to another worker


#: One symbol a state; also what the cells of the map become under NO_COLOR, 16 colours and ``--ascii``.
SYMBOLS = {
    Mark.BLANK: " ",
    Mark.OPEN: ".",
    Mark.CLAIMED: ">",
    Mark.DUPLICATED: "=",
    Mark.DONE: "#",
    Mark.LAPSED: "!",
    Mark.FAILED: "x",
    Mark.IDLE: ".",
    Mark.STALLED: "~",
    Mark.SPLIT: "/",
}


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as ``#rrggbb``. Fills by ``Mark``, and inks for text."""

    dark: bool
    background: str
    raised: str  #: behind the selected row, badges and modals
    text: str
    muted: str
    faint: str  #: frames, grid lines, what only supports
    fills: tuple[str, ...]
    inks: tuple[str, ...]


DARK = Palette(
    dark=True,
    background="#121212",
    raised="#24282c",
    text="#e4e4e4",
    muted="#949494",
    faint="#4e4e4e",
    fills=(
        "#121212",
        "#3a3a3a",
        "#56b4e9",
        "#f0e442",
        "#0072b2",
        "#d55e00",
        "#d55e00",
        "#2a2a2a",
        "#d55e00",
        "#56b4e9",
    ),
    inks=(
        "#121212",
        "#949494",
        "#56b4e9",
        "#f0e442",
        "#4a9fd8",
        "#f0853c",
        "#f0853c",
        "#6c6c6c",
        "#f0853c",
        "#56b4e9",
    ),
)

LIGHT = Palette(
    dark=False,
    background="#fafaf8",
    raised="#e6eaee",
    text="#1d2125",
    muted="#656a70",
    faint="#b4b9be",
    fills=(
        "#fafaf8",
        "#c0c4c8",
        "#56b4e9",
        "#d9b800",
        "#0072b2",
        "#d55e00",
        "#d55e00",
        "#e6e6e4",
        "#d55e00",
        "#56b4e9",
    ),
    inks=(
        "#fafaf8",
        "#656a70",
        "#0f73ad",
        "#7a6500",
        "#005d92",
        "#b04a00",
        "#b04a00",
        "#8a8f94",
        "#b04a00",
        "#0f73ad",
    ),
)


@lru_cache(maxsize=4096)
def _style(ink: str | None, fill: str | None, bold: bool, reverse: bool) -> Style:
    return Style(color=ink, bgcolor=fill, bold=bold or None, reverse=reverse or None)


@lru_cache(maxsize=4096)
def blend(below: str, above: str, share: float) -> str:
    """``above`` over ``below``, both ``#rrggbb``, with opacity ``share`` in 0..1."""
    mixed = (
        round(int(below[i : i + 2], 16) * (1 - share) + int(above[i : i + 2], 16) * share) for i in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


@dataclass(frozen=True, slots=True)
class Look:
    """How things are drawn now. Immutable: toggling makes another one, and widgets compare them."""

    palette: Palette = DARK
    ascii_only: bool = False
    symbols: bool = False  #: one symbol a cell in place of coloured blocks

    def fill(self, mark: Mark) -> str:
        return self.palette.fills[mark]

    def ink(self, mark: Mark, *, bold: bool = False) -> Style:
        """The style of text that speaks of a state. What failed is reversed, to differ from what lapsed."""
        if mark is Mark.FAILED:
            return _style(self.palette.inks[mark], None, bold, True)
        return _style(self.palette.inks[mark], None, bold, False)

    def block(self, mark: Mark, share: float = 1.0) -> Style:
        """The style of a block glyph that paints a state, faded towards open by ``share``."""
        return _style(self.shade(mark, share), None, False, False)

    def shade(self, mark: Mark, share: float = 1.0) -> str:
        """A state's fill, faded towards the fill of open: a claim just begun is dim but never looks open."""
        fill = self.palette.fills[mark]
        return fill if share >= 1.0 else blend(self.palette.fills[Mark.OPEN], fill, max(share, 0.0))

    def on(self, ink: str, fill: str) -> Style:
        return _style(ink, fill, False, False)

    @property
    def text(self) -> Style:
        return _style(self.palette.text, None, False, False)

    @property
    def strong(self) -> Style:
        return _style(self.palette.text, None, True, False)

    @property
    def muted(self) -> Style:
        return _style(self.palette.muted, None, False, False)

    @property
    def faint(self) -> Style:
        return _style(self.palette.faint, None, False, False)

    @property
    def ground(self) -> Style:
        """What everything is drawn on."""
        return _style(self.palette.text, self.palette.background, False, False)

    @property
    def raised(self) -> Style:
        """The ground of a selected row."""
        return _style(self.palette.text, self.palette.raised, False, False)

    def badge(self, mark: Mark) -> Style:
        """A word on a coloured ground; reverse video, so that it stands out without colour too."""
        return _style(self.palette.inks[mark], None, True, True)

    @property
    def ellipsis(self) -> str:
        return "..." if self.ascii_only else "…"

    @property
    def dot(self) -> str:
        """Between two facts on a line."""
        return "-" if self.ascii_only else "·"

    @property
    def dash(self) -> str:
        """Between the ends of a range."""
        return "-" if self.ascii_only else "–"

    @property
    def pointer(self) -> str:
        """Before the selected row."""
        return ">" if self.ascii_only or self.symbols else "▌"

    def with_palette(self, palette: Palette) -> Look:
        return replace(self, palette=palette)

    def with_symbols(self, symbols: bool) -> Look:
        return replace(self, symbols=symbols or self.ascii_only)


def textual_theme(palette: Palette) -> Theme:
    """The same colours for what Textual itself draws (frames, modals)."""
    return Theme(
        name="uneven-dark" if palette.dark else "uneven-light",
        primary=palette.fills[Mark.DONE],
        secondary=palette.fills[Mark.CLAIMED],
        accent=palette.fills[Mark.CLAIMED],
        warning=palette.inks[Mark.LAPSED],
        error=palette.inks[Mark.FAILED],
        success=palette.inks[Mark.DONE],
        foreground=palette.text,
        background=palette.background,
        surface=palette.background,
        panel=palette.raised,
        dark=palette.dark,
        variables={"frame": palette.faint, "muted": palette.muted, "raised": palette.raised},
    )
