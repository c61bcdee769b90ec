"""A short part encoded twice before any work: an encoder whose bytes differ can't keep the promise that the
same frames give the same bytes (DESIGN.md §5).

Theory of operation. The frames are those at a keyframe in the middle of the film, where there is more to
encode than in a fade from black. Both encoders live in one process, the second one after the first: it finds
the memory as the first has left it, so that one which reads what it never wrote is found out too, and threads
that race do so anew. Few frames first, then more, for as long as there is time: a slow encoder of large
pictures is asked for two, a quick one for all. Time is the processor's, so that a busy machine doesn't make
it a weaker test.

Rules of this file:
- what comes out is compared packet by packet: times, keyframes, bytes, and the encoder's header;
- packets that aren't those of the frames are refused here too, before any work;
- a source that can't be read there says nothing of the encoder; the work will tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from farm.clock import Clock
from farm.errors import UsageError
from farm.media.encode import choose_picture, open_encoder, refusal
from farm.media.encoderclock import EncoderClock
from farm.media.graph import FilterError
from farm.media.pictures import open_pictures
from farm.media.read import Numbered, ReadAgain, ReadError
from farm.media.render import RenderError, encode, open_finish
from farm.parts import PartPacket
from farm.settings import JobSettings, VideoSettings
from farm.source import SourceIndex

#: Frames of one try after the other.
_FRAMES = (2, 8, 24)
#: Of a processor for each of the encoder's threads, which are what races; up to so many of them. A try is not
#: begun if all would take longer, as far as the ones before tell.
BUDGET_SECONDS = 0.5
_THREADS_MAX = 4

_Packet = tuple[int, bool, bytes]


class Difference(NamedTuple):
    """The first packet that came out otherwise the second time."""

    frames: int  #: that were encoded
    packet: int  #: counted in decoding order; -1: the encoder's header

    @property
    def of_header(self) -> bool:
        return self.packet < 0

    def words(self, encoder: str) -> str:
        where = "the encoder's header" if self.of_header else f"packet {self.packet}"
        return f"{encoder} was given the same {self.frames} frames twice, and {where} came out otherwise"


def encode_twice(
    index: SourceIndex, settings: JobSettings, clock: Clock, budget_seconds: float = BUDGET_SECONDS
) -> Difference | None:
    """None: both times the same. ``clock`` counts what of a processor is used.

    Raises UsageError if the encoder fails, or its packets aren't the frames."""
    budget_seconds *= min(settings.video.threads, _THREADS_MAX)
    begun = clock.now()
    frames: list[Numbered] = []
    last_seconds = 0.0
    for tried, wanted in zip((0, *_FRAMES), _FRAMES, strict=False):
        expected = last_seconds * wanted / max(tried, 1)
        if clock.now() - begun + expected > budget_seconds:
            break
        since = clock.now()
        frames += _read(index, settings, len(frames), wanted)
        if len(frames) <= tried:
            break
        first, second = (_encoded(index, settings.video, frames) for _ in range(2))
        if first != second:
            pairs = enumerate(zip(first, second, strict=True), start=-1)
            return Difference(len(frames), next(number for number, (a, b) in pairs if a != b))
        last_seconds = clock.now() - since
    return None


def _read(index: SourceIndex, settings: JobSettings, start: int, stop: int) -> list[Numbered]:
    """Frames ``[start, stop)`` from the first one that is taken on, as encoders take them, with their numbers
    in the job; fewer at the end, or where the source can't be read."""
    first = _first(index)
    wanted = range(first + start, min(first + stop, index.frames))
    if not wanted:
        return []
    finish = open_finish(index, settings, choose_picture(index, settings.video))
    pictures = open_pictures(index, settings, linear=index.linear)
    try:
        taken = islice(pictures.read(wanted.start, wanted.stop), len(wanted))  # filters may go on to the end
        return [(number, finish(frame, number, 0)) for number, frame in taken]
    except (ReadError, ReadAgain, FilterError):
        return []
    finally:
        pictures.close()


def _first(index: SourceIndex) -> int:
    """The last keyframe in the first half that has all the frames behind it; else the first frame."""
    if index.linear or (index.filtered is not None and index.filtered.whole):
        return 0
    latest = min(index.frames // 2, index.frames - _FRAMES[-1])
    return max((key for key in index.keys if key <= latest), default=0)


def _encoded(
    index: SourceIndex, video: VideoSettings, frames: Sequence[Numbered]
) -> list[_Packet | bytes | None]:
    """The encoder's header, then what it makes of the frames."""
    encoder, clock = open_encoder(index, video), EncoderClock(index, video)
    packets: list[PartPacket] = []
    given = []
    try:
        for number, frame in frames:  # at a constant rate one that is shown again is the same object
            clock.stamp(frame, number, frames[0][0])
            given.append(frame.pts)
            packets += encode(encoder, frame)
        packets += encode(encoder, None)
    except RenderError as error:
        raise UsageError(refusal(video, error.message)) from error
    if sorted(packet.pts for packet in packets) != given:
        made = f"it made {len(packets)} packets of {len(frames)} frames, or changed their times"
        raise UsageError(refusal(video, made))
    if not packets[0].key:
        raise UsageError(
            refusal(video, "a part has to begin with a keyframe, and with these options none does")
        )
    return [encoder.extradata, *((packet.pts, packet.key, packet.data) for packet in packets)]
