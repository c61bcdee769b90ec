"""The source index: which frames a file really has, and where it can be entered.

Rules of this file:
- a packet scan without decoding tells the frames: the packets that aren't marked to be discarded, by pts;
  a header's frame count is never believed;
- the first pictures are decoded, past everything odd at the head, and must be those the scan expects;
- where the scan can't be trusted (missing, repeated or unordered times, some containers) the whole file is
  decoded once: its pictures are the frames, and the job reads linearly;
- a file that can't be used is refused in one sentence, fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import av
from av.container import InputContainer
from av.format import Flags
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

from farm.errors import InputError
from farm.media.ending import lacks_its_index, missing_end
from farm.media.hdr import content_light, display_matrix, mastering_display
from farm.media.read import INTRA, RECOVERING_CODECS, VideoPacket, decode, open_video, real_packets
from farm.media.times import measured_rate, nominal_rate, rational, usable_times
from farm.source import Damage, PacketEntry, SourceIndex, StreamInfo, fingerprint

#: Containers whose times or seeking are no use: AVI gives H.264 and HEVC the dts as pts; the rest can't seek.
_NO_PTS_IN_AVI = ("h264", "hevc")
_LINEAR_CONTAINERS = ("gif", "apng")
#: Pictures to decode at the head, beyond anything odd there, before the scan is believed.
_HEAD_PICTURES = 16
#: Packets after the first keyframe without a single picture, after which nothing is expected to decode.
_HOPELESS_PACKETS = 250
_TEXT_BYTES = 4096
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NOT_VIDEO = Disposition.attached_pic | Disposition.timed_thumbnails
_NO_TIMESTAMPS = cast(int, Flags.no_timestamps.value)
_FRAME_RATE_GUESS = Fraction(25)
_UNSPECIFIED = 2
_RGB = 0


class _Scan(NamedTuple):
    """What the packets of the stream say."""

    packets: tuple[PacketEntry, ...]
    corrupt: tuple[int | None, ...]  #: the times of packets that the demuxer itself calls damaged
    end: int | None  #: when the last picture's time is over, in the stream's time base
    cut_short: str  #: why demuxing ended before the end of the file; empty if it didn't

    @property
    def first_key(self) -> int | None:
        return next((number for number, packet in enumerate(self.packets) if packet.key), None)

    @property
    def head(self) -> int:
        """Packets up to the last odd one: before the first keyframe, or hidden by an edit list."""
        hidden = (number for number in range(len(self.packets) - 1, -1, -1) if self.packets[number].discard)
        return max(self.first_key or 0, next(hidden, 0))

    def walk(self) -> list[int | None]:
        """The times of the frames, in display order, if the packets can be believed."""
        shown = [packet.pts for packet in self.packets[self.first_key or 0 :] if not packet.discard]
        return sorted(shown, key=lambda pts: (pts is not None, pts))


class _Trial(NamedTuple):
    """What decoding from the start gave."""

    first: av.VideoFrame
    pts: list[int | None]
    predicted: set[int | None]  #: the times of pictures that are not intra
    ended: bool  #: the whole file was decoded
    damaged: tuple[int | None, ...]  #: the times of the packets at which there was a sign of damage


def index_source(
    path: Path, *, stream: int | None = None, on_progress: Callable[[float], None] = lambda fraction: None
) -> SourceIndex:
    """Index the video of a file. ``stream``: its index within the container, by default the first video
    stream that has frames and isn't a cover picture. ``on_progress`` hears fractions from 0 to 1, of each
    pass over the file.

    Raises InputError, with one sentence, for anything that can't be rendered.
    """
    _refuse_non_media(path)
    try:
        with av.open(f"file:{path.absolute()}", "r", metadata_errors="replace") as container:
            candidates = _candidates(container, path, stream)
            others = {number: _others(container, number) for number in candidates}
    except av.error.FFmpegError as error:
        if lacks_its_index(path):
            words = "has no index (moov): its recording was cut off, or isn't over"
            raise InputError(f"{path} {words}") from error
        raise InputError(f"{path} can't be opened as a video: {_reason(error)}") from error
    for number in candidates:
        try:
            scan = _scan(path, number, on_progress)
        except av.error.FFmpegError as error:
            raise InputError(f"{path} can't be read: {_reason(error)}") from error
        if scan.packets:
            return _index(path, number, scan, others[number], on_progress)
    raise InputError(f"{path} has a video stream but not a single frame in it")


def _refuse_non_media(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name the video file in it")
        with path.open("rb") as file:
            head = file.read(_TEXT_BYTES)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}") from error
    if not head:
        raise InputError(f"{path} is empty (0 bytes)")
    if head.startswith(_LFS_POINTER):
        raise InputError(f"{path} is a Git LFS pointer, not the video itself; run 'git lfs pull' to fetch it")
    if _is_text(head):
        raise InputError(f"{path} is text, not a video")


def _is_text(head: bytes) -> bool:
    """Text must not reach the demuxers: playlists in it could make them open other files."""
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not just a character cut in two
            return False
        text = head[: error.start].decode()
    return all(character.isprintable() or character in "\t\n\r\f\ufeff" for character in text)


def _candidates(container: InputContainer, path: Path, stream: int | None) -> list[int]:
    videos = [video for video in container.streams.video if not video.disposition & _NOT_VIDEO]
    found = [video.index for video in videos if video.codec_context is not None]
    if videos and not found:
        raise InputError(f"{path} has video in a format that this build can't decode, or is damaged")
    if stream is None:
        if found:
            return found
        what = "only a cover picture" if container.streams.video else "no video stream"
        raise InputError(f"{path} has {what}, so there is nothing to render")
    if stream not in found:
        listed = ", ".join(map(str, found)) or "none"
        raise InputError(f"{path} has no video in stream {stream}; its video streams: {listed}")
    return [stream]


def _others(container: InputContainer, number: int) -> tuple[StreamInfo, ...]:
    return tuple(_describe(stream) for stream in container.streams if stream.index != number)


def _describe(stream: Stream) -> StreamInfo:
    context = stream.codec_context
    return StreamInfo(
        index=stream.index,
        kind=stream.type or "data",
        codec=context.codec.canonical_name if context is not None else "",
        language=stream.metadata.get("language", ""),
        title=stream.metadata.get("title", ""),
    )


def _scan(path: Path, number: int, on_progress: Callable[[float], None]) -> _Scan:
    read_bytes, whole_bytes = 0, max(path.stat().st_size, 1)
    container, video = open_video(str(path.absolute()), number)
    entries: list[PacketEntry] = []
    corrupt: list[int | None] = []
    end: int | None = None
    cut_short = ""
    with container:
        try:
            for packet in real_packets(container, video):
                entries.append(_entry(packet))
                read_bytes = max(read_bytes, packet.pos or 0)
                on_progress(min(read_bytes / whole_bytes, 1.0))
                corrupt += [packet.pts] if packet.is_corrupt else []
                if packet.pts is not None:
                    over = packet.pts + (packet.duration or 0)
                    end = over if end is None else max(end, over)
        except av.error.FFmpegError as error:
            cut_short = _reason(error)
    return _Scan(tuple(entries), tuple(corrupt), end, cut_short)


def _entry(packet: VideoPacket) -> PacketEntry:
    return PacketEntry(
        pts=packet.pts,
        dts=packet.dts,
        size=packet.size,
        pos=packet.pos,
        key=packet.is_keyframe,
        discard=packet.is_discard,
    )


def _index(
    path: Path,
    number: int,
    scan: _Scan,
    others: tuple[StreamInfo, ...],
    on_progress: Callable[[float], None],
) -> SourceIndex:
    container, video = open_video(str(path.absolute()), number)
    with container:
        reason = _linear_reason(container, video, scan)
        trial = _try(path, container, video, scan, on_progress, everything=bool(reason))
        reason = reason or _contradiction(video, scan, trial)
        if reason and not trial.ended:
            container.close()
            container, video = open_video(str(path.absolute()), number)
            trial = _try(path, container, video, scan, on_progress, everything=True)
        return _assemble(path, container, video, scan, trial, reason, others)


def _linear_reason(container: InputContainer, video: VideoStream, scan: _Scan) -> str:
    """Why packets and seeking can't be trusted, in words; empty if nothing speaks against them."""
    name = container.format.name
    codec = video.codec_context.codec.canonical_name
    if name in _LINEAR_CONTAINERS or name.endswith("_pipe"):
        return f"{name} can't be entered in the middle"
    if container.format.flags & _NO_TIMESTAMPS:
        return "a raw stream carries no times"
    if name == "avi" and codec in _NO_PTS_IN_AVI:
        return f"AVI keeps no display times for {codec}"
    if scan.first_key is None:
        return "no packet is marked as a keyframe"
    pts = [packet.pts for packet in scan.packets]
    dts = [packet.dts for packet in scan.packets if packet.dts is not None]
    if None in pts:
        return "some packets have no display time"
    if len(set(pts)) < len(pts):
        return "some packets share a display time"
    if any(earlier >= later for earlier, later in pairwise(dts)):
        return "decoding times run backwards"
    if any(p.pts < p.dts for p in scan.packets if p.pts is not None and p.dts is not None):
        return "some packets are to be shown before they are decoded"
    return ""


