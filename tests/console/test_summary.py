"""The summary of hand-made stories, as data and as exact text."""

from __future__ import annotations

from textwrap import dedent

import msgspec
import pytest
from hypothesis import given, settings

from console import text
from console.model import Model
from console.summary import RunSummary, WorkerSummary, lower_bound_seconds, render_text, summarize
from farm import events as ev
from farm.fleet import WorkerProfile
from tests.console.story import Fault, Story, play, stories
from tests.console.test_model import folded
from tests.console.test_plain import straggler


def worker(name: str, **fields: object) -> WorkerSummary:
    numbers = {
        field.name: 0
        for field in msgspec.structs.fields(WorkerSummary)
        if field.name not in ("name", "state")
    }
    values = {**numbers, "fps": None, "fps_cap": None, "state": "left", **fields}
    return WorkerSummary(name=name, **values)  # type: ignore[arg-type]


def fleet(*rates: float, overhead: float = 2.0) -> list[WorkerSummary]:
    return [worker(f"w{n}", fps_cap=rate, overhead_seconds=overhead) for n, rate in enumerate(rates)]


def test_the_lower_bound_is_that_of_the_published_table() -> None:
    assert lower_bound_seconds(4800, fleet(30, 30, 12, 2)) == pytest.approx(66.865, abs=5e-4)
    assert lower_bound_seconds(4800, fleet(24, 24, 24, 1)) == pytest.approx(67.753, abs=5e-4)


def test_the_lower_bound_with_overheads_that_differ() -> None:
    early, late = fleet(10, overhead=1)[0], fleet(10, overhead=100)[0]
    assert lower_bound_seconds(90, [early, late]) == 10.0  # the late one would come too late
    assert lower_bound_seconds(2000, [late, early]) == pytest.approx(150.5)


def test_the_lower_bound_is_unknown_rather_than_guessed() -> None:
    measured = worker("w1", fps=10.0, claims=1)
    assert lower_bound_seconds(100, [measured]) == 10.0
    assert lower_bound_seconds(100, [measured, worker("w2", state="parked")]) is None
    assert lower_bound_seconds(100, [measured, worker("w2", state="killed", claims=1)]) is None
    assert lower_bound_seconds(100, [measured, worker("w2", state="left")]) == 10.0
    assert lower_bound_seconds(100, []) is None
    assert lower_bound_seconds(0, [measured]) is None


def test_a_straggler_s_summary_as_text() -> None:
    summary = summarize(folded(straggler().records))
    assert render_text(summary, 80) == dedent("""\
        done and verified: nightfall.out.mp4, 12.3 MB
        frames          192 of 192 credited
        finishing time  26.5 s (lower bound 4.0 s, ratio 6.625)
        wasted          48 frames, 20.0 % of those encoded
        claims          3: 0 duplicates, 1 lapse, 1 refusal, 0 failures, 0 workers lost
        packets sha256  9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c

        worker  frames   fps  claims  dup  lapsed  wasted   busy   idle  stalled
        w1         192  24.0       2    0       0       0  9.0 s   18 s    0.0 s
        w3           0     -       1    0       1      48  2.0 s  4.5 s     21 s""")


