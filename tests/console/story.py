"""Event logs for the console's tests: told step by step (``Story``, in telling.py), simulated, or drawn.

- ``play`` runs a fleet in virtual time (guided sizes, duplicate tail, heartbeats, leases) with faults.
- ``stories`` draws logs in which anything that may happen happens in any order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from hypothesis import strategies as st

from farm import events as ev
from tests.console.telling import Story

__all__ = ["Fault", "Story", "play", "stories"]


# --- simulated -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """At ``at`` seconds a worker is stalled for ``seconds``, or killed (``seconds`` None)."""

    worker: str
    at: float
    seconds: float | None = None


def play(
    fleet: Sequence[float] = (30, 30, 12, 2),
    frames: int = 4800,
    part: int = 48,
    *,
    overhead_seconds: float = 2.0,
    faults: Iterable[Fault] = (),
    input: str = "nightfall.mkv",
) -> list[ev.Record]:
    """The log of a whole run of ``fleet`` (frames per second each): guided sizes, duplicates at the end."""
    return _Run(fleet, frames, part, overhead_seconds, tuple(faults), input).run()


@dataclass
class _Hand:
    """A simulated worker. ``turn`` outdates what was scheduled for a claim that is over."""

    name: str
    fps: float
    token: str | None = None
    turn: int = 0
    parked: bool = False
    dead: bool = False
    stalled_until: float = 0.0
    heard_at: float = 0.0
    begins: float = 0.0  #: when the part in progress began
    part: int = 0


class _Run:
    def __init__(
        self,
        fleet: Sequence[float],
        frames: int,
        part: int,
        overhead: float,
        faults: tuple[Fault, ...],
        input: str,
    ) -> None:
        self.overhead = overhead
        self.faults = faults
        self.story = Story(
            frames, part, input=input, fleet=tuple(f"w{n}:{f:g}" for n, f in enumerate(fleet, 1))
        )
        self.hands = {f"w{n}": _Hand(f"w{n}", fps) for n, fps in enumerate(fleet, 1)}
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()

    def run(self) -> list[ev.Record]:
        story = self.story
        story.phase("work")
        for hand in self.hands.values():
            story.join(hand.name, hand.fps, self.overhead)
            self.beat_later(hand)
        for fault in self.faults:
            self.later(fault.at, lambda fault=fault: self.strike(fault))  # type: ignore[misc]
        for hand in self.hands.values():
            self.ask(hand)
        while self.heap and len(story.credited) < story.grid.parts:
            story.now, _, action = heapq.heappop(self.heap)
            action()
        story.finish()
        return story.records

    def later(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.heap, (at, next(self.order), action))

    def ask(self, hand: _Hand) -> None:
        """Open work by guided sizes, else a duplicate of the oldest chunk with one holder, else parked."""
        story = self.story
        hand.turn += 1
        hand.token = None
        if hand.dead:
            return
        if story.open:
            first = min(story.open)
            wanted = max(1, round(len(story.open) / (2 * len(self.hands))))
            last = first + 1
            while last < first + wanted and last in story.open:
                last += 1
            hand.token = story.grant(hand.name, first, last, "guided: half its share of what is open")
        else:
            free = (
                chunk.claims[0]
                for chunk in story.chunks.values()
                if len(chunk.claims) == 1 and chunk.claims[0].worker != hand.name
            )
            claim = next(free, None)
            if claim is None:
                if not hand.parked:
                    story.park(hand.name)
                hand.parked = True
                return
            hand.token = story.duplicate(hand.name, claim.token)
        hand.parked = False
        hand.heard_at = story.now
        hand.part = story.grid.part_at(story.live[hand.token].start)
        self.render(hand, max(story.now, hand.stalled_until) + self.overhead)

    def render(self, hand: _Hand, begins: float) -> None:
        hand.begins = begins
        turn = hand.turn
        done_at = begins + self.story.grid.size(hand.part) / hand.fps
        self.later(done_at, lambda: self.delivered(hand, turn))

    def delivered(self, hand: _Hand, turn: int) -> None:
        story = self.story
        if hand.dead or turn != hand.turn:
            return
        if story.now < hand.stalled_until:
            self.later(hand.stalled_until + 0.001, lambda: self.delivered(hand, turn))
            return
        token = hand.token
        assert token is not None
        if token not in story.live:
            story.refuse(hand.name, token, holder=self.holder(hand.part))
            self.ask(hand)
            return
        claim = story.live[token]
        hand.heard_at = story.now
        story.credit(token, hand.part, render_seconds=story.grid.size(hand.part) / hand.fps)
        hand.part += 1
        if token not in story.live:
            self.settle(hand, claim.chunk)
        elif story.grid.start(hand.part) >= claim.stop:
            story.end(token, "superseded", "nothing left to deliver")
            self.ask(hand)
        else:
            self.render(hand, story.now)

    def settle(self, hand: _Hand, chunk: int) -> None:
        """A chunk is done: its holders and whoever is parked ask again."""
        for other in self.hands.values():
            mine = other.token is not None and other.token.startswith(f"c{chunk}#")
            if other is hand or (mine and not self.is_stalled(other)) or other.parked:
                self.ask(other)

    def holder(self, part: int) -> str | None:
        for claim in self.story.live.values():
            if claim.start <= self.story.grid.start(part) < claim.stop:
                return claim.worker
        return None

    def is_stalled(self, hand: _Hand) -> bool:
        return self.story.now < hand.stalled_until

    def beat_later(self, hand: _Hand) -> None:
        self.later(self.story.now + self.story.options.heartbeat_seconds, lambda: self.beat(hand))

    def beat(self, hand: _Hand) -> None:
        story = self.story
        if hand.dead:
            return
        self.beat_later(hand)
        if hand.token is None or hand.token not in story.live:
            return
        if self.is_stalled(hand):
            if story.now - hand.heard_at >= story.options.lease_seconds:
                story.lapse(hand.token)
                self.wake_parked()
            return
        hand.heard_at = story.now
        seconds = max(story.now - hand.begins, 0.0)
        claim = story.live[hand.token]
        ahead = min(math.floor(seconds * hand.fps), story.grid.size(hand.part))
        story.beat(hand.token, max(claim.position, min(story.grid.start(hand.part) + ahead, claim.stop)))

    def wake_parked(self) -> None:
        for hand in self.hands.values():
            if hand.parked:
                self.ask(hand)

    def strike(self, fault: Fault) -> None:
        hand = self.hands[fault.worker]
        if hand.dead:
            return
        if fault.seconds is None:
            hand.dead = True
            self.story.act("kill", hand.name)
            self.story.leave(hand.name, "killed by SIGKILL", lost=True)
            self.wake_parked()
            return
        hand.stalled_until = self.story.now + fault.seconds
        hand.begins += fault.seconds
        self.story.act("stall", hand.name)
        self.later(hand.stalled_until, lambda: self.story.act("unstall", hand.name))


# --- drawn -----------------------------------------------------------------------------------------------


@st.composite
def stories(draw: st.DrawFn, max_steps: int = 60) -> list[ev.Record]:
    """A consistent log of up to ``max_steps`` things that happened, in an order nobody planned."""
    sizes = draw(st.lists(st.integers(1, 60), min_size=1, max_size=25))
    cuts = [0]
    for size in sizes:
        cuts.append(cuts[-1] + size)
    story = Story(cuts=cuts, options=ev.RelayOptions(lease_seconds=20.0, heartbeat_seconds=2.0))
    for worker in range(1, draw(st.integers(1, 5)) + 1):
        story.join(f"w{worker}", overhead_seconds=draw(st.sampled_from([0.0, 2.0])))
    for _ in range(draw(st.integers(0, max_steps))):
        story.now += draw(st.sampled_from([0.0, 0.125, 1.0, 30.0]))
        _step(draw, story)
    if draw(st.booleans()):
        story.finish(exit_code=0 if len(story.credited) == story.grid.parts else 5)
    return story.records


def _step(draw: st.DrawFn, story: Story) -> None:
    """One of the things that may happen now."""
    live = sorted(story.live)
    busy = {claim.worker for claim in story.live.values()}
    idle = sorted(story.workers - busy)
    steps: list[Callable[[], object]] = [
        lambda: story.add(ev.Notice(level="info", text="still here")),
        lambda: story.add(ev.LoopStalled(seconds=1.5)),
        lambda: story.add(ev.PhaseProgressed(phase="work", fraction=0.5)),
        lambda: story.add(ev.FinishEstimated(likely_seconds=9.0, low_seconds=8.0, high_seconds=12.0, by="T")),
        lambda: story.phase(draw(st.sampled_from(["probe", "work", "stitch"]))),
        lambda: story.refuse("w1", "c0#1@e1"),
        lambda: story.add(ev.MessageRefused(worker="w1", asked="deliver", received="'c01'", reason="no")),
    ]
    if live:
        token = draw(st.sampled_from(live))
        claim = story.live[token]
        part = draw(st.sampled_from(list(story.grid.parts_in(claim.start, claim.stop))))
        how = draw(st.sampled_from(["stalled", "timed out", "released"]))
        others = [name for name in idle if name not in {c.worker for c in story.chunks[claim.chunk].claims}]
        steps += [lambda: story.credit(token, part, render_seconds=1.0)] * 4
        steps += [lambda: story.beat(token, draw(st.integers(claim.position, claim.stop)))] * 3
        steps += [lambda: story.lapse(token), lambda: story.end(token, how), lambda: story.fail(token, part)]
        if others and len(story.chunks[claim.chunk].claims) < 2:
            steps += [lambda: story.duplicate(others[0], token)] * 3
    if idle:
        worker = draw(st.sampled_from(idle))
        steps += [
            lambda: story.park(worker),
            lambda: story.leave(worker, lost=True),
            lambda: story.act("stall", worker),
            lambda: story.act("unstall", worker),
            lambda: story.add(ev.WorkerBlocked(worker=worker, failures=3, until=story.now + 60)),
            lambda: story.add(ev.WorkerForgiven(worker=worker)),
        ]
        if story.open:
            first = draw(st.sampled_from(sorted(story.open)))
            last = first + 1
            while last in story.open and draw(st.booleans()):
                last += 1
            steps += [lambda: story.grant(worker, first, last)] * 6
    if story.open:
        steps += [lambda: story.put_aside(min(story.open))]
        if not live:
            steps += [lambda: story.adopt(min(story.open)), lambda: _restart(story)]
    if story.credited and not live:
        steps += [lambda: _void(story)]
    draw(st.sampled_from(steps))()


def _restart(story: Story) -> None:
    story.start()
    story.join("w1")


def _void(story: Story) -> None:
    part = max(story.credited)
    story.credited.discard(part)
    story.open.add(part)
    story.add(ev.PartVoided(part=part, reason="the source does not seek reliably"))