def _try(
    path: Path,
    container: InputContainer,
    video: VideoStream,
    scan: _Scan,
    on_progress: Callable[[float], None],
    *,
    everything: bool,
) -> _Trial:
    """Decode from the start: past the odd head and some pictures more, or to the end."""
    pts: list[int | None] = []
    predicted: set[int | None] = set()
    first: av.VideoFrame | None = None
    fed = 0
    at: int | None = None
    damaged: list[int | None] = []

    def packets() -> Iterator[VideoPacket]:
        nonlocal fed, at
        hopeless = (scan.first_key or 0) + _HOPELESS_PACKETS
        with suppress(av.error.FFmpegError):  # the scan saw that, too, and says so
            for packet in real_packets(container, video):
                if not pts and fed > hopeless:
                    return
                fed += 1
                at = packet.pts
                yield packet

    def note_damage() -> None:
        damaged.append(at)

    ended = True
    for frame in decode(video, packets(), note_damage):
        first = first or frame
        pts.append(frame.pts)
        on_progress(min(fed / len(scan.packets), 1.0))
        if frame.pict_type not in INTRA:
            predicted.add(frame.pts)
        if not everything and len(pts) >= _HEAD_PICTURES and fed > scan.head:
            ended = False
            break
    if first is None:
        codec = video.codec_context.codec.canonical_name
        raise InputError(f"{path}: none of its {codec} video can be decoded; it is damaged or encrypted")
    return _Trial(first, pts, predicted, ended, tuple(damaged))


