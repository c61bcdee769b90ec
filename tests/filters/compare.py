"""Frames by parts and frames of one pass, for the tests of filters and the table in docs/filters.md."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import av
from av.filter import Graph

from farm.filters.syntax import parse_graph, unquote
from farm.media.filtered import filter_index
from farm.media.graph import FilterGraph, final_formats, judge_filters
from farm.media.pictures import open_pictures
from farm.media.read import FrameReader, ReadAgain, frame_crc
from farm.settings import FilterSettings, JobSettings, VideoSettings
from farm.source import SourceIndex


class Made(NamedTuple):
    """A frame that came out of filters."""

    time: Fraction  #: seconds, in the job
    width: int
    height: int
    pix_fmt: str
    crc: int


def settings(graph: str, folder: Path, *, one_pass: bool = False, encoder: str = "ffv1") -> JobSettings:
    return JobSettings(
        video=VideoSettings(encoder=encoder),
        container="matroska",
        filters=FilterSettings(graph=graph, one_pass=one_pass, folder=str(folder)),
    )


def by_parts(
    index: SourceIndex, job: JobSettings, size: int, *, backwards: bool = False, linear: bool = False
) -> list[Made]:
    """All frames of a job with filters, made in parts of ``size`` frames."""
    cuts = [*range(0, index.frames, size), index.frames]
    parts = list(pairwise(cuts))
    made: dict[int, Made] = {}
    pictures = open_pictures(index, job, linear=linear)
    for start, stop in reversed(parts) if backwards else parts:
        again = False
        while True:
            try:
                found = {n: _made(frame) for n, frame in pictures.read(start, stop, again=again)}
                break
            except ReadAgain:
                again = True
        made |= found
    pictures.close()
    return [made[number] for number in sorted(made)]


def in_one_pass(source: SourceIndex, job: JobSettings) -> list[Made]:
    """All frames that come out when ``source`` goes through a graph once, from end to end. A graph of one
    filter is read by FFmpeg itself, not by us."""
    formats = final_formats(source, job.video)
    steps = parse_graph(job.filters.graph)
    reader = FrameReader(source, linear=True)
    start = source.pts[0] * Fraction(*source.time_base)
    if len(steps) == 1:
        frames = _through_ffmpeg(source, steps[0].name, _arguments(job.filters), formats, reader)
    else:
        frames = _through_ours(source, job, formats, reader)
    made = [_made(frame, start) for frame in frames]
    reader.close()
    return made


def _made(frame: av.VideoFrame, start: Fraction = Fraction(0)) -> Made:
    assert frame.pts is not None and frame.time_base is not None
    time = frame.pts * frame.time_base + start
    return Made(time, frame.width, frame.height, frame.format.name, frame_crc(frame))


def _arguments(filters: FilterSettings) -> str:
    _, _, behind = filters.graph.partition("=")
    arguments, _ = unquote(behind, "[],;")
    return arguments


def _through_ffmpeg(
    source: SourceIndex, name: str, arguments: str, formats: tuple[str, ...], reader: FrameReader
) -> Iterator[av.VideoFrame]:
    graph = Graph()
    graph.threads = 1
    rate = source.frame_rate or (25, 1)
    nodes = [
        graph.add(
            "buffer",
            f"video_size={source.width}x{source.height}:pix_fmt={source.pix_fmt}"
            f":time_base={source.time_base[0]}/{source.time_base[1]}:pixel_aspect=0/1"
            f":frame_rate={rate[0]}/{rate[1]}:colorspace={source.colorspace}:range={source.color_range}",
        ),
        graph.add(name, arguments or None),
        *([graph.add("format", f"pix_fmts={'|'.join(formats)}")] if formats else []),
        graph.add("buffersink"),
    ]
    graph.link_nodes(*nodes).configure()
    times = [pts - source.pts[0] for pts in source.pts]
    gaps = [after - before for before, after in pairwise(times)]
    ended = False
    for number, frame in reader.read(0, source.frames):
        frame.pts, frame.duration = times[number], (gaps + gaps[-1:])[number]
        try:
            graph.push(frame)
        except av.error.EOFError:
            ended = True
        yield from _drained(graph)
        if ended:
            return
    graph.push(None)
    yield from _drained(graph)


def _drained(graph: Graph) -> Iterator[av.VideoFrame]:
    while True:
        try:
            yield graph.vpull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return


def _through_ours(
    source: SourceIndex, job: JobSettings, formats: tuple[str, ...], reader: FrameReader
) -> Iterator[av.VideoFrame]:
    graph = FilterGraph(judge_filters(job.filters), source, formats)
    for number, frame in reader.read(0, source.frames):
        yield from graph.push(frame, number)
    yield from graph.finish()


def differences(
    source: SourceIndex, job: JobSettings, sizes: tuple[int, ...]
) -> tuple[SourceIndex, list[str]]:
    """The job's index, and a sentence for each part size whose frames are not those of one pass."""
    index = filter_index(source, job)
    one = in_one_pass(source, job)
    found = []
    assert index.filtered is not None
    for size in (index.frames,) if index.filtered.whole else sizes:
        made = by_parts(index, job, size)
        if made != one:
            wrong = sum(a != b for a, b in zip(made, one, strict=False)) + abs(len(made) - len(one))
            found.append(f"{wrong} of {len(one)} frames differ with parts of {size}")
    return index, found