def test_a_run_with_everything_in_it_as_text() -> None:
    """1. resumed at half; 2. a part set aside; 3. a slow machine, a pause, a lost worker, a duplicate."""
    story = Story(frames=480, part=48, fleet=("w1", "w2"))
    story.add(ev.FleetMeasured(fps_asked=74.0, fps_possible=41.0))
    story.join("w1", 30.0, 2.0)
    first = story.grant("w1", 0, 5)
    for part in range(5):
        story.at(4 + 2 * part).credit(first, part, render_seconds=1.6)
    story.at(14).start()
    story.join("w1", 30.0, 2.0)
    story.join("w2", None, 2.0)
    story.at(15).add(ev.JobPaused())
    story.at(21).add(ev.JobResumed(seconds=6.0))
    second = story.at(21).grant("w1", 5, 9)
    failing = story.grant("w2", 9, 10)
    story.at(23).fail(failing, 9, tries=3)
    story.put_aside(9)
    copy = story.at(24).duplicate("w2", second)
    story.at(30).credit(copy, 5, render_seconds=4.0)
    story.at(31).leave("w2", "killed by SIGKILL", lost=True)
    for part in (6, 7, 8):
        story.at(26 + part).credit(second, part, render_seconds=1.6)
    story.finish(makespan_seconds=24.0, exit_code=5)
    summary = summarize(folded(story.records))
    assert (summary.resumed_frames, summary.set_aside_parts, summary.pause_seconds) == (240, (9,), 6.0)
    assert render_text(summary, 90) == dedent("""\
        finished incomplete: nightfall.out.mp4, 12.3 MB
        frames          432 of 480 credited, 240 of them before it was resumed
        finishing time  24.0 s (lower bound 12.3 s, ratio 1.953), and 6.0 s of pause
        wasted          0 frames, 0.0 % of those encoded
        claims          4: 1 duplicate, 0 lapses, 0 refusals, 1 failure, 1 worker lost
        set aside       48 frames, part 9
        this machine was slower than asked: 74 fps asked, 41 possible here
        packets sha256  9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c9f3c

        worker  frames   share   fps  claims  dup  lapsed  wasted   busy   idle
        w1         384  88.9 %  30.0       2    0       0       0   25 s   10 s
        w2          48  11.1 %  12.0       2    1       0       0  9.0 s  8.0 s""")


def test_profiles_win_over_what_workers_say() -> None:
    profiles = [WorkerProfile(name="w1", fps_cap=12.0), WorkerProfile(name="w3", fps_cap=12.0)]
    summary = summarize(folded(straggler().records), profiles)
    assert summary.lower_bound_seconds == pytest.approx(192 / 24)
    assert summary.ratio == pytest.approx(26.5 / 8)


def test_a_run_without_an_end_has_a_summary_too() -> None:
    story = Story(frames=96, part=48)
    story.join("w1")
    token = story.at(1).grant("w1", 0, 2)
    story.at(5).credit(token, 0, render_seconds=4.0)
    summary = summarize(folded(story.records), now=8.0)
    assert (summary.outcome, summary.exit_code) == ("not finished", None)
    assert (summary.work_seconds, summary.credited_frames) == (4.0, 48)
    assert (summary.finishing_seconds, summary.lower_bound_seconds, summary.ratio) == (None, None, None)
    assert "work so far     4.0 s" in render_text(summary).splitlines()
    assert summary.workers[0].busy_seconds == 7.0
    empty = summarize(Model())
    assert render_text(empty).splitlines()[0] == "not finished"
    assert "work so far     nothing is credited" in render_text(empty)


def test_a_fitted_fleet_is_not_marked_slow() -> None:
    story = Story(frames=96, part=48)
    story.add(ev.FleetMeasured(fps_asked=74.0, fps_possible=41.0, fitted=True))
    assert not summarize(folded(story.records)).machine_was_slower


def test_many_parts_set_aside_are_cut_and_counted() -> None:
    story = Story(frames=480, part=24)
    for part in range(12):
        story.put_aside(part)
    lines = render_text(summarize(folded(story.records)), 100)
    assert "set aside       288 frames, parts 0, 1, 2, 3, 4, 5, 6, 7 (8 of 12 shown)" in lines


@pytest.mark.parametrize("width", [20, 32, 40, 60, 80, 120])
def test_no_line_is_wider_than_asked_whatever_the_names(width: int) -> None:
    story = Story(frames=96, part=48)
    story.join("映画-\U0001f468\u200d\U0001f469-" + "x" * 300)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    story.credit(token, 0, render_seconds=2.0)
    story.credit(token, 1, render_seconds=2.0)
    story.finish()
    summary = summarize(folded(story.records))
    lines = render_text(summary, width).splitlines()
    # Half of a checksum is worth nothing.
    lines.remove(f"packets sha256  {summary.packets_sha256}")
    assert max(map(text.width, lines)) <= width
    table = lines[lines.index("") + 1 :]
    assert len({text.width(line) for line in table}) == 1
    assert table[0].startswith("worker")


