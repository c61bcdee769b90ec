"""The model against logs told by hand and simulated."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

from console.model import CLAIMED, CREDITED, DUPLICATE, EVENTS_MAX, LAPSED, OPEN, SET_ASIDE, Model
from console.timeline import BUCKETS_MAX, SPANS_MAX, Throughput
from farm import events as ev
from tests.console.story import Story, play


def folded(records: Iterable[ev.Record]) -> Model:
    model = Model()
    for record in records:
        model.fold(record)
    return model


def spans(model: Model, worker: str) -> list[tuple[str, float, float | None]]:
    return [(span.kind, span.start_seconds, span.stop_seconds) for span in model.workers[worker].spans]


# --- stories ---------------------------------------------------------------------------------------------


def test_parts_go_from_open_to_claimed_to_credited() -> None:
    story = Story(frames=200, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    story.at(1).beat(token, 60)
    model = folded(story.records)
    assert list(model.part_state) == [CLAIMED, CLAIMED, OPEN, OPEN]
    assert (model.shade(0), model.shade(1), model.shade(2)) == (1.0, 0.2, 0.0)
    assert (model.open_frames, model.in_flight_frames, model.rendered_frames) == (100, 100, 60)
    assert (model.in_flight_chunks, model.granted, model.duplicated) == (1, 1, 0)

    story.at(2).credit(token, 0)
    model = folded(story.records)
    assert list(model.part_state) == [CREDITED, CLAIMED, OPEN, OPEN]
    assert (model.credited_frames, model.rendered_frames) == (50, 10)
    assert model.shade(0) == 1.0

    story.at(3).credit(token, 1)
    model = folded(story.records)
    assert (model.credited_frames, model.in_flight_chunks, model.rendered_frames) == (100, 0, 0)
    assert model.workers["w1"].credited_frames == 100


def test_take_dirty_gives_each_change_once() -> None:
    story = Story(frames=200, part=50)
    story.join("w1")
    model = folded(story.records)
    assert model.take_dirty() == {0, 1, 2, 3}
    assert model.take_dirty() == set()
    seen = len(story.records)
    token = story.grant("w1", 1, 3)
    for record in story.records[seen:]:
        model.fold(record)
    assert model.take_dirty() == {1, 2}
    seen = len(story.records)
    story.at(1).beat(token, 60)
    model.fold(story.records[seen])
    assert model.take_dirty() == {1}


def test_a_stalled_worker_lapses_wakes_and_is_refused() -> None:
    """1. w1 works, and is stopped at 4 s. 2. Its lease runs out at 22 s, the part it had not delivered is
    open again and marked. 3. w2 takes it. 4. w1 wakes at 30 s and is refused; nothing else changes."""
    story = Story(frames=100, part=50)
    story.join("w1")
    story.join("w2")
    token = story.grant("w1", 0, 2)
    story.at(2).beat(token, 40)
    story.at(4).act("stall", "w1")
    stalled = folded(story.records).workers["w1"]
    assert (stalled.state, stalled.fps) == ("stalled", 0.0)

    story.at(22).lapse(token)
    model = folded(story.records)
    assert list(model.part_state) == [LAPSED, LAPSED]
    assert (model.lapses, model.workers["w1"].lapses, model.rendered_frames) == (1, 1, 0)
    assert (model.wasted_frames, model.workers["w1"].wasted_frames) == (40, 40)
    assert model.open_frames == 100

    story.at(23).grant("w2", 0, 2)
    assert list(folded(story.records).part_state) == [CLAIMED, CLAIMED]

    story.at(30).act("unstall", "w1")
    story.refuse("w1", token, holder="w2")
    model = folded(story.records)
    assert (model.refusals, model.workers["w1"].state, model.workers["w2"].state) == (1, "idle", "rendering")
    assert model.events[-1].text == (
        f"refused deliver: not claimant ({token} lapsed: no heartbeat for 20.0 s; held by w2)"
    )
    assert spans(model, "w1") == [
        ("claim", 0.0, 4.0),
        ("lapsed", 4.0, 22.0),
        ("stalled", 22.0, 30.0),
        ("refused", 30.0, 30.0),
        ("idle", 30.0, None),
    ]


def test_silence_before_a_lapse_is_shown_as_such() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 2)
    story.at(6).beat(token, 10)
    story.at(26).lapse(token)
    model = folded(story.records)
    worker = model.workers["w1"]
    assert spans(model, "w1") == [("claim", 0.0, 6.0), ("lapsed", 6.0, 26.0), ("stalled", 26.0, None)]
    assert worker.state == "stalled"
    assert worker.seconds_in(frozenset({"stalled"}), 26.0) == 20.0
    assert worker.seconds_in(frozenset({"rendering"}), 26.0) == 6.0


def test_the_copy_that_loses_is_superseded_and_no_failure() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    story.join("w2")
    slow = story.grant("w1", 0, 2)
    story.at(5).beat(slow, 20)
    story.at(6).duplicate("w2", slow)
    model = folded(story.records)
    assert list(model.part_state) == [DUPLICATE, DUPLICATE]
    assert (model.duplicated, model.duplicates, model.in_flight_chunks) == (1, 1, 1)
    assert model.workers["w2"].spans[-1].kind == "duplicate"

    fast = story.records[-1].event.token  # type: ignore[union-attr]
    story.at(8).credit(fast, 0)
    story.at(9).credit(slow, 0)
    story.at(10).credit(fast, 1)
    model = folded(story.records)
    assert (model.credited_frames, model.duplicated, model.in_flight_chunks) == (100, 0, 0)
    assert (model.failures, model.lapses) == (0, 0)
    assert (model.wasted_frames, model.workers["w1"].wasted_frames) == (50, 50)
    assert model.workers["w1"].credited_frames == 0
    assert [worker.state for worker in model.workers.values()] == ["idle", "idle"]


def test_rendered_frames_are_not_counted_twice_for_two_holders() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    story.join("w2")
    slow = story.grant("w1", 0, 2)
    story.at(1).beat(slow, 30)
    fast = story.at(2).duplicate("w2", slow)
    story.at(3).beat(fast, 70)
    assert folded(story.records).rendered_frames == 70
    story.at(4).end(fast, "released")
    model = folded(story.records)
    assert model.rendered_frames == 30
    assert list(model.part_state) == [CLAIMED, CLAIMED]


def test_a_killed_worker_leaves_its_parts_open_without_a_lapse() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    story.grant("w1", 0, 2)
    story.at(3).leave("w1", "killed by SIGKILL", lost=True)
    model = folded(story.records)
    assert list(model.part_state) == [OPEN, OPEN]
    assert (model.losses, model.lapses, model.workers["w1"].state) == (1, 0, "killed")
    assert not model.fleet_is_alive
    assert spans(model, "w1") == [("claim", 0.0, 3.0)]


def test_a_part_set_aside_is_neither_open_nor_credited_until_it_is_tried_again() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 1)
    story.fail(token, 0)
    story.put_aside(0)
    model = folded(story.records)
    assert list(model.part_state) == [SET_ASIDE, OPEN]
    assert (model.set_aside_frames, model.open_frames, model.failures) == (50, 50, 1)
    story.add(ev.RangeReopened(start=0, stop=50, chunk=0))
    assert list(folded(story.records).part_state) == [OPEN, OPEN]


def test_a_resumed_run_starts_at_the_same_share_of_the_same_total() -> None:
    story = Story(frames=200, part=50)
    story.phase("work")
    story.join("w1")
    token = story.grant("w1", 0, 4)
    story.at(1).credit(token, 0)
    story.at(2).credit(token, 1)
    before = folded(story.records)
    story.at(2.5).start()
    story.phase("probe")
    after = folded(story.records)
    assert after.credited_frames == after.resumed_frames == 100
    assert after.frames == 200
    assert after.progress() == before.progress() > 0.4
    assert after.lapses == 0
    assert (after.epoch, after.workers["w1"].state) == (2, "left")
    story.adopt(2)
    assert folded(story.records).resumed_frames == 150


def test_voided_parts_are_open_again_and_progress_does_not_go_back() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    story.credit(story.grant("w1", 0, 1), 0)
    before = folded(story.records)
    story.add(ev.PartVoided(part=0, reason="the source does not seek reliably"))
    after = folded(story.records)
    assert (before.credited_frames, after.credited_frames) == (50, 0)
    assert after.progress() == before.progress() > 0


def test_a_worker_pays_its_overhead_as_waiting_not_as_slowness() -> None:
    story = Story(frames=1000, part=50)
    story.join("w1", overhead_seconds=2.0)
    token = story.grant("w1", 0, 20)
    assert folded(story.records).workers["w1"].state == "waiting"
    story.at(4).beat(token, 20)
    worker = folded(story.records).workers["w1"]
    assert worker.state == "rendering"
    assert worker.fps == pytest.approx(10.0)
    assert worker.seconds_in(frozenset({"waiting"}), 4.0) == 2.0


def test_speed_follows_a_worker_that_slows_down() -> None:
    story = Story(frames=10_000, part=100)
    story.join("w1")
    token = story.grant("w1", 0, 100)
    position = 0
    for second in range(2, 122, 2):
        position += 60 if second <= 20 else 4
        story.at(second).beat(token, position)
    fps = folded(story.records).workers["w1"].fps
    assert fps == pytest.approx(2.0, rel=0.1)


def test_pauses_are_counted_apart() -> None:
    story = Story()
    story.at(10).add(ev.JobPaused())
    model = folded(story.records)
    assert model.paused
    assert model.paused_seconds(now=14.0) == 4.0
    assert model.eta(14.0) is None
    story.at(15).add(ev.JobResumed(seconds=5.0))
    model = folded(story.records)
    assert not model.paused
    assert model.paused_seconds(now=99.0) == 5.0


def test_a_blocked_worker_is_said_to_be_and_forgiven() -> None:
    story = Story()
    story.join("w1")
    story.add(ev.WorkerBlocked(worker="w1", failures=3, until=60.0))
    worker = folded(story.records).workers["w1"]
    assert (worker.state, worker.blocked_until, worker.fps) == ("blocked", 60.0, None)
    story.at(60).add(ev.WorkerForgiven(worker="w1"))
    worker = folded(story.records).workers["w1"]
    assert (worker.state, worker.blocked_until) == ("idle", None)


def test_what_makes_no_sense_or_is_unknown_is_skipped() -> None:
    story = Story(frames=100, part=50)
    story.join("w1")
    token = story.grant("w1", 0, 1)
    story.credit(token, 0)
    before = folded(story.records)
    wrong = ev.PartCredited(
        part=99, frames=50, token="c9#9@e9", worker="w1", file="", size_bytes=0, sha256=""
    )
    again = ev.PartCredited(part=0, frames=50, token=token, worker="w1", file="", size_bytes=0, sha256="")
    model = before
    for event in (
        wrong,
        again,
        object(),
        ev.LeaseRenewed(worker="w7", claims=(ev.ClaimProgress("c0#9@e1"),)),
    ):
        model.fold(ev.Record(0, 0.0, event))  # type: ignore[arg-type]
    assert model.credited_frames == 50
    assert model.workers["w1"].credited_frames == 50


def test_events_before_the_run_is_opened_are_taken() -> None:
    model = Model()
    model.fold(ev.Record(0, 0.0, ev.PhaseStarted(phase="probe")))
    model.fold(ev.Record(1, 0.5, ev.PhaseProgressed(phase="probe", fraction=0.5)))
    assert 0 < model.progress() < 0.02
    assert (model.frames, model.parts, model.open_frames, model.eta(1.0)) == (0, 0, 0, None)
    assert not model.fleet_is_alive


# --- progress and forecast -------------------------------------------------------------------------------


def test_progress_weights_the_phases_and_ends_at_one() -> None:
    """RG18: two chunks are tried again, then stitch and verify follow; 0 to 1 and never backwards."""
    story = Story(frames=100, part=50)
    for phase in ("probe", "measure"):
        story.phase(phase)
        story.add(ev.PhaseProgressed(phase=phase, fraction=1.0))
    story.phase("work")
    story.join("w1")
    for part in (0, 1):
        story.fail(story.grant("w1", part, part + 1), part)
    for part in (0, 1):
        story.credit(story.grant("w1", part, part + 1), part)
    story.finish()
    model = Model()
    seen = []
    for record in story.records:
        model.fold(record)
        seen.append(model.progress())
    assert seen == sorted(seen)
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
    assert all(value < 1.0 for value in seen[:-1])
    work_done = next(i for i, r in enumerate(story.records) if isinstance(r.event, ev.WorkFinished))
    assert 0.85 < seen[work_done] < 0.95


def test_a_run_that_ends_incomplete_is_not_at_one() -> None:
    story = Story(frames=100, part=50)
    story.put_aside(0)
    story.finish(exit_code=5)
    assert folded(story.records).progress() < 1.0


@pytest.mark.parametrize("fleet", [(30, 30, 12, 2), (24, 24, 24, 1), (10,), (6,) * 16])
def test_the_forecast_holds_what_comes(fleet: tuple[float, ...]) -> None:
    records = play(fleet)
    finished = next(r.at for r in records if isinstance(r.event, ev.WorkFinished))
    model = Model()
    inside = total = 0
    for record in records:
        model.fold(record)
        forecast = model.eta(record.at)
        if not isinstance(record.event, ev.PartCredited) or record.at < 0.15 * finished:
            continue
        assert forecast is not None
        assert 0 <= forecast.low <= forecast.mid <= forecast.high
        total += 1
        left = finished - record.at
        inside += forecast.low * 0.85 <= left + 3 and left <= forecast.high * 1.3 + 3
    assert inside / total > 0.9


def test_the_forecast_is_unknown_without_a_speed_or_a_worker() -> None:
    story = Story()
    model = folded(story.records)
    assert model.eta(0.0) is None
    story.join("w1")
    assert folded(story.records).eta(0.0) is None
    story.leave("w1", lost=True)
    assert folded(story.records).eta(0.0) is None


def test_a_silent_worker_is_not_counted_on() -> None:
    story = Story(frames=1000, part=50)
    story.join("w1")
    story.join("w2")
    story.grant("w1", 0, 10)
    story.grant("w2", 10, 20)
    for second in (2, 4):
        story.at(second).beat("c0#1@e1", second * 10)
        story.beat("c1#1@e1", 500 + second * 10)
    story.at(20).beat("c0#1@e1", 200)
    model = folded(story.records)
    both, alone = model.eta(4.5), model.eta(20.0)
    assert both is not None and alone is not None
    assert alone.mid > both.mid
    assert model.workers["w2"].is_silent(20.0, model.silence_seconds)


def test_what_the_farm_estimates_goes_before_what_the_console_can_tell() -> None:
    """It counts down until the next one, stands while the job is paused, and "unknown" is said as such."""
    story = Story(frames=4800, part=48)
    story.join("w1", 24.0)
    story.grant("w1", 0, 10)
    story.at(4).beat("c0#1@e1", 96)
    own = folded(story.records).eta(4.0)
    told = ev.FinishEstimated(likely_seconds=60.0, low_seconds=50.0, high_seconds=75.0, by="replay")
    story.add(told)
    assert own is not None and own.mid > 100
    assert folded(story.records).eta(4.0) == (50.0, 60.0, 75.0)
    assert folded(story.records).eta(9.0) == (45.0, 55.0, 70.0)
    assert folded(story.records).eta(80.0) == (0.0, 0.0, 0.0)
    story.add(ev.JobPaused())
    assert folded(story.records).eta(9.0) is None
    story.at(24).add(ev.JobResumed(seconds=20.0))
    assert folded(story.records).eta(24.0) == (50.0, 60.0, 75.0)
    story.add(ev.FinishEstimated())
    assert folded(story.records).eta(24.0) is None


def test_while_it_drains_the_forecast_is_the_longest_part_in_progress() -> None:
    """Not the time for all that is left: that stays open."""
    story = Story(frames=4800, part=48)
    story.join("w1", 24.0)
    story.join("w2", 2.0)
    story.grant("w1", 0, 10)
    story.grant("w2", 10, 20)
    for second in (2, 4, 6):
        story.at(second).beat("c0#1@e1", second * 24)
        story.beat("c1#1@e1", 480 + second * 2)
    before = folded(story.records).eta(6.0)
    story.add(ev.DrainStarted(reason="SIGINT"))
    model = folded(story.records)
    draining, later = model.eta(6.0), model.eta(9.0)
    assert before is not None and draining is not None and later is not None
    assert before.mid > 100
    assert draining.mid == pytest.approx((48 - 12) / 2, abs=1)
    assert later.mid == pytest.approx(draining.mid - 3)
    assert draining.low <= draining.mid <= draining.high
    silent = model.eta(6.0 + 12)
    assert silent is not None and silent.mid == pytest.approx(model.options.lease_seconds - 12)
    story.end("c1#1@e1", "released")
    story.end("c0#1@e1", "released")
    assert folded(story.records).eta(6.0) == (0.0, 0.0, 0.0)


def test_the_first_seconds_have_a_speed_too() -> None:
    story = Story(frames=480, part=48)
    story.join("w1")
    token = story.at(10.2).grant("w1", 0, 10)
    story.at(10.9).credit(token, 0, render_seconds=0.6)
    model = folded(story.records)
    assert model.fps(11.2) == pytest.approx(48.0)
    assert model.fps(12.2) == pytest.approx(24.0)
    assert model.fps(10.2) == 0.0


# --- bounds ----------------------------------------------------------------------------------------------


def test_memory_is_bounded_and_totals_go_on() -> None:
    story = Story(frames=50, part=50)
    story.join("w1")
    model = folded(story.records)
    before = model.events_total
    notice = ev.Notice(level="info", text="x")
    for n in range(EVENTS_MAX + 500):
        model.fold(ev.Record(n, float(n), notice))
    assert len(model.events) == EVENTS_MAX
    assert model.events_total == before + EVENTS_MAX + 500

    for n in range(SPANS_MAX + 100):
        model.workers["w1"].open_span("claim", float(n), f"c{n}")
    assert len(model.workers["w1"].spans) == SPANS_MAX
    assert model.workers["w1"].spans_total > SPANS_MAX


def test_throughput_is_by_the_second_and_forgets_the_far_past() -> None:
    throughput = Throughput()
    throughput.add(0.2, 10)
    throughput.add(0.9, 5)
    throughput.add(3.0, 7)
    assert throughput.last(4.0, 4) == [15, 0, 0, 7]
    assert throughput.fps(4.0, 2) == 3.5
    throughput.add(BUCKETS_MAX + 100.0, 1)
    assert throughput.at(0) == 0
    assert throughput.at(BUCKETS_MAX + 100) == 1
    throughput.add(100 * BUCKETS_MAX, 2)
    assert (throughput.at(100 * BUCKETS_MAX), throughput.total) == (2, 25)


def test_the_model_imports_neither_textual_nor_rich_nor_av() -> None:
    code = (
        "import sys, console.model, console.plain, console.jsonl, console.summary;"
        "print([m for m in ('textual', 'rich', 'av', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
