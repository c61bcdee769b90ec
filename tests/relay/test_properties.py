"""The invariants of scheduling.md after every step of arbitrary histories: lapses, duplicates, late and
repeated reports, unknown ids and tokens, older epochs, dying workers, failures, pauses, restarts.

The machine keeps a ledger of its own, from acknowledgements alone, and compares the relay's books with it.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.frames import parse_token
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.relay.validate import validate
from tests.relay.virtual import opened

WORKERS = ("w1", "w2", "w3", "w4")
worker_names = st.sampled_from(WORKERS)
samples = st.none() | st.frozensets(st.integers(0, 29), min_size=1, max_size=6)


def rarely(machine: RelayMachine) -> bool:
    """So that histories aren't all endings and restarts."""
    return getattr(machine, "seq", 0) % 6 == 5


class RelayMachine(RuleBasedStateMachine):
    @initialize(
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
        policy=st.sampled_from(["fixed,5", "fixed,20", "guided,1", "guided,3,12"]),
        tail=st.sampled_from(["none", "duplicate-oldest,from=start", "duplicate-oldest,from=frontier"]),
        sample=samples,
    )
    def begin(self, sizes: list[int], policy: str, tail: str, sample: frozenset[int] | None) -> None:
        self.now = 0.0
        self.cuts = [0]
        for size in sizes:
            self.cuts.append(self.cuts[-1] + size)
        options = ev.RelayOptions(
            policy=policy, tail=tail, lease_seconds=10, stall_timeout_seconds=40, block_seconds=15
        )
        self.relay = Relay(Books())
        self.log: list[tuple[float, ev.AnyEvent]] = []
        #: tokens each worker was granted and has not been told the end of
        self.held: dict[str, dict[str, tuple[int, int]]] = {worker: {} for worker in WORKERS}
        self.old_tokens: list[str] = ["c0#1@e1", "c7#1@e1", "c0#9@e9"]
        self.acknowledged: dict[int, int] = {}
        self.credited_sum = 0
        self.seq = 0
        self.sent: list[tuple[str, msg.AnyRequest, msg.AnyAnswer]] = []
        self.note(self.relay.open(opened(self.cuts, options), 0.0))
        self.note(self.relay.start(0.0))
        self.choose(sample)
        self.join_all()

    # --- helpers -----------------------------------------------------------------------------------------

    def choose(self, sample: frozenset[int] | None) -> None:
        if sample is not None:
            self.note(
                self.relay.choose_sample((part for part in sample if part < len(self.cuts) - 1), self.now)
            )

    def note(self, outcome: Outcome) -> Outcome:
        self.log += [(self.now, event) for event in outcome.events]
        for worker, push in outcome.pushes:
            self.hear(worker, push)
        return outcome

    def hear(self, worker: str, answer: Any) -> None:
        if isinstance(answer, msg.Granted):
            assert not self.relay.books.draining
            parts = set(self.relay.books.grid.parts_in(answer.start, answer.stop))
            sample = self.relay.books.sample
            assert sample is None or parts <= sample, "a part outside the sample was given out"
            self.held[worker][answer.token] = (answer.start, answer.stop)
        if isinstance(answer, msg.Delivered):
            self.credited_sum += answer.frames
            if answer.frames:
                assert answer.part not in self.acknowledged, "a part was credited twice"
                self.acknowledged[answer.part] = answer.frames

    def send(self, worker: str, request: msg.AnyRequest) -> Outcome:
        outcome = self.note(self.relay.handle(worker, request, self.now))
        if outcome.answer is not None:
            self.hear(worker, outcome.answer)
            if request.seq is not None:
                self.sent.append((worker, request, outcome.answer))
        return outcome

    def number(self) -> int:
        self.seq += 1
        return self.seq

    def live(self, worker: str) -> list[str]:
        record = self.relay.books.workers.get(worker)
        return list(record.claims) if record else []

    # --- what workers do ---------------------------------------------------------------------------------

    @rule()
    def join_all(self) -> None:
        for worker in WORKERS:
            if worker not in self.relay.books.workers:
                self.send(worker, msg.Join(worker=worker, seq=self.number()))
                assert worker in self.relay.books.workers

    @precondition(rarely)
    @rule(worker=worker_names)
    def join_again(self, worker: str) -> None:
        self.send(worker, msg.Join(worker=worker, seq=self.number()))

    @rule()
    def all_claim(self) -> None:
        for worker in WORKERS:
            if worker in self.relay.books.workers and not self.live(worker):
                self.claim(worker, True)

    @rule(worker=worker_names, numbered=st.booleans())
    def claim_one(self, worker: str, numbered: bool) -> None:
        self.claim(worker, numbered)

    def claim(self, worker: str, numbered: bool) -> None:
        holds = self.live(worker)
        had_open = self.relay.books.open.frames
        wanted = list(self.relay.books.wanted)
        answer = self.send(worker, msg.Claim(seq=self.number() if numbered else None)).answer
        if holds:
            assert isinstance(answer, msg.Refused)
        if isinstance(answer, msg.Granted):
            first, last = self.cuts.index(answer.start), self.cuts.index(answer.stop)
            assert first < last
            duplicate = not answer.token.split("@")[0].endswith("#1")
            asked_for = duplicate and parse_token(answer.token).chunk in wanted
            assert asked_for or not (duplicate and had_open), "the tail acted while work was open"

    @rule(worker=worker_names, data=st.data())
    def deliver(self, worker: str, data: st.DataObject) -> None:
        """The next part of a live claim, mostly; sometimes a later one, or one delivered before."""
        tokens = self.live(worker)
        if not tokens:
            return
        token = tokens[0]
        claim = self.relay.books.leases[token]
        grid = self.relay.books.grid
        parts = list(grid.parts_in(claim.start, claim.stop))
        expected = grid.part_at(self.relay.books.next_frame(claim, True))
        part = data.draw(st.sampled_from([expected] * 4 + parts))
        credited = part in self.acknowledged
        answer = self.send(worker, self.delivery(token, part)).answer
        assert isinstance(answer, msg.Delivered)
        assert (answer.frames == 0) == credited
        assert answer.next <= answer.stop

    @precondition(rarely)
    @rule(worker=worker_names)
    def finish_chunk(self, worker: str) -> None:
        while tokens := self.live(worker):
            claim = self.relay.books.leases[tokens[0]]
            part = self.relay.books.grid.part_at(self.relay.books.next_frame(claim, True))
            self.send(worker, self.delivery(tokens[0], part))

    def delivery(self, token: str, part: int) -> msg.Deliver:
        size = self.cuts[part + 1] - self.cuts[part]
        file = f"{part}-{token}"
        return msg.Deliver(
            seq=self.number(), token=token, part=part, file=file, frames=size, sha256=f"s{part}"
        )

    @rule(worker=worker_names, moved=st.integers(0, 3))
    def heartbeat(self, worker: str, moved: int) -> None:
        claims = []
        for token in self.live(worker):
            claim = self.relay.books.leases[token]
            claims.append(ev.ClaimProgress(token, claim.position + moved, claim.rendered + moved))
        answer = self.send(worker, msg.Heartbeat(seq=self.number(), claims=tuple(claims))).answer
        if worker in self.relay.books.workers:
            assert isinstance(answer, msg.Beat)
            assert all(state.live for state in answer.claims)

    @rule(worker=worker_names, data=st.data(), kind=st.sampled_from(["deliver", "complete", "fail", "beat"]))
    def speak_for_a_claim_that_is_not_held(self, worker: str, data: st.DataObject, kind: str) -> None:
        """Lapsed, somebody else's, of an older epoch, or never granted."""
        if worker not in self.relay.books.workers:
            return
        known = [token for tokens in self.held.values() for token in tokens] + self.old_tokens
        token = data.draw(st.sampled_from(known))
        ended = self.relay.books.ended.get(token)
        own_end = ended is not None and ended.worker == worker and ended.how in ("completed", "superseded")
        own_end = own_end and token.endswith(f"@e{self.relay.books.epoch}")
        if token in self.live(worker) or own_end:
            return
        before = self.fingerprint()
        request: msg.AnyRequest
        if kind == "deliver":
            request = msg.Deliver(token=token, part=0, frames=self.cuts[1])
        elif kind == "complete":
            request = msg.Complete(token=token)
        elif kind == "fail":
            request = msg.Fail(token=token)
        else:
            request = msg.Heartbeat(claims=(ev.ClaimProgress(token, 0, 10**6),))
        outcome = self.send(worker, request)
        if kind == "beat":
            assert isinstance(outcome.answer, msg.Beat)
            assert not outcome.answer.claims[0].live
        else:
            assert isinstance(outcome.answer, msg.NotClaimant | msg.Refused)
        assert self.fingerprint() == before, "a refusal changed something"

    @rule(worker=worker_names, data=st.data())
    def report_a_finished_claim_again(self, worker: str, data: st.DataObject) -> None:
        """After its own claim was completed or superseded a worker is acknowledged with zero frames."""
        mine = [
            token
            for token, ended in self.relay.books.ended.items()
            if ended.worker == worker
            and ended.how in ("completed", "superseded")
            and token.endswith(f"@e{self.relay.books.epoch}")
        ]
        if not mine or worker not in self.relay.books.workers:
            return
        token = data.draw(st.sampled_from(mine))
        part = self.cuts.index(self.relay.books.ended[token].start)
        before = self.fingerprint()
        answer = self.send(worker, self.delivery(token, part)).answer
        assert isinstance(answer, msg.Delivered) and answer.frames == 0 and not answer.live
        done = self.send(worker, msg.Complete(token=token)).answer
        assert isinstance(done, msg.Completed) and done.done
        assert self.fingerprint() == before

    @rule(worker=worker_names)
    def complete_too_early(self, worker: str) -> None:
        for token in self.live(worker):
            before = self.fingerprint()
            answer = self.send(worker, msg.Complete(seq=self.number(), token=token)).answer
            assert isinstance(answer, msg.Completed) and not answer.done and answer.next < answer.stop
            assert self.fingerprint() == before

    @rule(worker=worker_names, kind=st.sampled_from(["fail", "fail", "release", "leave", "count"]))
    def give_up(self, worker: str, kind: str) -> None:
        tokens = self.live(worker)
        if kind == "leave":
            self.send(worker, msg.Leave(seq=self.number()))
        elif tokens and kind == "fail":
            self.send(worker, msg.Fail(seq=self.number(), token=tokens[0], message="no"))
        elif tokens and kind == "release":
            self.send(worker, msg.Release(seq=self.number(), token=tokens[0]))
        elif tokens:
            claim = self.relay.books.leases[tokens[0]]
            part = self.relay.books.grid.part_at(claim.start)
            wrong = self.cuts[part + 1] - self.cuts[part] + 2
            self.send(worker, msg.Deliver(token=tokens[0], part=part, frames=wrong))

    @precondition(rarely)
    @rule(worker=worker_names, stored=st.integers(0, 4), begins=st.booleans())
    def send_a_block(self, worker: str, stored: int, begins: bool) -> None:
        for token in self.live(worker):
            claim = self.relay.books.leases[token]
            part = self.relay.books.grid.part_at(self.relay.books.next_frame(claim, True))
            fields = {"seq": self.number(), "token": token, "part": part, "of": 4, "stored": stored}
            request = msg.Begin(**fields) if begins else msg.Block(index=max(stored - 1, 0), **fields)
            answer = self.send(worker, request).answer
            assert isinstance(answer, msg.BlockStored) and answer.live and answer.next_block == stored
            assert self.live(worker)[0] == token or len(self.live(worker)) > 1

    @precondition(rarely)
    @rule(worker=worker_names, part=st.integers(-1, 15))
    def offer(self, worker: str, part: int) -> None:
        self.send(worker, msg.Offer(seq=self.number(), part=part))

    @precondition(lambda self: getattr(self, "sent", None))
    @rule(data=st.data())
    def repeat_a_message(self, data: st.DataObject) -> None:
        worker, request, first = data.draw(st.sampled_from(self.sent[-30:]))
        known = self.relay._answers.get(worker, {})
        if request.seq not in known or isinstance(request, msg.Join):
            return
        before = self.fingerprint()
        outcome = self.relay.handle(worker, request, self.now)
        assert outcome.answer == first and not outcome.events and not outcome.pushes
        assert self.fingerprint() == before

    # --- what happens to them ----------------------------------------------------------------------------

    @precondition(rarely)
    @rule(worker=worker_names, sure=st.booleans())
    def die(self, worker: str, sure: bool) -> None:
        self.note(self.relay.gone(worker, "killed", sure, self.now))
        assert not sure or worker not in self.relay.books.workers

    @rule(seconds=st.sampled_from([0.1, 3.0, 9.0, 11.0, 50.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.note(self.relay.tick(self.now))
        for claim in self.relay.books.leases.values():
            assert self.now - claim.renewed_at < 10

    @precondition(rarely)
    @rule(command=st.sampled_from([cmd.Pause(), cmd.Resume(), cmd.Drain()]))
    def command(self, command: cmd.AnyCommand) -> None:
        self.note(self.relay.command(command, self.now))

    @precondition(rarely)
    @rule(
        policy=st.sampled_from(["fixed,3", "guided,2"]),
        tail=st.sampled_from(["none", "duplicate-oldest,from=start", "duplicate-oldest,from=frontier"]),
    )
    def change_policy(self, policy: str, tail: str) -> None:
        options = self.relay.books.options
        changed = ev.RelayOptions(
            policy=policy,
            tail=tail,
            lease_seconds=options.lease_seconds,
            stall_timeout_seconds=options.stall_timeout_seconds,
            block_seconds=options.block_seconds,
        )
        self.note(self.relay.command(cmd.ChangeOptions(options=changed), self.now))

    @rule(data=st.data(), act=st.sampled_from(["copy", "copy", "release token", "release chunk"]))
    def act_on_a_claim(self, data: st.DataObject, act: str) -> None:
        """An operator wants a copy of what is held, or takes it away; or of what is held no more."""
        books = self.relay.books
        token = data.draw(st.sampled_from([*books.leases, *self.old_tokens]))
        chunk, live = token.partition("#")[0], token in books.leases
        before = self.fingerprint()
        if act == "copy":
            flying = books.chunks.get(parse_token(token).chunk)  # also where the token itself is over
            holders = 0 if flying is None else len(flying.claims)
            outcome = self.note(self.relay.command(cmd.DuplicateChunk(chunk=chunk), self.now))
            assert holders == 1 or outcome.refusal
        else:
            claim = token if act == "release token" else chunk
            tries = {part: list(workers) for part, workers in books.tries.items()}
            outcome = self.note(self.relay.command(cmd.ReleaseClaim(claim=claim), self.now))
            assert token not in books.leases and books.tries == tries, "it goes on, or a try was counted"
            assert outcome.refusal is None or not live
        if outcome.refusal is not None:
            assert self.fingerprint() == before, "what was refused changed something"

    @precondition(rarely)
    @rule(worker=worker_names, fps=st.sampled_from([None, 0.5, 12.0]), leaves=st.booleans())
    def act_on_a_worker(self, worker: str, fps: float | None, leaves: bool) -> None:
        remove, throttle = cmd.RemoveWorker(worker=worker), cmd.ThrottleWorker(worker=worker, fps=fps)
        outcome = self.note(self.relay.command(remove if leaves else throttle, self.now))
        if leaves and outcome.refusal is None:
            assert isinstance(self.send(worker, msg.Claim()).answer, msg.Finished | msg.Refused)

    @precondition(rarely)
    @rule(sample=samples)
    def restart(self, sample: frozenset[int] | None = None) -> None:
        """Kill the relay: all that is left is the log. Its fold goes on in a new epoch."""
        self.old_tokens += list(self.relay.books.leases)
        books = Books()
        for at, event in self.log:
            books.apply(at, event)
        assert fingerprint(books) == self.fingerprint(), "state is not the fold of the events"
        epoch = books.epoch
        self.relay = Relay(books)
        self.note(self.relay.start(self.now))
        assert books.epoch == epoch + 1 and not books.leases and not books.workers
        assert not books.deferred_frames and books.sample is None
        self.choose(sample)

    # --- what must hold ----------------------------------------------------------------------------------

    def fingerprint(self) -> tuple[Any, ...]:
        return fingerprint(self.relay.books)

    @invariant()
    def books_are_right(self) -> None:
        if not hasattr(self, "relay"):
            return
        books = self.relay.books
        validate(books)
        assert books.credited_frames == self.credited_sum == sum(self.acknowledged.values())
        for part, frames in self.acknowledged.items():
            assert frames == self.cuts[part + 1] - self.cuts[part]
        assert books.finished == (not books.work_left), (
            "the job ends exactly when nothing is open or in flight"
        )

    def teardown(self) -> None:
        """With one live, unblocked worker left the job always ends."""
        if not hasattr(self, "relay"):
            return
        self.restart()
        self.note(self.relay.handle("w9", msg.Join(worker="w9"), self.now))
        self.held["w9"] = {}
        for _ in range(200):
            if self.relay.books.finished:
                break
            answer = self.send("w9", msg.Claim()).answer
            assert isinstance(answer, msg.Granted), answer
            while tokens := self.live("w9"):
                claim = self.relay.books.leases[tokens[0]]
                part = self.relay.books.grid.part_at(self.relay.books.next_frame(claim, True))
                self.send("w9", self.delivery(tokens[0], part))
        assert self.relay.books.finished
        self.books_are_right()


def fingerprint(books: Books) -> tuple[Any, ...]:
    """What a refusal or a repeat must leave alone, and a fold must reproduce."""
    return copy.deepcopy(
        (
            bytes(books.parts),
            list(books.open),
            [(claim.text, claim.renewed_at, claim.own_next) for claim in books.leases.values()],
            [(n, list(chunk.claims), chunk.next, chunk.uncredited) for n, chunk in books.chunks.items()],
            list(books.duplicable),
            {
                name: (list(worker.claims), worker.failures_in_row, worker.blocked_until)
                for name, worker in books.workers.items()
            },
            list(books.parked),
            dict(books.tries),
            (list(books.wanted), dict(books.taken_from), list(books.dismissed), dict(books.caps)),
            sorted(books.credits),
            (books.credited_frames, books.set_aside_frames, books.chunk_count, books.epoch),
            (books.sample, books.deferred_frames),
            (books.paused_at, books.draining, books.finished, books.options),
        )
    )


TestRelay = RelayMachine.TestCase
TestRelay.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
