"""The console as a whole: every key, every size, fed by a small real source."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.app import BUSY_RECORDS, ConsoleApp, Outcome
from console.modals.dialog import Dialog, Question
from console.modals.fault import FAULT_MENU, chosen_fault
from console.modals.help import Help
from console.modals.worker import WorkerDetail
from console.widgets.event_list import EventList
from console.widgets.header import Header
from console.widgets.key_bar import KeysRow, SaidRow
from console.widgets.workers import WorkerRow
from farm.commands import Drain, InjectFault, KillWorker, Pause, Resume, StallWorker, StopNow
from farm.events import (
    ClaimProgress,
    DrainStarted,
    JobPaused,
    JobResumed,
    LeaseRenewed,
    Notice,
    OperatorActed,
)
from farm.scenario.faults import check_faults, parse_fault
from tests.console.player import Player
from tests.console.story import Fault, Story, play

LOG = play(faults=[Fault("w2", 40, 30)])

AppPilot = Pilot[Outcome]


def on_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run an asynchronous test on a loop of its own."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


@pytest.fixture(autouse=True)
def colour_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the look depends on is the test's, not the machine's."""
    for name in ("NO_COLOR", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")


def console(at: float = 60.0, **options: object) -> ConsoleApp:
    """A console on a run of four workers that is ``at`` seconds old; it ticks when its test says so."""
    player = Player(LOG)
    player.time = at
    return ConsoleApp(player, refresh_hz=1e-6, **{"exit_when_done": False, **options})  # type: ignore[arg-type]


def player_of(app: ConsoleApp) -> Player:
    assert isinstance(app.source, Player)
    return app.source


async def wait_for(
    pilot: AppPilot, condition: Callable[[], object], what: str = "", seconds: float = 20
) -> None:
    """Let the app go on until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what or condition}"
        await pilot.pause()


async def ready(pilot: AppPilot) -> ConsoleApp:
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await wait_for(pilot, lambda: app.live.keys.rows and app.live.head.size.width, "the first picture")
    app.repaint()
    return app


def screen_text(app: ConsoleApp) -> str:
    """What the terminal would show."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


def said(app: ConsoleApp) -> str:
    row = app.live.keys.rows[0]
    return row.text if isinstance(row, SaidRow) else ""


# --- what is shown ---------------------------------------------------------------------------------------


@on_loop
async def test_the_live_screen_tells_the_run_at_a_glance() -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        text = screen_text(app)
        for words in (
            "nightfall.mkv",
            "LIVE",
            "policy guided,12",
            "75.0%",
            "ETA ",
            "3,600/4,800",
            "lapses 1",
        ):
            assert words in text, words
        for words in ("parts 100", "workers", "credited frames/s", "events", "c15#1", "rendering", "q quit"):
            assert words in text, words
        assert "LAPSED c7#1@e1" in text and "refused deliver: not claimant (c7#1@e1" in text


@on_loop
async def test_one_tick_takes_in_everything_and_draws_only_what_changed() -> None:
    async with console(at=30).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        player_of(app).time = 60.0
        app.tick()
        assert app.model.records == sum(record.at <= 60 for record in LOG)
        await pilot.pause()
        drawn: list[object] = []
        for widget in app.live.query("*"):
            widget.render_lines = lambda crop, w=widget, f=widget.render_lines: (drawn.append(w), f(crop))[1]  # type: ignore[method-assign,misc]
        app.tick()
        await pilot.pause()
        assert drawn == [], "nothing happened, yet it was drawn"
        player_of(app).time = 61.0
        app.tick()
        await wait_for(pilot, lambda: any(isinstance(widget, Header) for widget in drawn), "the clock")


@on_loop
async def test_under_load_panels_take_turns_and_catch_up_when_it_is_quiet() -> None:
    async with console(at=5).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)

        def burst() -> tuple[bool, bool]:
            """Whether workers and events were brought up to date by a tick with a lot to take in."""
            workers, events = list(app.live.worker_list.rows), list(app.live.event_list.rows)
            player_of(app).time += 1.0
            notices = [Notice(level="info", text=f"notice {n}") for n in range(BUSY_RECORDS + 1)]
            token = app.model.workers["w4"].token
            assert token is not None
            progress = ClaimProgress(token, position=1_000_000 + app.model.records)
            player_of(app).add(LeaseRenewed(worker="w4", claims=(progress,)), *notices)
            app.tick()
            return list(app.live.worker_list.rows) != workers, list(app.live.event_list.rows) != events

        assert burst()[1], "a burst alone is shown at once"
        shown = {burst(), burst()}
        assert {events for _, events in shown} == {True, False}
        assert app.live.head.rows[0].clock == "t 00:08"  # type: ignore[attr-defined]
        app.tick()
        assert app.live.event_list.rows[0] == app.model.events[-1]


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (120, 40), (300, 80), (20, 5), (1, 1)])
@on_loop
async def test_it_runs_at_any_size(size: tuple[int, int]) -> None:
    async with console(at=0).run_test(size=size) as pilot:
        app = await ready(pilot) if size > (1, 1) else pilot.app
        assert isinstance(app, ConsoleApp)
        for at in (0.1, 30, 72, 100, 200):
            player_of(app).time = at
            app.tick()
            await pilot.pause()
        for key in ("question_mark", "escape", "enter", "escape", "m", "d", "x", "escape"):
            await pilot.press(key)
        assert app.is_running


