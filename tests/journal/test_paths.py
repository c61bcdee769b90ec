"""What is known to fail at the end is refused at the start, and a file gets its name whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm.errors import ExitCode, InputError, OutputError, UnevenError, UsageError
from farm.paths import (
    atomic_file,
    check_name,
    check_output,
    check_place,
    check_run_folder,
    partial_path,
    printable,
    reason,
    replace,
    run_folder_path,
)
from farm.settings import CONTAINERS
from tests.journal.helpers import AWKWARD_NAMES


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "in.mp4").write_bytes(b"the only copy")
    return folder / "in.mp4"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(source: Path, output: Path, overwrite: bool | None = None) -> UnevenError:
    """The refusal; checks that it is one printable sentence and that nothing was touched."""
    before = tree(source.parent)
    with pytest.raises(UnevenError) as caught:
        check_output(source, output, overwrite)
    assert tree(source.parent) == before
    assert printable(str(caught.value)) == str(caught.value)
    return caught.value


# --- the output ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", [*CONTAINERS, ".MP4", ".WebM"])
def test_a_new_output_is_fine_and_nothing_is_left_behind(source: Path, extension: str) -> None:
    for overwrite in (None, False, True):
        check_output(source, source.parent / f"out{extension}", overwrite)
    assert list(tree(source.parent)) == [str(source)]


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_outputs_of_any_name(source: Path, name: str) -> None:
    output = source.parent / f"{name}.mp4"
    check_output(source, output)
    with atomic_file(partial_path(output)) as file:
        file.write(b"video")
    replace(partial_path(output), output, overwrite=True)
    assert output.read_bytes() == b"video"
    assert "already" in str(refused(source, output))


@pytest.mark.parametrize("name", ["out", "out.avi", "out.mp4.txt", ".mp4", "out.", "-", "out.mp4.partial"])
def test_an_unknown_extension_lists_the_known_ones(source: Path, name: str) -> None:
    error = refused(source, source.parent / name)
    assert isinstance(error, UsageError)
    assert all(extension in str(error) for extension in CONTAINERS)


def test_an_existing_output_needs_a_yes(source: Path) -> None:
    output = source.parent / "out.mp4"
    output.write_bytes(b"an earlier one")
    assert "replace it with -y" in str(refused(source, output))
    assert "-n says to keep it" in str(refused(source, output, overwrite=False))
    check_output(source, output, overwrite=True)
    assert output.read_bytes() == b"an earlier one"


def test_a_dangling_link_counts_as_existing(source: Path) -> None:
    output = source.parent / "out.mp4"
    output.symlink_to(source.parent / "nowhere.mp4")
    assert "exists already" in str(refused(source, output))
    check_output(source, output, overwrite=True)


@pytest.mark.parametrize("overwrite", [None, False, True])
def test_the_input_is_never_the_output_by_any_name(
    source: Path, overwrite: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RG30."""
    folder = source.parent
    (folder / "symlink.mp4").symlink_to(source)
    (folder / "relative.mp4").symlink_to("in.mp4")
    (folder / "hard.mp4").hardlink_to(source)
    (folder.parent / "same").symlink_to(folder)
    monkeypatch.chdir(folder)
    for output in (
        source,
        Path("in.mp4"),
        Path("./in.mp4"),
        Path("../films/in.mp4"),
        folder.parent / "same" / "in.mp4",
        folder / "symlink.mp4",
        folder / "relative.mp4",
        folder / "hard.mp4",
    ):
        for given in (source, Path("in.mp4"), folder / "symlink.mp4"):
            error = refused(given, output, overwrite)
            assert isinstance(error, OutputError)
            assert "would overwrite the input" in str(error)


