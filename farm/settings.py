"""What a job is asked to do, as data, and the hash that parts of different settings never share."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from farm.source import Rational

#: Output containers by file extension, with the muxer's name.
CONTAINERS = {
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mov": "mov",
    ".mkv": "matroska",
    ".webm": "webm",
    ".ts": "mpegts",
}

_LIKE_TS = "a disc or broadcast kind of transport or program stream; .ts holds the same"
#: Why other extensions that people ask for are not among them.
_NOT_WRITTEN = {
    ".avi": "AVI keeps a rate and no times of frames; .mkv takes whatever AVI does",
    ".m2ts": _LIKE_TS,
    ".mts": _LIKE_TS,
    ".mpg": _LIKE_TS,
    ".mpeg": _LIKE_TS,
    ".vob": _LIKE_TS,
}


def not_written(extension: str) -> str:
    """Why there is no output with that extension, as words to end a sentence with; empty if nobody asks."""
    reason = _NOT_WRITTEN.get(extension.lower(), "")
    return f" ({reason})" if reason else ""


#: Output images by file extension, with the encoder's name; their container goes by the name IMAGES.
IMAGE_ENCODERS = {".png": "png", ".jpg": "mjpeg", ".jpeg": "mjpeg", ".tif": "tiff", ".tiff": "tiff"}
IMAGES = "images"


class VideoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How every part is encoded. ``threads`` belongs here: another count gives other bytes."""

    encoder: str = "libx264"
    crf: float | None = None
    preset: str | None = None
    pix_fmt: str | None = None
    options: dict[str, str] = {}
    threads: int = 1


class GridSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Target length of a part, in frames or in seconds; ``fixed`` cuts regularly without snapping."""

    frames: int | None = None
    seconds: float | None = 4.0
    fixed: bool = False
    cuts: tuple[int, ...] = ()  #: frames of the input, ascending, at which a part must begin
    cuts_made_for: int | None = None  #: frames that the input must have for ``cuts`` to be of it


class SequenceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How an input of numbered images is read as a film; its rate is ``SourceSettings.fps``."""

    on_gap: Literal["fail", "hold", "skip"] = "fail"  #: a missing number: refuse, repeat the last, leave out
    conform: tuple[int, int] | None = None  #: width and height that all images are scaled to


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the input: a frame, or seconds after the first frame is shown. One of the two is set."""

    frame: int | None = None
    seconds: Rational | None = None


class TrimSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which frames of the input the job takes: ``[start, stop)``, and of these every ``every``-th."""

    start: Moment | None = None
    stop: Moment | None = None
    every: int = 1


class ImageOutput(msgspec.Struct, frozen=True, kw_only=True):
    """How an output of numbered images is numbered, and which of them are there already."""

    start_number: int | None = None  #: None: the number of the first image of the input, else 1
    existing: tuple[tuple[int, int], ...] = ()  #: ranges ``[first, stop)`` of numbers that are not rendered


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the input is taken. What is asked of damage and of changes of size changes no part, so that a run
    that was stopped by it can be resumed without it."""

    stream: int | None = None  #: index of the video stream in the container; None: the first that has frames
    #: Frames per second, exact. A video is given that constant rate; None: every frame has its own time.
    #: Numbered images are shown at it; None: at 24.
    fps: Rational | None = None
    rotate: Literal["keep", "apply"] = "keep"  #: what the display matrix says: passed on, or done
    on_size_change: Literal["scale", "refuse"] = "scale"  #: a picture of another size than the first
    on_error: Literal["skip", "stop"] = "skip"  #: pictures that are damaged or can't be decoded


class FilterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to the pictures before they are encoded. ``folder`` is what names of files in the graph
    start from; what those files hold counts, not where they are."""

    graph: str = ""  #: in FFmpeg's syntax; empty: nothing
    one_pass: bool = False  #: the whole film as one part
    folder: str = ""


class BurnText(msgspec.Struct, frozen=True):
    """One line that is drawn into every picture, with its fields in braces (farm.burnin)."""

    place: str
    text: str


class BurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn into the pictures, and how."""

    lines: tuple[BurnText, ...] = ()
    size: Rational = (1, 20)  #: of the letters, as a share of the picture's height
    font_path: str = ""  #: where the font is; empty: Pillow's own
    font_sha256: str = ""  #: of the font's file, which is what a part depends on
    color: tuple[int, int, int] = (255, 255, 255)
    box: tuple[int, int, int, int] | None = (0, 0, 0, 153)  #: behind the text: colour and opacity, of 255
    timecode_start: str | None = None  #: of the input's first frame; None: as the container says, else 0


Audio = Literal["auto", "copy", "aac", "opus", "flac", "none"]


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    video: VideoSettings = VideoSettings()
    grid: GridSettings = GridSettings()
    source: SourceSettings = SourceSettings()
    audio: Audio = "auto"  #: auto: copy where the container allows, else encode once
    container: str = "mp4"
    sequence: SequenceSettings = SequenceSettings()
    trim: TrimSettings = TrimSettings()
    images: ImageOutput = ImageOutput()
    filters: FilterSettings = FilterSettings()
    burn: BurnSettings = BurnSettings()


def settings_hash(settings: JobSettings, build: str, fingerprint: str) -> str:
    """What a part's bytes depend on, besides its number: encoder settings, grid, build and input, and which
    frames of that are taken, and what is drawn into them."""
    source = msgspec.structs.replace(settings.source, on_error="skip", on_size_change="scale")
    filters = msgspec.structs.replace(settings.filters, folder="")
    burn = msgspec.structs.replace(settings.burn, font_path="")
    taken = (source, settings.sequence, settings.trim, settings.images)
    drawn = (*([filters] if filters.graph else ()), *([burn] if burn.lines else ()))
    grid = msgspec.structs.replace(settings.grid, cuts_made_for=None)
    relevant = (settings.video, grid, build, fingerprint, *taken, *drawn)
    return hashlib.sha256(msgspec.json.encode(relevant, order="sorted")).hexdigest()[:32]
