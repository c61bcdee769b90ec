"""Who may be judged after a time in which everything may have stood still (a laptop asleep, Ctrl-Z).

The tick that finds the gap runs before anything that workers say on waking can be read, and the clock's
tolerance is a good part of a short lease; so nobody is judged until a healthy worker had time to beat.

Rule: a process that is starved again and again is not asleep. Between two such respites at least a lease is
judged, or on a busy machine nothing would ever lapse.
"""

from __future__ import annotations

from farm.events import RelayOptions

#: A shorter gap is how busy machines are, and not worth a line; lease time doesn't count it all the same.
TOLD_SECONDS = 0.5
_RESPITE_SECONDS_MIN = 1.0
#: A judgement that waited for so long to be made may have slept: nearly all that lease time allows a gap that
#: was not found yet. It is put off, so many times in a row at most.
_LATE_SECONDS = 0.3
_PUT_OFF_MAX = 3


class Respite:
    """Times are lease seconds."""

    def __init__(self) -> None:
        self._judge_from = 0.0
        self._put_off = 0

    def found_gap(self, slept_seconds: float, now: float, options: RelayOptions) -> None:
        """The clock left ``slept_seconds`` out just now."""
        lease = options.lease_seconds
        if slept_seconds >= lease / 4 and now >= self._judge_from + lease:
            self._judge_from = now + min(lease, max(options.heartbeat_seconds, _RESPITE_SECONDS_MIN))

    def may_judge(self, now: float) -> bool:
        return now >= self._judge_from

    def comes_late(self, asked_at: float, now: float) -> bool:
        """Whether a judgement asked for at ``asked_at`` is better left to the next tick, which sees whether
        everything stood still meanwhile."""
        late = now - asked_at >= _LATE_SECONDS and self._put_off < _PUT_OFF_MAX
        self._put_off = self._put_off + 1 if late else 0
        return late