def test_a_file_system_without_case_is_seen_by_what_it_holds(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, another spelling opens the same file; a hard link gives the same answer to ``stat``."""
    (source.parent / "IN.MP4").hardlink_to(source)
    assert "would overwrite the input" in str(refused(source, source.parent / "IN.MP4", overwrite=True))


def test_the_input_is_not_what_is_made_on_the_way(source: Path) -> None:
    output = source.parent / "out.mp4"
    working = partial_path(output)
    source.rename(working)
    assert "would overwrite the input" in str(refused(working, output))
    folder = run_folder_path(output)
    (folder / "store").mkdir(parents=True)
    inside = folder / "store" / "in.mp4"
    working.rename(inside)
    with pytest.raises(OutputError, match="lies in the run folder"):
        check_output(inside, output)


def test_a_missing_input_is_somebody_elses_matter(source: Path) -> None:
    check_output(source.parent / "gone.mp4", source.parent / "out.mp4")


def test_folders_and_other_things_are_no_output(source: Path) -> None:
    (source.parent / "folder.mp4").mkdir()
    for output in (source.parent, source.parent / "folder.mp4", Path(), Path("/")):
        assert "is a folder" in str(refused(source, output, overwrite=True))
    os.mkfifo(source.parent / "pipe.mp4")
    assert "not an ordinary file" in str(refused(source, source.parent / "pipe.mp4", overwrite=True))


def test_a_missing_folder_is_named(source: Path) -> None:
    error = refused(source, source.parent / "gone" / "out.mp4")
    assert "gone does not exist; make it first" in str(error)
    assert error.exit_code is ExitCode.OUTPUT
    assert "is not a folder" in str(refused(source, source / "out.mp4"))


@pytest.mark.parametrize("length", [244, 252, 300])
def test_a_name_too_long_for_what_is_made_beside_it_is_refused_now(source: Path, length: int) -> None:
    error = refused(source, source.parent / ("n" * length + ".mp4"))
    assert f"is {length + 4} bytes long; use at most 247" in str(error)
    check_output(source, source.parent / ("n" * 243 + ".mp4"))


def test_names_that_are_not_utf8_are_refused(source: Path) -> None:
    for output in (Path(f"{source.parent}/b\udcffd.mp4"), Path("/b\udcffd/out.mp4")):
        error = refused(source, output)
        assert isinstance(error, OutputError)
        assert r"b\xffd" in str(error) and "not valid UTF-8" in str(error)
    with pytest.raises(InputError, match="not valid UTF-8"):
        check_output(Path("b\udcffd.mp4"), source.parent / "out.mp4")
    with pytest.raises(InputError, match="not valid UTF-8"):
        check_name(Path("b\udcffd.mp4"), InputError)
    with pytest.raises(InputError, match="UTF-8"):  # it is written down as it is named
        check_name(Path("b\udcffd/../a.mp4"), InputError)
    with pytest.raises(OutputError, match="zero byte"):
        check_name(Path("a\0b"))


def test_a_relative_name_in_a_folder_that_is_not_utf8(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(f"{source.parent}/b\udcffd")
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert "not valid UTF-8" in str(refused(source, Path("out.mp4")))


@pytest.fixture
def somebody() -> Iterator[Path]:
    """A folder in which this process is an ordinary user: root may write anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="uneven-test-"))
    folder.chmod(0o777)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["read-only", "unreadable"])
def test_an_unwritable_folder_is_named_with_the_reason(somebody: Path, mode: int) -> None:
    """RG32: before any work, with path and reason."""
    target = somebody / "locked"
    target.mkdir()
    target.chmod(mode)
    try:
        with pytest.raises(OutputError, match="can't be written: permission denied") as caught:
            check_output(somebody / "in.mp4", target / "out.mp4")
        assert str(target) in str(caught.value)
    finally:
        target.chmod(0o755)
    assert list(target.iterdir()) == []


def test_a_folder_that_can_be_written_but_not_listed_will_do(somebody: Path) -> None:
    target = somebody / "letter box"
    target.mkdir()
    target.chmod(0o300)
    try:
        check_output(somebody / "in.mp4", target / "out.mp4")
        with atomic_file(target / "out.mp4.partial") as file:
            file.write(b"video")
        replace(target / "out.mp4.partial", target / "out.mp4", overwrite=True)
    finally:
        target.chmod(0o755)
    assert [path.name for path in target.iterdir()] == ["out.mp4"]


def test_a_table_that_could_not_be_put_in_place_is_refused_before_the_work(somebody: Path) -> None:
    """``compare -o`` looked at the file, which may be writable where its folder isn't: the table of an hour's
    work could not be written then."""
    target = somebody / "locked"
    target.mkdir()
    table = target / "table.csv"
    table.write_text("old")
    table.chmod(0o666)
    target.chmod(0o555)
    try:
        with pytest.raises(OutputError, match="can't be written: permission denied"):
            check_place(table)
    finally:
        target.chmod(0o755)
    assert table.read_text() == "old"
    check_place(table)
    assert table.read_text() == "old", "a look changes nothing"
    with pytest.raises(OutputError, match="is a folder"):
        check_place(target)


# --- the final name --------------------------------------------------------------------------------------


