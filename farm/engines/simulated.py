"""The engine in virtual time: discrete events around the real relay.

Theory of operation. Everything that will happen is on an agenda in the order of its time; ``step`` takes the
next thing and lets it happen. Workers (farm.simulation.worker) and the relay speak the messages of the live
farm; what takes no virtual time is done within one step. The relay is ticked when something can run out
(a lease, a stall, a block), and every WATCH_SECONDS while workers are parked, whom time alone may bring work;
the live farm ticks ten times a second, so it notices up to 0.1 s later.

Rules of this file:
- no wall clock, no randomness but the world's seed, no iteration over sets: one world, one log;
- what the relay's shell does live (start line, good-byes at the end) is done here in the same order;
- the engine never decides anything about claims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import msgspec

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.fleet import WorkerProfile
from farm.manners import LEAVE_SECONDS, TICK_SECONDS
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.relay.validate import validate
from farm.sampling import SampleSize, predict, sample_parts
from farm.simulation.agenda import Agenda
from farm.simulation.bench import Bench
from farm.simulation.doing import Doing
from farm.simulation.effort import Efforts, Pace
from farm.simulation.fates import Fates
from farm.simulation.faults import Faults
from farm.simulation.leasetime import LeaseTime
from farm.simulation.line import Line
from farm.simulation.links import Places
from farm.simulation.making import make_worker
from farm.simulation.noise import Stream
from farm.simulation.ticks import WATCH_SECONDS, runs_out_at
from farm.simulation.troubled import TroubledWorker
from farm.simulation.wishes import spelt_out, why_not
from farm.simulation.worker import Worker
from farm.simulation.world import SimWorker, World, check_world

#: More stimuli than any fleet needs at one instant; checked as often as it says.
STIMULI_AT_ONCE_MAX = 1 << 16

OnRecord = Callable[[ev.Record], None]


class StandStill(RuntimeError):
    """Relay and workers talk and talk while no time passes: a fault of a policy or of the relay."""


class Simulation:
    """One world, from its first join to its last good-bye. ``on_record`` hears every event as it happens;
    ``keep_log`` collects them in ``records``; with ``validate_every`` n the relay's books are recounted after
    every n-th stimulus (0: never); with ``injectable`` faults may be injected that are not the world's.

    Raises UsageError for a world or options that make no sense."""

    def __init__(
        self,
        world: World,
        *,
        on_record: OnRecord | None = None,
        keep_log: bool = False,
        validate_every: int = 0,
        injectable: bool = False,
    ) -> None:
        check_world(world)
        self.world = world
        self.records: list[ev.Record] = []
        self.ended = False
        self.stimuli = 0  #: what the relay was told, ticks included
        self._on_record = on_record
        self._keep_log = keep_log
        self._logging = keep_log or on_record is not None
        self._next_seq = 0
        self._validate_every = validate_every
        self._agenda = Agenda()
        self._fates = Fates(self, self._agenda)
        self.lease_time = LeaseTime(self._agenda)
        #: by name, in the world's order
        self.workers: dict[str, Worker] = {}
        self._lines: dict[str, Line] = {}
        self._troubled: dict[str, TroubledWorker] = {}
        self._faults: Faults | None = None
        if world.faults or injectable:
            self._faults = Faults(self, self._agenda, self._troubled, world)
        self._tick_at = inf  # when the relay is ticked next
        self._checked_at = -1.0  # when the last of so many stimuli came
        self._changed_at = 0.0  # when the relay last had anything to say
        self._closing = False
        self.books = Books()
        self.relay = Relay(self.books)
        self._after(self.relay.open(self._opened(), 0.0))
        self._after(self.relay.start(0.0))
        if world.sample is not None:
            parts = sample_parts(self.books.grid.parts, SampleSize(parts=world.sample))
            self._after(self.relay.choose_sample(parts, 0.0))
        self.log((ev.PhaseStarted(phase="work"),))
        self._efforts = efforts = Efforts(world)
        self._places = Places(self._agenda)
        for number, spec in enumerate(world.workers):
            self._enlist(spec, Bench(efforts.pace(number), efforts.costs(number)))
        for worker in self.workers.values():
            self._fates.plan(worker)

    def _enlist(self, spec: SimWorker, bench: Bench) -> None:
        line = Line(spec.name, self._agenda, self._arrive, self.world.latency_seconds)
        self._lines[spec.name] = line
        worker = make_worker(
            spec,
            self.world,
            self.books.grid,
            bench,
            self._agenda,
            line,
            self._places,
            troubled=self._faults is not None,
        )
        self.workers[spec.name] = worker
        if isinstance(worker, TroubledWorker):
            self._troubled[spec.name] = worker

    def _opened(self) -> ev.RunOpened:
        world = self.world
        return ev.RunOpened(
            run_id=f"{world.name}-{world.seed}",
            input=world.name,
            output="",
            frames=world.frames,
            cuts=world.cuts,
            settings_hash="",
            fingerprint="",
            build="",
            options=world.options,
            fleet=tuple(f"{worker.name}:{worker.fps:g}" for worker in world.workers),
        )

    # --- driving -----------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self._agenda.now

    @property
    def next_at(self) -> float | None:
        """When the next thing happens; None when all is over."""
        return None if self.ended else self._agenda.next_at()

    def step(self) -> bool:
        """Let the next thing happen; False when all is over."""
        if self.ended:
            return False
        if not self._agenda.step():
            self._close(None)
        return not self.ended

    def run_until(self, time: float) -> None:
        """Let everything up to and at ``time`` happen; then it is ``time``, unless all was over before."""
        while not self.ended:
            at = self._agenda.next_at()
            if at is not None and at > time:
                self.wait_until(time)
                return
            self.step()

    def wait_until(self, time: float) -> None:
        """Let time pass in which nothing happens: to ``time``, or to when something would."""
        at = self.next_at
        if at is not None:
            self._agenda.now = max(self._agenda.now, min(time, at))

    def run(self) -> None:
        """To the end."""
        while not self.ended:
            self._agenda.run()
            self._close(None)

    def command(self, command: cmd.AnyCommand) -> str | None:
        """What an operator asks, at this moment. None: done; else why not."""
        if self.ended:
            return "the run is over"
        reason = why_not(command, self.workers, injectable=self._faults is not None)
        if reason is not None:
            self.log((ev.CommandRefused(command=type(command).__name__, reason=reason, by=command.by),))
            return reason
        asked, command = command, spelt_out(command, self.workers)
        outcome = self.relay.command(command, self.lease_time.now)
        self._after(outcome)
        if outcome.refusal is not None:
            return outcome.refusal
        match command:
            case cmd.StallWorker(worker=name, stalled=stalled) if name in self.workers:
                self._fates.stall(self.workers[name], stalled)
            case cmd.KillWorker(worker=name) if name in self.workers:
                self._kill(self.workers[name], "killed by the operator", reported=True)
            case cmd.StopNow():
                self._close(None)
            case cmd.InjectFault(fault=fault) if self._faults is not None:
                self._faults.inject(fault, self.lease_time.now)
            case cmd.AddWorker(profile=profile):
                self._add(profile)
            case cmd.ThrottleWorker(worker=name, fps=fps):
                self.workers[name].fps_cap = fps  # which its process is about to hear
                if isinstance(asked, cmd.ThrottleWorker) and asked.fps != fps and asked.fps is not None:
                    text = f"{name} renders {fps:g} fps at most: {asked.fps:g} are not possible"
                    self.log((ev.Notice(level="warning", text=text),))
        return None

    def _add(self, profile: WorkerProfile) -> None:
        """A machine without trouble joins, now."""
        assert profile.fps_cap is not None
        spec = SimWorker(
            name=profile.name,
            fps=profile.fps_cap,
            overhead_seconds=profile.overhead_seconds,
            link=profile.link,
            arrives_at_seconds=self.now,
        )
        self.world = msgspec.structs.replace(self.world, workers=(*self.world.workers, spec))
        bench = Bench(Pace(spec, Stream(self.world.seed, "load", spec.name)), self._efforts.plain)
        self._enlist(spec, bench)
        if self._faults is not None:
            self._faults.add(spec.name)
        self._fates.plan(self.workers[spec.name])

    # --- the relay ---------------------------------------------------------------------------------------

    def _arrive(self, line: Line, request: msg.AnyRequest) -> None:
        """A worker's message reaches the relay."""
        if self.ended:
            return
        lease_time = self.lease_time
        if lease_time.standing:
            lease_time.waiting.append(lambda: self._arrive(line, request))
            return
        outcome = self.relay.handle(line.name, request, self._agenda.now - lease_time.lost_seconds)
        self._note(outcome)
        answer = outcome.answer
        if outcome.pushes:
            if answer is not None:
                line.push(answer)
            self._push(outcome)
        elif answer is not None:
            line.reply(answer)

    def _after(self, outcome: Outcome) -> None:
        """What follows from anything else the relay did."""
        self._note(outcome)
        self._push(outcome)

    def _push(self, outcome: Outcome) -> None:
        for name, push in outcome.pushes:
            self._lines[name].push(push)

    def _note(self, outcome: Outcome) -> None:
        """Write down what happened, and plan what may follow from it."""
        self.stimuli = stimuli = self.stimuli + 1
        if stimuli % STIMULI_AT_ONCE_MAX == 0:
            self._check_time_passes()
        books = self.books
        events = outcome.events
        if events:
            self._changed_at = self._agenda.now
            if self._logging:
                self.log(events)
            if self._faults is not None:
                self._faults.see(self.lease_time.now, events)
        if self._validate_every and stimuli % self._validate_every == 0:
            validate(books)
        if self._tick_at == inf or (books.parked and self._tick_at > self._agenda.now + WATCH_SECONDS):
            self._plan_tick()
        if not events:
            return
        if books.finished and not self._closing:
            self._closing = True
            self._agenda.add(self._agenda.now + LEAVE_SECONDS, self._close)
        if not books.workers and (self._closing or books.draining):
            self._agenda.soon.append((self._close, None))

    def _check_time_passes(self) -> None:
        if self._agenda.now == self._checked_at:
            options = self.books.options
            raise StandStill(
                f"{STIMULI_AT_ONCE_MAX} messages at {self._agenda.now:.3f} s with {options.policy} and "
                f"{options.tail}, and {self.books.chunk_count} chunks so far: time does not pass"
            )
        self._checked_at = self._agenda.now

    def log(self, events: Sequence[ev.AnyEvent]) -> None:
        if not self._logging:
            return
        now = self.lease_time.now
        for event in events:
            record = ev.Record(self._next_seq, now, event)
            self._next_seq += 1
            if self._keep_log:
                self.records.append(record)
            if self._on_record is not None:
                self._on_record(record)

    # --- the relay's time --------------------------------------------------------------------------------

    def _plan_tick(self) -> None:
        if not self.world.heartbeats or self.ended:
            return
        at = max(
            runs_out_at(self.books, self.lease_time.now) + self.lease_time.lost_seconds,
            self._agenda.now + TICK_SECONDS,
        )
        if at < self._tick_at:
            self._tick_at = at
            self._agenda.add(at, self._tick, at)

    def _tick(self, at: float) -> None:
        if at != self._tick_at or self.ended:
            return
        self._tick_at = inf
        if self.lease_time.standing:
            return
        self._after(self.relay.tick(self.lease_time.now))
        self._plan_tick()
        if self._stands_still():
            self._close(None)

    def _stands_still(self) -> bool:
        """Whether nothing will ever change again: nobody works or will, and no lease or block is left to run
        out."""
        books = self.books
        to_come = self._fates.to_come + (self._faults.to_come if self._faults is not None else 0)
        if books.leases or to_come or books.paused_at is not None:
            return False
        patience = books.options.lease_seconds + books.options.block_seconds + WATCH_SECONDS
        if self._agenda.now - self._changed_at <= patience:
            return False
        return not any(worker.at_work for worker in self.workers.values())

    # --- what fates and faults may do (farm.simulation.fates.Scene, farm.simulation.faults.Stage) ----------

    def wake(self, worker: Worker) -> None:
        """It goes on, or arrives if it should be there."""
        worker.thaw()
        if worker.spec.arrives_at_seconds <= self._agenda.now and not self._lines[worker.name].cut:
            worker.arrive()

    def cut_off(self, worker: Worker) -> None:
        self._lines[worker.name].cut = True
        if worker.patience_ends_at < inf:
            self._agenda.add(worker.patience_ends_at, self._lose_patience, worker)

    def _lose_patience(self, worker: Worker) -> None:
        if self._lines[worker.name].cut and worker.patience_ends_at <= self._agenda.now:
            worker.give_up()

    def join_up(self, worker: Worker) -> None:
        self._lines[worker.name].heal()
        if worker.spec.arrives_at_seconds <= self._agenda.now and not worker.frozen:
            worker.arrive()

    def die(self, worker: Worker) -> None:
        self._kill(worker, "died", reported=self.world.deaths_reported)

    def _kill(self, worker: Worker, reason: str, *, reported: bool) -> None:
        if worker.doing is Doing.GONE:
            return
        worker.die()
        if reported:
            self._tell_gone(worker.name, reason)
        else:
            self.log((ev.OperatorActed(action="kill", worker=worker.name, detail="by the scenario"),))

    def _tell_gone(self, name: str, reason: str) -> None:
        if self.lease_time.standing:
            self.lease_time.waiting.append(lambda: self._tell_gone(name, reason))
        else:
            self._after(self.relay.gone(name, reason, True, self.lease_time.now))

    def lose(self, worker: Worker, reason: str, *, for_good: bool) -> None:
        """Its process is gone; unless it is for good, ``wake`` starts another one."""
        worker.die(for_good=for_good)
        worker.frozen = False
        if self.world.deaths_reported:
            self._tell_gone(worker.name, reason)

    def hold_relay(self, held: bool) -> None:
        """The relay's loop stands still, or goes on with what waits for it."""
        if held:
            self.lease_time.stand()
            return
        slept, waiting = self.lease_time.go_on()
        if slept:
            self.log((ev.LoopStalled(seconds=slept),))
        for handle in waiting:
            handle()
        self._plan_tick()

    # --- the end -----------------------------------------------------------------------------------------

    def _close(self, _: object) -> None:
        """See off whoever is left, and end."""
        if self.ended:
            return
        self.ended = self._agenda.over = True
        for worker in self.workers.values():
            worker.settle()
        books = self.books
        reason = "the run is over" if books.finished else "the run stopped"
        for name in list(books.workers):
            outcome = self.relay.handle(name, msg.Leave(reason=reason), self.lease_time.now)
            self.log(outcome.events)
        if self._faults is not None:
            self.log(self._faults.never_came())
        complete = books.finished and not books.set_aside_frames
        sample = self.world.sample is not None
        predicted = predict(books.grid, books.credits, self._profiles()) if sample else None
        if predicted is not None:
            self.log((predicted,))
        self.log((ev.RunFinished(exit_code=0 if complete else 5, outcome=self._outcome(), sample=sample),))

    def _profiles(self) -> list[WorkerProfile]:
        return [WorkerProfile(name=worker.name, fps_cap=worker.fps) for worker in self.world.workers]

    def _outcome(self) -> str:
        if not self.books.finished:
            return "stopped with work left"
        return "done" if not self.books.set_aside_frames else "finished incomplete"
