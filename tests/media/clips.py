"""Small clips for tests, made with PyAV: any codec, GOP, B-frames, frame times, and a tone beside them.

Every picture differs from every other, so that a frame in the wrong place never goes unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.audio.stream import AudioStream
from av.video.frame import PictureType
from av.video.stream import VideoStream

from farm.media.encode import EXACT_SCALING, pinned

RATE = 48_000
CORPUS = Path(os.environ.get("UNEVEN_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")


def corpus(name: str) -> Path:
    """The corpus file whose name begins with ``name`` ("S04"). Skips the test if there is no corpus."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}; set UNEVEN_CORPUS")
    (path,) = CORPUS.glob(f"{name}-*")
    return path


def picture(number: int, width: int = 64, height: int = 48, pix_fmt: str = "yuv420p") -> av.VideoFrame:
    """Picture ``number``: a pattern that moves, and a patch of noise that belongs to the number alone."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([(x * 3 + number * 5) % 256, (y * 4 + number * 2) % 256, (x + y + number) % 256], axis=-1)
    noise = np.random.default_rng(number).integers(0, 256, (height // 3, width // 3, 3))
    rgb[: height // 3, : width // 3] = noise
    frame = av.VideoFrame.from_ndarray(rgb.astype(np.uint8), format="rgb24")
    # Without exact rounding swscale's 10-bit output depends on memory it never wrote, for odd widths.
    return frame.reformat(format=pix_fmt, interpolation=EXACT_SCALING, threads=1)


def make_clip(
    path: Path,
    *,
    frames: int = 60,
    codec: str = "libx264",
    gop: int = 12,
    b_frames: int = 2,
    width: int = 64,
    height: int = 48,
    pix_fmt: str = "yuv420p",
    rate: Fraction = Fraction(25),
    time_base: Fraction | None = None,
    pts: Sequence[int] | None = None,
    audio_seconds: float = 0.0,
    audio_codec: str = "aac",
    audio_start_seconds: float = 0.0,
    options: dict[str, str] | None = None,
    container_options: dict[str, str] | None = None,
) -> Path:
    """Write a clip; its extension chooses the container. Returns ``path``.

    ``pts``: the frames' times in ``time_base`` (default ``1/rate``), for a variable frame rate; ``gop``:
    frames from keyframe to keyframe; ``audio_seconds``: how much of a tone to put beside the pictures.
    """
    clock = time_base or 1 / rate
    times = list(pts) if pts is not None else [round(n / rate / clock) for n in range(frames)]
    with av.open(f"file:{path}", "w", options=container_options or {}) as output:
        # Else x264 gives other bytes now and then, and a test that breaks the clip breaks another place.
        fixed = {"x264-params": ":".join(pinned("x264-params", 1))} if codec == "libx264" else {}
        video = output.add_stream(codec, rate=rate, options=fixed | (options or {}))
        assert isinstance(video, VideoStream)
        video.width, video.height, video.pix_fmt = width, height, pix_fmt
        context = video.codec_context
        context.time_base = video.time_base = clock
        context.gop_size = gop
        context.max_b_frames = b_frames
        context.thread_count = 1
        sound = output.add_stream(audio_codec, rate=RATE, layout="mono") if audio_seconds else None
        for number, time in enumerate(times):
            frame = picture(number, width, height, pix_fmt)
            frame.pts, frame.time_base, frame.pict_type = time, clock, PictureType.NONE
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        if sound is not None:
            assert isinstance(sound, AudioStream)
            _mux_tone(output, sound, audio_seconds, audio_start_seconds)
    return path


def _mux_tone(
    output: av.container.OutputContainer, sound: AudioStream, seconds: float, start_seconds: float
) -> None:
    total = round(seconds * RATE)
    wave = (np.sin(np.arange(total) * 2 * np.pi * 440 / RATE) * 0.3).astype(np.float32)
    fifo = av.AudioFifo()
    block = av.AudioFrame.from_ndarray(wave[None, :], format="fltp", layout="mono")
    block.sample_rate, block.pts, block.time_base = RATE, round(start_seconds * RATE), Fraction(1, RATE)
    fifo.write(block)
    while chunk := fifo.read(1024, partial=True):
        output.mux(sound.encode(chunk))
    output.mux(sound.encode(None))
