"""Sound that is encoded: decoded, brought into the encoder's shape, and encoded once for the whole job.

Never per part: every encoder begins with samples of its own (priming), and a join would be a gap of some
20 ms (measured: ten AAC pieces of a second each make 10.24 s).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import chain
from typing import Protocol, TypeAlias

import av
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.filter import Graph
from av.stream import Discard, Stream

from farm.media.range import Window

_BITS_PER_CHANNEL = 64_000
_BITS_MIN = 96_000
_OPUS_RATE = 48_000
#: How much earlier than a range a decoder begins, to find out whether anything of that decodes.
_RUN_UP_SECONDS = 1
#: By the number of channels; both encoders take these and not every other.
_LAYOUTS = ("mono", "stereo", "3.0", "quad", "5.0", "5.1", "6.1", "7.1")
#: What sound and its times may differ by: half a frame at 25 a second. FFmpeg's own 100 ms leave sound early
#: by as much after a short gap; less would cut into the sound of recorders whose times tremble.
_SLIP_SECONDS = 0.02
_SAMPLE_FORMATS = {"libopus": "flt", "aac": "fltp"}
_Packets: TypeAlias = "Iterator[av.Packet[Stream]]"


class Listener(Protocol):
    """Told what happens on the way."""

    damaged: int  #: packets that could not be decoded
    heard_seconds: Fraction | None  #: time of the first sound


def decodes(source: InputContainer, stream: AudioStream, window: Window | None) -> bool:
    """Whether anything decodes of what ``stream`` has in ``window`` (None: all of the input); of nothing,
    too. ``source`` is freshly opened.

    As a rule the first packet tells; only a stream of which nothing is left is read to its end.
    """
    for other in source.streams:
        if other.index != stream.index:
            other.discard = Discard.all
    begun = False
    with suppress(av.error.FFmpegError):
        if window is not None and window.start > _RUN_UP_SECONDS:
            source.seek(int((window.start - _RUN_UP_SECONDS) * av.time_base))
        for packet in source.demux(stream):
            if _is_past(packet, window):
                break
            begun = begun or packet.size > 0
            with suppress(av.error.FFmpegError):
                if packet.decode():
                    return True
    return not begun


def _is_past(packet: av.Packet[AudioStream], window: Window | None) -> bool:
    stop = None if window is None else window.stop
    return stop is not None and packet.pts is not None and packet.pts * packet.time_base >= stop


def add_sound(output: OutputContainer, encoder: str, stream: AudioStream) -> Stream:
    """Add a stream to ``output`` for ``encoder`` to encode the sound of ``stream`` into, and open it."""
    rates = av.Codec(encoder, "w").audio_rates or []
    rate = stream.sample_rate if encoder != "libopus" and stream.sample_rate in rates else _OPUS_RATE
    channels = min(max(stream.channels, 1), len(_LAYOUTS))
    target = output.add_stream(encoder, rate=rate, bit_rate=max(_BITS_MIN, channels * _BITS_PER_CHANNEL))
    context = target.codec_context
    assert isinstance(context, av.AudioCodecContext)
    context.layout = _LAYOUTS[channels - 1]
    context.format = _SAMPLE_FORMATS.get(encoder) or _flac_format(stream)
    context.time_base = Fraction(1, rate)
    context.thread_count = 1
    context.open()
    return target


def _flac_format(stream: AudioStream) -> str:
    """16 bits where the source has no more, else 24 of 32."""
    return "s16" if stream.format is not None and stream.format.bytes <= 2 else "s32"


def encode_sound(packets: _Packets, stream: AudioStream, target: Stream, listener: Listener) -> _Packets:
    """Decode, fill gaps with silence so that sound stays where it was, and encode as one piece.

    ``target`` is as ``add_sound`` made it.
    """
    encoder = target.codec_context
    assert isinstance(encoder, av.AudioCodecContext)
    graph: Graph | None = None
    shape: tuple[str, str, int] | None = None
    for frame in _decoded(packets, stream, listener):
        found = (frame.format.name, _layout(frame), frame.sample_rate)
        if graph is None or found != shape:
            yield from _drain(graph, encoder)
            graph, shape = _conform(found, stream.time_base or Fraction(1, frame.sample_rate), encoder), found
        if listener.heard_seconds is None and frame.pts is not None and frame.time_base is not None:
            listener.heard_seconds = frame.pts * frame.time_base
        graph.push(frame)
        yield from _pull(graph, encoder)
    yield from _drain(graph, encoder)
    yield from encoder.encode(None)


def _decoded(packets: _Packets, stream: AudioStream, listener: Listener) -> Iterator[AudioFrame]:
    for packet in chain(packets, (None,)):
        try:
            yield from stream.decode(packet)
        except av.error.FFmpegError:
            listener.damaged += 1


def _layout(frame: AudioFrame) -> str:
    """The layout's name; sound that says only how many channels it has gets the usual one."""
    name, channels = frame.layout.name, frame.layout.nb_channels
    return name if "channel" not in name else _LAYOUTS[min(channels, len(_LAYOUTS)) - 1]


def _conform(shape: tuple[str, str, int], time_base: Fraction, encoder: av.AudioCodecContext) -> Graph:
    sample_format, layout, rate = shape
    graph = Graph()
    graph.link_nodes(
        graph.add(
            "abuffer",
            f"sample_fmt={sample_format}:channel_layout={layout}:sample_rate={rate}:time_base={time_base}",
        ),
        graph.add("aresample", f"async=1:min_hard_comp={_SLIP_SECONDS}"),
        graph.add(
            "aformat",
            f"sample_fmts={encoder.format.name}:sample_rates={encoder.sample_rate}"
            f":channel_layouts={encoder.layout.name}",
        ),
        graph.add("abuffersink"),
    ).configure()
    return graph


def _drain(graph: Graph | None, encoder: av.AudioCodecContext) -> _Packets:
    if graph is not None:
        graph.push(None)
        yield from _pull(graph, encoder)


def _pull(graph: Graph, encoder: av.AudioCodecContext) -> _Packets:
    while True:
        try:
            frame = graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return
        assert isinstance(frame, AudioFrame)
        yield from encoder.encode(frame)
