"""``--burn-timecode`` and ``--burn-text``: what is written into every picture. farm.media.burn draws it.

Rules of this file:
- what stands in a picture is a function of the input and the settings alone: whoever renders it, in whatever
  part, writes the same;
- numbers and times are those of the input, whatever is taken of it;
- a field that isn't known, and a character that can't be drawn one beside the other from left to right, are
  refused, never left out.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from string import Formatter

from farm.errors import UsageError
from farm.paths import check_name, printable, reason
from farm.settings import BurnSettings, BurnText, JobSettings
from farm.source import SourceIndex
from farm.timecode import clock_time, is_label_of, labels_for, parse_label

PLACES = ("top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right")
TIMECODE_PLACE = "bottom"
TEXT_PLACE = "top-left"
FIELDS = ("frame", "time", "timecode", "file", "part")

_COLORS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "gray": (128, 128, 128),
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "cyan": (0, 255, 255),
    "magenta": (255, 0, 255),
    "orange": (255, 165, 0),
}
_HEX = re.compile(r"#[0-9a-fA-F]{6}\Z", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)%\Z", re.ASCII)
#: How like a place's name what stands before a bar must be, to be taken for it misspelt and not for text.
_MISSPELT = 0.82
_FONT_BYTES_MAX = 256 << 20


def burn_settings(
    timecode: str | None,
    texts: Sequence[str],
    *,
    size: str | None = None,
    font: Path | None = None,
    color: str | None = None,
    box: str | None = None,
    start: str | None = None,
) -> BurnSettings:
    """What is typed, as settings. Raises UsageError."""
    lines = [line for text in texts for line in _lines(text)]
    if timecode is not None:
        if timecode not in PLACES:
            raise UsageError(f"--burn-timecode {timecode}: choose {', '.join(PLACES[:-1])} or {PLACES[-1]}")
        lines.append(BurnText(timecode, "{timecode}"))
    styled = {"size": size, "font": font, "color": color, "box": box}
    idle = [f"--burn-{name}" for name, value in styled.items() if value is not None and not lines]
    if start is not None and not any("timecode" in _fields(line.text) for line in lines):
        idle.append("--timecode-start")
    if idle:
        raise UsageError(f"{idle[0]} is for text that is burnt in: add --burn-timecode or --burn-text")
    if start is not None and parse_label(start) is None:
        raise UsageError(f"--timecode-start {start}: give hh:mm:ss:ff, or hh:mm:ss;ff for drop-frame")
    default = BurnSettings()
    return BurnSettings(
        lines=tuple(lines),
        size=default.size if size is None else _size(size),
        font_path="" if font is None else str(font.absolute()),
        font_sha256="" if font is None else font_sha256(font),
        color=default.color if color is None else _color(color, "--burn-color"),
        box=default.box if box is None else _box(box),
        timecode_start=start,
    )


def font_sha256(path: Path) -> str:
    """Raises UsageError if the file can't be read."""
    check_name(path, UsageError)
    try:
        if path.stat().st_size > _FONT_BYTES_MAX:
            raise UsageError(f"--burn-font {printable(path)} is too large for a font")
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"--burn-font {printable(path)} can't be read: {reason(error)}") from error


def _lines(option: str) -> list[BurnText]:
    """``TEXT`` or ``PLACE|TEXT``, of one line or several."""
    place, bar, text = option.partition("|")
    if not bar or place not in PLACES:
        if bar and (near := get_close_matches(place.lower(), PLACES, 1, _MISSPELT)):
            raise UsageError(
                f"--burn-text {printable(option)}: {printable(place)} is no place; did you mean {near[0]}? "
                f"To draw it, name a place before it: {TEXT_PLACE}|{printable(option)}"
            )
        place, text = TEXT_PLACE, option
    lines = unicodedata.normalize("NFC", text).split("\n")
    for line in lines:
        where = f"--burn-text {printable(line)}"
        _check_fields(line, where)
        check_characters("".join(literal for literal, _ in _pieces(line)), where)
        if not line.strip():
            raise UsageError(f"--burn-text {printable(option)}: there is no text to draw")
    return [BurnText(place, line) for line in lines]


def _check_fields(line: str, where: str) -> None:
    try:
        pieces = list(Formatter().parse(line))
    except ValueError:
        raise UsageError(f"{where}: a brace begins or ends a field; write {{{{ or }}}} for itself") from None
    for _, field, format_spec, conversion in pieces:
        if field is None:
            continue
        if field not in FIELDS:
            raise UsageError(
                f"{where}: there is no field {{{printable(field)}}}; there are "
                f"{', '.join(f'{{{name}}}' for name in FIELDS)}"
            )
        if format_spec or conversion:
            raise UsageError(f"{where}: {{{field}}} takes nothing beside its name")


