"""The run folder: one holder at a time, and nothing removed that we did not make."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from farm.errors import OutputError
from farm.folder import RunFolder
from farm.journal import Journal
from farm.paths import run_folder_path
from tests.journal.helpers import AWKWARD_NAMES, credits, python, write_part

HOLD = """
import sys
from pathlib import Path
from farm.folder import RunFolder
folder = RunFolder.open(Path(sys.argv[1]))
print('held', flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out.mp4.uneven"


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def fill(folder: RunFolder) -> None:
    journal = Journal.create(folder.journal)
    journal.append(credits(0, 3))
    journal.close()
    folder.index.write_bytes(b"index")
    write_part(folder.store / "p000000-c0.1.e1.part")
    (folder.spool / "w1").mkdir()
    (folder.spool / "w1" / "half.part").write_bytes(b"half")
    (folder.logs / "c0.1.e1.log").write_text("said")


def test_create_work_reopen_remove(path: Path) -> None:
    with RunFolder.create(path) as folder:
        assert names(path) == {"uneven.lock", "store", "spool", "logs"}
        fill(folder)
        assert folder.free_bytes() > 0
    folder.close()
    with RunFolder.open(path) as folder:
        journal = Journal.open(folder.journal)
        assert journal.last_seq == 2
        journal.close()
        assert folder.remove() == ()
    assert not path.exists()
    assert names(path.parent) == set()


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_folders_of_any_name(tmp_path: Path, name: str) -> None:
    path = run_folder_path(tmp_path / name)
    with RunFolder.create(path) as folder:
        fill(folder)
    with RunFolder.open(path) as folder:
        assert folder.remove() == ()


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = Path(f"{tmp_path}/b\udcffd.uneven")
    for take in (RunFolder.create, RunFolder.open):
        with pytest.raises(OutputError, match=r"b\\xffd.uneven is not valid UTF-8"):
            take(path)
    assert not path.exists()


def test_temp_gives_every_output_a_folder_of_its_own(tmp_path: Path) -> None:
    folders = {run_folder_path(tmp_path / place / "out.mp4", tmp_path) for place in ("a", "b", "c")}
    assert len(folders) == 3
    assert all(folder.parent == tmp_path and folder.name.startswith("out.mp4-") for folder in folders)
    assert run_folder_path(tmp_path / "a" / ".." / "a" / "out.mp4", tmp_path) in folders
    for name in ("\U0001f921" * 60, "x" * 247):
        with RunFolder.create(run_folder_path(Path("/films") / name, tmp_path)) as folder:
            folder.remove()


def test_an_earlier_run_is_never_created_over(path: Path) -> None:
    with RunFolder.create(path) as folder:
        fill(folder)
        before = folder.journal.read_bytes()
    with pytest.raises(OutputError, match="holds an earlier run; resume"):
        RunFolder.create(path)
    assert (path / "journal.db").read_bytes() == before


def test_a_folder_in_which_nothing_was_recorded_is_taken_again(path: Path) -> None:
    """A crash between making the folder and the journal; what is in the store stays for adoption."""
    path.mkdir()
    with RunFolder.create(path) as folder:
        write_part(folder.store / "p000000-c0.1.e1.part")
    with RunFolder.create(path) as folder:
        assert names(folder.store) == {"p000000-c0.1.e1.part"}


def test_somebody_elses_folder_is_refused_and_left_alone(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")
    for take in (RunFolder.create, RunFolder.open):
        with pytest.raises(OutputError, match="not a run folder of uneven"):
            take(path)
    assert names(path) == {"thesis.txt"}


def test_what_can_not_be_a_run_folder(path: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no run folder"):
        RunFolder.open(path)
    path.mkdir()
    with pytest.raises(OutputError, match="not a run folder"):
        RunFolder.open(path)
    (tmp_path / "file").touch()
    for take in (RunFolder.create, RunFolder.open):
        with pytest.raises(OutputError, match="not a folder"):
            take(tmp_path / "file")
    with pytest.raises(OutputError, match="no such file or folder"):
        RunFolder.create(tmp_path / "gone" / "out.uneven")


def test_links_are_never_followed(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    (tmp_path / "link.uneven").symlink_to(elsewhere)
    for take in (RunFolder.create, RunFolder.open):
        with pytest.raises(OutputError, match="is a link"):
            take(tmp_path / "link.uneven")

    with RunFolder.create(path) as folder:
        (folder.store / "link").symlink_to(elsewhere)
        folder.spool.rmdir()
        folder.spool.symlink_to(elsewhere)
        assert folder.remove() == (path / "spool",)
    assert names(elsewhere) == {"precious"}
    assert names(path) == {"spool"}

    (path / "uneven.lock").touch()
    with pytest.raises(OutputError, match="spool is a link"):
        RunFolder.open(path)
    (path / "uneven.lock").unlink()
    (path / "uneven.lock").symlink_to(elsewhere / "made")
    with pytest.raises(OutputError, match="it is a link"):
        RunFolder.open(path)
    assert names(elsewhere) == {"precious"}


def test_what_others_put_there_stays(path: Path) -> None:
    with RunFolder.create(path) as folder:
        fill(folder)
        (path / "notes.txt").write_text("mine")
        assert folder.remove() == (path / "notes.txt",)
    assert names(path) == {"notes.txt"}


# --- who holds it ----------------------------------------------------------------------------------------


def test_a_second_holder_hears_who_the_first_is(path: Path) -> None:
    RunFolder.create(path).close()
    child = python(HOLD, path)
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    for take in (RunFolder.open, RunFolder.create):
        with pytest.raises(OutputError) as caught:
            take(path)
        assert f"in use by process {child.pid} on {socket.gethostname()}" in str(caught.value)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    with RunFolder.open(path) as folder:
        assert (path / "uneven.lock").read_text().split() == [str(os.getpid()), socket.gethostname()]
        folder.remove()


def test_a_second_holder_in_the_same_process_is_refused(path: Path) -> None:
    with RunFolder.create(path), pytest.raises(OutputError, match=f"process {os.getpid()}"):
        RunFolder.open(path)
    RunFolder.open(path).close()


def test_workers_do_not_inherit_the_lock(path: Path) -> None:
    folder = RunFolder.create(path)
    child = python("import sys; print('up', flush=True); sys.stdin.read()")
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    folder.close()
    RunFolder.open(path).close()
    child.communicate()


# --- the disk --------------------------------------------------------------------------------------------


def test_too_little_room_is_said_with_figures(path: Path) -> None:
    with RunFolder.create(path) as folder:
        folder.require_free(1)
        with pytest.raises(OutputError, match=r"needs about [0-9,]+ MiB of disk and [0-9,]+ MiB are free"):
            folder.require_free(1 << 60)


def test_a_failed_create_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(OutputError, match="the file system has no locks"):
        RunFolder.create(path)
    assert not path.exists()
