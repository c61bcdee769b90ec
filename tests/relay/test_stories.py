"""Whole stories: what went wrong in other systems (the reports RG34 to RG46), told to the real relay, and
jobs that must end whatever their workers do. Steps are numbered; state equals the fold of the events
throughout."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.clock import LeaseClock
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.validate import validate
from tests.relay.driver import Run, state_of
from tests.relay.virtual import VirtualFarm, opened


def test_two_hosts_render_the_same_frame_and_the_log_tells_both() -> None:
    """RG36. 1. w1 holds parts 0 and 1, is alive, but cut off; it lapses. 2. w2 renders the same. 3. Both
    write, under names of their own; w2's copy counts. 4. The log has both claims, how each ended, and the
    refusal."""
    run = Run("w1", "w2", parts=2)
    one = run.claim("w1").token
    run.wait(20)
    two = run.claim("w2").token
    assert isinstance(run.deliver("w1", one, 0), msg.NotClaimant)
    run.credit("w2", two, 0, 1)
    assert isinstance(run.deliver("w1", one, 1), msg.NotClaimant)
    history = [(event.token, event.how) for event in run.all(ev.ClaimEnded)]
    assert history == [(one, "lapsed"), (two, "completed")]
    assert [event.file for event in run.all(ev.PartCredited)] == [f"0-{two}", f"1-{two}"]
    assert [event.token for event in run.all(ev.ClaimRefused)] == [one, one]


def test_a_sleeping_worker_wakes_into_a_job_that_went_on() -> None:
    """RG35, RG42. 1. w1 delivers part 0 of three and its lid is closed. 2. It lapses; w2 takes the rest and
    delivers part 1. 3. w1 wakes, delivers part 1 and beats: refused, told who holds it. 4. It asks for work
    and gets a copy of what is left, under a new token. 5. It wins. Every frame is credited once."""
    run = Run("w1", "w2", parts=3, policy="fixed,30")
    old = run.claim("w1").token
    run.credit("w1", old, 0)
    run.wait(20)
    two = run.claim("w2").token
    run.credit("w2", two, 1)
    answer = run.deliver("w1", old, 1)
    assert isinstance(answer, msg.NotClaimant) and answer.holder == "w2"
    assert not run.beat("w1", old).claims[0].live
    new = run.claim("w1")
    assert (new.token, new.start) == ("c1#2@e1", 20)
    run.credit("w1", new.token, 2)
    assert run.books.finished
    assert sorted(event.part for event in run.all(ev.PartCredited)) == [0, 1, 2]


def test_the_wall_clock_decides_nothing() -> None:
    """RG41. The same run at another hour, or with the clock set back: the same books."""

    def books(wall_time: str) -> dict[str, str]:
        relay = Relay(Books())
        relay.open(opened(range(0, 31, 10), ev.RelayOptions()), 0.0)
        relay.start(0.0, wall_time)
        relay.handle("w1", msg.Join(worker="w1"), 1.0)
        relay.handle("w1", msg.Claim(), 2.0)
        relay.tick(21.9)
        return state_of(relay.books)

    assert books("2024-01-01T00:00:00") == books("2031-07-01T12:00:00") == books("")


def test_a_relay_that_slept_finds_no_lease_lapsed() -> None:
    """RG43. 1. Two workers hold claims. 2. The relay's machine sleeps for an hour. 3. It wakes and judges
    before anyone could beat: on the lease clock a third of a second has passed."""
    raw = [500.0]
    clock = LeaseClock(lambda: raw[0])
    run = Run("w1", "w2", lease_seconds=3.0)
    for worker in ("w1", "w2"):
        run.claim(worker)
    raw[0] += 3600
    for _ in range(3):
        run.now = clock.now()
        run.wait(0)
        clock.beat()
        raw[0] += 0.1
    assert run.books.lapses == 0 and len(run.books.leases) == 2


@pytest.mark.parametrize("tail", ["none", "duplicate-oldest,from=frontier", "duplicate-oldest,from=start"])
def test_stragglers_do_not_set_the_finishing_time(tail: str) -> None:
    """RG45. One worker of eight is twenty times slower. Without duplicates it sets the finishing time
    alone."""
    options = ev.RelayOptions(policy="fixed,100", tail=tail)
    makespan = VirtualFarm([20] * 7 + [1], options, range(4001), overhead=1).run(check_every=500)
    bound = 4000 / 141
    assert (makespan < 2 * bound) == (tail != "none")


def test_a_worker_dies_between_writing_and_telling() -> None:
    """RG39. 1. w1 wrote part 1 and the whole machine went down before the relay heard. 2. Another relay opens
    the journal and the store: part 1 is adopted. 3. w1's next process may not speak for its old claim. 4. It
    renders the rest; nothing twice."""
    run = Run("w1", parts=4, policy="fixed,40")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    run.restart()
    run.adopt(1)
    run.join("w1")
    assert isinstance(run.deliver("w1", token, 1), msg.NotClaimant)
    granted = run.claim("w1")
    assert (granted.start, granted.stop) == (20, 40)
    run.credit("w1", granted.token, 2, 3)
    assert run.books.finished and run.books.wasted_frames == 0


def test_a_restart_amid_duplicates_tries_and_a_pause() -> None:
    """1. c0 has two holders, w3 failed part 3, the job is paused, w4 is parked. 2. The relay is killed. 3.
    The next one has the same books, in a new epoch: nothing held, nobody there, no pause. 4. Tries are
    remembered: the part goes to another worker than w3."""
    run = Run("w1", "w2", "w3", "w4", parts=4)
    run.claim("w1")
    run.claim("w3")
    run.fail("w3", 3)
    run.claim("w2")
    run.claim("w3")
    run.command(cmd.Pause())
    run.park("w4")
    run.restart()
    books = run.books
    assert (books.epoch, books.paused_at, len(books.leases), len(books.workers)) == (2, None, 0, 0)
    assert run.open_ranges() == [(0, 40)] and books.tries == {3: ["w3"]}
    run.join("w3")
    run.join("w4")
    run.options(policy="fixed,40")
    granted = run.claim("w3")
    assert (granted.start, granted.stop) == (0, 30)
    assert run.claim("w4").start == 30


def test_many_restarts_lose_nothing_and_count_nothing_twice() -> None:
    run = Run(parts=12)
    for part in range(12):
        run.join("w1")
        run.credit("w1", run.claim("w1").token, part)
        run.restart()
    assert run.books.finished and run.books.epoch == 13
    assert (run.books.credited_frames, run.books.lapses, run.books.wasted_frames) == (120, 0, 0)


def test_a_second_stretch_of_work_with_the_same_relay() -> None:
    """1. The job is finished, its workers have left, with their requests numbered up to 40. 2. The stitch
    takes a part back. 3. New processes under the old names count from one: they are served like any
    other."""
    run = Run()
    for stretch in range(2):
        run.join("w1", seq=1, pid=stretch)
        run.say("w1", msg.Heartbeat(seq=3))
        granted = run.say("w1", msg.Claim(seq=2))
        assert isinstance(granted, msg.Granted)
        run.release("w1")
        run.finish("w1")
        assert isinstance(run.say("w1", msg.Claim(seq=40)), msg.Finished)
        run.say("w1", msg.Leave(seq=41))
        assert run.books.finished
        run.void(4)


def test_the_same_history_gives_the_same_log_byte_for_byte() -> None:
    def log() -> bytes:
        farm = VirtualFarm([30, 30, 12, 2], ev.RelayOptions(), range(0, 1201, 12), overhead=2)
        farm.run()
        records = [ev.Record(seq, at, event) for seq, (at, event) in enumerate(farm.events)]
        return b"\n".join(ev.encode_record(record) for record in records)

    assert log() == log()


# --- jobs that must end ---------------------------------------------------------------------------------

FATES = ("ok", "ok", "ok", "fail", "die", "stall", "silent", "vanish")


@dataclass
class Hand:
    """A worker of the liveness test, and how it fares."""

    name: str
    token: str | None = None
    asleep_until: float = 0.0
    hung: bool = False  #: beats, but neither works nor asks any more
    waiting: bool = False  #: parked
    dead_until: float | None = None
    work: list[int] = field(default_factory=list)


class Village:
    """Workers that fail, die, stall, fall silent or hang, each at parts of its own; w1 alone never hangs for
    good. Seconds pass one by one."""

    def __init__(self, parts: int, workers: int, fates: dict[tuple[str, int], str], tail: str) -> None:
        self.fates = fates
        self.now = 0.0
        self.log: list[tuple[float, ev.AnyEvent]] = []
        self.relay = Relay(Books())
        options = ev.RelayOptions(
            policy="fixed,20",
            tail=tail,
            lease_seconds=5,
            stall_timeout_seconds=10,
            block_seconds=20,
            block_after_failures=2,
        )
        self.note(self.relay.open(opened(range(0, parts * 10 + 1, 10), options), 0.0))
        self.note(self.relay.start(0.0))
        self.hands = [Hand(f"w{n}") for n in range(1, workers + 1)]
        for hand in self.hands:
            self.say(hand, msg.Join(worker=hand.name))

    def note(self, outcome: object) -> None:
        for worker, push in getattr(outcome, "pushes", ()):
            self.hear(next(hand for hand in self.hands if hand.name == worker), push)
        self.log += [(self.now, event) for event in getattr(outcome, "events", ())]

    def say(self, hand: Hand, request: msg.AnyRequest) -> None:
        outcome = self.relay.handle(hand.name, request, self.now)
        if outcome.answer is not None:
            self.hear(hand, outcome.answer)
        self.note(outcome)

    def hear(self, hand: Hand, answer: msg.AnyAnswer) -> None:
        match answer:
            case msg.Granted():
                hand.token, hand.waiting = answer.token, False
                parts = self.relay.books.grid.parts_in(answer.next, answer.stop)
                hand.work = list(parts)
            case msg.Parked():
                hand.waiting = True
            case msg.NotClaimant() | msg.Ended() | msg.Delivered(live=False) | msg.Completed(done=True):
                hand.token = None
            case msg.Beat(claims=claims):
                if any(not state.live and state.token == hand.token for state in claims):
                    hand.token = None
            case _:
                pass

    def second(self) -> None:
        self.now += 1
        for hand in self.hands:
            if hand.dead_until is not None:
                if self.now >= hand.dead_until:
                    hand.dead_until = None
                    self.say(hand, msg.Join(worker=hand.name))
            elif self.now >= hand.asleep_until:
                self.act(hand)
        self.note(self.relay.tick(self.now))

    def act(self, hand: Hand) -> None:
        if hand.token is None:
            if not hand.hung and not hand.waiting:
                self.say(hand, msg.Claim())
            return
        self.say(hand, msg.Heartbeat(claims=(ev.ClaimProgress(hand.token),)))
        if hand.hung or hand.token is None:
            return
        if not hand.work:
            self.say(hand, msg.Complete(token=hand.token))
            hand.token = None
            return
        part = hand.work[0]
        match self.fates.get((hand.name, part), "ok"):
            case "ok":
                hand.work.pop(0)
                file = f"{part}-{hand.token}"
                self.say(hand, msg.Deliver(token=hand.token, part=part, frames=10, file=file))
            case "fail":
                self.say(hand, msg.Fail(token=hand.token, part=part))
            case "die":
                self.note(self.relay.gone(hand.name, "killed", True, self.now))
                hand.token, hand.waiting, hand.dead_until = None, False, self.now + 3
            case "silent":
                hand.asleep_until = self.now + 12
            case "vanish":
                self.say(hand, msg.Release(token=hand.token))
                hand.hung = True
            case _:
                hand.hung = True


@settings(max_examples=200, deadline=None)
@given(
    parts=st.integers(1, 8),
    workers=st.integers(1, 4),
    tail=st.sampled_from(["none", "duplicate-oldest,from=frontier", "duplicate-oldest,from=start"]),
    data=st.data(),
)
def test_with_one_worker_that_goes_on_the_job_always_ends(
    parts: int, workers: int, tail: str, data: st.DataObject
) -> None:
    """Whoever fails, dies, stalls, sleeps or hangs where: no part waits for ever for a worker that will not
    come. Part p of worker w has its fate, each time anew."""
    fates: dict[tuple[str, int], str] = {}
    for n in range(1, workers + 1):
        for part in range(parts):
            fate = data.draw(st.sampled_from(FATES))
            if n == 1 and fate not in ("ok", "fail", "die", "silent"):
                fate = "ok"
            fates[f"w{n}", part] = fate
    village = Village(parts, workers, fates, tail)
    for _ in range(1500):
        village.second()
        if village.relay.books.finished:
            break
    books = village.relay.books
    validate(books)
    assert books.finished, (list(books.open), list(books.parked), books.tries)
    twin = Books()
    for at, event in village.log:
        twin.apply(at, event)
    assert state_of(twin) == state_of(books)
