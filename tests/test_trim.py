"""Which frames a job takes: exact in rationals, and half open."""

from __future__ import annotations

from fractions import Fraction

import pytest

from farm.errors import UsageError
from farm.settings import Moment, TrimSettings
from farm.trim import kept_frames, parse_moment, parse_trim

PAL = Fraction(1, 25)
NTSC = Fraction(1001, 30_000)


def taken(pts: range | list[int], time_base: Fraction, **typed: str | int | None) -> list[int]:
    given = {"start": None, "stop": None, "frames": None, "every": 1} | typed
    return list(kept_frames(pts, time_base, parse_trim(**given)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12.5", Fraction(25, 2)),
        ("90s", Fraction(90)),
        ("1:30", Fraction(90)),
        ("00:01:30.500", Fraction(181, 2)),
        ("0.1", Fraction(1, 10)),
        ("100:00:00", Fraction(360_000)),
    ],
)
def test_times_are_exact(text: str, seconds: Fraction) -> None:
    assert parse_moment(text, "--start") == Moment(seconds=(seconds.numerator, seconds.denominator))


@pytest.mark.parametrize("text", ["", "x", "-1", "1:60", "1:2:3:4", "12f5", "1e3", "٣", "1,5", "nan", ":30"])
def test_what_is_no_time_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(UsageError, match=r"--start .*120f"):
        parse_moment(text, "--start")


def test_ranges_are_half_open() -> None:
    assert taken(range(100), PAL, frames="10:13") == [10, 11, 12]
    assert taken(range(100), PAL, frames="97:") == [97, 98, 99]
    assert taken(range(100), PAL, frames=":2") == [0, 1]
    assert taken(range(100), PAL, start="1", stop="1.08") == [25, 26]
    assert taken(range(100), PAL, start="98f") == [98, 99]


def test_a_frame_on_the_very_moment_counts_to_what_begins_there() -> None:
    # 0.1 s is frame 2.997 of 29.97 fps: frame 3 is the first one at that time or later.
    assert taken(range(100), NTSC, start="0.1", stop="0.2") == [3, 4, 5]
    assert taken(range(100), NTSC, start="1.001", stop="2.002") == list(range(30, 60))


def test_times_count_from_the_first_frame_whatever_its_own_time_is() -> None:
    late = [250 + 2 * n for n in range(50)]
    assert taken(late, Fraction(1, 50), start="1", stop="1.08") == [25, 26]


def test_variable_frame_rate_is_cut_by_the_frames_own_times() -> None:
    assert taken([0, 1, 2, 50, 51, 90], Fraction(1, 100), start="0.02", stop="0.9") == [2, 3, 4]


def test_every_counts_from_the_first_frame_that_is_kept() -> None:
    assert taken(range(100), PAL, frames="5:20", every=5) == [5, 10, 15]


def test_past_the_end_is_the_end() -> None:
    assert taken(range(10), PAL, frames="8:500") == [8, 9]
    assert taken(range(10), PAL, stop="1:00:00") == list(range(10))


@pytest.mark.parametrize("typed", [{"frames": "10:20"}, {"start": "1"}, {"start": "0.11", "stop": "0.12"}])
def test_nothing_left_is_said_with_how_long_the_input_is(typed: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"10 frames, the last one at 0\.360 s"):
        taken(range(10), PAL, **typed)


@pytest.mark.parametrize(
    "typed",
    [
        {"frames": "5:5"},
        {"frames": "9:3"},
        {"frames": ":"},
        {"frames": "1-5"},
        {"frames": "5"},
        {"start": "3", "stop": "2"},
        {"frames": "1:2", "start": "1"},
        {"frames": "-5:2"},
    ],
)
def test_ranges_that_make_no_sense_are_refused_before_any_work(typed: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        taken(range(10), PAL, **typed)


def test_no_trim_takes_all() -> None:
    assert taken(range(10), PAL) == list(range(10))
    assert parse_trim(None, None, None, 1) == TrimSettings()
