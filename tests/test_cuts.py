"""``--cuts``: files that are read or refused by their line, and a grid in which every cut is a boundary."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.cuts import cuts_of_job, read_cuts, scene_grid, words_for_cuts
from farm.errors import UsageError
from farm.media.constant import make_constant
from farm.plan import cut_grid
from farm.settings import GridSettings, JobSettings, settings_hash
from farm.source import Filtered, ImageFile, SourceIndex, part_cuts
from farm.trim import parse_trim, trim_index


def film(frames: int = 480, keys: tuple[int, ...] = (), step: int = 1) -> SourceIndex:
    """At 24 frames a second."""
    return SourceIndex(
        path="in.mkv",
        fingerprint="f",
        container="matroska",
        stream=0,
        codec="h264",
        width=64,
        height=48,
        pix_fmt="yuv420p",
        time_base=(1, 24),
        frame_rate=(24, 1),
        sample_aspect_ratio=None,
        pts=tuple(range(0, frames * step, step)),
        keys=keys,
        packets=(),
    )


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def scenes(*cuts: int, frames: int, **more: Any) -> str:
    pairs = pairwise((0, *cuts, frames))
    listed = [{"start_frame": a, "end_frame": b, "zone_overrides": None} for a, b in pairs]
    return json.dumps({"frames": frames, "scenes": listed, "split_scenes": listed} | more)


def test_a_list_has_one_frame_a_line_and_remarks(tmp_path: Path) -> None:
    path = written(tmp_path / "cuts.txt", "\ufeff# scenes\n24\n\n  120  # the door\r\n121\n")
    assert read_cuts(path) == ((24, 120, 121), None)
    assert read_cuts(written(path, "0\n24\n")) == ((24,), None), "scenes begin with the film"


def test_av1ans_scenes_are_read_with_the_frames_they_were_found_in(tmp_path: Path) -> None:
    path = written(tmp_path / "scenes.json", scenes(24, 120, frames=480))
    assert read_cuts(path) == ((24, 120), 480)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("12\nabc\n", "line 2: abc is no frame"),
        ("12\n-3\n", "line 2: -3 is no frame"),
        ("1.5", "line 1: 1.5 is no frame"),
        ("١٢", "is no frame"),
        ("24\n0\n", "line 2: 0 comes after 24"),
        ("0\n", "holds no frame at which a part could begin"),
        ("24\n24\n", "line 2: 24 comes after 24"),
        ("24\n48\n\n30\n", "line 4: 30 comes after 48"),
        ("", "holds no frame"),
        ("# nothing\n", "holds no frame"),
        ("{", "is not Av1an's scenes.json"),
        ('{"frames": 10}', "is not Av1an's scenes.json"),
        ('{"frames": 10, "scenes": []}', "end at 0"),
        (scenes(4, frames=10, frames_=1).replace('"frames": 10', '"frames": 12'), "end at 10"),
        (scenes(4, 8, frames=10).replace('"start_frame": 8', '"start_frame": 7'), "scene 3 is 7 to 10"),
        (scenes(4, frames=10).replace('"end_frame": 10', '"end_frame": 4'), "scene 2 is 4 to 4"),
    ],
)
def test_a_file_that_is_no_list_of_cuts_is_refused_with_its_line(
    text: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        read_cuts(written(tmp_path / "cuts", text))
    assert words in str(refused.value) and "cuts" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "video").write_bytes(b"\x00\xff\xfe" * 100)
    with pytest.raises(UsageError, match="neither"):
        read_cuts(tmp_path / "video")
    with pytest.raises(UsageError, match="can't be read"):
        read_cuts(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="can't be read"):
        read_cuts(tmp_path)


@given(
    frames=st.integers(2, 2000),
    target=st.integers(1, 300),
    fixed=st.booleans(),
    data=st.data(),
)
def test_every_cut_is_a_boundary_and_scenes_are_cut_like_films_of_their_own(
    frames: int, target: int, fixed: bool, data: st.DataObject
) -> None:
    inside = st.lists(st.integers(1, frames - 1), unique=True, max_size=30).map(sorted)
    cuts, keys = data.draw(inside), tuple(data.draw(inside))
    grid = scene_grid(frames, target, keys, cuts, fixed=fixed)
    assert set(cuts) <= set(grid) and (grid[0], grid[-1]) == (0, frames)
    for start, stop in pairwise((0, *cuts, frames)):
        own = part_cuts(
            stop - start, target, tuple(k - start for k in keys if start <= k < stop), fixed=fixed
        )
        assert [place - start for place in grid if start <= place <= stop] == list(own)


def test_long_scenes_are_divided_at_keyframes_or_regularly() -> None:
    index = film(480, keys=(0, 100, 200, 290, 390))
    asked = GridSettings(frames=96, cuts=(150, 160))
    assert cut_grid(index, asked) == (0, 100, 150, 160, 290, 390, 480)
    fixed = msgspec.structs.replace(asked, fixed=True)
    assert cut_grid(index, fixed) == (0, 96, 150, 160, 256, 352, 448, 480)


def asked(*cuts: int, made_for: int | None = None) -> GridSettings:
    return GridSettings(cuts=cuts, cuts_made_for=made_for)


def test_cuts_count_frames_of_the_input_whatever_is_taken_of_it() -> None:
    whole = film(480)
    cuts = asked(24, 120, 121, 300)
    assert cuts_of_job(whole, cuts) == (24, 120, 121, 300)
    ranged = trim_index(whole, parse_trim(None, None, "100:200", 1))
    assert cuts_of_job(ranged, cuts) == (20, 21)
    assert cuts_of_job(trim_index(whole, parse_trim(None, None, "120:300", 1)), cuts) == (1,)
    # Frames 0, 7, 14, …: 24 falls before 28, which is the job's frame 4; 120 and 121 both before 126.
    thirds = trim_index(whole, parse_trim(None, None, None, 7))
    assert cuts_of_job(thirds, cuts) == (4, 18, 43)
    assert "1 of the 4 cuts" in words_for_cuts(thirds, cuts, 4)[0]


def test_with_a_constant_rate_a_cut_is_where_the_frame_is_first_shown() -> None:
    doubled = make_constant(film(100), Fraction(48))
    assert cuts_of_job(doubled, asked(24, 25)) == (48, 50)
    halved = make_constant(film(100), Fraction(12))
    picks = halved.input_numbers
    for cut in (24, 25, 51):
        (place,) = cuts_of_job(halved, asked(cut))
        assert picks[place - 1] < cut <= picks[place]
    ranged = trim_index(doubled, parse_trim(None, None, "40:60", 1))
    assert cuts_of_job(ranged, asked(24, 25)) == (8, 10)
    with pytest.raises(UsageError, match="has 100 frames"):
        cuts_of_job(doubled, asked(100))


def test_cuts_of_images_count_them_from_0_whatever_their_numbers_are() -> None:
    images = tuple(ImageFile(1001 + n, f"f.{1001 + n}.png", 1, 0) for n in range(10, 40, 2))
    index = msgspec.structs.replace(film(15, step=2), images=images, origin=-10, input_frames=60, packets=())
    assert cuts_of_job(index, asked(5, 20, 21, 59)) == (5, 6)


@pytest.mark.parametrize("cut", [480, 481, 5000])
def test_cuts_past_the_end_are_refused_with_how_long_the_input_is(cut: int) -> None:
    with pytest.raises(UsageError, match=f"{cut} is not inside the input, which has 480 frames, 0 to 479"):
        cut_grid(film(480), asked(24, cut, 6000))
    with pytest.raises(UsageError, match=f"{cut} is not inside"):
        cut_grid(trim_index(film(480), parse_trim(None, None, "0:48", 1)), asked(24, cut))


def test_scenes_of_another_film_are_refused_with_both_lengths() -> None:
    with pytest.raises(UsageError, match="a film of 500 frames, and the input has 480"):
        cut_grid(film(480), asked(24, made_for=500))
    trimmed = trim_index(film(480), parse_trim(None, None, "0:48", 2))
    assert cuts_of_job(trimmed, asked(24, made_for=480)) == (12,)


def test_scenes_so_short_that_the_file_grows_are_said() -> None:
    many, few = asked(*range(20, 480, 20)), asked(100, 220)
    (words,) = words_for_cuts(film(480), many, 24)
    assert "20 frames on average" in words and "10 to 14 %" in words
    assert not words_for_cuts(film(480), few, 6)
    assert not words_for_cuts(film(480), GridSettings(frames=12), 40)
    # Parts that are as short because that was asked for are no news.
    assert not words_for_cuts(film(480), asked(100), 40)
    # Where filters want the whole film it isn't cut.
    whole = msgspec.structs.replace(film(480), filtered=Filtered(source=film(480), whole=("asked for",)))
    assert words_for_cuts(whole, few, 1) == ["--cuts means nothing here, for the film is one part"]


def test_other_cuts_are_another_job() -> None:
    def hashed(grid: GridSettings) -> str:
        return settings_hash(JobSettings(grid=grid), "build", "fingerprint")

    assert len({hashed(GridSettings()), hashed(asked(24)), hashed(asked(25))}) == 3
    assert hashed(asked(24, made_for=480)) == hashed(asked(24)), "the same cuts from another kind of file"
