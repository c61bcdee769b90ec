"""What a job is asked to do, as data, and the hash that parts of different settings never share."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from farm.source import Rational

#: Output containers by file extension, with the muxer's name.
CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm"}


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


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the input is taken. What is asked of damage changes no part, so that a run that was stopped by it
    can be resumed without it."""

    stream: int | None = None  #: index of the video stream in the container; None: the first that has frames
    fps: Rational | None = None  #: a constant rate, frames per second; None: every frame at its own time
    rotate: Literal["keep", "apply"] = "keep"  #: what the display matrix says: passed on, or done
    on_size_change: Literal["scale", "refuse"] = "scale"  #: a picture of another size than the first
    on_error: Literal["skip", "stop"] = "skip"  #: pictures that are damaged or can't be decoded


Audio = Literal["auto", "copy", "aac", "opus", "flac", "none"]


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    video: VideoSettings = VideoSettings()
    grid: GridSettings = GridSettings()
    source: SourceSettings = SourceSettings()
    audio: Audio = "auto"  #: auto: copy where the container allows, else encode once
    container: str = "mp4"


def settings_hash(settings: JobSettings, build: str, fingerprint: str) -> str:
    """What a part's bytes depend on, besides its number: encoder settings, grid, build and input."""
    source = msgspec.structs.replace(settings.source, on_error="skip")
    relevant = (settings.video, settings.grid, source, build, fingerprint)
    return hashlib.sha256(msgspec.json.encode(relevant, order="sorted")).hexdigest()[:32]
