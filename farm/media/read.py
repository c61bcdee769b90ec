"""Reading the frames ``[start, stop)`` of a job, exactly, wherever one begins.

Rules of this file (spec and measurements: media.md):
- a frame is known by its pts; what a seek delivers is believed only once the packet it landed on was found in
  the index;
- every anchoring opens the file anew, so that what a range decodes to never depends on what was read before;
- running on from range to range is allowed while nothing was damaged, and then gives the same pictures;
- a range with a hole is read again from ever earlier keyframes, in the end from the first packet; so is one
  with damage that the decoder comes to before it has a sound group of pictures behind it;
- in linear mode everything is read from the first packet on, and there is nothing to doubt;
- the decoder has one thread: two changed pictures of damaged files.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import chain, islice
from typing import TypeAlias

import av
from av.container import InputContainer
from av.stream import Discard
from av.video.frame import PictureType
from av.video.stream import VideoStream

from farm.source import PacketEntry, SourceIndex

VideoPacket: TypeAlias = "av.Packet[VideoStream]"
Numbered = tuple[int, av.VideoFrame]

#: In these a keyframe may be a recovery point, which is not an I picture.
RECOVERING_CODECS = ("h264", "hevc")
_SEEK_TRIES = 3
#: How many pictures may come before one that was to be shown earlier.
_LATE_FRAMES = 8
#: Keyframes before the damage: one to enter at, one whose group of pictures is whole, and one more because
#: damage is seen only when the picture comes out.
_SETTLED_KEYS = 3
_PATIENT_RUNGS = 5  # 31 keyframes back
INTRA = (PictureType.NONE, PictureType.I, PictureType.SI, PictureType.BI)
_PADDED_FORMATS = {"bgr0": 3, "rgb0": 3, "0bgr": 0, "0rgb": 0}


class ReadError(Exception):
    """The source can't be read any more, or is no longer what was indexed; the message says which."""


class ReadAgain(Exception):
    """The range must be read again with the next ``attempt``; what was handed out is void."""


def open_video(path: str, stream: int) -> tuple[InputContainer, VideoStream]:
    """Open a file for its video stream of that container index alone. Raises av.error.FFmpegError.

    The ``file:`` in front keeps names with colons from being taken for protocols.
    """
    container = av.open(f"file:{path}", "r", metadata_errors="replace")
    video = container.streams[stream]
    assert isinstance(video, VideoStream)
    for other in container.streams:
        if other.index != stream:
            other.discard = Discard.all
    video.thread_count = 1
    return container, video


def real_packets(container: InputContainer, video: VideoStream) -> Iterator[VideoPacket]:
    """The packets that hold data, in decode order; PyAV ends a stream with an empty one."""
    return (packet for packet in container.demux(video) if packet.size)


def decode(
    video: VideoStream, packets: Iterator[VideoPacket], damaged: Callable[[], None]
) -> Iterator[av.VideoFrame]:
    """All pictures of ``packets``, to the last one the decoder holds back. What can't be decoded is passed
    over; ``damaged`` is called whenever there is a sign of damage, before the picture is handed out."""
    context = video.codec_context
    for packet in chain(packets, (None,)):
        if packet is not None and packet.is_corrupt:
            damaged()
        try:
            frames = context.decode(packet)
        except av.error.FFmpegError:
            damaged()
            continue
        for frame in frames:
            if frame.is_corrupt:
                damaged()
            yield frame


