"""A range of the input: the very frames of it, from zero, with the sound that belongs to them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.audio.stream import AudioStream
from av.video.stream import VideoStream

from farm.media.constant import ConstantReader, make_constant
from farm.media.index import index_source
from farm.media.read import FrameReader, ReadAgain, frame_crc
from farm.media.render import PartRenderer
from farm.parts import PartReader
from farm.settings import Moment, TrimSettings, VideoSettings
from farm.source import SourceIndex
from farm.trim import trim_index
from tests.media.clips import RATE, corpus, make_clip, picture
from tests.media.jobs import HASH, Patient, render_job, video_times

LOSSLESS = VideoSettings(encoder="ffv1")
FLASH = 55
BURST_SAMPLES = 480


def frames(start: int | None, stop: int | None, every: int = 1) -> TrimSettings:
    return TrimSettings(
        start=None if start is None else Moment(frame=start),
        stop=None if stop is None else Moment(frame=stop),
        every=every,
    )


def crcs(index: SourceIndex, part: int = 1000, stop: int = 1000) -> list[int]:
    reader = FrameReader(index)
    found: dict[int, int] = {}
    stop = min(stop, index.frames)
    for start in range(0, stop, part):
        again = False
        while True:
            try:
                for number, frame in reader.read(start, min(start + part, stop), again=again):
                    found[number] = frame_crc(frame)
                break
            except ReadAgain:
                again = True
    reader.close()
    return [found[number] for number in sorted(found)]


NAMES = ["clip.mp4", "clip.ts", "clip.avi", "clip.gif", "S01", "S17", "S19", "S20", "S29"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trim", [frames(13, 29), frames(7, 40, 3)], ids=["range", "every third"])
def test_the_frames_are_those_of_the_whole(name: str, trim: TrimSettings, tmp_path: Path) -> None:
    if name.startswith("clip"):
        codec, pix_fmt = ("gif", "rgb8") if name.endswith("gif") else ("libx264", "yuv420p")
        source = make_clip(tmp_path / name, frames=50, codec=codec, pix_fmt=pix_fmt)
    else:
        source = corpus(name)
    whole = index_source(source)
    kept = trim_index(whole, trim)
    assert trim.start is not None and trim.start.frame is not None
    assert trim.stop is not None and trim.stop.frame is not None
    ordinals = list(range(whole.frames))[trim.start.frame : trim.stop.frame : trim.every]
    assert len(ordinals) > 10
    assert kept.pts == tuple(whole.pts[n] for n in ordinals)
    all_crcs = crcs(whole, stop=40)
    expected = [all_crcs[n] for n in ordinals]
    assert crcs(kept) == expected
    assert crcs(kept, part=4) == expected


def test_reading_stops_where_the_range_does(tmp_path: Path) -> None:
    index = trim_index(index_source(make_clip(tmp_path / "clip.mp4", frames=200)), frames(5, 20))
    decoded = 0

    def count() -> None:
        nonlocal decoded
        decoded += 1

    reader = FrameReader(index, decoded=count)
    assert len(list(reader.read(0, index.frames))) == 15
    assert decoded < 30


def flash_and_beep(path: Path, audio_codec: str) -> Path:
    """100 frames of 25 a second; with frame 55, which is white, a burst of noise begins."""
    with av.open(str(path), "w") as output:
        video = output.add_stream("libx264", rate=25, options={"bf": "2", "g": "30"})
        assert isinstance(video, VideoStream)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        sound = output.add_stream(audio_codec, rate=RATE, layout="mono")
        assert isinstance(sound, AudioStream)
        for number in range(100):
            frame = picture(number)
            if number == FLASH:
                white = np.full((48, 64, 3), 255, np.uint8)
                frame = av.VideoFrame.from_ndarray(white, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, 25)
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        wave = np.zeros(4 * RATE, np.float32)
        begin = FLASH * RATE // 25
        wave[begin : begin + BURST_SAMPLES] = np.random.default_rng(1).uniform(-0.9, 0.9, BURST_SAMPLES)
        resampler = av.AudioResampler(format=sound.format, layout="mono", rate=RATE)
        for at in range(0, len(wave), 1024):
            block = av.AudioFrame.from_ndarray(wave[None, at : at + 1024], format="fltp", layout="mono")
            block.sample_rate, block.pts, block.time_base = RATE, at, Fraction(1, RATE)
            for resampled in resampler.resample(block):
                output.mux(sound.encode(resampled))
        output.mux(sound.encode(None))
    return path


def beep_seconds(path: Path) -> float:
    """When the sound begins, as a player that heeds edit lists hears it."""
    with av.open(str(path)) as file:
        for frame in file.decode(audio=0):
            samples = np.abs(frame.to_ndarray().astype(np.float64)).reshape(-1)
            if frame.format.name.startswith("s16"):
                samples = samples / 32768
            loud = np.flatnonzero(samples > 0.3)
            if len(loud):
                assert frame.pts is not None and frame.time_base is not None
                return float(frame.pts * frame.time_base) + int(loud[0]) / frame.sample_rate
    raise AssertionError("no beep")


def flash_seconds(path: Path) -> float:
    with av.open(str(path)) as file:
        for frame in file.decode(video=0):
            if frame.to_ndarray(format="gray").mean() > 220:
                assert frame.pts is not None and frame.time_base is not None
                return float(frame.pts * frame.time_base)
    raise AssertionError("no flash")


@pytest.mark.parametrize("sound", ["aac", "pcm_s16le", "libopus"])
def test_flash_and_beep_stay_together(sound: str, tmp_path: Path) -> None:
    suffix = "mkv" if sound == "libopus" else "mov"
    source = flash_and_beep(tmp_path / f"source.{suffix}", sound)
    distance = beep_seconds(source) - flash_seconds(source)
    job = render_job(source, tmp_path, part_frames=20, trim=frames(31, 80))
    for container in ("mp4", "mov", "matroska") if sound != "libopus" else ("mp4", "matroska"):
        output = tmp_path / f"out.{container}"
        facts = job.into(container).stitch(output)
        job.into(container).verify(output, facts)
        assert flash_seconds(output) == pytest.approx((FLASH - 31) / 25, abs=0.001)
        assert beep_seconds(output) - flash_seconds(output) == pytest.approx(distance, abs=0.005)
        assert not facts.warnings


@pytest.mark.parametrize("container", ["mp4", "matroska"])
def test_the_output_begins_at_zero_and_sound_ends_with_the_pictures(container: str, tmp_path: Path) -> None:
    source = make_clip(tmp_path / "clip.mp4", frames=100, audio_seconds=6.0)
    job = render_job(source, tmp_path, part_frames=20, trim=frames(31, 80))
    output = tmp_path / "out"
    job.into(container).stitch(output)
    times = video_times(output)
    assert times[0] == 0
    assert times[-1] == pytest.approx(48 / 25, abs=0.001)
    with av.open(str(output)) as file:
        heard = [
            float(frame.pts * frame.time_base) + frame.samples / frame.sample_rate
            for frame in file.decode(audio=0)
            if frame.pts is not None and frame.time_base is not None
        ]
        assert file.duration is not None
    assert heard[-1] == pytest.approx(49 / 25, abs=1024 / 48_000)


def test_a_range_without_sound_has_none_and_that_is_said(tmp_path: Path) -> None:
    source = make_clip(tmp_path / "clip.mp4", frames=100, audio_seconds=1.0)
    job = render_job(source, tmp_path, part_frames=20, trim=frames(50, None))
    output = tmp_path / "out.mp4"
    facts = job.stitch(output)
    job.verify(output, facts)
    assert "empty" in facts.streams[0] and facts.carried == ()


@pytest.mark.parametrize("trim", [frames(None, 60), frames(40, None), frames(12, 13), frames(0, 100, 10)])
def test_duration_is_that_of_the_range(trim: TrimSettings, tmp_path: Path) -> None:
    source = make_clip(tmp_path / "clip.mp4", frames=100)
    job = render_job(source, tmp_path, part_frames=20, trim=trim)
    output = tmp_path / "out.mp4"
    found = job.verify(output, job.stitch(output))
    first, last = trim.start.frame if trim.start else 0, trim.stop.frame if trim.stop else 100
    assert first is not None and last is not None
    assert found.duration_seconds == pytest.approx((last - first) / 25)


def test_lossless_parts_do_not_depend_on_where_a_worker_began(tmp_path: Path) -> None:
    source = make_clip(tmp_path / "clip.mp4", frames=80)
    one = render_job(source, tmp_path, video=LOSSLESS, part_frames=10, trim=frames(11, 61))
    for number in (2, 1, 3):
        with PartReader(one.parts[number]) as part:
            header = part.header
        renderer = PartRenderer(one.index, one.settings, HASH)
        path = tmp_path / f"other-{number}"
        renderer.render(number, header.start, header.stop, path, Patient())
        renderer.close()
        assert path.read_bytes() == one.parts[number].read_bytes()


def test_subtitles_and_chapters_are_cut_to_the_range_and_the_timecode_is_that_of_its_first_frame(
    tmp_path: Path,
) -> None:
    source = tmp_path / "rich.mkv"
    make_clip(tmp_path / "plain.mp4", frames=100)
    with av.open(str(tmp_path / "plain.mp4")) as plain, av.open(str(source), "w") as output:
        pictures = output.add_stream_from_template(plain.streams.video[0])
        pictures.metadata["timecode"] = "10:00:00:20"
        lines = output.add_mux_stream("subrip", time_base=Fraction(1, 1000))
        output.set_chapters(
            [
                {"id": n, "start": n * 1000, "end": n * 1000 + 1000, "time_base": Fraction(1, 1000)}
                | {"metadata": {"title": f"chapter {n}"}}
                for n in range(4)
            ]
        )
        for packet in plain.demux(video=0):
            if packet.size:
                packet.stream = pictures
                output.mux(packet)
        for start, end, text in (
            (0, 500, b"gone"),
            (900, 1500, b"across"),
            (2000, 2500, b"within"),
            (3500, 3900, b"late"),
        ):
            line: av.Packet[av.stream.Stream] = av.Packet(text)
            line.stream, line.time_base, line.is_keyframe = lines, Fraction(1, 1000), True
            line.pts = line.dts = start
            line.duration = end - start
            output.mux(line)
    job = render_job(source, tmp_path, part_frames=20, trim=frames(30, 75)).into("matroska")
    result = tmp_path / "out.mkv"
    job.verify(result, job.stitch(result))
    with av.open(str(result)) as file:
        found = [
            (packet.pts, packet.duration, bytes(packet)) for packet in file.demux(subtitles=0) if packet.size
        ]
        chapters = [(c["start"] * c["time_base"], c["end"] * c["time_base"]) for c in file.chapters()]
        tags = {name.lower(): value for name, value in file.streams.video[0].metadata.items()}
    assert found == [(0, 300, b"across"), (800, 500, b"within")]
    assert [(float(a), float(b)) for a, b in chapters] == [(0.0, 0.8), (0.8, 1.8)]
    assert tags["timecode"] == "10:00:02:00"


def test_a_range_of_a_constant_rate_is_that_of_its_frames(tmp_path: Path) -> None:
    times = [0, 40, 80, 300, 310, 340, 400, 900, 940, 1000]
    source = make_clip(tmp_path / "clip.mkv", pts=times, time_base=Fraction(1, 1000))
    whole = make_constant(index_source(source), Fraction(25))
    assert whole.constant is not None and whole.frames == 27
    kept = trim_index(whole, frames(3, 21, 2))
    assert kept.pts == whole.pts[3:21:2]
    found: list[list[int]] = []
    for index, step in ((whole, 5), (kept, 1000), (kept, 4)):
        reader = ConstantReader(index)
        crcs: list[int] = []
        for start in range(0, index.frames, step):
            crcs += [frame_crc(f) for _, f in reader.read(start, min(start + step, index.frames))]
        found.append(crcs)
    assert found[1] == found[2] == found[0][3:21:2]