def test_a_voided_part_is_taken_back_from_the_worker_that_had_it() -> None:
    """Frames and shares of the workers never add up to more than the job has."""
    story = Story(frames=144, part=48)
    story.join("w1")
    story.join("w2")
    first, second = story.grant("w1", 0, 2), story.grant("w2", 2, 3)
    story.at(2).credit(first, 0, render_seconds=2.0)
    story.at(4).credit(first, 1, render_seconds=2.0)
    story.at(4).credit(second, 2, render_seconds=4.0)
    story.at(5).add(ev.PartVoided(part=0, reason="its file is cut off"))
    story.credited.discard(0)
    story.open.add(0)
    again = story.at(5).grant("w2", 0, 1)
    story.at(9).credit(again, 0, render_seconds=4.0)
    story.finish()
    summary = summarize(folded(story.records))
    assert [(w.name, w.credited_frames) for w in summary.workers] == [("w1", 48), ("w2", 96)]
    assert (summary.credited_frames, summary.voided_frames, summary.wasted_frames) == (144, 48, 0)
    assert "taken back      48 frames credited and then not trusted; rendered again" in render_text(summary)


def test_adopted_parts_have_a_line_so_that_the_frames_add_up() -> None:
    story = Story(frames=144, part=48)
    story.join("w1")
    token = story.grant("w1", 0, 3)
    story.at(2).credit(token, 0, render_seconds=2.0)
    story.at(3).start()
    story.adopt(1)
    story.join("w1")
    token = story.grant("w1", 2, 3)
    story.at(5).credit(token, 2, render_seconds=2.0)
    story.finish()
    summary = summarize(folded(story.records))
    assert summary.adopted_frames + sum(w.credited_frames for w in summary.workers) == 144
    assert "adopted         48 frames found finished" in render_text(summary, 100)


def test_what_the_end_of_a_run_cut_off_is_waste() -> None:
    """As after a second Ctrl-C: nobody ends the claims of workers that were killed, until it is resumed."""
    story = Story(frames=96, part=48)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    story.at(2).credit(token, 0, render_seconds=2.0)
    story.at(3).beat(token, 70)
    assert summarize(folded(story.records)).wasted_frames == 0
    story.at(3.5).add(ev.RunFinished(exit_code=130, outcome="interrupted"))
    summary = summarize(folded(story.records))
    assert (summary.wasted_frames, summary.workers[0].wasted_frames) == (22, 22)
    story.at(4).start()
    assert summarize(folded(story.records)).wasted_frames == 22


def test_the_time_a_machine_slept_is_not_rendering_time() -> None:
    """Suspended for 60 s within a part that takes 2 s: the run's clock did not count them, a worker's may."""
    story = Story(frames=96, part=48)
    story.join("w1", 24.0)
    token = story.grant("w1", 0, 2)
    story.at(2).credit(token, 0, render_seconds=2.0)
    story.at(4).credit(token, 1, render_seconds=62.0)
    story.finish()
    assert summarize(folded(story.records)).workers[0].fps == pytest.approx(24.0)


def test_workers_come_in_the_order_people_count() -> None:
    story = Story(frames=96, part=48)
    for name in ("w10", "w2", "w1"):
        story.join(name)
    assert [w.name for w in summarize(folded(story.records)).workers] == ["w1", "w2", "w10"]


def test_speeds_below_ten_keep_what_follows_the_point() -> None:
    story = Story(frames=96, part=48)
    story.add(ev.FleetMeasured(fps_asked=0.5, fps_possible=0.25))
    assert "0.5 fps asked, 0.25 possible here" in render_text(summarize(folded(story.records)))


def test_the_summary_survives_json() -> None:
    summary = summarize(folded(play(faults=[Fault("w1", 20, 30), Fault("w2", 60)])))
    assert msgspec.json.decode(msgspec.json.encode(summary), type=RunSummary) == summary
    assert summary.ratio == pytest.approx(1.860, abs=0.01)
    assert sum(w.credited_frames for w in summary.workers) == summary.credited_frames == 4800
    for one in summary.workers:
        total = one.busy_seconds + one.idle_seconds + one.stalled_seconds
        assert total == pytest.approx(60.0 if one.name == "w2" else 125.4, abs=0.1)


@settings(max_examples=40, deadline=None)
@given(records=stories())
def test_any_story_has_a_summary(records: list[ev.Record]) -> None:
    summary = summarize(folded(records))
    assert sum(w.wasted_frames for w in summary.workers) == summary.wasted_frames
    assert all(min(w.busy_seconds, w.idle_seconds, w.stalled_seconds) >= 0 for w in summary.workers)
    assert render_text(summary, 80)
