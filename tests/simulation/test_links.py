"""Simulated deliveries over links: block by block through the real relay, whose books are recounted."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from farm import events as ev
from farm.errors import UsageError
from farm.fleet import LinkProfile
from farm.manners import DELIVERIES_MAX
from farm.simulation.runs import encode_log
from farm.simulation.world import World, check_world

from .worlds import run, saw, small_world, worker

FRAME_BYTES = 20_000
#: A part of five frames takes a second and a tenth.
SECOND = LinkProfile(mib_per_second=5 * FRAME_BYTES / (1 << 20), latency_seconds=0.1)
BAD = LinkProfile(mib_per_second=0.2, latency_seconds=0.05, drop_rate=0.3, block_bytes=20_000)
POLICIES = [("fair", "split"), ("guided,12", "duplicate-oldest,from=frontier"), ("fixed,20", "none")]


def linked(
    link: LinkProfile | None, policy: str = "fixed,20", tail: str = "none", **options: object
) -> World:
    workers = [worker(f"w{n}", fps, link=link) for n, fps in enumerate((10.0, 10.0, 4.0, 1.0), 1)]
    return small_world(*workers, frames=400, policy=policy, tail=tail, **options)


def test_a_delivery_takes_the_time_of_its_bytes_beside_rendering() -> None:
    """20 frames a second, a part of 5 takes 0.25 s to render and 1.1 s to deliver: the link sets the pace."""
    result = run(small_world(worker("w1", 20.0, link=SECOND), frames=50, policy="fixed,50"))
    credits = [at for at, _ in saw(result, ev.PartCredited)]
    assert credits == pytest.approx([0.25 + 1.1 * n for n in range(1, 11)])
    assert result.wasted_frames == 0


def test_a_fast_link_costs_next_to_nothing() -> None:
    near, far = run(linked(None)), run(linked(LinkProfile(mib_per_second=1000.0)))
    assert near.makespan_seconds is not None and far.makespan_seconds is not None
    assert far.makespan_seconds == pytest.approx(near.makespan_seconds, rel=0.01)


@pytest.mark.parametrize(("policy", "tail"), POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_bad_link_loses_nothing(policy: str, tail: str, seed: int) -> None:
    result = run(linked(BAD, policy, tail), seed=seed)
    assert result.finished and result.credited_frames == 400
    assert len(saw(result, ev.PartCredited)) == 80
    for _, stored in saw(result, ev.BlockStored):
        assert 0 < stored.done <= stored.of == 5
    assert not saw(result, ev.MessageRefused)


def test_a_break_costs_the_block_and_no_more() -> None:
    """Ever further, whatever breaks; what is stored twice is only what is asked about again."""
    result = run(small_world(worker("w1", link=BAD), frames=100, policy="fixed,100"))
    done: dict[int, list[int]] = {}
    for _, event in saw(result, ev.BlockStored):
        done.setdefault(event.part, []).append(event.done)
    assert all(counts == sorted(counts) and set(counts) == {1, 2, 3, 4, 5} for counts in done.values())
    assert any(len(counts) > 5 for counts in done.values()), "it broke now and then"


def test_places_are_bounded_and_nobody_is_dropped_or_stalled() -> None:
    workers = [worker(f"w{n}", 100.0, link=SECOND) for n in range(1, 41)]
    times = {"stall_timeout_seconds": 2.0, "heartbeat_seconds": 0.5}
    world = small_world(*workers, frames=400, policy="fixed,5", tail="none", **times)
    result = run(world)
    assert result.credited_frames == 400 and not saw(result, ev.PartFailed)
    at = sorted(at for at, _ in saw(result, ev.PartCredited))
    assert all(later - earlier > 1.0 for earlier, later in zip(at, at[DELIVERIES_MAX:], strict=False))


@pytest.mark.parametrize("trouble", ["silences", "partitions", "dies"])
def test_a_worker_in_trouble_in_mid_delivery(trouble: str) -> None:
    """Stopped, cut off or dead while a part is on its way: its place is free again and all is credited."""
    times = {"dies_at_seconds": 1.2} if trouble == "dies" else {trouble: ((1.2, 40.0),)}
    bad = worker("w1", 10.0, link=SECOND, **times)
    world = small_world(
        bad, worker("w2", 10.0, link=SECOND), frames=60, lease_seconds=5.0, heartbeat_seconds=1.0
    )
    result = run(world)
    assert result.finished and result.credited_frames == 60


def test_one_world_one_log() -> None:
    """Byte for byte, in another process with another hash seed too; another seed breaks elsewhere."""
    world = linked(BAD, "fair", "split", claim_ahead=True)
    log = encode_log(run(world).records)
    assert encode_log(run(world).records) == log
    assert encode_log(run(world, seed=1).records) != log
    code = (
        "from tests.simulation.test_links import *; import sys;"
        "sys.stdout.buffer.write(encode_log(run(linked(BAD, 'fair', 'split', claim_ahead=True)).records))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert other.stdout == log


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("mib_per_second", 0.0, r"worker\[0\]\.link\.mib_per_second: 0\.0 is not a number above 0"),
        ("latency_seconds", -1.0, r"worker\[0\]\.link\.latency_seconds"),
        ("drop_rate", 1.0, r"worker\[0\]\.link\.drop_rate: 1\.0 is not a probability below 1"),
        ("block_bytes", 0, r"worker\[0\]\.link\.block_bytes"),
    ],
)
def test_a_link_that_can_not_be_is_refused(field: str, value: float, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_world(linked(replace(SECOND, **{field: value})))


def test_frames_have_a_size() -> None:
    with pytest.raises(UsageError, match="frame_bytes: 0 is not a number above 0"):
        check_world(replace(linked(None), frame_bytes=0))
    small = run(linked(SECOND), frame_bytes=100.0).makespan_seconds
    large = run(linked(SECOND), frame_bytes=40_000.0).makespan_seconds
    assert small is not None and large is not None and small * 2 < large


def test_a_worker_is_given_what_its_link_can_carry() -> None:
    """Two workers of 20 frames a second, one behind a link for 4.5: fair shares by what comes of it."""
    slow, near = worker("slow", 20.0, link=SECOND), worker("near", 20.0)
    world = small_world(slow, near, frames=2000, policy="fair", tail="split", claim_ahead=True)
    result = run(world)
    done = {each.name: each.credited_frames for each in result.workers}
    assert result.makespan_seconds is not None and result.makespan_seconds < 1.15 * 2000 / 24.5
    assert 200 < done["slow"] < 500
