"""What is typed from habit, or looks like something it isn't, and is refused before it is parsed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from farm.errors import UsageError

#: Spellings of ffmpeg's that people type from habit, with ours.
_FFMPEG = {
    "-c:v": "-e ENCODER",
    "-vcodec": "-e ENCODER",
    "-codec:v": "-e ENCODER",
    "-crf": "--crf NUMBER",
    "-preset": "--preset NAME",
    "-pix_fmt": "--pix-fmt FORMAT",
    "-threads": "--threads NUMBER",
    "-c:a": "--audio copy|aac|opus|flac",
    "-acodec": "--audio copy|aac|opus|flac",
    "-an": "--audio none",
    "-vf": "--filter FILTERS, in the same syntax",
    "-filter:v": "--filter FILTERS, in the same syntax",
    "-filter_complex": "--filter FILTERS, with one input and one output, the film",
    "-b:v": "--option b=RATE (quality by --crf suits chunked rendering better)",
}

_LOOKS_LIKE_NUMBER = re.compile(r"[+-]?[\d_]*\.?[\d_]+\Z")


def refuse_ffmpeg_spellings(arguments: Sequence[str]) -> None:
    """Raises UsageError with our spelling."""
    for argument in arguments:
        if argument == "--":
            return
        if argument in _FFMPEG:
            raise UsageError(f"{argument} is ffmpeg's spelling; here it is {_FFMPEG[argument]}")


def refuse_other_digits(arguments: Sequence[str]) -> None:
    """Python reads numbers in any script, and half of a look-alike is a wrong number. Raises UsageError."""
    for option, value in pairwise(("", *arguments)):
        if option == "--":
            return
        name, equals, behind = value.partition("=")
        option, value = (name, behind) if name.startswith("--") and equals else (option, value)
        if option.startswith("-") and _LOOKS_LIKE_NUMBER.match(value) and not value.isascii():
            raise UsageError(f"{option} {value}: write numbers with the digits 0 to 9")
