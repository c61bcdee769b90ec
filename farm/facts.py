"""What media work in a child process tells the process that asked: plain data that needs no media library to
be read."""

from __future__ import annotations

import msgspec

from farm.source import SourceIndex


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What was found before any work."""

    index: SourceIndex
    build: str  #: PyAV, its libraries and the CPU architecture; parts of two builds are never mixed
    streams: tuple[str, ...]  #: what becomes of the other streams, a line each
    warnings: tuple[str, ...]


class Stitched(msgspec.Struct, frozen=True, kw_only=True):
    frames: int
    output_bytes: int
    lost_pts: tuple[int, ...]
    streams: tuple[str, ...]
    carried: tuple[str, ...]
    warnings: tuple[str, ...]


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    frames: int
    packets_sha256: str
    duration_seconds: float
    streams: tuple[str, ...]
    decoded_frames: int
