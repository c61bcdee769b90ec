"""Formatting helpers: exact words, and columns that stay aligned whatever a file is called (RG53)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console import text

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("clip.mp4", "clip.mp4"),
        ("two words-#%'.mp4", "two words-#%'.mp4"),
        ("a\nb\tc\rd", "a b c d"),
        ("bell\a esc\x1b[31m del\x7f", "bell? esc?[31m del?"),
        ("\u202egnp.exe", "?gnp.exe"),
        ("lone \udcff byte", "lone ? byte"),
        ("zero\u200bwidth", "zero?width"),
        ("映画.mkv", "映画.mkv"),
        ("cafe\u0301.mp4", "café.mp4"),
        ("x\u0336\u0337.mp4", "x.mp4"),
        ("heart \u2764\ufe0f", "heart \u2764"),
        (f"{FAMILY}.mp4", "\U0001f468\U0001f469\U0001f467.mp4"),
        ("wave \U0001f44b\U0001f3fd", "wave \U0001f44b"),
        ("flag \U0001f1e9\U0001f1ea", "flag DE"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("\u1161 alone", "? alone"),
    ],
)
def test_safe_is_one_line_of_agreed_width(raw: str, shown: str) -> None:
    assert text.safe(raw) == shown


@given(st.text(max_size=40))
def test_any_text_is_safe_and_its_width_is_the_sum_of_its_characters(raw: str) -> None:
    shown = text.safe(raw)
    assert text.safe(shown) == shown
    assert not any(unicodedata.category(char)[0] in "CM" for char in shown)
    assert text.width(shown) == sum(cell_len(char) for char in shown)
    assert all(cell_len(char) in (1, 2) for char in shown)


@given(st.text(max_size=40), st.integers(0, 30), st.sampled_from(["start", "end", "both"]))
def test_fit_and_pad_keep_columns_aligned(raw: str, cells: int, keep: str) -> None:
    shown = text.safe(raw)
    assert text.width(text.fit(shown, cells, keep=keep)) <= cells  # type: ignore[arg-type]
    assert text.width(text.pad(shown, cells)) == cells
    assert text.width(text.pad(shown, cells, right=True)) == cells


def test_fit_keeps_the_end_that_matters() -> None:
    assert text.fit("abcdefghij", 10) == "abcdefghij"
    assert text.fit("abcdefghij", 5) == "abcd…"
    assert text.fit("/a/long/path", 6, keep="end") == "…/path"
    assert text.fit("映画映画", 4) == "映…"
    assert text.pad("映画映画", 4) == "映… "
    assert text.fit("abc", 0) == ""
    name = text.name("x" * 300 + ".mp4", 20)
    assert text.width(name) == 20
    assert name.endswith(".mp4")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "unknown"),
        (float("inf"), "unknown"),
        (0, "0.0 s"),
        (7.44, "7.4 s"),
        (9.96, "10 s"),
        (59.7, "1:00"),
        (83, "1:23"),
        (3600, "1:00:00"),
        (3723.4, "1:02:03"),
        (86400 * 3 + 4 * 3600 + 300, "3 d 04:05"),
        (-5, "-5.0 s"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert text.duration(seconds) == shown


def test_moments_and_clocks() -> None:
    assert text.clock(192.45) == "00:03:12.4"
    assert text.clock(0.3) == "00:00:00.3"
    assert text.clock(-1) == "00:00:00.0"
    assert text.moment(192.401) == "03:12.401"
    assert text.moment(3792.401) == "1:03:12.401"
    assert text.moment(59.9996) == "01:00.000"
    assert text.about(7.6) == "8 s"
    assert text.about(118.2) == "1:58"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_960, "1.0 MB"),
        (2_041_000, "2.0 MB"),
        (3e12, "3.0 TB"),
        (3e15, "3000.0 TB"),
    ],
)
def test_sizes(count: float, shown: str) -> None:
    assert text.size(count) == shown


def test_shares_say_all_or_nothing_only_when_it_is() -> None:
    assert text.share(0, 100) == "0.0 %"
    assert text.share(1, 100_000) == "0.1 %"
    assert text.share(99_999, 100_000) == "99.9 %"
    assert text.share(100, 100) == "100.0 %"
    assert text.share(0, 0) == "0.0 %"


def test_speeds_and_counts() -> None:
    assert text.speed(None) == "-"
    assert text.speed(0.0) == "0.0 fps"
    assert text.speed(31.24) == "31.2 fps"
    assert text.speed(0.25) == "4.0 s/frame"
    assert text.count(1_234_567) == "1,234,567"
    assert text.plural(1, "lapse") == "1 lapse"
    assert text.plural(0, "lapse") == "0 lapses"
    assert text.plural(1200, "frame") == "1,200 frames"


def test_measured_times_are_stated_as_in_the_write_ups() -> None:
    assert text.seconds(133.2) == "133.2 s"
    assert text.seconds(599.9) == "599.9 s"
    assert text.seconds(723) == "12:03"
