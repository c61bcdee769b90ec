"""What a worker knows of its claims and of what the relay wants, as last heard.

Rules:
- the reading thread writes it (``heard``), in the order of the relay's messages; nobody else changes
  ``next``, ``stop`` or ``live``;
- the working thread writes a claim's progress; the heartbeat thread reads it, at worst a frame late;
- everyone who waits, waits on ``changed``; ``wait`` raises ChannelClosed once the connection is gone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from farm.clock import Clock
from farm.events import ClaimProgress
from farm.frames import PartGrid
from farm.messages import (
    AnyAnswer,
    Beat,
    BlockStored,
    Completed,
    Delivered,
    Ended,
    Finished,
    Granted,
    NotClaimant,
    Refused,
    Welcome,
)
from farm.worker.channel import ChannelClosed


@dataclass(eq=False, slots=True)
class HeldClaim:
    """One claim of this worker. Frames of the job; ``next`` and ``stop`` are the relay's word."""

    token: str
    start: int
    stop: int
    next: int
    linear: bool
    granted_at: float  #: clock time at which the grant arrived
    live: bool = True
    why: str = ""  #: why it is not live
    cursor: int = 0  #: where this worker goes on, unless ``next`` is further
    position: int = 0  #: the next frame to be encoded
    rendered: int = 0
    decoded: int = 0
    delivered_bytes: int = 0
    render_seconds: float = 0.0  #: of parts that are done
    part_began_at: float | None = None  #: clock time, while a part is in progress
    asked_ahead: bool = False  #: the next claim was asked for already
    queued: bool = False  #: a part of it waits for the store to take it

    def wants(self, start: int, stop: int) -> bool:
        """A part ``[start, stop)`` is still of use."""
        return self.live and start < self.stop and stop > self.next

    def next_part(self, grid: PartGrid) -> int | None:
        """The part to render next, None if nothing is left to render."""
        start = max(self.cursor, self.next)
        return grid.part_at(start) if self.live and start < self.stop else None

    def seconds(self, now: float) -> float:
        """Spent rendering under this claim."""
        return self.render_seconds + (0.0 if self.part_began_at is None else now - self.part_began_at)

    def progress(self, now: float) -> ClaimProgress:
        return ClaimProgress(
            token=self.token,
            position=self.position,
            rendered=self.rendered,
            decoded=self.decoded,
            delivered_bytes=self.delivered_bytes,
            render_seconds=self.seconds(now),
            queued=self.queued,
        )


