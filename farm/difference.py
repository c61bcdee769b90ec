"""What a difference between an output and its manifest is, as data and in words.

Frames count from 0 in the order in which the output shows them; of numbered images, in the order of the
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from farm.manifest import ManifestPart

Kind = Literal[
    "missing",  # frames are gone
    "extra",  # frames, or images, that its run didn't write
    "order",  # what stands there belongs to another place
    "time",  # a frame is shown at another time
    "bytes",  # a packet has other data
    "look",  # it is to be shown in another shape, rotation or colour
    "header",  # what a decoder is given first has other data
    "truncated",  # the file ends too soon
    "stream",  # another stream is missing, differs, or is too many
    "picture",  # of a lossless output: not what the source shows
    "unreadable",  # it can't be read, or is wrong by itself
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