def test_replace_puts_the_new_file_in_place(tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    output.write_bytes(b"old")
    partial_path(output).write_bytes(b"new")
    replace(partial_path(output), output, overwrite=True)
    assert tree(tmp_path) == {str(output): b"new"}


def test_replacing_a_link_leaves_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.mp4").write_bytes(b"old")
    output = tmp_path / "out.mp4"
    output.symlink_to(tmp_path / "elsewhere.mp4")
    partial_path(output).write_bytes(b"new")
    replace(partial_path(output), output, overwrite=True)
    assert not output.is_symlink() and output.read_bytes() == b"new"
    assert (tmp_path / "elsewhere.mp4").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EIO, "the disk reports an error"),
        (errno.EBUSY, "it is in use"),
        (errno.EXDEV, "another file system"),
        (errno.EDQUOT, "quota"),
    ],
)
def test_a_failed_replace_says_why_and_keeps_both_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    output = tmp_path / "out.mp4"
    output.write_bytes(b"old")
    partial_path(output).write_bytes(b"new")

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OutputError, match=said) as caught:
        replace(partial_path(output), output, overwrite=True)
    assert str(partial_path(output)) in str(caught.value)
    assert tree(tmp_path) == {str(output): b"old", f"{output}.partial": b"new"}


def test_replacing_with_what_is_gone_or_over_a_folder(tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    with pytest.raises(OutputError, match="no such file"):
        replace(partial_path(output), output, overwrite=True)
    output.mkdir()
    partial_path(output).touch()
    with pytest.raises(OutputError, match="it is a folder"):
        replace(partial_path(output), output, overwrite=True)


def test_a_file_system_that_can_not_sync_folders_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("farm.paths.sync_folder", refuse)
    code = errno.EINVAL
    with atomic_file(tmp_path / "a") as file:
        file.write(b"a")
    code = errno.EIO
    with (
        pytest.raises(OutputError, match="can't be synced: the disk reports an error"),
        atomic_file(tmp_path / "b"),
    ):
        pass


def test_an_atomic_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as file:
        file.write(b"one")
        assert not path.exists()
    with pytest.raises(RuntimeError), atomic_file(path) as file:
        file.write(b"two")
        raise RuntimeError
    with pytest.raises(OutputError, match="the disk is full"), atomic_file(path) as file:
        raise OSError(errno.ENOSPC, "No space left on device")
    assert tree(tmp_path) == {str(path): b"one"}


# --- words -----------------------------------------------------------------------------------------------


def test_printable() -> None:
    assert printable("plain name.mp4") == "plain name.mp4"
    assert (
        printable(Path("эпизод 第一話 \U0001f468\u200d\U0001f469"))
        == "эпизод 第一話 \U0001f468\u200d\U0001f469"
    )
    assert printable("new\nline\x1b[2J") == r"new\nline\x1b[2J"
    assert printable("b\udcffd \u202egpj.exe") == r"b\xffd \u202egpj.exe"


def test_reasons_that_are_not_listed_are_still_said() -> None:
    assert reason(OSError(errno.ENOTTY, "Inappropriate ioctl for device")) == "inappropriate ioctl for device"
    assert reason(OSError("just words")) == "just words"
    assert reason(OSError()) == "oserror"


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_name_that_was_taken_meanwhile_is_only_replaced_if_asked(tmp_path: Path, overwrite: bool) -> None:
    output = tmp_path / "out.mp4"
    partial_path(output).write_bytes(b"new")
    output.write_bytes(b"precious")
    if overwrite:
        replace(partial_path(output), output, overwrite=True)
        assert output.read_bytes() == b"new" and not partial_path(output).exists()
    else:
        with pytest.raises(OutputError, match="appeared while"):
            replace(partial_path(output), output, overwrite=False)
        assert output.read_bytes() == b"precious" and partial_path(output).read_bytes() == b"new"


def test_a_free_name_is_taken_whole(tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    partial_path(output).write_bytes(b"new")
    replace(partial_path(output), output, overwrite=False)
    assert output.read_bytes() == b"new" and not partial_path(output).exists()


def test_a_folder_for_run_folders_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_run_folder(tmp_path / "out.uneven", tmp_path)
    for temp, words in (
        (tmp_path / "none", "does not exist; make it first"),
        (tmp_path / "file", "is not a"),
    ):
        with pytest.raises(OutputError, match=f"--temp puts the run folder, {words}"):
            check_run_folder(temp / "out.uneven", temp)