def _contradiction(video: VideoStream, scan: _Scan, trial: _Trial) -> str:
    """What decoding disproved of the packets' promises, in words; empty if they hold."""
    walk = scan.walk()
    if trial.pts != (walk if trial.ended else walk[: len(trial.pts)]):
        return "the pictures that decode are not those the packets promise"
    codec = video.codec_context.codec.canonical_name
    if codec not in RECOVERING_CODECS and any(p.key and p.pts in trial.predicted for p in scan.packets):
        return "some packets are marked as keyframes and are none"
    return ""


def _assemble(
    path: Path,
    container: InputContainer,
    video: VideoStream,
    scan: _Scan,
    trial: _Trial,
    reason: str,
    others: tuple[StreamInfo, ...],
) -> SourceIndex:
    warnings = []
    if video.metadata.get("alpha_mode") == "1" and not _has_alpha(trial.first):
        warnings.append(
            "its transparency is a stream of its own, which this build doesn't decode: it is lost"
        )
    if reason:
        warnings.append(f"every worker reads from the start of the file: {reason}")
    time_base = video.time_base or Fraction(1, 1000)
    nominal = nominal_rate(video)
    decided = trial.pts if reason else scan.walk()
    raw = bool(container.format.flags & _NO_TIMESTAMPS)
    pts, note = usable_times(decided, (nominal or _FRAME_RATE_GUESS) * time_base, raw=raw)
    warnings += [note] if note else []
    times = set() if note else set(pts)
    shown_keys = (p.pts for p in scan.packets[scan.first_key or 0 :] if p.key and not p.discard)
    key_times = {key for key in shown_keys if key in times}
    frame, context = trial.first, video.codec_context
    aspect = video.sample_aspect_ratio or context.sample_aspect_ratio
    return SourceIndex(
        path=str(path.absolute()),
        fingerprint=fingerprint(path),
        container=container.format.name,
        stream=video.index,
        codec=context.codec.canonical_name,
        width=frame.width,
        height=frame.height,
        pix_fmt=frame.format.name,
        time_base=rational(time_base),
        frame_rate=measured_rate(nominal, pts, time_base),
        sample_aspect_ratio=rational(aspect) if aspect else None,
        pts=pts,
        keys=tuple(number for number, time in enumerate(pts) if time in key_times),
        packets=scan.packets,
        linear=bool(reason),
        linear_reason=reason,
        others=others,
        damage=tuple(_damage(path, container, video, scan, trial, pts if times else ())),
        warnings=tuple(warnings),
        color_range=frame.color_range or context.color_range,
        color_primaries=_known(frame.color_primaries, context.color_primaries),
        color_trc=_known(frame.color_trc, context.color_trc),
        colorspace=_RGB if frame.format.is_rgb else _known(frame.colorspace, context.colorspace),
        mastering_display=mastering_display(frame),
        content_light=content_light(frame),
        display_matrix=display_matrix(frame),
        timecode=_timecode(container, video),
        field_order=context.field_order if frame.interlaced_frame else 0,
    )


