"""A small virtual-time world around the real relay, for tests: workers with a speed and an overhead, no
heartbeat effects, parts delivered the instant their last frame is rendered. (The simulator proper, with
faults and noise, is farm/engines/simulated.py of a later issue.)"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction

from farm import events as ev
from farm import messages as msg
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.relay.validate import validate


def opened(cuts: Sequence[int], options: ev.RelayOptions) -> ev.RunOpened:
    return ev.RunOpened(
        run_id="test",
        input="in.mp4",
        output="out.mp4",
        frames=cuts[-1],
        cuts=tuple(cuts),
        settings_hash="s",
        fingerprint="f",
        build="b",
        options=options,
    )


class VirtualFarm:
    """Runs a job to its end in exact (rational) time; ``makespan`` is its finishing time in seconds."""

    def __init__(self, speeds: Sequence[int], options: ev.RelayOptions, cuts: Sequence[int], overhead: int):
        self.speeds = {f"w{n}": Fraction(speed) for n, speed in enumerate(speeds, 1)}
        self.overhead = Fraction(overhead)
        self.events: list[tuple[float, ev.AnyEvent]] = []
        self.relay = Relay(Books())
        self.grid = None
        self._queue: list[tuple[Fraction, int, str, str, int]] = []
        self._order = 0
        self._claims: dict[str, tuple[str, int, int] | None] = {}
        self._note(self.relay.open(opened(cuts, options), 0.0), Fraction(0))
        self._note(self.relay.start(0.0), Fraction(0))
        for worker in self.speeds:
            self._note(self.relay.handle(worker, msg.Join(worker=worker), 0.0), Fraction(0))
        for worker in self.speeds:
            self._ask(worker, Fraction(0))

    def run(self, check_every: int = 0) -> float:
        steps = 0
        while self._queue:
            now, _, worker, token, part = heapq.heappop(self._queue)
            held = self._claims.get(worker)
            if held is None or held[0] != token:
                continue
            self._deliver(worker, token, part, now)
            steps += 1
            if check_every and steps % check_every == 0:
                validate(self.relay.books)
        validate(self.relay.books)
        finished = [event for _, event in self.events if isinstance(event, ev.WorkFinished)]
        assert len(finished) == 1
        return finished[0].makespan_seconds

    def count(self, kind: type[ev.Event]) -> int:
        return sum(isinstance(event, kind) for _, event in self.events)

    def _deliver(self, worker: str, token: str, part: int, now: Fraction) -> None:
        grid = self.relay.books.grid
        deliver = msg.Deliver(token=token, part=part, file=f"{part}-{token}", frames=grid.size(part))
        outcome = self._note(self.relay.handle(worker, deliver, float(now)), now)
        answer = outcome.answer
        assert isinstance(answer, msg.Delivered), answer
        if not answer.live or answer.next >= answer.stop:
            self._claims[worker] = None
            self._ask(worker, now)
        else:
            self._render(worker, token, max(answer.next, grid.stop(part)), now)

    def _ask(self, worker: str, now: Fraction) -> None:
        self._begin(worker, self._note(self.relay.handle(worker, msg.Claim(), float(now)), now).answer, now)

    def _begin(self, worker: str, answer: object, now: Fraction) -> None:
        if isinstance(answer, msg.Granted):
            self._claims[worker] = (answer.token, answer.start, answer.stop)
            self._render(worker, answer.token, answer.next, now + self.overhead)

    def _render(self, worker: str, token: str, frame: int, start: Fraction) -> None:
        part = self.relay.books.grid.part_at(frame)
        done = start + self.relay.books.grid.size(part) / self.speeds[worker]
        self._order += 1
        heapq.heappush(self._queue, (done, self._order, worker, token, part))

    def _note(self, outcome: Outcome, now: Fraction) -> Outcome:
        self.events += [(float(now), event) for event in outcome.events]
        for worker, push in outcome.pushes:
            if isinstance(push, msg.Beat):
                for state in push.claims:
                    held = self._claims.get(worker)
                    if not state.live and held is not None and held[0] == state.token:
                        self._claims[worker] = None
                        self._ask(worker, now)
            else:
                self._begin(worker, push, now)
        return outcome
