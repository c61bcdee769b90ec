"""Pure helpers that turn values into short text of a known width: durations, sizes, counts and names.

Rules of this file:
- a name from outside (file, worker, an encoder's message) goes through ``safe`` before it is shown, so that
  it is one line, can't move the cursor, and has the width that every terminal agrees on;
- widths are terminal cells; ``fit`` and ``pad`` never split a character.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Final, Literal

UNKNOWN: Final = "unknown"
#: Shown for characters that can't be shown: control, unassigned, half of a pair, of disputed width.
SUBSTITUTE: Final = "?"

#: Characters that change the width or look of the one before; terminals disagree on the outcome.
_JOINERS: Final = frozenset("\u200d\ufe0e\ufe0f\u20e3\u034f")
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_REGIONAL: Final = range(0x1F1E6, 0x1F200)
_TAGS: Final = range(0xE0000, 0xE0080)
#: Korean vowels and endings that NFC could not join to a syllable, and fillers: of no width of their own.
_UNJOINED: Final = (
    range(0x115F, 0x1200),
    range(0xD7B0, 0xD800),
    range(0x3164, 0x3165),
    range(0xFFA0, 0xFFA1),
)
#: Categories that are not drawn, or steer the terminal: control, format, surrogate, private, unassigned,
#: line and paragraph separators.
_UNDRAWN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def safe(text: str) -> str:
    """``text`` as one line of characters that terminals draw with an agreed width.

    Control characters, line ends, direction overrides and lone surrogates become ``?`` (a run of white space
    one space), emoji that are put together from several characters lose what joins them, and combining
    marks are composed where there is one character for both, else dropped.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        if char in "\t\n\r\v\f":
            shown.append(" ")
        elif char in _JOINERS or ord(char) in _SKIN_TONES or ord(char) in _TAGS:
            continue
        elif ord(char) in _REGIONAL:
            shown.append(chr(ord(char) - _REGIONAL.start + ord("A")))
        else:
            category = unicodedata.category(char)
            if category[0] == "M":
                continue  # terminals disagree on marks that no composed character holds
            undrawn = category in _UNDRAWN or any(ord(char) in block for block in _UNJOINED)
            shown.append(SUBSTITUTE if undrawn else char)
    return "".join(shown)


def width(text: str) -> int:
    """Terminal cells of ``safe`` text."""
    return len(text) if text.isascii() else _cell_len(text)


def _cell_len(text: str) -> int:
    # Imported late: the model words its events with this module and is to stay light.
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, cells: int, *, keep: Literal["start", "end", "both"] = "start") -> str:
    """``text`` in at most ``cells`` cells; an ellipsis stands for what was cut.

    ``keep`` says which end matters: the start (prose), the end (paths) or both (file names).
    """
    if width(text) <= cells:
        return text
    if cells <= 1:
        return "…"[:cells]
    room = cells - 1
    if keep == "start":
        return _head(text, room) + "…"
    if keep == "end":
        return "…" + _tail(text, room)
    tail = _tail(text, room // 2)
    return _head(text, room - width(tail)) + "…" + tail


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """``text`` cut or filled to exactly ``cells`` cells; ``right`` aligns to the right."""
    text = fit(text, cells)
    space = " " * (cells - width(text))
    return space + text if right else text + space


def _head(text: str, cells: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += width(char)
        if used > cells:
            return text[:index]
    return text


def _tail(text: str, cells: int) -> str:
    used = 0
    for index in range(len(text) - 1, -1, -1):
        used += width(text[index])
        if used > cells:
            return text[index + 1 :]
    return text


def name(text: str, cells: int) -> str:
    """A file or worker name, safe, in at most ``cells`` cells; the extension stays visible."""
    return fit(safe(text), cells, keep="both")


def duration(seconds: float | None) -> str:
    """``7.4 s``, ``1:23``, ``1:02:03``, ``3 d 04:05``; ``unknown`` for None and what isn't finite."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 0:
        return "-" + duration(-seconds)
    return f"{seconds:.1f} s" if round(seconds, 1) < 10 else _whole(round(seconds))


def seconds(value: float) -> str:
    """A measured time: up to ten minutes in seconds with a tenth, ``133.2 s``; then as a duration."""
    return f"{value:.1f} s" if value < 600 else duration(value)


def about(seconds: float) -> str:
    """A duration that is an estimate, in whole seconds: ``7 s``, ``1:58``."""
    return _whole(round(seconds))


def _whole(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour:02d}:{minute:02d}"
    if hours:
        return f"{hours}:{minute:02d}:{second:02d}"
    return f"{minute}:{second:02d}" if minute else f"{second} s"


def clock(seconds: float) -> str:
    """A moment of the run, always the same width below 100 hours: ``00:03:12.4``."""
    tenths = max(int(seconds * 10 + 1e-6), 0)
    whole, tenth = divmod(tenths, 10)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{tenth}"


def moment(seconds: float) -> str:
    """When an event happened: ``03:12.401``, with hours in front once there are any."""
    thousandths = max(round(seconds * 1000), 0)
    whole, milli = divmod(thousandths, 1000)
    hours, rest = divmod(whole, 3600)
    text = f"{rest // 60:02d}:{rest % 60:02d}.{milli:03d}"
    return f"{hours}:{text}" if hours else text


def blocks(done: int, of: int) -> str:
    """``12 of 127 blocks``."""
    return f"{count(done)} of {plural(of, 'block')}"


def size(count: float) -> str:
    """Bytes for people, in powers of 1000 as disks and networks are sold: ``950 B``, ``2.0 MB``."""
    if count < 1000:
        return f"{count:.0f} B"
    units = iter(("kB", "MB", "GB", "TB"))
    unit = next(units)
    count /= 1000
    while round(count, 1) >= 1000 and unit != "TB":
        unit = next(units)
        count /= 1000
    return f"{count:.1f} {unit}"


def share(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent; 100.0 % and 0.0 % only when it is all or nothing."""
    if whole <= 0:
        return "0.0 %"
    percent = 100 * part / whole
    if 0 < percent < 100:
        percent = min(max(percent, 0.1), 99.9)
    return f"{percent:.1f} %"


def speed(fps: float | None) -> str:
    """Frames per second, ``31.2 fps``; below one, as seconds a frame, ``4.0 s/frame``; ``-`` when unknown."""
    if fps is None:
        return "-"
    if fps == 0:
        return "0.0 fps"
    return f"{fps:.1f} fps" if round(fps, 1) >= 1 else f"{1 / fps:.1f} s/frame"


def rate(fps: float) -> str:
    """Frames per second as a bare number: ``74``, below ten with what follows the point, ``0.5``."""
    return f"{fps:.0f}" if fps >= 10 else f"{fps:.2g}"


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts names as people count: ``w2`` before ``w10``."""
    pieces = re.split(r"([0-9]+)", name)
    return tuple((1, int(piece), "") if n % 2 else (0, 0, piece) for n, piece in enumerate(pieces))


def count(number: int) -> str:
    """``12,345``."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """``1 lapse``, ``2 lapses``, ``1,200 frames``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
