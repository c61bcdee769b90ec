"""The options of text that is burnt into the pictures; farm.burnin says what they may be.

``--burn-timecode`` may be followed by a place, or by anything else. That is settled before the command line
is parsed, for a parser would take the name of the input for the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from farm.burnin import PLACES, TIMECODE_PLACE, burn_settings
from farm.settings import BurnSettings

_TIMECODE = "--burn-timecode"
_WORD = re.compile(r"[A-Za-z]+(?:[-_ ][A-Za-z]+)?", re.ASCII)

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


@dataclass(frozen=True, kw_only=True)
class Burning:
    """A group of options (console.groups)."""

    burn_timecode: Timecode = None
    burn_text: Text = None
    burn_size: Size = None
    burn_font: Font = None
    burn_color: Color = None
    burn_box: Box = None
    timecode_start: TimecodeStart = None

    def settings(self) -> BurnSettings:
        """Raises UsageError."""
        return burn_settings(
            self.burn_timecode,
            self.burn_text or [],
            size=self.burn_size,
            font=self.burn_font,
            color=self.burn_color,
            box=self.burn_box,
            start=self.timecode_start,
        )


def with_places(arguments: Sequence[str]) -> list[str]:
    """The arguments with the place that ``--burn-timecode`` means where none follows it."""
    spelled: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*spelled, *arguments[number:]]
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        meant = argument == _TIMECODE and not (following in PLACES or _is_no_place(following))
        spelled.append(f"{argument}={TIMECODE_PLACE}" if meant else argument)
    return spelled


def _is_no_place(following: str) -> bool:
    """A bare word that is no file was meant for a place: left where it is, it is refused as that, not as an
    input."""
    return _WORD.fullmatch(following) is not None and not Path(following).exists()
