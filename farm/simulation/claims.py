"""What a simulated worker knows of its claims. As in the real one (farm.worker.orders), ``next`` and ``stop``
are the relay's word, the rest is the worker's own."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from farm.events import ClaimProgress
from farm.messages import Granted


class HeldClaim(Struct, eq=False, gc=False):
    """One claim of a worker. Frames of the job."""

    token: str
    start: int
    stop: int
    next: int
    granted_at: float  #: when the grant arrived
    cursor: int  #: where the worker goes on, unless ``next`` is further
    live: bool = True
    rendered: int = 0  #: frames, of parts that are over
    seconds: float = 0.0  #: spent rendering them
    asked_ahead: bool = False  #: the claim after it was asked for
    delivered_bytes: int = 0  #: over a link
    queued: bool = False  #: a part of it waits for a place at the store

    def wants(self, start: int, stop: int) -> bool:
        """A part ``[start, stop)`` is still of use."""
        return self.live and start < self.stop and stop > self.next

    def progress(self, position: int, rendered: int, seconds: float) -> ClaimProgress:
        """``rendered`` and ``seconds``: of the part in progress."""
        frames = self.rendered + rendered
        return ClaimProgress(
            self.token,
            position,
            frames,
            frames,
            self.delivered_bytes,
            self.seconds + seconds,
            self.queued,
        )


class Claims:
    """All claims of a worker. ``granted``: those not yet begun."""

    __slots__ = ("_held", "granted")

    def __init__(self) -> None:
        self._held: dict[str, HeldClaim] = {}  # all and only those that a heartbeat lists
        self.granted: deque[HeldClaim] = deque()

    def grant(self, answer: Granted, now: float) -> None:
        token, start = answer.token, answer.start
        claim = HeldClaim(token, start, answer.stop, answer.next, now, start)
        self._held[token] = claim
        self.granted.append(claim)

    def take(self) -> HeldClaim | None:
        """The next one to begin."""
        while self.granted:
            claim = self.granted.popleft()
            if claim.live:
                return claim
        return None

    def update(self, token: str, next_frame: int, stop: int, live: bool) -> None:
        """The relay says where a claim stands."""
        claim = self._held.get(token)
        if claim is None:
            return
        if live:
            claim.next = next_frame
            claim.stop = stop
        else:
            claim.live = False
            del self._held[token]

    def drop(self, token: str) -> None:
        self.update(token, 0, 0, False)

    def held(self) -> tuple[HeldClaim, ...]:
        return tuple(self._held.values())
