"""Ranges, the part grid, ids and tokens. (What is refused as an id: tests/relay/test_ids.py.)"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import IdError
from farm.frames import ClaimToken, FrameRange, PartGrid, chunk_id, parse_chunk_id, parse_token

#: parts that differ, and parts of one size but for the last
sizes = st.lists(st.integers(1, 30), min_size=1, max_size=30) | st.tuples(
    st.integers(1, 9), st.integers(0, 9), st.integers(1, 10)
).map(lambda regular: [regular[0]] * regular[1] + [regular[2]])


def grid_of(parts: list[int]) -> PartGrid:
    cuts = [0]
    for size in parts:
        cuts.append(cuts[-1] + size)
    return PartGrid(cuts)


def test_a_range_is_half_open_and_never_empty() -> None:
    assert len(FrameRange(3, 5)) == 2
    assert str(FrameRange(3, 5)) == "[3, 5)"
    for start, stop in ((5, 5), (6, 5), (-1, 5)):
        with pytest.raises(ValueError, match="not a frame range"):
            FrameRange(start, stop)


@pytest.mark.parametrize("cuts", [(), (0,), (1, 2), (0, 0), (0, 5, 5), (0, 5, 4)])
def test_cuts_that_make_no_grid(cuts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="increase strictly"):
        PartGrid(cuts)


@given(sizes)
def test_every_frame_is_in_exactly_one_part(parts: list[int]) -> None:
    grid = grid_of(parts)
    assert (grid.parts, grid.frames) == (len(parts), sum(parts))
    for frame in range(grid.frames):
        part = grid.part_at(frame)
        assert grid.start(part) <= frame < grid.stop(part)
        assert grid.range(part) == FrameRange(grid.start(part), grid.stop(part))
        assert len(grid.range(part)) == grid.size(part) == parts[part]
    assert grid.part_at(grid.frames) == grid.parts
    assert list(grid.parts_in(0, grid.frames)) == list(range(grid.parts))


def test_equal_cuts_are_equal_grids() -> None:
    assert PartGrid([0, 5]) == PartGrid((0, 5)) and hash(PartGrid([0, 5])) == hash(PartGrid((0, 5)))
    assert PartGrid((0, 5)) != PartGrid((0, 6))
    assert PartGrid((0, 5)) != (0, 5)


@given(sizes, st.data(), st.floats(0, 1000) | st.integers(0, 1000) | st.just(math.inf))
def test_a_chunk_ends_at_the_nearest_cut(parts: list[int], data: st.DataObject, frames: float) -> None:
    """At least one part, at most the limit, and no cut in between is nearer to what was asked for."""
    grid = grid_of(parts)
    first = data.draw(st.integers(0, grid.parts - 1))
    last = data.draw(st.integers(first + 1, grid.parts))
    start, limit = grid.cuts[first], grid.cuts[last]
    stop = grid.stop_for(start, frames, limit)
    assert stop in grid.cuts[first + 1 : last + 1]
    if frames != math.inf:
        wanted = start + frames
        assert abs(stop - wanted) == min(abs(cut - wanted) for cut in grid.cuts[first + 1 : last + 1])


@pytest.mark.parametrize(
    ("frames", "stop"), [(0, 12), (1, 12), (12, 12), (17.9, 12), (18, 24), (30, 36), (30.1, 36), (999, 48)]
)
def test_sizes_are_rounded_to_whole_parts_and_ties_to_the_larger(frames: float, stop: int) -> None:
    grid = PartGrid(range(0, 121, 12))
    assert grid.stop_for(0, frames, 48) == stop


def test_ids_are_written_as_they_are_read() -> None:
    for number in (0, 1, 10, 10**17):
        assert parse_chunk_id(chunk_id(number)) == number


@given(st.integers(0, 10**17), st.integers(1, 10**17), st.integers(1, 10**17))
def test_tokens_are_written_as_they_are_read(chunk: int, attempt: int, epoch: int) -> None:
    token = ClaimToken(chunk, attempt, epoch)
    assert parse_token(str(token)) == token


@given(st.text(max_size=12) | st.from_regex(r"c[0-9٣]{1,3}#[0-9]{1,2}@e[0-9]{1,2}[\n ]?", fullmatch=True))
def test_what_parses_is_exactly_what_would_be_written(text: str) -> None:
    """No second spelling of a token, whatever comes."""
    try:
        token = parse_token(text)
    except IdError as error:
        assert error.reason
    else:
        assert str(token) == text


@pytest.mark.parametrize(
    ("received", "reason"),
    [
        (None, "missing"),
        (7, "is text"),
        ("", "is empty"),
        ("c0", "looks like"),
        ("c01#1@e1", "without leading zeros"),
        ("c3#1@e1", "no such chunk: 3 exist"),
        ("c0#0@e1", "start at 1"),
        ("c0#x@e1", "attempt"),
        ("c0#1@e01", "epoch"),
    ],
)
def test_a_refused_token_says_why(received: object, reason: str) -> None:
    with pytest.raises(IdError, match=reason):
        parse_token(received, 3)


def test_before_any_chunk_every_id_is_out_of_range() -> None:
    with pytest.raises(IdError, match="no chunk exists yet"):
        parse_chunk_id("c0", 0)
