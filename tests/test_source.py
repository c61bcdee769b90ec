"""The part grid of a source, its index on disk, and the fingerprint of an input."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.source import SourceIndex, fingerprint, load_index, part_cuts, save_index


@given(
    frames=st.integers(1, 3000),
    target=st.integers(1, 300),
    keys=st.lists(st.integers(0, 3500), unique=True, max_size=60).map(sorted),
    fixed=st.booleans(),
)
def test_a_grid_covers_every_frame_with_parts_near_the_target(
    frames: int, target: int, keys: list[int], fixed: bool
) -> None:
    cuts = part_cuts(frames, target, tuple(keys), fixed=fixed)
    assert cuts[0] == 0 and cuts[-1] == frames
    slack = 0 if fixed else int(target * 0.4)
    lengths = [stop - start for start, stop in pairwise(cuts)]
    assert all(length > 0 for length in lengths)
    assert all(target - slack <= length <= target + slack for length in lengths[:-1])
    assert lengths[-1] <= target + slack


@given(st.integers(1, 3000), st.integers(1, 300))
def test_without_keyframes_the_grid_is_regular(frames: int, target: int) -> None:
    cuts = part_cuts(frames, target)
    assert list(cuts[:-1]) == [n * target for n in range(len(cuts) - 1)]


def test_fixed_cuts_do_not_snap() -> None:
    assert part_cuts(100, 48, (0, 40, 50, 90), fixed=True) == (0, 48, 96, 100)


@pytest.mark.parametrize(
    ("keys", "cut"),
    [
        ((95,), 95),
        ((105,), 105),
        ((60,), 60),
        ((140,), 140),
        ((59, 141), 100),  # both out of reach
        ((90, 105), 105),  # the nearer one
        ((92, 108), 92),  # a tie goes to the earlier one
        ((0, 99, 100), 100),
    ],
)
def test_a_cut_moves_to_the_nearest_keyframe_in_reach(keys: tuple[int, ...], cut: int) -> None:
    assert part_cuts(1000, 100, keys)[1] == cut


def test_each_cut_counts_from_the_one_before() -> None:
    assert part_cuts(400, 100, (120, 210, 330)) == (0, 120, 210, 330, 400)


def test_a_keyframe_serves_one_cut_only() -> None:
    assert part_cuts(60, 10, (14,)) == (0, 14, 24, 34, 44, 54, 60)


def test_every_frame_a_keyframe_is_a_regular_grid() -> None:
    assert part_cuts(35, 10, tuple(range(35))) == (0, 10, 20, 30, 35)


@pytest.mark.parametrize(("frames", "target"), [(0, 10), (10, 0), (-1, 10)])
def test_no_grid_without_frames_or_target(frames: int, target: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        part_cuts(frames, target)


def test_an_index_comes_back_from_disk(tmp_path: Path) -> None:
    index = SourceIndex(
        path="in.mkv",
        fingerprint="f",
        container="matroska",
        stream=0,
        codec="h264",
        width=64,
        height=48,
        pix_fmt="yuv420p",
        time_base=(1, 1000),
        frame_rate=(30000, 1001),
        sample_aspect_ratio=None,
        pts=(0, 33, 67),
        keys=(0,),
        packets=(),
    )
    save_index(index, tmp_path / "index")
    assert load_index(tmp_path / "index") == index
    assert index.frames == 3
    (tmp_path / "index").write_bytes((tmp_path / "index").read_bytes()[:-3])
    with pytest.raises(msgspec.DecodeError):
        load_index(tmp_path / "index")


@pytest.mark.parametrize("size", [0, 10, 64, 65, 100, 1000])
def test_a_fingerprint_survives_a_copy_and_sees_both_ends(tmp_path: Path, size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    path = tmp_path / "in"
    path.write_bytes(data)
    before = fingerprint(path, block_bytes=64)
    shutil.copy(path, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy", block_bytes=64) == before
    changes = [data + b"x"] + ([b"\xff" + data[1:], data[:-1] + b"\xff"] if data else [])
    for changed in changes:
        path.write_bytes(changed)
        assert fingerprint(path, block_bytes=64) != before
