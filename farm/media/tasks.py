"""What is asked of a child process, one function a question. Each returns plain data from farm.facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

from farm.clock import CpuClock, MonotonicClock
from farm.errors import UsageError
from farm.facts import Probed, StitchFacts, VerifyFacts
from farm.media.clip import make_clip
from farm.media.constant import make_constant
from farm.media.encode import build_identity
from farm.media.encoder_check import check_encoder
from farm.media.images import verify_images, write_images
from farm.media.index import index_source
from farm.media.render import measure_speed
from farm.media.sequence import index_sequence, player_warnings
from farm.media.stitch import stitch
from farm.media.streams import plan_streams
from farm.media.turn import turn_index
from farm.media.twice import encode_twice
from farm.media.unwanted import refuse_unwanted
from farm.media.verify import verify
from farm.outputs import number_images, numbered_words
from farm.paths import printable
from farm.sequence import Pattern, find_sequence
from farm.settings import IMAGES, JobSettings
from farm.source import SourceIndex, load_index
from farm.trim import trim_index


def probe_job(path: Path, settings: JobSettings) -> Probed:
    """Index the input and check that the encoder and the container take it. Raises UnevenError."""
    index = _index(path, settings)
    warnings = check_encoder(index, settings.video, settings.container)
    plan = plan_streams(path, index, settings.container, settings.audio)
    differs = encode_twice(index, settings, CpuClock())
    if differs is not None and differs.of_header:
        raise UsageError(f"{differs.words(settings.video.encoder)}: parts that it makes can't be joined")
    return Probed(
        index=index,
        build=build_identity(),
        streams=(
            *((numbered_words(index.numbers),) if index.numbers else ()),
            *(choice.words for choice in plan.choices if choice not in plan.lost),
        ),
        warnings=(
            *index.damage,
            *index.warnings,
            *warnings,
            *player_warnings(index, settings.video),
            *(choice.words for choice in plan.lost),
        ),
        not_alike="" if differs is None else differs.words(settings.video.encoder),
    )


def _index(path: Path, settings: JobSettings) -> SourceIndex:
    """Of a video or of numbered images, with the frames that are taken alone. Raises UnevenError.

    The order matters: a range counts the frames of the film at its rate, those of a constant rate where one
    is asked for and of images those that there are once gaps are closed; images that come out are numbered,
    and left out where they are there already, by what is left then.
    """
    pattern = find_sequence(path)
    index = _of_video(path, settings) if pattern is None else _of_images(pattern, settings)
    return number_images(index, settings.images) if settings.container == IMAGES else index


def _of_images(pattern: Pattern, settings: JobSettings) -> SourceIndex:
    source, name = settings.source, printable(pattern.path)
    for option, asked, why in (
        ("--video-stream", source.stream is not None, "has one stream"),
        ("--rotate", source.rotate != "keep", "doesn't say here how it is to be shown"),
        ("--on-size-change", source.on_size_change != "scale", "has images of one size or is refused"),
    ):
        if asked:
            raise UsageError(f"{option} is for videos; an image sequence such as {name} {why}")
    if settings.audio not in ("auto", "none"):
        raise UsageError(f"--audio {settings.audio}: {name} is an image sequence, which has no sound")
    return index_sequence(pattern, settings)


def _of_video(path: Path, settings: JobSettings) -> SourceIndex:
    for option, value, default in (
        ("--conform", settings.sequence.conform, None),
        ("--on-gap", settings.sequence.on_gap, "fail"),
    ):
        if value != default:
            raise UsageError(f"{option} is for image sequences, and {printable(path)} is not one")
    index = index_source(path, stream=settings.source.stream)
    refuse_unwanted(index, settings.source)
    if settings.source.rotate == "apply" or settings.container == IMAGES:  # which can't say how to be shown
        index = turn_index(index)
    if settings.source.fps is not None:
        index = make_constant(index, Fraction(*settings.source.fps))
    return trim_index(index, settings.trim)


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


def make_demo_clip(path: Path, frames: int) -> None:
    make_clip(path, frames=frames)


def make_small_clip(path: Path, frames: int) -> None:
    """Frames as small as they may be, silent: what takes time with them is the farm, not the media."""
    make_clip(path, frames=frames, width=104, height=64, audio=False)
