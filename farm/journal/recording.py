"""Recordings: exported journals, and the catalogue of the runs a user has made.

A recording is gzip-compressed JSON lines: a line that names format and version, then one record a line, as in
the journal. The same records give the same bytes.

Rules of this file:
- a recording is written whole under its name or not at all;
- a reader believes nothing: cut off, changed or made by a newer version is said in one sentence;
- the catalogue is a convenience: a run folder can be found and resumed without it, and an entry that can't
  be read is left out.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import platformdirs

from farm.errors import InputError, OutputError, UsageError, shorten
from farm.events import (
    SCHEMA_VERSION,
    Record,
    RelayStarted,
    RunFinished,
    RunOpened,
    decode_record,
    encode_record,
)
from farm.folder import holds_run
from farm.paths import (
    FOLDER_SUFFIX,
    atomic_file,
    check_name,
    printable,
    reason,
    remove_unfinished,
    run_folder_path,
    temporary_name,
)

RECORDING_SUFFIX = ".jsonl.gz"
STATE_VARIABLE = "UNEVEN_STATE_DIR"
_ENTRY_SUFFIX = ".json"
_FORMAT = "uneven recording"
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z", re.ASCII)


class _Header(msgspec.Struct, frozen=True):
    format: str
    version: int


def write_recording(records: Iterable[Record], path: Path) -> None:
    """Write a recording; what had that name is replaced once it is whole. Raises OutputError."""
    header = msgspec.json.encode(_Header(_FORMAT, SCHEMA_VERSION))
    with (
        atomic_file(path, RECORDING_SUFFIX) as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed,
    ):
        packed.write(header + b"\n")
        for record in records:
            packed.write(encode_record(record) + b"\n")


def read_recording(path: Path) -> Iterator[Record]:
    """The records of a recording, oldest first.

    Raises InputError, on the way, when it can't be read, is damaged, or was made by a newer version; the
    records before the damage have been handed out by then.
    """
    name = printable(path)
    try:
        with gzip.open(path, "rb") as file:
            _check_header(name, file.readline())
            for seq, line in enumerate(file):
                record = decode_record(line)
                if record.seq != seq:
                    raise InputError(f"the recording {name} is damaged: record {seq} is missing")
                yield record
    except (EOFError, gzip.BadGzipFile, zlib.error, msgspec.DecodeError) as error:
        raise InputError(f"{name} is not a recording of uneven, or is damaged: {error}") from error
    except OSError as error:
        raise InputError(f"the recording {name} can't be read: {reason(error)}") from error


def _check_header(name: str, line: bytes) -> None:
    try:
        header = msgspec.json.decode(line, type=_Header)
    except msgspec.DecodeError:
        header = _Header("", 0)
    if header.format != _FORMAT:
        raise InputError(f"{name} is not a recording of uneven, or its beginning is damaged")
    if header.version > SCHEMA_VERSION:
        raise InputError(
            f"the recording {name} has version {header.version} and this uneven reads up to "
            f"{SCHEMA_VERSION}; use a newer uneven"
        )


class RunEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the catalogue knows of a run; paths are absolute, an empty text means not known."""

    run_id: str = ""
    input: str = ""
    output: str = ""
    folder: str = ""  #: the run folder; it may be gone
    started: str = ""  #: wall time, for people only
    exit_code: int | None = None  #: None while the run has not come to an end
    outcome: str = ""
    recording: str = ""  #: the recording, if it was saved
    packets_sha256: str = ""  #: of the output's video, by which it is known wherever it is


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where uneven keeps what outlives a run: UNEVEN_STATE_DIR, or the user's state folder."""
    named = environment.get(STATE_VARIABLE)
    return Path(named) if named else platformdirs.user_state_path("uneven")


