"""Timecode: the label that every frame of a film has, by its time.

Rules of this file:
- a film whose frames lie on the ticks of a rate that SMPTE ST 12 can count (a whole number of frames a
  second, or that times 1000/1001) is counted ``hh:mm:ss:ff``; any other has a clock, ``hh:mm:ss.mmm``;
- ``;`` before the frames is drop-frame, for 29.97 and its multiples: labels are passed over, never frames,
  and the label stays with the clock. A start with ``:`` counts every label;
- labels follow the time, so that a frame that is missing, or not taken, is missing in the labels too;
- all is integers and rationals: the same label on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from farm.errors import UsageError

_LABEL = re.compile(r"(\d\d):(\d\d):(\d\d)(?:([:;])(\d{2,3}))?\Z", re.ASCII)
_DAY_SECONDS = 86_400
#: By how much a header's rate may be off and still be meant: 29.97 for 30000/1001.
_RATE_TOLERANCE = Fraction(1, 5000)
#: Of a frame, that its time may lie beside its tick: times are often rounded to a millisecond.
_TICK_TOLERANCE = 4
_RATE_MAX = 960


class Label(NamedTuple):
    """A label as it is written."""

    seconds: int  #: of the day
    frames: int
    drop: bool


def parse_label(text: str) -> Label | None:
    """``10:00:00``, ``10:00:00:12``, ``10:00:00;12``; None for anything else."""
    found = _LABEL.match(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3]) > 59:
        return None
    seconds = (int(found[1]) * 60 + int(found[2])) * 60 + int(found[3])
    return Label(seconds, int(found[5] or 0), found[4] == ";")


def smpte_rate(rate: Fraction) -> tuple[int, Fraction] | None:
    """Labels a second and the exact rate, for a rate that can be counted; else None."""
    nominal = round(rate)
    if not 1 <= nominal <= _RATE_MAX:
        return None
    for exact in (Fraction(nominal), Fraction(nominal * 1000, 1001)):
        if abs(rate - exact) <= exact * _RATE_TOLERANCE:
            return nominal, exact
    return None


def can_drop(rate: Fraction) -> bool:
    """Whether labels of that rate can be drop-frame."""
    found = smpte_rate(rate)
    return found is not None and found[0] % 30 == 0 and found[1].denominator == 1001


def retimed(text: str, before: Fraction | None, rate: Fraction) -> str:
    """The label of the same moment in a film of another rate; what is no label stays as it is."""
    label, old, new = parse_label(text), smpte_rate(before) if before else None, smpte_rate(rate)
    if label is None or before is None or old is None or new is None or label.frames >= old[0]:
        return text
    drop = can_drop(rate) and (label.drop or not can_drop(before))
    frames = label.frames * new[0] // old[0]
    if drop and _is_dropped(label.seconds, frames, new[0]):
        frames = new[0] // 15
    return _written(label.seconds, frames, drop)


@dataclass(frozen=True, slots=True)
class Timecode:
    """Counts frames."""

    first: int  #: when the input's first frame is shown, in ticks
    frames_per_tick: Fraction
    nominal: int
    drop: bool
    offset: int  #: frames from midnight to the first frame's label

    @property
    def start(self) -> str:
        """The label of the input's first frame."""
        return self.label(self.first)

    def label(self, pts: int) -> str:
        """Of a frame that is shown at ``pts``."""
        return self.of_count(self.offset + _place(pts - self.first, self.frames_per_tick))

    def of_count(self, count: int) -> str:
        """The label so many frames after midnight."""
        nominal = self.nominal
        if self.drop:
            per_minute_dropped = nominal // 15
            ten_minutes = 600 * nominal - 9 * per_minute_dropped
            count %= 144 * ten_minutes
            tens, rest = divmod(count, ten_minutes)
            minute = 60 * nominal - per_minute_dropped
            passed = max(0, rest - per_minute_dropped) // minute
            count += per_minute_dropped * (9 * tens + passed)
        seconds, frames = divmod(count % (_DAY_SECONDS * nominal), nominal)
        return _written(seconds, frames, self.drop, 2 if nominal <= 100 else 3)


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells the time, for films whose rate varies or can't be counted."""

    first: int
    time_base: Fraction
    offset: Fraction  #: seconds of the day at the first frame

    @property
    def start(self) -> str:
        """The time of the input's first frame."""
        return self.label(self.first)

    def label(self, pts: int) -> str:
        """Of a frame that is shown at ``pts``."""
        return clock_time((self.offset + (pts - self.first) * self.time_base) % _DAY_SECONDS)


