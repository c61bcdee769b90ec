"""An output of numbered images: each packet of the parts is an image file, and is written as it is.

Rules of this file:
- every part is read and checked whole before the first file is written (farm.media.survey);
- files are whole and synced in a folder of their own, which is what gets verified; who gives them their names
  is farm.outputs;
- what is verified is read back from the files alone: which there are, that each is as it was hashed, and that
  a sample of them, or all, decode to pictures of one size.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from farm.contents import IMAGE_FILES, Contents, StreamContents, new_checksums, new_times
from farm.errors import InputError, OutputError, VerificationError
from farm.facts import StitchFacts, VerifyFacts
from farm.media.sequence import BadImage, decode_image
from farm.media.streams import plan_streams
from farm.media.survey import read_packets, survey_parts
from farm.media.unwanted import damage_words, refuse_found
from farm.outputs import image_pattern
from farm.parts import sync_folder
from farm.paths import PARTIAL_SUFFIX, is_full, printable, reason
from farm.sequence import Pattern, list_images, spans
from farm.settings import IMAGE_ENCODERS, IMAGES, SourceSettings
from farm.source import SourceIndex

_AS_IT_IS = SourceSettings()
_SAMPLES = 8
#: The survey's share of the progress, which runs from 0 to 1.
_SURVEY_SHARE = 0.3
#: The share of reading all files back, where only some are decoded.
_READING_SHARE = 0.7


def write_images(
    index: SourceIndex,
    settings_hash: str,
    parts: Sequence[Path],
    folder: Path,
    on_progress: Callable[[float], None],
    source: SourceSettings = _AS_IT_IS,
) -> StitchFacts:
    """Write the images of all parts into ``folder``, which is made anew, each under its final name.

    Raises DamagedPart for a part that must be rendered again, VerificationError if the parts don't make up
    the job, OutputError if a file can't be written, InputError for damage that ``source`` doesn't put up
    with. No folder is left after an error.
    """
    survey = survey_parts(
        index, settings_hash, parts, 1, lambda done: on_progress(_SURVEY_SHARE * done / len(parts))
    )
    refuse_found(index, source, survey)
    pattern = _pattern_in(folder)
    written = 0
    try:
        _make_anew(folder)
        for part, path in enumerate(parts):
            for packet in read_packets(part, path):
                number = index.numbers[bisect_left(index.pts, packet.pts)]
                with (folder / pattern.name(number)).open("xb") as file:
                    file.write(packet.data)
                    file.flush()
                    os.fsync(file.fileno())
                written += len(packet.data)
            on_progress(_SURVEY_SHARE + (1 - _SURVEY_SHARE) * (part + 1) / len(parts))
        sync_folder(folder)
    except BaseException as error:
        with suppress(OSError):
            shutil.rmtree(folder)
        if isinstance(error, OSError):
            raise _unwritable(folder, error) from error
        raise
    plan = plan_streams(Path(index.path), index, IMAGES)
    return StitchFacts(
        frames=len(survey.timeline.pts),
        output_bytes=written,
        lost_pts=survey.lost_pts,
        part_packets=survey.part_packets,
        streams=tuple(choice.words for choice in plan.choices),
        warnings=(*damage_words(index, survey), *_lost_words(index, survey.lost_pts)),
    )


def _make_anew(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()


def _pattern_in(folder: Path) -> Pattern:
    """The names of the images in a folder that is called as the output and a suffix."""
    return image_pattern(folder / folder.name.removesuffix(PARTIAL_SUFFIX))


def _lost_words(index: SourceIndex, lost_pts: Sequence[int]) -> tuple[str, ...]:
    if not lost_pts:
        return ()
    numbers = [index.numbers[bisect_left(index.pts, pts)] for pts in lost_pts]
    return (f"the images of frames that could not be decoded are missing: {spans(numbers)}",)


def _unwritable(folder: Path, error: OSError) -> OutputError:
    if is_full(error) or error.errno == errno.EDQUOT:
        return OutputError(
            f"{printable(folder)} can't be written, the disk is full: free some space and resume; the "
            "rendered parts are kept"
        )
    return OutputError(f"{printable(folder)} can't be written: {reason(error)}")


def verify_images(
    output: Path,
    index: SourceIndex | None,
    *,
    decode: Literal["sample", "all"] = "sample",
    on_progress: Callable[[float], None] = lambda fraction: None,
    lost_pts: Sequence[int] = (),
) -> VerifyFacts:
    """Read images back: those in the folder ``output``, where an output is made, or those that the pattern
    ``output`` stands for. They must be the frames of ``index``; without one, have no gap.

    ``packets_sha256`` is over the bytes of all files, end to end in the order of their numbers. Raises
    VerificationError at the first thing that is wrong.
    """
    contents = read_images(output, lambda fraction: on_progress(_READING_SHARE * fraction))

    def on_decoded(fraction: float) -> None:
        on_progress(_READING_SHARE + (1 - _READING_SHARE) * fraction)

    return check_images(output, contents, index, decode=decode, on_progress=on_decoded, lost_pts=lost_pts)


def read_images(output: Path, on_progress: Callable[[float], None] = lambda fraction: None) -> Contents:
    """What is in the files of an output, undecoded. Raises VerificationError if there are none or one can't
    be read."""
    pattern = _pattern_of(output)
    try:
        images = list_images(pattern)
    except InputError as error:
        raise VerificationError(str(error)) from None
    digest, checksums, size_bytes = hashlib.sha256(), new_checksums(), 0
    for place, image in enumerate(images):
        data = _read_back(pattern.folder / image.name)
        digest.update(data)
        checksums.append(zlib.crc32(data))
        size_bytes += len(data)
        on_progress((place + 1) / len(images))
    numbers = new_times(image.number for image in images)
    return Contents(
        container=IMAGE_FILES,
        size_bytes=size_bytes,
        video=StreamContents(
            kind="video",
            codec=_decoder(pattern.path),
            packets=len(images),
            sha256=digest.hexdigest(),
            time_base=(1, 1),
            first_pts=numbers[0],
            last_pts=numbers[-1],
        ),
        pts=numbers,
        checksums=checksums,
        stream_words=(f"images: {len(images)}, numbered {spans(numbers)}",),
    )


def check_images(
    output: Path,
    contents: Contents,
    index: SourceIndex | None,
    *,
    decode: Literal["sample", "all"] = "sample",
    on_progress: Callable[[float], None] = lambda fraction: None,
    lost_pts: Sequence[int] = (),
) -> VerifyFacts:
    """The rest of ``verify_images``, of files that were read. Raises VerificationError."""
    pattern, numbers = _pattern_of(output), contents.pts
    _check_numbers(output, numbers, _expected(index, numbers, lost_pts))
    count = len(numbers)
    step = -(-count // _SAMPLES) if decode == "sample" else 1
    chosen = sorted({*range(0, count, step), count - 1})
    sizes: dict[tuple[int, int], str] = {}
    for place, number in enumerate(chosen):
        name = pattern.name(numbers[number])
        sizes.setdefault(_size(pattern.folder / name, _read_back(pattern.folder / name)), name)
        on_progress((place + 1) / len(chosen))
    if len(sizes) > 1:
        (size, name), (other_size, other) = list(sizes.items())[:2]
        raise VerificationError(
            f"{printable(output)} is not right: {printable(name)} is {size[0]}x{size[1]} and "
            f"{printable(other)} is {other_size[0]}x{other_size[1]}"
        )
    rate = index.frame_rate if index is not None else None
    return VerifyFacts(
        frames=count,
        packets_sha256=contents.video.sha256,
        duration_seconds=count * rate[1] / rate[0] if rate else 0.0,
        streams=contents.stream_words,
        decoded_frames=len(chosen),
        contents=contents,
    )


def _pattern_of(output: Path) -> Pattern:
    return _pattern_in(output) if output.name.endswith(PARTIAL_SUFFIX) else image_pattern(output)


def _read_back(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VerificationError(f"{printable(path)} can't be read back: {reason(error)}") from error


def _expected(index: SourceIndex | None, numbers: Sequence[int], lost_pts: Sequence[int]) -> Sequence[int]:
    if index is None:
        return range(numbers[0], numbers[-1] + 1)
    lost = set(lost_pts)
    return [number for number, pts in zip(index.numbers, index.pts, strict=True) if pts not in lost]


def _check_numbers(output: Path, numbers: Sequence[int], expected: Sequence[int]) -> None:
    found = set(numbers)
    missing = [number for number in expected if number not in found]
    if missing:
        raise VerificationError(
            f"{printable(output)} is not right: {_images(len(missing))} missing: {spans(missing)}"
        )
    if len(found) > len(expected):
        extra = sorted(found - set(expected))
        raise VerificationError(f"{printable(output)} is not right: it has images too many: {spans(extra)}")


def _images(count: int) -> str:
    return "1 image is" if count == 1 else f"{count} images are"


def _size(path: Path, data: bytes) -> tuple[int, int]:
    """Of the picture in an image file. Raises VerificationError if it doesn't decode."""
    codec = _decoder(path)
    try:
        frame, _ = decode_image(data, codec, {})
    except BadImage as bad:
        raise VerificationError(f"{printable(path)} is not right: it {bad}") from None
    return frame.width, frame.height


def _decoder(path: Path) -> str:
    """The decoder's name, which for these formats is the encoder's."""
    return IMAGE_ENCODERS[path.suffix.lower()]
