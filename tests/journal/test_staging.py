"""Where parts that come in blocks grow: what counts after a crash, and who may go on with what."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.errors import OutputError
from farm.staging import NOTHING, Staging, Whole

DATA = bytes(range(256)) * 4
WHOLE = Whole(size_bytes=len(DATA), sha256=hashlib.sha256(DATA).hexdigest(), block_bytes=100)
T1, T2 = "c0#1@e1", "c0#2@e2"


def over(token: str) -> bool:
    return True


def live(token: str) -> bool:
    return False


def put(staging: Staging, index: int, token: str = T1) -> int:
    start, stop = WHOLE.span(index)
    data = DATA[start:stop]
    return staging.put(7, token, index, zlib.crc32(data), data).done


def filled(folder: Path, blocks: int, token: str = T1) -> Staging:
    staging = Staging(folder)
    assert staging.begin(7, token, WHOLE, live) == NOTHING
    for index in range(blocks):
        assert put(staging, index, token) == index + 1
    return staging


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "incoming").iterdir())


def test_a_part_grows_and_leaves_whole(tmp_path: Path) -> None:
    staging = filled(tmp_path, WHOLE.blocks)
    assert WHOLE.blocks == 11 and staging.stored(7, T1).complete
    assert staging.stored(7, T1).size_bytes == len(DATA)
    path = staging.finish(7, T1)
    assert path == tmp_path / "p000007-c0.1.e1.part" and path.read_bytes() == DATA
    assert names(tmp_path) == [] and not staging.holds(7)


@pytest.mark.parametrize(
    ("index", "data"),
    [
        (3, DATA[300:400]),  # after the next
        (1, DATA[100:200]),  # once more
        (2, DATA[200:299]),  # too short
        (2, DATA[200:301]),  # too long
        (2, b"x" * 100),  # not what the checksum says
    ],
)
def test_only_the_next_whole_block_is_taken(tmp_path: Path, index: int, data: bytes) -> None:
    staging = filled(tmp_path, 2)
    assert staging.put(7, T1, index, zlib.crc32(DATA[200:300]), data).done == 2
    assert put(staging, 2) == 3


def test_what_was_not_begun_takes_nothing(tmp_path: Path) -> None:
    staging = filled(tmp_path, 2)
    assert put(staging, 0, T2) == 0
    staging.discard(7)
    assert put(staging, 2) == 0 and names(tmp_path) == []


def test_another_process_goes_on_with_what_is_there(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    after = Staging(tmp_path)
    assert after.begin(7, T1, WHOLE, live).done == 5
    assert put(after, 5) == 6


def test_what_a_claim_that_is_over_left_is_taken_over(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    after = Staging(tmp_path)
    assert after.begin(7, T2, WHOLE, over).done == 5
    assert names(tmp_path) == ["p000007-c0.2.e2.part", "p000007-c0.2.e2.part.blocks"]
    for index in range(5, WHOLE.blocks):
        put(after, index, T2)
    assert after.finish(7, T2).read_bytes() == DATA


def test_of_several_the_one_with_the_most_is_taken_over(tmp_path: Path) -> None:
    filled(tmp_path, 2, "c0#1@e1")
    filled(tmp_path, 6, "c1#1@e1")
    filled(tmp_path, 4, "c2#1@e1")
    assert Staging(tmp_path).begin(7, T2, WHOLE, over).done == 6


def test_a_live_claim_keeps_its_blocks(tmp_path: Path) -> None:
    staging = filled(tmp_path, 5)
    assert staging.begin(7, T2, WHOLE, live) == NOTHING
    assert put(staging, 5) == 6 and put(staging, 0, T2) == 1


@pytest.mark.parametrize(
    "other",
    [
        Whole(size_bytes=len(DATA), sha256="0" * 64, block_bytes=100),
        Whole(size_bytes=len(DATA) + 1, sha256=WHOLE.sha256, block_bytes=100),
        Whole(size_bytes=len(DATA), sha256=WHOLE.sha256, block_bytes=99),
    ],
)
def test_other_bytes_begin_anew(tmp_path: Path, other: Whole) -> None:
    staging = filled(tmp_path, 5)
    assert staging.begin(7, T1, other, over) == NOTHING
    assert Staging(tmp_path).begin(7, T2, other, over) == NOTHING


def _record(folder: Path) -> Path:
    return folder / "incoming" / "p000007-c0.1.e1.part.blocks"


def _flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def _cut(path: Path, size: int) -> None:
    os.truncate(path, size)


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (lambda part, record: _flip(part, 0), 0),
        (lambda part, record: _flip(part, 250), 2),
        (lambda part, record: _cut(part, 499), 4),
        (lambda part, record: _cut(part, 0), 0),
        (lambda part, record: part.unlink(), 0),
        (lambda part, record: record.unlink(), 0),
        (lambda part, record: _cut(record, 0), 0),
        (lambda part, record: _cut(record, 20), 0),
        (lambda part, record: _cut(record, record.stat().st_size - 1), 4),  # torn in mid-line
        (lambda part, record: record.write_bytes(record.read_bytes() + b"9 00000000\n"), 5),
        (lambda part, record: record.write_bytes(b"\0" * 200), 0),
    ],
)
def test_only_what_can_be_proved_counts(
    tmp_path: Path, damage: Callable[[Path, Path], object], left: int
) -> None:
    """1. Five blocks were stored. 2. The disk damages them. 3. The rest comes from the first bad one on."""
    filled(tmp_path, 5)
    record = _record(tmp_path)
    damage(record.with_suffix(""), record)
    after = Staging(tmp_path)
    assert after.begin(7, T2, WHOLE, over).done == left
    for index in range(left, WHOLE.blocks):
        assert put(after, index, T2) == index + 1
    assert after.finish(7, T2).read_bytes() == DATA


def test_discarding_keeps_what_is_live(tmp_path: Path) -> None:
    filled(tmp_path, 1, T1)
    filled(tmp_path, 1, T2)
    staging = Staging(tmp_path)
    assert staging.parts() == [7]
    staging.discard(7, lambda token: token == T2)
    assert names(tmp_path) == ["p000007-c0.2.e2.part", "p000007-c0.2.e2.part.blocks"]


def test_a_block_is_synced_before_its_checksum_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        real(handle)

    staging = filled(tmp_path, 1)
    monkeypatch.setattr(os, "fsync", fsync)
    put(staging, 1)
    assert synced == ["p000007-c0.1.e1.part", "p000007-c0.1.e1.part.blocks"]


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "incoming").write_text("in the way")
    with pytest.raises(OutputError, match=r"the store's .*incoming can't be used"):
        Staging(tmp_path).begin(7, T1, WHOLE, live)


def test_a_part_that_was_taken_away_is_not_handed_over(tmp_path: Path) -> None:
    """Its claim lapsed, and the part was credited to another, between its last block and now."""
    staging = filled(tmp_path, WHOLE.blocks)
    staging.discard(7)
    assert staging.finish(7, T1) is None
    assert filled(tmp_path, WHOLE.blocks - 1, T2).finish(7, T2) is None


def test_many_claims_on_one_part_at_once(tmp_path: Path) -> None:
    """Each takes over from whoever is over, while parts are discarded: the disk is never in the way."""
    staging = Staging(tmp_path)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for attempt in range(1, 7):
                token = f"c{number}#{attempt}@e1"
                staging.begin(7, token, WHOLE, over)
                for index in range(WHOLE.blocks if attempt % 2 == 0 else 3):
                    put(staging, index, token)
                if attempt % 2 == 0:
                    staging.finish(7, token)
                if attempt % 3 == 0:
                    staging.discard(7)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for path in tmp_path.glob("*.part"):
        assert path.read_bytes() == DATA


def test_a_block_that_comes_twice_at_once_is_stored_once(tmp_path: Path) -> None:
    staging = filled(tmp_path, 0)
    for index in range(WHOLE.blocks):
        threads = [threading.Thread(target=put, args=(staging, index)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert _record(tmp_path).read_bytes().count(b"\n") == 1 + WHOLE.blocks
    assert Staging(tmp_path).begin(7, T2, WHOLE, over).done == WHOLE.blocks


def test_what_this_process_stored_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that breaks often would have it read all blocks of a long part every time."""
    staging = filled(tmp_path, 5)
    monkeypatch.setattr(Staging, "_proved", None)
    assert staging.begin(7, T1, WHOLE, live).done == 5


