"""A filtergraph at work: frames in, frames out.

Rules of this file:
- a graph is made from (the graph as it was judged, the index of the frames that go in, the encoder) alone,
  runs in one thread, and remembers nothing of any other;
- the film's times are those of the job, counted from its first frame: ``t`` is 0 there, in every part;
- what a filter makes of YUV and the encoder doesn't take (RGB, mostly) becomes a format that it does take, as
  with FFmpeg's command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import av
from av.filter import Graph
from av.filter.filter import filters_available

from farm.errors import UsageError
from farm.filters.judge import Judgement, judge
from farm.filters.syntax import Step, spell_options
from farm.media.encode import conform, offered_formats, whole_picture
from farm.media.hearing import heard
from farm.settings import FilterSettings, VideoSettings
from farm.source import Rational, SourceIndex

_RGB = _RESERVED = 0
_SHOWN_ASPECT = re.compile(r"\bsar:(\d+)/(\d+)")
_SHOWN_RATE = re.compile(r"\bframe_rate: (\d+)/(\d+)")


class FilterError(Exception):
    """A filter that failed at work; the message says which, if that is known."""


def judge_filters(filters: FilterSettings) -> Judgement:
    """What is known of the graph in the settings. Raises GraphError."""
    return judge(filters.graph, Path(filters.folder), filters_available)


def final_formats(index: SourceIndex, video: VideoSettings) -> tuple[str, ...]:
    """The pixel formats that may come out of a graph that ``index`` goes into; none: all."""
    if av.VideoFormat(index.pix_fmt).is_rgb or index.pix_fmt == "pal8":
        return ()  # what becomes of RGB is decided behind the filters, as without them
    return tuple(offered_formats(video.encoder))


class FilterGraph:
    """One run of a graph. ``show``: it tells FFmpeg's log what comes out of it."""

    def __init__(
        self, judged: Judgement, index: SourceIndex, formats: Sequence[str], *, show: bool = False
    ) -> None:
        """Raises UsageError if FFmpeg can't make the graph."""
        self._index = index
        self._picture = whole_picture(index)
        self._time_base = Fraction(*index.time_base)
        self._graph = Graph()
        self._graph.threads = 1
        self.ended = False  #: nothing more comes out, whatever goes in
        nodes = []
        for step in judged.steps:
            with _Blamed(step):
                nodes.append(self._graph.add(step.name, spell_options(step.options) or None))
        film = self._graph.add("buffer", _buffer(index))
        try:
            film.link_to(nodes[judged.wiring.source.step], 0, judged.wiring.source.number)
            for out, into in judged.wiring.links:
                nodes[out.step].link_to(nodes[into.step], out.number, into.number)
            last, pad = nodes[judged.wiring.sink.step], judged.wiring.sink.number
            behind = [("format", f"pix_fmts={'|'.join(formats)}")] if formats else []
            behind += [("showinfo", "checksum=0")] if show else []
            for name, options in (*behind, ("buffersink", "")):
                node = self._graph.add(name, options or None)
                last.link_to(node, pad, 0)
                last, pad = node, 0
            self._graph.configure()
        except av.error.FFmpegError as error:
            raise UsageError(f"--filter: FFmpeg can't link these filters: {error.strerror}") from error

    def push(self, frame: av.VideoFrame, number: int) -> list[av.VideoFrame]:
        """What comes out for frame ``number``, with times counted from the job's first frame.

        Raises FilterError."""
        pts = self._index.pts
        if (frame.width, frame.height, frame.format.name) != self._picture[:3]:
            frame = conform(frame, self._picture)
        self._mend_tags(frame)
        frame.pts, frame.time_base = pts[number] - pts[0], self._time_base
        last = max(1, number)
        until = number + 1 if number + 1 < len(pts) else None
        frame.duration = pts[until] - pts[number] if until else pts[last] - pts[last - 1] if number else 1
        return self._fed(frame)

    def finish(self) -> list[av.VideoFrame]:
        """What is left when the film ends. Raises FilterError."""
        return self._fed(None)

    def _mend_tags(self, frame: av.VideoFrame) -> None:
        """Some streams call their colours by numbers that are reserved, which scale wouldn't have."""
        if frame.colorspace == _RGB and not frame.format.is_rgb:
            frame.colorspace = self._picture.colorspace
        if frame.color_primaries == _RESERVED:
            frame.color_primaries = self._index.color_primaries
        if frame.color_trc == _RESERVED:
            frame.color_trc = self._index.color_trc

    def _fed(self, frame: av.VideoFrame | None) -> list[av.VideoFrame]:
        came: list[av.VideoFrame] = []
        try:
            if not self.ended:
                self._graph.push(frame)
            while True:
                out = self._graph.pull()
                assert isinstance(out, av.VideoFrame)
                came.append(out)
        except av.error.EOFError:
            self.ended = True
        except av.error.BlockingIOError:
            pass
        except av.error.FFmpegError as error:
            raise FilterError(f"a filter failed: {error.strerror}") from error
        return came


class Clock(NamedTuple):
    """Turns the times of frames behind the filters into those of the job."""

    tick: Fraction
    origin: int  #: of the job's first frame, in ticks

    @classmethod
    def of(cls, source: SourceIndex, time_base: Rational) -> Clock:
        """For a job that takes the frames of ``source`` and counts in ``time_base``."""
        tick = Fraction(*time_base)
        return cls(tick, round(source.pts[0] * Fraction(*source.time_base) / tick))

    def pts(self, frame: av.VideoFrame) -> int:
        """Raises FilterError for a frame without a time."""
        if frame.pts is None or frame.time_base is None:
            raise FilterError("a frame came out of the filters without a time")
        return self.origin + round(frame.pts * frame.time_base / self.tick)


class Shown(NamedTuple):
    """What PyAV doesn't say of frames behind a graph, from FFmpeg's log."""

    sample_aspect_ratio: Rational | None
    frame_rate: Rational | None


def listen(run: Callable[[], object]) -> Shown:
    """``run``: takes frames through a graph that shows them."""
    said = "\n".join(heard(run, av.logging.INFO))
    return Shown(_last(_SHOWN_ASPECT, said), _last(_SHOWN_RATE, said))


def _last(pattern: re.Pattern[str], text: str) -> Rational | None:
    found = pattern.findall(text)
    above, below = map(int, found[-1]) if found else (0, 0)
    return Fraction(above, below).as_integer_ratio() if above and below else None


def _buffer(index: SourceIndex) -> str:
    aspect = index.sample_aspect_ratio or (0, 1)
    rate = f":frame_rate={index.frame_rate[0]}/{index.frame_rate[1]}" if index.frame_rate else ""
    return (
        f"video_size={index.width}x{index.height}:pix_fmt={index.pix_fmt}"
        f":time_base={index.time_base[0]}/{index.time_base[1]}:pixel_aspect={aspect[0]}/{aspect[1]}{rate}"
        f":colorspace={index.colorspace}:range={index.color_range}"
    )


class _Blamed:
    """Says which step FFmpeg wouldn't have."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (av.error.FFmpegError, ValueError)):
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"--filter: FFmpeg refuses {self._step.place}: {why}") from error