@on_loop
async def test_it_follows_a_terminal_that_changes_its_size() -> None:
    """RG50: 20 columns wide, and all sizes in between, while the run goes on."""
    async with console(at=20).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        for step, size in enumerate([(40, 10), (300, 80), (20, 5), (70, 24), (120, 40), (80, 24)]):
            await pilot.resize_terminal(*size)
            player_of(app).time = 30.0 + 10 * step
            app.tick()
            await wait_for(pilot, lambda size=size: app.live.head.size.width == size[0], f"{size}")  # type: ignore[misc]
        assert len(app.live.worker_list.rows) >= 4
        assert "75.0%" not in screen_text(app) or app.model.credited_frames == 3600


@on_loop
async def test_forty_columns_still_show_progress_and_workers() -> None:
    async with console(at=72).run_test(size=(40, 10)) as pilot:
        text = screen_text(await ready(pilot))
        for words in ("nightfall.mkv", "LIVE", "75.0%", "w1", "w4", "q quit"):
            assert words in text, words


@on_loop
async def test_without_colour_symbols_tell_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        assert app.look.symbols and not app.look.ascii_only
        text = screen_text(app)
        assert "[####" in text and ">>>" in text and "!!!" in text and "▆" not in text and "▄" not in text


@on_loop
async def test_sixteen_colours_bring_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM")
    app = console()
    assert app.look.symbols


@on_loop
async def test_ascii_draws_every_cell_in_ascii() -> None:
    async with console(at=72, ascii_only=True).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        app.tick()
        await wait_for(pilot, lambda: "+-" in screen_text(app), "ASCII frames")
        assert screen_text(app).isascii()
        await pilot.press("m")
        for key in ("question_mark", "enter", "x"):
            await pilot.press(key)
            await wait_for(pilot, lambda: isinstance(app.screen, Dialog), key)
            assert screen_text(app).isascii(), key
            await pilot.press("escape")


@on_loop
async def test_a_name_full_of_traps_is_one_line() -> None:
    story = Story(input="/films/\x1b[31m工作 👩‍👩‍👧 e\u0301\n" + "x" * 300 + ".mkv")
    player = Player(story.records)
    async with ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False).run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        first = screen_text(app).splitlines()[0]
        assert "\x1b" not in first and "工作" in first and first.rstrip().endswith("t 00:00")