def _timecode(container: InputContainer, video: VideoStream) -> str:
    """The label of the first frame, where the container has one: on the video, itself, or its time track."""
    for tags in (video.metadata, container.metadata, *(stream.metadata for stream in container.streams)):
        for name, value in tags.items():
            if name.lower() == "timecode":
                return value.strip()
    return ""


def _damage(
    path: Path,
    container: InputContainer,
    video: VideoStream,
    scan: _Scan,
    trial: _Trial,
    pts: Sequence[int],
) -> list[Damage]:
    """``pts``: of the frames; empty where they aren't the packets' times."""
    damage = []
    if scan.first_key:
        words = f"it begins with {scan.first_key} packets before the first keyframe: not decodable"
        damage.append(Damage(words, tuple(pts[:1])))
    if scan.corrupt:
        count = len(scan.corrupt)
        words = f"{count} of its packets {'is' if count == 1 else 'are'} damaged"
        damage.append(Damage(words, _places(scan.corrupt, pts)))
    elif trial.damaged:
        words = "some of its pictures are damaged or can't be decoded"
        damage.append(Damage(words, _places(trial.damaged, pts)))
    ending = _ending(path, container, video, scan)
    return [*damage, Damage(ending, at_end=True)] if ending else damage


def _ending(path: Path, container: InputContainer, video: VideoStream, scan: _Scan) -> str:
    if scan.cut_short:
        return f"it can be read up to a point only: {scan.cut_short}"
    return missing_end(path, container, video, len(scan.packets), scan.end)


def _places(times: Sequence[int | None], pts: Sequence[int]) -> tuple[int, ...]:
    known = tuple(time for time in times if time is not None)
    return known if pts and len(known) == len(times) else ()


def _has_alpha(frame: av.VideoFrame) -> bool:
    return any(part.is_alpha for part in frame.format.components)


def _known(*code_points: int) -> int:
    """The first that says something: 2 is *unspecified*, 0 is reserved but for the matrix of RGB."""
    return next((point for point in code_points if point not in (0, _UNSPECIFIED)), _UNSPECIFIED)


def _reason(error: av.error.FFmpegError) -> str:
    return str(error.strerror or error)
