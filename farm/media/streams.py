"""What becomes of every stream beside the video that is rendered: copied, encoded, converted, attached or
left out, each with its reason in words. Decided once for the whole job, before any work.

Rules of this file:
- sound is never touched per part: it is copied whole where the container takes it, else encoded once;
- nothing is left out in silence: a choice that isn't a plain copy says why;
- whatever can be told from the input alone is refused here, not at the stitch.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Literal

import av
import msgspec
from av.audio.stream import AudioStream
from av.stream import Disposition, Stream

from farm.errors import InputError, UsageError
from farm.media.range import window_of
from farm.media.sound import decodes
from farm.settings import IMAGES, Audio
from farm.source import SourceIndex

Action = Literal["copy", "encode", "convert", "attach", "skip"]

#: Muxers whose clock ticks in milliseconds (measured: frames closer than that fall together).
MILLISECOND_CONTAINERS = frozenset({"matroska", "webm"})
#: Seconds a tick, of muxers with a clock of their own.
_CLOCKS = dict.fromkeys(MILLISECOND_CONTAINERS, Fraction(1, 1000)) | {"mpegts": Fraction(1, 90_000)}
#: A transport stream counts its ticks in 33 bits; its muxer begins at up to two seconds.
TS_SECONDS_MAX = (1 << 33) * _CLOCKS["mpegts"] - 2
_CLOCK_WORDS = dict.fromkeys(MILLISECOND_CONTAINERS, "a millisecond") | {"mpegts": "1/90000 s"}
_NAMES = {"matroska": "mkv", "mpegts": "ts"}
_PCM = frozenset(f"pcm_{kind}" for kind in ("u8", "s8", "s16le", "s16be", "s24le", "s24be", "s32le", "s32be"))
_PCM_FLOAT = frozenset({"pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be"})
#: Only what players of the format can be expected to play; PCM in mp4 is legal and hardly anywhere heard.
_AUDIO_COPIED = {
    "mp4": frozenset({"aac", "ac3", "eac3", "alac", "dts", "flac", "mp2", "mp3", "opus"}),
    "mov": frozenset({"aac", "ac3", "eac3", "alac", "mp3", "pcm_mulaw", "pcm_alaw"}) | _PCM | _PCM_FLOAT,
    "matroska": frozenset({"aac", "ac3", "eac3", "alac", "dts", "flac", "mp2", "mp3", "opus", "vorbis"})
    | frozenset({"truehd", "mlp", "tta", "wavpack", "pcm_f32le", "pcm_f64le"})
    | (_PCM - {"pcm_s8"}),
    "webm": frozenset({"opus", "vorbis"}),
    "mpegts": frozenset({"aac", "ac3", "eac3", "dts", "mp2", "mp3", "opus"}),
}
_AUDIO_ENCODER = {
    "mp4": "aac",
    "mov": "aac",
    "matroska": "libopus",
    "webm": "libopus",
    "mpegts": "aac",
}
#: What ``--audio`` calls them, with the encoder.
_AUDIO_ENCODERS = {"aac": "aac", "opus": "libopus", "flac": "flac"}
_SUBTITLES_COPIED = {
    "mp4": frozenset({"mov_text"}),
    "mov": frozenset({"mov_text"}),
    "matroska": frozenset({"subrip", "ass", "ssa", "text", "webvtt"})
    | frozenset({"hdmv_pgs_subtitle", "dvb_subtitle", "dvd_subtitle"}),
    "webm": frozenset({"webvtt"}),
    "mpegts": frozenset({"dvb_subtitle", "dvb_teletext"}),
}
_SUBTITLES_CONVERTED = {
    ("subrip", "mp4"): "mov_text",
    ("subrip", "mov"): "mov_text",
    ("mov_text", "matroska"): "subrip",
}
#: Kinds of streams that a viewer would miss, and the reason of those that nobody will.
_MISSED = frozenset({"audio", "subtitle", "cover", "attachment"})
_IN_STEP = frozenset({"audio", "subtitle"})
#: Clocks that run backwards by less are careless, those that do by more start anew.
CLOCK_SLIPS_SECONDS = Fraction(1)
_NOT_ASKED = "no audio was asked for"
_COVER_COPIED = {"mp4": frozenset({"mjpeg", "png", "bmp"})}
_COVER_TYPES = {"mjpeg": ("cover.jpg", "image/jpeg"), "png": ("cover.png", "image/png")}


class StreamChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one stream of the input."""

    index: int  #: within the input
    kind: str  #: audio, subtitle, cover, video, data, attachment, unknown
    codec: str
    action: Action
    target: str = ""  #: the encoder, codec or file name it becomes, for encode, convert and attach
    media_type: str = ""  #: of an attachment
    reason: str = ""  #: why it isn't simply copied
    language: str = ""
    name: str = ""  #: of an attachment's file

    @property
    def words(self) -> str:
        """One line for people: ``audio #1 (aac, eng): copied``."""
        what = {"copy": "copied", "skip": "left out", "attach": "attached"}.get(
            self.action, f"{self.action}{'d' if self.action.endswith('e') else 'ed'} to {self.target}"
        )
        named = self.codec or (self.name if self.kind == "attachment" else "")
        details = ", ".join(part for part in (named, self.language) if part)
        reason = f" ({self.reason})" if self.reason else ""
        about = f" ({details})" if details else ""
        return f"{self.kind} #{self.index}{about}: {what}{reason}"


