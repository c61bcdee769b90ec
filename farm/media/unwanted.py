"""What a user may not want to be passed over: damage in the input, and pictures that change their size.

Rules of this file:
- what can be known before the work is refused before it; the rest is in the footers of the parts, and is
  refused before the output is written, so that the parts are kept for whoever thinks again;
- what isn't refused is said, with the number of pictures and the time of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import av

from farm.errors import InputError
from farm.media.read import open_video, real_packets
from farm.media.survey import Survey
from farm.settings import SourceSettings
from farm.source import SourceIndex


def refuse_unwanted(index: SourceIndex, source: SourceSettings) -> None:
    """Before the work. Raises InputError."""
    if source.on_error == "stop" and index.damage:
        raise InputError(f"{index.path} is damaged: {index.damage[0]}; --on-error skip goes on all the same")
    if source.on_size_change == "refuse":
        changed = _change_of_size(index)
        if changed:
            raise InputError(f"{index.path}: {changed}; --on-size-change scale makes them one size")


def refuse_found(index: SourceIndex, source: SourceSettings, survey: Survey) -> None:
    """Before the output is written. Raises InputError."""
    kept = "the finished parts are kept"
    damage = damage_words(index, survey)
    if source.on_error == "stop" and damage:
        raise InputError(f"{index.path} is damaged: {damage[0]}; --on-error skip goes on, {kept}")
    if source.on_size_change == "refuse" and survey.resized_pts:
        raise InputError(f"{index.path}: {size_words(index, survey.resized_pts)}; its size may not change")


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


def _seconds(index: SourceIndex, pts: Sequence[int]) -> str:
    return f"{float(pts[0] * Fraction(*index.time_base)):.3f} s"


def _change_of_size(index: SourceIndex) -> str:
    """Decodes the keyframes alone: all but a few codecs can change their size nowhere else."""
    container, video = open_video(index.path, index.stream)
    video.codec_context.skip_frame = "NONKEY"
    with container:
        for packet in real_packets(container, video):
            try:
                frames = video.codec_context.decode(packet)
            except av.error.FFmpegError:
                continue
            for frame in frames:
                if (frame.width, frame.height) != (index.width, index.height):
                    at = "" if frame.pts is None else f" at {_seconds(index, [frame.pts])}"
                    return (
                        f"its pictures change from {index.width}x{index.height} to "
                        f"{frame.width}x{frame.height}{at}"
                    )
    return ""
