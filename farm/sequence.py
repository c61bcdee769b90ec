"""Numbered images as an input: which files a name stands for, in which order, and what is missing.

Rules of this file:
- a file that has exactly the name that was given is that file, whatever its name looks like; only a name of
  nothing can be a pattern, in its last component: ``%04d``, ``####``, ``%d``, ``#``, ``[1001-1100]``;
- the order is that of the numbers, never that of the names;
- no gap is passed over in silence;
- nothing here opens an image: 100,000 files cost one listing of their folder.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

from farm.errors import InputError
from farm.paths import check_name, printable, reason
from farm.source import ImageFile

#: What is taken for an image in a folder; a pattern may have any extension.
IMAGE_EXTENSIONS = frozenset(
    f".{name}"
    for name in (
        *("png", "jpg", "jpeg", "tif", "tiff", "exr", "dpx", "webp", "bmp", "tga", "jp2", "j2k", "ppm"),
        *("pgm", "pnm", "pbm", "pam", "sgi", "rgb", "cin", "qoi", "hdr", "pfm", "gif"),
    )
)
_PLACE = re.compile(r"%(?:0(?P<width>\d+))?d|(?P<hashes>#+)|\[(?P<first>\d+)-(?P<last>\d+)\]", re.ASCII)
_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<digits>\d+)(?P<suffix>\D*)\Z", re.ASCII | re.DOTALL)
_NUMBERS_MAX = 10_000_000  #: a longer span between two files is a number that isn't a frame's
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Pattern:
    """A file name with a number in it."""

    folder: Path
    prefix: str
    suffix: str
    width: int = 0  #: digits to which numbers are filled up with zeros; 0: as they come
    limits: tuple[int, int] | None = None  #: the first and the last number, both included

    @property
    def path(self) -> Path:
        """As a name that is understood as this pattern."""
        if self.limits is not None:
            place = f"[{self.limits[0]:0{self.width}d}-{self.limits[1]:0{self.width}d}]"
        else:
            place = f"%0{self.width}d" if self.width else "%d"
        return self.folder / f"{self.prefix}{place}{self.suffix}"

    def name(self, number: int) -> str:
        """The name of the file with that number."""
        return f"{self.prefix}{number:0{self.width}d}{self.suffix}"

    def number(self, name: str) -> int | None:
        """The number of a file; None if it doesn't fit."""
        if not name.startswith(self.prefix) or not name.endswith(self.suffix):
            return None
        digits = name[len(self.prefix) : len(name) - len(self.suffix)]
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
            return None
        number = int(digits)
        if self.width and digits != f"{number:0{self.width}d}":
            return None
        return None if self.limits and not self.limits[0] <= number <= self.limits[1] else number


def parse_pattern(path: Path) -> Pattern | None:
    """What is written in the last component of ``path``, whatever is on the disk; None if that is no pattern.

    Raises InputError for two places for a number, or a range that runs backwards.
    """
    places = list(_PLACE.finditer(path.name))
    if not places:
        return None
    if len(places) > 1:
        raise InputError(f"{printable(path)} has more than one place for a number; leave one")
    (place,) = places
    prefix, suffix = path.name[: place.start()], path.name[place.end() :]
    if place["first"]:
        limits = int(place["first"]), int(place["last"])
        if limits[0] > limits[1]:
            raise InputError(f"{printable(path)}: the range of numbers runs backwards")
        digits = place["first"]
        width = len(digits) if len(digits) == len(place["last"]) or digits.startswith("0") else 0
        return Pattern(path.parent, prefix, suffix, width, limits)
    hashes = len(place["hashes"] or "")
    width = int(place["width"] or 0) or (hashes if hashes > 1 else 0)
    return Pattern(path.parent, prefix, suffix, width)


def find_sequence(path: Path) -> Pattern | None:
    """The sequence that an input's name stands for; None if it is an ordinary file, or nothing.

    Raises InputError for a folder with several sequences, naming them.
    """
    if path.is_dir():
        return _only_sequence(path)
    if os.path.lexists(path):
        return None
    return parse_pattern(path)


def _only_sequence(folder: Path) -> Pattern | None:
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name in _names(folder):
        found = _NUMBERED.match(name)
        if found and Path(name).suffix.lower() in IMAGE_EXTENSIONS and not name.startswith("."):
            groups[found["prefix"], found["suffix"]].append(found["digits"])
    if not groups:
        return None
    patterns = [_pattern_of(folder, *key, digits) for key, digits in sorted(groups.items())]
    if len(patterns) > 1:
        named = [f"{printable(p.path.name)} ({len(groups[p.prefix, p.suffix])} files)" for p in patterns]
        more = f" and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
        raise InputError(
            f"{printable(folder)} holds {len(named)} image sequences: {', '.join(named[:_LISTED])}{more}; "
            "name the one that is meant"
        )
    return patterns[0]


def _pattern_of(folder: Path, prefix: str, suffix: str, digits: list[str]) -> Pattern:
    check_name(folder / f"{prefix}{suffix}", InputError)
    shortest = min(map(len, digits))
    padded = shortest > 1 and all(text == f"{int(text):0{shortest}d}" for text in digits)
    return Pattern(folder, prefix, suffix, shortest if padded else 0)