# --- looks -----------------------------------------------------------------------------------------------


@on_loop
async def test_m_and_d_change_the_look() -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        assert "▆" in screen_text(app)
        await pilot.press("m")
        await wait_for(pilot, lambda: "####" in screen_text(app) and "▆" not in screen_text(app), "symbols")
        await pilot.press("m")
        await wait_for(pilot, lambda: "▆" in screen_text(app), "colours")
        await pilot.press("d")
        await wait_for(pilot, lambda: app.theme == "uneven-light" and not app.look.palette.dark, "light")
        assert all(widget.look is app.look for widget in (app.live.head, app.live.part_map, app.live.keys))
        await pilot.press("d")
        await wait_for(pilot, lambda: app.theme == "uneven-dark", "dark")


@on_loop
async def test_ctrl_s_saves_a_picture(tmp_path: Path) -> None:
    async with console(at=72, picture_folder=tmp_path).run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("ctrl+s")
        await wait_for(pilot, lambda: said(app), "a word about it")
        picture = next(tmp_path.glob("uneven-*.svg"))
        assert str(picture) in said(app) and "nightfall.mkv" in picture.read_text()
    async with console(at=72, picture_folder=tmp_path / "nowhere").run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("ctrl+s")
        await wait_for(pilot, lambda: "can't be written" in said(app), "the refusal")


# --- workers and events ----------------------------------------------------------------------------------


def selected(app: ConsoleApp) -> str:
    return next(row.name for row in app.live.worker_list.rows if isinstance(row, WorkerRow) and row.selected)


@on_loop
async def test_keys_and_clicks_select_a_worker() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        assert selected(app) == "w1"
        for key, name in (("j", "w2"), ("down", "w3"), ("k", "w2"), ("up", "w1"), ("up", "w1"), ("G", "w4")):
            await pilot.press(key)
            assert selected(app) == name, key
        for key, name in (("g", "w1"), ("end", "w4"), ("home", "w1")):
            await pilot.press(key)
            assert selected(app) == name, key
        await pilot.click("#workers", offset=(5, 4))
        await wait_for(pilot, lambda: selected(app) == "w3", "the clicked row")


@on_loop
async def test_more_workers_than_rows_scroll_and_are_counted() -> None:
    story = Story(48 * 200, 48)
    for number in range(1, 101):
        story.join(f"w{number}")
    player = Player(story.records)
    async with ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        assert "of 100 shown" in screen_text(app)
        await pilot.press("G")
        assert selected(app) == "w100"
        await pilot.press("k")
        assert selected(app) == "w99"


@on_loop
async def test_enter_tells_more_of_a_worker_and_goes_on() -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("j", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, WorkerDetail), "the box")
        await wait_for(pilot, lambda: "1 lapse, 1 refusal" in screen_text(app), "its trouble")
        assert "at most 30 fps, 2 s a claim" in screen_text(app) and "LAPSED c7#1@e1" in screen_text(app)
        player_of(app).time = 95
        app.tick()
        await wait_for(
            pilot, lambda: "credited c22" in screen_text(app) or "01:3" in screen_text(app), "news"
        )
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "the live screen")


@on_loop
async def test_f_holds_the_events_and_follows_again() -> None:
    async with console(at=30).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        newest = app.live.event_list.rows[0]
        await pilot.press("f")
        player_of(app).time = 60
        app.tick()
        assert app.live.event_list.rows[0] == newest
        await wait_for(pilot, lambda: "newer (f follows)" in screen_text(app), "the title")
        await pilot.press("pageup")
        assert app.live.event_list.rows[0] != newest
        await pilot.press("f")
        assert app.live.event_list.rows[0] == app.model.events[-1]
        app.live.event_list.post_message(EventList.Scrolled(2))
        await wait_for(pilot, lambda: app.live.held_at is not None, "the wheel")
        await pilot.press("pagedown")
        assert app.live.held_at is None


