"""What is checked about paths before any work starts, and how a file comes to its final name.

Rules of this file:
- everything that can be known to fail at the end is refused at the start, in one sentence;
- nothing that exists is touched by a check: the one file it makes, to see whether it can, it removes;
- a file gets its final name whole and synced, by rename, or not at all;
- names are bytes to the system and text to us: a name that is not valid UTF-8 can't go into the journal or
  onto the screen, so it is refused by ``check_name``; every other name works, and ``printable`` shows it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from farm.errors import InputError, OutputError, UnevenError, UsageError
from farm.parts import sync_folder
from farm.settings import CONTAINERS, IMAGE_ENCODERS, not_written

PARTIAL_SUFFIX = ".partial"
FOLDER_SUFFIX = ".uneven"

_NAME_BYTES_MAX = 255  # where the system doesn't say
_NAME_BYTES_KEPT = 100  #: of an output's, in that of a run folder that is elsewhere
_FOLDER_BYTES_MAX = 480  #: SQLite opens no file whose path is longer than some 500
_JOINER = "\u200d"  # not printable by itself, but part of many emoji

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed here",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "it is a link",
    errno.EXDEV: "it is on another file system",
    errno.EIO: "the disk reports an error",
    errno.EBUSY: "it is in use",
    errno.ETXTBSY: "it is in use",
    errno.EMFILE: "too many files are open",
    errno.ENOLCK: "the file system has no locks",
    errno.ENOTSUP: "the file system can't do that",
}

#: A folder that can't be opened or synced for these reasons holds its names no worse than before.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}


def reason(error: OSError) -> str:
    """Why the system refused, in a few words for a sentence."""
    return _REASONS.get(error.errno or 0) or (error.strerror or str(error) or type(error).__name__).lower()


def is_full(error: BaseException) -> bool:
    """Whether that is a disk, or a user's share of it, without room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def printable(path: Path | str) -> str:
    """A path for people: one line, and nothing in it that could steer a terminal."""
    return "".join(c if c.isprintable() or c == _JOINER else _escape(c) for c in str(path))


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python carries it
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def partial_path(output: Path) -> Path:
    """Where an output is written until it is verified; in the same folder, so that a rename is atomic."""
    return output.parent / (output.name + PARTIAL_SUFFIX)


def run_folder_path(output: Path, temp: Path | None = None) -> Path:
    """The run folder of an output: beside it, or under ``temp`` with a name that no other output shares."""
    if temp is None:
        return output.parent / (output.name + FOLDER_SUFFIX)
    digest = hashlib.sha256(os.fsencode(os.path.realpath(output))).hexdigest()[:10]
    kept = os.fsencode(output.name)[:_NAME_BYTES_KEPT]
    return temp / f"{kept.decode(errors='ignore')}-{digest}{FOLDER_SUFFIX}"


def check_name(path: Path, error: type[UnevenError] = OutputError) -> None:
    """Raises ``error`` if the absolute path can't be written down as text."""
    text = str(path.absolute())  # as it is written down, with every '..' and what stands before it
    try:
        text.encode()
    except UnicodeEncodeError:
        raise error(f"the path {printable(text)} is not valid UTF-8; rename it or its folder") from None
    if "\0" in text:
        raise error(f"the path {printable(text)} holds a zero byte")


def check_run_folder(folder: Path, temp: Path | None = None) -> None:
    """Raises OutputError for a run folder whose path is so long that no journal could be in it, or that
    can't be made in ``temp``, for that is no folder."""
    if temp is not None and not temp.is_dir():
        missing = "is not a folder" if os.path.lexists(temp) else "does not exist; make it first"
        raise OutputError(f"{printable(temp)}, where --temp puts the run folder, {missing}")
    path = os.path.abspath(folder)  # noqa: PTH100 - without a look at the disk
    length = len(os.fsencode(path))
    if length > _FOLDER_BYTES_MAX:
        raise OutputError(
            f"the path of the run folder {printable(path)} is {length} bytes long; use at most "
            f"{_FOLDER_BYTES_MAX}, or put it elsewhere with --temp"
        )


def check_output(source: Path, output: Path, overwrite: bool | None = None) -> None:
    """Everything about the output that can be known before work starts.

    ``overwrite``: True replaces an existing file (``-y``), False never does (``-n``), None was not asked.
    Raises UsageError for an unknown extension, InputError for an input whose name can't be written down, else
    OutputError.
    """
    check_name(source, InputError)
    check_name(output)
    try:
        check_name_length(output, PARTIAL_SUFFIX)  # the longest suffix that is put to it while it is made
        _check_kind(output)
        _check_not_source(source, output)
        check_free(output, overwrite)
        _check_folder(output.parent)
    except OSError as error:
        raise OutputError(f"{printable(output)} can't be written: {reason(error)}") from error


def check_place(path: Path) -> None:
    """Whether ``atomic_file`` can write a file there, whatever is there now: to be asked before the work that
    it is the result of. Raises OutputError."""
    try:
        _check_no_folder(path)
        _check_folder(path.parent)
    except OSError as error:
        raise OutputError(f"{printable(path)} can't be written: {reason(error)}") from error


def check_free(output: Path, overwrite: bool | None) -> None:
    """Raises OutputError for an output that is there already, unless it may be replaced."""
    if os.path.lexists(output) and not overwrite:
        advice = ", and -n says to keep it;" if overwrite is False else "; replace it with -y, or"
        raise OutputError(f"{printable(output)} exists already{advice} choose another name")


