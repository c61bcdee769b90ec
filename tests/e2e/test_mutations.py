"""Broken files of the corpus through the real command; scripts/mutations.py tries hundreds of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.mutations import try_one


def assert_fine(seed: int, folder: Path) -> None:
    outcome = try_one(seed, folder)
    assert not outcome.wrong, outcome


@pytest.mark.parametrize("seed", [1])
def test_a_broken_file_comes_out_as_one_pass_gives_it(corpus: Path, seed: int, tmp_path: Path) -> None:
    assert_fine(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 6, 16, 22, 29, 1213])
def test_broken_files_of_many_kinds(corpus: Path, seed: int, tmp_path: Path) -> None:
    """1213: a demuxer that gives up where all is decoded at once ended in a traceback."""
    assert_fine(seed, tmp_path)
