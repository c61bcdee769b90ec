"""Every screen and box as a picture: what changes by accident is seen. ``pytest --snapshot-update`` takes
them anew; look at them before they are committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from console.app import ConsoleApp, Outcome
from tests.console.snapshots.lean import lean
from tests.console.snapshots.scenes import SCENES, Scene
from tests.console.test_app import colour_terminal, screen_text, wait_for

__all__ = ["colour_terminal"]

SIZES = ((120, 40), (80, 24))
LOOKS = ("dark", "light", "NO_COLOR")


def pictures() -> Iterator[object]:
    """Everyday: the large dark one of each. The others are in CI only."""
    for scene in SCENES:
        for size in SIZES:
            for look in LOOKS:
                everyday = size == SIZES[0] and look == "dark"
                name = f"{scene.name}-{size[0]}x{size[1]}-{look}"
                marks = () if everyday else (pytest.mark.slow,)
                yield pytest.param(scene, size, look, id=name, marks=marks)


@pytest.mark.parametrize(("scene", "size", "look"), pictures())
def test_it_looks_as_it_did(
    scene: Scene,
    size: tuple[int, int],
    look: str,
    snap_compare: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if look == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    app = scene.make()
    export = app.export_screenshot
    monkeypatch.setattr(app, "export_screenshot", lambda **options: lean(export(**options), *size))

    async def open_scene(pilot: Pilot[Outcome]) -> None:
        await wait_for(pilot, lambda: app.front and app.front.keys.rows, "the first picture")
        await settled(pilot, app)
        if look == "light":
            app.action_dark()
        for key in scene.keys:
            await pilot.press(key)
        await wait_for(pilot, lambda: scene.shows in screen_text(app), scene.shows)
        await settled(pilot, app)

    assert snap_compare(app, terminal_size=size, run_before=open_scene)


async def settled(pilot: Pilot[Outcome], app: ConsoleApp) -> None:
    """Until nothing moves any more: every box has its size, every entry its cursor."""
    for entry in (entry for entry in app.screen.query(Input) if entry.can_focus):
        await wait_for(pilot, lambda entry=entry: entry.has_focus, "the entry")  # type: ignore[misc]
        entry.cursor_blink = False
    before = ""
    while before != (before := screen_text(app)):
        app.repaint()
        await pilot.pause()
