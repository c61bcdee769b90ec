"""Joins the parts, and the sound and other streams of the input, into the output; no video is encoded again.

How it works:
1. Every part is read and checked whole (farm.media.survey). Nothing is written before that.
2. The encoder, opened as for a part, is the template of the video stream; its header must be the parts'.
3. Presentation times are the source's own; decoding times and durations follow from them (Timeline).
4. All streams are written in order of decoding time, from one reader each: memory does not grow with the job.

Times are shifted only where the container can't hold them (before zero), and then all streams alike.
"""

from __future__ import annotations

import errno
import heapq
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import av
from av.container import OutputContainer
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

from farm.errors import OutputError, VerificationError
from farm.facts import StitchFacts
from farm.media.carry import Carrier, copy_tags, open_carriers
from farm.media.muxer import add_video, header_in_band, muxer_options, open_output
from farm.media.range import window_of, within_chapters
from farm.media.streams import (
    MILLISECOND_CONTAINERS,
    TS_SECONDS_MAX,
    StreamPlan,
    container_name,
    open_source,
    plan_streams,
)
from farm.media.survey import DamagedPart as DamagedPart
from farm.media.survey import Survey, Timeline, read_packets, survey_parts
from farm.media.unwanted import damage_words, format_words, refuse_found, size_words
from farm.settings import JobSettings
from farm.source import SourceIndex
from farm.timecode import Timecode, is_label_of, labels_for, retimed

if TYPE_CHECKING:  # PyAV has it in its stubs only
    from av.container.core import Chapter

#: The survey's share of the progress, which runs from 0 to 1.
_SURVEY_SHARE = 0.3
_PROGRESS_PACKETS = 256
#: By so much is a container's word for its length off that was rounded to a millisecond.
_ROUNDING_SECONDS = Fraction(1, 1000)
_REORDERING_CODECS = frozenset({"mpeg1video", "mpeg2video"})
_Timed: TypeAlias = "tuple[float, av.Packet[Stream], Carrier | None]"


class _Source(NamedTuple):
    """What the output takes over from the input besides its streams."""

    tags: dict[str, str]
    chapters: list[Chapter]
    video_tags: dict[str, str]
    video_disposition: int
    last_duration: int


def stitch(
    index: SourceIndex,
    settings: JobSettings,
    settings_hash: str,
    parts: Sequence[Path],
    output: Path,
    on_progress: Callable[[float], None],
) -> StitchFacts:
    """Write ``output`` from the part files of the whole job, in their order, and sync it to disk.

    The container is ``settings.container``, whatever the file's name; a file that is there is overwritten,
    and none is left after an error. ``on_progress`` hears fractions from 0 to 1 that never fall.

    Raises DamagedPart for a part that must be rendered again, VerificationError if the parts don't make up
    the job, OutputError if the output can't be written, InputError if the input is gone, UsageError if the
    container can't hold the video's times. InputError, too, for damage that the settings don't put up with.
    """
    plan = plan_streams(Path(index.path), index, settings.container, settings.audio)
    source = _read_source(index, settings)
    survey = survey_parts(
        index,
        settings_hash,
        parts,
        source.last_duration,
        lambda done: on_progress(_SURVEY_SHARE * done / len(parts)),
    )
    refuse_found(index, settings.source, survey)
    timeline = _as_decoders_expect(survey.timeline, settings)
    try:
        with ExitStack() as stack:
            options = muxer_options(index, settings.container)
            muxer = stack.enter_context(open_output(output, settings.container, options))
            video = add_video(muxer, index, settings.video, source.video_tags, source.video_disposition)
            carriers = open_carriers(plan, Path(index.path), muxer, stack, window_of(index))
            shift = _shift(index, settings.container, timeline, carriers)
            muxer.metadata.update(source.tags)
            chapters = within_chapters(source.chapters, window_of(index))
            muxer.set_chapters([_moved(chapter, shift) for chapter in chapters])
            muxer.start_encoding()
            if (video.codec_context.extradata or b"") != survey.extradata:
                raise VerificationError(
                    f"the parts were encoded by another {settings.video.encoder} than the one here: their "
                    "headers differ, and the output could not be decoded"
                )
            queues = [_carried_packets(carrier, shift) for carrier in carriers]
            in_band = header_in_band(settings.container, video, survey.extradata)
            queues.append(_video_packets(parts, index, timeline, shift, video, in_band, on_progress))
            for _, packet, carrier in heapq.merge(*queues, key=itemgetter(0)):
                _mux(muxer, packet, carrier)
        _sync(output)
        output_bytes = output.stat().st_size
    except BaseException as error:
        with suppress(OSError):
            output.unlink(missing_ok=True)
        if isinstance(error, (av.error.FFmpegError, OSError)):
            raise _unwritable(output, settings.container, error) from error
        raise
    on_progress(1.0)
    return StitchFacts(
        frames=len(timeline.pts),
        output_bytes=output_bytes,
        shift_seconds=shift.as_integer_ratio(),
        lost_pts=survey.lost_pts,
        part_packets=survey.part_packets,
        streams=_stream_words(plan, carriers),
        carried=tuple(carrier.choice.kind for carrier in carriers if carrier.first_seconds is not None),
        warnings=(*_warnings(index, settings, survey, shift), *_damaged(carriers)),
    )


