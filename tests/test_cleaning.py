"""``uneven clean``: what goes, what stays, and what it asks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from farm.cleaning import find_leftovers, remove
from farm.errors import OutputError, UsageError
from farm.folder import RunFolder
from farm.journal import Journal, RunCatalogue
from farm.paths import run_folder_path
from tests.e2e.command import Command, run
from tests.journal.helpers import run_records

NOW = 2_000_000_000.0
DAY = 86_400.0


@pytest.fixture
def catalogue(tmp_path: Path) -> RunCatalogue:
    return RunCatalogue(tmp_path / "state" / "runs")


def make_run(
    catalogue: RunCatalogue, tmp_path: Path, run_id: str, *, finished: bool, days_old: float
) -> Path:
    """A run on record; returns its folder, which is gone if it finished."""
    output = tmp_path / f"{run_id}.mp4"
    folder_path = run_folder_path(output)
    catalogue.register(run_id, input=tmp_path / "in.mp4", output=output, folder=folder_path)
    records = run_records(str(output), run_id, finished=finished)
    if finished:
        catalogue.save(run_id, records)
        files = [catalogue.recording_path(run_id)]
    else:
        with RunFolder.create(folder_path) as folder:
            journal = Journal.create(folder.journal)
            journal.append(records)
            journal.close()
        files = [path for path in folder_path.rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, (NOW - days_old * DAY, NOW - days_old * DAY))
    return folder_path


def test_old_runs_are_found_by_age_and_name(catalogue: RunCatalogue, tmp_path: Path) -> None:
    make_run(catalogue, tmp_path, "old", finished=True, days_old=40)
    folder = make_run(catalogue, tmp_path, "stopped", finished=False, days_old=8)
    make_run(catalogue, tmp_path, "new", finished=True, days_old=1)
    found = {left.run_id: left for left in find_leftovers(catalogue, (), 7 * DAY, NOW)}
    assert set(found) == {"old", "stopped"}
    assert (found["old"].state, found["old"].folder) == ("finished", None)
    assert (found["stopped"].state, found["stopped"].folder) == ("unfinished", folder)
    assert found["stopped"].size_bytes > 4096
    by_name = find_leftovers(catalogue, ["new", str(folder), str(tmp_path / "stopped.mp4")], 0.0, NOW)
    assert [left.run_id for left in by_name] == ["new", "stopped"]
    for name in ("nothing", "last"):
        with pytest.raises(UsageError):
            find_leftovers(catalogue, [name], 0.0, NOW)


def test_what_is_removed_and_what_stays(catalogue: RunCatalogue, tmp_path: Path) -> None:
    folder = make_run(catalogue, tmp_path, "stopped", finished=False, days_old=8)
    (folder / "notes.txt").write_text("mine")
    make_run(catalogue, tmp_path, "done", finished=True, days_old=8)
    (tmp_path / "done.mp4").write_bytes(b"the output")
    stays = [remove(left, catalogue) for left in find_leftovers(catalogue, (), 0.0, NOW)]
    assert {path.name for paths in stays for path in paths} == {"notes.txt"}
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert (tmp_path / "done.mp4").exists()
    assert list(catalogue.folder.iterdir()) == []


def test_a_run_that_is_on_is_never_removed(catalogue: RunCatalogue, tmp_path: Path) -> None:
    path = make_run(catalogue, tmp_path, "live", finished=False, days_old=8)
    with RunFolder.open(path):
        (left,) = find_leftovers(catalogue, (), 0.0, NOW)
        assert left.live and left.state == "running"
        with pytest.raises(OutputError, match="in use by process"):
            remove(left, catalogue)
    assert (path / "journal.db").exists()
    assert catalogue.entries()


def test_a_folder_that_is_none_of_ours_is_not_even_listed(catalogue: RunCatalogue, tmp_path: Path) -> None:
    path = run_folder_path(tmp_path / "x.mp4")
    path.mkdir()
    (path / "thesis.txt").touch()
    catalogue.register("x", input=tmp_path / "in.mp4", output=tmp_path / "x.mp4", folder=path)
    (left,) = find_leftovers(catalogue, (), 0.0, NOW)
    assert left.folder is None
    remove(left, catalogue)
    assert (path / "thesis.txt").exists()


def clean(tmp_path: Path, *arguments: str) -> Command:
    return run("clean", *arguments, cwd=tmp_path, json=False)


def test_the_command_lists_asks_and_removes(catalogue: RunCatalogue, tmp_path: Path) -> None:
    folder = make_run(catalogue, tmp_path, "stopped", finished=False, days_old=8)
    look = clean(tmp_path, "--dry-run")
    assert look.process.returncode == 0 and "Would remove 1 run" in look.stdout and str(folder) in look.stdout
    unasked = clean(tmp_path)
    assert unasked.process.returncode == 2 and "say -y to agree, or --dry-run to look" in unasked.stderr
    assert folder.exists()
    done = clean(tmp_path, "-y")
    assert done.process.returncode == 0 and "Removed 1 run" in done.stdout
    assert not folder.exists() and catalogue.entries() == []
    assert "Nothing to remove." in clean(tmp_path, "-y").stdout
    assert clean(tmp_path, "--older-than", "soon").process.returncode == 2


def test_the_lock_that_a_killed_run_left_beside_its_output_goes_with_the_run(
    catalogue: RunCatalogue, tmp_path: Path
) -> None:
    folder = make_run(catalogue, tmp_path, "killed", finished=False, days_old=1)
    before = set(tmp_path.iterdir())
    with RunFolder.open(folder) as held:
        held.guard(tmp_path / "killed.mp4")
        (lock,) = set(tmp_path.iterdir()) - before
    lock.write_text("1 here\n")  # as a kill leaves it
    (left,) = find_leftovers(catalogue, ["killed"], 0.0, NOW)
    assert remove(left, catalogue) == ()
    assert not lock.exists() and not folder.exists()
