"""The options of text that is burnt into the pictures; farm.burnin says what they may be.

``--burn-timecode`` may be followed by a place, or by anything else. That is settled before the command line
is parsed, for a parser would take the name of the input for the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from farm.burnin import PLACES, TIMECODE_PLACE

_TIMECODE = "--burn-timecode"

Timecode = Annotated[
    str | None,
    typer.Option(
        _TIMECODE,
        metavar="[PLACE]",
        help="Write the timecode into every picture: bottom, top-left, center, …",
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        "--burn-text",
        metavar="[PLACE|]TEXT",
        help="Write TEXT, with {frame}, {time}, {timecode}, {file}, {part}; may be repeated.",
    ),
]
Size = Annotated[
    str | None,
    typer.Option("--burn-size", metavar="PERCENT", help="Size of burnt-in letters, of the height (5%)."),
]
Font = Annotated[
    Path | None,
    typer.Option("--burn-font", metavar="FILE", help="Font of burnt-in text: TrueType or OpenType."),
]
Color = Annotated[
    str | None,
    typer.Option("--burn-color", metavar="COLOR", help="Colour of burnt-in text: white, #rrggbb, …"),
]
Box = Annotated[
    str | None,
    typer.Option("--burn-box", metavar="COLOR@PERCENT", help="What is behind it (black@60%), or none."),
]
TimecodeStart = Annotated[
    str | None,
    typer.Option(
        "--timecode-start",
        metavar="HH:MM:SS:FF",
        help="Timecode of the input's first frame; ';' before FF: drop-frame. Default: the input's own.",
    ),
]


def with_places(arguments: Sequence[str]) -> list[str]:
    """The arguments with the place that ``--burn-timecode`` means where none follows it."""
    spelled: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*spelled, *arguments[number:]]
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        meant = argument == _TIMECODE and following not in PLACES
        spelled.append(f"{argument}={TIMECODE_PLACE}" if meant else argument)
    return spelled
