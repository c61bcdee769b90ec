"""Scratch folders go with their process, or with the next one's start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from farm.errors import OutputError
from farm.scratch import Scratch, socket_root, temporary_root
from tests.journal.helpers import python

HOLD = """
import sys
from pathlib import Path
from farm.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.path / "log").write_text("half")
print(scratch.path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_goes_at_the_next_start(tmp_path: Path) -> None:
    child = python(HOLD, tmp_path)
    assert child.stdout is not None
    theirs = Path(child.stdout.readline().strip())
    ours = Scratch(tmp_path)
    assert theirs.exists() and ours.path.exists(), "both are in use"
    ours.remove()
    ours.remove()
    child.kill()
    child.communicate()
    assert theirs.exists()
    Scratch(tmp_path).remove()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    for name in ("uneven-notes", "uneven-12345678x", "other-12345678"):
        (tmp_path / name).mkdir()
    (tmp_path / "uneven-abcdef01").write_text("a file")
    (tmp_path / "uneven-abcdef02").symlink_to(tmp_path / "uneven-notes")
    Scratch(tmp_path).remove()
    assert len(list(tmp_path.iterdir())) == 5


def test_where_temporary_files_go(tmp_path: Path) -> None:
    assert temporary_root({"TMPDIR": str(tmp_path)}) == tmp_path
    assert temporary_root({"TMPDIR": str(tmp_path / "missing"), "TMP": str(tmp_path)}) == tmp_path
    assert temporary_root({}) == Path("/tmp")


def test_a_socket_has_a_short_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 60)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    assert len(os.fsencode(socket_root())) <= 68


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"no folder can be made in .*missing"):
        Scratch(tmp_path / "missing")
