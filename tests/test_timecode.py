"""Timecode: the labels of SMPTE ST 12, by a count made one by one; clocks where frames can't be counted."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from farm.errors import UsageError
from farm.timecode import Clock, Timecode, clock_time, is_label_of, labels_for, parse_label, retimed

NTSC = Fraction(30_000, 1001)
FAST_NTSC = Fraction(60_000, 1001)
FILM = Fraction(24_000, 1001)


def labels(
    rate: Fraction | float,
    told: str | None = None,
    found: str = "",
    count: int = 100,
    said: Fraction | None = None,
) -> Timecode | Clock:
    """Of a film of that rate, one tick a frame."""
    rate = Fraction(rate)
    return labels_for(range(count), 0, 1 / rate, said or rate, told, found)


def one_by_one(nominal: int, dropped: int, minutes: int) -> Iterator[str]:
    """Every label that there is, in order."""
    for minute in range(minutes):
        for second in range(60):
            for frame in range(nominal):
                if not (dropped and minute % 10 and second == 0 and frame < dropped):
                    mark = ";" if dropped else ":"
                    yield f"{minute // 60:02}:{minute % 60:02}:{second:02}{mark}{frame:02}"


@pytest.mark.parametrize(
    ("rate", "nominal", "dropped"),
    [(NTSC, 30, 2), (FAST_NTSC, 60, 4), (Fraction(25), 25, 0), (FILM, 24, 0), (Fraction(30), 30, 0)],
)
def test_labels_are_those_of_a_count_one_by_one(rate: Fraction, nominal: int, dropped: int) -> None:
    made = labels(rate)
    for frame, expected in enumerate(one_by_one(nominal, dropped, 21)):
        assert made.label(frame) == expected


@pytest.mark.parametrize(
    ("frame", "label"),
    [
        (1799, "00:00:59;29"),
        (1800, "00:01:00;02"),
        (17_981, "00:09:59;29"),
        (17_982, "00:10:00;00"),
        (107_892, "01:00:00;00"),
        (2_589_407, "23:59:59;29"),
        (2_589_408, "00:00:00;00"),
    ],
)
def test_drop_frame_stays_with_the_clock_through_a_day(frame: int, label: str) -> None:
    assert labels(NTSC).label(frame) == label


@pytest.mark.parametrize(
    ("rate", "told", "found", "frame", "label"),
    [
        (25, "10:00:00:00", "", 26, "10:00:01:01"),
        (25, "10:00:00", "", 0, "10:00:00:00"),
        (25, None, "01:00:00:12", 13, "01:00:01:00"),
        (25, "02:00:00:00", "01:00:00:12", 0, "02:00:00:00"),
        (25, "23:59:59:24", "", 1, "00:00:00:00"),
        (NTSC, "01:00:00:00", "", 1800, "01:01:00:00"),  # asked for by its ':'
        (NTSC, None, "01:00:00;00", 1800, "01:01:00;02"),
        (NTSC, None, "00:01:00;02", 0, "00:01:00;02"),
        (NTSC, None, "nonsense", 1800, "00:01:00;02"),
        (25, None, "01:00:00;12", 0, "00:00:00:00"),  # drop-frame at 25 is nonsense
        (25, None, "01:00:00:30", 0, "00:00:00:00"),
        (120, "00:00:00:100", "", 20, "00:00:01:000"),
    ],
)
def test_labels_go_on_from_what_is_told_or_found(
    rate: Fraction | float, told: str | None, found: str, frame: int, label: str
) -> None:
    assert labels(rate, told, found).label(frame) == label


@pytest.mark.parametrize(
    ("rate", "told", "words"),
    [
        (25, "01:00:00:25", "ff below 25"),
        (25, "01:00:00;00", "29.97"),
        (NTSC, "00:01:00;01", "no such label"),
        (FILM, "00:01:00;02", "29.97"),
    ],
)
def test_a_start_that_is_no_label_is_refused(rate: Fraction | float, told: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        labels(rate, told)


@pytest.mark.parametrize(
    "text",
    ["", "1:2:3:4", "24:00:00:00", "00:60:00:00", "00:00:60:00", "00:00:00.00", "٠٠:00:00:00", "00:00"],
)
def test_what_is_no_label_is_none(text: str) -> None:
    assert parse_label(text) is None
    assert not is_label_of(text, None)


def test_times_rounded_to_a_millisecond_are_counted_all_the_same() -> None:
    pts = [round(n * 1000 / NTSC) for n in range(5000)]
    made = labels_for(pts, 0, Fraction(1, 1000), Fraction("29.97"), None, "")
    wanted = list(one_by_one(30, 2, 5))
    assert [made.label(time) for time in pts] == wanted[:5000]


def test_a_frame_that_is_missing_is_missing_in_the_labels_too() -> None:
    pts = [n for n in range(100) if n not in (10, 11)]
    made = labels_for(pts, 0, Fraction(1, 25), Fraction(25), None, "")
    assert [made.label(time) for time in (9, 12)] == ["00:00:00:09", "00:00:00:12"]


def test_labels_count_from_the_inputs_first_frame_whatever_is_taken() -> None:
    made = labels_for(range(150, 400, 10), 100, Fraction(1, 25), Fraction(25), "01:00:00:00", "")
    assert made.label(150) == "01:00:02:00"


@pytest.mark.parametrize(
    ("pts", "rate"),
    [
        ([0, 40, 65, 135, 160], Fraction(25)),  # frames come as they like
        ([0, 40, 80, 81, 120], Fraction(25)),  # two within one frame's time
        ([0, 80, 160], Fraction("12.5")),  # a rate that has no labels
        ([0, 40, 80], None),
    ],
)
def test_where_frames_can_not_be_counted_there_is_a_clock(pts: list[int], rate: Fraction | None) -> None:
    made = labels_for(pts, 0, Fraction(1, 1000), rate, None, "10:00:00:00")
    assert [made.label(time) for time in pts] == [f"10:00:00.{time:03}" for time in pts]
    assert labels_for(pts, 0, Fraction(1, 1000), rate, "23:59:59", "").label(1000) == "00:00:00.000"


def test_a_clock_is_rounded_to_the_nearest_millisecond() -> None:
    assert clock_time(Fraction(1001, 30_000)) == "00:00:00.033"
    assert clock_time(Fraction(9_999_996, 10_000_000)) == "00:00:01.000"
    assert clock_time(Fraction(360_000)) == "100:00:00.000"


@pytest.mark.parametrize(
    ("text", "before", "rate", "after"),
    [
        ("01:00:00:12", 25, 50, "01:00:00:24"),
        ("01:00:00:24", 25, 24, "01:00:00:23"),
        ("01:00:00;10", NTSC, FAST_NTSC, "01:00:00;20"),
        ("01:00:00:10", NTSC, FAST_NTSC, "01:00:00:20"),
        ("01:00:00;10", NTSC, 25, "01:00:00:08"),
        ("00:01:00:00", 24, NTSC, "00:01:00;02"),
        ("rubbish", 25, 50, "rubbish"),
        ("", 25, 50, ""),
        ("01:00:00:12", None, 50, "01:00:00:12"),
    ],
)
def test_at_another_rate_a_label_is_that_of_the_same_moment(
    text: str, before: Fraction | int | None, rate: Fraction | int, after: str
) -> None:
    assert retimed(text, None if before is None else Fraction(before), Fraction(rate)) == after
