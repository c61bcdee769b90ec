"""The timeline screen: scrolling and zooming as arithmetic, every key, every size, and what it tells."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from console.app import ConsoleApp
from console.modals.chunk import ChunkDetail
from console.modals.worker import WorkerDetail
from console.model import Model
from console.theme import SYMBOLS, Mark
from console.timeline import SPANS_MAX
from console.widgets.span_chart import SpanCells, SpanRow
from console.widgets.time_window import SCALES, Cells, TimeWindow, axis_text
from console.widgets.view import last_minute, worker_cells
from farm import events as ev
from tests.console.player import Player
from tests.console.story import Fault, Story, play, stories
from tests.console.test_app import AppPilot, colour_terminal, on_loop, ready, screen_text, wait_for
from tests.console.test_chunks_screen import LOG, SIZES, TRAPS, chunks_of, slow
from tests.console.test_model import folded, spans

__all__ = ["colour_terminal"]

# --- windows of time -------------------------------------------------------------------------------------

windows = st.builds(
    TimeWindow,
    st.integers(0, len(SCALES) - 1),
    st.floats(0, 1e5),
    st.sampled_from(["follow", "whole", "free"]),
)


@given(
    windows, st.floats(0, 1e5), st.integers(1, 400), st.floats(-2, 2), st.integers(-3, 3), st.floats(0, 1e5)
)
def test_no_window_is_before_the_run_or_after_the_present(
    window: TimeWindow, now: float, width: int, share: float, steps: int, about: float
) -> None:
    moved = window.scrolled(share, now, width) if share else window
    for each in (
        window,
        moved,
        moved.zoomed(steps, about, now, width),
        moved.showing(about, about, now, width),
    ):
        cells = each.cells(now, width)
        assert cells.first >= 0 and cells.start <= now + cells.seconds
        assert cells.width == width and cells.seconds in SCALES


def test_the_whole_run_is_shown_at_the_finest_scale_that_has_room() -> None:
    cells = TimeWindow(mode="whole").cells(95.0, 100)
    assert (cells.first, cells.seconds) == (0, 1)
    assert TimeWindow(mode="whole").cells(101.0, 100).seconds == 2


def test_a_window_that_follows_ends_with_the_present_and_one_that_stays_stays() -> None:
    follows = TimeWindow(SCALES.index(1))
    assert follows.cells(200.0, 100).stop == 201.0
    back = follows.scrolled(-0.5, 200.0, 100)
    assert back.mode == "free" and back.cells(200.0, 100) == back.cells(900.0, 100)
    assert back.scrolled(0.5, 200.0, 100).mode in ("free", "follow")
    assert back.scrolled(1.0, 200.0, 100).mode == "follow"


def test_zooming_keeps_the_moment_in_its_place() -> None:
    window = TimeWindow(SCALES.index(1), 100.0, "free")
    before = window.cells(900.0, 100).cell_of(150.0)
    for steps in (1, 2, -1):
        after = window.zoomed(steps, 150.0, 900.0, 100).cells(900.0, 100)
        assert abs(after.cell_of(150.0) - before) <= 1, steps


def test_ticks_stand_at_their_moments() -> None:
    cells = TimeWindow(SCALES.index(0.5), 55.0, "free").cells(900.0, 60)
    text = axis_text(cells)
    assert len(text) == 60 and text.index("|01:00") == cells.cell_of(60.0) and "|01:05" in text


@settings(max_examples=25, deadline=None)
@given(
    stories(),
    st.integers(1, 80),
    st.sampled_from([0.1, 0.5, 2.0, None]),
    st.lists(st.floats(0.05, 30), max_size=20),
)
def test_cells_that_were_kept_are_the_cells_one_would_draw_now(
    log: list[ev.Record], width: int, seconds: float | None, ticks: list[float]
) -> None:
    """In a window of the timeline, or (None) in the last minute of the live screen."""
    player, model, kept = Player(log), Model(), SpanCells()
    window = TimeWindow(0 if seconds is None else SCALES.index(seconds))
    for tick in [*ticks, 1e4]:
        player.time += tick
        for record in player.take():
            model.fold(record)
        now = player.time
        cells = last_minute(now, width) if seconds is None else window.cells(now, width)
        for one in model.workers.values():
            fresh = worker_cells(one, cells.first, width, cells.seconds, now)
            assert kept.of(one, cells, player.time) == fresh


def test_what_was_drawn_of_the_future_is_not_kept_by_who_goes_back() -> None:
    log, kept, cells = play(faults=[Fault("w2", 20, 30)]), SpanCells(), Cells(0, 70, 1.0)
    for now in (60.0, 30.0, 45.0):
        model = Model()
        for record in log:
            if record.at <= now:
                model.fold(record)
        for one in model.workers.values():
            fresh = worker_cells(one, cells.first, cells.width, cells.seconds, now)
            assert kept.of(one, cells, now) == fresh, now


# --- the screen ------------------------------------------------------------------------------------------


async def opened(pilot: AppPilot) -> ConsoleApp:
    app = await ready(pilot)
    await pilot.press("2")
    await wait_for(pilot, lambda: app.screen is app.timeline and app.timeline.chart.size.height, "the chart")
    app.repaint()
    return app


def row(app: ConsoleApp, name: str) -> SpanRow:
    return next(r for r in app.timeline.chart.rows if isinstance(r, SpanRow) and r.name == name)


def selected(app: ConsoleApp) -> str:
    return next(r.name for r in app.timeline.chart.rows if isinstance(r, SpanRow) and r.selected)


def note(app: ConsoleApp) -> str:
    return str(app.timeline.note.rows[0])


@on_loop
async def test_a_straggler_is_seen_and_named() -> None:
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        text = screen_text(app)
        assert "!!!!!!!!" in text and "~~~~~~~~~~~~" in text and "~x▗" in text
        assert "|00:00    |00:05" in text and "1 cell = 0.5 s  follows" in text
        assert "claim  ▄ now  ▄ duplicate  ! lapsed" in text
        assert note(app).startswith("w1  claim c6#1@e1  00:30.500 to now, 9.5 s  span ")


@on_loop
async def test_running_spans_are_drawn_up_to_now() -> None:
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        before = row(app, "w1").cells
        player = app.source
        assert isinstance(player, Player)
        player.time = 40.4
        app.tick()
        player.time = 41.4
        app.tick()
        after = row(app, "w1").cells
        assert after.rstrip(b"\0") != before.rstrip(b"\0") and len(after.rstrip(b"\0")) > len(
            before.rstrip(b"\0")
        )


@on_loop
async def test_keys_go_from_worker_to_worker_and_from_span_to_span() -> None:
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        for key, name in (
            ("j", "w2"),
            ("down", "w3"),
            ("down", "w3"),
            ("k", "w2"),
            ("up", "w1"),
            ("G", "w3"),
            ("g", "w1"),
            ("end", "w3"),
            ("home", "w1"),
            ("pagedown", "w3"),
            ("pageup", "w1"),
            ("j", "w2"),
        ):
            await pilot.press(key)
            assert selected(app) == name, key
        told = []
        for key in ("left", "left", "shift+tab", "left", "left", "left", "left"):
            await pilot.press(key)
            told.append(note(app).split("  ")[1])
        assert told[-1].startswith("claim c1#1@e1") and any("silent until its lapse" in t for t in told)
        assert any(t.startswith("refused") for t in told)
        chosen = row(app, "w2").chosen
        assert chosen is not None and chosen[0] == 0
        await pilot.press("right", "tab")
        assert note(app).split("  ")[1].startswith("stalled")
        marked = row(app, "w2").chosen
        assert marked is not None and set(row(app, "w2").cells[slice(*marked)]) == {Mark.STALLED}
        strip = app.timeline.chart.render_line(2)
        assert any(s.style and s.style.reverse and "~" in s.text for s in strip), "seen without colour, too"


@on_loop
async def test_enter_opens_the_story_of_the_claim_or_else_of_the_worker() -> None:
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        await pilot.press("j", *["left"] * 9, "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "the box")
        assert isinstance(app.screen, ChunkDetail) and app.screen.number == 1
        await pilot.press("escape", "right", "right", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, WorkerDetail), "the worker's box")
        await pilot.press("escape", "left", "y")
        await wait_for(pilot, lambda: app.clipboard == "c1#1@e1", "the copy")


@on_loop
async def test_time_scrolls_zooms_and_follows() -> None:
    async with chunks_of(40.0).run_test(size=(80, 24)) as pilot:
        app = await opened(pilot)
        screen = app.timeline

        def cells() -> tuple[float, float]:
            now = screen.window.cells(app.now(), screen.chart_cells)
            return now.start, now.seconds

        start, seconds = cells()
        assert seconds == 0.5 and start > 0
        await pilot.press("h")
        assert cells()[0] < start and screen.window.mode == "free"
        await pilot.press("l")
        assert cells()[0] == start and screen.window.mode == "follow"
        await pilot.press("plus")
        assert cells()[1] == 0.2
        await pilot.press("minus", "minus", "equals_sign")
        assert cells()[1] == 0.5
        await pilot.press("0")
        assert screen.window.mode == "whole" and cells() == (0.0, 1)
        await wait_for(pilot, lambda: "whole run" in screen_text(app), "the title")
        await pilot.press("f")
        assert screen.window.mode == "follow"


@on_loop
async def test_slash_narrows_the_workers() -> None:
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        await pilot.press("slash", "3", "enter")
        await wait_for(pilot, lambda: not app.timeline.prompt.is_open, "the key bar")
        assert selected(app) == "w3" and "1 of 3 workers shown" in screen_text(app)
        await pilot.press("n", "N", "escape", "slash", "w", "enter", "n")
        assert selected(app) == "w1"
        await pilot.press("N", "N")
        assert selected(app) == "w2"
        await pilot.press("escape", "slash", "?", "enter")
        assert note(app) == "no worker has these letters"
        await pilot.press("enter", "left", "j", "0")
        assert app.screen is app.timeline


@on_loop
async def test_a_click_is_on_a_worker_and_a_moment() -> None:
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        await pilot.click("#chart", offset=(1 + 25 + 12, 3))
        await wait_for(pilot, lambda: selected(app) == "w2", "the worker")
        assert note(app).startswith("w2  silent until its lapse c1#1@e1")


@on_loop
async def test_five_hundred_workers_are_counted_and_only_rows_in_view_are_made() -> None:
    story = Story(48 * 600, 48)
    for number in range(1, 501):
        story.join(f"w{number}")
        story.grant(f"w{number}", number, number + 1)
    async with chunks_of(60.0, story.records).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        assert "of 500 workers shown" in screen_text(app)
        await pilot.press("G")
        assert selected(app) == "w500"
        await pilot.press(*["pageup"] * 3)
        assert len(app.timeline.chart.rows) < 40 and len(app.timeline._cells._known) < 200


def test_a_split_is_a_moment_on_the_row_of_who_held_the_chunk() -> None:
    story = Story(frames=400, part=50)
    story.join("w1")
    story.grant("w1", 0, 6)
    story.at(5).add(ev.ChunkSplit(chunk=0, at=200, why="w1 alone would outlast the others"))
    model = folded(story.records)
    assert spans(model, "w1") == [("claim", 0.0, 5.0), ("split", 5.0, 5.0), ("claim", 5.0, None)]


@on_loop
async def test_what_is_not_kept_any_more_is_said() -> None:
    story = Story(frames=50 * 300, part=50)
    story.join("w1")
    for part in range(300):
        story.now += 1
        token = story.grant("w1", part, part + 1)
        story.now += 1
        story.credit(token, part)
        story.now += 1
        if token in story.live:
            story.end(token, "completed")
    log = story.records
    total = folded(log).workers["w1"].spans_total
    assert total > SPANS_MAX
    async with chunks_of(1e4, log).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        assert f"{total:,} of {total:,} (512 kept)" in note(app)


@pytest.mark.parametrize("size", [(40, 10), (1, 1), *slow((20, 5), (80, 24), (120, 40), (300, 80))])
@on_loop
async def test_it_runs_at_any_size(size: tuple[int, int]) -> None:
    async with chunks_of(0.0).run_test(size=size) as pilot:
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        await pilot.press("2")
        player = app.source
        assert isinstance(player, Player)
        for at in (0.1, 10, 30, 60):
            player.time = at
            app.tick()
            await pilot.pause()
        await pilot.press("enter", "escape", "j", "left", "tab", "plus", "minus", "minus", "0", "h", "l", "f")
        await pilot.press("z", "z", "m", "d", "slash", "escape", "1", "2")
        assert app.is_running and app.screen is app.timeline
        for other in SIZES:
            await pilot.resize_terminal(*other)
            await wait_for(pilot, lambda other=other: app.timeline.head.size.width == other[0], f"{other}")  # type: ignore[misc]


@pytest.mark.parametrize("size", [(40, 10), *slow((80, 24), (120, 40), (300, 80))])
@on_loop
async def test_names_full_of_traps_keep_the_columns_aligned(size: tuple[int, int]) -> None:
    """RG50 and RG53: emoji, CJK, combining marks and 300 characters."""
    story = Story(frames=400, part=50, input="/films/" + "".join(TRAPS) + ".mkv")
    for number, name in enumerate(TRAPS):
        story.join(name)
        story.grant(name, number, number + 1)
    async with chunks_of(10.0, story.records).run_test(size=size) as pilot:
        app = await opened(pilot)
        for widget in (app.timeline.chart, app.timeline.note, app.timeline.head):
            width = widget.size.width
            for y in range(len(widget.rows)):
                text = "".join(segment.text for segment in widget.render_line(y))
                assert cell_len(text) == width and "\x1b" not in text


@on_loop
async def test_ascii_and_no_colour_draw_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    async with chunks_of(40.0, ascii_only=True).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        text = screen_text(app)
        assert text.isascii() and "|###" in text and "!!!" in text and SYMBOLS[Mark.SPLIT] + " split" in text
    monkeypatch.setenv("NO_COLOR", "1")
    async with chunks_of(40.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        assert "|###" in screen_text(app) and "▄" not in screen_text(app)


def test_the_log_of_these_tests_has_what_they_look_for() -> None:
    kinds = {type(record.event) for record in LOG}
    assert {ev.ClaimGranted, ev.ClaimEnded, ev.ClaimRefused, ev.RangeReopened} <= kinds
