"""Frame rates as people write them, as exact fractions."""

from __future__ import annotations

import re
from fractions import Fraction

from farm.errors import UsageError
from farm.source import Rational

#: The short forms of NTSC's rates mean the exact ones.
_NTSC = {
    short: rate for rate in (24, 30, 48, 60, 120) for short in (f"{rate / 1.001:.2f}", f"{rate / 1.001:.3f}")
}
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)(?:/([1-9]\d{0,6}))?\Z", re.ASCII)
_RATE_MAX = 1000


def parse_rate(text: str) -> Rational:
    """``--fps``: ``24``, ``12.5``, ``30000/1001``, ``29.97``. Raises UsageError."""
    if text in _NTSC:
        return _NTSC[text] * 1000, 1001
    found = _RATE.match(text)
    rate = Fraction(found[1]) / int(found[2] or 1) if found else Fraction(0)
    if not 0 < rate <= _RATE_MAX:
        raise UsageError(f"--fps {text}: give frames a second, such as 24, 23.976 or 30000/1001")
    return rate.numerator, rate.denominator
