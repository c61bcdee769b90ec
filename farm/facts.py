"""What media work in a child process tells the process that asked: plain data that needs no media library to
be read."""

from __future__ import annotations

import msgspec

from farm.source import Rational, SourceIndex


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """What was found before any work."""

    index: SourceIndex
    build: str  #: PyAV, its libraries and the CPU architecture; parts of two builds are never mixed
    streams: tuple[str, ...]  #: what becomes of the other streams, a line each
    warnings: tuple[str, ...]
    not_alike: str = ""  #: why the encoder's bytes can't be relied upon, as found out by encoding twice


class StitchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    frames: int
    output_bytes: int
    shift_seconds: Rational = (0, 1)  #: by which all times were moved, for none to lie before zero
    lost_pts: tuple[int, ...] = ()  #: frames of the index that could not be decoded, in its time base
    streams: tuple[str, ...] = ()  #: a line for people for every other stream of the input
    carried: tuple[str, ...] = ()  #: kinds of the streams that were taken along and aren't empty
    warnings: tuple[str, ...] = ()


class VerifyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a file that is right."""

    frames: int
    packets_sha256: str  #: as of the function of that name
    duration_seconds: float  #: of the video, from the first frame's start to the last one's end
    streams: tuple[str, ...]  #: a line for people for every stream
    decoded_frames: int  #: how many frames were decoded for the check