def _as_decoders_expect(timeline: Timeline, settings: JobSettings) -> Timeline:
    """MPEG-1 and MPEG-2 streams say that pictures may come out of order, be it that none does; a reader takes
    times without any delay for wrong ones then, and loses the first picture (measured, in ts)."""
    codec = av.Codec(settings.video.encoder, "w").canonical_name
    return timeline._replace(delay=max(timeline.delay, 1)) if codec in _REORDERING_CODECS else timeline


def _read_source(index: SourceIndex, settings: JobSettings) -> _Source:
    if index.images:
        duration = _cut_duration(index) or 1
        return _Source({}, [], {}, int(Disposition.default), duration)
    with open_source(Path(index.path)) as source:
        stream = source.streams[index.stream]
        return _Source(
            tags=_with_timecode(copy_tags(source.metadata), index, settings),
            chapters=source.chapters(),
            video_tags=_with_timecode(copy_tags(stream.metadata), index, settings),
            video_disposition=int(stream.disposition),
            last_duration=_cut_duration(index) or _last_duration(index, stream),
        )


def _with_timecode(tags: dict[str, str], index: SourceIndex, settings: JobSettings) -> dict[str, str]:
    """Tags whose timecode is that of the first frame that is taken; without it where that can't be told."""
    label = _first_label(index, settings)
    told = {name: label if name.lower() == "timecode" else value for name, value in tags.items()}
    return {name: value for name, value in told.items() if value}


def _first_label(index: SourceIndex, settings: JobSettings) -> str:
    rate = index.frame_rate and Fraction(*index.frame_rate)
    all_frames = rate and rate * settings.trim.every
    if rate and all_frames and is_label_of(index.timecode, all_frames):
        tick = Fraction(*index.time_base)
        labels = labels_for(index.pts, index.first_shown, tick, all_frames, None, index.timecode)
        if isinstance(labels, Timecode):
            return retimed(labels.label(index.pts[0]), all_frames, rate)
    return index.timecode if index.pts[0] == index.first_shown else ""


def _cut_duration(index: SourceIndex) -> int | None:
    """How long the last frame lasts where the end of what is taken is known."""
    if index.cut is None or index.cut[1] is None:
        return None
    rest = index.cut[1] - index.pts[-1]
    return rest if rest > 0 else None  # filters may have moved frames beyond it


def _last_duration(index: SourceIndex, stream: Stream) -> int:
    """Of the last frame, in ticks: until the stream's end if the container's word for that is plausible, else
    as long as the frame before."""
    gaps = [after - before for before, after in zip(index.pts[:-1], index.pts[1:], strict=True)]
    if stream.duration and index.own_times:
        rest = (stream.start_time or 0) + stream.duration - index.pts[-1]
        if gaps and abs(rest - gaps[-1]) * Fraction(*index.time_base) < _ROUNDING_SECONDS:
            return gaps[-1]
        if 0 < rest <= 2 * max(gaps, default=rest):
            return rest
    if gaps:
        return gaps[-1]
    rate = index.frame_rate or (25, 1)
    return max(1, round(1 / (Fraction(*rate) * Fraction(*index.time_base))))


