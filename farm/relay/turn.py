"""One turn of the relay: what a stimulus changed and what is to be said to whom.

Events are folded into the books the moment they are emitted, so that each decision within a turn sees the
ones before it. Nothing of a turn may leave the process before its events are durable.
"""

from __future__ import annotations

from msgspec import Struct

from farm import events as ev
from farm import messages as msg
from farm.policies.situation import Situation
from farm.relay.books import Books
from farm.relay.fold import handler_of


class Outcome(Struct, frozen=True, gc=False):
    """What came of a stimulus. ``pushes`` are for other workers, or for the same one later on."""

    answer: msg.AnyAnswer | None = None
    pushes: tuple[tuple[str, msg.AnyAnswer], ...] = ()
    events: tuple[ev.AnyEvent, ...] = ()
    refusal: str | None = None  #: why a command was not carried out


def beat(
    books: Books,
    claims: tuple[msg.ClaimState, ...] = (),
    *,
    dismissed: bool = False,
    fps_cap: float | None = None,
    orphan_spools: tuple[str, ...] = (),
) -> msg.Beat:
    """What is told a worker outside of any question of its own; hold and drain are always said with it, as
    each beat stands for itself. ``dismissed``: it is to leave, though the others stay."""
    return msg.Beat(
        claims=claims,
        hold=books.paused_at is not None,
        drain=dismissed or books.draining,
        fps_cap=fps_cap,
        orphan_spools=orphan_spools,
    )


class Turn(Struct, eq=False):
    books: Books
    now: float
    skipping: bool  #: whether holders skip what others delivered (all tails but ``from=start``)
    events: list[ev.AnyEvent] = []
    pushes: list[tuple[str, msg.AnyAnswer]] = []
    situation: Situation | None = None  #: as of ``situation_at`` events; made when a decision needs it
    situation_at: int = -1

    def emit(self, event: ev.AnyEvent) -> None:
        handler = handler_of(type(event))  # what Books.apply does, a call less
        if handler is not None:
            handler(self.books, self.now, event)
        self.events.append(event)

    def push(self, worker: str, answer: msg.AnyAnswer) -> None:
        if worker in self.books.workers:
            self.pushes.append((worker, answer))

    def next_frame(self, token: str) -> int:
        claim = self.books.leases[token]
        return self.books.next_frame(claim, self.skipping)

    def claim_state(self, token: str) -> msg.ClaimState:
        """Where a claim stands, live or over."""
        claim = self.books.claim(token)
        if claim is not None:
            return msg.ClaimState(token, live=True, next=self.next_frame(token), stop=claim.stop)
        ended = self.books.ended.get(token)
        reason = (
            f"{ended.how}: {ended.reason}" if ended and ended.reason else ended.how if ended else "unknown"
        )
        return msg.ClaimState(token, live=False, reason=reason)

    def tell(self, worker: str, *tokens: str) -> None:
        """Tell a worker where claims of its own stand; hold and drain are said with it."""
        self.push(worker, beat(self.books, tuple(self.claim_state(token) for token in tokens)))

    def outcome(self, answer: msg.AnyAnswer | None = None, refusal: str | None = None) -> Outcome:
        return Outcome(answer, tuple(self.pushes), tuple(self.events), refusal)
