"""How relay and workers keep time with each other, in numbers. The live farm (farm.host, farm.worker) and the
simulated one (farm.simulation, farm.forecast) share them, so that one can be held against the other."""

from __future__ import annotations

from typing import Final

#: How often leases are judged, at most.
TICK_SECONDS: Final = 0.1
#: How long workers may take to leave once the work is done.
LEAVE_SECONDS: Final = 1.0
#: How much sooner than its overhead a worker asks ahead: what getting a claim takes at least.
AHEAD_SECONDS: Final = 0.25
#: A worker ends by itself after this many leases without any answer …
SILENT_LEASES: Final = 3.0
#: … and not before: with short leases, a relay that stood still for a moment would be taken for one that is
#: gone.
SILENT_SECONDS_MIN: Final = 5.0
#: Parts that a worker may have rendered and not delivered.
WAITING_PARTS: Final = 2
#: Parts that are received in blocks at once, and as many that are checked.
DELIVERIES_MAX: Final = 12
#: Troubles in a row, without a block stored, that make a failure of the claim.
BLOCK_TRIES_MAX: Final = 30
