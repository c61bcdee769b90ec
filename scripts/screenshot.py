"""Draws the pictures of the console that README and docs show, 120x40, from a canned story; docs/compare.svg
from three policies on one fleet.

    python scripts/screenshot.py [FOLDER]     # docs, if none is given

Both are simulated and the moments are fixed, so the same code draws the same pictures. In the story six
uneven workers are on one film: one stood still and lost its claim, whose part waits to be claimed again, and
one died.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SIZE = (120, 40)
MOMENT_SECONDS = 66.4
POLICIES = ("fair+split", "guided,12+duplicate-oldest", "fixed,48+none")
BYTES_MAX = 300_000


#: Which keys lead to what each picture shows.
PICTURES = {
    "console": ("j", "j"),
    "timeline": ("2", "0", "j", "j", "left", "left"),
    "chunks": ("3", "l", "l", "enter"),
}


async def draw(keys: tuple[str, ...]) -> str:
    """The picture as SVG text."""
    from console.app import ConsoleApp
    from tests.console.player import Player
    from tests.console.story import Fault, play

    faults = [Fault("w3", 46.0, 26.0), Fault("w5", 57.0)]
    player = Player(play((30, 30, 24, 12, 6, 2), frames=6720, part=48, faults=faults))
    player.time = MOMENT_SECONDS
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(3):  # layout first, then what depends on sizes
            await pilot.pause()
            app.tick()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        for _ in range(3):
            await pilot.pause(0.1)
            app.tick()
        return app.export_screenshot(title="uneven render nightfall.mkv", simplify=True)


async def draw_compare() -> str:
    """The Compare screen when all is over, as SVG text."""
    from console.compare_app import CompareApp
    from tests.console.contests import contest_of, heats, play_to

    contest, clock = contest_of(heats(POLICIES, ("A",)))
    play_to(contest, clock, 1e6)
    app = CompareApp(contest, refresh_hz=1e-6)
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(3):
            await pilot.pause()
            app.tick()
        await pilot.press("j")
        await pilot.pause()
        return app.export_screenshot(title="uneven compare --ui tui", simplify=True)


def steady(svg: str) -> str:
    """Rich names its classes after a checksum of the content; a plain name keeps differences small."""
    return re.sub(r"terminal-\d+", "console", svg)


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
    os.environ.pop("NO_COLOR", None)
    pictures = {name: partial(draw, keys) for name, keys in PICTURES.items()}
    for name, picture in {**pictures, "compare": draw_compare}.items():
        svg = steady(asyncio.run(picture()))
        size = len(svg.encode())
        if size > BYTES_MAX:
            raise SystemExit(f"the picture {name} has {size} bytes; at most {BYTES_MAX} are wanted here")
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"{folder / name}.svg: {size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
