"""What an operator does to the run, its workers, chunks and claims: the rules of each, and the reason where
one is refused.

Rules of this file:
- an operator's wish bends what is preferred and never what is safe: at most HOLD holders of a chunk, never
  the same worker twice, only a live claim can be ended, and every frame stays where it can be found;
- a copy that is wanted goes to the next worker that may have it, also while work is open; until then it is
  only a mark, and it goes with the chunk;
- what is taken from a worker counts no try, and is left to others as long as there are any;
- the last worker is never sent away: the run would end with work left.
"""

from __future__ import annotations

import msgspec

from farm import commands as cmd
from farm import events as ev
from farm.errors import IdError, UsageError, shorten
from farm.faults import EVERYONE
from farm.fleet import FPS_MAX, FPS_MIN
from farm.frames import chunk_id, parse_chunk_id, parse_token
from farm.policies.registry import parse_policy, parse_tail
from farm.relay import endings
from farm.relay.books import HOLD, Books
from farm.relay.eligible import may_copy
from farm.relay.ledger import ClaimRecord
from farm.relay.turn import Turn, beat


def carry_out(turn: Turn, command: cmd.AnyCommand) -> str | None:
    """Do what a command asks, as far as the books go; else why not, in one sentence. The shell or the engine
    does the rest."""
    match command:
        case cmd.Pause():
            return _pause(turn, command)
        case cmd.Resume():
            return _resume(turn, command)
        case cmd.Drain():
            return _drain(turn, command)
        case cmd.ChangeOptions():
            return _change(turn, command)
        case cmd.StopNow():
            turn.emit(ev.OperatorActed(action="stop now", detail=command.reason))
            return None
        case cmd.StallWorker():
            return _act(turn, "stall" if command.stalled else "unstall", command)
        case cmd.KillWorker():
            return _act(turn, "kill", command)
        case cmd.InjectFault(fault=fault):
            unknown = (name for name in fault.workers if name not in (*turn.books.workers, EVERYONE))
            return next((_nobody(name) for name in unknown), None)
        case cmd.ThrottleWorker():
            return _throttle(turn, command)
        case cmd.AddWorker():
            return _add(turn, command)
        case cmd.RemoveWorker():
            return _dismiss(turn, command)
        case cmd.DuplicateChunk():
            return _duplicate(turn, command)
        case cmd.ReleaseClaim():
            return _release(turn, command)


def _nobody(worker: str) -> str:
    return f"there is no worker {worker}"


# --- the run ---------------------------------------------------------------------------------------------


def _pause(turn: Turn, command: cmd.Pause) -> str | None:
    if turn.books.paused_at is not None:
        return "the job is paused already"
    turn.emit(ev.JobPaused(by=command.by))
    _tell_all(turn)
    return None


def _resume(turn: Turn, command: cmd.Resume) -> str | None:
    paused_at = turn.books.paused_at
    if paused_at is None:
        return "the job is not paused"
    turn.emit(ev.JobResumed(seconds=turn.now - paused_at))
    _tell_all(turn)
    return None


def _drain(turn: Turn, command: cmd.Drain) -> str | None:
    if turn.books.draining:
        return "the run is draining already"
    turn.emit(ev.DrainStarted(reason=command.reason, limit_seconds=command.limit_seconds))
    _tell_all(turn)
    endings.dismiss_parked(turn, "the run is stopping")
    return None


def _tell_all(turn: Turn) -> None:
    for worker in turn.books.workers.values():
        turn.tell(worker.name, *worker.claims)


def _change(turn: Turn, command: cmd.ChangeOptions) -> str | None:
    books, options = turn.books, command.options
    try:
        parse_policy(options.policy)
        parse_tail(options.tail)
    except UsageError as error:
        return str(error)
    heartbeat_seconds = options.heartbeat_seconds
    if books.workers:  # they keep to the one they were welcomed with
        heartbeat_seconds = max(heartbeat_seconds, books.options.heartbeat_seconds)
    fault = options.lease_fault(heartbeat_seconds)
    if fault is None:
        turn.emit(ev.OptionsChanged(options=options, by=command.by))
    return fault


# --- workers ---------------------------------------------------------------------------------------------


def _act(turn: Turn, action: str, command: cmd.StallWorker | cmd.KillWorker) -> str | None:
    if command.worker not in turn.books.workers:
        return _nobody(command.worker)
    turn.emit(ev.OperatorActed(action=action, worker=command.worker, detail=f"by {command.by}"))
    return None


