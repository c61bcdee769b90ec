"""What the widgets draw: pure functions from data to lines, and from the model to data."""

from __future__ import annotations

import itertools
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color, ColorSystem
from textual.strip import Strip

from console import partmap as states
from console.model import Model
from console.screens.live import map_lines_max, plan_screen
from console.summary import summarize
from console.theme import DARK, LIGHT, SYMBOLS, Look, Mark, Palette
from console.timeline import Span
from console.widgets import view
from console.widgets.event_list import draw_event, tail, time_text
from console.widgets.header import BarRow, Count, CountsRow, TitleRow, draw_bar, draw_counts, draw_title
from console.widgets.key_bar import Key, KeysRow, draw_keys, placed
from console.widgets.lines import clip, fit
from console.widgets.part_map import (
    PartMap,
    cell_mark,
    draw_cells,
    draw_halves,
    encode_cell,
    legend,
    plan_map,
)
from console.widgets.span_chart import SpanCells
from console.widgets.throughput import nice_ceiling, plot_rows, resample, smooth
from console.widgets.timeline import axis, cell_window, timeline_cells
from console.widgets.workers import WorkerRow, draw_head, draw_worker
from console.wording import EventLine
from farm.events import DrainStarted, JobPaused, Notice
from tests.console.story import Fault, Story, play, stories

COLOUR = Look(DARK)
PLAIN = Look(DARK, ascii_only=True, symbols=True)
LOOKS = [COLOUR, Look(LIGHT), Look(DARK, symbols=True), PLAIN]
STATES = (Mark.OPEN, Mark.CLAIMED, Mark.DUPLICATED, Mark.DONE, Mark.LAPSED)


def model_of(records: list, until: float = 1e9) -> Model:  # type: ignore[type-arg]
    model = Model()
    for record in records:
        if record.at <= until:
            model.fold(record)
    return model


def assert_fits(strip: Strip, width: int) -> None:
    assert strip.cell_length == width == cell_len(strip.text)


# --- colours and symbols ---------------------------------------------------------------------------------


def test_the_fills_are_those_of_the_design() -> None:
    fills = [COLOUR.fill(mark) for mark in STATES]
    assert fills == ["#3a3a3a", "#56b4e9", "#f0e442", "#0072b2", "#d55e00"]


def test_every_state_has_a_symbol_of_its_own() -> None:
    signs = [SYMBOLS[mark] for mark in (*STATES, Mark.FAILED, Mark.STALLED)]
    assert signs == [".", ">", "=", "#", "!", "x", "~"]


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
@pytest.mark.parametrize("palette", [DARK, LIGHT])
def test_states_stay_apart_in_fewer_colours(palette: Palette, system: ColorSystem) -> None:
    fills = [Color.parse(palette.fills[mark]).downgrade(system) for mark in (Mark.BLANK, *STATES)]
    assert len({(fill.number, fill.triplet) for fill in fills}) == len(fills)