@on_loop
async def test_question_mark_shows_all_keys() -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("question_mark")
        await wait_for(pilot, lambda: isinstance(app.screen, Help), "the help")
        await wait_for(pilot, lambda: "drain; once more" in screen_text(app), "its text")
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "the live screen")


# --- commands --------------------------------------------------------------------------------------------


@on_loop
async def test_space_and_p_pause_and_resume() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        player = player_of(app)
        await pilot.press("space")
        assert player.commands == [Pause()] and "Pausing" in said(app)
        player.add(JobPaused())
        app.tick()
        await wait_for(pilot, lambda: "PAUSED" in screen_text(app), "the badge")
        await pilot.press("p")
        assert player.commands[-1] == Resume()
        player.add(JobResumed(seconds=1.0))
        app.tick()
        await wait_for(pilot, lambda: " LIVE " in screen_text(app), "the badge")


@on_loop
async def test_s_stalls_and_unstalls_the_selected_worker() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        player = player_of(app)
        await pilot.press("j", "j", "s")
        assert player.commands == [StallWorker(worker="w3", stalled=True)]
        player.add(OperatorActed(action="stall", worker="w3"))
        app.tick()
        await wait_for(pilot, lambda: "STALLED" in screen_text(app), "the state")
        await pilot.press("s")
        assert player.commands[-1] == StallWorker(worker="w3", stalled=False)


@on_loop
async def test_x_asks_names_what_is_lost_and_kills() -> None:
    async with console(at=75).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("j", "x")
        await wait_for(pilot, lambda: isinstance(app.screen, Question), "the question")
        await wait_for(pilot, lambda: "kill w2?" in screen_text(app), "its title")
        assert "w2 holds c14#1@e1, frames [3,936, 4,032)" in screen_text(app)
        for key in ("enter", "space", "y"):
            await pilot.press(key)
        assert isinstance(app.screen, Question) and player_of(app).commands == []
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "no answer")
        assert player_of(app).commands == []
        await pilot.press("x", "x")
        await wait_for(pilot, lambda: player_of(app).commands, "the command")
        assert player_of(app).commands == [KillWorker(worker="w2")]


@on_loop
async def test_i_shows_a_menu_of_faults_and_injects_the_chosen_one() -> None:
    async with console(at=75).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("j", "i")
        await wait_for(pilot, lambda: "what goes wrong with w2?" in screen_text(app), "the menu")
        assert "the store refuses its deliveries for 5 s" in screen_text(app)
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "no answer")
        assert player_of(app).commands == []
        await pilot.press("i", "r")
        await wait_for(pilot, lambda: player_of(app).commands, "the command")
        assert said(app) == "Injecting rate-limit for w2."
        await pilot.press("i", "z")
        await wait_for(pilot, lambda: len(player_of(app).commands) == 2, "the other")
        lines = ("rate-limit w2 at 0 for 5", "suspend at 0 for 5")
        assert player_of(app).commands == [InjectFault(fault=parse_fault(line)) for line in lines]


def test_every_fault_of_the_menu_is_one_of_its_own_key() -> None:
    keys = [key for key, _, _ in FAULT_MENU]
    assert len(set(keys)) == len(keys)
    for key in keys:
        check_faults([chosen_fault(key, "laptop-1")], ["laptop-1"], live=True)


@on_loop
async def test_a_question_follows_the_run_behind_it() -> None:
    """What killing a worker loses is not what it was when the question came up."""
    story = Story(frames=480, part=48)
    story.join("w1")
    token = story.at(1).grant("w1", 0, 10)
    story.at(2).beat(token, 20)
    story.at(3).beat(token, 60)
    story.at(4).credit(token, 0, render_seconds=2.0)
    player = Player(story.records)
    player.open_end = True
    player.time = 2.0
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("x")
        for at, lost in ((2.0, "20 frames of it"), (3.0, "60 frames of it"), (4.0, "12 frames of it")):
            player.time = at
            app.tick()
            await wait_for(pilot, lambda lost=lost: lost in screen_text(app), lost)


