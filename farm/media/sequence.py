"""Reading numbered images: the index of a sequence, and its frames one by one.

Rules of this file:
- an image is opened when its frame is wanted, and must be the file that was indexed;
- whatever is wrong with one is said with its frame and its name;
- images of another size or pixel format than the first are refused unless it was said what they become;
- an image is turned as it says itself where that was asked for, or where it becomes an image again; else all
  must be to be shown alike, for a film can say it once;
- linear light (EXR) is given the curve of sRGB while it is decoded; what is brighter than white is clipped.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Protocol, cast

import av
import msgspec

from farm.errors import InputError
from farm.media.constant import ConstantReader
from farm.media.orientation import image_matrix
from farm.media.read import FrameReader, Numbered, ReadError
from farm.media.times import rational
from farm.media.turn import Turner, turn_of
from farm.paths import printable, reason
from farm.sequence import Pattern, close_gaps, list_images, refuse_gaps, sequence_fingerprint
from farm.settings import IMAGES, JobSettings
from farm.source import ImageFile, SourceIndex
from farm.trim import kept_frames

CONTAINER = "image sequence"
#: Images decoded before any work, evenly spread, to see early what would stop the job late.
_LOOKED_AT = 16
#: Frames a second, where none is asked for.
_RATE = (24, 1)
_UNSPECIFIED = 2
_RGB = 0
_CURVE = {"exr": {"apply_trc": "iec61966_2_1"}}


class Reader(Protocol):
    """What reads the frames of a job: see ``FrameReader.read``."""

    lost: tuple[int, ...]
    next_frame: av.VideoFrame | None

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]: ...

    def runs_on(self, start: int) -> bool: ...

    def close(self) -> None: ...


def open_reader(
    index: SourceIndex,
    settings: JobSettings,
    *,
    linear: bool = False,
    decoded: Callable[[], None] = lambda: None,
) -> Reader:
    """The reader that suits the source."""
    if index.images:
        return ImageReader(index, settings, decoded=decoded)
    if index.constant is not None:
        return ConstantReader(index, linear=linear, decoded=decoded)
    return FrameReader(index, linear=linear, decoded=decoded)


class ImageReader:
    """Reads frames of a sequence, in any order; every one is decoded by itself."""

    def __init__(
        self, index: SourceIndex, settings: JobSettings, *, decoded: Callable[[], None] = lambda: None
    ) -> None:
        self._index = index
        self._folder = Path(index.path).parent
        self._any_size = settings.sequence.conform is not None
        self._any_format = self._any_size or settings.video.pix_fmt is not None
        self._options = _CURVE.get(index.codec, {})
        self._time_base = Fraction(*index.time_base)
        self._decoded = decoded
        self._upright = turns_images(settings)
        self._turner = Turner()
        self._ahead: Numbered | None = None  # decoded as the frame after a range, and wanted next
        self.lost: tuple[int, ...] = ()  #: always empty: an image that can't be read is an error
        self.next_frame: av.VideoFrame | None = None  #: the frame at ``stop``

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]:
        """Frames ``[start, stop)`` with their numbers. Raises ReadError for an image that is gone, was
        changed, can't be decoded, or has another size or pixel format than it should."""
        self.next_frame = None
        for number in range(start, stop):
            yield number, self._frame(number)
        if stop < self._index.frames:
            try:
                self.next_frame = self._frame(stop)
            except ReadError:
                return  # that is for the part it belongs to
            self._ahead = stop, self.next_frame

    def runs_on(self, start: int) -> bool:
        """Always: every image is decoded by itself."""
        return True

    def close(self) -> None:
        """Let go of what was decoded ahead."""
        self._ahead = None

    def _frame(self, number: int) -> av.VideoFrame:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == number:
            return ahead[1]
        image = self._index.images[number]
        path = self._folder / image.name
        name = f"frame {number} ({printable(path)})"
        try:
            data = _read(path, image)
            frame, _ = decode_image(data, self._index.codec, self._options)
            frame.time_base = self._time_base
            frame, matrix = shown_as(frame, data, self._turner if self._upright else None)
        except BadImage as bad:
            raise ReadError(f"{name} {bad}") from None
        self._decoded()
        if matrix != self._index.display_matrix:
            raise ReadError(
                f"{name} is to be shown turned otherwise than the first image; --rotate apply turns each"
            )
        odd = _difference(self._index, frame, any_size=self._any_size, any_format=self._any_format)
        if odd:
            raise ReadError(f"{name} {odd}")
        frame.pts, frame.time_base = self._index.pts[number], self._time_base
        return frame


class BadImage(Exception):
    """What is wrong with an image, in words that follow its name."""


def _read(path: Path, image: ImageFile) -> bytes:
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            if (stat.st_size, stat.st_mtime_ns) != (image.size, image.mtime_ns):
                raise BadImage("was changed since the job was planned; put it back, or start anew")
            return file.read()
    except FileNotFoundError:
        raise BadImage("is gone") from None
    except OSError as error:
        raise BadImage(f"can't be read: {reason(error)}") from error


