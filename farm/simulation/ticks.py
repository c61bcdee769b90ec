"""When the relay has to be ticked, in a world in which nothing happens between the entries of an agenda."""

from __future__ import annotations

from math import inf

from farm.relay.books import Books

#: How often the relay is ticked while time alone may change what it can do.
WATCH_SECONDS = 0.5


def runs_out_at(books: Books, now: float) -> float:
    """The lease time at which the relay would next find something run out, if nothing were heard until
    then."""
    options = books.options
    at = inf
    if books.leases:
        oldest = next(iter(books.leases.values()))
        at = oldest.renewed_at + options.lease_seconds
        if books.paused_at is None:
            still_since = min(claim.moved_at for claim in books.leases.values())
            at = min(at, still_since + options.stall_timeout_seconds)
            if options.part_timeout_seconds is not None or options.part_timeout_share is not None:
                at = min(at, now + WATCH_SECONDS)
    if books.parked or books.blocked or books.troubled:
        at = min(at, now + WATCH_SECONDS)
    return at
