"""Where runs listen: in a folder of the user's own, found by the run folder, rid of what killed runs left."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.attach.address import PATH_BYTES_MAX, connect, listen, release, socket_folder, socket_path, sockets
from farm.errors import OutputError
from farm.scratch import Scratch


@pytest.fixture
def folder() -> Iterator[Path]:
    scratch = Scratch()  # pytest's own are too long for sockets
    yield scratch.path / "run"
    scratch.remove()


def test_only_the_user_can_open_folder_and_socket(folder: Path) -> None:
    before = os.umask(0)
    try:
        listener, _ = listen(folder / "a.sock")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "a.sock").stat().st_mode) == 0o600
    listener.close()


def test_a_folder_of_ours_that_is_open_to_others_is_closed_to_them(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    listen(folder / "a.sock")[0].close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_is_a_link_or_somebody_elses_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    with pytest.raises(OutputError, match="belongs to somebody else; set UNEVEN_RUNTIME_DIR"):
        listen(folder / "a.sock")
    folder.unlink()
    folder.mkdir(mode=0o700)
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    with pytest.raises(OutputError, match="belongs to somebody else"):
        listen(folder / "a.sock")
    with pytest.raises(OutputError, match="belongs to somebody else"):
        connect(folder / "a.sock")  # who made it could tell a run that is none, and read our orders
    assert not sockets(folder) and not list(elsewhere.iterdir())


def test_what_a_killed_run_left_is_seen_removed_and_taken_over(folder: Path) -> None:
    path = folder / "a.sock"
    for again in (False, True):
        listen(path)[0].close()  # as SIGKILL does: the name stays
        assert path.exists()
        if again:
            listener, _ = listen(path)
            connection = connect(path)
            assert connection is not None
            connection.close()
            listener.close()
        else:
            assert connect(path) is None
            assert not path.exists()
    assert connect(folder / "never.sock") is None


def test_a_run_that_ends_late_leaves_its_successor_alone(folder: Path) -> None:
    path = folder / "a.sock"
    first, inode = listen(path)
    second, _ = listen(path)
    first.close()
    release(path, inode)
    connection = connect(path)
    assert connection is not None
    connection.close()
    second.close()


def test_who_comes_while_many_wait_to_be_taken_waits_too(folder: Path) -> None:
    """Linux says EAGAIN to a socket that has a timeout."""
    path = folder / "a.sock"
    listener, _ = listen(path)
    waiting = []
    with pytest.raises(OutputError, match="doesn't answer"):
        while len(waiting) < 1000:
            waiting.append(connect(path, 0.1))
    listener.setblocking(True)
    taking = threading.Timer(0.1, listener.accept)
    taking.start()
    last = connect(path, 20.0)
    taking.join()
    for connection in (*waiting, last):
        assert connection is not None
        connection.close()
    listener.close()


def test_what_is_no_socket_is_complained_of(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.sock").write_text("not a socket")
    assert connect(folder / "a.sock") is None  # refused like one that nobody listens on


def test_names_fit_into_an_address(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    deep = folder / ("d" * 120)
    deep.mkdir(parents=True)
    environment = {"TMPDIR": str(deep)}
    path = socket_path(Path("/films/" + "x" * 200 + ".mp4.uneven"), environment)
    assert len(os.fsencode(path)) <= PATH_BYTES_MAX
    with pytest.raises(OutputError, match="too long; set UNEVEN_RUNTIME_DIR"):
        listen(deep / "a.sock")


def test_the_folder_is_never_taken_for_scratch() -> None:
    """Scratch folders that nobody holds are swept away: ``uneven-`` and eight more characters."""
    root = Path(tempfile.gettempdir())
    assert not socket_folder({}).name.startswith("uneven-")
    assert socket_folder({"UNEVEN_RUNTIME_DIR": "/elsewhere"}) == Path("/elsewhere")
    assert root in socket_folder({}).parents or socket_folder({}).parent == Path("/tmp")


def test_any_name_of_a_run_folder_leads_to_the_same_socket(folder: Path) -> None:
    run = folder / "o.mp4.uneven"
    run.mkdir(parents=True)
    (folder / "link").symlink_to(run)
    assert socket_path(run) == socket_path(folder / "link") == socket_path(run / ".." / run.name)
    assert socket_path(run) != socket_path(folder / "p.mp4.uneven")
    assert isinstance(socket.AF_UNIX, int)
