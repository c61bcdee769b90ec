"""Recordings give back what was recorded or say why not; the catalogue finds runs."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.errors import InputError, OutputError, UsageError
from farm.events import (
    ClaimProgress,
    ClaimRefused,
    LeaseRenewed,
    MessageRefused,
    Notice,
    PartAdopted,
    PartFailed,
    PhaseStarted,
    Record,
    RelayStarted,
    RunFinished,
    WorkerJoined,
    decode_record,
    encode_record,
)
from farm.folder import RunFolder
from farm.journal import Journal, RunCatalogue, read_recording, write_recording
from farm.journal.recording import state_folder
from farm.paths import atomic_file
from tests.journal.helpers import AWKWARD_NAMES, credits, opened, run_records

texts = st.text(max_size=30)
numbers = st.integers(0, 2**53)
seconds = st.floats(0, 1e9, allow_nan=False)
events = st.one_of(
    st.builds(Notice, level=st.sampled_from(["info", "warning", "error"]), text=texts),
    st.builds(RelayStarted, epoch=numbers, wall_time=texts),
    st.builds(PhaseStarted, phase=st.sampled_from(["probe", "work", "stitch"])),
    st.builds(WorkerJoined, worker=texts, pid=st.none() | numbers, host=texts, fps_cap=st.none() | seconds),
    st.builds(MessageRefused, worker=texts, asked=texts, received=texts, reason=texts),
    st.builds(ClaimRefused, worker=texts, asked=texts, token=texts, reason=texts, holder=st.none() | texts),
    st.builds(PartFailed, part=numbers, token=texts, worker=texts, kind=texts, message=texts, tries=numbers),
    st.builds(PartAdopted, part=numbers, frames=numbers, file=texts, size_bytes=numbers, sha256=texts),
    st.builds(
        LeaseRenewed,
        worker=texts,
        claims=st.lists(st.builds(ClaimProgress, token=texts, position=numbers), max_size=3).map(tuple),
    ),
    st.builds(opened, output=texts, run_id=texts),
)
logs = st.lists(st.tuples(seconds, events), max_size=12).map(
    lambda pairs: [Record(seq, at, event) for seq, (at, event) in enumerate(pairs)]
)


@given(logs)
def test_a_record_is_one_line_and_the_same_after_reading(records: list[Record]) -> None:
    for record in records:
        line = encode_record(record)
        assert b"\n" not in line
        assert decode_record(line) == record
        assert encode_record(decode_record(line)) == line


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(logs)
def test_journal_and_recording_give_back_any_log(tmp_path: Path, records: list[Record]) -> None:
    path = tmp_path / "journal.db"
    path.unlink(missing_ok=True)
    journal = Journal.create(path)
    journal.append(records)
    write_recording(journal.records(), tmp_path / "run.jsonl.gz")
    journal.close()
    assert list(read_recording(tmp_path / "run.jsonl.gz")) == records


def test_the_same_records_give_the_same_bytes_whatever_the_name(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_recording(run_records(), tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    lines = gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).splitlines()
    assert lines[1:] == [encode_record(record) for record in run_records()]


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_recordings_of_any_name(tmp_path: Path, name: str) -> None:
    write_recording(run_records(), tmp_path / name)
    assert list(read_recording(tmp_path / name)) == run_records()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failed_export_leaves_the_old_recording_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    write_recording(run_records(), path)
    before = path.read_bytes()

    def broken() -> object:
        yield from run_records()
        raise InputError("the journal broke")

    with pytest.raises(InputError, match="broke"):
        write_recording(broken(), path)  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OutputError, match="can't be written: no such file or folder"):
        write_recording(run_records(), tmp_path / "gone" / "run.jsonl.gz")


def test_every_truncation_is_found_and_what_came_before_is_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    write_recording(credits(0, 40), path)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        good = []
        with pytest.raises(InputError, match="recording"):
            for record in read_recording(path):
                good.append(record)
        assert good == credits(0, len(good))


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)  # the same name of a test at every run


def test_every_changed_byte_is_found_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    write_recording(credits(0, 40), path)
    content = path.read_bytes()
    for offset in range(len(content)):
        changed = bytearray(content)
        changed[offset] ^= 0x41
        path.write_bytes(changed)
        try:
            assert list(read_recording(path)) == credits(0, 40)
            assert offset < 10, "only gzip's own time stamp and the like may change unnoticed"
        except InputError:
            pass


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a recording"),
        (b"not gzip", "not a recording"),
        (_packed(b""), "not a recording"),
        (_packed(b"\xff\xfe\n"), "not a recording"),
        (_packed(b'{"format":"something else","version":1}\n'), "not a recording"),
        (
            _packed(b'{"format":"uneven recording","version":99}\n{"new":1}\n'),
            "version 99 and this uneven",
        ),
        (_packed(b'{"format":"uneven recording","version":1}\n{"new":1}\n'), "damaged"),
        (
            _packed(b'{"format":"uneven recording","version":1}\n' + encode_record(credits(1, 1)[0]) + b"\n"),
            "record 0 is missing",
        ),
    ],
)
def test_what_is_no_recording_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        list(read_recording(path))


def test_a_missing_recording_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read: no such file"):
        list(read_recording(tmp_path / "gone"))
    with pytest.raises(InputError, match="can't be read: it is a folder"):
        list(read_recording(tmp_path))


# --- the catalogue ---------------------------------------------------------------------------------------


@pytest.fixture
def catalogue(tmp_path: Path) -> RunCatalogue:
    return RunCatalogue(tmp_path / "state" / "runs")


def age(catalogue: RunCatalogue, *run_ids: str) -> None:
    """Make these the order in which the runs were last touched, without waiting for a clock."""
    for place, run_id in enumerate(run_ids):
        os.utime(catalogue.folder / f"{run_id}.json", ns=(place * 10**9, place * 10**9))


def test_the_state_folder_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert state_folder({"UNEVEN_STATE_DIR": "/elsewhere"}) == Path("/elsewhere")
    assert state_folder({}).name == "uneven"
    monkeypatch.setenv("UNEVEN_STATE_DIR", str(tmp_path))
    assert RunCatalogue().folder == tmp_path / "runs"


def test_what_a_crash_left_half_written_is_swept_and_what_is_being_written_is_not(
    catalogue: RunCatalogue, tmp_path: Path
) -> None:
    """Killed while it noted the end of a run that is done: no later run comes that would write it anew."""
    catalogue.register("a", input=tmp_path, output=tmp_path / "o.mp4", folder=tmp_path, started="now")
    with atomic_file(catalogue.folder / "b.json", ".json") as file:
        (half,) = (path for path in catalogue.folder.iterdir() if path.name.startswith("."))
        catalogue.sweep()
        file.write(b"{}")
    half.write_bytes(b'{"run_')
    catalogue.sweep()
    assert sorted(path.name for path in catalogue.folder.iterdir()) == ["a.json", "b.json"]


def test_nothing_known_yet(catalogue: RunCatalogue) -> None:
    assert catalogue.entries() == []
    with pytest.raises(UsageError, match="no run is known yet"):
        catalogue.find("last")
    assert not catalogue.folder.exists()


def test_a_saved_run_is_found_by_id_output_and_last(catalogue: RunCatalogue, tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    saved = catalogue.save("run-1", run_records(str(output)))
    assert saved.output == str(output)
    assert (saved.exit_code, saved.outcome) == (0, "done and verified")
    assert saved.started == "2024-05-01T10:00:00+00:00"
    assert catalogue.entries() == [saved]
    for name in ("run-1", str(output), f"{tmp_path}/./out.mp4", "last"):
        assert catalogue.find(name) == saved
    assert list(read_recording(Path(saved.recording))) == run_records(str(output))


def test_a_relative_output_means_the_same_run(
    catalogue: RunCatalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved = catalogue.save("run-1", run_records("out.mp4"))
    assert saved.output == str(tmp_path / "out.mp4")
    assert catalogue.find("out.mp4") == catalogue.find(str(tmp_path / "out.mp4")) == saved


def test_an_interrupted_run_is_found_with_its_folder(catalogue: RunCatalogue, tmp_path: Path) -> None:
    folder, output = tmp_path / "elsewhere" / "out.uneven", tmp_path / "out.mp4"
    entry = catalogue.register(
        "run-1", input=tmp_path / "in.mp4", output=output, folder=folder, started="noon"
    )
    assert entry.exit_code is None and entry.recording == ""
    for name in ("run-1", str(output), str(folder), "last"):
        assert catalogue.find(name) == entry

    unfinished = catalogue.save("run-1", run_records(str(output), finished=False))
    assert unfinished.exit_code is None
    assert unfinished.folder == str(folder)
    assert unfinished.started == "noon"
    finished = catalogue.save("run-1", run_records(str(output)))
    assert finished.exit_code == 0
    resumed = [*run_records(str(output)), Record(5, 10.0, RelayStarted(epoch=2))]
    assert catalogue.save("run-1", resumed).exit_code is None
    ended = [*resumed, Record(6, 11.0, RunFinished(exit_code=5, outcome="incomplete"))]
    assert catalogue.save("run-1", ended).exit_code == 5
    again = catalogue.register(
        "run-1", input=tmp_path / "in.mp4", output=output, folder=folder, started="later"
    )
    assert again.started == "noon"
    assert len(catalogue.entries()) == 1


def test_the_newest_of_several_comes_first(catalogue: RunCatalogue, tmp_path: Path) -> None:
    for run_id in ("a", "b", "c"):
        catalogue.save(run_id, run_records(str(tmp_path / "out.mp4"), run_id))
    age(catalogue, "c", "a", "b")
    assert [entry.run_id for entry in catalogue.entries()] == ["b", "a", "c"]
    assert catalogue.find("last").run_id == "b"
    assert catalogue.find(str(tmp_path / "out.mp4")).run_id == "b"


def test_a_run_folder_is_found_without_the_catalogue(catalogue: RunCatalogue, tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    with RunFolder.create(tmp_path / "out.mp4.uneven") as folder:
        Journal.create(folder.journal).close()
    for name in (str(output), str(folder.path), f"{folder.path}/"):
        found = catalogue.find(name)
        assert (found.run_id, found.folder, found.output) == ("", str(folder.path), str(output))


@pytest.mark.parametrize("name", ["", "nobody", "/", "..", "no\nsuch", "b\udcffd"])
def test_an_unknown_name_is_said(catalogue: RunCatalogue, name: str) -> None:
    catalogue.save("run-1", run_records())
    with pytest.raises(UsageError) as caught:
        catalogue.find(name)
    assert "\n" not in str(caught.value)
    str(caught.value).encode()


def test_entries_that_can_not_be_read_are_left_out(catalogue: RunCatalogue) -> None:
    saved = catalogue.save("run-1", run_records())
    (catalogue.folder / "broken.json").write_bytes(b"{")
    (catalogue.folder / "other.json").write_bytes((catalogue.folder / "run-1.json").read_bytes())
    (catalogue.folder / "folder.json").mkdir()
    assert catalogue.entries() == [saved]


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden", "a\n", "x" * 101, "é"])
def test_a_run_id_is_a_plain_name(catalogue: RunCatalogue, run_id: str) -> None:
    with pytest.raises(ValueError, match="a run id is"):
        catalogue.save(run_id, run_records())


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_outputs_of_any_name_are_found(catalogue: RunCatalogue, tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    catalogue.register("run-1", input=output, output=output, folder=output, started="")
    assert catalogue.find(str(output)).output == str(output)


def test_a_state_folder_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="can't be made"):
        RunCatalogue(tmp_path / "file" / "runs").save("run-1", run_records())
