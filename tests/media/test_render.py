"""Rendering parts: the same bytes whatever happens, the pictures of the source, and a clean end when not."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from pathlib import Path

import av
import pytest

from farm.clock import MonotonicClock
from farm.errors import UsageError
from farm.media.index import index_source
from farm.media.read import decode, frame_crc, open_video, real_packets
from farm.media.render import PartRenderer, RenderError, measure_speed
from farm.parts import PartFacts, PartReader, check_part
from farm.settings import GridSettings, JobSettings, VideoSettings
from farm.source import SourceIndex, part_cuts
from tests.media.clips import corpus, make_clip
from tests.media.jobs import Patient

Part = tuple[int, int, int]


class Quiet:
    """Progress that nobody watches."""

    def decoded(self) -> None:
        pass

    def before_frame(self, frame: int) -> None:
        pass


def parts_of(index: SourceIndex, length: int) -> list[Part]:
    return [(n, *cuts) for n, cuts in enumerate(pairwise(part_cuts(index.frames, length, index.keys)))]


def job(encoder: str = "libx264", **video: object) -> JobSettings:
    return JobSettings(video=VideoSettings(encoder=encoder, **video))  # type: ignore[arg-type]


class Rendering:
    """One worker's renderings into a folder of its own."""

    def __init__(
        self, folder: Path, index: SourceIndex, settings: JobSettings, *, linear: bool = False
    ) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.renderer = PartRenderer(index, settings, "hash", linear=linear)

    def path(self, part: int) -> Path:
        return self.folder / f"{part}.part"

    def render(self, part: Part) -> PartFacts:
        return self.renderer.render(*part, self.path(part[0]), Quiet())

    def all(self, parts: list[Part]) -> dict[int, str]:
        return {part[0]: self.render(part).sha256 for part in parts}


def assert_same_bytes(folder: Path, index: SourceIndex, settings: JobSettings, parts: list[Part]) -> None:
    """One worker in order, one backwards, one at random, a new one for each part, and one that reads
    linearly: the same files."""
    expected = Rendering(folder / "order", index, settings).all(parts)
    orders = {"back": parts[::-1], "random": random.Random(3).sample(parts, len(parts))}
    for name, order in orders.items():
        assert Rendering(folder / name, index, settings).all(order) == expected, name
    for part in parts:
        single = Rendering(folder / f"alone{part[0]}", index, settings)
        assert single.render(part).sha256 == expected[part[0]]
    assert Rendering(folder / "linear", index, settings, linear=True).all(parts) == expected


@pytest.mark.parametrize("encoder", ["libx264", "libx265", "libsvtav1", "ffv1"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("long.mp4", {"gop": 250, "b_frames": 3}),
        ("open.mkv", {"options": {"x264-params": "open-gop=1:keyint=20:bframes=3"}}),
    ],
)
def test_the_same_bytes_in_any_order(
    tmp_path: Path, name: str, options: dict[str, object], encoder: str
) -> None:
    index = index_source(make_clip(tmp_path / name, **options))  # type: ignore[arg-type]
    preset = {"libx265": "ultrafast", "libsvtav1": "12"}.get(encoder)
    assert_same_bytes(tmp_path, index, job(encoder, preset=preset), parts_of(index, 15))


