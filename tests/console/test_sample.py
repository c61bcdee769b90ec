"""A sample as the console sees it: its progress is that of the sample, and the prediction is told."""

from __future__ import annotations

from msgspec.structs import replace

from console.attach import _standing
from console.model import Model
from console.plain import status_line
from console.summary import render_text, summarize
from console.widgets.view import _badge, title_row
from farm import events as ev
from farm.journal import RunEntry
from farm.sampling import SAMPLED
from farm.simulation.runs import simulate
from farm.simulation.world import World
from tests.simulation.worlds import small_world, worker


def records(sample: int | None = 4) -> list[ev.Record]:
    world: World = small_world(worker("w1", 30.0), worker("w2", 12.0), frames=600, part=20, policy="fair")
    return list(simulate(replace(world, sample=sample), keep_log=True).records)


def folded(log: list[ev.Record]) -> Model:
    model = Model("live")
    for record in log:
        model.fold(record)
    return model


def test_progress_is_that_of_the_sample() -> None:
    log = records()
    last = max(n for n, record in enumerate(log) if isinstance(record.event, ev.PartCredited))
    model = folded(log[: last + 1])
    assert (model.target_frames, model.credited_frames, model.open_frames) == (80, 80, 0)
    assert "80 of 80 frames of the sample" in status_line(model, model.at)
    half = folded(log[: next(n for n, r in enumerate(log) if isinstance(r.event, ev.PartCredited)) + 1])
    assert half.credited_frames == 20 and half.open_frames + half.in_flight_frames == 60
    assert 0.1 < half.progress() < 0.5
    assert title_row(half, half.at, readonly=False, ended=False).facts[0] == "a sample, 4 parts"


def test_the_end_tells_the_sample_and_what_is_predicted() -> None:
    model = folded(records())
    assert model.progress() == 1.0 and _badge(model, ended=True)[0] == "SAMPLED"
    text = render_text(summarize(model))
    assert "sample          4 parts, 80 of 80 frames credited" in text
    assert "predicted       14 s of rendering" in text
    assert "0 B" not in text, "in a simulation nothing has a size"


def test_the_rest_of_the_film_has_its_own_progress() -> None:
    """The relay starts again: the sample is over, and the bar is not at its end."""
    log = records()
    at, seq = log[-1].at, log[-1].seq
    model = folded([*log, ev.Record(seq + 1, at, ev.RelayStarted(epoch=2))])
    model.fold(ev.Record(seq + 2, at, ev.PhaseStarted(phase="work")))
    assert model.sample is None and model.target_frames == 600
    assert model.open_frames == 520 and model.resumed_frames == 80
    assert 0.05 < model.progress() < 0.25


def test_a_part_that_is_taken_back_outside_of_the_sample_is_not_counted_as_open() -> None:
    log = records()
    at, seq = log[-1].at, log[-1].seq
    chosen = next(record.event for record in log if isinstance(record.event, ev.SampleChosen))
    other = tuple(part for part in range(30) if part not in chosen.parts)[:2]
    model = folded([*log, ev.Record(seq + 1, at, ev.RelayStarted(epoch=2))])
    model.fold(ev.Record(seq + 2, at, ev.SampleChosen(parts=other)))
    assert model.target_frames == 120 and model.open_frames == 40
    model.fold(ev.Record(seq + 3, at, ev.PartVoided(part=chosen.parts[0], reason="damaged")))
    assert model.target_frames == 100 and model.open_frames == 40


def test_a_sample_s_recording_folds_alike_however_it_is_read() -> None:
    log = records()
    again = [ev.decode_record(ev.encode_record(record)) for record in log]
    assert folded(log).digest() == folded(again).digest()


def test_a_sample_is_not_listed_as_done() -> None:
    entry = RunEntry(run_id="r", input="i", output="o", folder="", started="", exit_code=0, outcome=SAMPLED)
    assert _standing(entry, live=False) == "sampled"
    assert _standing(replace(entry, outcome="done and verified"), live=False) == "done"
