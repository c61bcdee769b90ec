"""Whether a file ends where it should. One that was cut off often ends without an error: only its own word
for its length tells."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import av
from av.container import InputContainer
from av.stream import Stream
from av.video.stream import VideoStream

_BOX = struct.Struct(">I4s")  # of mp4 and mov: size and kind
_TOLERATED_SHARE = 0.95
_TOLERATED_SECONDS = 1.0
#: Of one number in their header some writers make the frames, others the ticks.
_AMBIGUOUS = ("ivf",)


def missing_end(
    path: Path, container: InputContainer, video: VideoStream, packets: int, end: int | None
) -> str:
    """What is missing at the end, in words; empty if nothing is. ``packets``: of the video; ``end``: when
    its last picture's time is over, in its time base."""
    if container.format.name in _AMBIGUOUS:
        return ""
    if packets < video.frames * _TOLERATED_SHARE:
        return f"its header promises {video.frames} frames and {packets} are there"
    if end is None or not video.time_base:
        return ""
    found = float((end - min(video.start_time or 0, 0)) * video.time_base)
    if video.duration is not None:
        return _shortfall(found, float(video.duration * video.time_base))
    if container.duration is None:
        return ""
    promised = container.duration / av.time_base
    if _shortfall(found, promised) and len(container.streams) > 1:  # of them all, the longest counts
        found = max(found, _end_of_all(path))
    return _shortfall(found, promised)


def lacks_its_index(path: Path) -> bool:
    """Whether this is an mp4 or mov that ends, or goes wrong, within its pictures: the index comes after."""
    at, within_pictures = 0, False
    with path.open("rb") as file:
        while len(head := file.read(_BOX.size)) == _BOX.size:
            size, kind = _BOX.unpack(head)
            if kind == b"moov" or (at == 0 and kind != b"ftyp"):
                return False
            within_pictures = kind == b"mdat"
            if size == 1:
                size = int.from_bytes(file.read(8), "big")
            if size < _BOX.size:  # 0: to the end of the file
                break
            at = file.seek(at + size)
    return within_pictures


def _shortfall(found: float, promised: float) -> str:
    if found >= promised * _TOLERATED_SHARE or promised - found < _TOLERATED_SECONDS:
        return ""
    return f"it ends after {found:.1f} s although its header says {promised:.1f} s: probably cut off"


def _end_of_all(path: Path) -> float:
    """In seconds, when the last packet of whatever stream is over."""
    with av.open(f"file:{path.absolute()}", metadata_errors="replace") as container:
        return max(_ends(container), default=0.0)


def _ends(container: InputContainer) -> Iterator[float]:
    with suppress(av.error.FFmpegError):
        packet: av.Packet[Stream]
        for packet in container.demux():
            if packet.size and packet.pts is not None:
                yield float((packet.pts + (packet.duration or 0)) * packet.time_base)