def _throttle(turn: Turn, command: cmd.ThrottleWorker) -> str | None:
    books, worker, fps = turn.books, command.worker, command.fps
    if worker not in books.workers:
        return _nobody(worker)
    if fps is not None and not FPS_MIN <= fps <= FPS_MAX:
        return f"{fps:g} is no cap: give frames per second from {FPS_MIN:g} to {FPS_MAX:,.0f}, or none"
    note = "" if fps is None else _beyond(books, worker, fps)
    turn.emit(ev.WorkerThrottled(worker=worker, fps_cap=fps, by=command.by))
    if note:
        turn.emit(ev.Notice(level="warning", text=note))
    turn.push(worker, beat(books, fps_cap=fps or 0.0))
    return None


def _beyond(books: Books, worker: str, fps: float) -> str:
    """What is to be said of a cap that is more than there is to give."""
    caps, rate, possible = books.caps, books.speeds.of(worker).rate, books.fps_possible
    if worker in caps and caps[worker] is None and rate is not None and rate < fps:
        return f"{worker} renders {rate:.3g} fps without a cap: one of {fps:g} changes nothing"
    asked = fps + sum(cap or 0.0 for name, cap in caps.items() if name != worker)
    if possible is not None and asked > possible:
        return f"the caps add up to {asked:.3g} fps, {possible:.3g} are possible here: workers will be slower"
    return ""


def _add(turn: Turn, command: cmd.AddWorker) -> str | None:
    books, profile = turn.books, command.profile
    if books.finished:
        return "the work is done: nobody is added any more"
    if books.draining:
        return "the run is stopping: nobody is added any more"
    if profile.name in books.workers:
        return f"there is a worker {profile.name} already"
    text = msgspec.json.encode(profile).decode()
    turn.emit(ev.WorkerAdded(worker=profile.name, profile=text, by=command.by))
    note = "" if profile.fps_cap is None else _beyond(books, profile.name, profile.fps_cap)
    if note:
        turn.emit(ev.Notice(level="warning", text=note))
    return None


def _dismiss(turn: Turn, command: cmd.RemoveWorker) -> str | None:
    books, worker = turn.books, command.worker
    if worker not in books.workers:
        return _nobody(worker)
    if worker in books.dismissed:
        return f"{worker} was sent away already and leaves when its part is done"
    if len(books.workers) - len(books.dismissed) < 2:
        return f"{worker} is the last worker: add another one first, or stop the run"
    turn.emit(ev.WorkerDismissed(worker=worker, by=command.by))
    turn.push(worker, beat(books, dismissed=True))
    return None


# --- chunks and claims -----------------------------------------------------------------------------------


def _duplicate(turn: Turn, command: cmd.DuplicateChunk) -> str | None:
    books = turn.books
    try:
        number = parse_chunk_id(command.chunk, books.chunk_count)
    except IdError as error:
        return str(error)
    chunk, name = books.chunks.get(number), chunk_id(number)
    if books.draining:
        return "the run is stopping: nothing more is granted"
    if chunk is None:
        return f"nobody holds {name} any more: there is nothing to copy"
    if len(chunk.claims) >= HOLD:
        holders = " and ".join(claim.worker for claim in chunk.claims.values())
        return f"{holders} hold {name} already, and {HOLD} workers at most may"
    if number in books.wanted:
        return f"a copy of {name} is wanted already: the next worker that may have it gets it"
    if not any(may_copy(turn, worker, chunk) for worker in books.workers if worker not in books.dismissed):
        return f"every worker has held {name} before, and none may hold a chunk twice"
    turn.emit(ev.DuplicateWanted(chunk=number, by=command.by))
    return None


def _release(turn: Turn, command: cmd.ReleaseClaim) -> str | None:
    claims = _claims_of(turn.books, command.claim)
    if isinstance(claims, str):
        return claims
    for claim in claims:
        turn.emit(ev.ClaimReleased(token=claim.text, worker=claim.worker, by=command.by))
        endings.end_claim(turn, claim, "released", "by the operator")
        turn.tell(claim.worker, claim.text)
    return None


def _claims_of(books: Books, text: str) -> list[ClaimRecord] | str:
    """The live claims that a token or a chunk's id names; else why there are none."""
    try:
        if "#" not in text:
            chunk = books.chunks.get(parse_chunk_id(text, books.chunk_count))
            return list(chunk.claims.values()) if chunk is not None else f"nobody holds {text} any more"
        token = str(parse_token(text, books.chunk_count))
    except IdError as error:
        return str(error)
    claim = books.claim(token)
    if claim is not None:
        return [claim]
    ended = books.ended.get(token)
    return f"{token} is over already: {ended.how}" if ended else f"there is no claim {shorten(token)}"
