"""Every state can be told from every other: by people with any common colour blindness, in grey, in few
colours, and without any (thresholds: docs of the console; distances are CIEDE2000)."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from itertools import combinations

import pytest
from coloraide import Color
from rich.color import Color as RichColor
from rich.color import ColorSystem

from console.theme import DARK, LIGHT, SYMBOLS, Look, Mark, Palette

STATES = (Mark.OPEN, Mark.CLAIMED, Mark.DUPLICATED, Mark.DONE, Mark.LAPSED)
PAIRS = tuple(combinations(STATES, 2))
VISIONS = ("normal", "protan", "deutan", "tritan")
#: What areas (fills) and text (inks) are apart at least. A trained eye just sees 1; 10 is seen at a glance.
FILLS_APART, INKS_APART = 20.0, 15.0
GREYS_APART = 18
CONTRAST_OF_TEXT = 4.5  #: WCAG AA

PALETTES = pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])


@lru_cache(maxsize=256)
def seen(color: str, vision: str) -> Color:
    """A colour as it looks to somebody; all without the cones of one kind."""
    plain = Color(color)
    return plain if vision == "normal" else plain.filter(vision).clip()


def apart(one: str, other: str, vision: str) -> float:
    return seen(one, vision).delta_e(seen(other, vision), method="2000")


def grey(color: str) -> float:
    """As Textual's filter for NO_COLOR weighs it."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return red * 0.2126 + green * 0.7152 + blue * 0.0722


@PALETTES
@pytest.mark.parametrize("vision", VISIONS)
def test_fills_are_apart_for_all_eyes(palette: Palette, vision: str) -> None:
    for one, other in PAIRS:
        distance = apart(palette.fills[one], palette.fills[other], vision)
        assert distance >= FILLS_APART, (one.name, other.name, distance)


@PALETTES
@pytest.mark.parametrize("vision", VISIONS)
def test_inks_are_apart_for_all_eyes_and_can_be_read(palette: Palette, vision: str) -> None:
    for one, other in PAIRS:
        distance = apart(palette.inks[one], palette.inks[other], vision)
        assert distance >= INKS_APART, (one.name, other.name, distance)
    for mark in (*STATES, Mark.FAILED, Mark.STALLED):
        assert Color(palette.inks[mark]).contrast(palette.background) >= CONTRAST_OF_TEXT, mark.name
    assert Color(palette.text).contrast(palette.background) >= 7
    assert Color(palette.muted).contrast(palette.background) >= CONTRAST_OF_TEXT


@PALETTES
def test_fills_are_apart_in_grey(palette: Palette) -> None:
    for one, other in PAIRS:
        distance = abs(grey(palette.fills[one]) - grey(palette.fills[other]))
        assert distance >= GREYS_APART, (one.name, other.name, distance)


@PALETTES
@pytest.mark.parametrize("system", [ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
def test_fills_stay_different_in_few_colours(palette: Palette, system: ColorSystem) -> None:
    shown = {RichColor.parse(palette.fills[mark]).downgrade(system) for mark in STATES}
    assert len(shown) == len(STATES)


def test_every_state_has_a_symbol_of_its_own() -> None:
    assert set(SYMBOLS) == set(Mark)
    assert len(set(SYMBOLS.values())) == len(Mark)
    assert all(len(symbol) == 1 and symbol.isascii() for symbol in SYMBOLS.values())


@PALETTES
def test_what_failed_differs_from_what_lapsed_by_more_than_its_colour(palette: Palette) -> None:
    look = Look(palette)
    assert look.ink(Mark.FAILED).reverse and not look.ink(Mark.LAPSED).reverse
    assert SYMBOLS[Mark.FAILED] != SYMBOLS[Mark.LAPSED] != SYMBOLS[Mark.STALLED]


@PALETTES
def test_a_claim_just_begun_never_looks_open(palette: Palette) -> None:
    look = Look(palette)
    for mark in (Mark.CLAIMED, Mark.DUPLICATED):
        begun = look.shade(mark, 0.45)  # the least that the map draws
        for vision in VISIONS:
            assert apart(begun, palette.fills[Mark.OPEN], vision) >= 10, (mark.name, vision)


_ASK = """
from rich.console import Console
Console.is_terminal = property(lambda self: True)
from console.app import ConsoleApp
from tests.console.player import Player
print(ConsoleApp(Player()).look.symbols)
"""


@pytest.mark.parametrize(
    ("environment", "symbols"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, True),
    ],
    ids=["truecolor", "256", "16", "NO_COLOR"],
)
def test_symbols_take_over_where_colours_are_few_or_none(environment: dict[str, str], symbols: bool) -> None:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "VIRTUAL_ENV")}
    asked = subprocess.run(
        [sys.executable, "-c", _ASK], env=kept | environment, capture_output=True, text=True, check=True
    )
    assert asked.stdout.strip() == str(symbols)
