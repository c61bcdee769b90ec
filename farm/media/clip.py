"""The demo's own clip: a moving picture that is pretty, cheap and honest about which frame it is.

Every frame carries its number twice: in large digits for people, and as a strip of black and white cells
along the bottom for tests, which survives any sensible encoder. Once a second a lamp lights while a tone
sounds, so that sound and picture can be told to belong together by eye, ear and measurement.

Nothing is drawn per frame that could be drawn once: the picture is a window that wanders over a texture, the
digits are bitmaps. Measured: 2,000 frames of 320x180 with sound in about 3 seconds of one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
from av.video.plane import VideoPlane
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Plane = NDArray[np.uint8]

SAMPLE_RATE = 48_000
_NUMBER_BITS = 24
_CELLS = _NUMBER_BITS + 2  # the number, its parity, and one cell that is always white
_AUDIO_BLOCK = 1024
_LAMP_SECONDS = Fraction(1, 10)
_BLACK, _WHITE = 16, 235


def make_clip(
    path: Path,
    *,
    frames: int,
    width: int = 320,
    height: int = 180,
    fps: int = 30,
    gop: int | None = None,
    audio: bool = True,
) -> None:
    """Write an mp4 (H.264, and AAC if ``audio``) of ``frames`` numbered frames, whatever the file's name.

    ``gop``: frames from keyframe to keyframe, two seconds by default. Raises ValueError for a size that is
    odd or too small for its number, OSError if the file can't be written.
    """
    if width % 2 or height % 2 or width < 4 * _CELLS or height < 64:
        raise ValueError(f"a clip of {width}x{height}: sizes must be even and at least {4 * _CELLS}x64")
    if not 0 < frames < 1 << _NUMBER_BITS:
        raise ValueError(f"a clip of {frames} frames: there must be 1 to {(1 << _NUMBER_BITS) - 1}")
    with av.open(f"file:{path}", "w", format="mp4") as output:
        video = output.add_stream("libx264", rate=fps, options={"preset": "veryfast", "crf": "26"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.gop_size = gop or 2 * fps
        video.thread_count = 1
        sound = output.add_stream("aac", rate=SAMPLE_RATE, layout="mono") if audio else None
        tone = _tone(Fraction(frames, fps)) if audio else iter(())
        played = 0
        for number, frame in enumerate(_pictures(frames, width, height, fps)):
            output.mux(video.encode(frame))
            while sound is not None and played * fps <= number * SAMPLE_RATE:
                block = next(tone, None)
                if block is None:
                    break
                played += block.samples
                output.mux(sound.encode(block))
        output.mux(video.encode(None))
        if sound is not None:
            for block in tone:
                output.mux(sound.encode(block))
            output.mux(sound.encode(None))


def read_number(frame: av.VideoFrame) -> int:
    """The number that ``make_clip`` wrote into a frame, from the strip of cells.

    Raises ValueError if the strip isn't there or doesn't add up.
    """
    luma = frame.to_ndarray(format="gray")
    cell = _cell(frame.width)
    row = luma[frame.height - cell // 2 - 1]
    bits = [int(row[cell * index + cell // 2]) > 128 for index in range(_CELLS)]
    number = sum(bit << index for index, bit in enumerate(bits[:_NUMBER_BITS]))
    if not bits[-1] or bits[_NUMBER_BITS] != bool(number.bit_count() % 2):
        raise ValueError("the frame carries no number")
    return number


class _Sprites(NamedTuple):
    """What is pasted into the luma plane, drawn once: a picture of the digits 0 to 9, and the lamp."""

    digits: tuple[Plane, ...]
    lamp: NDArray[np.bool_]


def _pictures(frames: int, width: int, height: int, fps: int) -> Iterator[av.VideoFrame]:
    luma, blue, red = _textures(width, height)
    sprites = _sprites(height)
    for number in range(frames):
        seconds = number / fps
        y_plane = _window(luma, seconds * 0.21, width, height).copy()
        _draw_number(y_plane, number, len(str(frames - 1)), sprites)
        _draw_lamp(y_plane, Fraction(number, fps) % 1 < _LAMP_SECONDS, sprites)
        _draw_strip(y_plane, number)
        frame = av.VideoFrame(width, height, "yuv420p")
        _fill(frame.planes[0], y_plane)
        _fill(frame.planes[1], _window(blue, seconds * 0.13, width // 2, height // 2))
        _fill(frame.planes[2], _window(red, seconds * -0.17, width // 2, height // 2))
        frame.pts, frame.time_base = number, Fraction(1, fps)
        yield frame


def _textures(width: int, height: int) -> tuple[Plane, Plane, Plane]:
    """Smooth textures twice the size of what is seen of them, that repeat after half their size."""

    def waves(width: int, height: int, low: int, high: int, across: int, down: int) -> Plane:
        y, x = np.mgrid[0 : 2 * height, 0 : 2 * width]
        x_angle, y_angle = 2 * np.pi * x / width, 2 * np.pi * y / height
        sums = np.sin(across * x_angle + y_angle) + np.sin(x_angle - down * y_angle)
        sums += np.sin(across * x_angle) * np.cos(down * y_angle)
        return np.asarray(low + (sums + 3) / 6 * (high - low), dtype=np.uint8)

    return (
        waves(width, height, 40, 170, 2, 1),
        waves(width // 2, height // 2, 90, 190, 1, 1),
        waves(width // 2, height // 2, 80, 180, 1, 2),
    )


def _window(texture: Plane, turns: float, width: int, height: int) -> Plane:
    """What is seen of a texture after so many turns around it: a circle, so that the picture never jumps."""
    x = round((np.sin(turns * np.pi) + 1) / 2 * width)
    y = round((np.cos(turns * np.pi) + 1) / 2 * height)
    return texture[y : y + height, x : x + width]


def _sprites(height: int) -> _Sprites:
    size = height // 3
    font = ImageFont.load_default(size)
    boxes = [font.getbbox(str(digit)) for digit in range(10)]
    cell_width = int(max(box[2] for box in boxes)) + 2
    cell_height = int(max(box[3] for box in boxes)) + size // 6
    digits = []
    for digit in range(10):
        image = Image.new("L", (cell_width, cell_height), _BLACK)
        ImageDraw.Draw(image).text((1, 0), str(digit), fill=_WHITE, font=font)
        digits.append(np.array(image, dtype=np.uint8))
    radius = height // 14
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    return _Sprites(tuple(digits), np.asarray(x * x + y * y <= radius * radius))


def _draw_number(luma: Plane, number: int, places: int, sprites: _Sprites) -> None:
    picture = np.hstack([sprites.digits[int(digit)] for digit in str(number).zfill(places)])
    height, width = (min(a, b) for a, b in zip(picture.shape, luma.shape, strict=True))
    top, left = (luma.shape[0] - height) // 2, (luma.shape[1] - width) // 2
    luma[top : top + height, left : left + width] = picture[:height, :width]


def _draw_lamp(luma: Plane, lit: bool, sprites: _Sprites) -> None:
    size = sprites.lamp.shape[0]
    margin = size // 2
    corner = luma[margin : margin + size, luma.shape[1] - margin - size : luma.shape[1] - margin]
    corner[sprites.lamp] = _WHITE if lit else _BLACK


def _draw_strip(luma: Plane, number: int) -> None:
    cell = _cell(luma.shape[1])
    bits = [number >> index & 1 for index in range(_NUMBER_BITS)]
    bits += [number.bit_count() % 2, 1]
    row = np.repeat(np.array(bits, dtype=np.uint8) * (_WHITE - _BLACK) + _BLACK, cell)
    luma[-cell:, : row.size] = row


def _cell(width: int) -> int:
    """Side of one cell of the strip in pixels."""
    return width // _CELLS


def _fill(plane: VideoPlane, picture: Plane) -> None:
    rows = np.frombuffer(memoryview(plane), dtype=np.uint8).reshape(plane.height, plane.line_size)
    rows[:, : plane.width] = picture


def _tone(seconds: Fraction) -> Iterator[av.AudioFrame]:
    """A beep while the lamp is lit, and a quiet hum between, in blocks, ``seconds`` long in all."""
    samples, lit_samples = round(seconds * SAMPLE_RATE), round(_LAMP_SECONDS * SAMPLE_RATE)
    for start in range(0, samples, _AUDIO_BLOCK):
        at = np.arange(start, min(start + _AUDIO_BLOCK, samples))
        beep = np.sin(2 * np.pi * 880 * at / SAMPLE_RATE) * (at % SAMPLE_RATE < lit_samples)
        hum = np.sin(2 * np.pi * 110 * at / SAMPLE_RATE)
        wave = np.asarray(0.4 * beep + 0.03 * hum, dtype=np.float32)
        frame = av.AudioFrame.from_ndarray(wave.reshape(1, -1), format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, start, Fraction(1, SAMPLE_RATE)
        yield frame
