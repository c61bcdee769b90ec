"""Who may speak for a claim. Only its current claimant; everybody else is told why not, and nothing but the
count of refusals changes (the relay write-up's late finish: a stalled worker woke and completed a chunk that
had gone to another one, and the relay accepted both)."""

from __future__ import annotations

from typing import Literal

from farm import events as ev
from farm import messages as msg
from farm.errors import IdError, shorten
from farm.frames import ClaimToken, parse_token
from farm.relay.endings import holder_of
from farm.relay.ledger import ClaimRecord
from farm.relay.turn import Turn

Refusal = msg.NotClaimant | msg.Refused


def own_claim(
    turn: Turn, worker: str, request: msg.AnyRequest, token: object
) -> ClaimRecord | ClaimToken | Refusal:
    """What ``worker`` holds under ``token``: the live claim, or the bare token of a claim of its own that was
    completed or superseded (no fault: it may still deliver, for zero frames). Else the refusal."""
    books = turn.books
    held = books.leases.get(token) if type(token) is str else None
    if held is not None and held.worker == worker:
        return held  # what equals a live token to the letter needs no parsing
    try:
        parsed = parse_token(token, books.chunk_count)
    except IdError as error:
        return refuse(turn, worker, request, token, error.reason)
    ended = books.ended.get(str(parsed))
    own = ended is not None and ended.worker == worker and parsed.epoch == books.epoch
    if own and ended is not None and ended.how in ("completed", "superseded"):
        return parsed
    return _not_claimant(turn, worker, request, parsed)


def live_claim(turn: Turn, worker: str, request: msg.AnyRequest, token: object) -> ClaimRecord | Refusal:
    """The live claim of ``worker`` under ``token``, or the refusal."""
    claim = own_claim(turn, worker, request, token)
    if isinstance(claim, ClaimToken):
        return _not_claimant(turn, worker, request, claim)
    return claim


def refuse(
    turn: Turn,
    worker: str,
    request: msg.AnyRequest,
    received: object,
    reason: str,
    kind: Literal["id", "state", "version"] = "id",
) -> msg.Refused:
    """Refuse a message that can't be taken, saying what was received."""
    asked = type(request).__name__.lower()
    shown = shorten(received)
    turn.emit(ev.MessageRefused(worker=worker, asked=asked, received=shown, reason=reason))
    return msg.Refused(received=shown, reason=reason, kind=kind)


def _not_claimant(turn: Turn, worker: str, request: msg.AnyRequest, token: ClaimToken) -> msg.NotClaimant:
    books = turn.books
    text = str(token)
    claim = books.claim(text)
    ended = books.ended.get(text)
    holder: str | None = None
    if ended is not None:
        holder = holder_of(books, ended.start, ended.stop)
    if claim is not None:
        reason, holder = f"{text} is held by {claim.worker}", claim.worker
    elif token.epoch != books.epoch:
        reason = f"{text} is of epoch {token.epoch}, this relay's is {books.epoch}"
    elif ended is not None and ended.worker == worker:
        reason = f"{text} {ended.how}" + (f": {ended.reason}" if ended.reason else "")
    else:
        reason = f"{text} is not a claim of {worker}"
    asked = type(request).__name__.lower()
    turn.emit(ev.ClaimRefused(worker=worker, asked=asked, token=text, reason=reason, holder=holder))
    return msg.NotClaimant(token=text, reason=reason, holder=holder)
