"""Deliveries: the only way frames come to count."""

from __future__ import annotations

from farm import events as ev
from farm import messages as msg
from farm.errors import shorten
from farm.frames import ClaimToken
from farm.relay import endings
from farm.relay.books import CREDITED, IN_FLIGHT
from farm.relay.divergence import diverge, judge, shun
from farm.relay.identity import refuse
from farm.relay.ledger import WANTED, ClaimRecord
from farm.relay.turn import Turn


def deliver(
    turn: Turn, worker: str, claim: ClaimRecord | ClaimToken, request: msg.Deliver
) -> msg.Delivered | msg.Refused | msg.Ended:
    """A part under a claim of the worker's that is live (a ClaimRecord), or was completed or superseded (a
    ClaimToken: zero frames, no fault). The store has checked the bytes; the counts are checked here."""
    books = turn.books
    grid = books.grid
    cuts = grid.cuts
    if type(claim) is ClaimRecord:  # splits made it smaller since; what lies beyond and comes may count
        held: ClaimRecord | None = claim
        token, start, stop = claim.text, claim.start, claim.granted_stop
    else:
        held = None
        token = str(claim)
        start, stop = books.ended[token].start, books.ended[token].stop
    part = request.part
    if part is None or not 0 <= part < grid.parts or not start <= cuts[part] < stop:
        reason = f"{token} covers frames [{start}, {stop})"
        shown = f"part {shorten(part)}"
        turn.emit(ev.MessageRefused(worker=worker, asked="deliver", received=shown, reason=reason))
        return msg.Refused(received=shown, reason=reason)
    size = cuts[part + 1] - cuts[part]
    if held is not None and request.frames + request.lost_frames != size:
        message = f"{request.frames} frames came back where the plan has {size}"
        endings.fail_part(turn, held, part, "count", message)
        endings.end_claim(turn, held, "failed", message)
        endings.block_if_failing(turn, worker)
        return msg.Ended(token=token)
    if held is None or books.parts[part] not in WANTED:
        return _superseded(turn, worker, token, part, request)
    if books.linear and not request.linear:
        reason = "this job reads from the start, and this part was not read so"
        return refuse(turn, worker, request, part, reason, "state")
    wrong = judge(turn, worker, request) if books.disputes.open else ()
    if wrong is None:
        return _superseded(turn, worker, token, part, request)
    _credit(turn, worker, held, part, size, request)
    for odd in wrong:
        shun(turn, odd, part)
    live = token in books.leases
    stop = held.stop if live else stop
    return msg.Delivered(
        token=token,
        part=part,
        frames=size if books.parts[part] == CREDITED else 0,  # a seam may have voided it at once
        next=turn.next_frame(token) if live else stop,
        stop=stop,
        live=live,
    )


def _credit(turn: Turn, worker: str, claim: ClaimRecord, part: int, size: int, request: msg.Deliver) -> None:
    books = turn.books
    chunk = books.chunks[claim.chunk]
    start = books.grid.cuts[part]
    elsewhere = start >= claim.stop
    if elsewhere:
        found = books.chunk_at(start) if books.parts[part] == IN_FLIGHT else None
        chunk = found or chunk
    turn.emit(
        ev.PartCredited(
            part=part,
            chunk=chunk.number if elsewhere else None,
            claim_rendered=request.claim_rendered,
            claim_seconds=request.claim_seconds,
            frames=size,
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
    alone = len(chunk.claims) == 1 and not elsewhere
    others = [] if alone else [other for other in chunk.claims.values() if other is not claim]
    endings.end_finished_claims(turn, chunk, claim)
    for other in others:
        if books.claim(other.text) is not None:
            turn.tell(other.worker, other.text)
    if request.first_frame_crc is not None or request.next_frame_crc is not None:
        endings.check_seam(turn, part)


def _superseded(turn: Turn, worker: str, token: str, part: int, request: msg.Deliver) -> msg.Delivered:
    books = turn.books
    credit = books.credits.get(part)
    frames = books.grid.size(part)
    reason = "this part is credited already" if credit is not None else "this claim is over"
    if isinstance(credit, ev.PartCredited) and credit.file == request.file and request.file:
        frames = 0  # the same file once more, not a second copy
    differs = credit is not None and request.sha256 and credit.sha256 not in ("", request.sha256)
    if differs and not books.options.allow_nondeterministic:
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
