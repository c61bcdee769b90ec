"""What a file holds, as it is read back: its streams, and of its video every packet.

Of a packet two things are kept, when it is shown and the CRC-32 of its data: 12 bytes, so that a long film
costs a few MB, and enough to say which packet is the first that differs. For an output of numbered images
every file is a packet, and its time is its number. Never imports av.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import msgspec

Rational = tuple[int, int]

#: The container of numbered images, as ``Contents.container`` has it.
IMAGE_FILES = "images"
_HEX_DIGITS = 8
#: Names that demuxers go by, which read the same.
_FAMILIES = {**dict.fromkeys(("mov", "mp4", "m4a", "3gp", "3g2", "mj2"), "mp4"), "webm": "matroska"}


class StreamContents(msgspec.Struct, frozen=True, kw_only=True):
    """One stream. Times are in ticks of ``time_base``; a stream without any (a cover) has none."""

    kind: str  #: video, audio, subtitle, cover, data, attachment
    codec: str
    packets: int
    sha256: str  #: of the data of all its packets, end to end in decoding order
    time_base: Rational
    language: str = ""
    header_sha256: str = ""  #: of what its decoder is given before the first packet; empty: nothing
    length_prefixed: bool = False  #: H.264 or HEVC as mp4 and Matroska have it, without start codes
    first_pts: int | None = None
    last_pts: int | None = None
    looks: dict[str, str] = {}  #: of the film, how it is to be shown; empty: not looked at

    def words(self, number: int) -> str:
        """What to call it, as the ``number``-th of its kind."""
        details = ", ".join(part for part in (self.codec, self.language) if part)
        return f"{self.kind} stream {number} ({details})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """A file that could be opened and read."""

    container: str  #: the family of the demuxer's name, or IMAGE_FILES
    size_bytes: int
    video: StreamContents
    others: tuple[StreamContents, ...] = ()
    pts: array[int]  #: of each packet of the video, in decoding order, in ticks
    checksums: array[int]  #: CRC-32 of each
    keys: tuple[tuple[int, int], ...] = ()  #: of each keyframe: where to seek for it, and its pts
    last_duration: int = 0  #: of the frame shown last, in ticks
    stream_words: tuple[str, ...] = ()  #: a line for people for every stream
    fault: str = ""  #: the first thing that is wrong with the file by itself, in words that follow its name

    @property
    def frames(self) -> int:
        return len(self.pts)

    @property
    def time_base(self) -> Fraction:
        return Fraction(*self.video.time_base)

    @property
    def duration_seconds(self) -> float:
        """From the first frame's start to the last one's end."""
        if not self.pts:
            return 0.0
        return float((max(self.pts) - min(self.pts) + self.last_duration) * self.time_base)


def container_family(demuxer: str) -> str:
    """One name for a demuxer that goes by many, ``mp4`` for ``mov,mp4,m4a``."""
    first = demuxer.partition(",")[0]
    return _FAMILIES.get(first, first)


def new_times(times: Iterable[int] = ()) -> array[int]:
    return array("q", times)


def new_checksums(checksums: Iterable[int] = ()) -> array[int]:
    return array("I", checksums)


def checksums_to_hex(checksums: array[int]) -> str:
    """Eight digits each."""
    return "".join(f"{checksum:08x}" for checksum in checksums)


def checksums_from_hex(digits: str) -> array[int]:
    """Raises ValueError for what ``checksums_to_hex`` doesn't make."""
    if len(digits) % _HEX_DIGITS:
        raise ValueError("checksums have eight digits each")
    found = new_checksums()
    found.frombytes(bytes.fromhex(digits))
    if sys.byteorder == "little":
        found.byteswap()
    return found
