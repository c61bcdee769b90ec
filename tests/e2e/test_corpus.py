"""Real files through the whole farm: the frames and times of one pass over the source, audio in step."""

from __future__ import annotations

import csv
import zlib
from fractions import Fraction
from pathlib import Path

import av
import pytest

from tests.e2e.command import run

pytestmark = pytest.mark.slow

FILES = ["S01", "S02", "S03", "S06", "S10", "S11", "S12", "S14", "S16", "S18", "S19", "S30", "S36", "S37"]
LONG = {"S10", "S11"}
TWO = ("--workers", "2")
UNEVEN = ("--fleet", "30,30,12,2")


@pytest.fixture
def source(corpus: Path, request: pytest.FixtureRequest) -> Path:
    return next(corpus.glob(f"{request.param}-*"))


def expected_frames(source: Path) -> int:
    with (source.parent / "manifest.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["file"] == source.name:
                return int(row["pyav_decoded"])
    raise AssertionError(f"{source.name} is not in the manifest")


def decoded(path: Path) -> list[tuple[Fraction, int]]:
    """(time, hash) of every frame of one pass, by nothing of ours."""
    frames = []
    with av.open(str(path)) as container:
        video = container.streams.video[0]
        video.thread_count = 1
        for frame in container.decode(video):
            assert frame.pts is not None and frame.time_base is not None
            crc = 0
            for plane, (width, height) in zip(frame.planes, _sizes(frame), strict=True):
                data = memoryview(plane)
                for row in range(height):
                    start = row * plane.line_size
                    crc = zlib.crc32(data[start : start + width], crc)
            frames.append((frame.pts * frame.time_base, crc))
    return frames


def _sizes(frame: av.VideoFrame) -> list[tuple[int, int]]:
    """Bytes a row and rows of each plane, without padding."""
    sizes = []
    for number, plane in enumerate(frame.planes):
        component = frame.format.components[number]
        sizes.append((component.width * ((component.bits + 7) // 8), plane.height))
    return sizes


def times(path: Path) -> list[Fraction]:
    with av.open(str(path)) as container:
        video = container.streams.video[0]
        packets = [p for p in container.demux(video) if p.pts is not None and not p.is_discard]
        return sorted(p.pts * p.time_base for p in packets if p.pts is not None and p.time_base is not None)


def first_times(path: Path) -> tuple[Fraction, Fraction | None]:
    """When the first picture is shown and the first sound is heard."""
    found: dict[str, Fraction] = {}
    for kind in ("video", "audio"):
        with av.open(str(path)) as container:
            streams = [stream for stream in container.streams if stream.type == kind]
            if streams:
                for frame in container.decode(streams[0]):
                    assert frame.pts is not None and frame.time_base is not None
                    found[kind] = frame.pts * frame.time_base
                    break
    return found["video"], found.get("audio")


@pytest.mark.parametrize("fleet", [TWO, UNEVEN], ids=["two", "uneven"])
@pytest.mark.parametrize("source", FILES, indirect=True)
def test_frames_times_and_audio(source: Path, fleet: tuple[str, ...], tmp_path: Path) -> None:
    if source.name[:3] in LONG and fleet is UNEVEN:
        pytest.skip("long: on two workers only")
    part = "240" if source.name[:3] in LONG else "24"
    quick = ("--preset", "ultrafast", "--crf", "35", "--part", part)
    command = run("render", source, "-o", "out.mp4", *quick, *fleet, cwd=tmp_path)
    assert command.process.returncode == 0, command.stderr
    before, after = times(source), times(tmp_path / "out.mp4")
    assert len(after) == expected_frames(source)
    shift = after[0] - before[0]
    assert all(new - old == shift for new, old in zip(after, before, strict=True)), "times differ"
    video, audio = first_times(source)
    new_video, new_audio = first_times(tmp_path / "out.mp4")
    assert (audio is None) == (new_audio is None)
    if audio is not None and new_audio is not None and len(before) > 1:
        frame = (before[-1] - before[0]) / (len(before) - 1)
        assert abs((new_video - new_audio) - (video - audio)) < frame / 2


@pytest.mark.parametrize("source", [name for name in FILES if name not in LONG], indirect=True)
def test_lossless_frames_are_those_of_one_pass(source: Path, tmp_path: Path) -> None:
    lossless = ("-e", "ffv1", "--part", "24", *TWO)
    command = run("render", source, "-o", "out.mkv", *lossless, cwd=tmp_path)
    assert command.process.returncode == 0, command.stderr
    before, after = decoded(source), decoded(tmp_path / "out.mkv")
    assert [crc for _, crc in after] == [crc for _, crc in before]
    shift = after[0][0] - before[0][0]
    for (new, _), (old, _) in zip(after, before, strict=True):
        assert abs(new - old - shift) <= Fraction(1, 1000), "a time is off by more than mkv's millisecond"
