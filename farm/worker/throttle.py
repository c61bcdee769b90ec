"""Pacing to a number of frames per second, by an absolute schedule.

A frame takes ``1/fps`` seconds: the n-th frame after ``begin(at)`` may be done at ``at + n/fps``, however the
work before it was spread, so that n frames take n/fps seconds to within the last frame's own work. (Sleeping
``1/fps`` after each frame instead was measured 13 to 25 % slow; media.md.)

Decision: a worker that is late catches up, which keeps the mean right when the machine is briefly busy, but
by SLACK_SECONDS of work at most. Later than that it was stopped, held, or is simply slower than its cap; then
the schedule starts anew from now, since a sprint at full speed would make a worker look faster than it is.
So it does when the cap is changed: what was waited for at the old one is over.
"""

from __future__ import annotations

from collections.abc import Callable

from farm.clock import Clock

SLACK_SECONDS = 1.0


class Throttle:
    """``sleep(seconds)`` waits that long and returns False, or returns True at once when interrupted."""

    def __init__(self, fps: float | None, clock: Clock, sleep: Callable[[float], bool]) -> None:
        self._clock = clock
        self._sleep = sleep
        self.change(fps)

    def change(self, fps: float | None) -> None:
        """Another cap, from the next frame on. Call where ``wait`` is called."""
        self._frame_seconds = 0.0 if fps is None else 1.0 / fps
        self._due = self._clock.now()
        self._waited_at = self._due  # when the last wait was over

    @property
    def due(self) -> float:
        """The clock time at which the last frame's slot ends; without a cap, now."""
        return self._due if self._frame_seconds else self._clock.now()

    def begin(self, at: float) -> None:
        """The work starts at clock time ``at``, which may be past."""
        self._due = at

    def postpone(self, seconds: float) -> None:
        """So long there was nothing to do: no lateness, and nothing to catch up on."""
        self._due += seconds

    def wait(self, speed: float = 1.0) -> bool:
        """Wait until the next frame may be done, at a share ``speed`` of the usual. False: interrupted."""
        if not self._frame_seconds:
            return self._wait_as_long_as_it_took(speed)
        self._due += self._frame_seconds / speed
        now = self._clock.now()
        if now > self._due + SLACK_SECONDS:
            self._due = now
        return now >= self._due or not self._sleep(self._due - now)

    def _wait_as_long_as_it_took(self, speed: float) -> bool:
        """Without a cap, a share of the speed is told by what the last frame took."""
        if speed == 1.0:
            self._waited_at = self._clock.now()
            return True
        took = min(self._clock.now() - self._waited_at, SLACK_SECONDS)
        done = not self._sleep(took * (1.0 / speed - 1.0))
        self._waited_at = self._clock.now()
        return done
