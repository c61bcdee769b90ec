"""The queue of open ranges, against a plain model; and what the books keep stays small."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import events as ev
from farm import messages as msg
from farm.relay.books import Books
from farm.relay.ledger import OpenRanges
from farm.relay.relay import Relay
from farm.relay.repeats import ANSWERS_MAX
from farm.relay.validate import BooksWrong, validate
from tests.relay.driver import Run
from tests.relay.virtual import opened


class Model:
    """The same queue as a plain list."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def put_first(self, start: int, stop: int) -> None:
        for left in [r for r in self.ranges if r[1] == start]:
            self.ranges.remove(left)
            start = left[0]
        for right in [r for r in self.ranges if r[0] == stop]:
            self.ranges.remove(right)
            stop = right[1]
        self.ranges.insert(0, (start, stop))

    def take(self, start: int, stop: int) -> None:
        (at,) = [n for n, (low, high) in enumerate(self.ranges) if low <= start and stop <= high]
        low, high = self.ranges[at]
        self.ranges[at : at + 1] = [piece for piece in ((low, start), (stop, high)) if piece[0] < piece[1]]


@given(st.data())
def test_open_ranges_are_a_queue_with_joined_neighbours(data: st.DataObject) -> None:
    """Frames 0 to 19 come and go in any way; what is left of a range keeps its place in the queue."""
    ranges, model, is_open = OpenRanges(), Model(), [False] * 20
    for _ in range(data.draw(st.integers(1, 25))):
        start = data.draw(st.integers(0, 19))
        stop = start + 1
        while stop < 20 and is_open[stop] == is_open[start] and data.draw(st.booleans()):
            stop += 1
        change = "take" if is_open[start] else "put_first"
        getattr(ranges, change)(start, stop)
        getattr(model, change)(start, stop)
        is_open[start:stop] = [not is_open[start]] * (stop - start)
        assert list(ranges) == model.ranges
        assert len(ranges) == len(model.ranges)
        assert ranges.frames == sum(is_open)


def test_what_is_not_open_cannot_be_taken() -> None:
    ranges = OpenRanges()
    ranges.put_first(10, 20)
    for start, stop in ((0, 5), (20, 30), (15, 25)):
        with pytest.raises(AssertionError, match="not open"):
            ranges.take(start, stop)
    assert list(ranges) == [(10, 20)]


# --- constant time and bounded memory -------------------------------------------------------------------


class Lines:
    """Counts the lines of Python that are executed: a measure of work that needs no clock."""

    def __enter__(self) -> Lines:
        self.count = 0
        gc.collect()  # what other tests left would be seen off, and counted, in the middle of this one
        gc.disable()
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        gc.enable()

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.count += event == "line"
        return self._trace