def test_inks_can_be_read_on_their_ground() -> None:
    """Contrast of at least 4.5 : 1 (WCAG AA) for every ink and text, dark and light."""

    def luminance(color: str) -> float:
        channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for palette in (DARK, LIGHT):
        inks = [palette.text, palette.muted, *(palette.inks[mark] for mark in (*STATES, Mark.STALLED))]
        for ink in inks:
            low, high = sorted((luminance(ink), luminance(palette.background)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (palette.dark, ink)


def test_ascii_draws_ascii_alone() -> None:
    model = model_of(play(faults=[Fault("w2", 40, 30)]), until=72)
    cells = SpanCells()
    drawn = [
        draw_title(view.title_row(model, 72, readonly=True, ended=False), 120, PLAIN),
        draw_bar(view.bar_row(model, 72, PLAIN), 120, PLAIN),
        draw_counts(view.counts_row(model, 72), 120, PLAIN),
        draw_head(120, PLAIN),
        *(draw_event(line, 60, PLAIN) for line in list(model.events)[-20:]),
    ]
    for worker in model.workers.values():
        row = view.worker_row(
            model, worker, 72, selected=True, cells=cells.of(worker, view.last_minute(72, 60), 72)
        )
        drawn.append(draw_worker(row, 120, PLAIN))
    drawn.extend(
        draw_cells(bytes([encode_cell(m, 0.5)]), 20, plan_map(3, 60, 3, halves=False), PLAIN) for m in Mark
    )
    text = "".join(strip.text for strip in drawn) + legend(PLAIN).plain
    text += "".join(row.label + row.dots for row in view.plot(model, 72, 50, 10, PLAIN))
    assert text.isascii(), sorted({c for c in text if not c.isascii()})


# --- any width -------------------------------------------------------------------------------------------


@given(st.integers(0, 300), st.sampled_from(LOOKS), st.text(max_size=80))
def test_lines_have_exactly_the_width_asked_for(width: int, look: Look, name: str) -> None:
    name = view.safe(name)
    marks = bytes(range(9)) * 8
    assert_fits(
        draw_title(TitleRow(name, "LIVE", Mark.CLAIMED, ("policy x", name), "t 00:01"), width, look), width
    )
    assert_fits(draw_bar(BarRow(0.5, 0.13, 0.07, "50.0%", ("ETA " + name, "ETA")), width, look), width)
    assert_fits(
        draw_counts(CountsRow((Count(name, "n", "5", Mark.DONE), Count("b", "b", name))), width, look), width
    )
    worker = WorkerRow(name, name, Mark.FAILED, "c1#1", "1/2", "30.0", "0", "3", True, marks)
    assert_fits(draw_worker(worker, width, look), width)
    assert_fits(draw_head(width, look), width)
    assert_fits(draw_event(EventLine(5.0, name, "lapse", name), width, look), width)
    assert_fits(draw_keys(KeysRow((Key("q", "quit", "q"), Key("x", name, "x", False))), width, look), width)
    cells = bytes(encode_cell(mark, 0.5) for mark in Mark)
    assert_fits(draw_cells(cells, width, plan_map(9, 80, 2, halves=False), look), width)
    assert_fits(draw_halves(cells, cells[:3], width, look), width)


@given(st.text(max_size=60), st.integers(0, 40))
def test_clip_and_fit_keep_to_their_width(text: str, width: int) -> None:
    text = view.safe(text)
    assert cell_len(clip(text, width)) <= width
    assert cell_len(fit(text, width)) == width
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcdef", 5, "...") == "ab..."


# --- header ----------------------------------------------------------------------------------------------


def test_the_bar_shows_credited_rendered_and_duplicated_apart() -> None:
    row = BarRow(0.5, 0.2, 0.1, "50.0%", ())
    assert draw_bar(row, 31, PLAIN).text == " [##########>>>>==....]  50.0% "
    fills = [
        segment.style.color.name for segment in draw_bar(row, 31, COLOUR) if segment.text.startswith("▆")
    ]  # type: ignore[union-attr]
    order = [fill for fill, _ in itertools.groupby(fills) if fill in map(COLOUR.fill, STATES)]
    assert order == [COLOUR.fill(mark) for mark in (Mark.DONE, Mark.CLAIMED, Mark.DUPLICATED, Mark.OPEN)]


def test_the_bar_is_full_only_when_all_is_credited() -> None:
    almost = draw_bar(BarRow(0.9999, 0.0, 0.0, "99.9%", ()), 60, PLAIN).text
    assert ".]" in almost
    assert ".]" not in draw_bar(BarRow(1.0, 0.0, 0.0, "100.0%", ()), 60, PLAIN).text


def test_an_unknown_end_is_said_to_be_unknown() -> None:
    model = model_of(Story().records)
    assert view.eta_remarks(model, 5.0, COLOUR)[0] == "ETA unknown"


def test_the_time_left_is_a_range() -> None:
    model = model_of(play(), until=60)
    remarks = view.eta_remarks(model, 60, COLOUR)
    assert remarks[0].startswith("ETA ") and "–" in remarks[0] and ")   in all " in remarks[0]
    assert remarks[2].endswith(")") and [len(remark) for remark in remarks] == sorted(map(len, remarks))[::-1]
    assert remarks[3] == remarks[0].partition(" (")[0]


def test_narrow_screens_shorten_names_before_they_drop_counts() -> None:
    counts = view.counts_row(model_of(play(), until=60), 60)
    assert "credited" in draw_counts(counts, 120, PLAIN).text
    narrow = draw_counts(counts, 80, PLAIN).text
    assert "done" in narrow and "lap" in narrow and "waste" in narrow and "fps" in narrow


@pytest.mark.parametrize(
    ("phase", "words"),
    [("probe", "index"), ("measure", "speed"), ("stitch", "joining"), ("verify", "verifying")],
)
def test_phases_around_the_work_have_a_bar_of_their_own(phase: str, words: str) -> None:
    story = Story()
    story.phase(phase)
    row = view.bar_row(model_of(story.records), 1.0, COLOUR)
    assert words in row.remarks[0] and row.percent == "0.0%"


def test_the_badge_says_what_the_run_does() -> None:
    story = Story()
    story.phase("work")

    def badge(ended: bool = False) -> str:
        return view.title_row(model_of(story.records), 1.0, readonly=False, ended=ended).badge

    assert badge() == "LIVE"
    story.add(JobPaused())
    assert badge() == "PAUSED"
    story.add(DrainStarted(reason="asked"))
    assert badge() == "DRAINING"
    assert badge(ended=True) == "ENDED"
    story.finish()
    assert badge() == "DONE"


# --- part map --------------------------------------------------------------------------------------------


@given(
    st.integers(1, 5000),
    st.integers(1, 140),
    st.integers(1, 12),
    st.booleans(),
)
def test_every_part_lies_in_exactly_one_cell_of_the_map(
    parts: int, width: int, lines: int, halves: bool
) -> None:
    layout = plan_map(parts, width, lines, halves=halves)
    assert layout.lines <= lines
    assert layout.columns * layout.tile + (layout.columns - 1) * layout.gap <= width
    shown = [part for cell in range(layout.cells) for part in range(*layout.parts_of(cell))]
    assert shown == list(range(parts))
    for cell in {0, layout.cells // 2, layout.cells - 1}:
        assert layout.cells_of(range(*layout.parts_of(cell))) == {cell}


def test_few_parts_are_tiles_and_many_are_half_blocks() -> None:
    assert plan_map(12, 118, 6, halves=True).tile == 12
    assert plan_map(100, 118, 6, halves=True).gap == 1
    assert plan_map(700, 118, 6, halves=True).halves is False
    assert plan_map(900, 118, 6, halves=True).halves is True
    assert plan_map(100_000, 118, 6, halves=True).cells == 118 * 12
    assert plan_map(100_000, 118, 6, halves=False).cells == 118 * 6
    assert plan_map(0, 118, 6, halves=True).lines == 0


def test_a_cell_of_several_parts_shows_what_calls_for_attention() -> None:
    def mark(*part_states: int) -> Mark:
        return cell_mark(bytes(part_states), lambda part: 0.5, 0)[0]

    assert mark(states.CREDITED, states.CREDITED) is Mark.DONE
    assert mark(states.OPEN, states.OPEN) is Mark.OPEN
    assert mark(states.CREDITED, states.OPEN) is Mark.DONE
    assert mark(states.CREDITED, states.CLAIMED, states.OPEN) is Mark.CLAIMED
    assert mark(states.CLAIMED, states.DUPLICATE) is Mark.DUPLICATED
    assert mark(states.DUPLICATE, states.LAPSED) is Mark.LAPSED
    assert mark(states.LAPSED, states.SET_ASIDE) is Mark.FAILED
    assert cell_mark(bytes([states.CREDITED, states.OPEN]), lambda part: 0.0, 0)[1] == 0.5
    assert cell_mark(bytes([states.CLAIMED]), lambda part: 0.25, 7) == (Mark.CLAIMED, 0.25)


def test_a_claimed_tile_fills_as_its_frames_are_encoded() -> None:
    layout = plan_map(3, 60, 2, halves=False)
    row = bytes([encode_cell(Mark.DONE, 1.0), encode_cell(Mark.CLAIMED, 0.5), encode_cell(Mark.OPEN, 1.0)])
    assert draw_cells(row, 39, layout, PLAIN).text.split() == ["#" * 12, ">" * 6 + "-" * 6, "." * 12]


@given(stories(), st.integers(1, 60))
def test_updating_what_changed_gives_the_same_map_as_drawing_all(records: list, width: int) -> None:  # type: ignore[type-arg]
    model = Model()
    layout = None
    widget = PartMap(COLOUR)
    for record in records:
        model.fold(record)
        if layout is None:
            layout = plan_map(model.parts, width, 3, halves=True)
            widget.lay_out(layout)
        widget.update_parts(model.take_dirty(), model.part_state, model.shade)
    assert layout is not None
    fresh = PartMap(COLOUR)
    fresh.lay_out(layout)
    fresh.update_parts(range(model.parts), model.part_state, model.shade)
    assert list(widget.rows) == list(fresh.rows)


# --- timeline --------------------------------------------------------------------------------------------


def marks_of(cells: bytes) -> list[Mark]:
    return [Mark(cell & 0x3F) for cell in cells]


def test_running_spans_are_drawn_up_to_now() -> None:
    spans = [Span("claim", 0.0, 4.0, "c0#1@e1"), Span("claim", 4.0, None, "c1#1@e1")]
    cells = marks_of(timeline_cells(spans, 0, 10, 1.0, 7.5, 0.0))
    assert cells == [Mark.DONE] * 4 + [Mark.CLAIMED] * 4 + [Mark.BLANK] * 2
    later = marks_of(timeline_cells(spans, 0, 10, 1.0, 9.5, 0.0))
    assert later == [Mark.DONE] * 4 + [Mark.CLAIMED] * 6


def test_a_refusal_is_seen_although_it_takes_no_time() -> None:
    spans = [
        Span("claim", 0.0, 5.0, "c0#1@e1"),
        Span("refused", 5.0, 5.0, "c0#1@e1"),
        Span("idle", 5.0, 5.2),
        Span("claim", 5.2, None, "c3#1@e1"),
    ]
    cells = marks_of(timeline_cells(spans, 0, 10, 1.0, 9.9, 0.0))
    assert cells[5] is Mark.FAILED and cells[6:] == [Mark.CLAIMED] * 4


def test_stalls_and_lapses_are_told_apart_from_work() -> None:
    spans = [Span("claim", 0.0, 3.0), Span("lapsed", 3.0, 6.0), Span("stalled", 6.0, None)]
    cells = marks_of(timeline_cells(spans, 0, 9, 1.0, 8.5, 0.0))
    assert cells == [Mark.DONE] * 3 + [Mark.LAPSED] * 3 + [Mark.STALLED] * 3


@given(st.floats(0, 1000), st.integers(1, 100), st.floats(0, 5))
def test_cells_do_not_move_while_the_window_does(now: float, width: int, ahead: float) -> None:
    """A span keeps its cells of the time grid; a later window only shows other ones."""
    spans = [Span("claim", 3.0, 17.0, "a"), Span("idle", 17.0, 21.0), Span("duplicate", 21.0, 500.0, "b")]
    first, seconds = cell_window(now + 600, width, 60.0)
    later, _ = cell_window(now + 600 + ahead, width, 60.0)
    before = timeline_cells(spans, first, width, seconds, now + 600, 0.0)
    after = timeline_cells(spans, later, width, seconds, now + 600 + ahead, 0.0)
    shift = later - first
    assert before[shift:] == after[: max(width - shift, 0)]


def test_the_overhead_of_a_claim_is_drawn_as_waiting() -> None:
    row = WorkerRow("w1", "rendering", None, "", "", "", "", "", False, b"")
    spans = [Span("claim", 0.0, 8.0, "a"), Span("claim", 8.0, None, "b")]
    cells = timeline_cells(spans, 0, 12, 1.0, 11.9, 2.0)
    drawn = draw_worker(WorkerRow(*[getattr(row, f) for f in row.__slots__[:-1]], cells), 200, PLAIN)  # type: ignore[attr-defined]
    assert drawn.text.strip().endswith("|-######|->>")


def test_unchanged_timelines_are_not_computed_again() -> None:
    model = model_of(play(), until=30.0)
    worker = model.workers["w1"]
    cells = SpanCells()
    first = cells.of(worker, view.last_minute(30.1, 60), 30.1)
    assert cells.of(worker, view.last_minute(30.2, 60), 30.2) is first
    assert cells.of(worker, view.last_minute(33.0, 60), 33.0) != first


def test_the_axis_ends_with_now() -> None:
    assert axis(60, 60).startswith("-60s") and axis(60, 60).endswith("now") and "-30s" in axis(60, 60)
    assert [len(axis(width, 60)) for width in (0, 1, 5, 30)] == [0, 1, 5, 30]


# --- throughput ------------------------------------------------------------------------------------------


def test_the_curve_is_a_moving_mean() -> None:
    assert smooth([0, 0, 0, 12, 0, 0, 0], window=4) == [3.0, 3.0, 3.0, 3.0]
    assert resample([1.0, 3.0, 5.0, 7.0], 2) == [2.0, 6.0]
    assert resample([1.0, 3.0], 4) == [1.0, 1.0, 3.0, 3.0]
    assert [nice_ceiling(value) for value in (0, 0.7, 5, 61, 212)] == [1.0, 0.8, 5.0, 80.0, 240.0]


def test_the_plot_has_its_scale_and_fills_its_height() -> None:
    rows = plot_rows([50.0] * 60 + [100.0] * 60, 31, 6, ascii_only=False)
    assert len(rows) == 6 and rows[0].label.strip() == "100" and rows[-1].dots.endswith("now")
    assert rows[0].dots == " " * 12 + "⣿" * 12
    assert plot_rows([1.0] * 10, 8, 6, ascii_only=False) == ()
    assert all(row.dots.isascii() for row in plot_rows([1.0, 9.0] * 40, 31, 6, ascii_only=True))


# --- events, workers, keys -------------------------------------------------------------------------------


def test_the_tail_of_the_ring_can_be_held_while_the_log_goes_on() -> None:
    lines = [EventLine(float(n), "w1", "credit", str(n)) for n in range(30)]
    ring = deque(lines, maxlen=10)
    assert [line.text for line in tail(ring, 30, 30, 3)] == ["29", "28", "27"]
    assert [line.text for line in tail(ring, 30, 25, 3)] == ["24", "23", "22"]
    assert [line.text for line in tail(ring, 30, 22, 5)] == ["21", "20"]
    assert tail(ring, 30, 5, 5) == [] and tail(ring, 30, 30, 0) == []


def test_cut_lists_say_how_much_is_kept() -> None:
    model = Model()
    story = Story()
    for _ in range(10_050):
        story.add(Notice(level="info", text="still here"))
    for record in story.records:
        model.fold(record)
    assert view.events_title(model, None, 70)[1] == f"10,000 of {model.events_total:,} kept"
    window = view.window_of(500, 10, 0, 0)
    assert window == view.Window(0, 10, 0)


@given(st.integers(0, 500), st.integers(0, 40), st.integers(-5, 600), st.integers(0, 600))
def test_the_selected_worker_is_always_in_view(total: int, rows: int, selected: int, start: int) -> None:
    window = view.window_of(total, rows, selected, start)
    assert 0 <= window.start <= window.stop <= total and window.stop - window.start == min(rows, total)
    if total and rows:
        assert window.selected is not None and window.start <= window.selected < window.stop


def test_workers_are_sorted_as_people_count() -> None:
    assert sorted(["w10", "w2", "gpu", "w1", "node-3"], key=view.natural_key) == [
        "gpu",
        "node-3",
        "w1",
        "w2",
        "w10",
    ]


def test_a_silent_worker_shows_before_its_lease_runs_out() -> None:
    story = Story(480, 48)
    story.join("w1")
    token = story.grant("w1", 0, 4)
    story.at(2.0).beat(token, 20)
    model = model_of(story.records)
    worker = model.workers["w1"]
    assert view.worker_state(model, worker, 3.0) == ("rendering", Mark.CLAIMED)
    assert view.worker_state(model, worker, 14.4) == ("silent 12s", Mark.LAPSED)


def test_names_of_any_alphabet_keep_columns_aligned() -> None:
    """RG53: wide characters, joined emoji, marks and controls in names."""
    for name in ("工作者工作者工作者", "👩‍👩‍👧‍👦‍family", "e\u0301\u0301te", "w\x1b[2J1", "x" * 300):
        row = WorkerRow(
            view.safe(name), "rendering", Mark.CLAIMED, "c1#1", "1/96", "30.0", "0", "0", False, b""
        )
        text = draw_worker(row, 120, COLOUR).text
        assert "\x1b" not in text
        before = text[: text.index("rendering")]
        assert cell_len(before) == 9


def test_times_of_events_stay_short() -> None:
    assert time_text(192.45, tenths=True) == "03:12.4"
    assert time_text(192.45, tenths=False) == "03:12"
    assert time_text(3 * 3600 + 62, tenths=True) == "3:01:02"


def test_the_last_row_holds_eight_keys_at_80_columns() -> None:
    keys = tuple(
        Key(key, label, "a")
        for key, label in (
            ("q", "quit"), ("?", "help"), ("space", "pause"), ("enter", "detail"), ("s", "unstall"),
            ("x", "kill"), ("f", "hold"), ("m", "symbols"), ("d", "light"),
        )
    )  # fmt: skip
    assert len(placed(keys, 80)) >= 8
    assert [key.key for key, _, _ in placed(keys, 40)][:2] == ["q", "?"]


# --- the plan of the screen ------------------------------------------------------------------------------


@given(st.integers(1, 320), st.integers(1, 100), st.integers(0, 600), st.integers(0, 12))
def test_the_rows_of_a_plan_add_up(width: int, height: int, workers: int, wanted: int) -> None:
    plan = plan_screen(width, height, workers, min(wanted, map_lines_max(height)))
    frame = 2 if plan.framed else 0
    used = plan.head + 1 + plan.workers + plan.column_names + frame
    used += plan.map + frame if plan.map else 0
    used += plan.bottom + frame if plan.bottom else 0
    assert used <= max(height, 2 + plan.workers + frame) and plan.workers >= 0
    if height >= 10 and workers:
        assert plan.workers >= 1 and used <= height


def test_the_plans_of_the_three_sizes() -> None:
    big = plan_screen(120, 40, 8, 6)
    assert (big.map, big.workers, big.bottom, big.plot_width, big.column_names) == (6, 8, 15, 48, True)
    small = plan_screen(80, 24, 8, 3)
    assert (small.map, small.workers, small.bottom, small.plot_width) == (3, 8, 3, 0)
    tiny = plan_screen(40, 10, 4, 0)
    assert (tiny.framed, tiny.map, tiny.workers, tiny.bottom) == (False, 0, 4, 2)


def test_the_bound_stands_beside_the_time_the_whole_work_takes() -> None:
    model = model_of(play(), until=60)
    summary = summarize(model_of(play()))
    assert summary.lower_bound_seconds is not None
    bound = round(summary.lower_bound_seconds)
    assert view.eta_remarks(model, 60, COLOUR)[0].endswith(f"bound 1:{bound - 60:02d}")
    ended = view.bar_row(model_of(play()), 90, COLOUR)
    assert ended.remarks[0].endswith(f", bound 1:{bound - 60:02d}")


def test_where_the_plot_has_no_room_the_trend_is_in_the_head() -> None:
    model = model_of(play(), until=60)
    trend = view.trend(model, 60, COLOUR)
    assert len(trend) == view.TREND_CELLS and trend.strip()
    assert view.trend(model, 60, PLAIN).isascii()
    row = draw_counts(view.counts_row(model, 60, trend), 106, PLAIN).text
    assert row.rstrip().endswith(trend.rstrip()) and len(row) == 106
    assert trend not in draw_counts(view.counts_row(model, 60, trend), 40, PLAIN).text
