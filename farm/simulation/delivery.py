"""A simulated worker's deliveries, beside its rendering (farm.worker.delivery): one at a time, in order; what
is of no use any more when its turn comes is dropped."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from farm.messages import Deliver
from farm.simulation.claims import HeldClaim
from farm.simulation.line import Line

#: Parts rendered and not acknowledged, beyond which no other is begun.
WAITING_PARTS = 2


@dataclass(eq=False, slots=True)
class RenderedPart:
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

    @property
    def has_room(self) -> bool:
        """Another part may be begun."""
        return len(self._waiting) + self.in_transit < WAITING_PARTS

    def put(self, part: RenderedPart) -> None:
        self._waiting.append(part)
        self._send_next()

    def answered(self) -> None:
        self.in_transit = False
        if self._waiting:
            self._send_next()

    def _send_next(self) -> None:
        while self._waiting and not self.in_transit:
            part = self._waiting.popleft()
            if part.claim.wants(part.start, part.stop):
                self.in_transit = True
                self._send(part)

    def _send(self, part: RenderedPart) -> None:
        self._line.send(part.deliver())
