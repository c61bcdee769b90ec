"""Deliveries: the only way frames come to count."""

from __future__ import annotations

from farm import events as ev
from farm import messages as msg
from farm.errors import shorten
from farm.frames import ClaimToken
from farm.relay import endings
from farm.relay.books import CREDITED, IN_FLIGHT, OPEN, Books
from farm.relay.divergence import diverge, judge, shun
from farm.relay.identity import refuse
from farm.relay.ledger import ClaimRecord
from farm.relay.turn import Turn


def deliver(
    turn: Turn, worker: str, claim: ClaimRecord | ClaimToken, request: msg.Deliver
) -> msg.Delivered | msg.Refused | msg.Ended:
    """A part under a claim of the worker's that is live (a ClaimRecord), or was completed or superseded (a
    ClaimToken: zero frames, no fault). The store has checked the bytes; the counts are checked here."""
    books = turn.books
    grid = books.grid
    token = claim.text if isinstance(claim, ClaimRecord) else str(claim)
    start, stop = _granted(books, claim)
    part = request.part
    if part is None or not 0 <= part < grid.parts or not start <= grid.start(part) < stop:
        reason = f"{token} covers frames [{start}, {stop})"
        shown = f"part {shorten(part)}"
        turn.emit(ev.MessageRefused(worker=worker, asked="deliver", received=shown, reason=reason))
        return msg.Refused(received=shown, reason=reason)
    if isinstance(claim, ClaimRecord) and request.frames + request.lost_frames != grid.size(part):
        message = f"{request.frames} frames came back where the plan has {grid.size(part)}"
        endings.fail_part(turn, claim, part, "count", message)
        endings.end_claim(turn, claim, "failed", message)
        endings.block_if_failing(turn, worker)
        return msg.Ended(token=token)
    if isinstance(claim, ClaimToken) or books.parts[part] not in (OPEN, IN_FLIGHT):
        return _superseded(turn, worker, token, part, request)
    if books.linear and not request.linear:
        reason = "this job reads from the start, and this part was not read so"
        return refuse(turn, worker, request, part, reason, "state")
    wrong = judge(turn, worker, request)
    if wrong is None:
        return _superseded(turn, worker, token, part, request)
    _credit(turn, worker, claim, part, request)
    for odd in wrong:
        shun(turn, odd, part)
    live = books.claim(token)
    stop = live.stop if live is not None else stop
    return msg.Delivered(
        token=token,
        part=part,
        frames=grid.size(part) if books.parts[part] == CREDITED else 0,  # a seam may have voided it at once
        next=turn.next_frame(token) if live is not None else stop,
        stop=stop,
        live=live is not None,
    )


def _granted(books: Books, claim: ClaimRecord | ClaimToken) -> tuple[int, int]:
    """The range a claim was granted. Splits made it smaller since, but what lies beyond and comes all the
    same is credited if nobody else was faster."""
    if isinstance(claim, ClaimRecord):
        return claim.start, claim.granted_stop
    ended = books.ended[str(claim)]
    return ended.start, ended.stop


def _credit(turn: Turn, worker: str, claim: ClaimRecord, part: int, request: msg.Deliver) -> None:
    books = turn.books
    chunk = books.chunk_of(claim)
    elsewhere = books.grid.start(part) >= claim.stop
    if elsewhere:
        found = books.chunk_at(books.grid.start(part)) if books.parts[part] == IN_FLIGHT else None
        chunk = found or chunk
    turn.emit(
        ev.PartCredited(
            part=part,
            chunk=chunk.number if elsewhere else None,
            claim_rendered=request.claim_rendered,
            claim_seconds=request.claim_seconds,
            frames=books.grid.size(part),
            token=claim.text,
            worker=worker,
            file=request.file,
            size_bytes=request.size_bytes,
            sha256=request.sha256,
            render_seconds=request.render_seconds,
            first_frame_crc=request.first_frame_crc,
            next_frame_crc=request.next_frame_crc,
            lost_frames=request.lost_frames,
        )
    )
    others = [other for other in chunk.claims.values() if other is not claim]
    endings.end_finished_claims(turn, chunk, claim)
    for other in others:
        if books.claim(other.text) is not None:
            turn.tell(other.worker, other.text)
    endings.check_seam(turn, part)


def _superseded(turn: Turn, worker: str, token: str, part: int, request: msg.Deliver) -> msg.Delivered:
    books = turn.books
    credit = books.credits.get(part)
    frames = books.grid.size(part)
    reason = "this part is credited already" if credit is not None else "this claim is over"
    if isinstance(credit, ev.PartCredited) and credit.file == request.file and request.file:
        frames = 0  # the same file once more, not a second copy
    if credit is not None and request.sha256 and credit.sha256 and credit.sha256 != request.sha256:
        diverge(turn, worker, token, request)
    turn.emit(
        ev.PartSuperseded(
            part=part,
            token=token,
            worker=worker,
            frames=frames,
            sha256=request.sha256,
            reason=reason,
            claim_rendered=request.claim_rendered,
            claim_seconds=request.claim_seconds,
        )
    )
    live = books.claim(token)
    stop = live.stop if live is not None else books.ended[token].stop
    return msg.Delivered(
        token=token,
        part=part,
        frames=0,
        next=turn.next_frame(token) if live is not None else stop,
        stop=stop,
        live=live is not None,
        reason=reason,
    )
