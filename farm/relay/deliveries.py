"""Deliveries before they count: parts that workers still have in their spools, and blocks on their way.

Nothing here credits a frame (``credits.py`` does): an offer gets a claim to deliver under, and a block that
is stored is progress of its claim and renews its lease, like any other sign of life.
"""

from __future__ import annotations

from farm import events as ev
from farm import messages as msg
from farm.frames import ClaimToken
from farm.relay.books import CREDITED, IN_FLIGHT, OPEN, Books
from farm.relay.grants import grant_part
from farm.relay.identity import refuse
from farm.relay.ledger import ClaimRecord
from farm.relay.turn import Turn


def offer(turn: Turn, worker: str, request: msg.Offer) -> msg.Granted | msg.Declined | msg.Refused:
    """A worker has a finished part in a spool: a claim on that part alone, if it is still wanted."""
    books, part = turn.books, request.part
    if not 0 <= part < books.grid.parts:
        return refuse(turn, worker, request, part, f"parts are 0 to {books.grid.parts - 1}")
    if books.linear:
        why = "this job reads from the start, and how a part in a spool was read can't be told"
        return msg.Declined(part=part, why=why)
    if books.parts[part] == CREDITED:
        return msg.Declined(part=part, why="that part is not wanted any more")
    if request.maker in books.disputes.distrusted:
        why = f"{request.maker} made it, whose copy of another part was the odd one of three"
        return msg.Declined(part=part, why=why)
    if books.workers[worker].claims or books.draining or books.paused_at is not None:
        why = "offer parts while you hold nothing and the job is running"
        return msg.Declined(part=part, why=why, keep=True)
    # One of two copies that differ is no third opinion, whoever brings it.
    wanted = books.parts[part] in (OPEN, IN_FLIGHT) and not books.disputes.bars(request.maker, part)
    granted = grant_part(turn, worker, part) if wanted else None
    return granted or msg.Declined(part=part, why="that part is not to be had now", keep=True)


def take_block(
    turn: Turn, worker: str, claim: ClaimRecord | ClaimToken, request: msg.Begin | msg.Block
) -> msg.BlockStored | msg.Refused:
    """How much of a part the store holds, as its shell found, and whether the rest is still of use. The claim
    is live (a ClaimRecord), or was completed or superseded (a ClaimToken: no fault, but of no use)."""
    books, part = turn.books, request.part
    token = claim.text if isinstance(claim, ClaimRecord) else str(claim)
    if part is None or not covers(books, token, part):
        return refuse(turn, worker, request, part, f"{token} covers no such part")
    if isinstance(claim, ClaimToken):
        stop = books.ended[token].stop
        return msg.BlockStored(
            token=token,
            part=part,
            next_block=request.stored,
            next=stop,
            stop=stop,
            live=False,
            reason="this claim is over",
        )
    if request.stored and (isinstance(request, msg.Begin) or request.stored > request.index):
        turn.emit(
            ev.BlockStored(
                part=part,
                token=token,
                worker=worker,
                done=request.stored,
                of=request.of,
                size_bytes=request.stored_bytes,
            )
        )
    return msg.BlockStored(
        token=token, part=part, next_block=request.stored, next=turn.next_frame(token), stop=claim.stop
    )


def covers(books: Books, token: str, part: int) -> bool:
    """Whether a claim, live or over, was granted a part; splits made it smaller since, but what lies beyond
    may come all the same."""
    claim, ended, grid = books.claim(token), books.ended.get(token), books.grid
    if not 0 <= part < grid.parts:
        return False
    if claim is not None:
        return claim.start <= grid.start(part) < claim.granted_stop
    return ended is not None and ended.start <= grid.start(part) < ended.stop