class StreamPlan(msgspec.Struct, frozen=True, kw_only=True):
    container: str  #: the muxer's name
    choices: tuple[StreamChoice, ...]  #: in the input's order, without the video that is rendered
    notes: tuple[str, ...] = ()  #: what else is left out, a sentence each

    @property
    def carried(self) -> tuple[StreamChoice, ...]:
        """Those that end up in the output."""
        return tuple(choice for choice in self.choices if choice.action != "skip")

    @property
    def lost(self) -> tuple[StreamChoice, ...]:
        """Those a viewer would miss, left out though nobody asked for that."""
        return tuple(
            choice
            for choice in self.choices
            if choice.action == "skip" and choice.kind in _MISSED and choice.reason != _NOT_ASKED
        )


def plan_streams(path: Path, index: SourceIndex, container: str, audio: Audio = "auto") -> StreamPlan:
    """Decide on every stream of ``path`` but ``index.stream``; ``container`` is the muxer's name.

    Raises InputError if the file can't be opened or its clock starts anew, UsageError if the container can't
    hold the video's times or the sound as it was asked for.
    """
    check_timing(index, container)
    if index.images:
        return StreamPlan(container=container, choices=())
    with open_source(path) as source:
        choices = tuple(
            _choose(stream, container, audio) for stream in source.streams if stream.index != index.stream
        )
        notes = _notes(source, container)
    choices = tuple(_heard(choice, path, index) for choice in choices)
    plan = StreamPlan(container=container, choices=choices, notes=notes)
    if any(choice.kind in _IN_STEP for choice in plan.carried):
        check_clock(index if index.filtered is None else index.filtered.source)
    return plan


def _notes(source: av.container.InputContainer, container: str) -> tuple[str, ...]:
    """A transport stream says of its streams what language they have, and no more."""
    if container != "mpegts":
        return ()
    holders = "ts can't hold them, but .mp4, .mov and .mkv can"
    titled = any("title" in each.metadata for each in (source, *source.streams))
    notes = [f"{len(source.chapters())} chapters: left out ({holders})"] if source.chapters() else []
    notes += [f"titles: left out ({holders})"] if titled else []
    return tuple(notes)


def _heard(choice: StreamChoice, path: Path, index: SourceIndex) -> StreamChoice:
    """The choice, or that sound of which nothing decodes is left out: a container may refuse it when the
    work is done, and nobody could hear it."""
    if choice.kind != "audio" or choice.action == "skip":
        return choice
    with open_source(path) as source:
        stream = source.streams[choice.index]
        if not isinstance(stream, AudioStream) or stream.codec_context is None:
            return choice
        if decodes(source, stream, window_of(index)):
            return choice
    return _with(choice, reason="none of it can be decoded: it is damaged or encrypted")


def check_clock(index: SourceIndex) -> None:
    """Raises InputError if the times of the video start anew somewhere: pictures can be spaced evenly then,
    but nothing tells where the sound belongs."""
    latest: int | None = None
    for packet in index.packets:
        if packet.dts is None:
            continue
        if latest is not None and (latest - packet.dts) * Fraction(*index.time_base) > CLOCK_SLIPS_SECONDS:
            at = float(latest * Fraction(*index.time_base))
            raise InputError(
                f"the clock of {index.path} starts anew after {at:.1f} s, as in recordings strung together, "
                "so that its sound can't be kept in step: join them with a tool that mends times, or render "
                "the pictures alone with --audio none"
            )
        latest = packet.dts if latest is None else max(latest, packet.dts)


def check_timing(index: SourceIndex, container: str) -> None:
    """Raises UsageError if two frames would get the same time in ``container``, or the last none at all."""
    clock = _CLOCKS.get(container)
    if clock is None:
        return
    ratio = Fraction(*index.time_base) / clock
    shown = [round(pts * ratio) for pts in index.pts]
    for frame, (before, after) in enumerate(pairwise(shown)):
        if after <= before:
            raise UsageError(
                f"frames {frame} and {frame + 1} of {index.path} are less than "
                f"{_CLOCK_WORDS[container]} apart, which {container_name(container)} can't tell: write an "
                ".mp4 or .mov"
            )
    if container == "mpegts" and (shown[-1] - shown[0]) * clock > TS_SECONDS_MAX:
        raise UsageError(
            f"{index.path} is longer than the 26.5 hours that ts can count: write an .mp4 or .mkv"
        )


