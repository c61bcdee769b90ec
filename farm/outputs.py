"""An output of numbered images: which files it will be, which of them are there already, and how all of them
come to their names; and what an output is called and moved like, whatever it is.

Rules of this file:
- a ``%`` or ``#`` stands for a number only in the name of an image; in a video's name it is itself;
- images are written into a folder beside the output and are moved from there, one by one, once all of them
  are verified; who is cut off between two of them goes on where he was, for a file with the very bytes that
  are to be written is no obstacle;
- no other file is replaced without being asked, but for one with nothing in it where those that are there
  are to be kept: that is an image somebody failed to render.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import msgspec

from farm.errors import FinishedAlready, InputError, OutputError, UsageError
from farm.paths import PARTIAL_SUFFIX, printable, reason, same_file, sync_name
from farm.paths import replace as replace_file
from farm.sequence import Pattern, list_images, parse_pattern, spans
from farm.settings import IMAGE_ENCODERS, ImageOutput
from farm.source import SourceIndex
from farm.trim import only


def is_images(output: Path) -> bool:
    """Whether an output, or what it is until it is verified, is numbered images."""
    return Path(output.name.removesuffix(PARTIAL_SUFFIX)).suffix.lower() in IMAGE_ENCODERS


def image_pattern(output: Path) -> Pattern:
    """The names of an output's images. Raises UsageError if there is no place for a number."""
    try:
        pattern = parse_pattern(output)
    except InputError as error:
        raise UsageError(str(error)) from None
    if pattern is None or pattern.limits is not None:
        raise UsageError(
            f"the output {printable(output)} needs a place for the number of each image, such as "
            f"{printable(output.stem)}_%05d{output.suffix}"
        )
    return pattern


def existing_numbers(pattern: Pattern) -> list[int]:
    """The images that are there and have something in them, ascending."""
    try:
        return [image.number for image in list_images(pattern) if image.size > 0]
    except InputError:
        return []  # none, or a folder that will be complained of elsewhere


def as_ranges(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Ascending numbers as ranges ``[first, stop)``."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    spelled = [[number for _, number in run] for _, run in runs]
    return tuple((run[0], run[-1] + 1) for run in spelled)


def number_images(index: SourceIndex, output: ImageOutput) -> SourceIndex:
    """The index with the number of each frame's image, and without the frames whose images are there already.

    Raises FinishedAlready if that leaves none.
    """
    start = output.start_number
    if start is None:
        start = index.images[0].number if index.images else 1
    numbered = msgspec.structs.replace(index, numbers=tuple(range(start, start + index.frames)))
    there = {number for first, stop in output.existing for number in range(first, stop)}
    wanted = [frame for frame, number in enumerate(numbered.numbers) if number not in there]
    if not wanted:
        raise FinishedAlready(f"all {index.frames} images are there already")
    return numbered if len(wanted) == index.frames else only(numbered, wanted)


def check_images_free(
    output: Path, index: SourceIndex, overwrite: bool | None, *, keep_existing: bool
) -> None:
    """Raises OutputError if an image would replace one of the input, or, unasked, any file."""
    pattern = image_pattern(output)
    names = {pattern.name(number) for number in index.numbers}
    if index.images and same_file(Path(index.path).parent, output.parent):
        both = sorted(names & {image.name for image in index.images})
        if both:
            raise OutputError(
                f"{printable(both[0])} would overwrite an image of the input; choose another name"
            )
    if overwrite:
        return
    paths = ((number, pattern.folder / pattern.name(number)) for number in index.numbers)
    taken = [n for n, path in paths if os.path.lexists(path) and not (keep_existing and _is_empty(path))]
    if taken:
        advice = "-n says never to overwrite" if overwrite is False else "replace them with -y"
        raise OutputError(
            f"{len(taken)} of the images {printable(output)} exist already: {spans(taken)}; {advice}, keep "
            "them with --skip-existing, or choose another name"
        )


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and not path.stat().st_size


def discard(partial: Path) -> None:
    """Remove what was written of an output that won't be. Links are never followed."""
    with suppress(OSError):
        if is_images(partial) and partial.is_dir() and not partial.is_symlink():
            shutil.rmtree(partial)
        else:
            partial.unlink(missing_ok=True)


def place(partial: Path, output: Path, *, overwrite: bool) -> None:
    """Give a verified output its name, or each of its images its own. Raises OutputError; what has no name
    yet is still in ``partial`` then."""
    if not is_images(output):
        replace_file(partial, output, overwrite=overwrite)
        return
    try:
        for image in sorted(partial.iterdir()):
            _place_image(image, output.parent / image.name, overwrite)
        sync_name(output)
        partial.rmdir()
    except OSError as error:
        raise OutputError(
            f"the images {printable(output)} can't be put in place: {reason(error)}; what is not is in "
            f"{printable(partial)}"
        ) from error


def _place_image(image: Path, final: Path, overwrite: bool) -> None:
    if overwrite:
        image.replace(final)
        return
    try:
        os.link(image, final)  # unlike a rename it fails if the name is taken
    except FileExistsError:
        if _is_empty(final):  # it was found out in the beginning whether that may be
            image.replace(final)
            return
        if final.is_symlink() or not filecmp.cmp(image, final, shallow=False):
            raise OutputError(
                f"{printable(final)} appeared while it was rendered, and was left alone; the finished image "
                f"is {printable(image)}"
            ) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(final):
            raise
        image.replace(final)
        return
    image.unlink()


def numbered_words(numbers: Sequence[int]) -> str:
    """How the images are numbered, for people."""
    return f"images: {len(numbers)}, numbered {spans(numbers)}"
