"""Rendering a part: the frames ``[start, stop)`` read exactly, encoded afresh, written as a part file.

Rules of this file:
- the bytes of a part are a function of (index, settings, part number): the encoder is new for every part, the
  reader gives the same pictures wherever it began, and the pictures lose the type the source gave them;
- a part is finished only when the packets that came out are those that were planned, by count and by pts;
- whatever goes wrong, or whoever gives up in ``Progress``, the unfinished file is gone and the renderer is
  ready for the next part.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Literal, Protocol

import av
from av.stream import Stream
from av.video.frame import PictureType

from farm.clock import Clock
from farm.media.encode import Picture, choose_picture, conform, open_encoder, tag
from farm.media.encoderclock import EncoderClock
from farm.media.graph import FilterError
from farm.media.pictures import open_pictures
from farm.media.read import ReadAgain, ReadError
from farm.parts import PartFacts, PartHeader, PartPacket, PartWriter
from farm.settings import JobSettings
from farm.source import SourceIndex

Kind = Literal["source", "filters", "encoder", "packets"]
#: Frame, its number in the job, and its part.
Finish = Callable[[av.VideoFrame, int, int], av.VideoFrame]


class RenderError(Exception):
    """A part that could not be rendered. ``kind``: whether the source could not be read, a filter or the
    encoder failed, or the packets that came out are not those of the plan; ``message``: one sentence."""

    def __init__(self, kind: Kind, message: str) -> None:
        self.kind: Kind = kind
        self.message = message
        super().__init__(message)


class Progress(Protocol):
    """Told of every step of a part. Whatever it raises ends the part and comes out of ``render``."""

    def decoded(self) -> None:
        """A picture was decoded, be it one of the part or one on the way to it."""
        ...

    def before_frame(self, frame: int) -> None:
        """``frame`` is about to be encoded; may wait. Frames of a part come in order, and come again if the
        part has to be read again because of damage."""
        ...


class PartRenderer:
    """Renders parts of one job, in any order; cheapest when each begins where the last one ended."""

    def __init__(
        self, index: SourceIndex, settings: JobSettings, settings_hash: str, *, linear: bool = False
    ) -> None:
        """``linear``: read from the start of the file, whatever the index says. Raises UsageError if the
        encoder takes no pixel format the source can become, or what is to be burnt in can't be drawn."""
        self._index = index
        self._settings = settings
        self._settings_hash = settings_hash
        self._finish = open_finish(index, settings, choose_picture(index, settings.video))
        self._clock = EncoderClock(index, settings.video)
        self._progress: Progress | None = None
        self._pictures = open_pictures(index, settings, linear=linear, decoded=self._decoded)

    def render(self, part: int, start: int, stop: int, path: Path, progress: Progress) -> PartFacts:
        """Write part ``part``, the frames ``[start, stop)``, to ``path``, which must not exist.

        Frames the source has lost are left out and counted in the footer. Raises RenderError, UsageError for
        an encoder that can't be opened, OSError if the file can't be written, and what ``progress`` raises.
        """
        self._progress = progress
        again = False
        try:
            while True:
                try:
                    return self._attempt(part, start, stop, path, progress, again)
                except ReadAgain:
                    again = True
        except ReadError as error:
            raise RenderError("source", str(error)) from error
        except FilterError as error:
            self._pictures.close()
            raise RenderError("filters", f"part {part}: {error}") from error
        except BaseException:
            self._pictures.close()
            raise
        finally:
            self._progress = None

    def close(self) -> None:
        """Let go of the source."""
        self._pictures.close()

    def _attempt(
        self, part: int, start: int, stop: int, path: Path, progress: Progress, again: bool
    ) -> PartFacts:
        encoder = open_encoder(self._index, self._settings.video)
        header = PartHeader(
            part=part,
            start=start,
            stop=stop,
            settings_hash=self._settings_hash,
            codec=encoder.codec.canonical_name,
            width=encoder.width,
            height=encoder.height,
            pix_fmt=encoder.pix_fmt or "",
            time_base=self._index.time_base,
            extradata=encoder.extradata or b"",
        )
        planned: set[int] = set()
        made: list[int] = []
        with PartWriter(path, header) as writer:

            def write(packets: list[PartPacket]) -> None:
                for packet in packets:
                    packet = packet._replace(pts=self._source_pts(encoder, packet.pts, start))
                    made.append(packet.pts)
                    writer.add(packet)

            for number, frame in self._pictures.read(start, stop, again=again):
                progress.before_frame(number)
                planned.add(self._index.pts[number])
                finished = self._finish(frame, number, part)
                self._clock.stamp(finished, number, start)
                write(encode(encoder, finished))
            if planned:  # encoders may fail when flushed without a frame
                # What an encoder has looked ahead at takes long to come out, and is progress as it does.
                write(encode(encoder, None, progress.decoded))
            _check(part, encoder.codec.name, planned, made)
            seen = self._pictures.seen
            return writer.finish(
                frames=len(planned),
                first_frame_crc=seen.first_crc,
                next_frame_crc=seen.next_crc,
                lost_frames=seen.lost,
                damaged_pts=tuple(seen.damaged),
                resized_pts=tuple(seen.resized),
                reformatted_pts=tuple(seen.reformatted),
            )

    def _source_pts(self, encoder: av.VideoCodecContext, pts: int, start: int) -> int:
        try:
            return self._clock.source_pts(pts, start)
        except IndexError:
            raise RenderError("packets", f"{encoder.codec.name} gave a packet for no frame") from None

    def _decoded(self) -> None:
        if self._progress is not None:
            self._progress.decoded()