def decode_image(
    data: bytes, codec: str, options: dict[str, str]
) -> tuple[av.VideoFrame, av.VideoCodecContext]:
    """The first picture in an image file, and the decoder that knows more of it. Raises BadImage."""
    context = cast(av.VideoCodecContext, av.CodecContext.create(codec, "r"))
    context.thread_count = 1
    context.options = dict(options)
    try:
        frames = [*context.decode(av.Packet(data)), *context.decode(None)]
    except (av.error.FFmpegError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadImage(f"can't be decoded as {codec}: {why}") from error
    if not frames:
        raise BadImage(f"can't be decoded as {codec}: there is no picture in it")
    if frames[0].is_corrupt:
        raise BadImage("is damaged")
    return frames[0], context


def turns_images(settings: JobSettings) -> bool:
    """Whether images are turned as they are to be shown; other images can't say it themselves."""
    return settings.source.rotate == "apply" or settings.container == IMAGES


def shown_as(
    frame: av.VideoFrame, data: bytes, turner: Turner | None
) -> tuple[av.VideoFrame, tuple[int, ...]]:
    """The picture of the image in ``data``, turned by ``turner`` if there is one, and the display matrix
    that is left. Raises BadImage."""
    matrix = image_matrix(frame, data)
    if turner is None:
        return frame, matrix
    turn = turn_of(matrix)
    if turn is None:
        raise BadImage("is to be shown turned by something else than quarter turns; use --rotate keep")
    return turner.turn(frame, turn), ()


def _difference(index: SourceIndex, frame: av.VideoFrame, *, any_size: bool, any_format: bool) -> str:
    """In which way an image isn't like the first one, in words; empty if it is or needn't be."""
    size, first = f"{frame.width}x{frame.height}", f"{index.width}x{index.height}"
    if size != first and not any_size:
        return f"is {size} where the first image is {first}; --conform {first} scales all to one size"
    name = frame.format.name
    if name != index.pix_fmt and not any_format:
        return (
            f"has the pixel format {name} where the first image has {index.pix_fmt}; --conform {first}, or a "
            "--pix-fmt, brings all into one"
        )
    return ""


def index_sequence(pattern: Pattern, settings: JobSettings) -> SourceIndex:
    """Index a sequence, with the frames that are taken of it alone.

    Raises InputError for a gap that isn't allowed, and for the first of some images looked at that can't be
    decoded or isn't like the first one; UsageError if no frame is taken.
    """
    images, warnings = close_gaps(list_images(pattern), pattern, settings.sequence.on_gap)
    rate = settings.source.fps or _RATE
    input_frames = len(images)
    kept = kept_frames(range(input_frames), 1 / Fraction(*rate), settings.trim)
    images = [images[number] for number in kept]
    refuse_gaps(images, pattern)
    pts = range(0, len(images) * kept.step, kept.step)
    index = _describe(pattern, images, tuple(pts), rate, settings)
    _look_at_some(index, settings)
    if settings.source.fps is None:
        warnings.append("images have no frame rate: 24 a second are shown; --fps sets another")
    if index.codec in _CURVE:
        warnings.append("linear light is given the curve of sRGB, and what is brighter than white is clipped")
    if settings.sequence.conform is not None:
        warnings.append(f"all images are scaled to {index.width}x{index.height}, whatever their shape")
    average = Fraction(*rate) / kept.step
    return msgspec.structs.replace(
        index,
        frame_rate=rational(average),
        cut=(0, pts.stop),
        warnings=tuple(warnings),
        origin=-kept.start,
        input_frames=input_frames,
    )


def _describe(
    pattern: Pattern,
    images: Sequence[ImageFile],
    pts: tuple[int, ...],
    rate: tuple[int, int],
    settings: JobSettings,
) -> SourceIndex:
    """What the first image says of all of them."""
    path = pattern.folder.absolute() / images[0].name
    try:
        data = _read(path, images[0])
        codec = _codec_of(data, path)
        frame, context = decode_image(data, codec, _CURVE.get(codec, {}))
        frame.time_base = Fraction(rate[1], rate[0])
        lying = frame.width, frame.height
        frame, matrix = shown_as(frame, data, Turner() if turns_images(settings) else None)
    except BadImage as bad:
        raise InputError(f"frame 0 ({printable(path)}) {bad}") from None
    width, height = settings.sequence.conform or (frame.width, frame.height)
    aspect = context.sample_aspect_ratio
    if aspect and (frame.width, frame.height) != lying:
        aspect = 1 / aspect
    return SourceIndex(
        path=str(pattern.path.absolute()),
        fingerprint=sequence_fingerprint(images),
        container=CONTAINER,
        stream=0,
        codec=codec,
        width=width,
        height=height,
        pix_fmt=frame.format.name,
        time_base=(rate[1], rate[0]),
        frame_rate=rate,
        sample_aspect_ratio=rational(aspect) if aspect else None,
        pts=pts,
        keys=(),  # every image is one, so that none draws a cut to itself
        packets=(),
        images=tuple(images),
        color_range=frame.color_range,
        color_primaries=frame.color_primaries or _UNSPECIFIED,
        color_trc=frame.color_trc or _UNSPECIFIED,
        colorspace=_RGB if frame.format.is_rgb else frame.colorspace or _UNSPECIFIED,
        display_matrix=matrix,
    )


def _codec_of(data: bytes, path: Path) -> str:
    """Found by what is in the file; by a name with a ``%`` in it FFmpeg would look for a sequence itself."""
    try:
        with av.open(io.BytesIO(data), metadata_errors="replace") as container:
            if container.streams.video:
                return container.streams.video[0].codec_context.codec.canonical_name
    except (av.error.FFmpegError, ValueError):
        pass
    by_extension = {".tga": "targa", ".cin": "cineon"}.get(path.suffix.lower())
    if by_extension:
        return by_extension
    raise BadImage("is not an image that can be decoded")


def _look_at_some(index: SourceIndex, settings: JobSettings) -> None:
    """Images evenly spread over the film, the last one among them. Raises InputError."""
    count = min(index.frames, _LOOKED_AT)
    spread = {number * (index.frames - 1) // max(1, count - 1) for number in range(1, count)}
    reader = ImageReader(index, settings)
    try:
        for number in sorted(spread):
            for _ in reader.read(number, number + 1):
                break
            reader.close()
    except ReadError as error:
        raise InputError(str(error)) from error
