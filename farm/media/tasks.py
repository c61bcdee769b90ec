"""What is asked of a child process, one function a question. Each returns plain data from farm.facts.

The fork server loads this for all of its children; what only few of them need (NumPy, Pillow) these load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from farm.clock import CpuClock, MonotonicClock
from farm.contents import IMAGE_FILES, Contents
from farm.errors import UsageError
from farm.facts import Checked, Pictures, Probed, StitchFacts, VerifyFacts
from farm.media.constant import make_constant
from farm.media.encode import build_identity, choose_picture
from farm.media.encoder_check import check_encoder
from farm.media.filtered import filter_index
from farm.media.images import check_images, read_images, verify_images, write_images
from farm.media.index import index_source
from farm.media.pair import check_pair
from farm.media.pixels import compare_pictures, why_incomparable
from farm.media.render import measure_speed
from farm.media.sequence import index_sequence
from farm.media.stitch import stitch
from farm.media.streams import plan_streams
from farm.media.turn import turn_index
from farm.media.twice import encode_twice
from farm.media.unwanted import known_damage, refuse_unwanted
from farm.media.verify import check_contents, read_output, verify
from farm.outputs import is_images, number_images, numbered_words
from farm.paths import printable
from farm.sequence import Pattern, find_sequence
from farm.settings import IMAGES, JobSettings
from farm.source import SourceIndex, load_index
from farm.trim import trim_index


def _unheard(fraction: float) -> None:
    """Progress that nobody asked for."""


def probe_job(
    path: Path, settings: JobSettings, *, on_progress: Callable[[float], None] = _unheard
) -> Probed:
    """Index the input and check that the encoder and the container take it. Raises UnevenError.
    ``on_progress`` hears fractions from 0 to 1, of each pass over the input; 1 while the rest is tried."""
    index = _index(path, settings, on_progress)
    on_progress(1.0)
    warnings = check_encoder(index, settings.video)
    if settings.container != IMAGES:
        warnings += check_pair(index, settings.video, settings.container)
    if settings.burn.lines:
        from farm.media.burn import Burner

        warnings += Burner(index, settings, choose_picture(index, settings.video)).warnings
    plan = plan_streams(path, index, settings.container, settings.audio)
    differs = encode_twice(index, settings, CpuClock())
    if differs is not None and differs.of_header:
        raise UsageError(f"{differs.words(settings.video.encoder)}: parts that it makes can't be joined")
    return Probed(
        index=index,
        build=build_identity(settings.burn),
        streams=(
            *((numbered_words(index.numbers),) if index.numbers else ()),
            *(choice.words for choice in plan.choices if choice not in plan.lost),
        ),
        warnings=(
            *known_damage(index),
            *index.warnings,
            *warnings,
            *(choice.words for choice in plan.lost),
            *plan.notes,
        ),
        not_alike="" if differs is None else differs.words(settings.video.encoder),
    )


def _index(path: Path, settings: JobSettings, on_progress: Callable[[float], None]) -> SourceIndex:
    """Of a video or of numbered images, with the frames that are taken alone. Raises UnevenError.

    The order matters: a range counts the frames of the film at its rate, those of a constant rate where one
    is asked for and of images those that there are once gaps are closed; images that come out are numbered,
    and left out where they are there already, by what is left then. Filters see the frames that are taken,
    upright if they are to be, and what comes out of them is what is numbered.
    """
    pattern = find_sequence(path)
    index = _of_images(pattern, settings) if pattern else _of_video(path, settings, on_progress)
    if settings.filters.graph:
        index = filter_index(index, settings, on_progress)
    return number_images(index, settings.images) if settings.container == IMAGES else index


def _of_images(pattern: Pattern, settings: JobSettings) -> SourceIndex:
    source, name = settings.source, printable(pattern.path)
    for option, asked, why in (
        ("--video-stream", source.stream is not None, "has one stream"),
        ("--on-size-change", source.on_size_change != "scale", "has images of one size or is refused"),
    ):
        if asked:
            raise UsageError(f"{option} is for videos; an image sequence such as {name} {why}")
    if settings.audio not in ("auto", "none"):
        raise UsageError(f"--audio {settings.audio}: {name} is an image sequence, which has no sound")
    return index_sequence(pattern, settings)


def _of_video(path: Path, settings: JobSettings, on_progress: Callable[[float], None]) -> SourceIndex:
    for option, value, default in (
        ("--conform", settings.sequence.conform, None),
        ("--on-gap", settings.sequence.on_gap, "fail"),
    ):
        if value != default:
            raise UsageError(f"{option} is for image sequences, and {printable(path)} is not one")
    index = index_source(path, stream=settings.source.stream, on_progress=on_progress)
    if settings.source.rotate == "apply" or settings.container == IMAGES:  # which can't say how to be shown
        index = turn_index(index)
    if settings.source.fps is not None:
        index = make_constant(index, Fraction(*settings.source.fps))
    index = trim_index(index, settings.trim)
    refuse_unwanted(index, settings.source)
    return index


def measure_job(index_path: Path, settings: JobSettings, seconds: float) -> tuple[int, float]:
    """Frames encoded and the seconds that took, unthrottled, from the source's first frames."""
    return measure_speed(load_index(index_path), settings, seconds, MonotonicClock())