def open_finish(index: SourceIndex, settings: JobSettings, picture: Picture) -> Finish:
    """What makes frames, upright and filtered, into what the encoder takes. Raises UsageError."""
    if settings.burn.lines:
        from farm.media.burn import Burner  # which loads what most workers never need

        shape: Finish = Burner(index, settings, picture)
    else:

        def shape(frame: av.VideoFrame, number: int, part: int) -> av.VideoFrame:
            return conform(frame, picture)

    def finish(frame: av.VideoFrame, number: int, part: int) -> av.VideoFrame:
        finished = shape(frame, number, part)
        tag(finished, picture, index)
        return finished

    return finish


def measure_speed(
    index: SourceIndex, settings: JobSettings, seconds: float, clock: Clock
) -> tuple[int, float]:
    """Encode from the first frame on, unthrottled, for about ``seconds``, from the start again if the source
    is short. Returns the frames encoded and the seconds that took; fewer of both where a frame can't be read
    or filtered, for that is told by the work.

    Encoders start afresh as often as in the job. Raises RenderError for an encoder that fails, or UsageError.
    """
    length = _part_frames(index, settings)
    finish = open_finish(index, settings, choose_picture(index, settings.video))
    pictures = open_pictures(index, settings, linear=True)
    clock_of_encoder = EncoderClock(index, settings.video)
    begun = clock.now()
    frames = start = 0
    try:
        while clock.now() - begun < seconds:
            encoder = open_encoder(index, settings.video)
            stop = min(start + length, index.frames)
            for number, frame in pictures.read(start, stop):
                finished = finish(frame, number, 0)
                clock_of_encoder.stamp(finished, number, start)
                encode(encoder, finished)
                frames += 1
                if clock.now() - begun >= seconds:
                    break
            encode(encoder, None)
            start = stop % index.frames
    except (ReadError, FilterError):
        pass
    finally:
        pictures.close()
    return frames, clock.now() - begun


def _part_frames(index: SourceIndex, settings: JobSettings) -> int:
    if index.filtered is not None and index.filtered.whole:
        return index.frames
    grid = settings.grid
    rate = float(Fraction(*index.frame_rate)) if index.frame_rate else 25.0
    return max(1, grid.frames or round((grid.seconds or 4.0) * rate))


def encode(
    encoder: av.VideoCodecContext, frame: av.VideoFrame | None, came: Callable[[], None] = lambda: None
) -> list[PartPacket]:
    """The packets that come out for ``frame``, or for None all that are left; ``came`` hears of each.

    Raises RenderError, MemoryError."""
    if frame is not None:
        frame.pict_type = PictureType.NONE  # the source's would force keyframes (+12 % in size)
    try:
        packets = []
        for packet in encoder.encode_lazy(frame):
            packets.append(packet)
            came()
    except MemoryError:
        raise  # PyAV's is one too: it says of the machine, not of the part
    except av.error.FFmpegError as error:
        raise RenderError("encoder", f"{encoder.codec.name} failed: {error.strerror}") from error
    return [_part_packet(encoder, packet) for packet in packets]


def _part_packet(encoder: av.VideoCodecContext, packet: av.Packet[Stream]) -> PartPacket:
    if packet.pts is None:
        raise RenderError("packets", f"{encoder.codec.name} gave a packet without a time")
    # Without dts: the stitch makes its own, and x265 gives garbage for parts shorter than its delay.
    return PartPacket(packet.pts, None, packet.duration or 0, packet.is_keyframe, bytes(packet))


def _check(part: int, encoder: str, planned: set[int], made: list[int]) -> None:
    if len(made) != len(planned):
        raise RenderError(
            "packets", f"part {part}: {encoder} made {len(made)} packets of {len(planned)} frames"
        )
    if set(made) != planned:
        raise RenderError("packets", f"part {part}: {encoder} changed the times of its frames")