@on_loop
async def test_ctrl_z_where_nothing_can_be_stopped_says_so() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("ctrl+z")
        await wait_for(
            pilot, lambda: said(app).startswith("Ctrl-Z does nothing on this terminal"), "the reason"
        )
        assert player_of(app).commands == []


@on_loop
async def test_a_refused_command_says_why() -> None:
    async with console().run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        player_of(app).refusal = "The run is joining its parts; there is nothing to pause."
        await pilot.press("space")
        assert said(app) == player_of(app).refusal
        row = app.live.keys.rows[0]
        assert isinstance(row, SaidRow) and row.alert


@pytest.mark.parametrize("kind", ["readonly", "recording"])
@on_loop
async def test_readonly_greys_control_keys_and_sends_nothing(kind: str) -> None:
    player = Player(LOG, world="recording" if kind == "recording" else "live")
    player.time = 60
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False, readonly=kind == "readonly")
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        row = app.live.keys.rows[0]
        assert isinstance(row, KeysRow)
        greys = {"space", "s", "x", "t", "a", "o", "r", "c", "w", "i"}
        assert {key.key for key in row.keys if not key.enabled} == greys
        await pilot.press("space", "p", "s", "x", "i")
        assert app.screen is app.live and player.commands == []
        await pilot.press("q")
        await wait_for(pilot, lambda: app.return_value is not None, "the end")
    assert app.return_value == Outcome("quit") and player.commands == []


# --- leaving ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "command"), [("d", Drain), ("x", StopNow), ("s", None), ("escape", None)])
@on_loop
async def test_q_asks_how_to_leave(key: str, command: type | None) -> None:
    async with console().run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("q")
        await wait_for(pilot, lambda: isinstance(app.screen, Question), "the question")
        await wait_for(pilot, lambda: "not credited yet" in screen_text(app), "its text")
        await pilot.press(key)
        await wait_for(pilot, lambda: app.screen is app.live, "the answer")
        assert [type(sent) for sent in player_of(app).commands] == ([command] if command else [])
        assert app.is_running and app.return_value is None


@on_loop
async def test_ctrl_c_drains_then_stops_then_leaves() -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("question_mark", "ctrl+c")  # a box on top does not hide it
        await wait_for(pilot, lambda: "Draining" in said(app), "the first word")
        assert "Ctrl-C stops at once" in said(app)
        player_of(app).add(DrainStarted(reason="asked"))
        app.tick()
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live and "DRAINING" in screen_text(app), "the badge")
        await pilot.press("ctrl+c")
        assert "can be resumed" in said(app)
        assert [type(sent) for sent in player_of(app).commands] == [Drain, StopNow]
        await pilot.press("ctrl+c")
        await wait_for(pilot, lambda: app.return_value is not None, "the end")
    assert app.return_value == Outcome("abandoned")


@on_loop
async def test_it_closes_by_itself_when_the_run_ended() -> None:
    app = console(at=60, exit_when_done=True, settle_seconds=0.01)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        player_of(app).time = 1e6
        app.tick()
        await wait_for(pilot, lambda: app.return_value is not None, "the end")
        assert app.model.finish is not None and app.model.records == len(LOG)
    assert app.return_value == Outcome("ended")


@on_loop
async def test_it_stays_when_asked_to_until_q() -> None:
    app = console(at=1e6)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await wait_for(pilot, lambda: "q leaves" in said(app), "the word")
        text = screen_text(app)
        assert "DONE" in text and "100.0%" in text and "done and verified" in text
        await pilot.press("space", "s")
        assert player_of(app).commands == []
        await pilot.press("q")
        await wait_for(pilot, lambda: app.return_value is not None, "the end")
    assert app.return_value == Outcome("ended")
