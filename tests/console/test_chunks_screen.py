"""The chunks screen and a chunk's box: every key, every size, and what they tell."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from console.app import ConsoleApp
from console.chunklist import Filter
from console.modals.chunk import ChunkDetail
from console.screens import chunks
from console.widgets.chunk_list import ChunkRow
from console.widgets.key_bar import SaidRow
from farm.events import Record
from farm.simulation.runs import simulate
from tests.console.player import Player
from tests.console.story import Story
from tests.console.test_app import AppPilot, colour_terminal, on_loop, ready, screen_text, wait_for
from tests.simulation.worlds import small_world, worker

__all__ = ["colour_terminal"]

SIZES = [(40, 10), (80, 24), (120, 40), (300, 80)]


def slow(*sizes: tuple[int, int]) -> list[object]:
    """Sizes for CI; in the everyday suite the others are gone through by resizing."""
    return [pytest.param(size, marks=pytest.mark.slow) for size in sizes]


def simulated() -> list[Record]:
    """c1 of w2 lapses at 8.5 s and goes to c5; w2 is refused when it wakes at 30; from about 40 s c8."""
    world = small_world(
        worker("w1"),
        worker("w2", silences=((1.0, 30.0),)),
        worker("w3", 3.0),
        frames=900,
        tail="split",
        policy="fair",
        lease_seconds=8.0,
    )
    return list(simulate(world, keep_log=True).records)


LOG = simulated()


def chunks_of(at: float = 40.0, log: list[Record] = LOG, **options: object) -> ConsoleApp:
    player = Player(log)
    player.time = at
    return ConsoleApp(player, refresh_hz=1e-6, **{"exit_when_done": False, **options})  # type: ignore[arg-type]


async def opened(pilot: AppPilot) -> ConsoleApp:
    app = await ready(pilot)
    await pilot.press("3")
    await wait_for(pilot, lambda: app.screen is app.chunks and app.chunks.chunk_list.rows, "the list")
    app.repaint()
    await wait_for(pilot, lambda: app.chunks.chunk_list.size.height, "its place")
    app.repaint()
    return app


def ids(app: ConsoleApp) -> list[str]:
    return [row.id for row in app.chunks.chunk_list.rows if isinstance(row, ChunkRow)]


def selected(app: ConsoleApp) -> str:
    rows = app.chunks.chunk_list.rows
    return next((row.id for row in rows if isinstance(row, ChunkRow) and row.selected), "")


@on_loop
async def test_the_list_tells_every_chunk_and_what_happened_to_it() -> None:
    async with chunks_of().run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        text = screen_text(app)
        assert "c1      [15, 30)" in text and "lapsed, refused" in text and "given back" in text
        assert "[all 9]" in text and "in flight 3" in text and "lapsed 1" in text and "parts 180" in text
        assert "9 of 9 shown  following" in text
        row = next(r for r in app.chunks.chunk_list.rows if isinstance(r, ChunkRow) and r.id == "c1")
        assert row.done == pytest.approx(1 / 3) and row.workers == "w2" and row.trouble


@on_loop
async def test_keys_move_the_cursor_and_newest_is_followed() -> None:
    async with chunks_of(at=20.0).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        newest = ids(app)[-1]
        assert selected(app) == newest
        for key, name in (
            ("g", "c0"),
            ("j", "c1"),
            ("down", "c2"),
            ("k", "c1"),
            ("up", "c0"),
            ("up", "c0"),
            ("pagedown", newest),
            ("home", "c0"),
            ("pageup", "c0"),
            ("end", newest),
        ):
            await pilot.press(key)
            assert selected(app) == name, key
        player = app.source
        assert isinstance(player, Player)
        player.time = 40.0
        app.tick()
        assert selected(app) == "c8", "it follows"
        await pilot.press("f", "k")
        player.time = 60.0
        app.tick()
        assert selected(app) == "c7" and not app.chunks.following
        await pilot.press("f")
        assert selected(app) == "c8"
        await pilot.click("#chunk-list", offset=(5, 3))
        await wait_for(pilot, lambda: selected(app) == "c1", "the clicked row")


@on_loop
async def test_h_and_l_choose_which_chunks_and_slash_searches_them() -> None:
    async with chunks_of().run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        for key, kind in (
            ("l", Filter.IN_FLIGHT),
            ("right", Filter.LAPSED),
            ("l", Filter.DUPLICATED),
            ("l", Filter.SET_ASIDE),
            ("left", Filter.DUPLICATED),
            ("h", Filter.LAPSED),
        ):
            await pilot.press(key)
            assert app.chunks.kind is kind, key
        assert ids(app) == ["c1"] and "[lapsed 1]" in screen_text(app)
        await pilot.press("h", "h", "slash", "w", "3", "enter")
        await wait_for(pilot, lambda: app.chunks.needle == "w3" and not app.chunks.prompt.is_open, "search")
        assert ids(app) == ["c2", "c4", "c8"]
        for key, name in (("n", "c2"), ("n", "c4"), ("N", "c2"), ("N", "c8")):
            await pilot.press(key)
            assert selected(app) == name, key
        await pilot.press("escape")
        assert len(ids(app)) == 9 and selected(app) == "c8"
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.live, "the live screen")


@on_loop
async def test_a_search_through_very_many_is_not_made_at_every_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "SEARCH_AT_ONCE_MAX", 2)
    story = Story(frames=2000, part=1)
    story.join("w1")
    for part in range(2000):
        story.now += 1
        token = story.grant("w1", part, part + 1)
        story.credit(token, part)
    async with chunks_of(at=1000, log=story.records).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        await pilot.press("slash", "w", "1", "enter")
        found = len(app.chunks.numbers())
        player = app.source
        assert isinstance(player, Player)
        player.time = 1002
        app.tick()
        assert len(app.chunks.numbers()) == found, "two more of a thousand"
        player.time = 1100
        app.tick()
        assert len(app.chunks.numbers()) > found
        player.time = 1e6
        app.tick()
        assert len(app.chunks.numbers()) == 2000, "the run ended: all of them"


@on_loop
async def test_nothing_listed_has_nothing_to_open() -> None:
    async with chunks_of().run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        await pilot.press("h", "enter")
        assert ids(app) == [] and app.screen is app.chunks and "0 of 0 shown" in screen_text(app)


@on_loop
async def test_enter_tells_the_story_with_reasons() -> None:
    async with chunks_of().run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        await pilot.press("g", "j", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "the box")
        await wait_for(pilot, lambda: "GIVEN BACK" in screen_text(app), "its text")
        text = screen_text(app)
        assert "frames [15, 30) (15 frames)" in text and "5 of 15 credited" in text
        assert "w2 is given 15 frames: 0.05 of an even share" in text
        assert "w2 LAPSED: no heartbeat for 8.0 s" in text
        assert "what it gave back went to c5 (w2)" in text
        assert "refused heartbeat: not claimant" in text
        await pilot.press("y")
        await wait_for(pilot, lambda: app.clipboard == "c1", "the copy")
        await pilot.press("escape")
        await wait_for(pilot, lambda: app.screen is app.chunks, "the list")
        await pilot.press("y")
        row = app.chunks.keys.rows[0]
        assert app.clipboard == "c1" and isinstance(row, SaidRow) and "Copied c1" in row.text


def with_duplicates() -> list[Record]:
    story = Story(frames=400, part=50)
    for name in ("w1", "w2"):
        story.join(name)
    for part in range(8):
        story.now += 1
        token = story.grant("w1", part, part + 1)
        if part in (2, 5):
            story.now += 1
            story.duplicate("w2", token)
        story.now += 1
        story.credit(token, part)
        for other in [other for other in story.live if other != token]:
            story.end(other, "superseded")
    return story.records


@on_loop
async def test_j_and_k_go_to_chunks_with_several_claims() -> None:
    async with chunks_of(at=100, log=with_duplicates()).run_test(size=(100, 30)) as pilot:
        app = await opened(pilot)
        await pilot.press("g", "enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "the box")
        box = app.screen
        assert isinstance(box, ChunkDetail)
        for key, number in (("j", 2), ("j", 5), ("down", 5), ("k", 2), ("up", 2)):
            await pilot.press(key)
            assert box.number == number, key
        await wait_for(pilot, lambda: "chunk c2" in screen_text(app), "its title")
        text = screen_text(app)
        assert "#2 dup" in text and "too late" in text and "duplicated for w2, " in text
        await pilot.press("q")
        await wait_for(pilot, lambda: app.screen is app.chunks, "the list")


@on_loop
async def test_a_long_story_scrolls_and_says_how_much_is_shown() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    for _ in range(90):
        story.now += 1
        story.refuse("w1", token)
    async with chunks_of(at=1000, log=story.records).run_test(size=(100, 30)) as pilot:
        app = await opened(pilot)
        await pilot.press("enter")
        await wait_for(pilot, lambda: "lines shown" in screen_text(app), "the box")
        assert "27 older events not kept" in screen_text(app)
        before = screen_text(app)
        await pilot.press("pageup", "pageup")
        await wait_for(pilot, lambda: screen_text(app) != before, "older lines")
        await pilot.press("pagedown", "pagedown", "pagedown")
        await wait_for(pilot, lambda: screen_text(app) == before, "the end again")


@pytest.mark.parametrize("size", [(40, 10), (1, 1), *slow((20, 5), (80, 24), (120, 40), (300, 80))])
@on_loop
async def test_it_runs_at_any_size(size: tuple[int, int]) -> None:
    async with chunks_of(at=0).run_test(size=size) as pilot:
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        await pilot.press("3")
        player = app.source
        assert isinstance(player, Player)
        for at in (0.1, 10, 30, 60):
            player.time = at
            app.tick()
            await pilot.pause()
        for key in (
            "enter",
            "j",
            "escape",
            "z",
            "z",
            "tab",
            "z",
            "z",
            "m",
            "d",
            "slash",
            "escape",
            "l",
            "1",
            "3",
        ):
            await pilot.press(key)
        assert app.is_running and app.screen is app.chunks
        for other in SIZES:
            await pilot.resize_terminal(*other)
            await wait_for(pilot, lambda other=other: app.chunks.head.size.width == other[0], f"{other}")  # type: ignore[misc]


TRAPS = ("工作-\U0001f469‍\U0001f469‍\U0001f467", "é́́" * 20, "w\x1b[31m\n", "x" * 300)


@pytest.mark.parametrize("size", [(40, 10), *slow((80, 24), (120, 40), (300, 80))])
@on_loop
async def test_names_full_of_traps_keep_the_columns_aligned(size: tuple[int, int]) -> None:
    """RG53: emoji, CJK, combining marks and 300 characters."""
    story = Story(frames=400, part=50, input="/films/" + "".join(TRAPS) + ".mkv")
    for number, name in enumerate(TRAPS):
        story.join(name)
        story.grant(name, number, number + 1)
    async with chunks_of(at=10, log=story.records).run_test(size=size) as pilot:
        app = await opened(pilot)
        chunk_list = app.chunks.chunk_list
        width = chunk_list.size.width
        for y in range(len(chunk_list.rows)):
            strip = chunk_list.render_line(y)
            assert strip.cell_length == width
            text = "".join(segment.text for segment in strip)
            assert cell_len(text) == width and "\x1b" not in text
        await pilot.press("enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "the box")
        app.repaint()
        box = app.screen
        assert isinstance(box, ChunkDetail)
        for row in box.sheet.rows:
            text = "".join(piece for piece, _ in row)  # type: ignore[attr-defined]
            assert "\x1b" not in text and cell_len(text) <= size[0]


@on_loop
async def test_ascii_draws_every_cell_in_ascii() -> None:
    async with chunks_of(ascii_only=True).run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        assert screen_text(app).isascii()
        await pilot.press("enter")
        await wait_for(pilot, lambda: isinstance(app.screen, ChunkDetail), "the box")
        assert screen_text(app).isascii()


@on_loop
async def test_without_colour_symbols_tell_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with chunks_of().run_test(size=(120, 40)) as pilot:
        app = await opened(pilot)
        text = screen_text(app)
        assert "# done" in text and "> in flight" in text and "##########" in text and "▆" not in text
