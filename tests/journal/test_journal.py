"""The journal keeps what it acknowledged, and says so when it can't."""

from __future__ import annotations

import signal
import sqlite3
import zlib
from pathlib import Path

import pytest

from farm.errors import ExitCode, OutputError
from farm.events import LoopStalled, Record
from farm.journal import Journal, JournalBusy, JournalDamaged, JournalNewer
from tests.journal.helpers import AWKWARD_NAMES, credited, credits, python, run_records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def filled(path: Path, count: int) -> list[Record]:
    journal = Journal.create(path)
    records = credits(0, count)
    for start in range(0, count, 100):
        journal.append(records[start : start + 100])
    journal.close()
    return records


def read(path: Path) -> list[Record]:
    journal = Journal.open(path)
    try:
        return list(journal.records())
    finally:
        journal.close()


def test_what_was_appended_is_there_after_reopening(path: Path) -> None:
    journal = Journal.create(path)
    assert journal.last_seq == -1
    assert list(journal.records()) == []
    records = run_records()
    journal.append(records[:1])
    journal.append([])
    journal.append(records[1:])
    assert journal.last_seq == len(records) - 1
    assert list(journal.records()) == records
    journal.close()
    journal.close()

    again = Journal.open(path)
    assert again.last_seq == len(records) - 1
    again.append([credited(len(records))])
    assert list(again.records()) == [*records, credited(len(records))]
    again.close()


def test_it_is_one_file_once_closed(path: Path) -> None:
    filled(path, 10)
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]


def test_it_is_durable_and_exclusive_by_its_settings(path: Path) -> None:
    journal = Journal.create(path)

    def ask(name: str) -> object:
        return journal._connection.execute(f"PRAGMA {name}").fetchone()[0]

    assert ask("journal_mode") == "wal"
    assert ask("synchronous") == 2
    assert ask("locking_mode") == "exclusive"
    journal.append(credits(0, 3))
    assert not path.with_name("journal.db-shm").exists(), (
        "no shared memory, or a network folder can't hold it"
    )
    journal.close()


@pytest.mark.parametrize("numbers", [[1], [0, 0], [0, 2], [-1], [0, 1, 3]])
def test_a_gap_in_the_numbers_is_refused_whole(path: Path, numbers: list[int]) -> None:
    journal = Journal.create(path)
    with pytest.raises(ValueError, match="does not follow"):
        journal.append(
            [
                credited(abs(seq)) if seq >= 0 else Record(seq, 0.0, LoopStalled(seconds=1.0))
                for seq in numbers
            ]
        )
    assert journal.last_seq == -1
    assert list(journal.records()) == []
    journal.append([credited(0)])
    journal.close()


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_record_that_could_not_be_read_back_is_never_written(path: Path, value: float) -> None:
    journal = Journal.create(path)
    with pytest.raises(ValueError, match="read back"):
        journal.append([credited(0), Record(1, 0.0, LoopStalled(seconds=value))])
    with pytest.raises(ValueError, match="read back"):
        journal.append([Record(0, value, LoopStalled(seconds=1.0))])
    assert journal.last_seq == -1
    journal.close()


@pytest.mark.parametrize("name", AWKWARD_NAMES)
def test_folders_of_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    records = filled(folder / "journal.db", 3)
    assert read(folder / "journal.db") == records


def test_a_folder_whose_name_is_not_utf8(tmp_path: Path) -> None:
    folder = Path(f"{tmp_path}/b\udcffd")
    folder.mkdir()
    records = filled(folder / "journal.db", 3)
    assert read(folder / "journal.db") == records


def test_wall_time_is_kept_for_people(path: Path) -> None:
    journal = Journal.create(path, wall_time=lambda: "noon")
    journal.append(credits(0, 2))
    journal.close()
    assert {row[0] for row in sqlite3.connect(path).execute("SELECT wall_time FROM records")} == {"noon"}


# --- creating --------------------------------------------------------------------------------------------


def test_an_existing_journal_is_never_created_over(path: Path) -> None:
    records = filled(path, 2)
    with pytest.raises(OutputError, match="exists already"):
        Journal.create(path)
    assert read(path) == records


def test_what_a_crash_left_beside_a_new_journal_is_not_read_into_it(tmp_path: Path) -> None:
    """A write-ahead log that was left behind is valid by itself: SQLite would replay it into the new file."""
    other = Journal.create(tmp_path / "other.db")
    other.append(credits(0, 20))
    stale = (tmp_path / "other.db-wal").read_bytes()
    assert stale
    other.close()
    (tmp_path / "journal.db-wal").write_bytes(stale)
    (tmp_path / "journal.db.new").write_bytes(b"half of something")

    journal = Journal.create(tmp_path / "journal.db")
    assert journal.last_seq == -1
    journal.append([credited(0)])
    journal.close()
    assert read(tmp_path / "journal.db") == [credited(0)]
    assert not (tmp_path / "journal.db.new").exists()


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"can't be (made|written)") as caught:
        Journal.create(tmp_path / "gone" / "journal.db")
    assert caught.value.exit_code is ExitCode.OUTPUT