def labels_for(
    pts: Sequence[int],
    first: int,
    time_base: Fraction,
    rate: Fraction | None,
    told: str | None,
    found: str,
) -> Timecode | Clock:
    """The labels of a film whose frames are shown at ``pts`` and whose rate is said to be ``rate``.

    They go on from ``told`` by the user, else from what was ``found`` in the container, else from midnight;
    what was found and makes no sense is passed over. Raises UsageError for a start that can't be.
    """
    smpte = smpte_rate(rate) if rate else None
    if smpte is None or not _on_ticks(pts, first, time_base * smpte[1]):
        return Clock(first, time_base, _seconds(told, found, smpte))
    nominal, exact = smpte
    label = None if told is None else parse_label(told)
    if told is not None and (label is None or not _is_label(label, exact)):
        drop = "" if can_drop(exact) else "; a ';' is for 29.97 and its multiples"
        raise UsageError(
            f"--timecode-start {told}: there is no such label at {float(exact):g} frames a second; give "
            f"hh:mm:ss:ff with ff below {nominal}{drop}"
        )
    if label is None:
        label = parse_label(found)
        if label is None or not _is_label(label, exact):
            label = Label(0, 0, can_drop(exact))
    return Timecode(first, time_base * exact, nominal, label.drop, _count(label, nominal))


def is_label_of(text: str, rate: Fraction | None) -> bool:
    """Whether what stands in a container is a label that its film can have."""
    label = parse_label(text)
    return label is not None and (rate is None or smpte_rate(rate) is None or _is_label(label, rate))


def clock_time(seconds: Fraction) -> str:
    """``hh:mm:ss.mmm``, to the nearest millisecond."""
    thousandths = (2000 * seconds.numerator + seconds.denominator) // (2 * seconds.denominator)
    whole, rest = divmod(thousandths, 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{rest:03}"


def _is_label(label: Label, rate: Fraction) -> bool:
    found = smpte_rate(rate)
    assert found is not None
    if label.drop and (not can_drop(rate) or _is_dropped(label.seconds, label.frames, found[0])):
        return False
    return label.frames < found[0]


def _is_dropped(seconds: int, frames: int, nominal: int) -> bool:
    return seconds % 60 == 0 and seconds // 60 % 10 != 0 and frames < nominal // 15


def _count(label: Label, nominal: int) -> int:
    count = label.seconds * nominal + label.frames
    if label.drop:
        minutes = label.seconds // 60
        count -= nominal // 15 * (minutes - minutes // 10)
    return count


def _seconds(told: str | None, found: str, smpte: tuple[int, Fraction] | None) -> Fraction:
    label = parse_label(found if told is None else told)
    if label is None:
        return Fraction(0)
    return label.seconds + (Fraction(label.frames, smpte[0]) % 1 if smpte else Fraction(0))


def _place(ticks: int, frames_per_tick: Fraction) -> int:
    """The nearest frame."""
    numerator, denominator = frames_per_tick.numerator, frames_per_tick.denominator
    return (2 * ticks * numerator + denominator) // (2 * denominator)


def _on_ticks(pts: Sequence[int], first: int, frames_per_tick: Fraction) -> bool:
    """Whether every frame lies near a tick of its own."""
    numerator, denominator = frames_per_tick.numerator, frames_per_tick.denominator
    before = -1
    for time in pts:
        scaled = (time - first) * numerator
        place = (2 * scaled + denominator) // (2 * denominator)
        if place <= before or abs(scaled - place * denominator) * _TICK_TOLERANCE > denominator:
            return False
        before = place
    return True


def _written(seconds: int, frames: int, drop: bool, places: int = 2) -> str:
    colon = ";" if drop else ":"
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{clock}{colon}{frames:0{places}}"
