"""Reads every part of a job whole before anything is written, and works out the times of the output.

A part must be the one that was planned, made with these settings, and undamaged, and its frames must be those
of the source index. A part that isn't is named, so that it alone can be rendered again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from farm.errors import VerificationError
from farm.parts import PartError, PartFooter, PartHeader, PartPacket, PartReader
from farm.source import SourceIndex


class DamagedPart(VerificationError):
    """A part file that can't be used; ``part`` is its number, to be rendered again."""

    def __init__(self, part: int, reason: str) -> None:
        super().__init__(part, reason)  # both, so that it can be pickled on its way to another process
        self.part = part
        self.reason = reason

    def __str__(self) -> str:
        return f"part {self.part} can't be used and must be rendered again: {self.reason}"


class Timeline(NamedTuple):
    """Times of the video in ticks of the source's time base, before any shift."""

    pts: Sequence[int]  #: of the frames that are there, ascending
    delay: int  #: the most places that a packet comes later in decoding than in display order
    last_duration: int  #: of the last frame

    def dts(self, number: int) -> int:
        """When packet ``number``, counted in decoding order, is decoded: at the time of the frame ``delay``
        places before, so that dts rise strictly and none lies after its pts."""
        place = number - self.delay
        if place >= 0:
            return self.pts[place]
        step = min((after - before for before, after in pairwise(self.pts[: self.delay + 1])), default=1)
        return self.pts[0] + place * step

    def duration(self, pts: int) -> int:
        """Until the next frame."""
        place = bisect_left(self.pts, pts) + 1
        return self.pts[place] - pts if place < len(self.pts) else self.last_duration


class Survey(NamedTuple):
    """What was found in the parts."""

    timeline: Timeline
    lost_pts: tuple[int, ...]  #: frames of the index that could not be decoded
    damaged_pts: tuple[int, ...]  #: frames that are damaged and are there all the same
    resized_pts: tuple[int, ...]  #: frames of another size than the first
    reformatted_pts: tuple[int, ...]  #: frames of another pixel format than the first
    extradata: bytes  #: the encoder's header, the same in all parts
    part_packets: tuple[int, ...] = ()  #: how many each part has


def survey_parts(
    index: SourceIndex,
    settings_hash: str,
    parts: Sequence[Path],
    last_duration: int,
    on_part: Callable[[int], None],
) -> Survey:
    """Check all parts, in order, against the index. ``on_part`` hears how many are done.

    Raises DamagedPart for one that must be rendered again, VerificationError if they don't make up the job.
    """
    present: list[int] = []
    lost: list[int] = []
    damaged: list[int] = []
    resized: list[int] = []
    reformatted: list[int] = []
    delay = 0
    stop = 0
    extradata: bytes | None = None
    counts: list[int] = []
    for part, path in enumerate(parts):
        header, footer, pts = _read_part(part, path, settings_hash)
        if header.part != part or header.start != stop or not header.start < header.stop <= index.frames:
            raise VerificationError(
                f"{path} is part {header.part}, frames {header.start} to {header.stop}, where part {part} "
                f"from frame {stop} belongs: the parts are not those of this job"
            )
        if extradata is not None and header.extradata != extradata:
            raise DamagedPart(part, "its encoder header differs from that of the parts before")
        extradata = header.extradata
        planned = index.pts[header.start : header.stop]
        shown = sorted(pts)
        if len(set(shown)) != len(shown) or not set(shown) <= set(planned):
            raise DamagedPart(part, "its frames have other times than the source's")
        delay = max(delay, _delay(pts, shown))
        present += shown
        counts.append(len(shown))
        lost += sorted(set(planned) - set(shown))
        damaged += footer.damaged_pts
        resized += footer.resized_pts
        reformatted += footer.reformatted_pts
        stop = header.stop
        on_part(part + 1)
    if extradata is None or stop != index.frames:
        raise VerificationError(f"the parts end at frame {stop} of {index.frames}: some are missing")
    if not present:
        raise VerificationError("not one frame of the source could be decoded: there is nothing to write")
    timeline = Timeline(present, delay, last_duration)
    return Survey(
        timeline=timeline,
        lost_pts=tuple(lost),
        damaged_pts=tuple(damaged),
        resized_pts=tuple(resized),
        reformatted_pts=tuple(reformatted),
        extradata=extradata,
        part_packets=tuple(counts),
    )


def read_packets(part: int, path: Path) -> Iterator[PartPacket]:
    """The packets of a part file in decoding order. Raises DamagedPart."""
    try:
        with PartReader(path) as reader:
            yield from reader.packets()
    except (PartError, FileNotFoundError) as error:
        raise DamagedPart(part, _reason(error)) from error


def _read_part(part: int, path: Path, settings_hash: str) -> tuple[PartHeader, PartFooter, list[int]]:
    """Header, footer and pts in decoding order."""
    try:
        with PartReader(path) as reader:
            packets = [(packet.pts, packet.key) for packet in reader.packets()]
            facts = reader.facts()
    except (PartError, FileNotFoundError) as error:
        raise DamagedPart(part, _reason(error)) from error
    header, footer = facts.header, facts.footer
    if header.settings_hash != settings_hash:
        raise DamagedPart(part, "it was made with other settings, another input or another build")
    if footer.frames != len(packets) or footer.frames + footer.lost_frames != header.stop - header.start:
        raise DamagedPart(
            part,
            f"it holds {len(packets)} frames, {footer.lost_frames} were lost, and it should be "
            f"{header.stop - header.start}",
        )
    if packets and not packets[0][1]:
        raise DamagedPart(part, "it doesn't begin with a keyframe")
    return header, footer, [pts for pts, _ in packets]


def _delay(decoded: Sequence[int], shown: Sequence[int]) -> int:
    rank = {pts: place for place, pts in enumerate(shown)}
    return max((place - rank[pts] for place, pts in enumerate(decoded)), default=0)


def _reason(error: PartError | FileNotFoundError) -> str:
    return f"its file {error.filename} is gone" if isinstance(error, FileNotFoundError) else str(error)
