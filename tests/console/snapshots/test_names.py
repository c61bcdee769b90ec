"""RG53 on the live screen and in the worker's box: no name makes a line too long or moves a column."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from console.app import ConsoleApp
from console.modals.worker import WorkerDetail
from tests.console.player import Player
from tests.console.story import Story
from tests.console.test_app import colour_terminal, on_loop, ready, screen_text, wait_for
from tests.console.test_chunks_screen import SIZES, TRAPS

__all__ = ["colour_terminal"]


@pytest.mark.parametrize("size", SIZES)
@on_loop
async def test_names_full_of_traps_keep_the_live_screen_aligned(size: tuple[int, int]) -> None:
    story = Story(frames=400, part=50, input="/films/" + "".join(TRAPS) + ".mkv")
    for number, name in enumerate(TRAPS):
        story.join(name)
        token = story.grant(name, number, number + 1)
        story.credit(token, number, render_seconds=1.0)
    app = ConsoleApp(Player(story.records), refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        for keys in ((), ("enter",)):
            await pilot.press(*keys)
            if keys:
                await wait_for(pilot, lambda: isinstance(app.screen, WorkerDetail), "the box")
            for line in screen_text(app).splitlines():
                assert cell_len(line) == size[0] and "\x1b" not in line
        await pilot.press("escape")
        for lines in (app.live.worker_list, app.live.event_list, app.live.head):
            for y in range(len(lines.rows)):
                strip = lines.render_line(y)
                assert strip.cell_length == cell_len(strip.text) == lines.size.width