class Crash(BaseException):
    """The process ends here."""


def test_a_crash_at_any_step_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. A process stores blocks and ends before its n-th file operation. 2. Another, under another claim,
    has all that was acknowledged, goes on, and ends in turn at its n-th. 3. A third one finishes."""
    left = [0]

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def operation(*args: object, **fields: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                raise Crash
            return real(*args, **fields)

        return operation

    monkeypatch.setattr(os, "fsync", lambda handle: None)  # the machine goes on, only the process ends
    for module, name in ((os, "pwrite"), (os, "write"), (os, "fsync"), (Path, "replace"), (Path, "unlink")):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    step, crashed = 0, True
    while crashed:
        step, crashed = step + 1, False
        folder = tmp_path / f"at{step}"
        folder.mkdir()
        acknowledged, final = 0, None
        for process in range(1, 4):
            left[0] = step if process < 3 else 0
            staging, token = Staging(folder), f"c0#{process}@e{process}"
            try:
                done = staging.begin(7, token, WHOLE, over).done
                assert done >= acknowledged
                for index in range(done, WHOLE.blocks):
                    acknowledged = put(staging, index, token)
                    assert acknowledged == index + 1
                final = staging.finish(7, token)
                break
            except Crash:
                crashed = True
                if not (final := next(iter(folder.glob("*.part")), None)):
                    continue
                break  # it was in the store already, where a resume adopts it
        left[0] = 0
        assert final is not None and final.read_bytes() == DATA
    assert step > 40