# --- who holds it ----------------------------------------------------------------------------------------


def test_a_second_opener_in_the_same_process_is_refused(path: Path) -> None:
    filled(path, 5)
    first = Journal.open(path)
    with pytest.raises(JournalBusy, match="in use"):
        Journal.open(path)
    first.append([credited(5)])
    first.close()
    assert len(read(path)) == 6


def test_a_second_process_is_refused_until_the_first_is_gone(path: Path) -> None:
    filled(path, 5)
    child = python(
        "import sys; from pathlib import Path; from farm.journal import Journal\n"
        "journal = Journal.open(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()",
        path,
    )
    assert child.stdout is not None and child.stdout.readline() == "open\n"
    with pytest.raises(JournalBusy) as caught:
        Journal.open(path)
    assert caught.value.exit_code is ExitCode.OUTPUT
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert len(read(path)) == 5


# --- kill -9 ---------------------------------------------------------------------------------------------

APPEND_FOREVER = """
import sys
from pathlib import Path
from farm.journal import Journal
from tests.journal.helpers import credits
journal = Journal.open(Path(sys.argv[1]))
size = int(sys.argv[2])
while True:
    journal.append(credits(journal.last_seq + 1, size))
    print(journal.last_seq, flush=True)
"""


@pytest.mark.parametrize(("size", "acknowledgements"), [(1, 40), (3, 7), (500, 25)])
def test_every_acknowledged_record_survives_kill(path: Path, size: int, acknowledgements: int) -> None:
    """Killed three times in a row in the midst of appending, once past a checkpoint of the log."""
    Journal.create(path).close()
    for _ in range(3):
        child = python(APPEND_FOREVER, path, str(size))
        assert child.stdout is not None
        for _ in range(acknowledgements):
            assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        rest, errors = child.communicate()
        assert not errors
        lines = rest.splitlines(keepends=True)
        acknowledged = [int(line) for line in lines if line.endswith("\n")]

        journal = Journal.open(path)
        records = list(journal.records())
        assert [record.seq for record in records] == list(range(journal.last_seq + 1))
        assert records == credits(0, len(records))
        assert journal.last_seq >= max(acknowledged, default=0)
        assert len(records) >= acknowledgements * size
        assert len(records) % size == 0, "half a batch"
        journal.close()


