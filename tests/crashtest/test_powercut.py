"""What a power cut takes back: a child does file operations under the probe, then comes the cut."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from farm.crashtest.points import VARIABLE, Order, points_of, read_log
from farm.crashtest.powercut import cut_power, inodes

CHILD = """
import os, sys
from pathlib import Path
from farm.crashtest.probe import install_if_asked
from farm.parts import sync_folder
from farm.paths import atomic_file, replace, sync_file
install_if_asked()
root = Path(sys.argv[1])
def write(name, data=b"new", sync=False):
    with (root / name).open("wb") as file:
        file.write(data)
        if sync:
            file.flush()
            os.fsync(file.fileno())
"""
OLD = b"old bytes"


def after_cut(
    tmp_path: Path, code: str, *, names: bool = True, unsynced: str = ""
) -> dict[str, bytes | None]:
    """What is in the folder after ``code`` and a power cut; there was a synced file ``old`` before."""
    root, aside = tmp_path / "root", tmp_path / "aside"
    root.mkdir()
    aside.mkdir()
    (root / "old").write_bytes(OLD)
    before = inodes(root)
    order = Order(root=str(root), log=str(tmp_path / "log"), fired=str(tmp_path / "fired"), unsynced=unsynced)
    subprocess.run(
        [sys.executable, "-c", CHILD + code, str(root)],
        env={VARIABLE: msgspec.json.encode(order).decode(), "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
    cut_power(read_log(tmp_path / "log"), aside, names=names, before=before)
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in sorted(root.rglob("*"))
    }


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ('write("a")', {"old": OLD}),
        ('write("a", sync=True)', {"old": OLD}),
        ('write("a"); sync_folder(root)', {"a": b"", "old": OLD}),
        ('write("a", sync=True); sync_folder(root)', {"a": b"new", "old": OLD}),
        ('write("old")', {"old": b""}),
        ('(root / "old").open("ab").write(b"more")', {"old": OLD}),
        ('(root / "old").rename(root / "b")', {"old": OLD}),
        ('(root / "old").rename(root / "b"); sync_folder(root)', {"b": OLD}),
        ('write("a", sync=True); (root / "a").replace(root / "old")', {"old": OLD}),
        (
            'write("a"); sync_folder(root); (root / "a").replace(root / "old"); sync_folder(root)',
            {"old": b""},
        ),
        ('(root / "old").unlink()', {"old": OLD}),
        ('(root / "old").unlink(); sync_folder(root)', {}),
        ('(root / "d").mkdir(); write("d/a", sync=True); sync_folder(root / "d")', {"old": OLD}),
        (
            '(root / "d").mkdir(); sync_folder(root); write("d/a", sync=True); sync_folder(root / "d")',
            {"d": None, "d/a": b"new", "old": OLD},
        ),
        ('os.link(root / "old", root / "b"); (root / "old").unlink()', {"old": OLD}),
        (
            'import shutil; (root / "d").mkdir(); write("d/a", sync=True); sync_folder(root / "d")\n'
            'sync_folder(root); shutil.rmtree(root / "d")',
            {"d": None, "d/a": b"new", "old": OLD},
        ),
    ],
)
def test_what_was_not_synced_is_lost(tmp_path: Path, code: str, left: dict[str, bytes | None]) -> None:
    assert after_cut(tmp_path, code) == left


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ('write("a")', {"a": b"", "old": OLD}),
        ('write("a"); (root / "a").replace(root / "old")', {"old": b""}),
        ('write("a", sync=True); (root / "a").replace(root / "old")', {"old": b"new"}),
    ],
)
def test_names_can_outlive_the_bytes(tmp_path: Path, code: str, left: dict[str, bytes | None]) -> None:
    assert after_cut(tmp_path, code, names=False) == left


ATOMIC = 'with atomic_file(root / "old") as file: file.write(b"whole")'
PLACED = 'write("p"); replace(root / "p", root / "old", overwrite=True)'


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize(("code", "new"), [(ATOMIC, b"whole"), (PLACED, b"new")])
def test_what_this_program_puts_in_place_survives_and_not_without_its_syncs(
    tmp_path: Path, code: str, new: bytes, names: bool
) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    assert after_cut(tmp_path / "with", code, names=names) == {"old": new}
    assert after_cut(tmp_path / "without", code, names=names, unsynced=".") != {"old": new}


def test_every_operation_is_a_point_and_comes_before_it_is_done(tmp_path: Path) -> None:
    after_cut(
        tmp_path, 'write("a"); write("a"); (root / "a").rename(root / "b"); (root / "missing").unlink(True)'
    )
    points = [str(point) for point in points_of(read_log(tmp_path / "log"))]
    assert points == [
        "console: create a",
        "console: write a",
        "console: empty a",
        "console: write a (number 2)",
        "console: rename b",
        "console: unlink missing",
    ]
    assert not [
        step for step in read_log(tmp_path / "log") if step.point is None and step.path.endswith("missing")
    ]
