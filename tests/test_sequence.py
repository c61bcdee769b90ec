"""Which files a name with a number in it stands for, in which order, and what is missing."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from pathlib import Path

import pytest

from farm.errors import InputError, UsageError
from farm.rates import parse_rate
from farm.sequence import (
    Pattern,
    changes,
    close_gaps,
    find_sequence,
    list_images,
    parse_pattern,
    refuse_gaps,
    sequence_fingerprint,
    spans,
)
from farm.source import ImageFile


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(name.encode())
    return folder


def numbers(path: Path) -> list[int]:
    pattern = find_sequence(path)
    assert pattern is not None
    return [image.number for image in list_images(pattern)]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("a%04d.png", [2, 9, 10, 12345]),
        ("a####.png", [2, 9, 10, 12345]),
        ("a%d.png", [2, 9, 10, 77, 12345]),
        ("a#.png", [2, 9, 10, 77, 12345]),
        ("a[0009-0010].png", [9, 10]),
        ("a%02d.png", [77, 12345]),
    ],
)
def test_patterns(typed: str, found: list[int], tmp_path: Path) -> None:
    names = ("a0002.png", "a0009.png", "a0010.png", "a12345.png", "a77.png", "ax.png", "a0003.jpg", "a.png")
    fill(tmp_path, *names)
    assert numbers(tmp_path / typed) == found


def test_the_order_is_that_of_the_numbers(tmp_path: Path) -> None:
    fill(tmp_path, *(f"shot.{n}.exr" for n in (10, 9, 100, 1, 2)))
    assert numbers(tmp_path) == [1, 2, 9, 10, 100]


def test_a_file_of_that_very_name_is_that_file(tmp_path: Path) -> None:
    fill(tmp_path, "take#1.mp4", "take%d.mov")
    assert find_sequence(tmp_path / "take#1.mp4") is None
    assert find_sequence(tmp_path / "take%d.mov") is None


def test_a_folder_of_one_sequence_is_that_sequence(tmp_path: Path) -> None:
    fill(tmp_path, "f_0001.png", "f_0002.png", "notes.txt", "clip01.mp4", ".f_0003.png", "thumb.png")
    pattern = find_sequence(tmp_path)
    assert pattern is not None and pattern.path.name == "f_%04d.png"


def test_a_folder_of_several_says_which_there_are(tmp_path: Path) -> None:
    fill(tmp_path, "a_01.png", "a_02.png", "b.7.exr", "a_01.jpg")
    with pytest.raises(InputError) as error:
        find_sequence(tmp_path)
    for words in ("3 image sequences", "a_%02d.png (2 files)", "b.%d.exr (1 files)", "a_%02d.jpg"):
        assert words in str(error.value)


def test_a_folder_without_images_is_none(tmp_path: Path) -> None:
    assert find_sequence(fill(tmp_path / "films", "film1.mp4")) is None


def test_two_files_of_one_number_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, "a1.png", "a01.png", "a2.png")
    with pytest.raises(InputError, match=r"a0?1\.png and a0?1\.png have the same number"):
        list_images(Pattern(tmp_path, "a", ".png"))


def test_nothing_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*a%04d\.png"):
        list_images(Pattern(tmp_path, "a", ".png", 4))
    with pytest.raises(InputError, match="no folder"):
        list_images(Pattern(tmp_path / "gone", "a", ".png", 4))


@pytest.mark.parametrize("typed", ["a%d_%d.png", "a##_#.png", "a[1-2]%d.png", "a[9-2].png"])
def test_what_can_not_be_understood_is_refused(typed: str) -> None:
    with pytest.raises(InputError):
        parse_pattern(Path(typed))


@pytest.mark.parametrize("name", ["film.mp4", "100%.mp4", "a%5d.png", "a%s.png", "a[1].png", "[x-y].png"])
def test_other_names_are_no_patterns(name: str) -> None:
    assert parse_pattern(Path(name)) is None


class TestGaps:
    """RG33: a pattern reader stops at the first missing number, without a word."""

    @pytest.fixture
    def pattern(self, tmp_path: Path) -> Pattern:
        fill(tmp_path, *(f"f{n:03d}.png" for n in range(1, 13) if n not in (4, 7, 8)))
        (tmp_path / "f010.png").write_bytes(b"")
        return Pattern(tmp_path, "f", ".png", 3)

    def test_fail_names_the_missing_numbers(self, pattern: Pattern) -> None:
        images, _ = close_gaps(list_images(pattern), pattern, "fail")
        with pytest.raises(InputError, match=r"3 numbers are missing: 4, 7-8; .*--on-gap (hold|skip)"):
            refuse_gaps(images, pattern)

    def test_an_empty_file_is_named(self, pattern: Pattern) -> None:
        images, _ = close_gaps(list_images(pattern), pattern, "fail")
        with pytest.raises(InputError, match=r"f010\.png is empty \(0 bytes\)"):
            refuse_gaps(images[8:], pattern)

    def test_what_is_not_wanted_may_be_missing(self, pattern: Pattern) -> None:
        images, _ = close_gaps(list_images(pattern), pattern, "fail")
        refuse_gaps(images[:3], pattern)

    def test_hold_repeats_the_image_before(self, pattern: Pattern) -> None:
        images, words = close_gaps(list_images(pattern), pattern, "hold")
        assert [image.number for image in images] == [1, 2, 3, 3, 5, 6, 6, 6, 9, 9, 11, 12]
        assert "4 of the numbers 1-12 are missing or empty: 4, 7-8, 10" in words[0]

    def test_skip_leaves_them_out(self, pattern: Pattern) -> None:
        images, words = close_gaps(list_images(pattern), pattern, "skip")
        assert [image.number for image in images] == [1, 2, 3, 5, 6, 9, 11, 12]
        assert "4, 7-8, 10" in words[0]

    def test_the_ends_of_a_range_that_was_named_count(self, tmp_path: Path) -> None:
        fill(tmp_path, "f03.png", "f04.png")
        pattern = parse_pattern(tmp_path / "f[02-06].png")
        assert pattern is not None
        held, _ = close_gaps(list_images(pattern), pattern, "hold")
        assert [image.number for image in held] == [3, 3, 4, 4, 4]
        with pytest.raises(InputError, match="3 numbers are missing: 2, 5-6"):
            refuse_gaps(close_gaps(list_images(pattern), pattern, "fail")[0], pattern)

    def test_a_stray_number_is_no_gap_of_millions(self, tmp_path: Path) -> None:
        fill(tmp_path, "f1.png", "f20261130195959.png")
        pattern = Pattern(tmp_path, "f", ".png")
        with pytest.raises(InputError, match="which is no film"):
            close_gaps(list_images(pattern), pattern, "hold")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("24", Fraction(24)),
        ("23.976", Fraction(24000, 1001)),
        ("23.98", Fraction(24000, 1001)),
        ("29.97", Fraction(30000, 1001)),
        ("47.95", Fraction(48000, 1001)),
        ("59.94", Fraction(60000, 1001)),
        ("119.88", Fraction(120000, 1001)),
        ("12.5", Fraction(25, 2)),
        ("30000/1001", Fraction(30000, 1001)),
        ("1/2", Fraction(1, 2)),
    ],
)
def test_rates_are_exact(text: str, rate: Fraction) -> None:
    assert Fraction(*parse_rate(text)) == rate


@pytest.mark.parametrize("text", ["0", "-24", "24fps", "1/0", "", "nan", "1e3", "1001"])
def test_other_rates_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fps"):
        parse_rate(text)


def test_what_changed_is_said() -> None:
    before = [ImageFile(n, f"f{n}.png", 10, 5) for n in range(5)]
    now = [before[0], ImageFile(1, "f1.png", 11, 5), *before[4:], ImageFile(7, "f7.png", 1, 1)]
    assert changes(before, now) == "f1.png is changed, f2.png and 1 more are gone, f7.png is new"
    assert sequence_fingerprint(before) != sequence_fingerprint(now)
    assert sequence_fingerprint(before) == sequence_fingerprint(list(before))


def test_spans_are_short() -> None:
    assert spans([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
    assert spans(range(0, 100, 2)).endswith(", and 42 more")


@pytest.mark.skipif(not os.environ.get("UNEVEN_LONG_SEQUENCE"), reason="set UNEVEN_LONG_SEQUENCE=1")
def test_a_hundred_thousand_files_are_listed_in_seconds(tmp_path: Path) -> None:
    for number in range(100_000):
        (tmp_path / f"f{number:06d}.png").write_bytes(b"x")
    began = time.perf_counter()
    pattern = find_sequence(tmp_path)
    assert pattern is not None
    images, _ = close_gaps(list_images(pattern), pattern, "fail")
    refuse_gaps(images, pattern)
    sequence_fingerprint(images)
    assert time.perf_counter() - began < 10
