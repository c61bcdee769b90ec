"""A damaged journal, note, index or store: what can be proved is kept, nothing else is believed."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm import events as ev
from farm.errors import UnevenError
from farm.folder import RunFolder, holds_run, remove_shell
from farm.journal import Journal, JournalNewer
from farm.parts import PartError, check_part
from farm.recheck import recheck_store
from farm.relay.books import Books
from farm.relay.relay import Relay
from farm.relay.turn import Outcome
from farm.salvage import Taken, note_run, noted_run, take_journal
from farm.store import Store, part_file_name
from tests.journal.helpers import SETTINGS, write_part

PARTS, FRAMES = 6, 3
CUTS = tuple(range(0, PARTS * FRAMES + 1, FRAMES))
OPENED = ev.RunOpened(
    run_id="run-1",
    input="/films/in.mp4",
    output="/films/out.mp4",
    frames=CUTS[-1],
    cuts=CUTS,
    settings_hash=SETTINGS,
    fingerprint="f",
    build="b",
    options=ev.RelayOptions(),
)


def make_run(path: Path, *, credited: int = 4, delivered: int = 5, cut_off: bool = True) -> None:
    """A run folder as a crash leaves it: parts in the store, most of them in the journal. ``cut_off``: the
    write-ahead log is still beside the journal."""
    with RunFolder.create(path) as folder:
        note_run(folder, OPENED)
        facts = []
        for part in range(delivered):
            name = part_file_name(part, f"c{part}#1@e1")
            facts.append((name, write_part(folder.store / name, part=part, start=CUTS[part], frames=FRAMES)))
        journal = Journal.create(folder.journal)
        events: list[ev.AnyEvent] = [OPENED, ev.RelayStarted(epoch=1)]
        events += [ev.WorkerJoined(worker="w1")]
        for part, (name, fact) in enumerate(facts[:credited]):
            start, stop = CUTS[part], CUTS[part + 1]
            token = f"c{part}#1@e1"
            events += [
                ev.ClaimGranted(token=token, worker="w1", start=start, stop=stop, lease_seconds=20.0),
                ev.PartCredited(
                    part=part,
                    frames=FRAMES,
                    token=token,
                    worker="w1",
                    file=name,
                    size_bytes=fact.size_bytes,
                    sha256=fact.sha256,
                ),
                ev.ClaimEnded(token=token, worker="w1", how="completed"),
                ev.ChunkCompleted(chunk=part),
            ]
        for seq, event in enumerate(events):
            journal.append([ev.Record(seq, seq * 0.1, event)])
        if cut_off:
            aside = path.with_name("aside")
            shutil.copytree(path, aside)
            journal.close()
            shutil.rmtree(path)
            aside.rename(path)
        else:
            journal.close()


def take_up(path: Path) -> tuple[Taken, Books, list[str]]:
    """As at a resume: the books that come of it, and what was said."""
    said: list[str] = []
    with RunFolder.open(path) as folder:
        taken = take_journal(folder)
        books = taken.history.books
        relay = Relay(books, ev.RelayOptions())

        async def commit(outcome: Outcome) -> None:
            pass

        async def note(level: str, text: str) -> None:
            said.append(text)

        if not taken.history.records:
            relay.open(taken.opened or OPENED, 0.0)
        relay.start(100.0)
        asyncio.run(recheck_store(relay, Store(folder.store), SETTINGS, lambda: 100.0, commit, note))
        taken.journal.close()
    return taken, books, said


def valid_parts(store: Path) -> set[int]:
    found = set()
    for part, path in Store(store).scan():
        try:
            check_part(path, part=part, start=CUTS[part], stop=CUTS[part + 1], settings_hash=SETTINGS)
            found.add(part)
        except (PartError, IndexError):
            continue
    return found


def damage(path: Path, kind: str, where: float, length: int, data: bytes) -> None:
    """Change the file as a bad disk might."""
    if not path.exists():
        return
    content = bytearray(path.read_bytes())
    at = int(where * len(content))
    match kind:
        case "gone":
            path.unlink()
            return
        case "cut":
            del content[at:]
        case "zeroes":
            content[at : at + length] = bytes(len(content[at : at + length]))
        case "garbage":
            content[at : at + len(data)] = data
        case "twice":
            content = content + content
    path.write_bytes(content)


#: Where a sync costs nothing, if there is such a place.
FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
FILES = (
    "journal.db",
    "journal.db-wal",
    "run.json",
    "store/p000001-c1.1.e1.part",
    "store/p000004-c4.1.e1.part",
)
A_DAMAGE = st.tuples(
    st.sampled_from(FILES),
    st.sampled_from(["gone", "cut", "zeroes", "garbage", "twice"]),
    st.floats(0, 1),
    st.integers(1, 5000),
    st.binary(min_size=1, max_size=200),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(A_DAMAGE, min_size=1, max_size=3), st.booleans())
def test_whatever_is_damaged_what_can_be_proved_is_kept_and_nothing_else(
    damages: list[tuple[str, str, float, int, bytes]], cut_off: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="salvage-", dir=FAST) as scratch:
        path = Path(scratch) / "out.mp4.uneven"
        make_run(path, cut_off=cut_off)
        for name, kind, where, length, data in damages:
            damage(path / name, kind, where, length, data)
        proved = valid_parts(path / "store")
        before = (path / "journal.db").read_bytes() if (path / "journal.db").exists() else b""
        try:
            taken, books, _ = take_up(path)
        except JournalNewer:
            assert (path / "journal.db").read_bytes() == before, "a newer journal was touched"
            return
        assert set(books.credits) == proved
        for part, credit in books.credits.items():
            stop = CUTS[part + 1]
            check_part(
                path / "store" / credit.file, part=part, start=CUTS[part], stop=stop, settings_hash=SETTINGS
            )
        aside = [
            file for file in path.glob("journal.db.damaged*") if not file.name.endswith(("-wal", "-shm"))
        ]
        assert len(aside) == ("kept as" in taken.damage), "a damaged journal is kept"
        again, books_again, _ = take_up(path)
        assert set(books_again.credits) == proved
        assert not again.damage or not again.history.records


def overwrite(offset: int, data: bytes) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[offset : offset + len(data)] = data
        path.write_bytes(content)

    return act


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.write_bytes(b""), "is not a journal"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged"),
        (lambda path: path.write_bytes(b"not a database" * 1000), "damaged"),
        (overwrite(4096, bytes(4096)), "damaged"),
        (overwrite(60, b"\0\0\0\0"), "which there never was"),
        (overwrite(60, b"\xff\xff\xff\xff"), "which there never was"),
        (lambda path: path.unlink(), "the journal was gone"),
    ],
    ids=[
        "empty",
        "cut off",
        "garbage",
        "a zeroed page",
        "version 0",
        "version -1",
        "gone",
    ],
)
def test_a_damaged_journal_is_set_aside_and_the_store_proves_the_rest(
    harm: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "out.mp4.uneven"
    make_run(path, cut_off=False)
    harm(path / "journal.db")
    harmed = (path / "journal.db").read_bytes() if (path / "journal.db").exists() else None
    taken, books, _ = take_up(path)
    assert said in taken.damage and "\n" not in taken.damage
    assert taken.opened == OPENED, "the note tells with what the run was begun"
    assert set(books.credits) == {0, 1, 2, 3, 4}
    if harmed is not None:
        assert (path / "journal.db.damaged").read_bytes() == harmed
        assert "kept as journal.db.damaged" in taken.damage
    with RunFolder.open(path) as folder:
        assert folder.remove() == ()


def test_a_journal_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4.uneven"
    make_run(path, cut_off=False)
    overwrite(60, b"\0\0\0\2")(path / "journal.db")
    before = (path / "journal.db").read_bytes()
    with pytest.raises(JournalNewer, match="use the uneven that made it"):
        take_up(path)
    assert (path / "journal.db").read_bytes() == before
    assert not list(path.glob("*damaged*"))


def test_a_second_damaged_journal_gets_another_name(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4.uneven"
    make_run(path, cut_off=False)
    for name in ("journal.db.damaged", "journal.db.damaged2"):
        (path / "journal.db").write_bytes(name.encode())
        taken, _, _ = take_up(path)
        assert name in taken.damage
        assert (path / name).read_bytes() == name.encode()


def test_a_part_that_changed_on_disk_is_taken_back_and_told(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4.uneven"
    make_run(path)
    damage(path / "store" / part_file_name(1, "c1#1@e1"), "zeroes", 0.5, 10, b"")
    (path / "store" / part_file_name(2, "c2#1@e1")).unlink()
    _, books, said = take_up(path)
    assert set(books.credits) == {0, 3, 4}, "4 was delivered, and had not reached the journal"
    assert [text.split(":")[0] for text in said] == ["part 1 is rendered again", "part 2 is rendered again"]


@pytest.mark.parametrize("note", [b"", b"{}", b'{"crc":1,"opened":{}}', b"\xff" * 40])
def test_a_damaged_note_is_not_believed(note: bytes, tmp_path: Path) -> None:
    path = tmp_path / "out.mp4.uneven"
    make_run(path)
    with RunFolder.open(path) as folder:
        assert noted_run(folder) == OPENED
        folder.note.write_bytes(note)
        assert noted_run(folder) is None


def test_a_removal_that_was_cut_off_at_the_end_leaves_a_shell_that_goes(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4.uneven"
    path.mkdir()
    (path / "uneven.lock").touch()
    assert not holds_run(path)
    with RunFolder.open(path):
        remove_shell(path)
        assert path.exists(), "somebody works in it"
    (path / "store").rmdir()
    (path / "spool").rmdir()
    (path / "logs").rmdir()
    (path / "notes.txt").touch()
    remove_shell(path)
    assert path.exists(), "it holds something"
    (path / "notes.txt").unlink()
    remove_shell(path)
    assert not path.exists()


def test_one_run_at_a_time_makes_an_output(tmp_path: Path) -> None:
    output = tmp_path / "out.mp4"
    first = RunFolder.create(tmp_path / "a.uneven")
    first.guard(output)
    with (
        RunFolder.create(tmp_path / "b.uneven") as second,
        pytest.raises(UnevenError, match="in use by process"),
    ):
        second.guard(output)
    first.close()
    with RunFolder.open(tmp_path / "b.uneven") as second:
        second.guard(output)
        second.remove()
    assert {path.name for path in tmp_path.iterdir()} == {"a.uneven"}
