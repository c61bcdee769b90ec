"""A short scenario on real worker processes and in virtual time: the same claims, about the same time. The
long ones, with every schedule, are a benchmark (benchmarks/live_against_simulated.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.live_against_simulated import FLEETS, Case, live, make_clip, scenario_of, simulated

FRAMES = 1200


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    make_clip(path, FRAMES)
    return path


@pytest.mark.slow
def test_a_fleet_does_live_what_it_does_in_virtual_time(clip: Path, tmp_path: Path) -> None:
    """Sizes that depend on nothing but the video leave no claim to chance; the time is bounded generously,
    for a machine that others use too: by how much it failed to keep the workers' speeds is measured."""
    scenario = scenario_of(Case("fixed", "fixed,24", "none", 24), FLEETS["A"], FRAMES, 8.0, tmp_path)
    there, here = simulated(scenario, tmp_path), live(scenario, clip, tmp_path)
    assert there.seconds == pytest.approx(8.0, rel=0.02)
    assert here.counts == there.counts
    assert here.claims == FRAMES // 24
    assert 0.95 <= here.seconds / there.seconds <= 1.2 / min(here.pace, 1.0)


@pytest.mark.slow
def test_a_worker_that_is_stopped_lapses_and_is_refused_in_both(clip: Path, tmp_path: Path) -> None:
    """It must be stopped for longer than a lease, and come back before the end to be told so. Without a tail
    nobody is done with its chunk before that."""
    case = Case("stall", "guided,12", "none", 12, stall=(0.2, 0.8))
    scenario = scenario_of(case, FLEETS["B"], FRAMES, 8.0, tmp_path)
    there, here = simulated(scenario, tmp_path), live(scenario, clip, tmp_path)
    assert (there.lapses, there.refusals) == (1, 1)
    assert here.lapses >= 1 and here.refusals >= 1
    assert 0.8 <= here.seconds / there.seconds <= 1.3 / min(here.pace, 1.0)
