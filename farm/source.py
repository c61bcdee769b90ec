"""The source index as data: which frames a video has and where it can be entered. Made by farm.media.index
in a child process, kept in the run folder, read by everyone. Never imports av.

Frame identity is the pts in the stream's time base; frame n of the job is the n-th pts in display order.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

Rational = tuple[int, int]


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One stream of the input beside the video that is rendered."""

    index: int
    kind: str  #: audio, subtitle, video, data, attachment
    codec: str
    language: str = ""
    title: str = ""


class PacketEntry(msgspec.Struct, frozen=True, array_like=True):
    """One packet of the video stream in decode order; enough to recognise where a seek landed."""

    pts: int | None
    dts: int | None
    size: int
    pos: int | None
    key: bool
    discard: bool


class MasteringDisplay(msgspec.Struct, frozen=True, kw_only=True):
    """The screen an HDR picture was graded on: CIE 1931 coordinates (x, y), and candela per square metre."""

    red: tuple[Rational, Rational]
    green: tuple[Rational, Rational]
    blue: tuple[Rational, Rational]
    white: tuple[Rational, Rational]
    luminance_min: Rational
    luminance_max: Rational


class ImageFile(msgspec.Struct, frozen=True, array_like=True):
    """One image of a sequence, as it was when it was indexed."""

    number: int  #: in its name
    name: str
    size: int  #: bytes; below 0: there is no such file
    mtime_ns: int


class Damage(msgspec.Struct, frozen=True, array_like=True):
    """One thing that is broken or missing in an input."""

    words: str
    #: Where, in ticks of the source's time base; empty: it isn't known.
    at: tuple[int, ...] = ()
    at_end: bool = False  #: what should come after the last frame is missing


class ConstantRate(msgspec.Struct, frozen=True, kw_only=True):
    """Of a job whose frames are not the source's own: which of those each of them shows."""

    pts: tuple[int, ...]  #: of the source's frames, in display order
    time_base: Rational  #: the source's
    picks: tuple[int, ...]  #: for each frame of the job the number of the source's frame


class FilterFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a filter reads, as it was when the job was planned."""

    path: str
    sha256: str
    size: int
    mtime_ns: int


class Filtered(msgspec.Struct, frozen=True, kw_only=True):
    """Of a job whose frames come out of a filtergraph: what goes into it, and how it is to be run."""

    source: SourceIndex  #: of the frames that go in
    before: int = 0  #: frames it must see before a part for that to be as in one pass
    after: int = 0  #: and behind it
    whole: tuple[str, ...] = ()  #: why the film is one part, a clause for each filter; empty: it needn't be
    retimes: bool = False  #: other frames come out than go in
    files: tuple[FilterFile, ...] = ()


class SourceIndex(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    fingerprint: str
    container: str  #: the demuxer's name
    stream: int  #: index of the video stream within the container
    codec: str
    width: int
    height: int
    pix_fmt: str
    time_base: Rational
    frame_rate: Rational | None  #: average, for people and for the default length of parts
    sample_aspect_ratio: Rational | None
    pts: tuple[int, ...]  #: display order; its length is the frame count of the job
    keys: tuple[int, ...]  #: frames (display order) at which decoding can start, ascending
    packets: tuple[PacketEntry, ...]
    linear: bool = False  #: read from the start and count, because seeking can't be trusted
    linear_reason: str = ""
    others: tuple[StreamInfo, ...] = ()
    damage: tuple[Damage, ...] = ()  #: what is broken or missing in it, wherever
    warnings: tuple[str, ...] = ()  #: what else is to be said
    color_range: int = 0  #: this and the next three by the code points of ITU-T H.273 as FFmpeg numbers them
    color_primaries: int = 2
    color_trc: int = 2
    colorspace: int = 2
    mastering_display: MasteringDisplay | None = None
    content_light: tuple[int, int] | None = None  #: MaxCLL and MaxFALL, candela per square metre
    display_matrix: tuple[
        int, ...
    ] = ()  #: nine numbers, 16.16 fixed point (last column 2.30); empty: upright

    field_order: int = 0  #: of interlaced pictures, as FFmpeg numbers it; 0: progressive, or not known
    images: tuple[ImageFile, ...] = ()  #: of a sequence: the file of each frame, in the folder of ``path``
    #: The times, in ticks, between which the output has what the input has there, and is 0 at the first of
    #: them; the second is None where that is the end. None: the whole input, at its own times.
    cut: tuple[int, int | None] | None = None
    kept: tuple[int, ...] = ()  #: where not all frames of the input are taken: which, counted from 0
    numbers: tuple[int, ...] = ()  #: where images are written: the number of each frame's file
    turn: str = ""  #: a filter that makes its pictures upright, which they are in what is said above
    constant: ConstantRate | None = None  #: pts and time_base above are those of a constant rate
    filtered: Filtered | None = None  #: what is said above of pictures and times is so behind the filters
    origin: int | None = None  #: when the input's first frame is shown, in ticks; None: ``pts[0]``
    input_frames: int = 0  #: that the input has, whatever is taken of it; 0: all are taken
    timecode: str = ""  #: that the container gives the input's first frame, as it is written there

    @property
    def frames(self) -> int:
        return len(self.pts)

    @property
    def contents(self) -> str:
        """What tells it from other input: what is in the file, and in those that filters read."""
        files = self.filtered.files if self.filtered is not None else ()
        return "+".join((self.fingerprint, *(file.sha256 for file in files)))

    @property
    def own_times(self) -> bool:
        """Whether the times of its frames are those of the stream in the file."""
        if self.filtered is not None:
            return not self.filtered.retimes and self.filtered.source.own_times
        return self.constant is None

    @property
    def first_shown(self) -> int:
        """When the input's first frame is shown, in ticks."""
        return self.pts[0] if self.origin is None else self.origin

    @property
    def input_numbers(self) -> Sequence[int]:
        """Of each frame of the job: which frame of the input it shows, counted from 0; ascending. Behind
        filters that give other frames: which one is shown where it is shown."""
        if self.filtered is not None:
            return self._numbers_before(self.filtered)
        if self.images:  # a frame of theirs is one tick long
            return [pts - self.first_shown for pts in self.pts]
        if self.constant is not None:
            return self.constant.picks
        return self.kept or range(self.frames)

    def _numbers_before(self, filtered: Filtered) -> Sequence[int]:
        numbers = filtered.source.input_numbers
        if not filtered.retimes:
            return numbers
        ratio = Fraction(*self.time_base) / Fraction(*filtered.source.time_base)
        return [numbers[max(0, bisect_right(filtered.source.pts, pts * ratio) - 1)] for pts in self.pts]


