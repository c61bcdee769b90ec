"""Under load: lists that grow are bounded and say what they show, memory is flat, and drawing stays cheap."""

from __future__ import annotations

import argparse
import gc
import re
from collections.abc import Iterator

import psutil
import pytest

from benchmarks.console_load import measure, parse
from console.model import EVENTS_MAX, Model
from console.timeline import BUCKETS_MAX, SPANS_MAX
from farm import events as ev
from tests.console.player import Player
from tests.console.story import play
from tests.console.telling import Story
from tests.console.test_app import ConsoleApp, colour_terminal, on_loop, ready, screen_text

__all__ = ["colour_terminal"]

PARTS, WORKERS = 500, 16


def endless(events: int) -> Iterator[ev.Record]:
    """A run of so many events, of everything that may happen often: claims that are granted, heard of,
    refused and lost, over and over on the same few chunks."""
    story = Story(PARTS * 48, 48)
    for worker in range(WORKERS):
        story.join(f"w{worker}", 30.0, 0.5)
    yield from story.records
    seq, attempt = len(story.records), 0
    while seq < events:
        attempt += 1
        for worker in range(WORKERS):
            token, name, start = f"c{worker}#{attempt}@e1", f"w{worker}", worker * 480
            at = seq / 5000
            happened: list[ev.AnyEvent] = [
                ev.ClaimGranted(
                    token=token, worker=name, start=start, stop=start + 480, lease_seconds=20.0, why=""
                )
            ]
            progress = (ev.ClaimProgress(token, start + position, position) for position in (40, 80, 120))
            happened += (ev.LeaseRenewed(worker=name, claims=(each,)) for each in progress)
            happened.append(ev.ClaimEnded(token=token, worker=name, how="lapsed", reason="no heartbeat"))
            happened.append(ev.ClaimRefused(token=token, worker=name, asked="deliver", reason="not claimant"))
            for event in happened:
                yield ev.Record(seq, at, event)
                seq += 1


def test_rings_are_bounded_and_their_totals_are_not() -> None:
    model = Model("live")
    for record in endless(25_000):
        model.fold(record)
    assert len(model.events) == EVENTS_MAX < model.events_total
    for worker in model.workers.values():
        assert len(worker.spans) <= SPANS_MAX
    assert any(worker.spans_total > SPANS_MAX for worker in model.workers.values())
    assert len(model.throughput.digest()[2]) <= BUCKETS_MAX
    assert not model.claims and not model.chunks


@pytest.mark.slow
def test_memory_is_flat_over_a_million_events() -> None:
    model, process = Model("live"), psutil.Process()
    settled = 0
    for record in endless(1_000_000):
        model.fold(record)
        if record.seq % 5000 == 0:
            model.take_dirty()
        if record.seq == 250_000:
            gc.collect()
            settled = process.memory_info().rss
    gc.collect()
    grown = process.memory_info().rss - settled
    assert model.records >= 1_000_000
    assert grown < 12_000_000, f"{grown / 1e6:.1f} MB in 750,000 events"


@on_loop
async def test_five_hundred_workers_say_how_many_are_shown_and_scroll() -> None:
    player = Player(play((30.0,) * 500, frames=2400, part=4))
    player.time = 3.0
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        shown = re.search(r"\((\d+) of 500 shown\)", screen_text(app))
        assert shown and 5 <= int(shown[1]) < 40
        await pilot.press("G")
        await pilot.pause()
        assert "w500" in screen_text(app)
        await pilot.press("k", "g", "j")
        await pilot.pause()
        assert app.live.selected == "w2"


@on_loop
async def test_a_cut_list_of_events_says_what_is_kept() -> None:
    player = Player(endless(25_000))
    player.time = 1e6
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert f"10,000 of {app.model.events_total:,} kept" in screen_text(app)


@on_loop
async def test_ticks_that_bring_nothing_lay_out_nothing_until_the_next_second() -> None:
    player = Player(play((30.0, 10.0), frames=2400, part=48))
    player.time = 20.1
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        laid_out: list[float] = []
        update = app.live.update_view
        app.live.update_view = lambda now, turn=None: (laid_out.append(now), update(now, turn))[0]  # type: ignore[method-assign,assign,return-value]

        def tick(at: float, *events: ev.AnyEvent) -> list[float]:
            laid_out.clear()
            player.time = at
            if events:
                player.add(*events)
            app.tick()
            return list(laid_out)

        player.add(ev.Notice(level="info", text="no more of that story"))
        tick(20.2)
        assert tick(20.3) == [20.3], "what a tick with news left undrawn"
        assert tick(20.4) == tick(20.9) == []
        assert tick(20.95, ev.Notice(level="info", text="news")) == [20.95]
        assert tick(20.96) == [20.96]
        assert tick(20.97) == []
        assert tick(21.0) == [21.0], "the clock"
        await pilot.press("j", "2")
        await pilot.pause()
        laid_out.clear()
        await pilot.press("1")
        await pilot.pause()
        assert laid_out, "another screen was shown in between"


@pytest.mark.slow
@pytest.mark.parametrize("screen", ["live", "compare"])
def test_five_thousand_events_a_second_cost_little(screen: str) -> None:
    """Loosely, by CPU time in a real pseudo-terminal: 10 % of a core is wanted on a quiet machine
    (benchmarks/console_load.py), and a busy one makes the same work dearer, which ``spin`` tells."""
    each = 5000 if screen == "live" else 2500  # two runs are compared
    argv = ["--seconds", "8", "--no-lag", "--screen", screen, "--events", str(each)]
    args: argparse.Namespace = parse(argv)
    numbers = measure(argv, args)
    dearer = max(numbers["spin ms"] / 60, 1.0)
    assert numbers["records"] > 20_000
    assert numbers["cpu %"] <= 20 * dearer, numbers
