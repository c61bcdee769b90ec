"""The part file: one encoded part on disk, with everything the stitch needs, exact to the byte.

Containers were measured and each loses something (media.md: mp4 rewrites bytes, mkv rounds times, nut drops
dts), so parts have a format of their own:

    magic, u32 length + JSON header, packets, u32 0xFFFFFFFF, u32 length + JSON footer,
    u32 crc32 of all before it, magic
    packet: u32 length, i64 pts, i64 dts, i64 duration, u8 key, u32 crc32 of the data, data

The bytes are a function of input, settings and part number only: no time, worker or claim in them, so that
two copies of a part can be compared by the sha256 of the whole file. Never imports av.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

MAGIC = b"UNEVENP1"
_END = 0xFFFFFFFF
_LENGTH = struct.Struct("<I")
_PACKET = struct.Struct("<qqqBI")
#: What a part file adds to each packet.
PACKET_BYTES = _LENGTH.size + _PACKET.size
#: A footer without damaged or resized frames, about.
_FOOTER_BYTES = 130
_JSON_LIMIT_BYTES = 16 << 20
_NO_DTS = -(1 << 63)
_T = TypeVar("_T", bound=msgspec.Struct)


class PartError(Exception):
    """A part file that is damaged, unfinished or not the part that was expected."""


class PartHeader(msgspec.Struct, frozen=True, kw_only=True):
    part: int
    start: int
    stop: int
    settings_hash: str
    codec: str
    width: int
    height: int
    pix_fmt: str
    time_base: tuple[int, int]
    extradata: bytes


class PartFooter(msgspec.Struct, frozen=True, kw_only=True):
    packets: int
    frames: int  #: frames encoded; equals stop - start less the lost ones
    first_frame_crc: int | None = None  #: crc32 of the decoded picture of the first frame
    next_frame_crc: int | None = None  #: of the frame at ``stop``; None at the end of the job
    lost_frames: int = 0
    damaged_pts: tuple[int, ...] = ()  #: of frames that are damaged and were encoded as they decode
    resized_pts: tuple[int, ...] = ()  #: of frames that were scaled to the size of the job's first one
    reformatted_pts: tuple[int, ...] = ()  #: of frames of another pixel format than the job's first one


class PartPacket(NamedTuple):
    pts: int
    dts: int | None
    duration: int
    key: bool
    data: bytes


class PartFacts(NamedTuple):
    """What a check of a part file found."""

    header: PartHeader
    footer: PartFooter
    size_bytes: int
    sha256: str


class PartWriter:
    """Writes a part file; ``finish`` syncs it. Leaving the context without ``finish`` removes the file."""

    def __init__(self, path: Path, header: PartHeader) -> None:
        self.path = path
        self._file: BinaryIO | None = path.open("xb")
        self._sha256 = hashlib.sha256()
        self._crc = 0
        self._size = 0
        self._packets = 0
        self._header = header
        self._write(MAGIC)
        self._write_json(header)

    def add(self, packet: PartPacket) -> None:
        self._write(_LENGTH.pack(len(packet.data)))
        dts = _NO_DTS if packet.dts is None else packet.dts
        crc = zlib.crc32(packet.data)
        self._write(_PACKET.pack(packet.pts, dts, packet.duration, packet.key, crc))
        self._write(packet.data)
        self._packets += 1

    def finish(
        self,
        *,
        frames: int,
        first_frame_crc: int | None = None,
        next_frame_crc: int | None = None,
        lost_frames: int = 0,
        damaged_pts: tuple[int, ...] = (),
        resized_pts: tuple[int, ...] = (),
        reformatted_pts: tuple[int, ...] = (),
    ) -> PartFacts:
        assert self._file is not None, "the part is finished already"
        footer = PartFooter(
            packets=self._packets,
            frames=frames,
            first_frame_crc=first_frame_crc,
            next_frame_crc=next_frame_crc,
            lost_frames=lost_frames,
            damaged_pts=damaged_pts,
            resized_pts=resized_pts,
            reformatted_pts=reformatted_pts,
        )
        self._write(_LENGTH.pack(_END))
        self._write_json(footer)
        self._write(_LENGTH.pack(self._crc))
        self._write(MAGIC)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        return PartFacts(self._header, footer, self._size, self._sha256.hexdigest())

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk says so once more
                self._file.close()
            self._file = None
            self.path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        self._file.write(data)
        self._sha256.update(data)
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)

    def _write_json(self, value: msgspec.Struct) -> None:
        data = msgspec.json.encode(value)
        self._write(_LENGTH.pack(len(data)))
        self._write(data)


def overhead_bytes(path: Path) -> int:
    """What the part file has beside its packets, to a few bytes of the footer. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC) + _LENGTH.size)
    (header,) = _LENGTH.unpack(start[len(MAGIC) :].rjust(_LENGTH.size, b"\0"))
    return 2 * len(MAGIC) + 4 * _LENGTH.size + int(header) + _FOOTER_BYTES


