"""What media work in a child process tells the process that asked: plain data that needs no media library to
be read."""

from __future__ import annotations

import msgspec

from farm.contents import Contents
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
    part_packets: tuple[int, ...] = ()  #: of the video, part by part
    carried: tuple[str, ...] = ()  #: kinds of the streams that were taken along and aren't empty
    warnings: tuple[str, ...] = ()


class VerifyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in a file that is right."""

    frames: int
    packets_sha256: str  #: as of the function of that name
    duration_seconds: float  #: of the video, from the first frame's start to the last one's end
    streams: tuple[str, ...]  #: a line for people for every stream
    decoded_frames: int  #: how many frames were decoded for the check
    contents: Contents | None = None  #: all of it, packet by packet


class Pictures(msgspec.Struct, frozen=True, kw_only=True):
    """How the pictures of a lossless output compare with those that its encoder was given."""

    compared: int = 0
    differs: int | None = None  #: the first frame of the output that does
    seconds: float = 0.0  #: when that is shown
    why_not: str = ""  #: they could not be compared


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished output is by itself, and beside its source."""

    facts: VerifyFacts
    pictures: Pictures | None = None  #: None: that was not asked
