"""The book of chunks: equal to a recount of the log, the same however the log was taken in, bounded, and able
to say why."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console import chunks
from console.chunklist import Filter, chosen, matching, number_of
from console.chunks import LAPSES, ChunkBook, ChunkState, Trait, chunk_of
from console.decisions import decided
from console.model import Model
from farm import events as ev
from farm.simulation.runs import simulate
from farm.simulation.soak import troubled_world
from tests.console.player import Player
from tests.console.story import Fault, Story, play, stories
from tests.console.test_model import folded
from tests.simulation.worlds import fleet_world, run, small_world, worker


def recount(records: Iterable[ev.Record]) -> list[tuple[object, ...]]:
    """What the book must hold of each chunk, in the slowest, plainest way: one pass over the log a chunk."""
    events = [record.event for record in records]
    granted = {e.token: e for e in events if isinstance(e, ev.ClaimGranted)}
    rows: list[tuple[object, ...]] = []
    for number in range(max((chunk_of(token) + 1 for token in granted), default=0)):
        own = {token: e for token, e in granted.items() if chunk_of(token) == number}
        first = next(iter(own.values()))
        ends = {e.token: e for e in events if isinstance(e, ev.ClaimEnded) and e.token in own}
        stop = first.stop
        split = False
        for e in events:
            if isinstance(e, ev.ChunkSplit) and e.chunk == number and first.start < e.at < stop:
                stop, split = e.at, True
        credited: dict[int, int] = {}
        for e in events:
            if isinstance(e, ev.PartCredited):
                of = chunk_of(e.token) if e.chunk is None else e.chunk
                if of == number:
                    credited[e.part] = e.frames
            elif isinstance(e, ev.PartVoided):
                credited.pop(e.part, None)
        live = len(own) - len(ends)
        complete = any(isinstance(e, ev.ChunkCompleted) and e.chunk == number for e in events)
        state = {0: ChunkState.DONE if complete else ChunkState.GIVEN_BACK, 1: ChunkState.IN_FLIGHT}
        rows.append(
            (
                first.start,
                stop,
                state.get(live, ChunkState.DUPLICATED),
                len(own),
                list(own.values())[-1].worker,
                sum(credited.values()),
                any(e.how in LAPSES for e in ends.values()),
                any(e.duplicate for e in own.values()),
                any(e.reopened for e in own.values()),
                split,
                any(
                    isinstance(e, ev.ClaimRefused) and chunk_of(e.token) == number
                    for e in events[events.index(first) :]
                ),
            )
        )
    return rows


def rows_of(book: ChunkBook) -> list[tuple[object, ...]]:
    traits = (Trait.LAPSED, Trait.DUPLICATED, Trait.REOPENED, Trait.SPLIT, Trait.REFUSED)
    return [
        (
            book.start[n],
            book.stop[n],
            ChunkState(book.state[n]),
            book.attempts[n],
            book.worker_of(n),
            book.credited[n],
            *(book.has(n, trait) for trait in traits),
        )
        for n in range(len(book))
    ]


def log_of(seed: int) -> list[ev.Record]:
    """The log of a small simulated job in heavy trouble: stalls, deaths, lapses, late reports, partitions."""
    return list(simulate(troubled_world(seed), keep_log=True, until=600.0).records)


# --- fold = recount --------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 100_000))
def test_the_book_of_a_simulated_run_in_trouble_equals_a_recount(seed: int) -> None:
    log = log_of(seed)
    assert rows_of(folded(log).book) == recount(log)


@settings(max_examples=25, deadline=None)
@given(stories())
def test_the_book_of_a_drawn_log_equals_a_recount(log: list[ev.Record]) -> None:
    assert rows_of(folded(log).book) == recount(log)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 100_000), st.lists(st.floats(0.01, 60.0), min_size=1, max_size=10), st.integers(0))
def test_however_a_log_is_taken_in_the_model_is_the_same(seed: int, ticks: list[float], reads: int) -> None:
    """Live in ticks of any length with readers in between, simulated, or replayed in one go."""
    log, random = log_of(seed), Random(reads)
    live = Player(log, world="live")
    model, number = Model("live"), 0
    while not live.ended:
        live.time += ticks[number % len(ticks)]
        number += 1
        for record in live.take():
            model.fold(record)
        if random.random() < 0.3:  # what screens do
            model.eta(live.now())
            model.take_dirty()
            list(matching(model.book, chosen(model.book, Filter(random.randrange(5))), "w1"))
            for chunk in list(model.book.live):
                model.book.followers(chunk)
    replayed = Model("recording")
    for record in log:
        replayed.fold(record)
    assert model.digest() == replayed.digest()
    assert model.digest()["chunks_told"] != Model().digest()["chunks_told"]


# --- what it tells ---------------------------------------------------------------------------------------

LOG = play(faults=[Fault("w2", 40, 30)])


def test_a_lapsed_chunk_tells_its_attempt_and_who_took_what_it_gave_back() -> None:
    world = small_world(
        worker("w1"), worker("w2", silences=((1.0, 30.0),)), frames=500, tail="none", lease_seconds=4.0
    )
    book = folded(run(world).records).book
    (lapsed,) = book.having[Trait.LAPSED]
    story = book.story(lapsed)
    assert story is not None
    (attempt,) = story.attempts.values()
    assert (attempt.worker, attempt.how, attempt.duplicate) == ("w2", "lapsed", False)
    assert attempt.until_seconds is not None and attempt.until_seconds > attempt.from_seconds
    assert attempt.frames == book.credited[lapsed] and attempt.refusals > 0
    assert book.state[lapsed] == ChunkState.GIVEN_BACK
    followers = book.followers(lapsed)
    assert followers and all(book.has(other, Trait.REOPENED) for other in followers)


def test_filters_and_search_find_the_chunks_they_name() -> None:
    model = folded([record for record in LOG if record.at <= 60])
    book = model.book
    for kind in Filter:
        assert number_of(book, kind) == len(chosen(book, kind))
    assert list(chosen(book, Filter.ALL)) == list(range(len(book)))
    assert {f"c{n}" for n in chosen(book, Filter.IN_FLIGHT)} == set(model.chunks)
    assert list(chosen(book, Filter.LAPSED)) == list(matching(book, range(len(book)), "lapsed")) != []
    assert list(matching(book, range(len(book)), "c7")) == [7]
    assert {book.worker_of(n) for n in matching(book, range(len(book)), "w3")} == {"w3"}
    assert list(matching(book, range(len(book)), "nobody")) == []


def test_a_part_set_aside_marks_its_chunk() -> None:
    story = Story(frames=200, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    story.fail(token, 0)
    story.put_aside(0)
    book = folded(story.records).book
    assert list(chosen(book, Filter.SET_ASIDE)) == [0]


def test_voided_frames_are_not_credited_to_the_chunk_any_more() -> None:
    story = Story(frames=200, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    story.credit(token, 0)
    story.credit(token, 1)
    story.add(ev.PartVoided(part=1, reason="the source does not seek reliably"))
    book = folded(story.records).book
    assert book.credited[0] == 50


def test_why_a_size_was_given_is_told_with_the_moment_of_the_run() -> None:
    """The words of the policies themselves, so that a change there can't leave the console behind."""
    result = simulate(fleet_world((30, 30, 12, 2), "fair", "split"), keep_log=True)
    sentences = [decided(r.at, r.event) for r in result.records if isinstance(r.event, ev.ClaimGranted)]
    fair = [text for text in sentences if "common finishing time" in text]
    assert fair
    for text in fair:
        assert text.startswith(("w1 is given ", "w2 is given ", "w3 is given ", "w4 is given "))
        moment = text.rpartition(" ")[2]
        minutes, _, seconds = moment.partition(":")
        assert len(moment) == 5 and 40 < int(minutes) * 60 + int(seconds) < 100, text


