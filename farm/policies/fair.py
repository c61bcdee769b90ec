"""``fair``: everybody finishes together. The default.

An idle worker gets what it can do until the common finishing time T (situation.py), if its speed is known;
a part of that (``first``) while it is not, since a wrong guess can only be mended by splitting. No chunk is
longer than ``cap`` seconds of its worker's time, so that a speed that drops is noticed; one that turns out
longer is trimmed. Where few parts are left, that they are whole matters more than T: each goes to who would
end it first, and a worker that would end none of them first had better wait. What is left at the end is
shared by the tail rule ``split``.

Source: this project (docs/scheduling.md has measurements). Kin: factoring, which also sizes by measured
speed, but batch by batch and without a common finishing time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from farm.policies.base import Ask, Size
from farm.policies.parameters import parameter
from farm.policies.situation import GAIN_SECONDS, Busy, Situation

#: A chunk is worth its overhead if it takes at least this share of it.
_WORTH = 0.25
#: Seconds by which whole parts may make a worker outlast the common finishing time.
_LATE_SECONDS = 1.0
#: A chunk is trimmed if it will take more than this multiple of the cap.
_TRIM_BEYOND = 1.5
#: Share of a part by which times that are equal may differ.
_SAME = 1e-6


class Share(NamedTuple):
    frames: float
    most: float  #: more than that would outlast the common finishing time; matters where parts are long
    why: str


@dataclass(frozen=True, slots=True)
class Fair:
    first: float = 0.05  #: share of N/W for the very first chunks, and of a new worker's share later
    cap: float = 120.0  #: seconds of a worker's time
    known: int = parameter(
        0, low=0, high=1
    )  #: 1: speeds and overheads of the fleet's profiles are believed until measured

    @property
    def name(self) -> str:
        default = Fair()
        given = [
            f"{name}={getattr(self, name):g}"
            for name in ("first", "cap", "known")
            if getattr(self, name) != getattr(default, name)
        ]
        return ",".join(["fair", *given])

    def size(self, ask: Ask) -> Size:
        """For who can't be told the situation: part of an even share."""
        frames = math.ceil(self.first * ask.total_frames / max(ask.workers, 1))
        return Size(frames, f"{self.first:g} of an even share")

    def share(self, worker: str, situation: Situation) -> Share | None:
        """How many of the open frames ``worker`` gets, and why; None: it had better wait."""
        s = situation
        rate = s.rate(worker)
        if rate is None:
            frames = float(math.ceil(self.first * s.total_frames / max(s.workers, 1)))
            return Share(frames, math.inf, f"{self.first:g} of an even share, until speeds are known")
        overhead = s.overhead_seconds(worker)
        starts = s.starts_at(worker)
        if math.isinf(starts):  # unheard for so long that nobody knows when it will be done with what it has
            return None if s.busy else _everything(s)
        if s.few_parts and s.known(worker):
            return self._parts_share(rate, starts, s)
        share = rate * (s.finish - starts)
        least = _WORTH * rate * overhead
        if share < max(1.0, least):
            return None if s.busy else _everything(s)
        frames = min(share * (1.0 if s.known(worker) else self.first), rate * self.cap)
        frames = max(frames, min(share, least))
        most = rate * (s.finish + _LATE_SECONDS - starts) if s.busy and s.known(worker) else math.inf
        if s.open_frames - frames < least:  # the rest isn't worth a claim of its own
            frames, most = float(s.open_frames), math.inf
        until = (
            "" if math.isinf(s.finish) else f" until the common finishing time in {s.finish - s.now:.1f} s"
        )
        return Share(frames, most, f"its fair share at {rate:.3g} fps{until}")

    def _parts_share(self, rate: float, starts: float, s: Situation) -> Share | None:
        """The whole parts that the worker would end first."""
        if math.isinf(s.parts_finish):
            return None if s.busy else _everything(s)
        seconds = s.part_frames / rate
        left = s.parts_finish - starts
        parts = math.floor(left / seconds + _SAME) or int(left + GAIN_SECONDS >= seconds)
        if parts < 1:
            return None if s.busy else _everything(s)
        parts = min(parts, max(int(self.cap / seconds), 1))
        why = f"{parts} of the parts that are left, each to who would end it first"
        return Share(parts * s.part_frames, math.inf, why)

    def too_long(self, frames: int, rate: float) -> bool:
        """Whether a claim with that many frames left is to be trimmed."""
        return frames / rate > _TRIM_BEYOND * self.cap

    def trim(self, claim: Busy, situation: Situation) -> float | None:
        """Frame at which a claim with one holder should end, if it would take far longer than the cap."""
        rate = situation.speeds.of(claim.worker).rate
        if rate is None or claim.holders != 1 or not claim.begun:
            return None
        if not self.too_long(claim.stop - claim.seen, rate):
            return None
        return claim.seen + math.ceil(rate * self.cap)


def _everything(situation: Situation) -> Share:
    return Share(float(situation.open_frames), math.inf, "nothing else is in flight")
