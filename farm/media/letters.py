"""Texts as masks, and where on a picture they stand.

Rules of this file:
- every character is drawn once, by itself, as a mask of 8 bits; a text is masks side by side. Digits are of
  one width, so that nothing moves when they change;
- text is as people see it: upright where the picture is to be shown turned, and not stretched with its
  pixels;
- a text and the box around it are whole blocks of pixels, so that none shares its colour with what is beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, features

from farm.burnin import font_sha256
from farm.errors import UsageError
from farm.media.turn import turn_index
from farm.paths import printable
from farm.settings import BurnSettings
from farm.source import Rational, SourceIndex

Mask = NDArray[np.uint8]

_OPAQUE = 255
_MARGIN_PERCENT = 3
_LETTER_PIXELS_MIN = 6
#: What a font draws for a character that it lacks is what it draws for this one, which is none.
_NO_CHARACTER = "\uffff"


def drawing_identity() -> str:
    """What the letters depend on beside the font."""
    return f"Pillow-{PIL.__version__} FreeType-{features.version_module('freetype2')}"


class Rect(NamedTuple):
    """Pixels: the left upper corner, and how many."""

    x: int
    y: int
    width: int
    height: int

    def overlaps(self, other: Rect) -> bool:
        across = self.x < other.x + other.width and other.x < self.x + self.width
        return across and self.y < other.y + other.height and other.y < self.y + self.height


class Letters:
    """The characters of a font, of one size."""

    def __init__(self, burn: BurnSettings, pixels: int, pixel_aspect: Rational) -> None:
        """``pixel_aspect``: width to height of the picture's pixels. Raises UsageError for a bad font."""
        self._font = _font(burn, pixels)
        self._font_name = printable(burn.font_path) or "Pillow's own font"
        self._aspect = pixel_aspect
        ascent, descent = self._font.getmetrics()
        self.height = ascent + descent
        self._masks: dict[str, Mask] = {}
        self._missing = self._drawn(_NO_CHARACTER)
        self._digit_width = max(self._drawn(digit).shape[1] for digit in "0123456789")

    def mask(self, text: str) -> Mask:
        """All are of one height."""
        return np.concatenate([self._of(character) for character in text], axis=1)

    def width(self, text: str) -> int:
        return sum(self._of(character).shape[1] for character in text)

    def narrowed(self, pixels: int) -> int:
        """How many of the picture's pixels are as wide as so many are high."""
        width, height = self._aspect
        return (2 * pixels * height + width) // (2 * width)

    def check(self, text: str, where: str) -> None:
        """Raises UsageError for the first character that the font lacks."""
        for character in dict.fromkeys(text):
            if not character.isspace() and np.array_equal(self._drawn(character), self._missing):
                raise UsageError(
                    f"{where}: {self._font_name} has no {character} (U+{ord(character):04X}); name a font "
                    "that has it with --burn-font"
                )

    def _of(self, character: str) -> Mask:
        found = self._masks.get(character)
        if found is None:
            found = self._drawn(character)
            if character in "0123456789":
                space = self._digit_width - found.shape[1]
                found = np.pad(found, ((0, 0), (space // 2, space - space // 2)))
            self._masks[character] = found
        return found

    def _drawn(self, character: str) -> Mask:
        left, _, right, _ = self._font.getbbox(character)
        before = max(0, -int(np.floor(left)))
        width = max(1, before + int(np.ceil(max(right, self._font.getlength(character)))))
        image = Image.new("L", (width, self.height))
        ImageDraw.Draw(image).text((before, 0), character, fill=_OPAQUE, font=self._font)
        narrowed = max(1, self.narrowed(width))
        if narrowed != width:
            image = image.resize((narrowed, self.height), Image.Resampling.BOX)
        return np.array(image, dtype=np.uint8)


def _font(burn: BurnSettings, pixels: int) -> ImageFont.FreeTypeFont:
    """Laid out by Pillow itself: libraqm would depend on what else is on a machine."""
    path = Path(burn.font_path)
    if burn.font_path and font_sha256(path) != burn.font_sha256:
        raise UsageError(f"--burn-font {printable(path)} is not the file that the run began with")
    try:
        font = ImageFont.truetype(str(path), pixels) if burn.font_path else ImageFont.load_default(pixels)
        assert isinstance(font, ImageFont.FreeTypeFont)
        return font.font_variant(layout_engine=ImageFont.Layout.BASIC)
    except (OSError, ValueError) as error:
        raise UsageError(f"--burn-font {printable(path)} can't be used as a font: {error}") from error


class Page:
    """Where texts stand on the pictures of a job, as they are seen and as they are stored."""

    def __init__(
        self, index: SourceIndex, burn: BurnSettings, size: tuple[int, int], block: tuple[int, int]
    ) -> None:
        """``size``: width and height of the pictures as they are stored; ``block``: of what shares a sample.
        Raises UsageError."""
        try:
            upright = turn_index(index)
        except UsageError:
            raise UsageError(
                f"no text can be burnt into {printable(index.path)}: it is to be shown turned by something "
                "else than quarter turns"
            ) from None
        self._turn = upright.turn if index.display_matrix else ""
        self._stored, self._stored_block = size, block
        crossed = self._turn.startswith("transpose")
        self.width, self.height = size[::-1] if crossed else size
        self._block = block[::-1] if crossed else block
        self._lines = burn.lines
        pixels = max(_LETTER_PIXELS_MIN, round(burn.size[0] * self.height / burn.size[1]))
        self.letters = Letters(burn, pixels, upright.sample_aspect_ratio or (1, 1))
        self._padding = self.letters.narrowed(self.letters.height // 4), self.letters.height // 8
        margin = min(self.width, self.height) * _MARGIN_PERCENT // 100
        self._margin = margin // max(block) * max(block)

    def framed(self, text: Mask) -> Mask:
        """With the box around it, in whole blocks."""
        (pad_x, pad_y), (across, down) = self._padding, self._block
        height, width = text.shape
        more_x, more_y = -(width + 2 * pad_x) % across, -(height + 2 * pad_y) % down
        return np.pad(text, ((pad_y, pad_y + more_y), (pad_x, pad_x + more_x)))

    def check(self, samples: Sequence[Sequence[str]]) -> None:
        """Raises UsageError if one of a line's ``samples`` lacks a letter, or doesn't fit into the picture
        beside those of the other lines."""
        widest: list[Rect] = []
        for line, (texts, entry) in enumerate(zip(samples, self._lines, strict=True)):
            where = f"--burn-text {printable(entry.text)}"
            self.letters.check("".join(texts), where)
            width = max(self.letters.width(text) for text in texts)
            mask = self.framed(np.zeros((self.letters.height, width), np.uint8))
            (across, down), (height, width) = self._block, mask.shape
            rows = sum(other.place == entry.place for other in self._lines)
            if width > self.width // across * across or rows * height > self.height // down * down:
                raise UsageError(
                    f"{where}: this is {width}x{rows * height} pixels of a picture of {self.width}x"
                    f"{self.height}: make it smaller with --burn-size, or shorter"
                )
            widest.append(self.seen(line, mask))
        self._check_apart(widest)

    def _check_apart(self, widest: Sequence[Rect]) -> None:
        for line, rect in enumerate(widest):
            for before in range(line):
                if rect.overlaps(widest[before]):
                    one, two = (f"{printable(self._lines[n].text)}" for n in (before, line))
                    raise UsageError(
                        f"the burnt-in texts {one} ({self._lines[before].place}) and {two} "
                        f"({self._lines[line].place}) would overlap: make them smaller with --burn-size, or "
                        "move one"
                    )

    def seen(self, line: int, mask: Mask) -> Rect:
        """Where that text of a line, with its box, is on the picture that is seen. Lines at one place stand
        one below the other."""
        place = self._lines[line].place
        fellows = [number for number, entry in enumerate(self._lines) if entry.place == place]
        height, width = mask.shape
        left, top = self.width - width, self.height - height * len(fellows)
        x = self._margin if "left" in place else left - self._margin if "right" in place else left // 2
        y = self._margin if "top" in place else top - self._margin if "bottom" in place else top // 2
        x, y = min(max(0, x), left), min(max(0, y), top)
        return Rect(x, y + height * fellows.index(line), width, height)

    def stored(self, mask: Mask, seen: Rect) -> tuple[Mask, Rect]:
        """The same on the picture as it is stored, moved to where blocks begin."""
        turned = _TURNED[self._turn](mask)
        right, below = self.width - seen.x - seen.width, self.height - seen.y - seen.height
        x, y = {
            "": (seen.x, seen.y),
            "hflip": (right, seen.y),
            "vflip": (seen.x, below),
            "hflip,vflip": (right, below),
            "transpose=clock": (seen.y, right),
            "transpose=cclock": (below, seen.x),
            "transpose=cclock_flip": (seen.y, seen.x),
            "transpose=clock_flip": (below, right),
        }[self._turn]
        height, width = turned.shape
        across, down = self._stored_block
        x = min(x, (self._stored[0] // across * across) - width) // across * across
        y = min(y, (self._stored[1] // down * down) - height) // down * down
        return turned, Rect(x, y, width, height)


#: What undoes each of the turns that make a picture upright (farm.media.turn).
_TURNED: dict[str, Callable[[Mask], Mask]] = {
    "": lambda mask: mask,
    "hflip": np.fliplr,
    "vflip": np.flipud,
    "hflip,vflip": lambda mask: np.rot90(mask, 2),
    "transpose=clock": lambda mask: np.rot90(mask, 1),
    "transpose=cclock": lambda mask: np.rot90(mask, -1),
    "transpose=cclock_flip": np.transpose,
    "transpose=clock_flip": lambda mask: np.transpose(np.rot90(mask, 2)),
}