def list_images(pattern: Pattern) -> list[ImageFile]:
    """The files of a sequence in the order of their numbers. Raises InputError if there are none, or two of
    one number."""
    check_name(pattern.path, InputError)
    found: dict[int, ImageFile] = {}
    try:
        with os.scandir(pattern.folder) as entries:
            for entry in entries:
                number = pattern.number(entry.name)
                if number is None or not entry.is_file():
                    continue
                stat = entry.stat()
                if number in found:
                    raise InputError(
                        f"{printable(pattern.path)}: {printable(found[number].name)} and "
                        f"{printable(entry.name)} have the same number; remove one"
                    )
                found[number] = ImageFile(number, entry.name, stat.st_size, stat.st_mtime_ns)
    except FileNotFoundError:
        raise InputError(f"there is no folder {printable(pattern.folder)}") from None
    except OSError as error:
        raise InputError(f"{printable(pattern.folder)} can't be read: {reason(error)}") from error
    if not found:
        raise InputError(f"there is no file {printable(pattern.path)}, with any number in that place")
    return [found[number] for number in sorted(found)]


def close_gaps(
    images: Sequence[ImageFile], pattern: Pattern, on_gap: Literal["fail", "hold", "skip"]
) -> tuple[list[ImageFile], list[str]]:
    """The images frame by frame, and what is to be said of those that are missing or empty.

    With *fail* they are left in, with no bytes (``size`` 0 or less), to be refused if they are wanted.
    """
    first, last = pattern.limits or (images[0].number, images[-1].number)
    if last - first >= _NUMBERS_MAX:
        raise InputError(
            f"the numbers of {printable(pattern.path)} run from {first} to {last}, which is no film; name "
            "those that are meant: [1001-1100] in place of the number"
        )
    by_number = {image.number: image for image in images}
    whole = [
        by_number.get(number) or ImageFile(number, pattern.name(number), -1, 0)
        for number in range(first, last + 1)
    ]
    lacking = [image.number for image in whole if image.size <= 0]
    if not lacking or on_gap == "fail":
        return whole, []
    present = [image for image in whole if image.size > 0]
    if not present:
        raise InputError(f"{printable(pattern.path)}: all its files are empty (0 bytes)")
    what = f"{len(lacking)} of the numbers {first}-{last} are missing or empty: {spans(lacking)}"
    if on_gap == "skip":
        return present, [f"{what}; they are left out, and the film is that much shorter"]
    held: list[ImageFile] = []
    for image in whole:
        held.append(image if image.size > 0 else held[-1] if held else present[0])
    return held, [f"{what}; the image before is held in their place"]


def refuse_gaps(images: Iterable[ImageFile], pattern: Pattern) -> None:
    """Raises InputError, in one sentence, if one of the images is not there or has nothing in it."""
    lacking = [image for image in images if image.size <= 0]
    missing = [image for image in lacking if image.size < 0]
    empty = [image for image in lacking if image.size == 0]
    name = printable(pattern.path)
    advice = "render them, or choose --on-gap hold or --on-gap skip"
    if missing:
        raise InputError(
            f"{name} has a gap, {_count(missing)} missing: {spans(i.number for i in missing)}; {advice}"
        )
    if len(empty) == 1:
        first = printable(pattern.folder / empty[0].name)
        raise InputError(f"{first} is empty (0 bytes); {advice.replace('them', 'it')}")
    if empty:
        listed = spans(image.number for image in empty)
        raise InputError(f"{name}: {len(empty)} files are empty (0 bytes): {listed}; {advice}")


def _count(images: Sequence[ImageFile]) -> str:
    return "1 number is" if len(images) == 1 else f"{len(images)} numbers are"


def spans(numbers: Iterable[int]) -> str:
    """Ascending numbers for people: ``3, 7-9, 12``, shortened where there are many."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        runs.append(f"{members[0]}" if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ", ".join(runs[:_LISTED]) + (f", and {len(runs) - _LISTED} more" if len(runs) > _LISTED else "")


def sequence_fingerprint(images: Iterable[ImageFile]) -> str:
    """Of the files that are taken: their names, sizes and times of change. Moving the folder keeps it."""
    digest = hashlib.sha256()
    count = 0
    for image in images:
        digest.update(f"{image.name}\0{image.size}\0{image.mtime_ns}\n".encode())
        count += 1
    return f"{count}-images-{digest.hexdigest()[:32]}"


def changes(before: Sequence[ImageFile], now: Sequence[ImageFile]) -> str:
    """In words, what is no longer as it was; empty if nothing is."""
    old, new = {image.name: image for image in before}, {image.name: image for image in now}
    said = []
    for what, names in (
        ("changed", [name for name in old if name in new and old[name] != new[name]]),
        ("gone", [name for name in old if name not in new]),
        ("new", [name for name in new if name not in old]),
    ):
        if names:
            also = f" and {len(names) - 1} more" if len(names) > 1 else ""
            said.append(f"{printable(names[0])}{also} {'is' if len(names) == 1 else 'are'} {what}")
    return ", ".join(said)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names, without a Path for each
    except OSError as error:
        raise InputError(f"{printable(folder)} can't be read: {reason(error)}") from error
