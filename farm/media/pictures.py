"""The pictures of a job as they are encoded: read, made upright, filtered.

Rules of this file:
- what is yielded for a frame is a function of (index, settings, frame) alone, in whatever order ranges are
  asked for: every range has a filtergraph of its own, which sees the frames around it that it needs;
- what is said of a range (what was lost, damaged or of another size, and the checksums of the seam) is of the
  frames that were read, not of what the filters made of them;
- filters that give other frames than they promised when the job was planned are an error, never a wrong film.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import av

from farm.media.graph import Clock, FilterError, FilterGraph, final_formats, judge_filters
from farm.media.read import Numbered, ReadError, frame_crc
from farm.media.sequence import Reader, open_reader
from farm.media.turn import Turner, source_size
from farm.media.window import WindowReader
from farm.paths import printable, reason
from farm.settings import JobSettings
from farm.source import Filtered, SourceIndex

AnyPictures: TypeAlias = "Pictures | FilteredPictures"


class Seen:
    """What was seen of a range."""

    def __init__(self) -> None:
        self.first_crc: int | None = None  #: of its first frame
        self.next_crc: int | None = None  #: of the frame behind it; None: lost, not known, or there is none
        self.lost = 0  #: frames that could not be decoded
        self.damaged: list[int] = []  #: pts of frames that are damaged and are there all the same
        self.resized: list[int] = []  #: pts of frames of another size than the job's first
        self.reformatted: list[int] = []  #: pts of frames of another pixel format than the job's first


def open_pictures(
    index: SourceIndex,
    settings: JobSettings,
    *,
    linear: bool = False,
    decoded: Callable[[], None] = lambda: None,
) -> AnyPictures:
    """``linear``: read from the start of the file, whatever the index says; ``decoded`` is called after each
    picture that is decoded, and may raise to give up. Raises UsageError for filters that can't be had."""
    if index.filtered is None:
        return Pictures(index, open_reader(index, settings, linear=linear, decoded=decoded))
    reader = open_reader(index.filtered.source, settings, linear=linear, decoded=decoded)
    return FilteredPictures(index, index.filtered, settings, reader)


class Pictures:
    """Of a job without filters."""

    def __init__(self, index: SourceIndex, reader: Reader) -> None:
        self._index = index
        self._reader = reader
        self._notes = _Notes(index)
        self._turn = Turner(index)
        self.seen = Seen()  #: of the last range

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]:
        """As ``FrameReader.read``."""
        seen = self.seen = Seen()
        for number, frame in self._reader.read(start, stop, again=again):
            self._notes.take(seen, frame, self._index.pts[number], first=number == start)
            yield number, self._turn(frame)
        seen.lost = len(self._reader.lost)
        following = self._reader.next_frame
        seen.next_crc = None if following is None else frame_crc(following)

    def close(self) -> None:
        """Let go of the source."""
        self._reader.close()


class FilteredPictures:
    """Of a job with filters."""

    def __init__(self, index: SourceIndex, filtered: Filtered, settings: JobSettings, reader: Reader) -> None:
        self._index = index
        self._filtered = filtered
        self._source = filtered.source
        self._judged = judge_filters(settings.filters)
        self._formats = final_formats(filtered.source, settings.video)
        self._window = WindowReader(reader, filtered.source.frames, filtered.before, filtered.after)
        self._clock = Clock.of(filtered.source, index.time_base)
        self._time_base = Fraction(*index.time_base)
        self._present: set[int] = set()  # pts of the frames of the present range that went in
        self._notes = _Notes(filtered.source)
        self._turn = Turner(filtered.source)
        self.seen = Seen()  #: of the last range

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]:
        """As ``FrameReader.read``. Raises FilterError."""
        self.seen = Seen()
        pts = self._index.pts
        wanted = {pts[number]: number for number in range(start, stop)}
        came: set[int] = set()
        last = start - 1
        for frame in self._made(range(start, stop), again):
            number = wanted.get(self._clock.pts(frame))
            if number is None:
                continue
            if number <= last:
                raise FilterError(f"the filters gave frame {number} twice, or too late")
            if (frame.width, frame.height) != (self._index.width, self._index.height):
                raise FilterError(f"the filters changed the size of the picture at frame {number}")
            frame.pts, frame.time_base = pts[number], self._time_base
            last = number
            came.add(number)
            yield number, frame
        self._account(range(start, stop), came)

    def close(self) -> None:
        """Let go of the source."""
        self._window.close()

    def _made(self, part: range, again: bool) -> Iterator[av.VideoFrame]:
        """All that comes out of a graph for a part and the frames around it."""
        source, retimes = self._source, self._filtered.retimes
        begin, end = 0, source.frames
        if not retimes:
            begin = bisect_left(source.pts, self._index.pts[part.start])
            end = bisect_left(source.pts, self._index.pts[part.stop - 1]) + 1
        taken = {self._index.pts[number] for number in part}
        self._check_files()
        graph = FilterGraph(self._judged, source, self._formats)
        self._present.clear()
        for number, frame in self._window.read(begin, end, again=again):
            if not retimes and source.pts[number] in taken:  # not around it, nor left out of it
                self._present.add(source.pts[number])
                self._notes.take(self.seen, frame, source.pts[number], first=number == begin)
            yield from graph.push(self._turn(frame), number)
        yield from graph.finish()
        following = self._window.next_frame
        self.seen.next_crc = None if following is None else frame_crc(following)

    def _check_files(self) -> None:
        for file in self._filtered.files:
            try:
                stat = Path(file.path).stat()
            except OSError as error:
                raise ReadError(f"{printable(Path(file.path))} can't be read: {reason(error)}") from error
            if (stat.st_size, stat.st_mtime_ns) != (file.size, file.mtime_ns):
                raise ReadError(f"{printable(Path(file.path))} was changed since the job was planned")

    def _account(self, part: range, came: set[int]) -> None:
        missing = [number for number in part if number not in came]
        retimes, pts = self._filtered.retimes, self._index.pts
        silent = [number for number in missing if retimes or pts[number] in self._present]
        if silent:
            raise FilterError(f"the filters gave nothing for frame {silent[0]}")
        self.seen.lost = len(missing)


class _Notes:
    """Notes down what frames were read."""

    def __init__(self, index: SourceIndex) -> None:
        # Of images none has a size by chance: it was refused, or it was asked what they become.
        self._size = None if index.images else source_size(index)
        self._format = plain_format(index.pix_fmt)

    def take(self, seen: Seen, frame: av.VideoFrame, pts: int, *, first: bool) -> None:
        if first:
            seen.first_crc = frame_crc(frame)
        if frame.is_corrupt:
            seen.damaged.append(pts)
        if self._size is not None and (frame.width, frame.height) != self._size:
            seen.resized.append(pts)
        if self._size is not None and plain_format(frame.format.name) != self._format:
            seen.reformatted.append(pts)


def plain_format(pix_fmt: str) -> str:
    """Without the range of its colours, which some formats have in their names."""
    return pix_fmt.replace("yuvj", "yuv")
