"""The index of a job with filters: what comes out of the graph, found out before any work by running it.

Rules of this file:
- size, shape, pixel format, colours and rate are those of frames that came out, not of arithmetic;
- where other frames come out than go in, the film goes through the filters once, whole, and what comes out is
  the job's frames: their count and their times are then known, and are checked like any other's;
- files that filters read are looked at here, and belong to the job: by what is in them.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import msgspec

from farm.errors import InputError, UsageError
from farm.filters.judge import Judgement
from farm.media.graph import (
    Clock,
    FilterError,
    FilterGraph,
    Shown,
    final_formats,
    judge_filters,
    listen,
)
from farm.media.hearing import heard
from farm.media.read import ReadAgain, ReadError, open_video, real_packets
from farm.media.sequence import open_reader
from farm.media.times import measured_rate, rational
from farm.media.turn import Turner
from farm.paths import printable, reason
from farm.settings import JobSettings
from farm.source import Damage, Filtered, FilterFile, Rational, SourceIndex

_TICKS_MAX = (1 << 31) - 1
_UNSPECIFIED = 2
_SAID_MAX = 100  # characters of what FFmpeg says


def filter_index(
    index: SourceIndex,
    settings: JobSettings,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> SourceIndex:
    """The index of the frames that come out of the filters in the settings when those of ``index`` go in.
    ``on_progress`` hears fractions from 0 to 1.

    Raises UsageError for filters that can't be had, InputError for a file they need and for a film that can't
    be read.
    """
    judged = judge_filters(settings.filters)
    if judged.whole and not settings.filters.one_pass:
        raise UsageError(
            f"--filter: {judged.whole[0]}, so parts of the film would differ from one pass; --one-pass "
            "renders it as one part, on one worker"
        )
    files = tuple(_file(path) for path in judged.files)
    for step in judged.steps:
        if step.name == "movie":
            _refuse_film(Path(dict(step.options)["filename"]))
    trial = _Trial(index, settings, judged)
    first, shown = trial.look()
    filtered = msgspec.structs.replace(
        _described(index, first, shown),
        packets=(),
        constant=None,
        kept=(),
        input_frames=index.input_frames or index.frames,
        filtered=Filtered(
            source=index,
            before=judged.before,
            after=judged.after,
            whole=judged.whole or (("--one-pass asks for it",) if settings.filters.one_pass else ()),
            retimes=judged.retimes,
            files=files,
        ),
    )
    if judged.retimes:
        filtered = trial.retimed(filtered, shown, on_progress)
    return msgspec.structs.replace(filtered, warnings=(*filtered.warnings, *_words(index, filtered)))


def _described(index: SourceIndex, frame: av.VideoFrame, shown: Shown) -> SourceIndex:
    """``index`` with what the frame says of all of them."""
    same_light = frame.color_trc in (index.color_trc, 0, _UNSPECIFIED)
    return msgspec.structs.replace(
        index,
        width=frame.width,
        height=frame.height,
        pix_fmt=frame.format.name,
        sample_aspect_ratio=shown.sample_aspect_ratio,
        color_range=frame.color_range or index.color_range,
        color_primaries=_known(frame.color_primaries, index.color_primaries),
        color_trc=_known(frame.color_trc, index.color_trc),
        colorspace=frame.colorspace if frame.format.is_rgb else _known(frame.colorspace, index.colorspace),
        mastering_display=index.mastering_display if same_light else None,
        content_light=index.content_light if same_light else None,
        turn="",
        field_order=index.field_order if frame.interlaced_frame else 0,
    )


def _known(new: int, old: int) -> int:
    return old if new in (0, _UNSPECIFIED) else new


def _words(index: SourceIndex, filtered: SourceIndex) -> Iterator[str]:
    plan = filtered.filtered
    assert plan is not None
    if plan.whole:
        yield f"the film is rendered as one part, by one worker, from its start: {'; '.join(plan.whole)}"
    if plan.retimes:
        yield f"{index.frames:,} frames go into the filters, {filtered.frames:,} come out"


class _Trial:
    """Frames of the film, taken through the filters before any work."""

    def __init__(self, index: SourceIndex, settings: JobSettings, judged: Judgement) -> None:
        self._index = index
        self._settings = settings
        self._judged = judged
        self._formats = final_formats(index, settings.video)
        self._damaged = 0  # frames that are lost or damaged

    def look(self) -> tuple[av.VideoFrame, Shown]:
        """The first frame that comes out, and what FFmpeg says of it. Raises UsageError, InputError."""
        try:
            first = self._head()
        except (FilterError, UsageError) as error:
            said = heard(self._first, av.logging.ERROR)
            words = "; ".join(_cut(printable(line)) for line in said)
            raise UsageError(": ".join(filter(None, (_sentence(error), words)))) from error
        if first is None:
            raise UsageError("--filter: not one frame comes out of these filters")
        return first, listen(self._first)

    def retimed(
        self, filtered: SourceIndex, shown: Shown, on_progress: Callable[[float], None]
    ) -> SourceIndex:
        """``filtered`` with the times of the frames that come out. Raises UsageError, InputError."""
        source = self._index
        self._damaged = 0
        frames = list(self._times(on_progress))
        damage = []
        if self._damaged:
            damage = [f"{self._damaged} of {source.frames} frames before the filters are lost or damaged"]
        if damage and self._settings.source.on_error == "stop":
            raise InputError(f"{source.path} is damaged: {damage[0]}; --on-error skip goes on all the same")
        time_base = _common_tick(Fraction(*source.time_base), frames[0][1])
        clock = Clock.of(source, time_base)
        pts = tuple(clock.origin + round(ticks * tick / clock.tick) for ticks, tick in frames)
        if any(before >= after for before, after in pairwise(pts)):
            raise UsageError("--filter: frames come out of these filters at the same time, or out of order")
        ratio = Fraction(*source.time_base) / clock.tick
        rate = Fraction(*shown.frame_rate) if shown.frame_rate else None
        return msgspec.structs.replace(
            filtered,
            time_base=time_base,
            pts=pts,
            keys=(),
            origin=round(source.first_shown * ratio),
            damage=(*source.damage, *map(Damage, damage)),
            frame_rate=measured_rate(rate, pts, clock.tick) or source.frame_rate,
            cut=None if source.cut is None else (round(source.cut[0] * ratio), _scaled(source.cut[1], ratio)),
        )

    def _times(self, on_progress: Callable[[float], None]) -> Iterator[tuple[int, Fraction]]:
        try:
            for frame in self._run(on_progress):
                if frame.pts is None or frame.time_base is None:
                    raise UsageError("--filter: a frame comes out of these filters without a time")
                yield frame.pts, frame.time_base
        except FilterError as error:
            raise UsageError(_sentence(error)) from error

    def _first(self) -> None:
        """As ``look`` does it, for who listens."""
        with suppress(FilterError, UsageError):
            self._head(show=True)

    def _head(self, *, show: bool = False) -> av.VideoFrame | None:
        """The first frame that comes out. A film isn't read from its start for that, if it needn't be."""
        try:
            return next(self._run(show=show, linear=False), None)
        except ReadAgain:
            return next(self._run(show=show), None)

    def _run(
        self,
        on_progress: Callable[[float], None] = lambda fraction: None,
        *,
        show: bool = False,
        linear: bool = True,
    ) -> Iterator[av.VideoFrame]:
        """What comes out of the graph for the whole film."""
        graph = FilterGraph(self._judged, self._index, self._formats, show=show)
        turn = Turner(self._index)
        reader = open_reader(self._index, self._settings, linear=linear)
        try:
            for number, frame in reader.read(0, self._index.frames):
                on_progress(number / self._index.frames)
                self._damaged += frame.is_corrupt
                yield from graph.push(turn(frame), number)
                if graph.ended:
                    return
            self._damaged += len(reader.lost)
            yield from graph.finish()
        except ReadError as error:
            raise InputError(str(error)) from error
        finally:
            reader.close()


def _common_tick(source: Fraction, out: Fraction) -> Rational:
    """A tick that tells the times of both clocks exactly, if there is one."""
    below = source.denominator * out.denominator
    above = math.gcd(source.numerator * out.denominator, out.numerator * source.denominator)
    common = Fraction(above, below)
    return rational(common if common.denominator <= _TICKS_MAX else out)


def _scaled(ticks: int | None, ratio: Fraction) -> int | None:
    return None if ticks is None else round(ticks * ratio)


def _cut(line: str) -> str:
    return line if len(line) <= _SAID_MAX else f"{line[:_SAID_MAX]}…"


def _sentence(error: Exception) -> str:
    words = str(error)
    return words if words.startswith("--filter") else f"--filter: {words}"


def _file(path: Path) -> FilterFile:
    """Raises InputError."""
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FilterFile(str(path), digest, stat.st_size, stat.st_mtime_ns)
    except FileNotFoundError:
        raise InputError(f"--filter: there is no file {printable(path)}") from None
    except OSError as error:
        raise InputError(f"--filter: {printable(path)} can't be read: {reason(error)}") from error


def _refuse_film(path: Path) -> None:
    """An image stays for as long as the film lasts; a film would have to be read from its start for every
    part. Raises InputError."""
    try:
        with av.open(f"file:{path}", metadata_errors="replace") as file:
            stream = file.streams.video[0].index if file.streams.video else None
        if stream is None:
            raise InputError(f"--filter: there is no picture in {printable(path)}")
        container, video = open_video(str(path), stream)
        with container:
            images = sum(1 for _, _ in zip(real_packets(container, video), range(2), strict=False))
    except av.error.FFmpegError as error:
        raise InputError(
            f"--filter: {printable(path)} can't be read as an image: {error.strerror}"
        ) from error
    if images > 1:
        raise InputError(f"--filter: {printable(path)} is a film; movie= takes an image here")
