"""How far off the estimates are, and whether the ranges hold what comes. docs/scheduling.md has the figures
of many orders and seeds (benchmarks/estimate_errors.py)."""

from __future__ import annotations

from statistics import median

import pytest

from tests.forecast.looking import look, world_with


@pytest.mark.parametrize(
    ("schedule", "fleet", "part", "ahead"),
    [
        ("fair+split", "A", 1, True),
        ("fair+split", "B", 1, False),
        ("fair+split", "A", 48, True),
        ("guided,12+duplicate-oldest", "A", 1, False),
        ("guided,12+duplicate-oldest", "B", 48, True),
        ("guided,12+late", "A", 48, False),
        ("fixed,48+none", "A", 1, False),
        ("static+split", "B", 1, False),
        ("af+duplicate-oldest", "A", 1, False),
    ],
)
def test_with_steady_workers_the_end_is_known_within_seconds(
    schedule: str, fleet: str, part: int, ahead: bool
) -> None:
    looks = [each for each in look(world_with(schedule, fleet, part=part, ahead=ahead)) if each.share >= 0.1]
    assert median(each.error for each in looks) < 1.5
    assert max(each.error for each in looks if each.share >= 0.2) < 5.0
    assert sum(each.within for each in looks) >= 0.8 * len(looks)
    assert {each.told.by for each in looks} == {"replay"}


@pytest.mark.parametrize("schedule", ["fair+split", "guided,12+duplicate-oldest"])
def test_with_noise_the_range_holds_what_comes(schedule: str) -> None:
    runs = [look(world_with(schedule, condition="noise", seed=seed), every_share=0.1) for seed in (1, 2, 3)]
    looks = [each for run in runs for each in run]
    assert sum(each.within for each in looks) >= 0.75 * len(looks)
    assert median(each.error for each in looks if each.share >= 0.5) < 4.0


def test_a_range_says_something() -> None:
    """One from nothing to for ever would always be right."""
    for each in look(world_with("fair+split"), every_share=0.1):
        assert each.told.low_seconds is not None and each.told.high_seconds is not None
        assert each.told.low_seconds > 0.5 * each.left - 1
        assert each.told.high_seconds < 1.5 * each.left + 5


def test_a_silent_worker_may_come_back() -> None:
    """The fastest is silent for a minute: it isn't counted on, but the range has room for its return."""
    looks = look(world_with("fair+split", condition="stall", seed=1), every_share=0.05)
    wide = [each for each in looks if each.told.low_seconds is not None and not each.share < 0.1]
    assert sum(each.within for each in wide) >= 0.5 * len(wide)
