"""The console on a contest: the Compare screen, and the other screens on whichever run is opened from it.

Rules of this file:
- the screens other than Compare are made anew for each run that is opened, so that nothing they remember of
  one run can be shown of another;
- a comparison is watched: no command is sent, and leaving it ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from console.app import ConsoleApp
from console.contest import Contest
from console.screens.base import RunScreen
from console.screens.chunks import ChunksScreen
from console.screens.compare import CompareScreen
from console.screens.live import LiveScreen
from console.screens.timeline import TimelineScreen


class CompareApp(ConsoleApp):
    """``ConsoleApp`` for a ``Contest``; it stays open until the user leaves."""

    HOME = "compare"

    def __init__(self, contest: Contest, *, refresh_hz: float = 10.0, ascii_only: bool = False) -> None:
        self.contest = contest
        self._compare: CompareScreen | None = None
        super().__init__(contest, refresh_hz=refresh_hz, ascii_only=ascii_only, exit_when_done=False)
        self.model = contest.lane.model

    def make_screens(self) -> Iterable[RunScreen]:
        yield from super().make_screens()
        self._compare = self._compare or CompareScreen(self.look, self.contest)
        yield self._compare

    @property
    def compare(self) -> CompareScreen:
        assert self._compare is not None
        return self._compare

    async def action_show_screen(self, name: str) -> None:
        if name != self.HOME and self.front is self._compare:
            await self._open(self.contest)
        await super().action_show_screen(name)

    async def _open(self, contest: Contest) -> None:
        """Have the other screens show the selected run."""
        if self.model is contest.lane.model:
            return
        self.model = contest.lane.model
        self.live, self.timeline, self.chunks = (
            LiveScreen(self.look),
            TimelineScreen(self.look),
            ChunksScreen(self.look),
        )
        fresh = {screen.NAME: screen for screen in self.make_screens()}
        for name, old in self.run_screens.items():
            if old is not fresh[name]:
                self.uninstall_screen(name)
                if old.is_attached:
                    await old.remove()
                self.install_screen(fresh[name], name)
        self.run_screens = fresh
