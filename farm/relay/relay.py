"""The relay: a pure state machine that keeps the books of who renders what.

Theory of operation (DESIGN.md §4). A stimulus and the lease time at which it happened go in: a worker's
message, a worker's death, a tick, an operator's command. An answer, pushes and events come out. State is the
fold of the events (books.py), so the journal, recovery and the simulator need nothing else.

Rules of this file:
1. credit is per part, and only a delivery under a live claim credits; each frame is credited once;
2. only the current claimant: anything else gets NotClaimant and changes nothing but the refusal counter;
3. ids and tokens are parsed strictly, and what can't be parsed changes nothing either;
4. a repeated message gets its first answer verbatim;
5. no I/O, no clock, no randomness: the caller commits ``Outcome.events`` before it sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.errors import shorten
from farm.frames import ClaimToken
from farm.policies.base import Policy
from farm.policies.registry import TailRule, parse_policy, parse_tail
from farm.relay import endings
from farm.relay.books import OPEN, SET_ASIDE, Books
from farm.relay.control import carry_out
from farm.relay.credits import deliver
from farm.relay.deliveries import offer, take_block
from farm.relay.divergence import give_up_in_time, take_back
from farm.relay.grants import grant, grant_ahead, trim_claims
from farm.relay.identity import live_claim, own_claim, refuse
from farm.relay.ledger import ClaimRecord, WorkerRecord
from farm.relay.repeats import Answers, numbered
from farm.relay.turn import Outcome, Turn, beat
from farm.relay.waking import Waking, anything_happened
from farm.relay.watch import check_leases, check_progress


class Relay:
    """One run's relay. ``books`` are empty for a new run, or folded from its journal.

    ``options``: what a ChangeOptions will ask for first thing, if that is known; what the books say may not
    work here any more (a user's own policy whose file is gone).

    Raises UsageError for a policy or tail rule that can't be had.
    """

    def __init__(self, books: Books, options: ev.RelayOptions | None = None) -> None:
        self.books = books
        self._answers: dict[str, Answers] = {}
        self._waking = Waking()
        self._read_options(options or books.options)

    @property
    def schedule(self) -> tuple[Policy, TailRule]:
        """What decides who gets what. To be read; a policy may have a memory, so ask a copy of it."""
        return self._policy, self._tail

    # --- the run -----------------------------------------------------------------------------------------

    def open(self, opened: ev.RunOpened, now: float) -> Outcome:
        """Begin a new run."""
        turn = self._turn(now)
        turn.emit(opened)
        self._read_options(opened.options)
        return self._finish(turn)

    def start(self, now: float, wall_time: str = "") -> Outcome:
        """Begin a new epoch: every start of the relay does. Claims of the epoch before are closed without
        fault; its workers have to join again."""
        turn = self._turn(now)
        books = self.books
        turn.emit(ev.RelayStarted(epoch=books.epoch + 1, wall_time=wall_time))
        for claim in list(books.leases.values()):
            endings.end_claim(turn, claim, "relay restarted")
        for worker in list(books.workers):
            turn.emit(ev.WorkerLeft(worker=worker, reason="relay restarted", lost=False))
        if books.paused_at is not None:
            turn.emit(ev.JobResumed(seconds=max(0.0, now - books.paused_at)))
        turn.pushes.clear()
        return self._finish(turn)

    def adopt(self, parts: Iterable[ev.PartAdopted], now: float) -> Outcome:
        """Take over valid parts found in the store that the journal doesn't know; others are left alone. In a
        job that reads from the start all are: how they were read can't be told."""
        turn = self._turn(now)
        books = self.books
        for part in parts:
            wanted = 0 <= part.part < books.grid.parts and books.parts[part.part] == OPEN
            suspect = part.part in books.disputes.open or part.file in books.disputes.suspect_files
            if wanted and not books.linear and not suspect:
                turn.emit(part)
                endings.check_seam(turn, part.part)
        return self._finish(turn)

    def choose_sample(self, parts: Iterable[int], now: float) -> Outcome:
        """Give out only these parts, those of them that are open, until the next start; to be asked before
        any claim is granted."""
        turn = self._turn(now)
        assert not self.books.chunks, "a sample is chosen before anything is given out"
        turn.emit(ev.SampleChosen(parts=tuple(sorted(set(parts)))))
        return self._finish(turn)

    def retry(self, now: float) -> Outcome:
        """Take up the parts that were set aside, as if they had never failed."""
        turn = self._turn(now)
        for part, place in enumerate(self.books.parts):
            if place == SET_ASIDE:
                turn.emit(ev.PartRetried(part=part))
        return self._finish(turn)

    def void(self, part: int, reason: str, now: float) -> Outcome:
        """Take back a credit whose bytes are gone or damaged; the part is rendered again. Claims on a chunk
        in flight that covers it end, so that no two chunks overlap."""
        turn = self._turn(now)
        books = self.books
        if part in books.credits:
            take_back(turn, part, reason)
        return self._finish(turn)

    # --- stimuli -----------------------------------------------------------------------------------------

    def handle(self, worker: str, request: msg.AnyRequest, now: float) -> Outcome:
        """A message from the connection of ``worker``."""
        if type(request) is msg.Join:
            return self._join(worker, request, now)
        seq = request.seq
        answers = self._answers.get(worker)
        if answers is None:
            answers = self._answers[worker] = Answers()
        # A step of a delivery may wait for its place at the store for longer than answers are kept, and is
        # answered with what is there, however often it is said.
        step = type(request) is msg.Begin or type(request) is msg.Block
        if seq is not None and not step:
            repeated = answers.repeated(seq)
            if repeated is not None:
                return Outcome(repeated)
        books = self.books
        turn = Turn(books, now, self._skipping)
        if worker not in books.workers:
            del self._answers[worker]
            answer: msg.AnyAnswer = refuse(turn, worker, request, worker, "join first", "state")
            return turn.outcome(numbered(answer, seq))
        answer = _ANSWER[type(request)](self, turn, worker, request)
        if seq is not None:
            answer = numbered(answer, seq) if step else answers.keep(seq, answer)
        answers.followed = True
        return self._finish(turn, answer)

    def gone(self, worker: str, reason: str, sure: bool, now: float, kind: str = "worker lost") -> Outcome:
        """The engine lost a worker. Not ``sure``: only said, the lapse timer decides. ``kind``: what the part
        it was at is said to have failed of."""
        turn = self._turn(now)
        record = self.books.workers.get(worker)
        if record is None:
            return turn.outcome()
        if not sure:
            turn.emit(
                ev.Notice(level="warning", text=f"{worker}: contact lost ({reason}); its lease decides")
            )
            return turn.outcome()
        self._lost(turn, record, reason, kind)
        return self._finish(turn)

    def hold(self, reason: str, now: float) -> Outcome:
        """Grant nothing more until ``free``; what is held goes on."""
        turn = self._turn(now)
        if not self.books.held:
            turn.emit(ev.GrantsHeld(reason=reason))
        return self._finish(turn)

    def free(self, now: float) -> Outcome:
        """Grant again after ``hold``."""
        turn = self._turn(now)
        if self.books.held:
            turn.emit(ev.GrantsFreed())
        return self._finish(turn)

    def tick(self, now: float) -> Outcome:
        """Judge leases, stalls and time limits. Call after the messages that are waiting were handled."""
        turn = self._turn(now)
        check_leases(turn)
        check_progress(turn)
        give_up_in_time(turn)
        for worker in list(self.books.blocked):
            until = self.books.workers[worker].blocked_until
            alone = not self.books.expected_count(now)
            if alone or (until is not None and until <= now):
                turn.emit(ev.WorkerForgiven(worker=worker))
        return self._finish(turn, time_passed=True)

    def command(self, command: cmd.AnyCommand, now: float) -> Outcome:
        """What of an operator's commands concerns the books; the shell does the rest."""
        turn = self._turn(now)
        refusal = carry_out(turn, command)
        if refusal is not None:
            turn.emit(ev.CommandRefused(command=type(command).__name__, reason=refusal, by=command.by))
            return turn.outcome(refusal=refusal)
        if isinstance(command, cmd.ChangeOptions):
            self._read_options(command.options)
        return self._finish(turn)

    # --- requests ----------------------------------------------------------------------------------------

    def _join(self, worker: str, request: msg.Join, now: float) -> Outcome:
        turn = self._turn(now)
        books = self.books
        options = books.options
        welcome = msg.Welcome(
            seq=request.seq,
            epoch=books.epoch,
            lease_seconds=options.lease_seconds,
            heartbeat_seconds=options.heartbeat_seconds,
            claim_ahead=options.claim_ahead,
        )
        refused: msg.AnyAnswer | None = None
        if request.worker != worker:
            reason = f"this connection belongs to {worker}"
            refused = refuse(turn, worker, request, request.worker, reason, "state")
        elif request.build and books.build and request.build != books.build:
            reason = f"parts of another build have other bytes; this job's is {books.build}"
            refused = refuse(turn, worker, request, request.build, reason, "version")
        if refused is not None:
            return turn.outcome(numbered(refused, request.seq))
        known = books.workers.get(worker)
        answers = self._answers.get(worker)
        if known is not None and answers is not None and answers.joined_by(request):
            return turn.outcome(welcome)
        if known is not None:
            self._lost(turn, known, "joined again")
        self._answers[worker] = Answers(request)
        turn.emit(
            ev.WorkerJoined(
                worker=worker,
                pid=request.pid,
                host=request.host,
                fps_cap=request.fps_cap,
                overhead_seconds=request.overhead_seconds,
                wire_version=request.version,
                build=request.build,
            )
        )
        return self._finish(turn, welcome)

    def _claim(self, turn: Turn, worker: str, request: msg.Claim) -> msg.AnyAnswer:
        held = self.books.workers[worker].claims
        if request.ahead and len(held) == 1 and self.books.options.claim_ahead:
            return grant_ahead(turn, worker, self._policy, self._tail)
        if held:
            reason = f"you hold {', '.join(held)}: complete or release it first"
            return refuse(turn, worker, request, worker, reason, "state")
        return grant(turn, worker, self._policy, self._tail)

    def _deliver(self, turn: Turn, worker: str, request: msg.Deliver) -> msg.AnyAnswer:
        claim = own_claim(turn, worker, request, request.token)
        if isinstance(claim, (ClaimRecord, ClaimToken)):
            return deliver(turn, worker, claim, request)
        return claim

    def _leave(self, turn: Turn, worker: str, request: msg.Leave) -> msg.AnyAnswer:
        for claim in list(self.books.workers[worker].claims.values()):
            endings.end_claim(turn, claim, "released", "its worker left")
        turn.emit(ev.WorkerLeft(worker=worker, reason=request.reason or "said good-bye", lost=False))
        return msg.Bye()

    def _take_block(self, turn: Turn, worker: str, request: msg.Begin | msg.Block) -> msg.AnyAnswer:
        claim = own_claim(turn, worker, request, request.token)
        if isinstance(claim, (ClaimRecord, ClaimToken)):
            return take_block(turn, worker, claim, request)
        return claim

    def _offer(self, turn: Turn, worker: str, request: msg.Offer) -> msg.AnyAnswer:
        return offer(turn, worker, request)

    def _heartbeat(self, turn: Turn, worker: str, request: msg.Heartbeat) -> msg.AnyAnswer:
        renewed: list[ev.ClaimProgress] = []
        states: list[msg.ClaimState] = []
        for progress in request.claims:
            claim = own_claim(turn, worker, request, progress.token)
            if isinstance(claim, ClaimRecord):
                renewed.append(_within(progress, claim))
            elif isinstance(claim, msg.Refused):
                states.append(msg.ClaimState(shorten(progress.token), live=False, reason=claim.reason))
            elif isinstance(claim, msg.NotClaimant):
                states.append(msg.ClaimState(progress.token, live=False, reason=claim.reason))
            else:
                states.append(turn.claim_state(progress.token))
        if renewed:
            turn.emit(ev.LeaseRenewed(worker=worker, claims=tuple(renewed)))
            trim_claims(turn, [progress.token for progress in renewed], self._policy)
        states += [turn.claim_state(progress.token) for progress in renewed]
        return beat(self.books, tuple(states))

    def _complete(self, turn: Turn, worker: str, request: msg.Complete) -> msg.AnyAnswer:
        claim = own_claim(turn, worker, request, request.token)
        if isinstance(claim, msg.NotClaimant | msg.Refused):
            return claim
        if isinstance(claim, ClaimToken):
            stop = self.books.ended[str(claim)].stop
            return msg.Completed(token=str(claim), done=True, next=stop, stop=stop)
        next_frame = turn.next_frame(claim.text)
        return msg.Completed(token=claim.text, done=False, next=next_frame, stop=claim.stop)

    def _release(self, turn: Turn, worker: str, request: msg.Release) -> msg.AnyAnswer:
        claim = live_claim(turn, worker, request, request.token)
        if not isinstance(claim, ClaimRecord):
            return claim
        endings.end_claim(turn, claim, "released")
        return msg.Ended(token=claim.text)

    def _fail(self, turn: Turn, worker: str, request: msg.Fail) -> msg.AnyAnswer:
        claim = live_claim(turn, worker, request, request.token)
        if not isinstance(claim, ClaimRecord):
            return claim
        grid = self.books.grid
        part = request.part
        if part is None or not (0 <= part < grid.parts and claim.start <= grid.start(part) < claim.stop):
            part = grid.part_at(turn.next_frame(claim.text))
        endings.fail_part(turn, claim, min(part, grid.parts - 1), request.kind, request.message)
        endings.end_claim(turn, claim, "failed", f"{request.kind}: {request.message}")
        endings.block_if_failing(turn, worker)
        return msg.Ended(token=claim.text)

    # --- turns -------------------------------------------------------------------------------------------

    def _turn(self, now: float) -> Turn:
        return Turn(self.books, now, self._skipping)

    def _read_options(self, options: ev.RelayOptions) -> None:
        self._policy = parse_policy(options.policy)
        self._tail = parse_tail(options.tail)
        self._skipping = self._tail.from_ == "frontier"

    def _finish(self, turn: Turn, answer: msg.AnyAnswer | None = None, time_passed: bool = False) -> Outcome:
        """What follows from a turn, whatever it was: parts set aside, parked workers woken, the end."""
        books = self.books
        stirred = time_passed or anything_happened(turn)
        if stirred and books.troubled:
            endings.set_aside_exhausted(turn)
        if books.parked:
            self._waking.wake_parked(turn, self._policy, self._tail, stirred=stirred, time_passed=time_passed)
        if stirred and not books.chunks and not books.work_left:
            endings.finish_work(turn)
        return Outcome(answer, tuple(turn.pushes), tuple(turn.events))

    def _lost(self, turn: Turn, worker: WorkerRecord, reason: str, kind: str = "worker lost") -> None:
        """A worker died, or a process took its place. A death counts against the part it was at, but not
        while the run is stopping: then it is we who end it."""
        for claim in list(worker.claims.values()):
            if not self.books.draining:
                part = self.books.grid.part_at(turn.next_frame(claim.text))
                endings.fail_part(turn, claim, part, kind, reason)
            endings.end_claim(turn, claim, "worker left", reason)
        turn.emit(ev.WorkerLeft(worker=worker.name, reason=reason, lost=True))
        self._answers.pop(worker.name, None)


_ANSWER: Final[dict[type, Callable[[Relay, Turn, str, Any], msg.AnyAnswer]]] = {
    msg.Claim: Relay._claim,
    msg.Heartbeat: Relay._heartbeat,
    msg.Deliver: Relay._deliver,
    msg.Begin: Relay._take_block,
    msg.Block: Relay._take_block,
    msg.Complete: Relay._complete,
    msg.Fail: Relay._fail,
    msg.Release: Relay._release,
    msg.Offer: Relay._offer,
    msg.Leave: Relay._leave,
}


def _within(progress: ev.ClaimProgress, claim: ClaimRecord) -> ev.ClaimProgress:
    """What a worker says of its position, held within its claim: it is only a report."""
    return msgspec.structs.replace(
        progress,
        position=min(max(progress.position, claim.start), claim.stop),
        rendered=max(progress.rendered, 0),
        decoded=max(progress.decoded, 0),
        delivered_bytes=max(progress.delivered_bytes, 0),
        render_seconds=max(progress.render_seconds, 0.0),
    )
