"""The model against drawn logs: its counters equal a recount, and the same log gives the same model."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from console.model import CLAIMED, CREDITED, DUPLICATE, LAPSED, OPEN, SET_ASIDE, Model
from farm import events as ev
from farm.frames import PartGrid
from farm.relay.books import Books
from tests.console.story import Fault, play, stories
from tests.console.test_model import folded


class Recount:
    """What the counters should be, from the log alone and in the slowest, plainest way."""

    def __init__(self, records: list[ev.Record]) -> None:
        opened = records[0].event
        assert isinstance(opened, ev.RunOpened)
        self.grid = PartGrid(opened.cuts)
        self.live: dict[str, ev.ClaimGranted] = {}
        self.positions: dict[str, int] = {}
        self.credited: dict[int, str] = {}
        self.aside: set[int] = set()
        self.lapsed: set[int] = set()
        self.events = [record.event for record in records]
        for event in self.events:
            self._apply(event)

    def _apply(self, event: ev.AnyEvent) -> None:
        match event:
            case ev.ClaimGranted(token=token, start=start):
                self.live[token] = event
                self.positions[token] = start
                self.lapsed -= self.covered(token)
            case ev.ClaimEnded(token=token, how=how):
                covered = self.covered(token)
                del self.live[token]
                if how in ("lapsed", "stalled", "timed out"):
                    others = set().union(*map(self.covered, self.live))
                    self.lapsed |= covered - others - set(self.credited) - self.aside
            case ev.LeaseRenewed(claims=claims):
                for claim in claims:
                    self.positions[claim.token] = max(self.positions[claim.token], claim.position)
            case ev.PartCredited(part=part, token=token, worker=worker):
                self.credited[part] = worker
                self.positions[token] = max(self.positions[token], self.grid.stop(part))
            case ev.PartAdopted(part=part):
                self.credited[part] = ""
                self.lapsed.discard(part)
            case ev.PartVoided(part=part):
                del self.credited[part]
            case ev.PartSetAside(part=part):
                self.aside.add(part)
                self.lapsed.discard(part)

    def covered(self, token: str) -> set[int]:
        return set(self.grid.parts_in(self.live[token].start, self.live[token].stop))

    def state(self, part: int) -> int:
        holders = sum(part in self.covered(token) for token in self.live)
        if part in self.credited:
            return CREDITED
        if part in self.aside:
            return SET_ASIDE
        if holders:
            return DUPLICATE if holders > 1 else CLAIMED
        return LAPSED if part in self.lapsed else OPEN

    def rendered(self, part: int) -> int:
        if part in self.credited or part in self.aside:
            return 0
        start, stop = self.grid.start(part), self.grid.stop(part)
        ahead = [
            min(self.positions[token], stop) - start
            for token in self.live
            if part in self.covered(token) and self.positions[token] > start
        ]
        return max(ahead, default=0)

    def count(self, *kinds: type) -> int:
        return sum(isinstance(event, kinds) for event in self.events)


@settings(max_examples=60, deadline=None)
@given(records=stories())
def test_the_counters_of_a_fold_equal_a_recount(records: list[ev.Record]) -> None:
    model, truth = folded(records), Recount(records)
    grid = truth.grid
    states = [truth.state(part) for part in range(grid.parts)]
    assert list(model.part_state) == states
    by_state = {state: sum(grid.size(p) for p, s in enumerate(states) if s == state) for state in range(6)}
    assert model.credited_frames == by_state[CREDITED]
    assert model.set_aside_frames == by_state[SET_ASIDE]
    assert model.open_frames == by_state[OPEN] + by_state[LAPSED]
    assert model.in_flight_frames == by_state[CLAIMED] + by_state[DUPLICATE]
    assert model.duplicated_frames == by_state[DUPLICATE]
    assert model.rendered_frames == sum(map(truth.rendered, range(grid.parts)))
    assert [model.shade(p) for p in range(grid.parts) if states[p] != CREDITED] == [
        truth.rendered(p) / grid.size(p) for p in range(grid.parts) if states[p] != CREDITED
    ]
    assert set(model.claims) == set(truth.live)
    assert set(model.chunks) == {token.partition("#")[0] for token in truth.live}
    assert model.duplicated == len(truth.live) - len(model.chunks)
    assert model.granted == truth.count(ev.ClaimGranted)
    assert model.refusals == truth.count(ev.ClaimRefused, ev.MessageRefused)
    assert model.failures == sum(isinstance(e, ev.PartFailed) and e.kind == "encoder" for e in truth.events)
    assert model.losses == sum(isinstance(e, ev.WorkerLeft) and e.lost for e in truth.events)
    ended = [event for event in truth.events if isinstance(event, ev.ClaimEnded)]
    superseded = [event for event in truth.events if isinstance(event, ev.PartSuperseded)]
    assert model.lapses == sum(event.how in ("lapsed", "stalled", "timed out") for event in ended)
    assert model.wasted_frames == sum(e.wasted_frames for e in ended) + sum(e.frames for e in superseded)
    workers = model.workers.values()
    assert model.wasted_frames == sum(worker.wasted_frames for worker in workers)
    assert (model.granted, model.duplicates, model.lapses, model.failures, model.losses) == (
        sum(worker.claims for worker in workers),
        sum(worker.duplicates for worker in workers),
        sum(worker.lapses for worker in workers),
        sum(worker.failures for worker in workers),
        sum(worker.losses for worker in workers),
    )
    assert {claim.token for worker in workers for claim in worker.held} == set(truth.live)
    assert model.credited_frames == model.adopted_frames + sum(worker.credited_frames for worker in workers)
    assert 0 <= model.resumed_frames <= model.credited_frames
    assert set(model.credits) == {part for part in range(grid.parts) if states[part] == CREDITED}
    assert model.delivered_bytes == sum(credit.size_bytes for credit in model.credits.values())


@settings(max_examples=60, deadline=None)
@given(records=stories())
def test_the_model_agrees_with_the_relay_s_books(records: list[ev.Record]) -> None:
    model, books = folded(records), Books()
    for record in records:
        books.apply(record.at, record.event)
    assert (model.open_frames, model.in_flight_frames, model.credited_frames, model.set_aside_frames) == (
        books.open.frames,
        books.in_flight_frames,
        books.credited_frames,
        books.set_aside_frames,
    )
    assert (model.lapses, model.duplicates, model.refusals, model.losses, model.wasted_frames) == (
        books.lapses,
        books.duplicates,
        books.refusals,
        books.losses,
        books.wasted_frames,
    )
    assert set(model.claims) == set(books.leases)
    assert {name for name, worker in model.workers.items() if not worker.is_gone} == set(books.workers)


@settings(max_examples=40, deadline=None)
@given(records=stories())
def test_a_fold_is_the_same_twice_and_without_what_is_not_journalled(records: list[ev.Record]) -> None:
    """The recording of a run lacks how far a phase was and when it would end, and nothing of the final model
    depends on it."""
    live = folded(records)
    passing = (ev.PhaseProgressed, ev.FinishEstimated)
    lines = [ev.encode_record(r) for r in records if not isinstance(r.event, passing)]
    replayed = folded(map(ev.decode_record, lines))
    assert folded(records).digest() == live.digest() == replayed.digest()


@settings(max_examples=40, deadline=None)
@given(records=stories())
def test_at_every_step_frames_add_up_and_progress_and_spans_are_in_order(records: list[ev.Record]) -> None:
    model = Model()
    progress = 0.0
    for record in records:
        model.fold(record)
        frames = model.open_frames + model.in_flight_frames + model.credited_frames + model.set_aside_frames
        assert frames == model.frames
        assert progress <= model.progress() <= 1.0
        progress = model.progress()
        model.eta(record.at)
    for worker in model.workers.values():
        past = list(worker.spans)
        for span, after in pairwise(past):
            assert span.stop_seconds is not None
            assert span.start_seconds <= span.stop_seconds <= after.start_seconds
        assert worker.is_gone == (not past or past[-1].stop_seconds is not None)
        assert all(seconds >= 0 for seconds in worker.seconds.values())


def test_a_simulated_run_with_faults_adds_up() -> None:
    records = play(faults=[Fault("w1", 20, 30), Fault("w2", 60)])
    model = folded(records)
    assert model.progress() == 1.0
    assert (model.credited_frames, model.lapses, model.losses, model.refusals) == (4800, 1, 1, 1)
    assert sum(worker.credited_frames for worker in model.workers.values()) == 4800
    assert model.throughput.total == 4800
    assert model.duplicates >= 1
