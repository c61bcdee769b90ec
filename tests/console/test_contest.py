"""Runs side by side on one clock: in step, to their ends, and who wins in words."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console import cli
from console.contest import RUNS_MAX, Contest, Figures, Heat
from console.theme import Mark
from console.trials import Setting, Trial, parse_schedule, run_trial
from console.widgets.bands import STEPS, Axis, ruler, share_rows, stack_rows
from console.widgets.compare_view import View, places_of, plan_compare, plan_zoomed
from console.winner import Run, verdict
from farm.commands import Pause
from farm.errors import UsageError
from farm.journal import RunCatalogue, write_recording
from tests.console.contests import POLICIES, contest_of, heats, play_to, recorded
from tests.console.story import Fault, play

LOG = play(faults=[Fault("w2", 40, 30)])
OTHER = play((30, 30, 24, 12), faults=[])


def test_policies_play_in_step_and_end_with_the_figures_of_their_trials() -> None:
    contest, clock = contest_of(heats(POLICIES))
    for moment in (3.0, 10.0, 25.0):
        play_to(contest, clock, moment)
        for lane in contest.lanes:
            assert lane.model.at <= moment + 1e-9
            assert lane.next_at is None or lane.next_at > moment, "one run lags behind the others"
    play_to(contest, clock, 1e6)
    assert contest.over and contest.at == contest.over_at >= max(
        lane.tape.end_at or 0 for lane in contest.lanes
    )
    for lane, policy in zip(contest.lanes, POLICIES, strict=True):
        score = run_trial(Trial(parse_schedule(policy), "10,10,3", setting=Setting(frames=960, part=48)))
        figures = lane.figures(contest.at)
        assert (figures.seconds, figures.ratio) == (score.seconds, score.ratio)
        assert lane.model.credited_frames == figures.frames == 960
        assert lane.model.granted == figures.claims


def test_a_run_that_ended_stays_at_its_end_while_the_others_go_on() -> None:
    contest, clock = contest_of(heats(POLICIES[:2]))
    first = next(lane for lane in contest.lanes if lane.name == "fair+split")
    assert first.tape.end_at is not None
    play_to(contest, clock, first.tape.end_at + 5)
    assert first.ended_at is not None and not contest.over
    digest = first.model.digest()
    play_to(contest, clock, 1e6)
    assert first.model.digest() == digest
    assert first.time(contest.at) == first.ended_at < contest.at


def test_the_same_again_after_a_restart() -> None:
    contest, clock = contest_of([Heat("runs", (recorded("a", LOG), recorded("b", OTHER))), *heats()])
    for _ in range(contest.heats):
        play_to(contest, clock, 1e6)
        ended = [(lane.ended_at, lane.model.digest()) for lane in contest.lanes]
        contest.restart()
        assert contest.at == 0 and not contest.over
        play_to(contest, clock, 1e6)
        assert [(lane.ended_at, lane.model.digest()) for lane in contest.lanes] == ended
        contest.change_heat(1)


def test_steps_go_from_event_to_event_over_all_runs() -> None:
    contest, _ = contest_of(heats())
    contest.take()
    times = []
    for _ in range(40):
        before = sum(lane.model.records for lane in contest.lanes)
        contest.step()
        assert sum(lane.model.records for lane in contest.lanes) > before
        times.append(contest.at)
    assert all(a <= b for a, b in pairwise(times)) and contest.halted
    assert {lane.model.records > 10 for lane in contest.lanes} == {True}


def test_too_much_at_once_holds_the_clock_back_and_nobody_runs_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.contest.STEPS_MAX", 7)
    contest, clock = contest_of(heats())
    while not contest.over:
        clock.time += 1e6
        contest.take()
        upcoming = [lane.next_at for lane in contest.lanes if lane.next_at is not None]
        assert not upcoming or min(upcoming) >= max(lane.model.at for lane in contest.lanes) - 1e-9
        assert contest.at <= (min(upcoming) if upcoming else contest.over_at) + 1e-9


def test_a_contest_is_a_source_that_takes_no_commands() -> None:
    contest, clock = contest_of(heats())
    assert contest.world == "recording" and not contest.ended
    assert "only watched" in (contest.send(Pause()) or "")
    contest.halt(True)
    clock.time += 50
    contest.take()
    assert contest.at == 0
    contest.halt(False)
    contest.set_rate(4)
    clock.time += 5
    contest.take()
    assert contest.at == 20 and contest.now() == 20


def test_recorded_runs_are_aligned_at_their_first_grant() -> None:
    late = [
        record.__class__(record.seq, record.at + (0 if record.seq < 3 else 30), record.event)
        for record in LOG
    ]
    tapes = recorded("early", LOG), recorded("late", late)
    assert tapes[0].end_at == pytest.approx(tapes[1].end_at)
    contest, clock = contest_of([Heat("two", tapes)])
    play_to(contest, clock, 20)
    assert contest.lanes[0].model.credited_frames == contest.lanes[1].model.credited_frames > 0


def test_a_run_without_any_work_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        recorded("empty", LOG[:2])


def test_of_many_policies_the_best_eight_are_taken_and_the_rest_is_counted() -> None:
    many = (
        *POLICIES,
        "fixed,96+none",
        "fixed,240+none",
        "tss+none",
        "fac2+none",
        "gss,min=12+none",
        "static+split",
    )
    (heat,) = heats(many)
    assert (len(heat.tapes), heat.left_out) == (RUNS_MAX, 2)
    named = [tape.name for tape in heat.tapes]
    assert named == [name for name in many if name in named], "the order in which they were named"
    assert "fair+split" in named


def test_one_policy_alone_is_compared_over_its_worlds() -> None:
    (heat,) = heats(POLICIES[:1], ("10,10,3", "10,10"))
    assert [tape.name for tape in heat.tapes] == ["10,10,3 base", "10,10 base"] and heat.title == "fair+split"
    assert [heat.title for heat in heats(POLICIES[:2], ("10,10,3",), conditions=("base", "stall"))] == [
        "fleet 10,10,3",
        "fleet 10,10,3, stall",
    ]


# --- in words --------------------------------------------------------------------------------------------


def figures(seconds: float | None, *, frames: int = 1000, done: int | None = None, **more: float) -> Figures:
    values: dict[str, float] = {
        "wasted_frames": 0,
        "claims": 10,
        "duplicates": 0,
        "splits": 0,
        "lapses": 0,
        "idle_seconds": 0.0,
    }
    bound = more.pop("bound", 50.0)
    credited = frames if done is None else done
    return Figures(
        frames=frames,
        credited_frames=credited,
        seconds=seconds,
        bound_seconds=bound,
        **(values | more),  # type: ignore[arg-type]
    )


def test_the_winner_and_what_made_the_difference() -> None:
    found = verdict(
        [
            Run("slow", figures(100.0, idle_seconds=40.0, lapses=2, wasted_frames=20), True),
            Run("fast", figures(80.0, idle_seconds=2.0), True),
            Run("worst", figures(160.0), True),
        ]
    )
    assert found.winner == 1
    assert found.headline == "fast is first: 80.0 s, 1.600 x the bound, 20.0 s or 20.0 % ahead of slow."
    assert found.reasons == (
        "slow: 2 lapses against 0, 38.0 s more idle time, 2.0 % wasted against 0.0 %. "
        "worst is last, 2.00 times as long."
    )


@pytest.mark.parametrize(
    ("runs", "winner", "words"),
    [
        ([("a", figures(80.0)), ("b", figures(80.2))], 0, "a and b finish together, at 80.0 s"),
        ([("a", figures(None, done=900)), ("b", figures(90.0))], 1, "Only b finished. Not finished: a."),
        ([("a", figures(None)), ("b", figures(None))], None, "None of them finished."),
        (
            [("a", figures(80.0, bound=40.0)), ("b", figures(90.0, bound=80.0))],
            1,
            "b is first: 1.125 x its lower bound (90.0 s), 43.8 % ahead of a. The runs are of different work",
        ),
        ([("a", figures(70.0))], 0, "a finishes in 70.0 s"),
    ],
)
def test_verdicts(runs: list[tuple[str, Figures]], winner: int | None, words: str) -> None:
    found = verdict([Run(name, each, True) for name, each in runs])
    assert found.winner == winner
    assert words in f"{found.headline} {found.reasons}"


def test_the_verdict_while_they_run() -> None:
    ahead = [Run("a", figures(None, done=500), False), Run("b", figures(None, done=300), False)]
    assert verdict(ahead).headline == "a is ahead: 50.0 % of the frames, 20.0 points before b."
    level = [ahead[0], ahead[0]]
    assert verdict(level).headline == "Level so far." and verdict(level).winner is None
    one = [Run("a", figures(80.0), True), Run("b", figures(None, done=300), False)]
    assert verdict(one).headline == "a is first: 80.0 s, 1.600 x the bound; one still at work."


def test_places_are_by_ratio_where_the_jobs_differ() -> None:
    assert places_of([figures(90.0), figures(80.0), figures(None), figures(80.0)]) == [3, 1, 0, 1]
    assert places_of([figures(90.0, frames=2000, bound=80.0), figures(80.0, bound=40.0)]) == [1, 2]


# --- the axis and the bands ------------------------------------------------------------------------------


def test_zooming_keeps_the_moment_in_place_and_comes_back_to_the_whole() -> None:
    whole = View()
    assert whole.axis(100, 102).cell_seconds == pytest.approx(1.0)
    near = whole.zoomed(0.5, 100, 102, 40)
    axis = near.axis(100, 102)
    assert axis.cell_seconds == pytest.approx(0.5) and axis.start <= 40 < axis.stop
    assert near.zoomed(2, 100, 102, 40) == View()
    assert near.scrolled(10, 100).axis(100, 102).stop <= 102.5
    assert near.scrolled(-10, 100).start == 0
    assert whole.scrolled(1, 100) == whole
    assert near.following(95).axis(100, 102).cell(95) is not None


@given(st.floats(0.01, 1e6), st.integers(0, 300), st.lists(st.sampled_from([0.5, 2.0]), max_size=40))
def test_no_zoom_is_out_of_bounds(end: float, width: int, factors: list[float]) -> None:
    view = View()
    for factor in factors:
        view = view.zoomed(factor, end, width, end / 3).scrolled(0.25, end)
        axis = view.axis(end, width)
        assert axis.cell_seconds > 0 and axis.first >= 0
        assert len(ruler(axis)) == width


def test_the_ruler_marks_the_cell_of_each_moment() -> None:
    axis = Axis(0, 1.0, 60)
    labels = ruler(axis)
    assert (
        labels.startswith("'0 s") and labels.index("'15 s") == axis.cell(15) and labels.index("'30 s") == 30
    )


@given(st.lists(st.integers(0, 600), min_size=1, max_size=8), st.integers(0, 90))
def test_rows_are_shared_evenly_and_never_exceeded(workers: list[int], rows: int) -> None:
    shares = share_rows(workers, rows)
    assert sum(shares) <= rows
    if rows >= len(workers):
        assert min(shares) >= 1
    assert all(share <= 1 + max(count, 1) for share, count in zip(shares, workers, strict=True))


@given(
    st.lists(st.lists(st.sampled_from(list(Mark)), min_size=4, max_size=4), min_size=1, max_size=30),
    st.integers(1, 6),
)
def test_a_condensed_band_hides_no_trouble_and_no_work(fleet: list[list[Mark]], rows: int) -> None:
    stacked = stack_rows([bytes(column) for column in fleet], rows)
    assert len(stacked) == rows
    for cell in range(4):
        marks = [column[cell] for column in fleet]
        shown = {Mark(row[cell] >> 4) for row in stacked if row[cell]}
        trouble = {Mark.FAILED, Mark.LAPSED, Mark.STALLED}
        assert bool(shown & trouble) == bool(trouble & set(marks))
        if rows > 1:
            assert (Mark.DUPLICATED in shown) >= (Mark.DUPLICATED in marks and not trouble & set(marks))
            assert bool(shown) >= bool({Mark.CLAIMED, Mark.DONE} & set(marks))
        levels = sum(row[cell] & 15 for row in stacked)
        assert levels <= rows * STEPS


@given(st.integers(0, 310), st.integers(0, 90), st.integers(1, 8))
def test_a_plan_never_takes_more_rows_than_there_are(width: int, height: int, runs: int) -> None:
    for plan in (
        plan_compare(width, height, runs),
        plan_zoomed(plan_compare(width, height, runs), height, True, runs),
    ):
        frame = 2 if plan.framed else 0
        used = plan.words + (plan.standings + plan.titles + frame if plan.standings else 0)
        used += plan.bands + frame if plan.bands else 0
        assert used <= max(height - 2, 0) or height < 4
        assert min(plan.words, plan.standings, plan.bands) >= 0


def test_the_contest_shows_the_run_that_is_selected() -> None:
    contest: Contest = contest_of(heats())[0]
    contest.select(99)
    assert contest.selected == 1 and contest.lane is contest.lanes[1]
    assert not contest.change_heat(1) and not contest.change_heat(-1)


# --- uneven compare --runs -------------------------------------------------------------------------------


def test_runs_that_were_made_are_compared_by_path_and_id(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNEVEN_STATE_DIR", str(tmp_path))
    catalogue = RunCatalogue()
    catalogue.save("first", LOG)
    catalogue.save("second", OTHER)
    path = str(tmp_path / "third.jsonl.gz")
    write_recording(LOG, Path(path))

    def told(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(["compare", "--runs", *arguments])
        assert ended.value.code == 0
        return capsys.readouterr().out

    table = told("first", "second")
    assert "is first: " in table and "guided,12+duplicate-oldest" in table
    found = json.loads(told(path, "second", "--format", "json"))
    assert [run["lapses"] for run in found["runs"]] == [1, 0] and found["winner"] == found["runs"][1]["run"]
    assert found["runs"][1]["ratio"] == pytest.approx(
        found["runs"][1]["seconds"] / found["runs"][1]["lower_bound_seconds"]
    )
    rows = list(csv.DictReader(io.StringIO(told("--format", "csv"))))
    assert len(rows) == 2 and len({row["run"] for row in rows}) == 2, "the last two"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "name two or more runs"),
        (["one"], 2, "give 2 to 8 runs, not 1"),
        (["one"] * 9, 2, "not 9"),
        (["nowhere", "neither"], 2, "there is no run 'nowhere'"),
        (["a", "b", "--fleets", "A"], 2, "--fleets and --runs exclude each other"),
    ],
)
def test_runs_that_cant_be_compared_end_in_one_sentence(
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UNEVEN_STATE_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", "--runs", *arguments])
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1
