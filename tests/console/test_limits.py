"""Gauges, drains and holds as they are shown."""

from __future__ import annotations

import pytest

from console.app import ConsoleApp
from console.draining import drain_text
from console.model import Model
from console.plain import status_line
from console.summary import render_text, summarize
from console.theme import DARK, Look
from console.widgets import view
from farm import events as ev
from tests.console.player import Player
from tests.console.story import Story
from tests.console.test_app import on_loop, ready, screen_text

GAUGES = ev.Gauges(
    inbox=7,
    inbox_max=512,
    deliveries=3,
    deliveries_max=12,
    parts_waiting=2,
    memory_bytes=1_200_000_000,
    memory_gate_bytes=5_600_000_000,
    stalls=4,
    stall_worst_seconds=0.081,
)


LOOK = Look(DARK)


def working() -> Story:
    """w1 renders parts of 48 frames at 24 fps and is in the middle of one."""
    story = Story(frames=480, part=48)
    story.join("w1", 24.0)
    story.grant("w1", 0, 10)
    for second in (1, 2, 3):
        story.at(second).beat("c0#1@e1", second * 24)
    return story


def model_of(story: Story) -> Model:
    model = Model("live")
    for record in story.records:
        model.fold(record)
    return model


@pytest.mark.parametrize(("size", "shown"), [((120, 40), True), ((80, 24), False)])
@on_loop
async def test_a_large_screen_has_a_row_of_gauges(size: tuple[int, int], shown: bool) -> None:
    story = working()
    story.add(GAUGES)
    player = Player(story.records)
    player.time = 3.0
    async with ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False).run_test(size=size) as pilot:
        text = screen_text(await ready(pilot))
    row = "inbox 7/512   deliveries 3/12   parts waiting 2   memory 1.2 GB/5.6 GB   loop late 4x, worst 81 ms"
    assert (row in text) is shown


def test_a_full_inbox_calls_for_attention() -> None:
    full = view.gauges_row(
        ev.Gauges(**{f: getattr(GAUGES, f) for f in ev.Gauges.__struct_fields__} | {"inbox": 512})
    )
    assert full.counts[0].alert and not view.gauges_row(GAUGES).counts[0].alert


def test_gauges_are_no_part_of_what_a_log_comes_to() -> None:
    story = working()
    before = model_of(story).digest()
    model = model_of(story)
    model.fold(ev.Record(-1, 3.0, GAUGES))
    assert {k: v for k, v in model.digest().items() if k != "events"} == {
        k: v for k, v in before.items() if k != "events"
    }


def test_a_drain_says_about_how_long_it_takes_and_how_long_it_may() -> None:
    story = working()
    story.add(ev.DrainStarted(reason="SIGTERM", limit_seconds=30.0))
    model = model_of(story)
    assert drain_text(model, 3.0) == "draining, about 1 s left, at most 30 s"
    assert "draining, about 0 s left, at most 26 s" in status_line(model, 7.0)
    assert view.bar_row(model, 3.0, LOOK).remarks[0] == "draining, about 1 s left, at most 30 s"
    story.add(ev.RelayStarted(epoch=2))
    story.add(ev.DrainStarted(reason="SIGINT"))
    assert model_of(story).drain_until is None


def test_a_drain_of_which_nothing_is_known_says_what_it_may_take() -> None:
    story = Story(frames=480, part=48)
    story.join("w1")
    story.grant("w1", 0, 10)
    story.add(ev.DrainStarted(reason="SIGTERM", limit_seconds=30.0))
    assert drain_text(model_of(story), 1.0) == "draining, at most 29 s left"


def test_a_run_that_is_held_for_want_of_memory_says_so_until_it_goes_on() -> None:
    story = working()
    story.add(ev.GrantsHeld(reason="1.0 GB of memory are free, less than --memfree 2.0 GB"))
    model = model_of(story)
    assert "nothing more is granted for want of memory" in status_line(model, 3.0)
    assert view.title_row(model, 3.0, readonly=False, ended=False).badge == "HELD"
    story.add(ev.GrantsFreed())
    assert "want of memory" not in status_line(model_of(story), 3.0)


def test_the_summary_tells_of_the_loop_and_of_memory() -> None:
    story = working()
    story.add(ev.WorkerPeaked(worker="w1", peak_bytes=430_000_000))
    story.add(ev.LoopStalled(seconds=3.7))
    story.add(ev.LoopMeasured(stalls=1, worst_seconds=0.0812))
    summary = summarize(model_of(story))
    assert (summary.loop_stalls, summary.loop_worst_seconds, summary.stood_still) == (1, 0.0812, 1)
    assert summary.workers[0].peak_memory_bytes == 430_000_000
    text = render_text(summary, 120)
    assert "late by more than 50 ms once, 81 ms at worst" in text
    assert "stood still     once, 3.7 s at most" in text
    assert "430.0 MB" in text


def test_the_summary_tells_of_a_fault_that_never_came() -> None:
    """In the console it was a line of the event list, and gone with it."""
    story = working()
    story.add(ev.FaultNeverCame(fault="stall w1 at 99"))
    summary = summarize(model_of(story))
    assert summary.faults_never_came == ("stall w1 at 99",)
    assert "never came      the fault 'stall w1 at 99'" in render_text(summary, 120)
    story.add(ev.RelayStarted(epoch=2))
    assert summarize(model_of(story)).faults_never_came == (), "a resume may bring it yet"
