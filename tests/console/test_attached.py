"""The console on a run of another process: leaving it never touches the run; ending the run is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.attached import AttachedConsole, LeaveQuestion
from console.consolebase import Outcome
from console.modals.help import Help
from console.model import Model
from console.status import status_line, status_of, status_text
from console.text import width as cells
from farm.commands import Drain, Pause, StopNow
from farm.events import RunFinished
from tests.attach.telling import Telling
from tests.console.player import Player
from tests.console.story import Fault, play
from tests.console.test_app import colour_terminal, on_loop

__all__ = ["colour_terminal"]

LOG = play(faults=[Fault("w2", 40, 30)])


def attached(at: float = 60.0, **options: object) -> tuple[AttachedConsole, Player]:
    player = Player(LOG)
    player.time = at
    app = AttachedConsole(player, refresh_hz=1e-6, **{"exit_when_done": False, **options})  # type: ignore[arg-type]
    return app, player


async def pressed(app: AttachedConsole, *keys: str) -> Pilot[Outcome]:
    async with app.run_test(size=(120, 40)) as pilot:
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
    return pilot


@pytest.mark.parametrize(
    "keys", [["q"], ["ctrl+q"], ["ctrl+c", "ctrl+c"], ["ctrl+c", "enter"], ["ctrl+c", "q"]]
)
@on_loop
async def test_leaving_ends_the_view_and_asks_nothing_of_the_run(keys: list[str]) -> None:
    app, player = attached()
    await pressed(app, *keys)
    assert app.return_value == Outcome("quit")
    assert player.commands == []


@pytest.mark.parametrize(("key", "asked"), [("d", Drain), ("x", StopNow)])
@on_loop
async def test_ending_the_run_takes_a_question_and_keeps_the_view(key: str, asked: type) -> None:
    app, player = attached()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+c")
        assert isinstance(app.screen, LeaveQuestion)
        await pilot.press(key)
        await pilot.pause()
        assert not isinstance(app.screen, LeaveQuestion)
        assert [type(command) for command in player.commands] == [asked]
        assert app.return_value is None


@pytest.mark.parametrize("key", ["s", "escape", "space"])
@on_loop
async def test_staying_changes_nothing(key: str) -> None:
    app, player = attached()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c", key)
        await pilot.pause()
        assert player.commands == [] and app.return_value is None


@on_loop
async def test_read_only_ctrl_c_leaves_at_once() -> None:
    app, player = attached(readonly=True)
    await pressed(app, "space", "s", "ctrl+c")
    assert app.return_value == Outcome("quit")
    assert player.commands == []


@on_loop
async def test_the_last_row_and_the_help_say_that_the_run_goes_on() -> None:
    app, _ = attached()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        row = app.live.keys.rows[0]
        assert row.keys[0].label == "leave"  # type: ignore[attr-defined]
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        said = {pieces[1][0] for pieces in app.screen.rows(70, 200) if len(pieces) > 1}
        assert "leave this view; the run goes on" in said
        assert "quit; while the run goes on, asks how" not in said


@pytest.mark.parametrize("size", [(20, 5), pytest.param((300, 80), marks=pytest.mark.slow)])
@on_loop
async def test_the_question_fits_any_size(size: tuple[int, int]) -> None:
    app, _ = attached()
    async with app.run_test(size=size) as pilot:
        await pilot.press("ctrl+c")
        await pilot.resize_terminal(70, 24)
        await pilot.pause()
        assert isinstance(app.screen, LeaveQuestion)


@on_loop
async def test_a_refusal_that_comes_back_later_is_said(tmp_path: Path) -> None:
    """The run is another process: when an order is sent it isn't known what becomes of it."""
    telling = Telling(tmp_path)
    telling.refusal = "the run is over"
    source = telling.attach()
    try:
        app = AttachedConsole(source, refresh_hz=20.0, exit_when_done=False)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("space")
            while app.said is None or not app.said.alert:
                await pilot.pause(0.01)
            assert app.said.text == "the run is over"
        assert telling.commands == [Pause()]
    finally:
        source.close()
        telling.close()


@on_loop
async def test_a_run_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    source = telling.attach()
    app = AttachedConsole(source, refresh_hz=20.0, exit_when_done=False)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            telling.close()
            while not app.ended:
                await pilot.pause(0.01)
            assert app.said is not None and "process is gone" in app.said.text
            await pilot.press("q")
    finally:
        source.close()
    assert app.return_value == Outcome("ended")


# --- the status ------------------------------------------------------------------------------------------


def folded(at: float) -> AttachedConsole:
    app, player = attached(at)
    for record in player.take():
        app.model.fold(record)
    return app


@on_loop
async def test_a_status_tells_what_the_model_knows() -> None:
    model = folded(60.0).model
    status = status_of(model, 60.0, live=True, folder="/films/o.uneven", pid=7)
    assert status.state == "work" and status.exit_code is None
    assert status.credited_frames == model.credited_frames > 0
    assert (status.lapses, status.duplicates) == (model.lapses, model.duplicates)
    assert [worker.name for worker in status.workers] == sorted(model.workers)
    assert status.eta_low_seconds is not None and status.eta_seconds is not None
    assert status.eta_low_seconds <= status.eta_seconds <= (status.eta_high_seconds or 0)
    text = status_text(status, model, 60.0, 60)
    assert "live, work (process 7)" in text
    assert all(cells(line) <= 60 for line in text.splitlines()[4:])
    assert "\n" not in status_line(status, model, 60.0)


@on_loop
async def test_a_run_without_an_end_is_cut_off_and_one_with_is_as_it_ended() -> None:
    model = folded(60.0).model
    status = status_of(model, 60.0, live=False, folder="")
    assert (status.state, status.exit_code) == ("cut off", None)
    assert not {worker.state for worker in status.workers} & {"rendering", "idle", "parked"}
    for code, state in ((0, "done"), (5, "incomplete"), (130, "stopped"), (6, "failed"), (70, "failed")):
        model.finish = RunFinished(exit_code=code, outcome="so it went")
        status = status_of(model, 60.0, live=False, folder="")
        assert (status.state, status.exit_code, status.outcome) == (state, code, "so it went")


def test_a_run_of_which_nothing_is_known_yet_is_starting() -> None:
    model = Model("live")
    status = status_of(model, 0.0, live=True, folder="/films/o.uneven", pid=7)
    assert (status.state, status.frames, status.eta_seconds) == ("starting", 0, None)
    assert "live, starting" in status_text(status, model, 0.0, 80)
    assert "ETA unknown" in status_line(status, model, 0.0)
