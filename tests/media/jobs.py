"""A whole job in one process, for the tests of what comes after rendering, and what they look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import av
from av.sidedata.sidedata import Type
from av.stream import Disposition

from farm.media.index import index_source
from farm.media.render import PartRenderer
from farm.media.stitch import StitchFacts, stitch
from farm.media.verify import VerifyFacts, verify
from farm.settings import GridSettings, JobSettings, TrimSettings, VideoSettings
from farm.source import SourceIndex, part_cuts
from farm.trim import trim_index

HASH = "settings"
ALL = TrimSettings()
FAST = VideoSettings(preset="ultrafast", crf=40)


class Patient:
    """A ``Progress`` that lets everything pass."""

    def decoded(self) -> None:
        pass

    def before_frame(self, frame: int) -> None:
        pass


@dataclass(frozen=True)
class Job:
    index: SourceIndex
    settings: JobSettings
    parts: tuple[Path, ...]

    def into(self, container: str, audio: Literal["auto", "none"] = "auto") -> Job:
        """The same parts for another container."""
        settings = JobSettings(
            video=self.settings.video,
            grid=self.settings.grid,
            audio=audio,
            container=container,
            trim=self.settings.trim,
        )
        return replace(self, settings=settings)

    def stitch(self, output: Path) -> StitchFacts:
        return stitch(self.index, self.settings, HASH, self.parts, output, lambda fraction: None)

    def verify(
        self, output: Path, facts: StitchFacts | None = None, decode: Literal["sample", "all"] = "all"
    ) -> VerifyFacts:
        return verify(
            output,
            self.settings.container,
            self.index,
            decode=decode,
            lost_pts=facts.lost_pts if facts else (),
            carried=facts.carried if facts else (),
        )


def render_job(
    source: Path,
    folder: Path,
    *,
    video: VideoSettings = FAST,
    part_frames: int = 24,
    container: str = "mp4",
    trim: TrimSettings = ALL,
) -> Job:
    """Index ``source`` and render all parts of what is taken of it into ``folder``."""
    index = trim_index(index_source(source), trim)
    grid = GridSettings(frames=part_frames)
    settings = JobSettings(video=video, grid=grid, container=container, trim=trim)
    cuts = part_cuts(index.frames, part_frames, index.keys)
    parts = [folder / f"part-{number}" for number in range(len(cuts) - 1)]
    renderer = PartRenderer(index, settings, HASH)
    for number, (start, stop) in enumerate(pairwise(cuts)):
        renderer.render(number, start, stop, parts[number], Patient())
    renderer.close()
    return Job(index, settings, tuple(parts))


def start_seconds(path: Path, kind: Literal["video", "audio"], number: int = 0) -> Fraction | None:
    """When the first picture or sound of a stream is to be seen or heard; None if there is no such stream."""
    with av.open(str(path), metadata_errors="replace") as file:
        streams = [
            stream
            for stream in file.streams
            if stream.type == kind and not stream.disposition & Disposition.attached_pic
        ]
        if number >= len(streams):
            return None
        for packet in file.demux(streams[number]):
            for frame in packet.decode():
                assert isinstance(frame, (av.VideoFrame, av.AudioFrame))
                assert frame.pts is not None and frame.time_base is not None
                return frame.pts * frame.time_base
    return None


def video_times(path: Path) -> list[Fraction]:
    """The time of every decoded picture."""
    with av.open(str(path), metadata_errors="replace") as file:
        times = []
        for frame in file.decode(video=0):
            assert frame.pts is not None and frame.time_base is not None
            times.append(frame.pts * frame.time_base)
        return times


def side_data(frame: av.VideoFrame, kind: Type) -> bytes | None:
    """What a decoded picture carries of a kind (PyAV's stubs know one kind only)."""
    found = cast(Any, frame.side_data).get(kind)
    return None if found is None else bytes(found)


def with_sound(
    source: Path, target: Path, *, codec: str = "aac", later_seconds: Fraction = Fraction(0)
) -> Path:
    """A copy of ``source``: the same pictures, the sound encoded as ``codec`` and moved."""
    with av.open(str(source)) as file, av.open(str(target), "w") as output:
        pictures = output.add_stream_from_template(file.streams.video[0])
        sound = output.add_stream(codec, rate=48_000, layout="mono")
        assert isinstance(sound, av.AudioStream)
        for packet in file.demux():
            if packet.stream.type == "audio":
                for frame in packet.decode():
                    assert isinstance(frame, av.AudioFrame) and frame.pts is not None
                    frame.pts += round(later_seconds * frame.sample_rate)
                    output.mux(sound.encode(frame))
            elif packet.size:
                packet.stream = pictures
                output.mux(packet)
        output.mux(sound.encode(None))
    return target
