"""Draws the pictures of the console that README and docs show, 120x40, from a canned story.

    python scripts/screenshot.py [FOLDER]     # docs, if none is given

The story is simulated and the moment is fixed, so the same code draws the same picture. Six uneven workers
are on one film: one stood still and lost its claim, whose part waits to be claimed again, and one died.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SIZE = (120, 40)
MOMENT_SECONDS = 66.4
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


def steady(svg: str) -> str:
    """Rich names its classes after a checksum of the content; a plain name keeps differences small."""
    return re.sub(r"terminal-\d+", "console", svg)


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else ROOT / "docs"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
    os.environ.pop("NO_COLOR", None)
    for name, keys in PICTURES.items():
        svg = steady(asyncio.run(draw(keys)))
        size = len(svg.encode())
        if size > BYTES_MAX:
            raise SystemExit(f"the picture {name} has {size} bytes; at most {BYTES_MAX} are wanted here")
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"{folder / name}.svg: {size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
