"""A word for whoever waits: how far something is that shows nothing else, on standard error.

Rules of this file:
- what is over soon says nothing; the first word comes after ``PATIENCE_SECONDS``;
- a terminal has one line, written over and gone at the end; anything else gets a line now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from console.streams import Stream, pour

PATIENCE_SECONDS: Final = 2.0
_REPAINT_SECONDS: Final = 0.2
_LINE_SECONDS: Final = 10.0
_ERASED: Final = "\r\x1b[K"


class Waiting:
    """Called with how far it is, from 0.0 to 1.0, as often as one likes; when that falls, the next pass over
    the same thing has begun."""

    def __init__(
        self, doing: str, stream: Stream[str], *, terminal: bool, now: Callable[[], float], then: str = ""
    ) -> None:
        self._doing = doing
        self._then = then
        self._stream = stream
        self._terminal = terminal
        self._now = now
        self._next_at = now() + (PATIENCE_SECONDS if terminal else _LINE_SECONDS)
        self._shown = False
        self._last = 0.0
        self._pass = 1

    def __call__(self, fraction: float) -> None:
        self._pass += fraction < self._last
        self._last = fraction
        if (at := self._now()) < self._next_at:
            return
        again = f", pass {self._pass}" if self._pass > 1 else ""
        words = f"{self._doing}{again}: {100 * fraction:.0f} %"
        if self._then and fraction >= 1.0:
            words = f"{self._doing}: {self._then}"
        pour(self._stream, f"{_ERASED}{words}" if self._terminal else f"{words}\n")
        self._shown = True
        self._next_at = at + (_REPAINT_SECONDS if self._terminal else _LINE_SECONDS)

    def close(self) -> None:
        if self._terminal and self._shown:
            pour(self._stream, _ERASED)


@contextmanager
def waiting(doing: str, *, silent: bool = False, then: str = "") -> Iterator[Callable[[float], None]]:
    """What to call with how far ``doing`` is, which takes as long as the context lasts. ``then``: what goes
    on once it is at its end."""
    if silent or sys.stderr is None:
        yield lambda fraction: None
        return
    line = Waiting(doing, sys.stderr, terminal=sys.stderr.isatty(), now=time.monotonic, then=then)
    try:
        yield line
    finally:
        line.close()
