"""The part file: what is written comes back, the bytes depend on nothing else, and all damage is
recognised."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.parts import (
    PartError,
    PartFacts,
    PartHeader,
    PartPacket,
    PartReader,
    PartWriter,
    check_part,
    sync_folder,
)

HEADER = PartHeader(
    part=3,
    start=30,
    stop=33,
    settings_hash="abc",
    codec="h264",
    width=64,
    height=48,
    pix_fmt="yuv420p",
    time_base=(1, 12800),
    extradata=b"\x01\x64\x00\xff",
)
PACKETS = (
    PartPacket(15360, 14336, 512, True, b"key picture"),
    PartPacket(16384, None, 512, False, b""),
    PartPacket(15872, -5, 0, False, bytes(range(40))),
)


def write(path: Path, header: PartHeader = HEADER, packets: tuple[PartPacket, ...] = PACKETS) -> PartFacts:
    with PartWriter(path, header) as writer:
        for packet in packets:
            writer.add(packet)
        return writer.finish(frames=2, first_frame_crc=7, next_frame_crc=None, lost_frames=1)


def check(path: Path) -> PartFacts:
    return check_part(path, part=3, start=30, stop=33, settings_hash="abc")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("parts") / "p"
    write(path)
    return path.read_bytes()


# --- round trip -----------------------------------------------------------------------------------------


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "p"
    written = write(path)
    with PartReader(path) as reader:
        assert reader.header == HEADER
        assert tuple(reader.packets()) == PACKETS
        read = reader.facts()
    assert read == written == check(path)
    assert (read.footer.frames, read.footer.lost_frames, read.footer.packets) == (2, 1, 3)
    assert (read.footer.first_frame_crc, read.footer.next_frame_crc) == (7, None)
    assert read.size_bytes == path.stat().st_size
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


int64 = st.integers(-(2**63) + 1, 2**63 - 1)
any_packets = st.lists(
    st.builds(PartPacket, int64, st.none() | int64, int64, st.booleans(), st.binary(max_size=30)), max_size=5
)


@given(packets=any_packets)
def test_any_packets_come_back(tmp_path_factory: pytest.TempPathFactory, packets: list[PartPacket]) -> None:
    path = tmp_path_factory.mktemp("part") / "p"
    write(path, packets=tuple(packets))
    with PartReader(path) as reader:
        assert list(reader.packets()) == packets


def test_equal_content_is_equal_bytes_whatever_the_name(tmp_path: Path) -> None:
    one, two = write(tmp_path / "c0#1@e1"), write(tmp_path / "c7#2@e3")
    assert one.sha256 == two.sha256


def test_an_unfinished_part_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), PartWriter(tmp_path / "p", HEADER) as writer:
        writer.add(PACKETS[0])
        raise RuntimeError
    assert not (tmp_path / "p").exists()


def test_an_existing_file_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        PartWriter(tmp_path / "p", HEADER)
    assert (tmp_path / "p").read_bytes() == b"mine"


# --- damage ---------------------------------------------------------------------------------------------


def damaged(path: Path, data: bytes) -> PartError:
    path.write_bytes(data)
    with pytest.raises(PartError) as raised:
        check(path)
    return raised.value


def test_every_flipped_bit_is_recognised(whole: bytes, tmp_path: Path) -> None:
    """In lengths, times, checksums and JSON as well as in the pictures."""
    for position in range(len(whole)):
        for bit in range(8):
            data = bytearray(whole)
            data[position] ^= 1 << bit
            damaged(tmp_path / "p", bytes(data))


def test_every_truncation_is_recognised(whole: bytes, tmp_path: Path) -> None:
    for length in range(len(whole)):
        damaged(tmp_path / "p", whole[:length])


def test_what_follows_the_end_is_recognised(whole: bytes, tmp_path: Path) -> None:
    damaged(tmp_path / "p", whole + b"\0")
    damaged(tmp_path / "p", whole + whole)


@pytest.mark.parametrize("block_bytes", [1, 16, 64])
def test_lost_zeroed_and_swapped_blocks_are_recognised(
    whole: bytes, tmp_path: Path, block_bytes: int
) -> None:
    for start in range(0, len(whole) - block_bytes, block_bytes):
        stop = start + block_bytes
        damaged(tmp_path / "p", whole[:start] + whole[stop:])
        for changed in (bytes(block_bytes), b"\xff" * block_bytes, whole[stop : stop + block_bytes]):
            if changed != whole[start:stop]:
                damaged(tmp_path / "p", whole[:start] + changed + whole[stop:])


def test_a_damaged_length_asks_for_no_gigabytes(whole: bytes, tmp_path: Path) -> None:
    """The length of the first packet says 3 GB: said at once, from the file's own size."""
    (json_bytes,) = struct.unpack_from("<I", whole, 8)
    at = 8 + 4 + json_bytes
    error = damaged(tmp_path / "p", whole[:at] + struct.pack("<I", 3 << 30) + whole[at + 4 :])
    assert "p is cut off or damaged" in str(error)


@pytest.mark.parametrize(
    "content", [b"", b"UNEVENP1", b"\x00\x00\x00\x18ftypisom", b"\n".join([b"text"] * 99)]
)
def test_other_files_are_no_parts(tmp_path: Path, content: bytes) -> None:
    damaged(tmp_path / "p", content)


def test_a_file_that_is_gone_is_told_apart_from_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check(tmp_path / "p")


# --- whole, but not what was planned --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"part": 4}, "p is part 4 [30, 33), not part 3"),
        ({"start": 29}, "p is part 3 [29, 33), not part 3"),
        ({"stop": 34}, "p is part 3 [30, 34), not part 3"),
        ({"settings_hash": "abd"}, "p was made with other settings, input or build"),
    ],
)
def test_another_part_is_recognised(tmp_path: Path, change: dict[str, object], says: str) -> None:
    path = tmp_path / "p"
    write(path, msgspec.structs.replace(HEADER, **change))
    with pytest.raises(PartError) as raised:
        check(path)
    assert str(raised.value) == says


def test_a_part_with_too_few_frames_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "p"
    with PartWriter(path, HEADER) as writer:
        writer.finish(frames=2)
    with pytest.raises(PartError, match="p holds 2 frames instead of 3"):
        check(path)


def test_a_folder_can_be_synced(tmp_path: Path) -> None:
    sync_folder(tmp_path)
