"""The Compare screen: runs or policies side by side on one time axis.

Rules of this file:
- the screen holds what a person chose (the run, the part of the axis); what the runs do is the contest's;
- while everything is at work the axis follows the present, until somebody scrolls or zooms away from it;
- heights are planned for the size at hand, from 300x80 down to 40x10: what matters least goes first.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.strip import Strip

from console.contest import Contest
from console.screens.base import HelpKeys, RunScreen, as_panel
from console.theme import Look
from console.widgets import compare_view as view
from console.widgets.bands import Bands, HeadRow, gutter_of
from console.widgets.key_bar import Key
from console.widgets.lines import Line, LineWidget, clip
from console.widgets.standings import Standings

ZOOM = 0.5
SCROLL = 0.25  #: of what is in view


@dataclass(frozen=True, slots=True)
class WordsRow:
    text: str
    strong: bool


class Words(LineWidget):
    """Rows of ``WordsRow``: the verdict."""

    def draw(self, row: Hashable, width: int) -> Strip:
        assert isinstance(row, WordsRow)
        style = self.look.strong if row.strong else self.look.muted
        return (
            Line(self.look.ground)
            .add(" " + clip(row.text, width - 2, self.look.ellipsis), style)
            .strip(width)
        )


class CompareScreen(RunScreen):
    """Shows a contest; ``enter`` opens the selected run on the other screens."""

    NAME = "compare"
    AUTO_FOCUS = "#bands"
    HELP_KEYS: ClassVar[HelpKeys] = (
        ("j k ↓ ↑", "select a run (g G: first, last)"),
        ("enter", "open the selected run; 4 or esc comes back"),
        ("h l ← →", "scroll the time axis"),
        ("+ - 0", "zoom in, out, the whole"),
        ("f", "follow the present"),
        ("R", "all runs from their start again"),
        ("n N", "next, previous comparison"),
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "select(1)", "next run"),
        Binding("k,up", "select(-1)", "previous run"),
        Binding("g,home", "select(-99)", "first run"),
        Binding("G,end", "select(99)", "last run"),
        Binding("enter", "open", "open the run"),
        Binding("l,right", "scroll(1)", "later"),
        Binding("h,left", "scroll(-1)", "earlier"),
        Binding("plus,equals_sign", "zoom_axis(1)", "time axis: zoom in"),
        Binding("minus", "zoom_axis(-1)", "time axis: zoom out"),
        Binding("0", "whole", "time axis: the whole"),
        Binding("f", "follow", "time axis: follow the present"),
        Binding("R", "restart", "all runs from their start"),
        Binding("n", "heat(1)", "next comparison"),
        Binding("N", "heat(-1)", "previous comparison"),
    ]

    DEFAULT_CSS = """
    CompareScreen #bands { height: 1fr; }
    """

    def __init__(self, look: Look, contest: Contest) -> None:
        super().__init__(look, id="compare")
        self.contest = contest
        self.words = Words(look, id="words")
        self.standings = Standings(look, id="standings")
        self.bands = Bands(look, id="bands")
        self.view = view.View()
        self.follows = True
        self._cells = view.BandCells()
        self._plan: tuple[view.Plan, LineWidget | None] | None = None

    def compose_body(self) -> ComposeResult:
        yield self.words
        yield as_panel(self.standings)
        yield as_panel(self.bands)

    # --- what is shown -----------------------------------------------------------------------------------

    def update_view(self, now: float, turn: bool | None = None) -> None:
        width, height = self.size
        if not width or not height:
            return
        plan = self._arrange(width, height)
        contest = self.contest
        figures = view.figures_of(contest)
        found = view.verdict_of(contest, figures)
        self.head.show((view.title_row(contest),))
        self.words.show([WordsRow(*line) for line in view.word_lines(found, width, plan.words)])
        if plan.standings:
            rows = view.standing_rows(contest, figures, found, plan.standings, plan.titles)
            self.standings.show(rows)
            shown = len(rows) - plan.titles
            self.standings.title(
                "runs" + (f"  ({shown} of {len(figures)} shown)" if shown < len(figures) else "")
            )
        if plan.bands:
            if self.follows:
                self.view = self.view.following(contest.at)
            axis = self.view.axis(contest.end_at, self._axis_width)
            band_rows = view.band_rows(contest, figures, found, axis, self.bands.size.height, self._cells)
            self.bands.show(band_rows)
            shown = view.lanes_in(band_rows)
            self.bands.title(*view.bands_title(contest, axis, shown))
        self.update_keys()

    @property
    def _axis_width(self) -> int:
        width = self.bands.size.width
        return max(width - gutter_of(width) - 1, 0)

    def _arrange(self, width: int, height: int) -> view.Plan:
        """Plan the rows anew when the size, the runs or the panel in front changed."""
        plan = view.plan_compare(width, height, len(self.contest.lanes))
        if self.zoomed is not None:
            plan = view.plan_zoomed(plan, height, self.zoomed is self.bands, len(self.contest.lanes))
        if (plan, self.zoomed) != self._plan:
            self._plan = plan, self.zoomed
            frame = 2 if plan.framed else 0
            self.set_class(plan.framed, "framed")
            for widget, rows, around in (
                (self.words, plan.words, 0),
                (self.standings, plan.standings and plan.standings + plan.titles, frame),
            ):
                widget.display = rows > 0
                widget.styles.height = rows + around
            self.bands.display = plan.bands > 0
        return plan

    def own_keys(self) -> tuple[Key, ...]:
        return (
            Key("R", "restart", "restart"),
            Key("enter", "open", "open"),
            Key("+-", "zoom axis", "zoom_axis(1)"),
            Key("[]", "speed", "app.speed(2)", not self.contest.over),
            *((Key("n", "next", "heat(1)", self._has_heat(1)),) if self.contest.heats > 1 else ()),
            Key(".", "step", "app.step", not self.contest.over),
        )

    def copied(self) -> str | None:
        return self.contest.lane.name

    # --- keys --------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "heat":
            steps = parameters[0]
            assert isinstance(steps, int)
            return True if self._has_heat(steps) else None
        return super().check_action(action, parameters)

    def _has_heat(self, steps: int) -> bool:
        return 0 <= self.contest.number + steps < self.contest.heats

    def action_select(self, steps: int) -> None:
        self.contest.select(self.contest.selected + steps)
        self.console_app.repaint()

    async def action_open(self) -> None:
        await self.console_app.action_show_screen("live")

    def action_scroll(self, direction: int) -> None:
        self.follows = False
        self.view = self.view.scrolled(SCROLL * direction, self.contest.end_at)
        self.console_app.repaint()

    def action_zoom_axis(self, direction: int) -> None:
        contest = self.contest
        around = self.view.start + (self.view.seconds or contest.end_at) / 2 if contest.over else contest.at
        factor = ZOOM if direction > 0 else 1 / ZOOM
        self.view = self.view.zoomed(factor, contest.end_at, self._axis_width, around)
        self.console_app.repaint()

    def action_whole(self) -> None:
        self.view, self.follows = view.View(), True
        self.console_app.repaint()

    def action_follow(self) -> None:
        self.follows = True
        self.console_app.repaint()

    def action_restart(self) -> None:
        self.contest.restart()
        self._begin_again("All runs start again.")

    def action_heat(self, steps: int) -> None:
        if self.contest.change_heat(steps):
            self.view = view.View()
            self._begin_again(f"Comparison {self.contest.number + 1} of {self.contest.heats}.")

    def _begin_again(self, words: str) -> None:
        self._cells.clear()
        self.follows = True
        self.console_app.say(words)
        self.console_app.tick()

    # --- mouse -------------------------------------------------------------------------------------------

    def on_standings_picked(self, message: Standings.Picked) -> None:
        self._pick(self.standings.rows[message.index])

    def on_bands_picked(self, message: Bands.Picked) -> None:
        above = self.bands.rows[: message.index + 1]
        self._pick(next((row for row in reversed(above) if isinstance(row, HeadRow)), None))

    def _pick(self, row: Hashable) -> None:
        number = getattr(row, "number", None)
        if isinstance(number, int):
            self.contest.select(number - 1)
            self.console_app.repaint()

    def on_bands_scrolled(self, message: Bands.Scrolled) -> None:
        self.action_scroll(message.steps)
