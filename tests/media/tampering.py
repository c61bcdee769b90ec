"""What can befall a finished file: packets changed, dropped, moved, and containers written anew."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

import av
from av.stream import Stream

Packet: TypeAlias = "av.Packet[Stream]"
Change = Callable[[list[Packet]], list[Packet]]


def flip_bit(source: Path, target: Path, packet: int) -> Path:
    """In the data of a packet of the video, counted in decoding order; the file's size stays."""
    with av.open(str(source)) as file:
        places = [(p.pos, p.size) for p in file.demux(video=0) if p.size]
    data = bytearray(source.read_bytes())
    position, size = places[packet]
    assert position is not None
    data[position + size - 3] ^= 1
    target.write_bytes(data)
    return target


def cut_off(source: Path, target: Path, share: float) -> Path:
    data = source.read_bytes()
    target.write_bytes(data[: round(len(data) * share)])
    return target


def rewritten(
    source: Path,
    target: Path,
    change: Change = lambda packets: packets,
    *,
    only: Collection[int] | None = None,
    of: int = 0,
    options: dict[str, str] | None = None,
) -> Path:
    """Written anew by a muxer, as another tool would, after ``change`` of the packets of stream ``of``.
    ``only``: the streams that are taken along; None: all."""
    with av.open(str(source)) as file, av.open(str(target), "w", container_options=options or {}) as output:
        taken = [stream for stream in file.streams if only is None or stream.index in only]
        targets = {stream.index: output.add_stream_from_template(stream) for stream in taken}
        streams: dict[int, list[Packet]] = {index: [] for index in targets}
        for packet in file.demux():
            if packet.size and packet.stream.index in streams:
                streams[packet.stream.index].append(packet)
        if of in streams:
            streams[of] = change(streams[of])
        timed = [
            (float((packet.dts or 0) * packet.time_base), index, number)
            for index, packets in streams.items()
            for number, packet in enumerate(packets)
        ]
        for _, index, number in sorted(timed):
            packet = streams[index][number]
            packet.stream = targets[index]
            output.mux(packet)
    return target


def without(packet: int) -> Change:
    return lambda packets: packets[:packet] + packets[packet + 1 :]


def late(packet: int) -> Change:
    """Shown a quarter of a frame later."""

    def change(packets: list[Packet]) -> list[Packet]:
        packets[packet].pts = (packets[packet].pts or 0) + (packets[packet].duration or 0) // 4
        return packets

    return change


def swapped(first: range, second: range) -> Change:
    """The data of two parts of one length changes places, the times stay."""

    def change(packets: list[Packet]) -> list[Packet]:
        order = list(range(len(packets)))
        for one, other in zip(first, second, strict=True):
            order[one], order[other] = other, one
        return [_timed_as(bytes(packets[place]), packets[n]) for n, place in enumerate(order)]

    return change


def garbled(packet: int) -> Change:
    def change(packets: list[Packet]) -> list[Packet]:
        data = bytearray(bytes(packets[packet]))
        data[-1] ^= 1
        packets[packet] = _timed_as(bytes(data), packets[packet])
        return packets

    return change


def _timed_as(data: bytes, other: Packet) -> Packet:
    packet: Packet = av.Packet(data)
    packet.pts, packet.dts, packet.duration = other.pts, other.dts, other.duration
    packet.time_base, packet.is_keyframe = other.time_base, other.is_keyframe
    return packet
