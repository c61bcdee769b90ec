"""The frame that all screens share: going from one to another, palette, filter prompt, zoom, copy, export."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
from textual import events
from textual.command import CommandPalette
from textual.widgets import Input

from console.keycommands import key_commands
from console.modals.help import Help
from console.widgets.key_bar import KeysRow, placed
from tests.console.test_app import (
    colour_terminal,
    console,
    on_loop,
    player_of,
    ready,
    said,
    screen_text,
    wait_for,
)

__all__ = ["colour_terminal"]


@on_loop
async def test_eight_keys_fit_on_eighty_columns_and_the_ways_out_stand_first() -> None:
    async with console(at=60).run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        row = app.live.keys.rows[0]
        assert isinstance(row, KeysRow)
        shown = [key.key for key, _, _ in placed(row.keys, 80)]
        assert shown == ["q", "?", "space", "enter", "s", "x", "/", "^p"]


@on_loop
async def test_the_palette_lists_what_keys_do_and_does_it() -> None:
    async with console(at=60).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        words = {command.words for command in key_commands(app.live)}
        assert {"quit", "pause or go on", "stall or unstall the worker", "dark or light"} <= words
        assert not any("virtual time" in text for text in words), "there is no clock to hurry in a live run"
        await pilot.press("ctrl+p")
        await wait_for(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette")
        await pilot.press(*"dark or light")
        await wait_for(pilot, lambda: "dark or light  (d)" in screen_text(app), "its hit")
        await pilot.press("enter")
        await wait_for(pilot, lambda: app.theme == "uneven-light", "the light theme")


@on_loop
async def test_the_palette_of_a_readonly_console_has_no_commands_to_send() -> None:
    async with console(at=60, readonly=True).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        words = {command.words for command in key_commands(app.live)}
        assert not {"pause or go on", "stall or unstall the worker", "kill the worker"} & words
        assert {"quit", "what the worker did", "export a picture (SVG)"} <= words


@on_loop
async def test_ascii_palette_is_ascii() -> None:
    async with console(at=60, ascii_only=True).run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press("ctrl+p")
        await wait_for(pilot, lambda: "kill the worker  (x)" in screen_text(app), "the commands")
        assert screen_text(app).isascii()


@on_loop
async def test_slash_filters_events_enter_keeps_it_and_escape_gives_it_up() -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        everything = len(app.live.event_list.rows)
        await pilot.press("slash", *"Refused")
        await wait_for(pilot, lambda: app.live.needle == "refused", "the words")
        rows = app.live.event_list.rows
        assert rows and len(rows) < everything and all("refused" in row.text for row in rows)  # type: ignore[attr-defined]
        assert isinstance(app.focused, Input), "q and d are letters here"
        await pilot.press("enter")
        await wait_for(pilot, lambda: not app.live.prompt.is_open, "the key bar")
        assert app.live.needle == "refused" and "with 'refused'" in str(app.live.event_list.border_title)
        player_of(app).time = 1e6
        app.tick()
        assert all("refused" in row.text for row in app.live.event_list.rows)  # type: ignore[attr-defined]
        await pilot.press("escape")
        assert app.live.needle == "" and len(app.live.event_list.rows) == everything
        await pilot.press("slash", "x", "escape")
        await wait_for(pilot, lambda: not app.live.prompt.is_open and app.live.needle == "", "no filter")
        assert app.live.keys.display


@on_loop
async def test_tab_goes_through_the_panels_and_z_lets_one_fill_the_screen() -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        order = [app.focused.id if app.focused else None]
        for _ in range(4):
            await pilot.press("tab")
            order.append(app.focused.id if app.focused else None)
        assert order == ["workers", "plot", "events", "map", "workers"]
        for name in ("plot", "events", "map", "workers"):
            await pilot.press("tab", "z")
            await wait_for(
                pilot,
                lambda name=name: [p.id for p in app.live.panels() if p.size.height] == [name],  # type: ignore[misc]
                f"{name} alone",
            )
            assert app.live.query_one(f"#{name}").outer_size == (120, 36)
            await pilot.press("z" if name == "map" else "escape")
            await wait_for(pilot, lambda: all(p.size.height for p in app.live.panels()), "all panels")


@on_loop
async def test_y_copies_the_claim_of_the_selected_worker() -> None:
    async with console(at=60).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        written: list[str] = []
        driver = app._driver
        assert driver is not None
        driver.write = written.append  # type: ignore[method-assign]
        token = app.model.workers["w1"].token
        assert token
        await pilot.press("y")
        await wait_for(pilot, lambda: token in said(app), "a word about it")
        assert app.clipboard == token
        assert f"\x1b]52;c;{base64.b64encode(token.encode()).decode()}\a" in written


@pytest.mark.parametrize("turns", [0, 1, 3, 10])
@on_loop
async def test_a_filter_typed_in_one_read_is_taken_whole_and_no_letter_is_a_command(turns: int) -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        for key in ("slash", "q", "x", "backspace", "backspace", *"laps", "enter"):
            app.post_message(events.Key(key, key if len(key) == 1 else "/" if key == "slash" else None))
            for _ in range(turns):
                await asyncio.sleep(0)
        await wait_for(pilot, lambda: app.live.needle and not app.live.prompt.is_open, "the filter")
        assert app.live.needle == "laps" and app.screen is app.live and player_of(app).commands == []


@on_loop
async def test_escape_at_once_gives_up_the_filter() -> None:
    async with console(at=72).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        for key in ("slash", "x", "escape"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await wait_for(pilot, lambda: not app.live.prompt.is_open and app.live.keys.display, "the key bar")
        await pilot.press("j")
        assert app.live.needle == "" and app.screen is app.live


@pytest.mark.parametrize("key", ["e", "ctrl+s"])
@on_loop
async def test_export_saves_the_screen_as_it_is(key: str, tmp_path: Path) -> None:
    async with console(at=72, picture_folder=tmp_path).run_test(size=(80, 24)) as pilot:
        app = await ready(pilot)
        await pilot.press(key)
        await wait_for(pilot, lambda: said(app), "a word about it")
        assert "nightfall.mkv" in next(tmp_path.glob("*.svg")).read_text()


@on_loop
async def test_the_palette_goes_to_another_screen() -> None:
    async with console(at=60).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press("ctrl+p")
        await wait_for(pilot, lambda: isinstance(app.screen, CommandPalette), "the palette")
        await pilot.press(*"the timeline")
        await wait_for(pilot, lambda: "the timeline screen  (2)" in screen_text(app), "its hit")
        await pilot.press("enter")
        await wait_for(pilot, lambda: app.screen is app.timeline, "the timeline")


@on_loop
async def test_number_keys_go_from_screen_to_screen_and_a_box_stays_where_it_is() -> None:
    async with console(at=60).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        for key, screen in (("2", app.timeline), ("3", app.chunks), ("4", app.chunks), ("1", app.live)):
            await pilot.press(key)
            await wait_for(pilot, lambda screen=screen: app.screen is screen, key)  # type: ignore[misc]
        await pilot.press("question_mark", "2")
        assert isinstance(app.screen, Help)


@pytest.mark.parametrize("key", ["1", "2", "3"])
@on_loop
async def test_help_tells_the_keys_of_the_screen_it_was_asked_on(key: str) -> None:
    async with console(at=60).run_test(size=(120, 40)) as pilot:
        app = await ready(pilot)
        await pilot.press(key)
        await pilot.pause()
        front = app.front
        assert front is not None and front.HELP_KEYS
        await pilot.press("question_mark")
        await wait_for(pilot, lambda: "screens: live, timeline, chunks" in screen_text(app), "the help")
        for _, words in front.HELP_KEYS:
            assert words in screen_text(app), words


@on_loop
async def test_help_scrolls_where_it_does_not_fit() -> None:
    async with console().run_test(size=(60, 16)) as pilot:
        app = await ready(pilot)
        await pilot.press("question_mark")
        await wait_for(pilot, lambda: isinstance(app.screen, Help), "the help")
        await wait_for(pilot, lambda: "select a worker" in screen_text(app), "its beginning")
        await pilot.press(*["j"] * 60)
        await wait_for(pilot, lambda: "standing still" in screen_text(app), "its end")
        await pilot.press("k")
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "the live screen")
