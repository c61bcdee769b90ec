"""Compares the pictures of a lossless output with those that its encoder was given, frame by frame.

The source is read in one pass from its first packet, never by seeking, and its pictures go the same way to
the encoder as in the job: what comes out of a lossless decoder must be the very same, byte for byte. Where an
encoder loses something, or a setting changes pictures in a way that is not gone after here, there is nothing
to compare, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import av

from farm.contents import IMAGE_FILES, Contents
from farm.errors import VerificationError
from farm.facts import Pictures
from farm.media.contents import film_of, open_finished
from farm.media.encode import choose_picture, conform
from farm.media.pictures import open_pictures, plain_format
from farm.media.read import ReadError, frame_crc
from farm.media.sequence import BadImage, decode_image
from farm.outputs import image_pattern
from farm.paths import printable
from farm.settings import JobSettings, VideoSettings
from farm.source import SourceIndex

#: The settings that are followed here; any other may change pictures.
_FOLLOWED = frozenset(
    {"video", "grid", "source", "audio", "container", "sequence", "trim", "images", "filters"}
)
_FOLLOWED_VIDEO = frozenset({"encoder", "crf", "preset", "pix_fmt", "options", "threads"})


def why_incomparable(contents: Contents, settings: JobSettings | None) -> str:
    """Why the pictures of an output can't be compared with its source's, in words; empty: they can.
    ``settings``: those of its run, if they are known."""
    codec = contents.video.codec
    if settings is None:
        return "" if _loses_nothing(VideoSettings(encoder=codec)) else f"{codec} may lose something"
    for known, struct, unset in (
        (_FOLLOWED, settings, type(settings)()),
        (_FOLLOWED_VIDEO, settings.video, type(settings.video)()),
    ):
        for name in struct.__struct_fields__:
            if name not in known and getattr(struct, name) != getattr(unset, name):
                return f"the setting {name.replace('_', ' ')} may have changed them"
    return "" if _loses_nothing(settings.video) else f"{settings.video.encoder} loses something"


def _loses_nothing(video: VideoSettings) -> bool:
    try:
        codec = av.Codec(video.encoder, "w")
    except (av.codec.codec.UnknownCodecError, ValueError):
        return False
    if codec.lossless and not codec.lossy:
        return True
    options = video.options
    asked = options.get("lossless") in ("1", "true") or "lossless=1" in options.get("x265-params", "")
    return codec.lossless and (asked or (video.encoder == "libx264" and options.get("qp") == "0"))


def compare_pictures(
    output: Path,
    contents: Contents,
    index: SourceIndex,
    settings: JobSettings | None,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> Pictures:
    """``on_progress`` hears fractions from 0 to 1.

    Raises VerificationError if the output or the source can't be decoded."""
    found = _of_images(output, contents) if contents.container == IMAGE_FILES else _of_film(output)
    chosen = settings or JobSettings()
    shown = sorted(contents.pts)
    given: Iterator[av.VideoFrame] | None = None
    compared = 0
    try:
        for frame in found:
            if given is None:
                if settings is None:
                    video = VideoSettings(
                        encoder=contents.video.codec, pix_fmt=plain_format(frame.format.name)
                    )
                    chosen = JobSettings(video=video)
                given = _given(index, chosen)
            right = next(given, None)
            if right is None:
                break
            stored, was = plain_format(frame.format.name), plain_format(right.format.name)
            if stored != was:
                return Pictures(why_not=f"they are stored as {stored} and were {was}")
            if frame_crc(frame) != frame_crc(right):
                seconds = float(shown[compared] * contents.time_base)
                return Pictures(compared=compared, differs=compared, seconds=seconds)
            compared += 1
            on_progress(min(compared / max(contents.frames, 1), 1.0))
    except (av.error.FFmpegError, BadImage, ReadError, OSError) as error:
        raise VerificationError(
            f"{printable(output)} can't be compared with {printable(index.path)} after frame {compared}: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    if compared != contents.frames:
        seconds = float(shown[compared] * contents.time_base)
        return Pictures(compared=compared, differs=compared, seconds=seconds)
    return Pictures(compared=compared)


def _given(index: SourceIndex, settings: JobSettings) -> Iterator[av.VideoFrame]:
    """What the encoder is given, in one pass over the source."""
    picture = choose_picture(index, settings.video)
    pictures = open_pictures(index, settings, linear=True)
    try:
        for _, frame in pictures.read(0, index.frames):
            yield conform(frame, picture)
    finally:
        pictures.close()


def _of_film(output: Path) -> Iterator[av.VideoFrame]:
    with open_finished(output, None) as file:
        stream = film_of(file)
        stream.thread_type = "AUTO"
        yield from file.decode(stream)


def _of_images(output: Path, contents: Contents) -> Iterator[av.VideoFrame]:
    pattern = image_pattern(output)
    for number in contents.pts:
        data = (pattern.folder / pattern.name(number)).read_bytes()
        yield decode_image(data, contents.video.codec, {})[0]