class RunCatalogue:
    """The runs of a user, one small file and one recording each, in ``folder``."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = state_folder() / "runs" if folder is None else folder

    def recording_path(self, run_id: str) -> Path:
        """Where the recording of that run is, or would be. Raises ValueError for what can't be a run id."""
        return self.folder / (_checked(run_id) + RECORDING_SUFFIX)

    def register(
        self, run_id: str, *, input: Path, output: Path, folder: Path, started: str = ""
    ) -> RunEntry:
        """Note a run at its start or when it is resumed, so that it can be found. Raises OutputError."""
        for path in (input, output, folder):
            check_name(path)
        known = self._read(self._entry_path(run_id))
        entry = RunEntry(
            run_id=run_id,
            input=os.path.abspath(input),  # noqa: PTH100 - Path.absolute keeps '..'
            output=os.path.abspath(output),  # noqa: PTH100
            folder=os.path.abspath(folder),  # noqa: PTH100
            started=(known.started if known else "") or started,
        )
        self._write(entry)
        return entry

    def save(self, run_id: str, records: Iterable[Record]) -> RunEntry:
        """Keep a run's recording, and note how the run stands by its records. Raises OutputError."""
        path = self.recording_path(run_id)
        self._make_folder()
        entry = self._read(self._entry_path(run_id)) or RunEntry(run_id=run_id)

        def noted() -> Iterator[Record]:
            nonlocal entry
            for record in records:
                entry = _noted(entry, record)
                yield record

        write_recording(noted(), path)
        self._write(entry)
        return msgspec.structs.replace(entry, recording=str(path))

    def note_end(self, run_id: str, exit_code: int, outcome: str) -> None:
        """Note how a run ended; one that isn't known stays so. Raises OutputError."""
        entry = self._read(self._entry_path(run_id))
        if entry is not None:
            self._write(msgspec.structs.replace(entry, exit_code=exit_code, outcome=outcome))

    def sweep(self) -> None:
        """Remove what a crash left half written, where no run comes that would write it anew."""
        for kind in (RECORDING_SUFFIX, _ENTRY_SUFFIX):
            remove_unfinished(temporary_name(self.folder / kind))

    def entries(self) -> list[RunEntry]:
        """All runs, the one started or saved last first."""
        found = []
        try:
            with os.scandir(self.folder) as files:
                for file in files:
                    if file.name.endswith(_ENTRY_SUFFIX):
                        with suppress(FileNotFoundError):  # removed by another uneven
                            found.append((file.stat().st_mtime_ns, file.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OutputError(f"{printable(self.folder)} can't be read: {reason(error)}") from error
        read = (self._read(self.folder / name) for _, name in sorted(found, reverse=True))
        return [entry for entry in read if entry is not None]

    def find(self, name: str) -> RunEntry:
        """The run that is meant by an id, an output path, a run folder, or ``last``; the newest of several.

        A run folder that the catalogue doesn't know is found too, without an id. Raises UsageError.
        """
        entries = self.entries()
        if name == "last":
            if entries:
                return entries[0]
            raise UsageError("no run is known yet; start one with render")
        if not name:
            raise UsageError(
                "the name of the run is empty; give its id, its output, its run folder, or 'last'"
            )
        wanted = os.path.realpath(name)
        for entry in entries:
            if entry.run_id == name:
                return entry
        for entry in entries:
            if any(path and os.path.realpath(path) == wanted for path in (entry.output, entry.folder)):
                return entry
        for folder in (Path(wanted), run_folder_path(Path(wanted))):
            if holds_run(folder):
                return RunEntry(output=str(folder).removesuffix(FOLDER_SUFFIX), folder=str(folder))
        raise UsageError(
            f"there is no run {shorten(name)}; give a run's id, its output, its run folder, or 'last'"
        )

    def forget(self, run_id: str) -> None:
        """Remove a run's recording and its entry; what is gone already is fine. Raises OutputError."""
        for path in (self.recording_path(run_id), self._entry_path(run_id)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise OutputError(f"{printable(path)} can't be removed: {reason(error)}") from error

    def _entry_path(self, run_id: str) -> Path:
        return self.folder / (_checked(run_id) + _ENTRY_SUFFIX)

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{printable(self.folder)} can't be made: {reason(error)}") from error

    def _write(self, entry: RunEntry) -> None:
        path = self._entry_path(entry.run_id)
        self._make_folder()
        with atomic_file(path, _ENTRY_SUFFIX) as file:
            file.write(msgspec.json.encode(entry))

    def _read(self, path: Path) -> RunEntry | None:
        try:
            entry = msgspec.json.decode(path.read_bytes(), type=RunEntry)
        except (OSError, msgspec.DecodeError):
            return None
        if entry.run_id + _ENTRY_SUFFIX != path.name:
            return None
        recording = self.recording_path(entry.run_id)
        return msgspec.structs.replace(entry, recording=str(recording) if recording.is_file() else "")


def _checked(run_id: str) -> str:
    if not _RUN_ID.match(run_id):
        raise ValueError(f"a run id is letters, digits, '.', '_' and '-', not {shorten(run_id)}")
    return run_id


def _noted(entry: RunEntry, record: Record) -> RunEntry:
    """``entry`` with what a record adds. A resumed run starts several times; the first start is the one."""
    match record.event:
        case RunOpened(input=source, output=output):
            source, output = os.path.abspath(source), os.path.abspath(output)  # noqa: PTH100
            return msgspec.structs.replace(entry, input=entry.input or source, output=entry.output or output)
        case RelayStarted(wall_time=wall_time):
            return msgspec.structs.replace(
                entry, started=entry.started or wall_time, exit_code=None, outcome=""
            )
        case RunFinished(exit_code=exit_code, outcome=outcome, packets_sha256=sha256):
            return msgspec.structs.replace(entry, exit_code=exit_code, outcome=outcome, packets_sha256=sha256)
    return entry