class PartReader:
    """Reads a part file front to back: header at once, then ``packets()``, then ``facts()``.

    Every packet's checksum is verified; raises PartError at the first thing that is wrong.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self._length = os.fstat(self._file.fileno()).st_size
        self._sha256 = hashlib.sha256()
        self._crc = 0
        self._size = 0
        self._packets = 0
        self._footer: PartFooter | None = None
        try:
            if self._read(len(MAGIC)) != MAGIC:
                raise PartError(f"{path.name} is not a part file")
            self.header = self._read_json(PartHeader)
        except BaseException:
            self._file.close()
            raise

    def packets(self) -> Iterator[PartPacket]:
        while True:
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
            if length == _END:
                break
            pts, dts, duration, key, crc = _PACKET.unpack(self._read(_PACKET.size))
            data = self._read(length)
            if zlib.crc32(data) != crc:
                raise PartError(f"{self.path.name}: packet {self._packets} does not match its checksum")
            self._packets += 1
            yield PartPacket(pts, None if dts == _NO_DTS else dts, duration, bool(key), data)
        footer = self._read_json(PartFooter)
        expected = self._crc
        if _LENGTH.unpack(self._read(_LENGTH.size)) != (expected,):
            raise PartError(f"{self.path.name} does not match its checksum")
        if self._read(len(MAGIC)) != MAGIC or self._file.read(1):
            raise PartError(f"{self.path.name} does not end where it should")
        if footer.packets != self._packets:
            raise PartError(f"{self.path.name} holds {self._packets} packets and says {footer.packets}")
        self._footer = footer

    def facts(self) -> PartFacts:
        """Valid once ``packets`` is exhausted."""
        assert self._footer is not None, "read the packets first"
        return PartFacts(self.header, self._footer, self._size, self._sha256.hexdigest())

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PartReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, length: int) -> bytes:
        if self._size + length > self._length:
            raise PartError(f"{self.path.name} is cut off or damaged after {self._size} bytes")
        data = self._file.read(length)
        if len(data) != length:
            raise PartError(f"{self.path.name} shrank while it was read")
        self._sha256.update(data)
        self._crc = zlib.crc32(data, self._crc)
        self._size += length
        return data

    def _read_json(self, kind: type[_T]) -> _T:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if length > _JSON_LIMIT_BYTES:
            raise PartError(f"{self.path.name} is damaged")
        try:
            return msgspec.json.decode(self._read(length), type=kind)
        except msgspec.DecodeError as error:
            raise PartError(f"{self.path.name} is damaged: {error}") from error


def check_part(path: Path, *, part: int, start: int, stop: int, settings_hash: str) -> PartFacts:
    """Read a part file whole and compare it with what was planned.

    Raises PartError if it is damaged or is another part, FileNotFoundError if it is gone.
    """
    with PartReader(path) as reader:
        header = reader.header
        for _ in reader.packets():
            pass
        facts = reader.facts()
    if header.settings_hash != settings_hash:
        raise PartError(f"{path.name} was made with other settings, input or build")
    if (header.part, header.start, header.stop) != (part, start, stop):
        raise PartError(f"{path.name} is part {header.part} [{header.start}, {header.stop}), not part {part}")
    if facts.footer.frames + facts.footer.lost_frames != stop - start:
        raise PartError(f"{path.name} holds {facts.footer.frames} frames instead of {stop - start}")
    return facts


def sync_folder(folder: Path) -> None:
    """Make renames and creations in a folder durable, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
