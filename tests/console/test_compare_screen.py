"""The Compare screen: every key, every size, and runs opened from it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest
from textual.pilot import Pilot

from console.app import Outcome
from console.compare_app import CompareApp
from console.contest import Heat
from console.widgets.bands import HeadRow, RulerRow, StackBand, WorkerBand
from console.widgets.key_bar import SaidRow
from console.widgets.standings import RunRow
from farm.events import WorkerJoined
from tests.console.contests import POLICIES, HandClock, contest_of, heats, play_to, recorded
from tests.console.story import Fault, play
from tests.console.test_app import colour_terminal, on_loop

__all__ = ["colour_terminal"]

AppPilot = Pilot[Outcome]
LOG = play(faults=[Fault("w2", 40, 30), Fault("w4", 60)])


def console(made: list[Heat], at: float = 15.0, **options: bool) -> tuple[CompareApp, HandClock]:
    """A console on a contest that has played ``at`` seconds; it ticks when its test says so."""
    contest, clock = contest_of(made)
    play_to(contest, clock, at)
    return CompareApp(contest, refresh_hz=1e-6, **options), clock


async def settle(pilot: AppPilot) -> None:
    for _ in range(3):  # layout first, then what depends on sizes
        await pilot.pause()
        assert isinstance(pilot.app, CompareApp)
        pilot.app.tick()


async def press(pilot: AppPilot, *keys: str) -> None:
    await pilot.press(*keys)
    await settle(pilot)


def screen_text(app: CompareApp) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


def runs(app: CompareApp) -> list[RunRow]:
    return [row for row in app.compare.standings.rows if isinstance(row, RunRow)]


def words(app: CompareApp) -> str:
    return " ".join(getattr(row, "text", "") for row in app.compare.words.rows)


@on_loop
async def test_two_policies_side_by_side_tell_who_won_and_why() -> None:
    app, _ = console(heats(), at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        first, second = runs(app)
        assert (first.name, first.place, second.name, second.place) == ("fair+split", 1, "static+none", 2)
        assert words(app).startswith("fair+split is first: ") and "more idle time" in words(app)
        text = screen_text(app)
        for title in ("finished", "ratio", "wasted", "claims", "dup", "lapse", "idle", "lower bound", "OVER"):
            assert title in text, title
        bands = app.compare.bands.rows
        assert isinstance(bands[0], RulerRow)
        assert [row.name for row in bands if isinstance(row, HeadRow)] == ["fair+split", "static+none"]
        assert sum(isinstance(row, WorkerBand) for row in bands) == 6


@on_loop
async def test_space_speed_and_steps_move_all_runs_on_one_clock() -> None:
    app, clock = console(heats(), at=5.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "space")
        clock.time += 20
        app.tick()
        assert app.contest.halted and app.contest.at == pytest.approx(5.0)
        assert "HALTED" in screen_text(app)
        await press(pilot, "full_stop")
        assert app.contest.at > 5 and app.contest.halted
        await press(pilot, "right_square_bracket", "right_square_bracket", "left_square_bracket", "space")
        at = app.contest.at
        clock.time += 3
        app.tick()
        assert app.contest.rate == 2 and app.contest.at == pytest.approx(at + 6)


@on_loop
async def test_r_begins_again_and_a_run_that_is_over_stays_at_its_end() -> None:
    app, clock = console(heats(), at=1e6)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.contest.over
        clock.time += 60
        await settle(pilot)
        assert [row.progress for row in runs(app)] == [1.0, 1.0]
        await press(pilot, "R")
        assert app.contest.at == 0 and [row.progress for row in runs(app)] == [0.0, 0.0]
        assert isinstance(app.compare.keys.rows[0], SaidRow)
        clock.time += 10
        app.tick()
        assert all(row.progress > 0 for row in runs(app))


@on_loop
async def test_a_run_is_selected_and_opened_on_the_other_screens() -> None:
    app, _ = console(heats(POLICIES), at=20.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for keys, selected in (
            (("j",), 1),
            (("down", "down"), 3),
            (("j",), 3),
            (("k",), 2),
            (("g",), 0),
            (("G",), 3),
        ):
            await press(pilot, *keys)
            assert app.contest.selected == selected
            assert [row.selected for row in runs(app)] == [n == selected for n in range(4)]
        await press(pilot, "enter")
        assert app.front is app.live and app.model is app.contest.lanes[3].model
        assert "policy fixed,48" in screen_text(app) and "read only" not in screen_text(app)
        await press(pilot, "escape")
        assert app.front is app.compare
        await press(pilot, "g", "1")
        assert app.front is app.live and app.model is app.contest.lanes[0].model
        assert "policy fair" in screen_text(app)
        await press(pilot, "2")
        assert app.front is app.timeline and "w1" in screen_text(app)
        await press(pilot, "3", "4")
        assert app.front is app.compare


@on_loop
async def test_no_command_goes_to_a_run_that_is_watched() -> None:
    app, _ = console(heats(), at=10.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "s", "x", "i")
        assert app.front is app.live and app.screen is app.live, "a box that asks was opened"
        assert all(worker.state != "stalled" for worker in app.model.workers.values())


@on_loop
async def test_the_shared_axis_scrolls_and_zooms() -> None:
    app, _ = console(heats(), at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)

        def labels() -> str:
            (row,) = (row for row in app.compare.bands.rows if isinstance(row, RulerRow))
            return row.labels

        whole = labels()
        await press(pilot, "l")
        assert labels() == whole, "the whole doesn't move"
        await press(pilot, "plus", "plus")
        near = labels()
        assert near != whole
        await press(pilot, "h")
        earlier = labels()
        assert earlier != near
        await press(pilot, "right")
        assert labels() == near
        await press(pilot, "left", "minus")
        assert app.compare.view.seconds is not None
        await press(pilot, "0")
        assert labels() == whole
        await press(pilot, "equals_sign", "minus")
        assert labels() == whole


@on_loop
async def test_the_axis_follows_the_present_until_somebody_scrolls() -> None:
    app, clock = console(heats(POLICIES[1:2] + POLICIES[:1], frames=4800), at=5.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "plus", "plus", "plus")
        clock.time += 60
        await settle(pilot)
        assert any(isinstance(row, RulerRow) and row.now is not None for row in app.compare.bands.rows)
        await press(pilot, "h", "h", "h", "h")
        start = app.compare.view.start
        clock.time += 60
        await settle(pilot)
        assert app.compare.view.start == start
        await press(pilot, "f")
        assert app.compare.view.start > start


@on_loop
async def test_the_next_comparison_and_back() -> None:
    app, _ = console(heats(POLICIES[:2], ("10,10,3", "10,10")), at=20.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "fleet 10,10,3" in screen_text(app) and "1 of 2" in screen_text(app)
        await press(pilot, "n")
        assert app.contest.number == 1 and app.contest.at < 1 and "2 of 2" in screen_text(app)
        await press(pilot, "n")
        assert app.contest.number == 1
        await press(pilot, "N")
        assert app.contest.number == 0


@on_loop
async def test_recordings_show_their_troubles_and_their_deaths() -> None:
    tapes = recorded("troubled", LOG), recorded("calm", play())
    app, _ = console([Heat("two runs", tapes)], at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        bands = [row for row in app.compare.bands.rows if isinstance(row, WorkerBand)]
        assert len(bands) == 8
        await press(pilot, "m")
        lines = screen_text(app).splitlines()
        assert any("!" in line and "w2" in line for line in lines)
        assert any("x" in line and "w4" in line for line in lines)
        assert int(runs(app)[0].values[6]) >= 1


@on_loop
async def test_large_fleets_are_condensed_and_more_runs_than_rows_say_so() -> None:
    app, _ = console(heats((*POLICIES, "tss", "fac2", "gss", "fixed,96"), ("A",)), at=30.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert len(runs(app)) == 8
        bands = app.compare.bands.rows
        assert any(isinstance(row, StackBand) and row.alone for row in bands)
        assert "of 8 shown" in screen_text(app)
        await press(pilot, "G")
        labels = [row.label for row in app.compare.bands.rows if isinstance(row, StackBand)]
        assert labels[-1] == "8"


@on_loop
async def test_five_hundred_workers_a_run_fit_and_are_counted() -> None:
    log = play((30.0,) * 500, frames=2400, part=4)
    assert sum(isinstance(record.event, WorkerJoined) for record in log) == 500
    tapes = recorded("a", log), recorded("b", log)
    app, _ = console([Heat("two", tapes)], at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "500 w" in screen_text(app)


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (60, 16), (80, 24), (120, 40), (300, 80)])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_every_size_holds(size: tuple[int, int], ascii_only: bool) -> None:
    @on_loop
    async def held() -> None:
        app, clock = console(heats(POLICIES), at=12.0, ascii_only=ascii_only)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            clock.time += 4
            await press(pilot, "j", "plus", "l", "z", "z", "m", "d")
            text = screen_text(app)
            assert "fair" in text or size[0] < 40
            assert text.isascii() or not ascii_only
            assert {len(line) for line in text.splitlines()} == {size[0]}

    held()


@on_loop
async def test_resizing_while_it_plays() -> None:
    app, clock = console(heats(POLICIES), at=2.0)
    async with app.run_test(size=(120, 40)) as pilot:
        for width, height in ((40, 10), (300, 80), (79, 23), (41, 11), (120, 40)):
            await pilot.resize_terminal(width, height)
            clock.time += 2
            await settle(pilot)
            assert "fair" in screen_text(app)


@on_loop
async def test_tab_and_z_let_a_panel_fill_the_screen_and_escape_brings_the_rest_back() -> None:
    app, _ = console(heats(POLICIES), at=12.0)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "z")
        assert not app.compare.standings.display and app.compare.bands.size.height >= 20
        await press(pilot, "escape")
        assert app.compare.standings.display
        await press(pilot, "shift+tab", "z")
        assert app.compare.standings.display and not app.compare.bands.display


@on_loop
async def test_q_leaves_and_help_names_the_keys() -> None:
    app, _ = console(heats(), at=12.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "question_mark")
        assert "all runs from their start again" in screen_text(app)
        await press(pilot, "escape", "y", "q")
        await pilot.pause()
    assert app.return_value == Outcome("quit")


@on_loop
async def test_a_click_selects_a_run() -> None:
    app, _ = console(heats(), at=12.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.click("#standings", offset=(20, 3))
        assert app.contest.selected == 1
        await pilot.click("#bands", offset=(30, 3))
        assert app.contest.selected == 0


def test_the_size_is_that_of_the_terminal_also_where_the_result_goes_to_a_file() -> None:
    """``uneven compare --ui tui > table.txt`` drew its second screen at 80x24."""
    ask = (
        "import sys; from console.driver import ConsoleDriver; "
        "driver = ConsoleDriver.__new__(ConsoleDriver); "
        "driver._file = sys.__stderr__; print(driver._get_terminal_size())"
    )
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 123, 0, 0))
        environment = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
        asked = subprocess.run(
            [sys.executable, "-c", ask], stdin=slave, stderr=slave, stdout=subprocess.PIPE, env=environment
        )
    finally:
        os.close(slave)
        os.close(master)
    assert asked.stdout == b"(123, 41)\n"