def open_source(path: Path) -> av.container.InputContainer:
    """The input, opened so that no path is taken for a URL and no tag's encoding stops the job.

    Raises InputError.
    """
    try:
        return av.open(f"file:{path.absolute()}", metadata_errors="replace")
    except (av.error.FFmpegError, OSError) as error:
        raise InputError(f"{path} can't be read any more: {error.strerror}") from error


def container_name(container: str) -> str:
    """The name people use for a muxer's name."""
    return _NAMES.get(container, container)


def codec_name(stream: Stream) -> str:
    """The codec's own name, whichever decoder would be used; empty if FFmpeg has none."""
    if stream.codec_context is not None:
        return stream.codec_context.codec.canonical_name
    return (stream.name or "") if stream.type == "data" else ""


def _choose(stream: Stream, container: str, audio: Audio) -> StreamChoice:
    kind = "cover" if stream.disposition & Disposition.attached_pic else stream.type
    found = StreamChoice(
        index=stream.index,
        kind=kind,
        codec=codec_name(stream),
        action="skip",
        language=(stream.language or "").removeprefix("und"),
        name=stream.metadata.get("filename", "") if kind == "attachment" else "",
    )
    if container == IMAGES:
        return _with(found, reason="images hold pictures and nothing else")
    if kind == "audio":
        return _choose_audio(found, stream, container, audio)
    if kind == "subtitle":
        return _choose_subtitle(found, container)
    if kind == "cover":
        return _choose_cover(found, container)
    if kind == "attachment":
        return _choose_attachment(found, stream, container)
    if kind == "video":
        return _with(found, reason="one video is rendered a job")
    return _with(found, reason=f"{kind} streams are not carried over")


def _choose_audio(found: StreamChoice, stream: Stream, container: str, audio: Audio) -> StreamChoice:
    if audio == "none":
        return _with(found, reason=_NOT_ASKED)
    if audio in _AUDIO_ENCODERS and audio not in _AUDIO_COPIED[container]:
        raise UsageError(
            f"--audio {audio}: {container_name(container)} can't hold {audio}{_holders(audio, _AUDIO_COPIED)}"
        )
    if not found.codec:
        return _with(found, reason="its codec is unknown to this build")
    holdable = found.codec in _AUDIO_COPIED[container]
    if holdable and audio in ("auto", "copy"):
        return _with(found, action="copy")
    reason = f"{container_name(container)} can't hold {found.codec}"
    holders = _holders(found.codec, _AUDIO_COPIED)
    if audio == "copy":
        raise UsageError(f"--audio copy: {reason}{holders}; --audio auto encodes what can't be copied")
    if stream.codec_context is None:
        return _with(found, reason=f"{reason}{holders}, and this build can't decode it")
    if audio == "auto":
        return _with(found, action="encode", target=_AUDIO_ENCODER[container], reason=reason)
    return _with(found, action="encode", target=_AUDIO_ENCODERS[audio], reason="asked for")


def _holders(codec: str, table: dict[str, frozenset[str]]) -> str:
    """In words, which containers could hold a codec; empty if none could."""
    holders = [f".{container_name(container)}" for container, codecs in table.items() if codec in codecs]
    return f", but {' and '.join(holders)} can" if holders else ""


def _choose_subtitle(found: StreamChoice, container: str) -> StreamChoice:
    if found.codec in _SUBTITLES_COPIED[container]:
        return _with(found, action="copy")
    reason = f"{container_name(container)} can't hold {found.codec or 'them'}"
    target = _SUBTITLES_CONVERTED.get((found.codec, container))
    if target is None:
        return _with(found, reason=reason + _holders(found.codec, _SUBTITLES_COPIED))
    return _with(found, action="convert", target=target, reason=reason)


def _choose_cover(found: StreamChoice, container: str) -> StreamChoice:
    if found.codec in _COVER_COPIED.get(container, ()):
        return _with(found, action="copy")
    if container == "matroska" and found.codec in _COVER_TYPES:
        name, media_type = _COVER_TYPES[found.codec]
        return _with(found, action="attach", target=name, media_type=media_type)
    table = {**_COVER_COPIED, "matroska": frozenset(_COVER_TYPES)}
    holders = _holders(found.codec, table)
    return _with(found, reason=f"{container_name(container)} can't hold it as a cover{holders}")


def _choose_attachment(found: StreamChoice, stream: Stream, container: str) -> StreamChoice:
    if container != "matroska":
        return _with(found, reason=f"{container_name(container)} has no attachments, but .mkv has")
    name, media_type = stream.metadata.get("filename"), stream.metadata.get("mimetype")
    if not name or not media_type:
        return _with(found, reason="it has no name or type")
    return _with(found, action="attach", target=name, media_type=media_type)


def _with(
    found: StreamChoice,
    *,
    action: Action = "skip",
    target: str = "",
    media_type: str = "",
    reason: str = "",
) -> StreamChoice:
    return msgspec.structs.replace(found, action=action, target=target, media_type=media_type, reason=reason)
