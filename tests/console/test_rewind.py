"""Going back in a log: the model is what it was; and a recording tells all of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from console import rewind
from console.model import Model
from console.rewind import Rewinder
from console.simulate import History
from farm import events as ev
from farm.faults import KINDS, AfterParts, AtClaim, AtShare, AtTime, Fault, When
from farm.journal import read_recording, write_recording
from farm.simulation.runs import simulate
from farm.simulation.soak import troubled_world
from farm.simulation.source import SimulatedSource
from tests.console.story import stories
from tests.simulation.test_source import HandClock
from tests.simulation.worlds import small_world, worker


def folded(records: list[ev.Record]) -> Model:
    model = Model("recording")
    for record in records:
        model.fold(record)
    return model


# --- to and fro ------------------------------------------------------------------------------------------


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(records=stories(), data=st.data())
def test_the_model_is_what_it_was_wherever_one_comes_from(
    records: list[ev.Record], data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind, "KEYFRAME_RECORDS", 7)
        patch.setattr(rewind, "KEYFRAMES_MAX", 3)
        model = Model("recording")
        rewinder = Rewinder(model)
        for _ in range(4):
            position = data.draw(st.integers(0, len(records)))
            if position < rewinder.folded:
                rewinder.back_to(position, records)
            else:
                rewinder.fold(records[rewinder.folded : position])
            assert model.digest() == folded(records[:position]).digest()
            assert model.records == position


def test_keyframes_are_bounded_and_all_is_drawn_again() -> None:
    records = [ev.Record(n, float(n), ev.Notice(level="info", text=str(n))) for n in range(500)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewind, "KEYFRAME_RECORDS", 2)
        patch.setattr(rewind, "KEYFRAMES_MAX", 8)
        model = Model("recording")
        rewinder = Rewinder(model)
        rewinder.fold(records)
        assert len(rewinder._keyframes) <= 8
        model.take_dirty()
        rewinder.back_to(123, records)
    assert model.events_total == 123 and model.events[-1].text == "122"
    assert model.take_dirty() == {0}


# --- acceptance 3: the log of a run is all of it ---------------------------------------------------------

WHENS: tuple[When, ...] = (AtTime(1.5), AfterParts(1), AtClaim(1), AtShare(0.4))
FAULTS = st.builds(
    lambda kind, who, when, seconds: Fault(
        kind=kind,
        workers=(who,) if KINDS[kind].on_worker else (),
        when=when if KINDS[kind].on_worker or not isinstance(when, AfterParts | AtClaim) else AtTime(1.0),
        seconds=None if KINDS[kind].lasts == "moment" else seconds,
        amount=None if KINDS[kind].amount is None else (KINDS[kind].amount.default or 0.5),  # type: ignore[union-attr]
    ),
    st.sampled_from(sorted(kind for kind in KINDS if not KINDS[kind].live_only)),
    st.sampled_from(["w1", "w2", "w3"]),
    st.sampled_from(WHENS),
    st.floats(0.5, 9.0),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    faults=st.lists(FAULTS, max_size=4),
    policy=st.sampled_from(["fair", "guided,12", "fixed,20"]),
    tail=st.sampled_from(["split", "late", "duplicate-oldest"]),
)
def test_a_recording_of_a_run_with_faults_gives_the_model_that_the_run_had(
    faults: list[Fault], policy: str, tail: str, tmp_path: Path
) -> None:
    world = small_world(
        worker("w1", 20.0),
        worker("w2", 8.0),
        worker("w3", 3.0),
        frames=120,
        policy=policy,
        tail=tail,
        heartbeat_seconds=0.5,
        lease_seconds=3.0,
    )
    live, log = Model("live"), []

    def happen(record: ev.Record) -> None:
        live.fold(record)
        log.append(record)

    simulate(replace(world, faults=tuple(faults)), on_record=happen, until=600.0)
    path = tmp_path / "run.jsonl.gz"
    write_recording(log, path)
    assert folded(list(read_recording(path))).digest() == live.digest()


@pytest.mark.parametrize("seed", range(12))
def test_what_a_console_saw_of_a_troubled_run_is_what_its_recording_tells(seed: int, tmp_path: Path) -> None:
    """Polled, with estimates in between that no recording has."""
    clock = HandClock()
    source = SimulatedSource(troubled_world(seed), clock, rate=50.0)
    seen, log = Model("simulated"), []
    while not source.ended:
        clock.time += 0.5
        for record in source.take():
            seen.fold(record)
            if record.seq >= 0:
                log.append(record)
    path = tmp_path / "run.jsonl.gz"
    write_recording(log, path)
    assert folded(list(read_recording(path))).digest() == seen.digest()


def test_a_history_goes_back_as_a_model_does() -> None:
    records = list(simulate(troubled_world(3), keep_log=True).records)
    history = History()
    rewinder = Rewinder(history)
    rewinder.fold(records)
    spans = {name: list(kept) for name, kept in history.spans.items()}
    rewinder.back_to(len(records) // 2, records)
    rewinder.fold(records[len(records) // 2 :])
    assert history.spans == spans