def test_why_it_was_duplicated_and_why_it_ended() -> None:
    silent = small_world(
        worker("w1"), worker("w2", silences=((1.0, 60.0),)), frames=60, policy="fair", tail="split"
    )
    result = run(silent)
    words = [decided(record.at, record.event) for record in result.records]
    assert any("duplicated for w1, " in text and "w2 has been silent for " in text for text in words), words
    assert any(text.startswith("w2 LAPSED") or "another one's copy counts" in text for text in words)


@pytest.mark.parametrize("token", ["", "c", "c-1#1@e1", "x3#1@e1", "c٣#1@e1", "c 3#1@e1"])
def test_what_is_no_token_is_of_no_chunk(token: str) -> None:
    assert chunk_of(token) == -1


# --- bounds ----------------------------------------------------------------------------------------------


def test_stories_of_ended_chunks_are_dropped_oldest_first_and_troubled_ones_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "PLAIN_MAX", 5)
    monkeypatch.setattr(chunks, "TROUBLED_MAX", 2)
    story = Story(frames=100, part=1)
    story.join("w1")
    story.join("w2")
    for part in range(100):
        story.now += 1
        token = story.grant("w1", part, part + 1)
        if part in (10, 20, 30):
            story.duplicate("w2", token)
        story.credit(token, part)
        for other in [other for other in story.live if other != token]:
            story.end(other, "superseded")
    book = folded(story.records).book
    assert len(book) == 100 and not book.live
    kept = [number for number in range(100) if book.story(number) is not None]
    assert kept == [20, 30, 95, 96, 97, 98, 99]
    assert (book.attempts[10], book.credited[10], book.worker_of(10)) == (2, 1, "w2"), "columns stay"


def test_a_number_no_run_has_does_not_fill_the_memory() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    story.add(ev.ClaimGranted(token=f"c{10**15}#1@e1", worker="w1", start=0, stop=50, lease_seconds=20.0))
    assert len(folded(story.records).book) == 0