def claims_of_one_part(parts: int, workers: int, rounds: int) -> Lines:
    """Lines executed by ``rounds`` claims and deliveries of each worker, in the middle of the job."""
    relay = Relay(Books())
    relay.open(opened(range(parts + 1), ev.RelayOptions(policy="fixed,1", part_timeout_share=3.0)), 0.0)
    relay.start(0.0)
    names = [f"w{n}" for n in range(workers)]
    for name in names:
        relay.handle(name, msg.Join(worker=name), 0.0)

    def one_round(now: float) -> None:
        for name in names:
            granted = relay.handle(name, msg.Claim(), now).answer
            assert isinstance(granted, msg.Granted)
            relay.handle(name, msg.Heartbeat(claims=(ev.ClaimProgress(granted.token),)), now)
            deliver = msg.Deliver(token=granted.token, part=granted.start, frames=1, render_seconds=1.0)
            relay.handle(name, deliver, now)
        relay.tick(now)

    for n in range(parts // (2 * workers)):
        one_round(n / 10)
    with Lines() as lines:
        for n in range(rounds):
            one_round(parts + n / 10)
    return lines


@pytest.mark.parametrize(("parts", "workers"), [(8000, 8), (1000, 32)])
def test_a_stimulus_costs_the_same_in_a_long_job_and_in_a_large_fleet(parts: int, workers: int) -> None:
    small = claims_of_one_part(1000, 8, 5).count / (5 * 8)
    large = claims_of_one_part(parts, workers, 5).count / (5 * workers)
    assert large < 1.15 * small


def test_parts_that_were_set_aside_cost_nothing_later() -> None:
    """A file with hundreds of broken parts is as quick as any other, once they are set aside."""

    def cost(broken: int) -> int:
        relay = Relay(Books())
        options = ev.RelayOptions(policy="fixed,1", max_tries=1, block_after_failures=10**6)
        relay.open(opened(range(1001), options), 0.0)
        relay.start(0.0)
        relay.handle("w1", msg.Join(worker="w1"), 0.0)
        for _ in range(broken):
            granted = relay.handle("w1", msg.Claim(), 0.0).answer
            assert isinstance(granted, msg.Granted)
            relay.handle("w1", msg.Fail(token=granted.token), 0.0)
        assert relay.books.set_aside_frames == broken
        with Lines() as lines:
            relay.handle("w1", msg.Claim(), 0.0)
        return lines.count

    assert cost(500) <= cost(1) + 5


def test_what_is_kept_does_not_grow_with_the_claims() -> None:
    """Ten thousand claims that are given back, with answers to repeat: only so many are remembered."""
    run = Relay(Books())
    run.open(opened(range(5), ev.RelayOptions(policy="fixed,1")), 0.0)
    run.start(0.0)
    run.handle("w1", msg.Join(worker="w1"), 0.0)
    for n in range(10_000):
        granted = run.handle("w1", msg.Claim(seq=2 * n), 0.0).answer
        assert isinstance(granted, msg.Granted)
        run.handle("w1", msg.Release(seq=2 * n + 1, token=granted.token), 0.0)
    books = run.books
    assert books.chunk_count == 10_000
    assert len(run._answers["w1"]) == ANSWERS_MAX
    sizes = {name: len(value) for name, value in vars(books).items() if hasattr(value, "__len__")}
    assert sizes.pop("ended") == 4096
    assert max(sizes.values()) <= 5, sizes


def test_an_ended_claim_that_is_forgotten_is_refused_all_the_same() -> None:
    relay = Relay(Books())
    relay.open(opened(range(2), ev.RelayOptions(policy="fixed,1")), 0.0)
    relay.start(0.0)
    relay.handle("w1", msg.Join(worker="w1"), 0.0)
    for n in range(4200):
        relay.handle("w1", msg.Claim(), 0.0)
        relay.handle("w1", msg.Release(token=f"c{n}#1@e1"), 0.0)
    answer = relay.handle("w1", msg.Complete(token="c0#1@e1"), 0.0).answer
    assert isinstance(answer, msg.NotClaimant) and answer.reason == "c0#1@e1 is not a claim of w1"


# --- the recount itself ---------------------------------------------------------------------------------


def tampered(change: str) -> Books:
    run = Run("w1", "w2", "w3", parts=8)
    run.credit("w1", run.claim("w1").token, 0)
    run.claim("w2")
    books = run.books
    match change:
        case "credited":
            books.credited_frames += 1
        case "in flight":
            books.in_flight_frames -= 10
        case "open frames":
            books.open.frames += 10
        case "part mark":
            books.parts[7] = 1
        case "credit lost":
            del books.credits[0]
        case "chunk next":
            books.chunks[0].next = 0
        case "chunk count":
            books.chunks[0].uncredited = 2
        case "duplicable":
            del books.duplicable[1]
        case "lease":
            books.leases.popitem()
        case "order":
            books.leases["c0#1@e1"].renewed_at = 99.0
        case "worker":
            books.workers["w1"].claims.clear()
        case "idle":
            books.idle.clear()
        case "blocked":
            books.blocked["w1"] = None
        case "left":
            books.silent["w9"] = None
        case "troubled":
            books.tries[5] = ["w1"]
        case "epoch":
            books.epoch = 7
    return books


@pytest.mark.parametrize(
    "change",
    [
        "credited",
        "in flight",
        "open frames",
        "part mark",
        "credit lost",
        "chunk next",
        "chunk count",
        "duplicable",
        "lease",
        "order",
        "worker",
        "idle",
        "blocked",
        "left",
        "troubled",
        "epoch",
    ],
)
def test_validate_finds_what_is_wrong(change: str) -> None:
    """A recount that can't fail proves nothing."""
    with pytest.raises(BooksWrong):
        validate(tampered(change))


def test_validate_passes_books_that_are_right() -> None:
    validate(tampered("nothing"))
