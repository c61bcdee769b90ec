"""How the pictures of a finished file are to be shown: what its container and its codec together say of their
shape, their rotation and their colours, in words that are compared and told."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

import av
from av.video.reformatter import ColorPrimaries, ColorRange, Colorspace, ColorTrc
from av.video.stream import VideoStream

from farm.media.hdr import display_matrix
from farm.media.read import open_video

_UNSPECIFIED = 2


def looks_of(path: Path, number: int) -> dict[str, str]:
    """Of the first picture of the video in stream ``number``; empty if none can be decoded."""
    try:
        container, video = open_video(str(path.absolute()), number)
        with container:
            return next((_looks(video, frame) for frame in container.decode(video)), {})
    except av.error.FFmpegError:
        return {}


def _looks(video: VideoStream, frame: av.VideoFrame) -> dict[str, str]:
    shape = video.sample_aspect_ratio or video.codec_context.sample_aspect_ratio or 1
    colours = (
        _name(ColorRange, frame.color_range),
        _name(ColorPrimaries, frame.color_primaries),
        _name(ColorTrc, frame.color_trc),
        _name(Colorspace, frame.colorspace),
    )
    return {
        "size": f"{frame.width}x{frame.height}",
        "shape of the pixels": "{}:{}".format(*shape.as_integer_ratio()),
        "rotation": _rotation(frame),
        "colours": "/".join(colours),
    }


def _rotation(frame: av.VideoFrame) -> str:
    matrix = display_matrix(frame)
    mirrored = bool(matrix) and matrix[0] * matrix[4] - matrix[1] * matrix[3] < 0
    return f"{frame.rotation}°{' and mirrored' if mirrored else ''}"


def _name(kinds: type[IntEnum], value: int) -> str:
    try:
        return kinds(value).name.lower()
    except ValueError:
        return "unspecified" if value == _UNSPECIFIED else str(value)