def check_characters(text: str, where: str) -> None:
    """Raises UsageError for a character that doesn't stand by itself, from left to right."""
    for character in text:
        kind, direction = unicodedata.category(character), unicodedata.bidirectional(character)
        code = f"U+{ord(character):04X}"
        if direction in ("R", "AL", "AN"):
            raise UsageError(
                f"{where}: {character} ({code}) is written from right to left, and text is drawn from left "
                "to right only"
            )
        if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            raise UsageError(f"{where}: {code} is no character that can be drawn")
        if kind.startswith("M"):
            raise UsageError(
                f"{where}: {code} joins the character before it, and every character is drawn by itself"
            )


def _pieces(line: str) -> list[tuple[str, str | None]]:
    return [(literal, field) for literal, field, _, _ in Formatter().parse(line)]


def _fields(line: str) -> set[str | None]:
    return {field for _, field in _pieces(line)}


def _size(text: str) -> tuple[int, int]:
    found = _PERCENT.match(text)
    share = Fraction(found[1]) / 100 if found else Fraction(0)
    if not Fraction(1, 200) <= share <= Fraction(1, 2):
        raise UsageError(f"--burn-size {text}: give a share of the picture's height, 0.5% to 50%")
    return share.numerator, share.denominator


def _color(text: str, option: str) -> tuple[int, int, int]:
    if text in _COLORS:
        return _COLORS[text]
    if _HEX.match(text):
        red, green, blue = bytes.fromhex(text[1:])
        return red, green, blue
    raise UsageError(f"{option} {text}: give #rrggbb or one of {', '.join(_COLORS)}")


def _box(text: str) -> tuple[int, int, int, int] | None:
    """``black``, ``#202020@50%``, ``none``."""
    if text == "none":
        return None
    name, at, percent = text.partition("@")
    found = _PERCENT.match(percent if at else "60%")
    if found is None or not 0 < Fraction(found[1]) <= 100:
        raise UsageError(f"--burn-box {text}: after the @ give an opacity, 1% to 100%; or give none")
    return *_color(name, "--burn-box"), round(Fraction(found[1]) * 255 / 100)


class Wording:
    """What every line says in every frame of a job."""

    def __init__(self, index: SourceIndex, settings: JobSettings) -> None:
        """Raises UsageError for a start of the timecode that can't be at the film's rate, and for the name
        of a file that can't be drawn."""
        burn = settings.burn
        self.lines = burn.lines
        self._index = index
        self._pieces = [_pieces(line.text) for line in self.lines]
        used: set[str | None] = set().union(*(_fields(line.text) for line in self.lines))
        self._tick = Fraction(*index.time_base)
        self._names = self._file_names() if "file" in used else []
        if index.images:
            self._numbers: Sequence[int] = [image.number for image in index.images]
            self._places = len(str(max(self._numbers)))
        else:
            self._numbers = index.input_numbers
            self._places = len(str((index.input_frames or index.frames) - 1))
        rate = index.frame_rate and Fraction(*index.frame_rate) * settings.trim.every
        self._rate = rate if "timecode" in used else None
        self._labels = labels_for(
            index.pts if "timecode" in used else (),
            index.first_shown,
            self._tick,
            rate,
            burn.timecode_start,
            index.timecode,
        )

    @property
    def warnings(self) -> list[str]:
        """What is to be said, a sentence each."""
        found = self._index.timecode
        if self._rate is None or not found or is_label_of(found, self._rate):
            return []
        return [
            f"its timecode, {printable(found)}, is none at its rate: the one that is burnt in begins at "
            f"{self._labels.start}; --timecode-start sets another"
        ]

    def text(self, line: int, frame: int, part: int) -> str:
        """Of frame ``frame`` of the job, which is in part ``part``."""
        said = []
        for literal, field in self._pieces[line]:
            said.append(literal)
            if field is not None:
                said.append(self._value(field, frame, part))
        return "".join(said)

    def samples(self, line: int) -> list[str]:
        """Texts of which one is as wide as any can be, if all digits are of one width; all characters that
        can come but for digits are in them."""
        frames = self._index.frames
        shown = self._names if "file" in _fields(self.lines[line].text) else [""]
        places = {name: frame for frame, name in enumerate(shown)}
        at = sorted({*places.values(), frames - 1})
        return [self.text(line, frame, frames) for frame in at]

    def _value(self, field: str, frame: int, part: int) -> str:
        if field == "frame":
            return f"{self._numbers[frame]:0{self._places}}"
        if field == "time":
            return clock_time((self._index.pts[frame] - self._index.first_shown) * self._tick)
        if field == "timecode":
            return self._labels.label(self._index.pts[frame])
        if field == "file":
            return self._names[frame] if len(self._names) > 1 else self._names[0]
        return str(part)

    def _file_names(self) -> list[str]:
        """Of each frame's image, or of the one input."""
        names = [image.name for image in self._index.images] or [Path(self._index.path).name]
        drawn = [unicodedata.normalize("NFC", printable(name)) for name in names]
        for name in dict.fromkeys(drawn):
            check_characters(name, f"--burn-text {{file}}, which is {name}")
        return drawn
