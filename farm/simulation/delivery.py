"""A simulated worker's deliveries, beside its rendering (farm.worker.delivery): one at a time, in order; what
is of no use any more when its turn comes is dropped."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from farm.manners import WAITING_PARTS
from farm.messages import BlockStored, Deliver
from farm.simulation.claims import HeldClaim
from farm.simulation.line import Line


class RenderedPart(Struct, eq=False, gc=False):
    """A part that is rendered and not acknowledged."""

    claim: HeldClaim
    part: int
    start: int
    stop: int
    seconds: float  #: it took
    claim_rendered: int  #: frames rendered under the claim by then
    claim_seconds: float  #: and the seconds they took

    def deliver(self) -> Deliver:
        """No file: in a simulation nothing is stored."""
        return Deliver(
            token=self.claim.token,
            part=self.part,
            frames=self.stop - self.start,
            render_seconds=self.seconds,
            claim_rendered=self.claim_rendered,
            claim_seconds=self.claim_seconds,
        )


class Deliveries:
    """``in_transit``: one is not answered yet."""

    __slots__ = ("_line", "_waiting", "in_transit")

    def __init__(self, line: Line) -> None:
        self.in_transit = False
        self._line = line
        self._waiting: deque[RenderedPart] = deque()

    def has_room(self) -> bool:
        """Another part may be begun."""
        return len(self._waiting) + self.in_transit < WAITING_PARTS

    def put(self, part: RenderedPart) -> None:
        if self.in_transit:
            self._waiting.append(part)
        else:
            self._offer(part)

    def answered(self) -> None:
        self.in_transit = False
        while self._waiting and not self.in_transit:
            self._offer(self._waiting.popleft())

    def stored(self, answer: BlockStored) -> None:
        """A block of the one in transit is; over a link only."""

    def resume(self) -> None:
        """The worker goes on after a stop."""

    def drop(self) -> None:
        """The worker is gone."""

    def _offer(self, part: RenderedPart) -> None:
        """Send it, if it is still of use."""
        if part.claim.wants(part.start, part.stop):
            self.in_transit = True
            self._send(part)

    def _send(self, part: RenderedPart) -> None:
        self._line.send(part.deliver())
