"""What a difference between an output and its manifest is, as data and in words.

Frames count from 0 in the order in which the output shows them; of numbered images, in the order of the
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from farm.manifest import ManifestPart

Kind = Literal[
    "missing", "extra", "order", "time", "bytes", "header", "truncated", "stream", "picture", "unreadable"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first one."""

    kind: Kind
    words: str  #: what is wrong, to follow the output's name and "differs: "
    frame: int | None = None
    seconds: float | None = None  #: when that frame is shown
    part: ManifestPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """``agreed``: packets of the video before the first difference."""

    difference: Difference | None
    agreed: int
    complete: bool = True  #: nothing had to be left out
    notes: tuple[str, ...] = ()


def in_part(part: ManifestPart | None) -> str:
    """A part, its frames and who made it, in words that follow "it is"."""
    if part is None:
        return "of no part"
    return f"of part {part.part}, frames [{part.start}, {part.stop}): {part.maker}"
