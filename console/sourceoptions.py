"""The options of what is rendered: what is taken of the input, how it is encoded, and what comes out.

Rule: a value that can't be is refused here, with the option's name and what would be right; what can't go
together is refused here where the options alone tell, else by the probe (farm.media.tasks).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import typer

from farm.cuts import read_cuts
from farm.errors import UsageError
from farm.paths import printable
from farm.rates import parse_rate
from farm.settings import (
    CONTAINERS,
    IMAGE_ENCODERS,
    IMAGES,
    FilterSettings,
    GridSettings,
    ImageOutput,
    JobSettings,
    SequenceSettings,
    SourceSettings,
    TrimSettings,
    VideoSettings,
    not_written,
)
from farm.settings import Audio as AudioChoice

DEFAULT_ENCODER = "libx264"

Encoder = Annotated[
    str, typer.Option("-e", "--encoder", help="Any video encoder PyAV ships: libx264, libx265, ffv1, …")
]
Crf = Annotated[float | None, typer.Option("--crf", help="Constant quality; lower is better.")]
Preset = Annotated[str | None, typer.Option("--preset", help="The encoder's preset.")]
PixFmt = Annotated[
    str | None,
    typer.Option(
        "--pix-fmt", help="Pixel format; default: the source's; of RGB in H.264, HEVC, VP9 yuv420p."
    ),
]
EncoderOption = Annotated[
    list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="Any option of the encoder.")
]
Threads = Annotated[
    int,
    typer.Option("--threads", min=1, max=64, help="Threads of each encoder; another number, other bytes."),
]
Audio = Annotated[
    str,
    typer.Option(
        "--audio",
        help="auto: copied where the container allows, else encoded once; copy, aac, opus, flac or none.",
    ),
]
VideoStream = Annotated[
    int | None,
    typer.Option("--video-stream", min=0, metavar="N", help="Render the video in stream N of the input."),
]
Fps = Annotated[
    str | None,
    typer.Option(
        "--fps",
        metavar="RATE",
        help="A constant rate: 30, 23.976, 30000/1001; default: every frame's time, 24 for images.",
    ),
]
Rotate = Annotated[
    str, typer.Option("--rotate", help="A rotated picture: keep it so marked, or apply the rotation to it.")
]
OnSizeChange = Annotated[
    str,
    typer.Option("--on-size-change", help="Pictures of another size than the first: scale or refuse."),
]
OnError = Annotated[
    str,
    typer.Option("--on-error", help="Damage in the input: skip (said, exit code 0) or stop (exit code 3)."),
]
Part = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="LENGTH",
        help="Length of a part: 96 frames or 2s (default 4s); '48,fixed' doesn't snap to keyframes.",
    ),
]
CutsFile = Annotated[
    Path | None,
    typer.Option(
        "--cuts",
        metavar="FILE",
        help="Where parts must begin: frames of the input, one a line, or Av1an's scenes.json.",
    ),
]
OnGap = Annotated[
    str,
    typer.Option("--on-gap", help="A missing number in a sequence: fail, hold the image before, or skip."),
]
Conform = Annotated[
    str | None,
    typer.Option("--conform", metavar="WxH", help="Scale all images of a sequence to that size."),
]
Start = Annotated[
    str | None,
    typer.Option("--start", metavar="TIME", help="Begin there: 12.5, 00:01:30.500, or a frame, 120f."),
]
Stop = Annotated[str | None, typer.Option("--stop", metavar="TIME", help="Stop before that time or frame.")]
Frames = Annotated[
    str | None,
    typer.Option("--frames", metavar="A:B", help="From frame A to before frame B, counted from 0."),
]
Every = Annotated[int, typer.Option("--every", min=1, metavar="N", help="Of those, every N-th frame.")]
StartNumber = Annotated[
    int | None,
    typer.Option("--start-number", min=0, help="First number of an output of images (default: the input's)."),
]
SkipExisting = Annotated[
    bool, typer.Option("--skip-existing", help="Leave out the images of the output that are there already.")
]

Extension = Annotated[
    str | None,
    typer.Option("--extension", metavar="EXT", help="Of the outputs in a folder; default: the input's."),
]
Filters = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="FILTERS",
        help="FFmpeg's filters, in its syntax: scale=640:-2,fade=t=in:d=1. docs/filters.md lists them.",
    ),
]
OnePass = Annotated[
    bool,
    typer.Option("--one-pass", help="Filters that need the whole film: one part, rendered by one worker."),
]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)s\Z", re.ASCII)
_IMAGE_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})\Z", re.ASCII)
_FRAMES = re.compile(r"[1-9]\d{0,8}\Z", re.ASCII)


def one_input(argument: Path | None, option: Path | None) -> Path:
    if argument is not None and option is not None and argument != option:
        raise UsageError(f"two inputs are given: {argument} and {option}")
    chosen = argument or option
    if chosen is None:
        raise UsageError("say what to render: uneven render INPUT -o OUTPUT")
    return chosen


#: What people call a codec, and the encoder of it that PyAV ships.
ENCODERS_OF = {
    "h264": "libx264",
    "x264": "libx264",
    "hevc": "libx265",
    "h265": "libx265",
    "x265": "libx265",
    "av1": "libsvtav1",
    "svtav1": "libsvtav1",
    "svt-av1": "libsvtav1",
    "vp9": "libvpx-vp9",
    "vp8": "libvpx",
    "prores": "prores_ks",
    "dnxhr": "dnxhd",
}


def image_encoder(output: Path, encoder: str) -> str:
    """Of an output of images: their extension says it. Raises UsageError for another that was typed."""
    fitting = IMAGE_ENCODERS[output.suffix.lower()]
    if encoder not in (DEFAULT_ENCODER, fitting):
        raise UsageError(f"-e {encoder}: images with the extension {output.suffix} are encoded by {fitting}")
    return fitting


def job_settings(
    output: Path,
    encoder: str,
    crf: float | None,
    preset: str | None,
    pix_fmt: str | None,
    options: Sequence[str],
    threads: int,
    audio: str,
    part: str | None,
    source: SourceSettings,
    cuts: Path | None = None,
) -> JobSettings:
    suffix = output.suffix.lower()
    container = CONTAINERS.get(suffix) or (IMAGES if suffix in IMAGE_ENCODERS else None)
    if container is None:
        raise UsageError(
            f"{output.name}: the container follows from the extension; use {', '.join(sorted(CONTAINERS))}, "
            f"or for numbered images .png, .jpg or .tif{not_written(suffix)}"
        )
    if container == IMAGES:
        encoder = image_encoder(output, encoder)
    chosen = _one_of("audio", audio, get_args(AudioChoice))
    if container == IMAGES and chosen not in ("auto", "none"):
        raise UsageError(f"--audio {audio}: images hold no sound; leave it out, or write a video")
    for name, value in (("--encoder", encoder), ("--preset", preset), ("--pix-fmt", pix_fmt)):
        _check_utf8(name, value or "")
    pairs: dict[str, str] = {}
    for option in options:
        _check_utf8("--option", option)
        key, equals, value = option.partition("=")
        if not key or not equals:
            raise UsageError(f"--option {option}: give KEY=VALUE")
        if pairs.setdefault(key, value) != value:
            raise UsageError(
                f"--option {key}={pairs[key]} and --option {option} are both given: leave one out"
            )
    video = VideoSettings(
        encoder=ENCODERS_OF.get(encoder.lower(), encoder),
        crf=crf,
        preset=preset,
        pix_fmt=pix_fmt,
        options=dict(sorted(pairs.items())),
        threads=threads,
    )
    return JobSettings(
        video=video,
        grid=with_cuts(grid_settings(part), cuts),
        source=source,
        audio=chosen,
        container=container,
    )


def source_settings(
    stream: int | None, fps: str | None, rotate: str, on_size_change: str, on_error: str
) -> SourceSettings:
    """Raises UsageError."""
    return SourceSettings(
        stream=stream,
        fps=None if fps is None else parse_rate(fps),
        rotate=_one_of("rotate", rotate, ("keep", "apply")),
        on_size_change=_one_of("on-size-change", on_size_change, ("scale", "refuse")),
        on_error=_one_of("on-error", on_error, ("skip", "stop")),
    )


def _one_of(name: str, value: str, choices: Sequence[str]) -> Any:
    if value not in choices:
        raise UsageError(f"--{name} {value}: choose {', '.join(choices[:-1])} or {choices[-1]}")
    return value


def taking(
    settings: JobSettings,
    on_gap: str,
    conform: str | None,
    trim: TrimSettings,
    start_number: int | None,
) -> JobSettings:
    """Settings with what is taken of the input, and how that is numbered. Raises UsageError."""
    if start_number is not None and settings.container != IMAGES:
        raise UsageError("--start-number is for an output of images, such as frame_%05d.png")
    size = _IMAGE_SIZE.match(conform) if conform is not None else None
    if conform is not None and size is None:
        raise UsageError(f"--conform {conform}: give width and height, such as 1920x1080")
    sequence = SequenceSettings(
        on_gap=_one_of("on-gap", on_gap, ("fail", "hold", "skip")),
        conform=None if size is None else (int(size[1]), int(size[2])),
    )
    numbering = ImageOutput(start_number=start_number)
    return msgspec.structs.replace(settings, sequence=sequence, trim=trim, images=numbering)


def filtering(settings: JobSettings, filters: str | None, one_pass: bool) -> JobSettings:
    """Settings with the filters. Raises UsageError."""
    if filters is None:
        if one_pass:
            raise UsageError("--one-pass is for --filter: without filters parts are exact anyway")
        return settings
    if not filters.strip():
        raise UsageError("--filter is empty: give filters such as scale=640:-2,hflip")
    _check_utf8("--filter", filters)
    chosen = FilterSettings(graph=filters.strip(), one_pass=one_pass, folder=_here())
    return msgspec.structs.replace(settings, filters=chosen)


def _here() -> str:
    """The present folder; empty if it is gone, or its name can't be kept in a journal."""
    try:
        here = str(Path.cwd())
    except OSError:
        return ""
    return here if _is_utf8(here) else ""