class Orders:
    def __init__(self, clock: Clock) -> None:
        self.changed = threading.Condition()
        self.hold = False  #: wait between parts
        self.drain = False  #: finish the part in progress, release the rest and leave
        self.finished = False  #: ask for nothing more
        self.refused = ""  #: the relay did not take a message: our own fault, so leave
        self.lease_seconds: float | None = None
        self.heartbeat_seconds: float | None = None
        self.claim_ahead = False  #: the relay lets workers ask ahead
        self.fps_cap: float | None = None  #: a new one, not taken up yet; 0: without limit
        self.orphan_spools: tuple[Path, ...] = ()  #: handed on to this worker, and not looked through yet
        self.answers = 0  #: how many were heard; a sign of life
        self._clock = clock
        self._claims: dict[str, HeldClaim] = {}  # all and only those a heartbeat lists
        self._granted: deque[HeldClaim] = deque()  # not yet begun
        self._seen: set[str] = set()  # every token granted, so that a repeated grant is no second one
        self._closed = ""

    # --- the reading thread

    def heard(self, answer: AnyAnswer) -> None:
        with self.changed:
            self.answers += 1
            match answer:
                case Welcome():
                    self.lease_seconds = answer.lease_seconds
                    self.heartbeat_seconds = answer.heartbeat_seconds
                    self.claim_ahead = answer.claim_ahead
                case Granted():
                    self._grant(answer)
                case Beat():
                    self.hold = answer.hold
                    self.drain = self.drain or answer.drain
                    self.orphan_spools += tuple(map(Path, answer.orphan_spools))
                    if answer.fps_cap is not None:
                        self.fps_cap = answer.fps_cap
                    for state in answer.claims:
                        self._update(state.token, state.next, state.stop, state.live, state.reason)
                case Delivered() | BlockStored():
                    self._update(answer.token, answer.next, answer.stop, answer.live, answer.reason)
                case Completed(done=True):
                    self._drop(answer.token, "completed")
                case Completed():
                    self._update(answer.token, answer.next, answer.stop, True, "")
                case NotClaimant():
                    holder = f", held by {answer.holder}" if answer.holder else ""
                    self._drop(answer.token, f"not claimant: {answer.reason}{holder}")
                case Ended():
                    self._drop(answer.token, "given back")
                case Finished():
                    self.finished = True
                case Refused():
                    self.refused = self.refused or f"{answer.reason} (received {answer.received})"
                case _:
                    pass
            self.changed.notify_all()

    def closed(self, reason: str) -> None:
        with self.changed:
            self._closed = reason
            self.changed.notify_all()

    def _grant(self, grant: Granted) -> None:
        self.lease_seconds = grant.lease_seconds
        if grant.token in self._seen:
            return
        self._seen.add(grant.token)
        claim = HeldClaim(
            token=grant.token,
            start=grant.start,
            stop=grant.stop,
            next=grant.next,
            linear=grant.linear,
            granted_at=self._clock.now(),
            cursor=grant.start,
            position=grant.start,
        )
        self._claims[grant.token] = claim
        self._granted.append(claim)

    def _update(self, token: str, next_: int, stop: int, live: bool, why: str) -> None:
        if not live:
            self._drop(token, why or "not live any more")
        elif token in self._claims:
            self._claims[token].next = next_
            self._claims[token].stop = stop

    def _drop(self, token: str, why: str) -> None:
        claim = self._claims.pop(token, None)
        if claim is not None:
            claim.live = False
            claim.why = why

    # --- the other threads

    @property
    def leaving(self) -> bool:
        """No part is to be begun any more."""
        return self.drain or bool(self.refused)

    @property
    def cut_off(self) -> bool:
        """What is in progress is of no use either."""
        return bool(self.refused or self._closed)

    def take_grant(self) -> HeldClaim | None:
        """The next live claim, if there is one; one held ahead may have been taken back meanwhile."""
        with self.changed:
            while self._granted:
                claim = self._granted.popleft()
                if claim.live:
                    return claim
            return None

    @property
    def has_orphans(self) -> bool:
        return bool(self.orphan_spools)

    @property
    def grants(self) -> int:
        """How many claims were ever granted."""
        return len(self._seen)

    def take_orphan_spools(self) -> tuple[Path, ...]:
        with self.changed:
            spools, self.orphan_spools = self.orphan_spools, ()
            return spools

    def take_fps_cap(self) -> float | None:
        """A new cap, once: frames per second, 0 without limit; None: there is none."""
        if self.fps_cap is None:
            return None
        with self.changed:
            cap, self.fps_cap = self.fps_cap, None
            return cap

    def wait_for_news(self, grants: int) -> None:
        """Wait until there were more claims than ``grants``, or something else is to be done than to wait for
        one. Raises ChannelClosed."""
        self.wait(lambda: self.grants != grants or self.leaving or self.finished or self.has_orphans)

    def progress(self) -> tuple[ClaimProgress, ...]:
        with self.changed:
            now = self._clock.now()
            return tuple(claim.progress(now) for claim in self._claims.values())

    def wait(self, ready: Callable[[], bool], until: float | None = None) -> bool:
        """Wait until ``ready()``, at most until clock time ``until``; whether it is. Raises ChannelClosed."""
        with self.changed:
            while not self._closed:
                if ready():
                    return True
                left = None if until is None else until - self._clock.now()
                if left is not None and left <= 0:
                    return False
                self.changed.wait(left)
            raise ChannelClosed(self._closed)

    def pause(self, ready: Callable[[], bool], seconds: float) -> bool:
        """``wait`` for ``seconds`` at most."""
        return self.wait(ready, self._clock.now() + seconds)
