"""Filters as they are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from console import sourceoptions as src
from console.spellings import refuse_ffmpeg_spellings
from farm.errors import UsageError
from farm.settings import FilterSettings, JobSettings


def test_filters_keep_the_folder_that_their_files_start_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = src.filtering(JobSettings(), " lut3d=a.cube ", False).filters
    assert chosen == FilterSettings(graph="lut3d=a.cube", folder=str(tmp_path))
    assert src.filtering(JobSettings(), None, False) == JobSettings()


@pytest.mark.parametrize(
    ("filters", "one_pass", "words"),
    [
        (" ", False, "--filter is empty"),
        (None, True, "--one-pass is for --filter"),
        ("a\udcff", False, "UTF-8"),
    ],
)
def test_what_makes_no_sense_is_refused(filters: str | None, one_pass: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        src.filtering(JobSettings(), filters, one_pass)


@pytest.mark.parametrize("spelling", ["-vf", "-filter:v", "-filter_complex"])
def test_ffmpegs_option_gets_our_spelling(spelling: str) -> None:
    with pytest.raises(UsageError, match=f"{spelling} is ffmpeg's spelling; here it is --filter FILTERS"):
        refuse_ffmpeg_spellings(["render", "in.mp4", spelling, "hflip"])


def test_a_run_in_a_folder_whose_name_no_journal_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "d\udcff"
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert src.filtering(JobSettings(), "hflip", False).filters.folder == ""