def check_name_length(output: Path, suffix: str = "") -> None:
    """Raises OutputError for a name that is too long once it has that suffix."""
    try:
        limit = os.pathconf(output.parent, "PC_NAME_MAX")
    except (OSError, ValueError):
        limit = _NAME_BYTES_MAX
    room = limit - len(suffix)
    length = len(os.fsencode(output.name))
    if length > room:
        raise OutputError(
            f"the output's name {printable(output.name)} is {length} bytes long; use at most {room}"
        )


def _check_no_folder(path: Path) -> None:
    if path.is_dir():
        raise OutputError(f"{printable(path)} is a folder; give the output a file name")


def _check_kind(output: Path) -> None:
    """An output has a known extension, and what it replaces is an ordinary file."""
    _check_no_folder(output)
    if output.suffix.lower() not in (*CONTAINERS, *IMAGE_ENCODERS):
        known = ", ".join(CONTAINERS)
        raise UsageError(
            f"the output {printable(output)} has no extension that names a container; use one of {known}"
            f"{not_written(output.suffix)}"
        )
    if output.exists() and not stat.S_ISREG(output.stat().st_mode):
        raise OutputError(f"{printable(output)} is not an ordinary file; choose another name")


def _check_not_source(source: Path, output: Path) -> None:
    """The input is neither the output nor anything that is made or removed on the way to it."""
    for path in (output, partial_path(output)):
        if same_file(path, source):
            raise OutputError(
                f"the output {printable(path)} would overwrite the input {printable(source)}; "
                "choose another name"
            )
    folder = run_folder_path(output)
    if Path(os.path.realpath(folder)) in Path(os.path.realpath(source)).parents:
        raise OutputError(
            f"the input {printable(source)} lies in the run folder {printable(folder)}; "
            "choose another name for the output"
        )


def same_file(path: Path, other: Path) -> bool:
    """By any name: link, hard link, ``./``, or another case where the file system takes it for the same."""
    try:
        return path.samefile(other)
    except OSError:
        return False


def _check_folder(folder: Path) -> None:
    if not folder.exists():
        raise OutputError(f"the output's folder {printable(folder)} does not exist; make it first")
    if not folder.is_dir():
        raise OutputError(f"{printable(folder)}, where the output should go, is not a folder")
    trial = temporary_name(folder / "-")
    try:
        os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        trial.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"the output's folder {printable(folder)} can't be written: {reason(error)}"
        ) from error


def replace(partial: Path, output: Path, *, overwrite: bool) -> None:
    """Give a finished file its final name: synced, then renamed. Only with ``overwrite`` over a file that has
    that name by now.

    Raises OutputError; ``partial`` is still there then, and ``output`` is what it was.
    """
    try:
        sync_file(partial)
        if overwrite:
            partial.replace(output)
        else:
            _move_to_free_name(partial, output)
    except OSError as error:
        raise OutputError(
            f"{printable(output)} can't be put in place: {reason(error)}; "
            f"the finished file is {printable(partial)}"
        ) from error
    sync_name(output)


def _move_to_free_name(partial: Path, output: Path) -> None:
    """Raises OutputError if the name is taken, OSError."""
    try:
        os.link(partial, output)  # unlike a rename it fails if the name is taken
    except FileExistsError:
        raise OutputError(
            f"{printable(output)} appeared while it was rendered, and was left alone; the finished file is "
            f"{printable(partial)}"
        ) from None
    except OSError:  # a file system without hard links
        if os.path.lexists(output):
            raise
        partial.replace(output)
    else:
        partial.unlink()


def make_durable(path: Path) -> None:
    """Sync a file and its name. Raises OutputError."""
    try:
        sync_file(path)
    except OSError as error:
        raise OutputError(f"{printable(path)} can't be synced: {reason(error)}") from error
    sync_name(path)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable. Raises OSError; never follows a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_name(path: Path) -> None:
    """Make a file's name durable, where the system can. Raises OutputError when the disk fails."""
    try:
        sync_folder(path.parent)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise OutputError(f"{printable(path.parent)} can't be synced: {reason(error)}") from error


@contextmanager
def atomic_file(path: Path, kind: str = "") -> Iterator[BinaryIO]:
    """Write a file that appears under its name whole and synced, or not at all. Files of one ``kind`` in a
    folder have the same temporary name, for where no crash may leave one that nobody writes again.

    Raises OutputError when the system refuses. Any error in the body leaves what was there before. Two that
    write the same file, or files of a kind, at once wait for each other.
    """
    temporary = temporary_name(path.with_name(kind) if kind else path)
    try:
        with os.fdopen(_open_alone(temporary), "wb") as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise OutputError(f"{printable(path)} can't be written: {reason(error)}") from error
    sync_name(path)


def temporary_name(path: Path) -> Path:
    """The name that a file has while it is written. Short, for the final one plus a suffix may be longer than
    names can be; and always the same, so that what a crash left is taken by the next who writes the file."""
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:10]
    return path.parent / f".uneven-{digest}{PARTIAL_SUFFIX}"


def remove_unfinished(temporary: Path) -> None:
    """Remove what a crash left of ``atomic_file`` under its temporary name; not what somebody is writing."""
    with suppress(OSError):
        handle = os.open(temporary, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if has_name(handle, temporary):
                temporary.unlink()
        finally:
            os.close(handle)


def has_name(handle: int, path: Path) -> bool:
    """Whether an open file still has its name: between an open and a lock its holder may have removed it.
    Raises OSError."""
    return path.exists() and os.path.samestat(os.fstat(handle), path.stat())


def _open_alone(path: Path) -> int:
    """The file, emptied and locked until it is closed. Raises OSError."""
    while True:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if has_name(handle, path):
                os.ftruncate(handle, 0)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
