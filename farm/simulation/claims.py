"""What a simulated worker knows of a claim of its own, and what it says of it. The fields are those of
farm.worker.orders.HeldClaim: ``next`` and ``stop`` are the relay's word, the rest is the worker's."""

from __future__ import annotations

from dataclasses import dataclass

from farm import messages as msg
from farm.events import ClaimProgress

#: Whether the messages carry the seconds spent on a claim (a newer field than the rest).
_SAYS_SECONDS = "render_seconds" in ClaimProgress.__struct_fields__
_DELIVERS_SECONDS = "claim_seconds" in msg.Deliver.__struct_fields__
_ASKS_AHEAD = "ahead" in msg.Claim.__struct_fields__


@dataclass(eq=False, slots=True)
class HeldClaim:
    token: str
    start: int
    stop: int
    next: int
    granted_at: float  #: when the grant arrived
    cursor: int  #: where the worker goes on, unless ``next`` is further
    live: bool = True
    rendered: int = 0  #: frames, of parts that are over
    seconds: float = 0.0  #: spent rendering them
    asked_ahead: bool = False  #: the next claim was asked for

    def wants(self, start: int, stop: int) -> bool:
        """A part ``[start, stop)`` is still of use."""
        return self.live and start < self.stop and stop > self.next

    def progress(self, position: int, rendered: int, seconds: float) -> ClaimProgress:
        """``rendered`` and ``seconds`` are of the part in progress."""
        frames = self.rendered + rendered
        if _SAYS_SECONDS:
            return ClaimProgress(  # type: ignore[call-arg, unused-ignore]
                self.token, position, frames, frames, render_seconds=self.seconds + seconds
            )
        return ClaimProgress(self.token, position, frames, frames)


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

    def deliver(self) -> msg.Deliver:
        if _DELIVERS_SECONDS:
            return msg.Deliver(  # type: ignore[call-arg, unused-ignore]
                token=self.claim.token,
                part=self.part,
                frames=self.stop - self.start,
                render_seconds=self.seconds,
                claim_rendered=self.claim_rendered,
                claim_seconds=self.claim_seconds,
            )
        return msg.Deliver(
            token=self.claim.token,
            part=self.part,
            frames=self.stop - self.start,
            render_seconds=self.seconds,
        )


def ask(ahead: bool = False) -> msg.Claim:
    if ahead and _ASKS_AHEAD:
        return msg.Claim(ahead=True)  # type: ignore[call-arg, unused-ignore]
    return msg.Claim()
