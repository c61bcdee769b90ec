"""What of a run may change while it goes on. No event: it is in the ones that open a run and change it."""

from __future__ import annotations

import msgspec

#: Heartbeats after which a worker that was not heard is taken for silent, long before its lease runs out.
SILENT_HEARTBEATS = 2.5


class RelayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What of a run may change in flight or at resume. Times in seconds."""

    policy: str = "guided,12"
    tail: str = "duplicate-oldest,from=frontier"
    lease_seconds: float = 20.0
    heartbeat_seconds: float = 2.0
    stall_timeout_seconds: float = 120.0
    part_timeout_seconds: float | None = None
    part_timeout_share: float | None = None  #: of the median part, 3.0 = 300 %
    max_tries: int = 3
    claim_ahead: bool = False  #: workers may hold a second claim before the first one ends
    max_outstanding: int | None = None  #: chunks in flight up to which the tail duplicates; None: 2 x workers
    block_after_failures: int = 3
    block_seconds: float = 60.0
    backoff_seconds: float = 0.0  #: before a part that failed is tried again; doubled with each try
    halt: str = ""  #: stop early when parts are set aside (farm.halt)
    memfree_bytes: int = 0  #: with less memory available nothing more is granted and no worker started
    nice: int = 0  #: added to the niceness of workers
    allow_nondeterministic: bool = False  #: copies of a part may differ; the first one counts

    @property
    def silent_seconds(self) -> float:
        """How long a worker with a claim may be unheard before it is taken for silent."""
        return SILENT_HEARTBEATS * self.heartbeat_seconds

    def lease_fault(self, heartbeat_seconds: float) -> str | None:
        """Why the lease is too short for workers that beat so far apart, in one sentence; None: it isn't."""
        if 0 < heartbeat_seconds < self.lease_seconds:
            return None
        return (
            f"a lease of {self.lease_seconds:g} s would lapse between two heartbeats, which are "
            f"{heartbeat_seconds:g} s apart; give a longer one"
        )
