"""Reading a range with frames around it, for filters that look at neighbours.

Rules of this file:
- as many frames come before and after a range as the filters ask for, and are there: where some are lost,
  others further away take their place, as they would in one pass;
- what the next range needs again is kept, as long as the reader would run on anyway (farm.media.read).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import av

from farm.media.read import Numbered, ReadAgain
from farm.media.sequence import Reader


class _Held(NamedTuple):
    """What was read around the end of a range."""

    stop: int  #: of that range
    position: int  #: where the reader is
    frames: tuple[Numbered, ...]
    complete: bool  #: all that can be wanted before ``stop`` is there


class WindowReader:
    """Reads ``[start, stop)`` of a film of ``frames`` frames with ``before`` and ``after`` around it."""

    def __init__(self, reader: Reader, frames: int, before: int, after: int) -> None:
        self._reader = reader
        self._frames = frames
        self._before = before
        self._after = after
        self._more = (0, 0)  # frames to go further out on either side, for those that are lost
        self._held: _Held | None = None
        self.next_frame: av.VideoFrame | None = None  #: the frame at ``stop``; None: lost or not known

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]:
        """As ``FrameReader.read``, with the frames around the range."""
        if not again:
            self._more = (0, 0)
        held, self._held = self._held, None
        begin = max(0, start - self._before - self._more[0])
        end = min(self._frames, stop + self._after + self._more[1])
        if held is None or again or held.stop != start or not self._goes_on(held, end):
            frames: Iterable[Numbered] = self._reader.read(begin, end, again=again)
        else:
            rest = self._reader.read(held.position, end) if held.position < end else ()
            frames, begin = chain(held.frames, rest), 0
        early: deque[Numbered] = deque(maxlen=self._before)
        late: list[Numbered] = []
        started = False
        for number, frame in frames:
            if number >= stop:
                late.append((number, frame))
            if number >= start and not started:
                started = True
                yield from self._led(early, begin)
            if started:
                yield number, frame
            if number < stop:
                early.append((number, frame))
        if not started:
            yield from self._led(early, begin)
        if len(late) < self._after and end < self._frames:
            self._more = self._more[0], self._more[1] + self._after - len(late)
            raise ReadAgain
        self.next_frame = self._reader.next_frame if end == stop else None
        if late and late[0][0] == stop:
            self.next_frame = late[0][1]
        if self._before or self._after:
            complete = begin == 0 or len(early) == self._before
            self._held = _Held(stop, end, (*early, *late), complete)

    def close(self) -> None:
        self._held = None
        self._reader.close()

    def _goes_on(self, held: _Held, end: int) -> bool:
        return held.complete and (held.position >= end or self._reader.runs_on(held.position))

    def _led(self, early: deque[Numbered], begin: int) -> Iterator[Numbered]:
        if len(early) < self._before and begin > 0:
            self._more = self._more[0] + self._before - len(early), self._more[1]
            raise ReadAgain
        yield from tuple(early)