def frame_crc(frame: av.VideoFrame) -> int:
    """CRC-32 over the visible bytes of a picture: neither the padding of its lines nor of its pixels."""
    crc = 0
    padding = _PADDED_FORMATS.get(frame.format.name)
    for number, plane in enumerate(frame.planes):
        stride = abs(plane.line_size) or plane.buffer_size
        visible = min(_line_bytes(frame, number), stride)
        data = memoryview(plane).cast("B")
        lines = range(0, len(data), len(data) // plane.height)
        for start in lines if plane.line_size >= 0 else reversed(lines):
            shown: memoryview | bytearray = data[start : start + visible]
            if padding is not None:
                shown = bytearray(shown)
                del shown[padding::4]
            crc = zlib.crc32(shown, crc)
    return crc


def _line_bytes(frame: av.VideoFrame, plane: int) -> int:
    pixel_format = frame.format
    if len(frame.planes) == 1:
        return -(-frame.width * pixel_format.padded_bits_per_pixel // 8)
    if pixel_format.name == "pal8":
        return frame.width if plane == 0 else 1024
    parts = [part for part in pixel_format.components if part.plane == plane]
    return sum(-(-part.bits // 8) for part in parts) * frame.planes[plane].width


class FrameReader:
    """Reads ranges of one source, in any order; cheapest when each begins where the last one ended."""

    def __init__(
        self, index: SourceIndex, *, linear: bool = False, decoded: Callable[[], None] = lambda: None
    ) -> None:
        """``linear``: read from the first packet even where the index would seek. ``decoded``: called after
        each decoded picture, also those passed over; it may raise to give up."""
        self._index = index
        self._linear = linear or index.linear
        self._decoded = decoded
        self._keys = [number for number, packet in enumerate(index.packets) if packet.key]
        self._pass: _Pass | None = None
        self._position = 0  # every frame before it was handed out or passed over
        self._pending: Numbered | None = None  # decoded, at or after the position, not yet handed out
        self._rung = 0  # on the ladder of the present range; -1 while running on
        self._holes: set[tuple[int, int]] = set()  # seen from earlier rungs of the present range
        self.lost: tuple[int, ...] = ()  #: frames of the last range that could not be decoded
        self.next_frame: av.VideoFrame | None = None  #: the frame at ``stop``; None: lost, or there is none

    def read(self, start: int, stop: int, *, again: bool = False) -> Iterator[Numbered]:
        """Frames ``[start, stop)`` with their numbers, in display order, pts as in the index.

        Raises ReadAgain when a hole or damage makes a reading from an earlier keyframe necessary: throw away
        what came and call with ``again`` (at the first packet, at the latest, this ends). Raises ReadError
        when the source is gone or has changed.
        """
        self.lost, self.next_frame = (), None
        try:
            final = self._prepare(start, again)
            yield from self._range(start, stop, final)
        except av.error.FFmpegError as error:
            self.close()
            raise ReadError(f"{self._index.path} can't be read: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def runs_on(self, start: int) -> bool:
        """Whether reading from ``start`` goes on where the last range ended."""
        if self._pass is None or self._position != start:
            return False
        return self._linear or not self._pass.damaged

    def close(self) -> None:
        """Let go of the file; reading again opens it anew."""
        if self._pass is not None:
            self._pass.close()
        self._pass, self._pending, self._position = None, None, 0

    def _prepare(self, start: int, again: bool) -> bool:
        """Have a pass that will come by ``start``; whether what it gives is final, holes and all."""
        if self._linear:
            if self._pass is None or self._position > start:
                self._open(0)
            return True
        if not again:
            self._holes.clear()
            if self._pass is not None and self._position == start and not self._pass.damaged:
                self._rung = -1
                return False
        self._rung = 0 if not again else self._rung + 1
        ladder = self._ladder(start)
        anchor = ladder[min(self._rung, len(ladder) - 1)]
        self._open(anchor)
        return anchor == 0

    def _ladder(self, start: int) -> list[int]:
        """Packets to decode from, the nearest first: the last keyframe that can hold ``start``, then 1, 3,
        7, … keyframes before it, then the first packet."""
        packets, pts = self._index.packets, self._index.pts[start]
        nearest = len(self._keys) - 1
        while nearest >= 0 and not _at_most(packets[self._keys[nearest]].pts, pts):
            nearest -= 1
        rungs = []
        step = 0
        while nearest - step > 0:
            rungs.append(self._keys[nearest - step])
            step = 2 * step + 1
        return [*rungs, 0]

    def _open(self, anchor: int) -> None:
        self.close()
        self._pass = _Pass(self._index, anchor, self._decoded)

    def _range(self, start: int, stop: int, final: bool) -> Iterator[Numbered]:
        assert self._pass is not None
        lost: list[int] = []
        expected = start
        for number, frame in chain(self._held(), self._pass.frames):
            if number < expected:
                continue
            if self._pass.damaged and not (final or self._settled):
                raise ReadAgain
            if number > expected:
                gap = range(expected, min(number, stop))
                if not final:
                    self._climb_unless_settled(gap)
                lost += gap
            if number >= stop:
                self._pending = number, frame
                self.next_frame = frame if number == stop else None
                break
            yield number, frame
            expected = number + 1
        else:
            if self._pass.damaged and not (final or self._settled):
                raise ReadAgain
            if expected < stop and not final:
                self._climb_unless_settled(range(expected, stop))
            lost += range(expected, stop)
        self.lost = tuple(lost)
        self._position = stop

    @property
    def _settled(self) -> bool:
        """Whether damage in the present pass is what it would be in one from the start, or as good as that:
        where all is damaged, every range would be read from the first packet."""
        assert self._pass is not None
        return self._rung >= 0 and (self._pass.settled or self._rung >= _PATIENT_RUNGS)

    def _held(self) -> Iterator[Numbered]:
        held, self._pending = self._pending, None
        if held is not None:
            yield held

    def _climb_unless_settled(self, gap: range) -> None:
        """A hole can come from where we began (open GOP, intra refresh) or be real. It is real when there
        were signs of damage and two anchors agree."""
        assert self._pass is not None
        hole = gap.start, gap.stop
        if self._rung >= 0 and self._pass.damaged and hole in self._holes:
            return
        if self._rung >= 0:
            self._holes.add(hole)
        raise ReadAgain


class _Pass:
    """One opening of the source and one decoding, from the packet ``anchor`` to wherever it is left."""

    def __init__(self, index: SourceIndex, anchor: int, decoded: Callable[[], None]) -> None:
        self._index = index
        self._anchor = anchor
        self._decoded = decoded
        self.damaged = False  #: there was a sign of damage since the anchor
        self._sound_keys = 0  # keyframes before it
        self._container, self._video = open_video(index.path, index.stream)
        try:
            packets = self._checked(self._landed())
            self.frames = _in_order(self._numbered(decode(self._video, packets, self._note_damage)))
        except BaseException:
            self.close()
            raise

    @property
    def settled(self) -> bool:
        """Whether the decoder came to the damage with all it would have after one pass from the start: what
        is broken is made up for from pictures before it, in a damaged keyframe from those before that."""
        return self._anchor == 0 or self._sound_keys >= _SETTLED_KEYS

    def close(self) -> None:
        self._container.close()

    def _landed(self) -> Iterator[VideoPacket]:
        """The packets from the anchor on."""
        if self._anchor == 0:
            return real_packets(self._container, self._video)
        self._prime(real_packets(self._container, self._video))
        for key in self._seek_targets():
            packets = self._sought(key)
            if packets is not None:
                return packets
        self.close()
        self._container, self._video = open_video(self._index.path, self._index.stream)
        packets = real_packets(self._container, self._video)
        self._prime(packets)
        return islice(packets, self._anchor - 1, None)

    def _prime(self, packets: Iterator[VideoPacket]) -> None:
        # A message in the first packet tells the H.264 decoder which x264 wrote the stream, and so which of
        # its faults to make up for; without it some files decode wrongly in silence.
        for packet in packets:
            if self._index.codec == "h264":
                with suppress(av.error.FFmpegError):
                    self._video.codec_context.decode(packet)
                self._video.codec_context.flush_buffers()
            return

    def _seek_targets(self) -> Iterator[PacketEntry]:
        packets = self._index.packets
        keys = (packets[number] for number in range(self._anchor, -1, -1) if packets[number].key)
        return islice(keys, _SEEK_TRIES)

    def _sought(self, target: PacketEntry) -> Iterator[VideoPacket] | None:
        """The packets from the anchor on, after a seek to the keyframe ``target``; None if that went past."""
        if target.pts is None:
            return None
        with suppress(av.error.FFmpegError):
            self._container.seek(target.pts, stream=self._video)
            packets = real_packets(self._container, self._video)
            anchor = self._index.packets[self._anchor]
            for packet in packets:
                if _is(packet, anchor):
                    return chain((packet,), packets)
                if packet.dts is not None and anchor.dts is not None and packet.dts > anchor.dts:
                    return None
        return None

    def _checked(self, packets: Iterator[VideoPacket]) -> Iterator[VideoPacket]:
        """The packets; an end before the last indexed one is an error, never a silent loss of frames."""
        count = self._anchor
        trouble = "it ends sooner than when the job was planned"
        try:
            for packet in packets:
                count += 1
                if packet.is_keyframe and not self.damaged:
                    self._sound_keys += 1
                yield packet
        except av.error.FFmpegError as error:
            trouble = str(error.strerror)
        if count < len(self._index.packets):
            raise ReadError(f"{self._index.path} can't be read any further: {trouble}")

    def _numbered(self, frames: Iterator[av.VideoFrame]) -> Iterator[Numbered]:
        index = self._index
        time_base = Fraction(*index.time_base)
        unproven = self._anchor > 0 and index.codec not in RECOVERING_CODECS
        ordinals = {ordinal: number for number, ordinal in enumerate(index.kept)} if index.linear else {}
        for count, frame in enumerate(frames):
            self._decoded()
            if unproven and not self._leads(frame):
                if frame.pict_type not in INTRA:  # some files flag every packet a keyframe
                    raise ReadAgain
                unproven = False
            if index.kept and self._is_past(count, frame):
                return  # the job's last frame is behind, and the rest of the file of no interest
            number = ordinals.get(count, None if index.kept else count)
            if not index.linear:
                number = _number(index.pts, frame.pts)
            if number is not None and number < index.frames:
                frame.pts, frame.time_base = index.pts[number], time_base
                yield number, frame

    def _is_past(self, count: int, frame: av.VideoFrame) -> bool:
        index = self._index
        if index.linear:
            return count > index.kept[-1]
        return frame.pts is not None and frame.pts > index.pts[-1]

    def _leads(self, frame: av.VideoFrame) -> bool:
        """Whether a picture comes before the keyframe on screen, though after it in the file."""
        anchor = self._index.packets[self._anchor].pts
        return frame.pts is not None and anchor is not None and frame.pts < anchor

    def _note_damage(self) -> None:
        self.damaged = True


def _in_order(frames: Iterator[Numbered]) -> Iterator[Numbered]:
    """Some decoders that lost a keyframe hand out pictures after later ones: at a hole, wait for them."""
    waiting: dict[int, av.VideoFrame] = {}
    expected: int | None = None
    for number, frame in frames:
        if expected is None or number <= expected:
            expected = number + 1 if expected is None else max(expected, number + 1)
            yield number, frame
        else:
            waiting[number] = frame
        if len(waiting) > _LATE_FRAMES:
            expected = min(waiting)
        while expected in waiting:
            yield expected, waiting.pop(expected)
            expected += 1
    for number in sorted(waiting):
        yield number, waiting[number]


def _is(packet: VideoPacket, entry: PacketEntry) -> bool:
    """Whether this is the indexed packet, as far as the demuxer knows dts and place after a seek."""
    return (
        (packet.pts, packet.size, packet.is_keyframe) == (entry.pts, entry.size, entry.key)
        and (packet.dts == entry.dts or packet.dts is None or entry.dts is None)
        and (packet.pos == entry.pos or packet.pos is None or entry.pos is None)
    )


def _number(all_pts: tuple[int, ...], pts: int | None) -> int | None:
    if pts is None:
        return None
    number = bisect_left(all_pts, pts)
    return number if number < len(all_pts) and all_pts[number] == pts else None


def _at_most(pts: int | None, limit: int) -> bool:
    return pts is not None and pts <= limit
