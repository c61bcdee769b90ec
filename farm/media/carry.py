"""Streams of the input on their way to the output beside the rendered video: copied, encoded once as a
whole, converted or attached, as farm.media.streams planned.

Rules of this file:
- each stream is read by a demuxer of its own, so that memory stays bounded however the input is interleaved;
- times stay those of the input, but for the shift that the stitch gives all streams alike;
- a stream is first heard when it was in the input. Encoders begin with samples that are not to be heard
  (priming), and edit lists hide more; where the output can't hide them, they are left out;
- damage in a carried stream costs what is damaged and is counted, never the job.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import chain, dropwhile
from pathlib import Path
from typing import TypeAlias

import av
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.stream import AttachmentStream, Discard, Disposition, Stream
from av.subtitles.codeccontext import SubtitleCodecContext

from farm.errors import InputError
from farm.media.muxer import EDITED_CONTAINERS
from farm.media.range import Window, within
from farm.media.sound import add_sound, encode_sound
from farm.media.streams import (
    CLOCK_SLIPS_SECONDS,
    MILLISECOND_CONTAINERS,
    StreamChoice,
    StreamPlan,
    open_source,
)

#: What is heard sooner than this counts as heard from zero on (shifts are rounded up to a tick).
_EARLY_SECONDS = Fraction(1, 1000)
#: How much of what an edit list hides is worth keeping, for the decoder to be warm when it matters.
_WARM_UP_PACKETS = 4
#: Tags that describe how the input was written, and would be untrue of the output.
_STALE_TAG = re.compile(
    r"(major_brand|minor_version|compatible_brands|encoder|vendor_id|duration|bps|number_of_.*|_statistics.*)"
    r"(-.*)?",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"</?(?:[biusc]|font|span)\b[^>]*>|\{\\[^}]*\}", re.IGNORECASE)
_MOV_TEXT_BYTES_MAX = 0xFFFF
#: QuickTime knows some languages by the older of their two ISO 639-2 codes only.
_QUICKTIME_LANGUAGES = {
    **{"deu": "ger", "ell": "gre", "fas": "per", "fra": "fre", "isl": "ice"},
    **{"nld": "dut", "ron": "rum", "sqi": "alb", "zho": "chi"},
}
#: White, at the bottom, as FFmpeg styles lines that have no style.
_STYLE = b"""[Script Info]
ScriptType: v4.00+
[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, \
Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, \
MarginR, MarginV, Encoding
Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,0
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""
_Packets: TypeAlias = "Iterator[av.Packet[Stream]]"


class Carrier:
    """One stream on its way."""

    def __init__(self, choice: StreamChoice, target: Stream, source: _Packets | None = None) -> None:
        self.choice = choice
        self.target = target
        self.damaged = 0  #: packets that could not be read or decoded
        #: When the input has its first sample heard or line shown; None: a stream without times (a cover), or
        #: without anything in it.
        self.heard_seconds: Fraction | None = None
        #: The earliest time in the input that the output will make something of.
        self.first_seconds: Fraction | None = None
        #: What is heard or shown sooner is to be hidden or left out: where the range begins that is taken.
        self.begins_seconds: Fraction | None = None
        self._hiding = False  # the output can say of any first samples that they are not to be heard
        self._edit_list = False  # the output hides what comes before zero
        self._source = iter(()) if source is None else source

    @property
    def words(self) -> str:
        return f"{self.choice.words}; {self.damaged} damaged packets" if self.damaged else self.choice.words

    def packets(self, shift: Fraction) -> _Packets:
        """All that goes into the output, once, in the output's stream, ``shift`` seconds later than in the
        input, with dts that rise strictly."""
        if self.heard_seconds is None:
            return _timeless(self._source, self.target)
        by_edit_list = self._edit_list and self.heard_seconds + shift < _EARLY_SECONDS
        hidden = self._hiding or by_edit_list
        kept = self._source if hidden else _from(self._source, self.heard_seconds)
        begins = self.begins_seconds
        if begins is not None and not self._edit_list:  # nothing may come before zero, and all would be moved
            kept = dropwhile(lambda packet: _start(packet) < begins, kept)
        return _moved(kept, shift, self.target)

    def hides_priming(self, source: InputContainer, output: OutputContainer) -> None:
        """Find out how the output can hide samples. mp4 and mov do it by an edit list, from zero back; for
        Matroska FFmpeg writes a field, if the encoder or a Matroska input told it how much; ts can't."""
        self._edit_list = output.format.name in EDITED_CONTAINERS
        has_field = output.format.name in MILLISECOND_CONTAINERS
        encoded = self.choice.action == "encode"
        told = encoded or self.choice.codec == "opus" or "matroska" in source.format.name
        cut = self.begins_seconds is not None  # what is told is for the input's own beginning
        self._hiding = told and has_field and not cut

    def look_ahead(self, packets: _Packets, stream: Stream) -> None:
        """Take ``packets`` as what is carried; read as many as it takes to know what is heard first."""
        lead: deque[av.Packet[Stream]] = deque()
        heard: Fraction | None = None
        shown = False
        for packet in packets:
            if packet.is_discard and len(lead) >= _WARM_UP_PACKETS:
                lead.popleft()
            lead.append(packet)
            if heard is None or not (shown or packet.is_discard):
                start = _start(packet) + _skipped(packet, stream)
                start = start if self.begins_seconds is None else max(start, self.begins_seconds)
                heard = start if heard is None else max(start, heard)
            shown = shown or not packet.is_discard
            if shown and _middle(packet) > (heard if self.heard_seconds is None else self.heard_seconds):
                break
        if heard is None:
            return
        if self.heard_seconds is None:  # an encoder knows it better than its packets
            self.heard_seconds = heard
        if self.begins_seconds is not None:
            self.heard_seconds = max(self.heard_seconds, self.begins_seconds)
        self.first_seconds = self.heard_seconds
        if not self._hiding and not self._edit_list:
            kept = (_start(packet) for packet in lead if _middle(packet) > self.heard_seconds)
            self.first_seconds = min(kept, default=self.heard_seconds)
        self._source = _shown(chain(lead, packets), self.heard_seconds)


def open_carriers(
    plan: StreamPlan,
    path: Path,
    output: OutputContainer,
    stack: ExitStack,
    window: Window | None = None,
) -> list[Carrier]:
    """Add the planned streams to an output that isn't begun; ``stack`` closes what is opened. ``window``:
    what is taken of the input's time; None: all.

    Streams that turn out to be empty are not added. Raises InputError.
    """
    carriers = []
    for choice in plan.carried:
        source = stack.enter_context(open_source(path))
        stream = source.streams[choice.index]
        if choice.action == "attach":
            carrier = _attach(choice, source, stream, output)
        else:
            carrier = _open(choice, source, stream, output, window)
        if carrier is not None:
            carriers.append(carrier)
    return carriers


def copy_tags(metadata: dict[str, str]) -> dict[str, str]:
    """The tags of a container or stream that are still true of the output."""
    return {name: value for name, value in metadata.items() if not _STALE_TAG.fullmatch(name)}


def _open(
    choice: StreamChoice,
    source: InputContainer,
    stream: Stream,
    output: OutputContainer,
    window: Window | None,
) -> Carrier | None:
    for other in source.streams:
        if other.index != stream.index:
            other.discard = Discard.all
    carrier = Carrier(choice, stream)
    packets = _read(source, stream, carrier)
    if window is not None and choice.kind != "cover":
        packets = within(_timed(packets), window, choice.kind)
        carrier.begins_seconds = window.start
    first = next(packets, None)
    if first is None:
        return None
    packets = chain((first,), packets)
    if choice.kind == "cover":
        target = _copy_stream(stream, output)
        target.disposition = Disposition.attached_pic
        return Carrier(choice, target, packets)
    if choice.action == "encode":
        assert isinstance(stream, AudioStream)
        carrier.target = add_sound(output, choice.target, stream)
        packets = encode_sound(packets, stream, carrier.target, carrier)
    elif choice.action == "convert":
        carrier.target = _add_lines(choice.target, output)
        packets = _converted(packets, _CONVERTERS[choice.codec, choice.target])
    else:
        carrier.target = _copy_stream(stream, output)
    carrier.target.metadata.update(copy_tags(stream.metadata))
    if output.format.name == "mov" and stream.language in _QUICKTIME_LANGUAGES:
        carrier.target.metadata["language"] = _QUICKTIME_LANGUAGES[stream.language]
    carrier.target.disposition = stream.disposition
    if choice.kind == "audio":
        carrier.hides_priming(source, output)
    carrier.look_ahead(_timed(packets), stream)
    return carrier


def _copy_stream(stream: Stream, output: OutputContainer) -> Stream:
    copy: Stream = output.add_stream_from_template(stream)
    return copy


def _add_lines(codec: str, output: OutputContainer) -> Stream:
    """A stream for lines of subtitles. Apple's players want mov_text to say how it looks; so its encoder,
    which isn't needed for the lines, writes that into the header."""
    if codec != "mov_text":
        return output.add_mux_stream(codec, time_base=Fraction(1, 1000))
    target = output.add_stream(codec)
    context = target.codec_context
    assert isinstance(context, SubtitleCodecContext)
    context.subtitle_header = _STYLE
    context.time_base = Fraction(1, 1000)
    context.open()
    return target


def _attach(
    choice: StreamChoice, source: InputContainer, stream: Stream, output: OutputContainer
) -> Carrier | None:
    if isinstance(stream, AttachmentStream):
        data = stream.data
    else:
        data = next((bytes(packet) for packet in source.demux(stream) if packet.size), b"")
    return Carrier(choice, output.add_attachment(choice.target, choice.media_type, data)) if data else None


def _read(source: InputContainer, stream: Stream, carrier: Carrier) -> _Packets:
    """The stream's packets, without the empty ones a demuxer ends with; ends where the file is broken."""
    try:
        for packet in source.demux(stream):
            if packet.size:
                yield packet
    except av.error.FFmpegError:
        carrier.damaged += 1


def _timed(packets: _Packets) -> _Packets:
    """Fill in missing times."""
    for packet in packets:
        if packet.pts is None:
            packet.pts = packet.dts
        if packet.dts is None:
            packet.dts = packet.pts
        if packet.pts is not None:
            yield packet


def _start(packet: av.Packet[Stream]) -> Fraction:
    return (packet.pts or 0) * packet.time_base


def _middle(packet: av.Packet[Stream]) -> Fraction:
    return _start(packet) + max(packet.duration or 0, 1) * packet.time_base / 2


def _skipped(packet: av.Packet[Stream], stream: Stream) -> Fraction:
    """Seconds at the start of a packet that the demuxer says are not to be heard."""
    if not packet.has_sidedata("skip_samples") or not isinstance(stream, AudioStream):
        return Fraction(0)
    samples = int.from_bytes(bytes(packet.get_sidedata("skip_samples"))[:4], "little")
    return Fraction(samples, stream.sample_rate)


def _shown(packets: _Packets, heard: Fraction) -> _Packets:
    """Without what an edit list hides later on."""
    return (packet for packet in packets if not packet.is_discard or _start(packet) < heard)


def _from(packets: _Packets, heard: Fraction) -> _Packets:
    """Without the packets at the start of which the greater part lies before ``heard``."""
    return dropwhile(lambda packet: _middle(packet) <= heard, packets)


def _moved(packets: _Packets, shift: Fraction, target: Stream) -> _Packets:
    """In the output's stream, later by ``shift``; what comes too early for a muxer is pushed back."""
    ticks: int | None = None
    last: int | None = None
    for packet in packets:
        assert packet.pts is not None and packet.dts is not None
        if ticks is None:
            ticks = round(shift / packet.time_base)
        packet.dts += ticks
        if last is not None and (last - packet.dts) * packet.time_base > CLOCK_SLIPS_SECONDS:
            raise InputError(
                f"the clock of stream {packet.stream_index} of the input starts anew after "
                f"{float((last - ticks) * packet.time_base):.1f} s, so that it can't be kept in step; "
                "--audio none leaves sound out"
            )
        packet.dts = packet.dts if last is None else max(packet.dts, last + 1)
        packet.pts = max(packet.pts + ticks, packet.dts)
        packet.stream = target
        last = packet.dts
        yield packet


def _timeless(packets: _Packets, target: Stream) -> _Packets:
    for packet in packets:
        packet.pts = packet.dts = 0
        packet.stream = target
        yield packet


def _converted(packets: _Packets, convert: Callable[[bytes], bytes]) -> _Packets:
    for packet in packets:
        data = convert(bytes(packet))
        if not data:
            continue  # mov_text marks the gaps between lines with empty packets
        copy: av.Packet[Stream] = av.Packet(data)
        copy.pts, copy.dts, copy.duration = packet.pts, packet.dts, packet.duration
        copy.time_base = packet.time_base
        copy.is_keyframe = True
        yield copy


def _subrip_to_mov_text(data: bytes) -> bytes:
    """mov_text is a length of two bytes and the text; it has styles but no markup."""
    text = _MARKUP.sub("", data.rstrip(b"\0").decode("utf-8", "replace")).strip().encode()
    text = text[:_MOV_TEXT_BYTES_MAX]
    return len(text).to_bytes(2, "big") + text if text else b""


def _mov_text_to_subrip(data: bytes) -> bytes:
    text = data[2 : 2 + int.from_bytes(data[:2], "big")]
    return text.decode("utf-16").encode() if text[:2] in (b"\xfe\xff", b"\xff\xfe") else text


_CONVERTERS: dict[tuple[str, str], Callable[[bytes], bytes]] = {
    ("subrip", "mov_text"): _subrip_to_mov_text,
    ("mov_text", "subrip"): _mov_text_to_subrip,
}