@pytest.mark.parametrize("name", ["S04", "S14"])
def test_the_same_bytes_of_the_corpus(tmp_path: Path, name: str) -> None:
    index = index_source(corpus(name))
    assert_same_bytes(tmp_path, index, job(), parts_of(index, max(2, index.frames // 4)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["S01", "S02", "S16", "S19", "S36"])
def test_the_same_bytes_of_the_long_corpus(tmp_path: Path, name: str) -> None:
    index = index_source(corpus(name))
    assert_same_bytes(tmp_path, index, job(preset="veryfast"), parts_of(index, index.frames // 4))


def one_pass(index: SourceIndex) -> list[tuple[int, int]]:
    """Times and pictures of the frames, from a plain decode of the source."""
    container, video = open_video(index.path, index.stream)
    with container:
        frames = decode(video, real_packets(container, video), lambda: None)
        return [(index.pts[n], frame_crc(frame)) for n, frame in enumerate(frames)]


def decoded_part(path: Path) -> list[tuple[int, int]]:
    """Times and pictures of a part that was encoded without loss."""
    with PartReader(path) as reader:
        packets = list(reader.packets())
        decoder = av.CodecContext.create(reader.header.codec, "r")
        assert isinstance(decoder, av.VideoCodecContext)
        decoder.extradata = reader.header.extradata
        decoder.width, decoder.height = reader.header.width, reader.header.height
    pictures = []
    for packet in packets:
        data = av.Packet(packet.data)
        data.pts = packet.pts
        pictures += [(frame.pts, frame_crc(frame)) for frame in decoder.decode(data)]
    return [*pictures, *((frame.pts, frame_crc(frame)) for frame in decoder.decode(None))]


@pytest.mark.parametrize("name", ["S01", "S04", "S14", "S22", "S27", "S29", "S30", "S37", "S42"])
def test_ffv1_parts_are_the_source_picture_by_picture(tmp_path: Path, name: str) -> None:
    index = index_source(corpus(name))
    rendering = Rendering(tmp_path / "a", index, job("ffv1"))
    parts = parts_of(index, max(1, index.frames // 3))
    rendering.all(parts)
    got = [entry for part in parts for entry in decoded_part(rendering.path(part[0]))]
    source = one_pass(index)
    assert [time for time, _ in got] == [time for time, _ in source] == list(index.pts)
    if name != "S27":  # argb becomes bgra: the same picture, other bytes
        assert got == source


def test_the_part_says_what_it_is_and_joins_its_neighbours(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4", frames=40))
    rendering = Rendering(tmp_path / "parts", index, job())
    source = one_pass(index)
    for part, start, stop in parts_of(index, 12):
        facts = rendering.render((part, start, stop))
        checked = check_part(rendering.path(part), part=part, start=start, stop=stop, settings_hash="hash")
        assert checked == facts
        assert (facts.footer.frames, facts.footer.packets) == (stop - start, stop - start)
        assert facts.footer.first_frame_crc == source[start][1]
        assert facts.footer.next_frame_crc == (source[stop][1] if stop < 40 else None)
        assert (facts.header.codec, facts.header.time_base) == ("h264", index.time_base)
        with PartReader(rendering.path(part)) as reader:
            packets = list(reader.packets())
        assert {packet.pts for packet in packets} == set(index.pts[start:stop])
        assert packets[0].key and packets[0].pts == index.pts[start]


def test_progress_is_told_of_every_frame(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4", frames=40, gop=250))
    events: list[object] = []

    class Told:
        def decoded(self) -> None:
            events.append("decoded")

        def before_frame(self, frame: int) -> None:
            events.append(frame)

    PartRenderer(index, job(), "hash").render(1, 20, 30, tmp_path / "1.part", Told())
    # A slow encoder that has looked ahead at a whole part is not stalled while it gives out what it held.
    assert events[-10:] == ["decoded"] * 10
    assert [event for event in events if event != "decoded"] == list(range(20, 30))
    assert events.count("decoded") == 41  # twenty on the way, ten, the one after, and ten that come out
    assert events[:21] == ["decoded"] * 21


def test_giving_up_leaves_no_file_and_a_renderer_that_works(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4", frames=40))
    settings = job()
    expected = Rendering(tmp_path / "b", index, settings).all([(0, 0, 20), (1, 20, 40)])

    class Stop(Exception):
        pass

    class Impatient(Quiet):
        def before_frame(self, frame: int) -> None:
            if frame == 25:
                raise Stop

    rendering = Rendering(tmp_path / "a", index, settings)
    rendering.render((0, 0, 20))
    with pytest.raises(Stop):
        rendering.renderer.render(1, 20, 40, rendering.path(1), Impatient())
    assert not rendering.path(1).exists()
    assert rendering.render((1, 20, 40)).sha256 == expected[1]


def test_a_source_that_is_gone_is_a_render_error(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mp4")
    index = index_source(path)
    path.unlink()
    rendering = Rendering(tmp_path / "a", index, job())
    with pytest.raises(RenderError, match="can't be read") as failure:
        rendering.render((0, 0, 12))
    assert failure.value.kind == "source"
    assert list(rendering.folder.iterdir()) == []


def test_an_encoder_that_drops_frames_is_found_out(tmp_path: Path) -> None:
    """Rate control of libvpx may drop frames; a part like that must not be delivered."""
    index = index_source(make_clip(tmp_path / "a.mp4", frames=40, width=320, height=240))
    options = {"b": "1k", "maxrate": "1k", "minrate": "1k", "bufsize": "2k", "drop-threshold": "90"}
    settings = job("libvpx", options=options | {"deadline": "realtime", "qmax": "20", "lag-in-frames": "0"})
    rendering = Rendering(tmp_path / "a", index, settings)
    with pytest.raises(RenderError, match="packets of 40 frames") as failure:
        rendering.render((0, 0, 40))
    assert failure.value.kind == "packets"
    assert list(rendering.folder.iterdir()) == []


def test_an_encoder_that_cannot_be_opened_is_a_usage_error(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4"))
    with pytest.raises(UsageError, match="no option prst"):
        Rendering(tmp_path / "a", index, job(options={"prst": "1"})).render((0, 0, 12))


def test_lost_frames_are_left_out_and_counted(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mp4", codec="libvpx-vp9", b_frames=0, frames=48)
    index = index_source(path)
    with path.open("r+b") as file:
        file.seek(index.packets[30].pos or 0)
        file.write(bytes(index.packets[30].size))
    facts = Rendering(tmp_path / "a", index, job()).render((2, 24, 36))
    assert facts.footer.lost_frames > 0
    assert facts.footer.frames + facts.footer.lost_frames == 12
    assert facts.footer.packets == facts.footer.frames
    parts = [(2, 24, 36), (1, 12, 24), (3, 36, 48), (0, 0, 12)]
    assert Rendering(tmp_path / "b", index, job()).all(parts)[2] == facts.sha256
    assert Rendering(tmp_path / "c", index, job()).all(sorted(parts))[2] == facts.sha256


class Ticks:
    """A clock that moves on by ``step`` seconds every time it is read."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._now = 0.0

    def now(self) -> float:
        self._now += self._step
        return self._now


def test_speed_is_measured_for_about_the_time_given(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4", frames=20))
    settings = JobSettings(video=VideoSettings(preset="ultrafast"), grid=GridSettings(frames=8))
    frames, seconds = measure_speed(index, settings, 10.0, Ticks(0.1))
    assert 80 < frames < 105  # a look at the clock a frame, and two a part
    assert 10.0 <= seconds < 10.5
    begun = time.monotonic()
    frames, seconds = measure_speed(index, settings, 0.1, MonotonicClock())
    assert frames > 0
    assert 0.1 <= seconds <= time.monotonic() - begun


def test_an_encoder_without_memory_is_out_of_memory_and_no_failure_of_the_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What FFmpeg says for ENOMEM is told to the relay as what it is (farm.worker.loop)."""
    index = index_source(make_clip(tmp_path / "m.mp4", frames=10))

    class Starved:
        def __init__(self, encoder: av.VideoCodecContext) -> None:
            self._encoder = encoder

        def __getattr__(self, name: str) -> object:
            return getattr(self._encoder, name)

        def encode_lazy(self, frame: object) -> None:
            raise av.error.MemoryError(12, "Cannot allocate memory", "x264")

    from farm.media import render

    opened = render.open_encoder
    monkeypatch.setattr(render, "open_encoder", lambda *args: Starved(opened(*args)))
    renderer = PartRenderer(index, JobSettings(), "h")
    with pytest.raises(MemoryError, match="Cannot allocate memory"):
        renderer.render(0, 0, 10, tmp_path / "p.part", Patient())
    renderer.close()
    assert not (tmp_path / "p.part").exists()
