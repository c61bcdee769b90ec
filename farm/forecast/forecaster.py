"""Estimates one after the other: the range that is shown, from what the speeds leave open and from how far
the estimates were moved so far.

Theory of operation. Whatever the speeds don't tell (scenes, other work on the machine, stalls) moves the
estimate as it comes. What is still to come is taken to move it as far again as it was moved of late, over as
long a time as is left. What is likely is always the newest estimate, never smoothed: a jump is news.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from farm.events import FinishEstimated
from farm.forecast.estimate import Estimate

#: Estimates that are remembered, and how far back at least they are looked at.
_PAST_MAX: Final = 600
_BACK_SECONDS: Final = 10.0
#: They will move on, but not for ever in the same direction.
_ONWARD_MAX: Final = 1.5
#: Standard deviations to either side that are shown: about nine in ten ends lie within.
_DEVIATIONS: Final = 1.6
#: Nobody knows better than to half a second, and a little of what is left.
_LEAST_SECONDS: Final = 0.5
_LEAST_SHARE: Final = 0.01


class Revisions:
    """How much the estimated end has been moved."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, float]] = deque(maxlen=_PAST_MAX)  #: time and estimated end

    def note(self, now: float, end_at: float) -> None:
        self._past.append((now, end_at))

    def deviation(self) -> float:
        """Root mean square between the newest estimate and those before it, for as long back as is left."""
        now, end_at = self._past[-1]
        since = now - max(min(end_at - now, now / 2), _BACK_SECONDS)
        moves = [(end_at - before) ** 2 for at, before in self._past if at >= since]
        onward = min(math.sqrt(max(end_at - now, 0.0) / (now - since)), _ONWARD_MAX)
        return onward * math.sqrt(sum(moves) / len(moves))


class Forecaster:
    """Makes what is shown of estimates, in the order of their time; remembers the last ones."""

    def __init__(self) -> None:
        self._revisions = Revisions()

    def tell(self, now: float, found: Estimate | None) -> FinishEstimated:
        """``found``: as of lease time ``now``; None: nothing is known."""
        if found is None:
            self._revisions = Revisions()
            return FinishEstimated()
        self._revisions.note(now, found.likely_at)
        left = max(found.likely_at - now, 0.0)
        moves = self._revisions.deviation()
        least = _LEAST_SECONDS + _LEAST_SHARE * left
        below = max(_DEVIATIONS * math.hypot(found.below_seconds, moves), least)
        above = max(_DEVIATIONS * math.hypot(found.above_seconds, moves), least)
        return FinishEstimated(
            low_seconds=max(min(left - below, found.soonest_at - now), 0.0),
            likely_seconds=left,
            high_seconds=left + above,
            by=found.by,
        )