# --- damage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 8192, b"not a database at all, but a text\n" * 40, b"SQLite format 3\0" + b"\xff" * 5000],
    ids=["empty", "zeroed", "text", "only the magic"],
)
def test_files_that_are_no_journal(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(JournalDamaged) as caught:
        Journal.open(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content, "a file that is not ours is left alone"


def test_a_missing_journal_is_not_made(path: Path) -> None:
    with pytest.raises(JournalDamaged, match="there is no journal"):
        Journal.open(path)
    with pytest.raises(JournalDamaged, match="there is no journal"):
        Journal.open(path.parent)
    assert not path.exists()


def test_another_programs_database_is_left_as_it_is(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE records (seq INTEGER PRIMARY KEY, body BLOB)")
    database.commit()
    database.close()
    before = path.read_bytes()
    with pytest.raises(JournalDamaged, match="not a journal of uneven"):
        Journal.open(path)
    assert path.read_bytes() == before


def test_a_newer_version_is_named(path: Path) -> None:
    filled(path, 1)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(JournalNewer, match="version 2 and this uneven reads 1"):
        Journal.open(path)


def test_a_missing_table_is_damage(path: Path) -> None:
    filled(path, 1)
    database = sqlite3.connect(path)
    database.execute("DROP TABLE records")
    database.close()
    with pytest.raises(JournalDamaged, match="is damaged"):
        Journal.open(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM records WHERE seq = 4", "record 4 is missing"),
        ("DELETE FROM records WHERE seq = 0", "record 0 is missing"),
        ("UPDATE records SET body = CAST(body AS TEXT) WHERE seq = 3", "record 3 does not match"),
        (
            "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '48', '47') AS BLOB) WHERE seq = 3",
            "record 3 does not match its checksum",
        ),
        ("UPDATE records SET body = zeroblob(length(body)) WHERE seq = 9", "record 9 does not match"),
        (
            "UPDATE records SET (body, crc) = (SELECT body, crc FROM records WHERE seq = 2) WHERE seq = 3",
            "record 3 says that it is 2",
        ),
    ],
)
def test_a_record_that_is_not_as_written_is_found(path: Path, change: str, said: str) -> None:
    records = filled(path, 10)
    database = sqlite3.connect(path)
    database.execute(change)
    database.commit()
    database.close()
    journal = Journal.open(path)
    good = []
    with pytest.raises(JournalDamaged, match=said):
        for record in journal.records():
            good.append(record)
    assert good == records[: len(good)], "what came before the damage is handed out"
    journal.close()


def test_a_record_of_a_kind_not_known_is_said(path: Path) -> None:
    filled(path, 1)
    body = b'{"seq":1,"at":0.0,"event":{"event":"teleported"}}'
    database = sqlite3.connect(path)
    database.execute("INSERT INTO records VALUES (1, 0.0, '', ?, ?)", (zlib.crc32(body), body))
    database.commit()
    database.close()
    with pytest.raises(JournalDamaged, match="record 1 can't be understood"):
        read(path)


def assert_whole_or_said(path: Path, records: list[Record]) -> bool:
    """Either everything is as written, or it is called damaged. True: damaged."""
    try:
        journal = Journal.open(path)
    except JournalDamaged:
        return True
    good: list[Record] = []
    try:
        good.extend(journal.records())
    except JournalDamaged:
        return True
    finally:
        journal.close()
    assert good == records
    return False


def test_every_zeroed_block_is_found(path: Path) -> None:
    records = filled(path, 120)
    content = path.read_bytes()
    for offset in range(0, len(content), 4096):
        path.write_bytes(content[:offset] + bytes(4096) + content[offset + 4096 :])
        assert assert_whole_or_said(path, records), f"the block at {offset} is zero and nothing was said"


def test_every_truncation_is_found(path: Path) -> None:
    records = filled(path, 120)
    content = path.read_bytes()
    for length in [*range(0, len(content), 4096), 1, 99, 100, len(content) // 2 + 17, len(content) - 1]:
        path.write_bytes(content[:length])
        assert assert_whole_or_said(path, records), f"cut to {length} bytes and nothing was said"


def test_flipped_bits_never_change_a_record_unnoticed(path: Path) -> None:
    records = filled(path, 60)
    content = path.read_bytes()
    damaged = 0
    for offset in range(3, len(content), 211):
        changed = bytearray(content)
        changed[offset] ^= 0x10
        path.write_bytes(changed)
        damaged += assert_whole_or_said(path, records)
    assert damaged > 50


def test_a_torn_tail_of_the_log_loses_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    """The last frames of the write-ahead log were cut off by a power failure during a commit."""
    source = Journal.create(tmp_path / "journal.db")
    source.append(credits(0, 10))
    log = tmp_path / "journal.db-wal"
    acknowledged = log.stat().st_size
    source.append(credits(10, 10))
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "journal.db").write_bytes((tmp_path / "journal.db").read_bytes())
    (copy / "journal.db-wal").write_bytes(log.read_bytes()[: acknowledged + 700])
    source.close()
    assert read(copy / "journal.db") == credits(0, 10)


# --- the disk --------------------------------------------------------------------------------------------


def test_a_full_disk_is_said_and_the_batch_can_be_tried_again(path: Path) -> None:
    journal = Journal.create(path)
    journal.append(credits(0, 10))
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(OutputError, match="the disk is full; make room") as caught:
        journal.append(credits(10, 1000))
    assert not isinstance(caught.value, JournalDamaged)
    assert journal.last_seq == 9
    assert list(journal.records()) == credits(0, 10)
    journal._connection.execute("PRAGMA max_page_count = 100000")
    journal.append(credits(10, 1000))
    journal.close()
    assert read(path) == credits(0, 1010)


def test_a_disk_that_refuses_a_write_is_said(path: Path) -> None:
    """A limit on the file size stands for the disk: the write fails in the operating system."""
    filled(path, 1)
    child = python(
        "import resource, sys; from pathlib import Path; from farm.journal import Journal\n"
        "from farm.errors import OutputError; from tests.journal.helpers import credits\n"
        "journal = Journal.open(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "try:\n"
        "    while True: journal.append(credits(journal.last_seq + 1, 50))\n"
        "except OutputError as error:\n"
        "    print(journal.last_seq, len(list(journal.records())), error)\n",
        path,
    )
    output, errors = child.communicate()
    assert not errors
    last, count, said = output.split(" ", 2)
    assert int(count) == int(last) + 1 > 50
    assert "can't be written" in said
    assert len(read(path)) == int(count)