def _check_utf8(option: str, value: str) -> None:
    """What is no text can't be kept in a journal. Raises UsageError."""
    if not _is_utf8(value):
        raise UsageError(f"{option} {printable(value)} is not valid UTF-8")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def grid_settings(part: str | None) -> GridSettings:
    """``--part``: ``96``, ``2s``, ``48,fixed``. Raises UsageError."""
    if part is None:
        return GridSettings()
    length, _, how = part.partition(",")
    if how not in ("", "fixed"):
        raise UsageError(f"--part {part}: after the comma only 'fixed' makes sense")
    fixed = how == "fixed"
    if _FRAMES.match(length):
        return GridSettings(frames=int(length), seconds=None, fixed=fixed)
    seconds = _DURATION.match(length)
    if seconds and 0 < float(seconds[1]) <= 3600:
        return GridSettings(frames=None, seconds=float(seconds[1]), fixed=fixed)
    raise UsageError(f"--part {part}: give frames (96) or seconds (2s), above 0")


def with_cuts(grid: GridSettings, path: Path | None) -> GridSettings:
    """``--cuts``: the cuts themselves, for a run must not depend on the file. Raises UsageError."""
    if path is None:
        return grid
    cuts = read_cuts(path)
    return msgspec.structs.replace(grid, cuts=cuts.frames, cuts_made_for=cuts.made_for)
