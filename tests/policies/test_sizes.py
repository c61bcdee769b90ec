"""How many frames each policy gives: sequences worked out by hand, and those printed in the literature.

The 1,000 iterations on 4 processors are the example by which loop scheduling methods are commonly compared
(for instance in Chronopoulos et al., "A class of loop self-scheduling for heterogeneous clusters", 2001).
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from farm.frames import PartGrid
from farm.policies.adaptive_factoring import Af
from farm.policies.assignment import Adaptive, Decaying, Granular, Static
from farm.policies.base import Policy
from farm.policies.factoring import AwfB, AwfC, Fac2, Wf
from farm.policies.fixed import Fixed
from farm.policies.guided import Gss, Guided
from farm.policies.speeds import Speeds
from farm.policies.trapezoid import Tss
from tests.policies.handing import ask, measured, sizes

GSS_1000 = [250, 188, 141, 106, 79, 59, 45, 33, 25, 19, 14, 11, 8, 6, 4, 3, 3, 2, 1, 1, 1, 1]
TSS_1000 = [125, 117, 109, 101, 93, 85, 77, 69, 61, 53, 45, 37, 28]
FAC2_1000 = [size for size in (125, 63, 31, 16, 8, 4, 2, 1) for _ in range(4)]


@pytest.mark.parametrize(
    ("policy", "frames", "workers", "expected"),
    [
        (Fixed(48), 100, 4, [48, 48, 4]),
        (Gss(), 1000, 4, GSS_1000),
        (Gss(12), 1000, 4, [250, 188, 141, 106, 79, 59, 45, 33, 25, 19, 14, 12, 12, 12, 5]),
        (Tss(), 1000, 4, TSS_1000),
        (Tss(first=10, last=4), 40, 4, [10, 9, 8, 7, 6]),
        (Fac2(), 1000, 4, FAC2_1000),
        (Wf(), 1000, 4, FAC2_1000),  # nothing declared: all alike
        (Static(), 4800, 4, [1200] * 4),
        (Static(), 5, 4, [2, 1, 1, 1]),
        (Static(), 3, 4, [1, 1, 1]),
        (Decaying(), 16, 4, [4, 3, 2, 1, 1, 1, 1, 1, 1, 1]),
        (Granular(4), 4800, 4, [300] * 16),
        (Granular(1), 10, 4, [3, 3, 3, 1]),  # 2.5 each, rounded to the nearest part
        # 800 / (4 x 2) = 100 while at least 160 are open, then R / 4 but no less than 10
        (Adaptive(split=2), 800, 4, [100] * 7 + [25, 19, 14, 11, 10, 10, 10, 1]),
        (Adaptive(split=1, min=10, max=150, tail=0), 800, 4, [150] * 5 + [50]),
        (Guided(12), 4800, 4, [600, 525, 460, 402, 352]),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else None,
)
def test_sizes_by_hand(policy: Policy, frames: int, workers: int, expected: list[int]) -> None:
    given = sizes(policy, frames, workers)
    assert given[: len(expected)] == expected
    assert isinstance(policy, Guided) or len(given) == len(expected)


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7, 64])
def test_static_slices_are_valid_for_every_job_and_fleet(workers: int) -> None:
    for frames in (*range(1, 150), 4800, 4801, 4803):
        given = sizes(Static(), frames, workers)
        assert sum(given) == frames and len(given) == min(frames, workers)
        assert max(given) - min(given) <= 1


@given(frames=st.integers(1, 10**9), workers=st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
@example(frames=5, workers=4)  # the write-up's formula gives an empty slice that begins beyond the end
def test_static_slices_are_valid_for_any_numbers(frames: int, workers: int) -> None:
    open_frames, slices = frames, list[int]()
    while open_frames:
        size = Static().size(ask(open_frames, workers, frames, grants=len(slices))).frames
        slices.append(min(round(size), open_frames))
        open_frames -= slices[-1]
    assert len(slices) == min(frames, workers) and max(slices) - min(slices) <= 1


@given(
    frames=st.integers(1, 20_000),
    workers=st.integers(1, 60),
    part=st.integers(1, 500),
)
@settings(max_examples=100, deadline=None)
@example(frames=4800, workers=4, part=500)  # rounded down one by one, five slices
def test_static_gives_one_slice_a_worker_in_whole_parts(frames: int, workers: int, part: int) -> None:
    part = min(part, max(frames // workers, 1))
    grid = PartGrid((*range(0, frames, part), frames))
    at, slices = 0, 0
    while at < frames:
        size = Static().size(ask(frames - at, workers, frames, grants=slices)).frames
        at = grid.stop_for(at, size, frames)
        slices += 1
    assert slices <= workers


def test_static_never_gives_more_than_a_slice_nor_more_than_is_open() -> None:
    """Half a slice more at most, when half the fleet is gone and its slices come back."""
    assert Static().size(ask(4800, workers=4, grants=0)).frames == 1200
    assert Static().size(ask(2400, workers=2, grants=3)).frames == 2400
    assert Static().size(ask(3600, workers=3, grants=2)).frames == 2400
    assert Static().size(ask(3600, workers=3, grants=3)).frames == 1600
    assert Static().size(ask(100, workers=4, grants=9)).frames == 100


def test_weighted_factoring_follows_declared_speeds() -> None:
    caps = {"w1": 30.0, "w2": 30.0, "w3": 12.0, "w4": 2.0}  # 18.5 on average
    given = sizes(Wf(), 4800, 4, caps=caps, asking=lambda n: f"w{n % 4 + 1}")
    assert given[0] == 973  # 600 x 30 / 18.5
    assert sizes(Wf(), 4800, 4, caps=dict.fromkeys(caps), asking=lambda n: f"w{n % 4 + 1}")[0] == 600


def test_a_worker_without_a_declared_speed_counts_as_the_mean() -> None:
    caps = {"w1": None, "w2": 10.0, "w3": 20.0, "w4": 30.0}
    assert Wf().size(ask(800, caps=caps)).frames == 100


@pytest.mark.parametrize("kind", [AwfB, AwfC])
def test_measured_factoring_begins_small_and_then_weighs(kind: type[AwfB] | type[AwfC]) -> None:
    assert kind().size(ask(4800)).frames == 60  # 0.05 x 4800 / 4
    known = kind().size(ask(4000, grants=4, speeds=measured([30, 30, 12, 2]), caps=dict.fromkeys(NAMES)))
    assert known.frames == 811  # 4000 / 8 x 30 / 18.5
    assert "1.62 x the mean" in known.why


def test_batches_keep_their_size_and_chunks_shrink() -> None:
    """Two grants into a batch awf-b sizes by what was open when it began, awf-c by what is open now."""
    speeds = measured([10, 10, 10, 10])
    assert AwfB().size(ask(600, grants=6, speeds=speeds)).frames == 100
    assert AwfC().size(ask(600, grants=6, speeds=speeds)).frames == 75


def test_adaptive_factoring_without_variance_gives_the_share_of_what_is_open() -> None:
    """By hand: T = 1 / 74, D = 0; 4000 x 30 / 74 = 1621.6."""
    given = Af().size(ask(4000, grants=4, speeds=measured([30, 30, 12, 2]), caps=dict.fromkeys(NAMES)))
    assert given.frames == 1622


def test_adaptive_factoring_gives_less_where_times_vary() -> None:
    """Half the frames took 0.05 s and half 0.15 s on each of four workers: m = 0.1, v = 0.0025, D = 0.1,
    T = 0.025; with R = 4000: (0.1 + 200 - sqrt(0.01 + 40)) / 0.2 = 968.9."""
    speeds = Speeds()
    for name in NAMES:
        speeds.learn(name).report(100, 5.0)
        speeds.learn(name).report(100, 15.0)
    assert Af().size(ask(4000, grants=4, speeds=speeds)).frames == 969


def test_speeds_count_from_the_end_of_a_chunk() -> None:
    """1. w1 ends its first chunk at 30 fps and asks. 2. w2 is heard at 10 fps in the middle of its chunk: not
    counted yet. 3. w2 ends it and asks. 4. It counts when w1 asks again."""
    policy, speeds = AwfC(), measured([30])
    names = dict.fromkeys(NAMES)
    assert policy.size(ask(800, speeds=speeds, caps=names)).frames == 100
    speeds.learn("w2").report(100, 10.0)
    again = ask(800, grants=1, speeds=speeds, caps=names)
    assert policy.size(again).frames == 100
    policy.size(ask(800, grants=2, speeds=speeds, caps=names, worker="w2"))
    assert policy.size(again).frames == 150  # 30 of 20 on average


def test_a_recovered_policy_begins_with_all_that_is_known() -> None:
    speeds = measured([30, 10])
    before, after = AwfC(), AwfC()
    for grants, worker in enumerate(("w1", "w2", "w1"), 1):
        last = before.size(ask(800, grants=grants, speeds=speeds, worker=worker))
    assert after.size(ask(800, grants=3, speeds=speeds)) == last


def test_who_left_is_not_counted_any_more() -> None:
    policy, speeds = AwfC(), measured([30, 10, 100, 100])
    assert policy.size(ask(800, grants=5, speeds=speeds, caps=dict.fromkeys(NAMES))).frames == 50
    left = ask(800, workers=2, grants=6, speeds=speeds, caps={"w1": None, "w2": None})
    assert policy.size(left).frames == 300  # 800 / 4 x 30 / 20


@pytest.mark.parametrize(
    ("open_frames", "policy", "frames"),
    [
        (4800, Guided(12), 600),
        (4801, Guided(12), 601),  # rounded up
        (96, Guided(12), 12),
        (95, Guided(12), 12),
        (8, Guided(12), 12),
        (4800, Guided(12, 300), 300),
        (1000, Guided(12, 300), 125),
        (8, Guided(1), 1),
    ],
)
def test_guided_is_half_a_share_within_bounds(open_frames: int, policy: Guided, frames: int) -> None:
    assert policy.size(ask(open_frames)).frames == frames


@given(st.integers(1, 10**6), st.integers(1, 500), st.integers(1, 100), st.none() | st.integers(100, 10**5))
def test_guided_never_leaves_its_bounds(open_frames: int, workers: int, low: int, high: int | None) -> None:
    frames = Guided(low, high).size(ask(open_frames, workers)).frames
    assert frames >= low and (high is None or frames <= high)
    if low < frames and (high is None or frames < high):
        assert (frames - 1) * 2 * workers < open_frames <= frames * 2 * workers


def test_a_decision_says_why() -> None:
    assert Fixed(48).size(ask(100)).why == "always 48 frames"
    assert Guided(12).size(ask(4800)).why == "4800 open frames / (2 x 4 workers) = 600"
    assert Guided(12).size(ask(8)).why.endswith("= 1, held within 12 and no maximum")
    assert Static().size(ask(4800)).why == "one of 4 equal slices of 4800 frames"
    assert Adaptive().size(ask(100)).why.startswith("last 20%: 100 open frames / 4 workers")


NAMES = ("w1", "w2", "w3", "w4")
