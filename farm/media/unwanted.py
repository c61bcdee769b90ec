"""What a user may not want to be passed over: damage in the input, and pictures that change their size.

Rules of this file:
- what can be known before the work is refused before it; the rest is in the footers of the parts, and is
  refused before the output is written, so that the parts are kept for whoever thinks again;
- what isn't refused is said, with the number of pictures and the time of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import av

from farm.errors import InputError
from farm.media.read import decode, open_video, real_packets
from farm.media.survey import Survey
from farm.media.turn import source_size
from farm.settings import SourceSettings
from farm.source import SourceIndex


def refuse_unwanted(index: SourceIndex, source: SourceSettings) -> None:
    """Before the work. Raises InputError."""
    damage = known_damage(index)
    if source.on_error == "stop" and damage:
        raise InputError(f"{index.path} is damaged: {damage[0]}; --on-error skip goes on all the same")
    if source.on_size_change == "refuse":
        changed = _change_of_size(index)
        if changed:
            raise InputError(f"{index.path}: {changed}; --on-size-change scale makes them one size")


def known_damage(index: SourceIndex) -> list[str]:
    """What the index knows to be broken or missing in what is taken of the input, a sentence each."""
    if index.filtered is not None:  # whose source is damaged, and maybe what came out of it
        source = index.filtered.source
        return [*known_damage(source), *(damage.words for damage in index.damage[len(source.damage) :])]
    if index.cut is None:
        return [damage.words for damage in index.damage]
    first, last = _taken(index)
    to_the_end = index.cut[1] is None
    return [
        damage.words
        for damage in index.damage
        if (to_the_end if damage.at_end else not damage.at or any(first <= at <= last for at in damage.at))
    ]


def _taken(index: SourceIndex) -> tuple[int, int]:
    """The times of the first and the last of the source's frames that are taken, in its own ticks."""
    constant = index.constant
    if constant is None:
        return index.pts[0], index.pts[-1]
    return constant.pts[constant.picks[0]], constant.pts[constant.picks[-1]]


def refuse_found(index: SourceIndex, source: SourceSettings, survey: Survey) -> None:
    """Before the output is written. Raises InputError."""
    kept = "the finished parts are kept"
    damage = damage_words(index, survey)
    if source.on_error == "stop" and damage:
        raise InputError(f"{index.path} is damaged: {damage[0]}; --on-error skip goes on, {kept}")
    if source.on_size_change == "refuse" and survey.resized_pts:
        words = size_words(index, survey.resized_pts)
        raise InputError(f"{index.path}: {words}; --on-size-change scale goes on, {kept}")


def damage_words(index: SourceIndex, survey: Survey) -> list[str]:
    """A sentence each for pictures that are missing and for those that are damaged."""
    words = []
    if survey.lost_pts:
        words.append(
            f"{len(survey.lost_pts)} of {index.frames} frames could not be decoded and are missing, the "
            f"first at {_seconds(index, survey.lost_pts)}"
        )
    if survey.damaged_pts:
        words.append(
            f"{len(survey.damaged_pts)} of {index.frames} frames are damaged and were shown as well as they "
            f"decode, the first at {_seconds(index, survey.damaged_pts)}"
        )
    return words


def size_words(index: SourceIndex, resized_pts: Sequence[int]) -> str:
    source = index if index.filtered is None else index.filtered.source
    return (
        f"{len(resized_pts)} of {index.frames} pictures have another size than the first "
        f"({source.width}x{source.height}), from {_seconds(index, resized_pts)} on"
    )


def format_words(index: SourceIndex, reformatted_pts: Sequence[int]) -> str:
    source = index if index.filtered is None else index.filtered.source
    return (
        f"{len(reformatted_pts)} of {index.frames} pictures have another pixel format than the first "
        f"({source.pix_fmt}), from {_seconds(index, reformatted_pts)} on; they were converted to it"
    )


def _seconds(index: SourceIndex, pts: Sequence[int]) -> str:
    return f"{float(pts[0] * Fraction(*index.time_base)):.3f} s"


def _change_of_size(index: SourceIndex) -> str:
    """Of the pictures that are taken, in words; empty if they are of one size, as far as can be seen."""
    size, tick = (
        source_size(index),
        Fraction(*index.constant.time_base if index.constant else index.time_base),
    )
    first, last = _taken(index)
    changed: tuple[int, tuple[int, int]] | None = None  # since when the pictures have another size
    sizes = _sizes_of_all(index) if index.linear else _sizes_of_keyframes(index)
    for at, found in sizes:
        if at > last or (changed is not None and at > first):
            break
        changed = (max(at, first), found) if found != size else None
    if changed is None:
        return ""
    at, (width, height) = changed
    return f"its pictures change from {size[0]}x{size[1]} to {width}x{height} at {float(at * tick):.3f} s"


def _sizes_of_all(index: SourceIndex) -> Iterator[tuple[int, tuple[int, int]]]:
    """Time and size of all pictures that are taken: where times can't be trusted they are counted."""
    pts, kept = (index.constant.pts, ()) if index.constant else (index.pts, index.kept)
    times = dict(zip(kept or range(len(pts)), pts, strict=True))
    container, video = open_video(index.path, index.stream)
    with container:
        for number, frame in enumerate(decode(video, real_packets(container, video), lambda: None)):
            if number in times:
                yield times[number], (frame.width, frame.height)


def _sizes_of_keyframes(index: SourceIndex) -> Iterator[tuple[int, tuple[int, int]]]:
    """Decodes the keyframes alone: all but VP9 and AV1 can change their size nowhere else."""
    container, video = open_video(index.path, index.stream)
    video.codec_context.skip_frame = "NONKEY"
    with container:
        for packet in real_packets(container, video):
            try:
                frames = video.codec_context.decode(packet)
            except av.error.FFmpegError:
                continue
            for frame in frames:
                if frame.pts is not None:
                    yield frame.pts, (frame.width, frame.height)
