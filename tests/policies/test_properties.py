"""What holds for every policy, whatever the job, the fleet, the grid and the history of asks."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm.frames import PartGrid
from farm.policies.base import Ask
from farm.policies.fair import Fair
from farm.policies.registry import POLICIES, parse_policy
from farm.policies.situation import Busy, Situation
from farm.policies.speeds import Speeds
from tests.policies.handing import measured

SPELLED = (
    *POLICIES,
    "fixed,1",
    "granular,1",
    "adaptive,split=4,min=1,max=50,tail=1",
    "guided,1,9",
    "gss,12",
    "tss,50,9",
    "fac2,min=12",
    "awf-b,1,1",
    "awf-c,1,0",
    "af,1,1",
)
RATES = st.floats(1e-3, 1e4)


@pytest.mark.parametrize("text", SPELLED)
@given(
    frames=st.integers(1, 3000),
    part=st.sampled_from([1, 7, 48, 5000]),
    workers=st.integers(1, 9),
    rates=st.lists(RATES, min_size=9, max_size=9),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_a_job_is_handed_out_whole_and_ends(
    text: str, frames: int, part: int, workers: int, rates: list[float], seed: int
) -> None:
    """Workers leave, report any speed, ask in any order; what lapses is open again."""
    policy, lots = parse_policy(text), Random(seed)
    grid = PartGrid([*range(0, frames, part), frames])
    fleet = [f"w{n}" for n in range(1, workers + 1)]
    caps = {name: lots.choice([None, rate]) for name, rate in zip(fleet, rates, strict=False)}
    speeds, open_from, grants, lapses = Speeds(), 0, 0, 3
    out: list[tuple[int, int]] = []
    while open_from < frames:
        if len(fleet) > 1 and lots.random() < 0.05:
            caps.pop(fleet.pop())
        worker = lots.choice(fleet)
        open_frames = frames - open_from
        size = policy.size(Ask(worker, len(fleet), frames, open_frames, float(grants), grants, speeds, caps))
        assert size.why and math.isfinite(size.frames) and size.frames >= 1
        stop = grid.stop_for(open_from, size.frames, frames)
        assert open_from < stop <= frames
        out.append((open_from, stop))
        open_from, grants = stop, grants + 1
        if lots.random() < 0.5:
            speeds.learn(worker).report(lots.randint(0, stop - out[-1][0]), lots.choice([1e-3, 1.0, 1e5]))
        if lapses and lots.random() < 0.1:
            open_from, _ = out.pop()
            lapses -= 1
    assert [start for start, _ in out] == [0, *(stop for _, stop in out[:-1])]
    assert sum(stop - start for start, stop in out) == frames
    assert grants <= frames + 3


@pytest.mark.parametrize("text", SPELLED)
@given(
    frames=st.integers(1, 10**9),
    open_share=st.floats(0, 1),
    workers=st.integers(1, 10**4),
    grants=st.integers(0, 10**9),
    rates=st.lists(RATES, max_size=5),
    caps=st.lists(st.none() | RATES, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_a_size_is_always_a_number_of_frames(
    text: str, frames: int, open_share: float, workers: int, grants: int, rates: list[float], caps: list[Any]
) -> None:
    speeds = Speeds()
    for number, rate in enumerate(rates, 1):
        speeds.learn(f"w{number}").report(rate * 10, 10)
        speeds.learn(f"w{number}").report(rate, 10)
    size = parse_policy(text).size(
        Ask(
            worker="w1",
            workers=workers,
            total_frames=frames,
            open_frames=max(1, round(open_share * frames)),
            now=1.0,
            grants=grants,
            speeds=speeds,
            caps={f"w{number}": cap for number, cap in enumerate(caps, 1)},
        )
    )
    assert math.isfinite(size.frames) and 1 <= size.frames <= 2 * 10**9 and size.why


@pytest.mark.parametrize("text", SPELLED)
def test_the_same_asks_give_the_same_sizes(text: str) -> None:
    """No policy reads a clock or draws lots: two instances answer alike, ask by ask."""
    first, second = parse_policy(text), parse_policy(text)
    speeds = Speeds()
    open_frames = 5000
    for grants in range(40):
        worker = f"w{grants * 7 % 5 + 1}"
        ask = Ask(
            worker, 5, 5000, open_frames, float(grants), grants, speeds, {f"w{n}": 1.0 * n for n in range(6)}
        )
        size = first.size(ask)
        assert second.size(ask) == size
        open_frames = max(1, open_frames - round(size.frames))
        speeds.learn(worker).report(10 * grants + 1, 3.0)


@pytest.mark.parametrize("claims_ahead", [True, False])
@pytest.mark.parametrize("open_frames", [48, 4800])
def test_who_was_not_heard_for_long_waits_when_it_asks(claims_ahead: bool, open_frames: int) -> None:
    """A busy machine starved w1 for longer than a worker is reckoned with, and then it asked for its next
    claim: when it will be done with the one it has is not known."""
    claim = Busy("c0#1@e1", "w1", 0, 0, 48, 24, 24, True, False, 0.0, 1.0, 1)
    situation = Situation(
        now=100.0,
        total_frames=48 + open_frames,
        open_frames=open_frames,
        part_frames=24.0,
        workers=1,
        speeds=measured([10.0]),
        heartbeat_seconds=0.5,
        find_idle=lambda: (),
        find_busy=lambda: (claim,),
        splittable=lambda busy: busy.stop,
        cut_near=lambda busy, frame: None,
        claims_ahead=claims_ahead,
    )
    assert Fair().share("w1", situation) is None
