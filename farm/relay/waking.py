"""Parked workers: when they are tried again, and in which order.

Rules of this file:
- what opens work wakes parked workers at once, and so does a tick;
- with a rule that splits, a report may change what is expected of whom; but a look at that costs a pass over
  the live claims, so it waits its turn in a large fleet, and the next tick makes up for it;
- one that was given nothing stays parked. ``looked_at`` is no part of the books: it only saves work.
"""

from __future__ import annotations

from farm import events as ev
from farm.policies.base import Policy
from farm.policies.registry import TailRule
from farm.relay.eligible import may_take
from farm.relay.grants import anything_to_give, try_grant
from farm.relay.turn import Turn

#: Events after which a parked worker can't be better off than before.
_QUIET = frozenset(
    (
        ev.LeaseRenewed,
        ev.BlockStored,
        ev.ClaimRefused,
        ev.MessageRefused,
        ev.WorkerParked,
        ev.PartSuperseded,
    )
)
#: Events that open no work, though they may change what is expected of whom.
_REPORTS = _QUIET | {ev.PartCredited, ev.ClaimGranted}
#: Seconds between two looks, for each live claim: a look takes a few microseconds of each, so all of them
#: together take a few per cent of the relay's time, however large the fleet.
_LOOK_SECONDS = 0.0002
#: Workers that may be given nothing before the others are left alone until the next look.
WOKEN_IN_VAIN_MAX = 8


def anything_happened(turn: Turn) -> bool:
    """Whether a turn did more than hear a report."""
    for event in turn.events:  # noqa: SIM110 - at every stimulus, and any() costs twice as much
        if type(event) not in _QUIET:
            return True
    return False


class Waking:
    def __init__(self) -> None:
        self._looked_at = 0.0

    def wake_parked(
        self, turn: Turn, policy: Policy, tail: TailRule, *, stirred: bool, time_passed: bool
    ) -> None:
        """Give parked workers what there is; ``stirred``: time passed or anything happened."""
        if not self._may_give(turn, tail, stirred, time_passed):
            return
        refused = 0
        for worker in _in_order(turn, tail):
            if refused >= WOKEN_IN_VAIN_MAX or not anything_to_give(turn.books, tail):
                return
            granted = try_grant(turn, worker, policy, tail)
            if granted is not None:
                turn.push(worker, granted)
            elif may_take(turn, worker):
                refused += 1

    def _may_give(self, turn: Turn, tail: TailRule, stirred: bool, time_passed: bool) -> bool:
        if tail.kind != "split":
            return stirred
        if not time_passed and all(type(event) in _REPORTS for event in turn.events):
            due = turn.now - self._looked_at >= _LOOK_SECONDS * len(turn.books.leases)
            if not turn.events or not due:
                return False
        self._looked_at = turn.now
        return True


def _in_order(turn: Turn, tail: TailRule) -> list[str]:
    """In the order they were parked; with a rule that splits the fastest first, which gain most."""
    parked = list(turn.books.parked)
    if tail.kind == "split":
        speeds = turn.books.speeds
        parked.sort(key=lambda name: -(speeds.of(name).rate or 0.0))
    return parked