def stitch_job(
    index_path: Path,
    settings: JobSettings,
    settings_hash: str,
    parts: Sequence[Path],
    output: Path,
    *,
    on_progress: Callable[[float], None],
) -> StitchFacts:
    index = load_index(index_path)
    if settings.container == IMAGES:
        return write_images(index, settings_hash, parts, output, on_progress, settings.source)
    return stitch(index, settings, settings_hash, parts, output, on_progress)


def verify_job(
    output: Path,
    container: str,
    index_path: Path | None,
    decode: Literal["sample", "all"],
    lost_pts: Sequence[int],
    carried: Sequence[str],
    *,
    on_progress: Callable[[float], None],
) -> VerifyFacts:
    index = load_index(index_path) if index_path is not None else None
    if container == IMAGES:
        return verify_images(output, index, decode=decode, on_progress=on_progress, lost_pts=lost_pts)
    return verify(
        output,
        container,
        index,
        decode=decode,
        on_progress=on_progress,
        lost_pts=lost_pts,
        carried=carried,
    )


def index_job(
    path: Path, settings: JobSettings, *, on_progress: Callable[[float], None] = _unheard
) -> SourceIndex:
    """The index of a job that was rendered already; nothing of its encoder or output is checked."""
    return _index(path, settings, on_progress)


def read_finished(output: Path, *, on_progress: Callable[[float], None] = _unheard) -> Contents:
    """What is in a finished file, or in numbered images; raises VerificationError if that can't be told."""
    return read_images(output, on_progress) if is_images(output) else read_output(output, None, on_progress)


def check_finished(
    output: Path,
    contents: Contents,
    index_path: Path | None,
    settings: JobSettings | None,
    decode: Literal["sample", "all"],
    lost_pts: Sequence[int],
    *,
    on_progress: Callable[[float], None] = _unheard,
) -> Checked:
    """Check an output that was read, by itself and beside its source; with ``all`` and a source, its pictures
    too. ``settings``: those of its run, if they are known. Raises VerificationError."""
    index = load_index(index_path) if index_path is not None else None
    why_not = why_incomparable(contents, settings) if index is not None and decode == "all" else None
    compares = why_not == ""
    looks = "sample" if compares else decode  # else all of it would be decoded twice
    if contents.container == IMAGE_FILES:
        check = partial(check_images, output, contents)
    else:
        check = partial(check_contents, output, None, contents)
    facts = check(index, decode=looks, lost_pts=lost_pts, on_progress=_unheard if compares else on_progress)
    facts = msgspec.structs.replace(facts, contents=None)  # who asks has them
    if why_not is None:
        return Checked(facts=facts)
    assert index is not None
    if not compares:
        return Checked(facts=facts, pictures=Pictures(why_not=why_not))
    pictures = compare_pictures(output, contents, index, settings, on_progress)
    return Checked(facts=facts, pictures=pictures)


def make_demo_clip(path: Path, frames: int) -> None:
    from farm.media.clip import make_clip

    make_clip(path, frames=frames)


def make_small_clip(path: Path, frames: int) -> None:
    """Frames as small as they may be, silent: what takes time with them is the farm, not the media."""
    from farm.media.clip import make_clip

    make_clip(path, frames=frames, width=104, height=64, audio=False)
