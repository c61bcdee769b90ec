"""The store believes no name and no file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.errors import IdError
from farm.frames import ClaimToken
from farm.parts import PartError, PartFacts
from farm.store import PartFile, Store, parse_part_file_name, part_file_name
from tests.journal.helpers import SETTINGS, write_part

NAME = "p000000-c0.1.e1.part"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    folder = tmp_path / "store"
    folder.mkdir()
    return Store(folder)


def accept(store: Store, name: str = NAME, part: int = 0, start: int = 0, stop: int = 3) -> PartFacts:
    return store.accept(name, part=part, start=start, stop=stop, settings_hash=SETTINGS)


# --- names -----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(1, 99), st.integers(1, 99))
def test_a_name_says_part_and_claim(part: int, chunk: int, attempt: int, epoch: int) -> None:
    token = ClaimToken(chunk, attempt, epoch)
    name = part_file_name(part, token)
    assert name == part_file_name(part, str(token))
    assert parse_part_file_name(name) == PartFile(part, token)
    assert "#" not in name and "@" not in name


def test_the_scheme_is_fixed() -> None:
    assert part_file_name(12, "c4#3@e2") == "p000012-c4.3.e2.part"
    assert part_file_name(1234567, "c0#1@e1") == "p1234567-c0.1.e1.part"


@pytest.mark.parametrize("token", ["", "c1", "c01#1@e1", "c1#0@e1", "../c1#1@e1", "c1#1@e1\n"])
def test_no_name_is_made_from_a_malformed_token(token: str) -> None:
    with pytest.raises(IdError):
        part_file_name(0, token)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "p000000-c0.1.e1.part\n",
        "p000000-c0.1.e1.part.tmp",
        ".p000000-c0.1.e1.part",
        "p00000-c0.1.e1.part",
        "p0000001-c0.1.e1.part",
        "p-00001-c0.1.e1.part",
        "p٠٠٠٠٠٠-c0.1.e1.part",
        "p000000-c00.1.e1.part",
        "p000000-c0.0.e1.part",
        "p000000-c0.1.e0.part",
        "p000000-c0#1@e1.part",
        "P000000-c0.1.e1.part",
    ],
)
def test_names_that_were_not_made_here(name: str) -> None:
    assert parse_part_file_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../journal.db", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "./x", "x/", "a\0b",
        "a\nb", "\x1b[2J", "b\udcffd", "n" * 256, "n" * 400,
    ],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused_and_nothing_is_touched(store: Store, name: str) -> None:
    bystander = store.folder.parent / "journal.db"
    write_part(bystander)
    for use in (accept, Store.discard, Store.path):
        with pytest.raises(PartError) as caught:
            use(store, name)
        str(caught.value).encode()
        assert str(caught.value).isprintable()
    assert bystander.exists()


# --- accepting -------------------------------------------------------------------------------------------


def test_a_good_part_is_accepted(store: Store) -> None:
    written = write_part(store.path(NAME))
    assert accept(store) == written
    assert accept(store) == written, "a repeated delivery is checked again"
    known = written.sha256
    assert store.accept(NAME, part=0, start=0, stop=3, settings_hash=SETTINGS, sha256=known) == written


def test_file_and_folder_are_synced_before_it_is_accepted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_part(store.path(NAME))
    synced = []
    fsync = os.fsync

    def noting(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").resolve() if Path("/proc/self/fd").exists() else handle)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noting)
    accept(store)
    assert synced == [store.path(NAME), store.folder] or len(synced) == 2


@pytest.mark.parametrize("length", [0, 1, 8, 60, 2500, -1])
def test_a_cut_off_part_is_refused(store: Store, length: int) -> None:
    write_part(store.path(NAME))
    content = store.path(NAME).read_bytes()
    store.path(NAME).write_bytes(content[:length])
    with pytest.raises(PartError):
        accept(store)


def test_a_changed_or_lengthened_part_is_refused(store: Store) -> None:
    write_part(store.path(NAME))
    content = store.path(NAME).read_bytes()
    store.path(NAME).write_bytes(content.replace(b"\1\1\1\1", b"\1\1\7\1", 1))
    with pytest.raises(PartError, match="checksum"):
        accept(store)
    store.path(NAME).write_bytes(content + b"\0")
    with pytest.raises(PartError, match="end"):
        accept(store)


@given(st.integers(0, 1 << 20), st.integers(1, 255))
def test_any_changed_byte_is_refused_where_the_sha256_is_known(offset: int, flip: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        written = write_part(store.path(NAME))
        content = bytearray(store.path(NAME).read_bytes())
        content[offset % len(content)] ^= flip
        store.path(NAME).write_bytes(content)
        with pytest.raises(PartError):
            store.accept(NAME, part=0, start=0, stop=3, settings_hash=SETTINGS, sha256=written.sha256)


def test_another_part_than_planned_is_refused(store: Store) -> None:
    write_part(store.path(NAME), part=0)
    with pytest.raises(PartError, match="is part 0"):
        accept(store, part=1, start=3, stop=6)
    with pytest.raises(PartError, match="is part 0"):
        accept(store, stop=4)
    with pytest.raises(PartError, match="other settings"):
        store.accept(NAME, part=0, start=0, stop=3, settings_hash="00" * 16)


def test_what_is_not_there_or_no_file_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(PartError, match="not in the store"):
        accept(store)
    store.path("folder").mkdir()
    with pytest.raises(PartError, match="not an ordinary file"):
        accept(store, "folder")
    os.mkfifo(store.path("pipe"))
    with pytest.raises(PartError, match="not an ordinary file"):
        accept(store, "pipe")
    write_part(tmp_path / "outside.part")
    store.path("link").symlink_to(tmp_path / "outside.part")
    with pytest.raises(PartError, match="not an ordinary file"):
        accept(store, "link")


# --- scanning --------------------------------------------------------------------------------------------


def test_a_scan_finds_the_parts_and_nothing_else(store: Store, tmp_path: Path) -> None:
    names = ["p000002-c1.1.e1.part", "p000000-c0.1.e1.part", "p000002-c0.2.e1.part", "p1000000-c9.1.e3.part"]
    for name in [*names, "p000001-c0.1.e1.part.tmp", "notes.txt"]:
        store.path(name).touch()
    store.path("p000003-c0.1.e1.part").mkdir()
    store.path("p000004-c0.1.e1.part").symlink_to(tmp_path)
    assert store.scan() == [
        (0, store.path(names[1])),
        (2, store.path(names[2])),
        (2, store.path(names[0])),
        (1000000, store.path(names[3])),
    ]


def test_discarding(store: Store) -> None:
    write_part(store.path(NAME))
    store.discard(NAME)
    store.discard(NAME)
    assert store.scan() == []


def test_free_bytes(store: Store) -> None:
    assert store.free_bytes() > 0