def changed_files(before: SourceIndex, now: SourceIndex) -> list[str]:
    """The files that filters read which hold something else than they did."""
    if before.filtered is None or now.filtered is None:
        return []
    known = {file.sha256 for file in before.filtered.files}
    return [file.path for file in now.filtered.files if file.sha256 not in known]


def save_index(index: SourceIndex, path: Path) -> None:
    path.write_bytes(msgspec.msgpack.encode(index))


def load_index(path: Path) -> SourceIndex:
    """Raises msgspec.DecodeError or ValidationError if the file is damaged."""
    return msgspec.msgpack.decode(path.read_bytes(), type=SourceIndex)


def fingerprint(path: Path, block_bytes: int = 1 << 20) -> str:
    """Size and a hash of the first and last MiB: cheap on any size, the same after a copy or a move."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(block_bytes))
        if size > block_bytes:
            file.seek(max(block_bytes, size - block_bytes))
            digest.update(file.read(block_bytes))
    return f"{size}-{digest.hexdigest()[:32]}"


def part_cuts(
    frames: int, target: int, keys: tuple[int, ...] = (), *, fixed: bool = False, reach: float = 0.4
) -> tuple[int, ...]:
    """Cuts of the part grid: every ``target`` frames, moved to the nearest keyframe within ``reach`` of the
    target on either side (media.md: the size of 60-frame parts grows by 4.7 % instead of 12.3 %)."""
    if frames < 1 or target < 1:
        raise ValueError("a grid needs at least one frame and a target of at least one")
    cuts = [0]
    slack = 0 if fixed else int(target * reach)
    position = 0  # of the next key that may matter; keys and cuts both ascend
    while frames - cuts[-1] > target + slack:
        wanted = cuts[-1] + target
        low = wanted - slack
        while position < len(keys) and keys[position] < low:
            position += 1
        best = wanted
        distance = slack + 1
        scan = position
        while scan < len(keys) and keys[scan] <= wanted + slack:
            if cuts[-1] < keys[scan] < frames and abs(keys[scan] - wanted) < distance:
                best, distance = keys[scan], abs(keys[scan] - wanted)
            scan += 1
        cuts.append(best)
    cuts.append(frames)
    return tuple(cuts)
