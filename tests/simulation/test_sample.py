"""A sample in virtual time: its parts alone are rendered, and what it predicts comes true."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from farm import events as ev
from farm.sampling import SampleSize, sample_parts
from tests.simulation.worlds import run, saw, small_world, worker


def test_a_sample_ends_with_a_prediction_that_the_whole_film_keeps() -> None:
    fleet = [worker("w1", 30.0), worker("w2", 12.0), worker("w3", 12.0)]
    world = small_world(*fleet, frames=3000, part=20, policy="fair", tail="split")
    sampled, whole = run(world, sample=12), run(world)
    assert sampled.credited_frames == 12 * 20
    ((_, predicted),) = saw(sampled, ev.SamplePredicted)
    assert predicted.parts == 12 and predicted.likely_seconds is not None
    assert whole.makespan_seconds is not None
    assert abs(predicted.likely_seconds / whole.makespan_seconds - 1) < 0.03
    assert saw(sampled, ev.RunFinished, sample=True, exit_code=0)


@settings(max_examples=25, deadline=None)
@given(
    frames=st.integers(1, 90),
    part=st.integers(1, 9),
    sample=st.integers(1, 20),
    policy=st.sampled_from(["fair", "guided,1", "fixed,20", "static"]),
    dies=st.booleans(),
)
def test_whatever_happens_exactly_the_sample_is_rendered(
    frames: int, part: int, sample: int, policy: str, dies: bool
) -> None:
    """Also when a worker dies, lapses and is copied: the books are recounted at every step."""
    mortal = worker("w1", 7.0, **({"dies_at_seconds": 1.5} if dies else {}))
    world = small_world(mortal, worker("w2", 3.0), frames=frames, part=part, policy=policy)
    result = run(replace(world, sample=sample))
    parts = len(world.cuts) - 1
    chosen = sample_parts(parts, SampleSize(parts=sample))
    assert len(chosen) == len(set(chosen)) == min(max(sample, 3), parts)
    assert chosen[0] == 0 and chosen[-1] == parts - 1
    assert {event.part for _, event in saw(result, ev.PartCredited)} == set(chosen)
    assert result.finished