def _shift(index: SourceIndex, container: str, timeline: Timeline, carriers: Sequence[Carrier]) -> Fraction:
    """Seconds to move all streams by: what the earliest one to be seen or heard lies before zero; where a
    range was cut out, so that it begins at zero; where times are more than a container can count, back."""
    tick = Fraction(*index.time_base)
    if index.cut is not None:
        return -index.cut[0] * tick
    starts = [carrier.first_seconds for carrier in carriers if carrier.first_seconds is not None]
    earliest = min([timeline.pts[0] * tick, *starts])
    if container != "mpegts" or timeline.pts[-1] * tick < TS_SECONDS_MAX:  # else its clock would run over
        earliest = min(Fraction(0), earliest)
    unit = Fraction(1, 1000) if container in MILLISECOND_CONTAINERS else tick
    return math.ceil(-earliest / unit) * unit


def _moved(chapter: Chapter, shift: Fraction) -> Chapter:
    ticks = round(shift / (chapter["time_base"] or Fraction(1)))
    return {**chapter, "start": chapter["start"] + ticks, "end": chapter["end"] + ticks}


def _video_packets(
    parts: Sequence[Path],
    index: SourceIndex,
    timeline: Timeline,
    shift: Fraction,
    stream: VideoStream,
    in_band: bytes,
    on_progress: Callable[[float], None],
) -> Iterator[_Timed]:
    time_base = Fraction(*index.time_base)
    seconds_per_tick = float(time_base)
    ticks = round(shift / time_base)
    number = 0
    for part, path in enumerate(parts):
        for found in read_packets(part, path):
            packet: av.Packet[Stream] = av.Packet(in_band + found.data if found.key else found.data)
            packet.stream = stream
            packet.time_base = time_base
            packet.pts = found.pts + ticks
            packet.dts = timeline.dts(number) + ticks
            packet.duration = timeline.duration(found.pts)
            packet.is_keyframe = found.key
            yield packet.dts * seconds_per_tick, packet, None
            number += 1
            if number % _PROGRESS_PACKETS == 0:
                on_progress(_SURVEY_SHARE + (1 - _SURVEY_SHARE) * number / len(timeline.pts))


def _carried_packets(carrier: Carrier, shift: Fraction) -> Iterator[_Timed]:
    for packet in carrier.packets(shift):
        yield (packet.dts or 0) * float(packet.time_base), packet, carrier


def _mux(muxer: OutputContainer, packet: av.Packet[Stream], carrier: Carrier | None) -> None:
    try:
        muxer.mux(packet)
    except av.error.InvalidDataError:
        # Muxers take some sound out of its packing (AAC of a transport stream), and find damage there.
        if carrier is None:
            raise
        carrier.damaged += 1


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _unwritable(output: Path, container: str, error: Exception) -> OutputError:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(
            f"{output} can't be written, the disk is full: free some space and resume; the rendered parts "
            "are kept"
        )
    if isinstance(error, OSError):
        return OutputError(f"{output} can't be written: {reason}")
    return OutputError(f"{container_name(container)} can't hold these streams: {reason}")


def _stream_words(plan: StreamPlan, carriers: Sequence[Carrier]) -> tuple[str, ...]:
    carried = {carrier.choice.index: carrier.words for carrier in carriers}
    return tuple(
        choice.words
        if choice.action == "skip"
        else carried.get(choice.index, f"{choice.kind} #{choice.index}: left out (it is empty)")
        for choice in plan.choices
    )


def _damaged(carriers: Sequence[Carrier]) -> Iterator[str]:
    for carrier in carriers:
        if carrier.damaged:
            what = "1 packet" if carrier.damaged == 1 else f"{carrier.damaged} packets"
            kind, index, codec = carrier.choice.kind, carrier.choice.index, carrier.choice.codec
            yield f"{what} of {kind} #{index} ({codec}) can't be read: damaged, and left out"


def _warnings(index: SourceIndex, settings: JobSettings, survey: Survey, shift: Fraction) -> tuple[str, ...]:
    warnings = []
    warnings += damage_words(index, survey)
    if survey.resized_pts:
        warnings.append(f"{size_words(index, survey.resized_pts)}; they were scaled to it")
    if survey.reformatted_pts:
        warnings.append(format_words(index, survey.reformatted_pts))
    if shift > 0 and index.cut is None:
        warnings.append(
            f"all times are {float(shift):.3f} s later than in the input, where some lie before zero"
        )
    if shift < 0 and index.cut is None:
        warnings.append(
            f"all times are {float(-shift):.3f} s earlier than in the input: ts counts to 26.5 hours"
        )
    return tuple(warnings)
