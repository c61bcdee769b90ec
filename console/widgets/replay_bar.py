"""The bar of a recording: how far it is played, and where claims lapsed (!) and workers died (x)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len
from textual.strip import Strip

from console.text import count
from console.theme import SYMBOLS, Look, Mark
from console.widgets.lines import Line
from farm.moments import Kind
from farm.playback import Log

#: Places along the bar that ticks are told apart at; no terminal is wider.
PLACES = 1000
#: What is marked, the later one over the earlier one.
_MARKED: tuple[tuple[Mark, tuple[Kind, ...]], ...] = (
    (Mark.LAPSED, ("lapse",)),
    (Mark.FAILED, ("kill", "loss")),
)


#: Places along the bar and what is marked there, ascending.
Ticks = tuple[tuple[int, Mark], ...]


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """``position``: share of the recording's time that is played, 0 to 1. ``remarks``: the same thing said at
    falling length."""

    position: float
    ticks: Ticks
    remarks: tuple[str, ...]


def ticks_of(log: Log) -> Ticks:
    """Where in the log's time something is marked."""
    begins, ends = log.times[0] if log.times else 0.0, log.ends_at
    found: dict[int, Mark] = {}
    for mark, kinds in _MARKED:
        for kind in kinds:
            for index in log.moments(kind):
                share = (log.times[index] - begins) / (ends - begins) if ends > begins else 0.0
                found[min(int(share * PLACES), PLACES - 1)] = mark
    return tuple(sorted(found.items()))


def replay_row(log: Log, position: int, now: float, ticks: Ticks, looking_for: str) -> ReplayRow:
    """``looking_for``: what the keys n and N jump to."""
    begins, ends = log.times[0] if log.times else 0.0, log.ends_at
    played = 1.0 if position >= len(log) else (now - begins) / (ends - begins) if ends > begins else 0.0
    events = f"event {count(position)} of {count(len(log))}"
    remarks = (f"{events}   n N: {looking_for}", events, f"{count(position)}/{count(len(log))}")
    return ReplayRow(min(max(played, 0.0), 1.0), ticks, remarks)


def draw_replay(row: ReplayRow, width: int, look: Look) -> Strip:
    """The bar keeps at least half of the width."""
    room = width - width // 2 - 4
    remark = next((text for text in row.remarks if cell_len(text) <= room), "")
    bar_width = max(width - 4 - (cell_len(remark) + 3 if remark else 0), 1)
    line = Line(look.ground).add(" |", look.muted)
    plain = look.symbols or look.ascii_only
    played, rest, here = ("=", "-", "#") if plain else ("━", "─", "┃")
    at = min(int(row.position * bar_width), bar_width - 1)
    marks = dict(_cells(row.ticks, bar_width))
    for cell in range(bar_width):
        if cell == at:
            line.add(here, look.strong)
        elif cell in marks:
            line.add(SYMBOLS[marks[cell]], look.ink(marks[cell], bold=True))
        elif cell < at:
            line.add(played, look.ink(Mark.CLAIMED))
        else:
            line.add(rest, look.faint)
    line.add("|", look.muted)
    if remark:
        line.add("   " + remark, look.text)
    return line.strip(width)


def _cells(ticks: Iterable[tuple[int, Mark]], width: int) -> Iterable[tuple[int, Mark]]:
    return ((place * width // PLACES, mark) for place, mark in ticks)
