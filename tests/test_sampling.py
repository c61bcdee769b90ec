"""Which parts a sample takes, and what is predicted from it."""

from __future__ import annotations

from itertools import pairwise
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm import events as ev
from farm.errors import UsageError
from farm.fleet import WorkerProfile
from farm.frames import PartGrid
from farm.parts import PartHeader, PartPacket, PartWriter, overhead_bytes
from farm.sampling import SampleSize, extrapolate, parse_sample, predict, sample_parts

GRID = PartGrid(tuple(range(0, 1001, 10)))  # 100 parts of 10 frames


def credited(part: int, worker: str = "w1", *, size: int = 730, seconds: float = 1.0) -> ev.PartCredited:
    """730: header and footer of a part file, and 33 bytes for each packet, without a byte of video."""
    return ev.PartCredited(
        part=part,
        frames=10,
        token="c0#1@e1",
        worker=worker,
        file="",
        size_bytes=size,
        sha256="",
        render_seconds=seconds,
    )


@pytest.mark.parametrize("text", ["0", "0%", "-5%", "101%", "5 %", "five", "", "1e3", "٥%"])
def test_what_is_no_sample(text: str) -> None:
    with pytest.raises(UsageError, match="--sample"):
        parse_sample(text)


@given(parts=st.integers(1, 3000), share=st.floats(0.1, 100), number=st.integers(1, 4000), by=st.booleans())
def test_a_sample_has_both_ends_and_what_is_between_evenly(
    parts: int, share: float, number: int, by: bool
) -> None:
    size = parse_sample(f"{share:.3f}%") if by else parse_sample(str(number))
    chosen = sample_parts(parts, size)
    assert len(chosen) == size.of(parts) >= min(3, parts)
    assert chosen[0] == 0 and chosen[-1] == parts - 1
    steps = {after - before for before, after in pairwise(chosen)}
    assert not steps or (min(steps) >= 1 and max(steps) - min(steps) <= 1)


def test_a_share_is_of_the_parts() -> None:
    assert len(sample_parts(1000, SampleSize(share=0.05))) == 50
    assert len(sample_parts(20, SampleSize(share=0.05))) == 3, "fewer say nothing of how parts differ"


def test_what_is_between_two_parts_is_read_off_a_straight_line() -> None:
    """A film that grows evenly costlier is told exactly by its ends and its middle."""
    values = {part: 5.0 + part for part in range(100)}
    found = extrapolate(GRID, {part: values[part] for part in (0, 50, 99)})
    assert isclose(found.likely, sum(10 * value for value in values.values()))
    assert found.low < found.likely < found.high, "that it grows evenly isn't known"


def test_all_parts_leave_no_doubt_and_one_leaves_much() -> None:
    whole = extrapolate(GRID, {part: part % 7 for part in range(100)})
    assert whole.low == whole.likely == whole.high == sum(10 * (part % 7) for part in range(100))
    one = extrapolate(GRID, {0: 2.0})
    assert one.low == 20 and one.likely == 2000 and one.high >= 2 * one.likely - 20


def test_what_is_rendered_is_the_least_it_can_come_to() -> None:
    wild = extrapolate(GRID, {0: 1.0, 50: 100.0, 99: 1.0})
    assert wild.low == 10 * 102.0


@given(st.lists(st.floats(0.5, 2.0), min_size=100, max_size=100))
def test_the_range_is_rather_too_wide_where_parts_differ_by_chance(values: list[float]) -> None:
    """Not a bound: about one in ten may lie without. But never far."""
    chosen = sample_parts(100, SampleSize(parts=20))
    found = extrapolate(GRID, {part: values[part] for part in chosen})
    real = 10 * sum(values)
    assert 0.4 * real < found.likely < 2.5 * real


def test_speeds_of_the_fleet_make_the_time() -> None:
    """w1 renders 10 frames a second, w2 5; w3 had no part and is capped at 5: 1000 frames in 50 s."""
    fleet = [WorkerProfile(name="w1"), WorkerProfile(name="w2"), WorkerProfile(name="w3", fps_cap=5.0)]
    credits = {part: credited(part, "w1") for part in (0, 25, 50)}
    credits |= {part: credited(part, "w2", seconds=2.0) for part in (75, 99)}
    found = predict(GRID, credits, fleet)
    assert found is not None and found.likely_seconds is not None and found.rest_seconds is not None
    assert isclose(found.likely_seconds, 50.0) and isclose(found.rest_seconds, 47.5)
    slower = predict(GRID, credits, fleet, fps_possible=10.0)
    assert slower is not None and slower.likely_seconds is not None
    assert isclose(slower.likely_seconds, 100.0), "together they can't give more than the machine has"


def test_without_a_part_nothing_is_predicted_and_without_speeds_no_time() -> None:
    assert predict(GRID, {}) is None
    found = ev.PartAdopted(part=0, frames=10, file="", size_bytes=2000, sha256="")
    adopted = predict(GRID, {0: found, 99: found})
    assert adopted is not None and adopted.likely_seconds is None and adopted.likely_bytes > 0


def test_the_size_is_that_of_the_packets(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """What a part file adds is taken off, to a few bytes."""
    header = PartHeader(
        part=0,
        start=0,
        stop=100,
        settings_hash="0" * 32,
        codec="h264",
        width=1920,
        height=1080,
        pix_fmt="yuv420p",
        time_base=(1, 12800),
        extradata=bytes(48),
    )
    with PartWriter(tmp_path / "part", header) as writer:
        for number in range(100):
            writer.add(PartPacket(number * 512, None, 512, number == 0, bytes(400)))
        facts = writer.finish(frames=100, first_frame_crc=1 << 31, next_frame_crc=1 << 31)
    credit = ev.PartAdopted(part=0, frames=100, file="", size_bytes=facts.size_bytes, sha256="")
    found = predict(PartGrid((0, 100)), {0: credit}, file_bytes=overhead_bytes(tmp_path / "part"))
    assert found is not None and abs(found.video_bytes - 40_000) < 30
