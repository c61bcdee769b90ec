"""A lamp that lights while a tone sounds: the distance between the two is the source's in every container,
whether the sound is copied or encoded (to under half a frame; measured far below)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from farm.errors import UsageError
from farm.media.clip import make_clip
from farm.settings import Audio, Moment, TrimSettings, VideoSettings
from tests.media.jobs import FAST, Job, render_job, with_sound

FPS = 30
HALF_A_FRAME = Fraction(1, 2 * FPS)
SIZE = {"width": 104, "height": 64}
VP9 = VideoSettings(encoder="libvpx-vp9", options={"cpu-used": "8", "deadline": "realtime"})
EXTENSIONS = {"mp4": ".mp4", "mov": ".mov", "matroska": ".mkv", "webm": ".webm", "mpegts": ".ts"}


def last_flash(path: Path) -> Fraction:
    """When the lamp lights for the last time."""
    found: Fraction | None = None
    was_lit = True
    with av.open(str(path)) as file:
        for frame in file.decode(video=0):
            luma = frame.to_ndarray(format="gray")
            size = 2 * (SIZE["height"] // 14) + 1
            middle = size // 2 + size // 2
            lit = int(luma[middle, luma.shape[1] - middle - 1]) > 200
            if lit and not was_lit:
                assert frame.pts is not None and frame.time_base is not None
                found = frame.pts * frame.time_base
            was_lit = lit
    assert found is not None, "the lamp never lights"
    return found


def last_beep(path: Path) -> Fraction:
    """When the tone begins for the last time, after 40 ms of silence, to about 2 ms."""
    blocks = list(_loudness(path))
    loud = [level > 0.08 for _, level in blocks]
    starts = (n for n in range(len(loud) - 1, 19, -1) if loud[n] and not any(loud[n - 20 : n]))
    return blocks[next(starts)][0]


def _loudness(path: Path) -> Iterator[tuple[Fraction, float]]:
    """Of every 96 samples, with the time they are heard at."""
    with av.open(str(path)) as file:
        stream = file.streams.audio[0]
        for frame in file.decode(stream):
            assert frame.pts is not None and frame.time_base is not None
            start = frame.pts * frame.time_base
            samples = _mono(frame)
            for number in range(0, len(samples) - 95, 96):
                at = start + Fraction(number, frame.sample_rate)
                yield at, float(np.sqrt(np.mean(samples[number : number + 96] ** 2)))


def _mono(frame: av.AudioFrame) -> NDArray[np.float64]:
    array = frame.to_ndarray()
    scale = np.iinfo(array.dtype).max if array.dtype.kind == "i" else 1
    rows = array if frame.format.is_planar else array.reshape(-1, frame.layout.nb_channels).T
    return np.asarray(rows[0] / scale, dtype=np.float64)


def distance(path: Path) -> Fraction:
    return last_beep(path) - last_flash(path)


def _moved(source: Path, target: Path, seconds: Fraction) -> Path:
    """A copy in which everything begins later."""
    with av.open(str(source)) as file, av.open(str(target), "w") as output:
        streams = {stream.index: output.add_stream_from_template(stream) for stream in file.streams}
        for packet in file.demux():
            if packet.size and packet.pts is not None and packet.dts is not None:
                ticks = round(seconds / packet.time_base)
                packet.pts, packet.dts = packet.pts + ticks, packet.dts + ticks
                packet.stream = streams[packet.stream.index]
                output.mux(packet)
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("offset")


@pytest.fixture(scope="module")
def sources(folder: Path) -> dict[str, Path]:
    plain = folder / "plain.mp4"
    make_clip(plain, frames=75, fps=FPS, gop=15, **SIZE)
    late = Fraction(1, 4)
    return {
        "aac.mp4": plain,
        "late.mp4": with_sound(plain, folder / "late.mp4", later_seconds=late),
        "opus.mkv": with_sound(plain, folder / "opus.mkv", codec="libopus"),
        "pcm.mov": with_sound(plain, folder / "pcm.mov", codec="pcm_s16le", later_seconds=late),
        "flac.mkv": with_sound(plain, folder / "flac.mkv", codec="flac"),
        "mp3.mp4": with_sound(plain, folder / "mp3.mp4", codec="mp3"),
        "start.ts": _moved(plain, folder / "start.ts", Fraction(33, 10)),
    }


@pytest.fixture(scope="module")
def job_of(folder: Path, sources: dict[str, Path]) -> Callable[[str, str], Job]:
    """By source and container; each is rendered once for all containers that can hold it."""

    @functools.cache
    def rendered(name: str, kind: str) -> Job:
        parts = folder / f"{name}-{kind}"
        parts.mkdir()
        return render_job(sources[name], parts, video=VP9 if kind == "vp9" else FAST, part_frames=25)

    return lambda name, container: rendered(name, "vp9" if container == "webm" else "h264")


@pytest.fixture(scope="module")
def cut_job_of(folder: Path, sources: dict[str, Path]) -> Callable[[str, str], Job]:
    @functools.cache
    def rendered(name: str, kind: str) -> Job:
        parts = folder / f"cut-{name}-{kind}"
        parts.mkdir()
        video = VP9 if kind == "vp9" else FAST
        return render_job(sources[name], parts, video=video, part_frames=25, trim=CUT)

    return lambda name, container: rendered(name, "vp9" if container == "webm" else "h264")


CASES: list[tuple[str, Audio]] = [
    *(("mp4", audio) for audio in ("auto", "copy", "aac", "opus", "flac")),  # type: ignore[list-item]
    *(("mov", audio) for audio in ("auto", "aac")),  # type: ignore[list-item]
    *(("matroska", audio) for audio in ("auto", "copy", "aac", "opus", "flac")),  # type: ignore[list-item]
    *(("mpegts", audio) for audio in ("auto", "copy", "aac", "opus")),  # type: ignore[list-item]
    *(("webm", audio) for audio in ("auto", "opus")),  # type: ignore[list-item]
]


@pytest.mark.slow
@pytest.mark.parametrize(("container", "audio"), CASES, ids=str)
def test_flash_and_beep_keep_their_distance(
    job_of: Callable[[str, str], Job],
    sources: dict[str, Path],
    tmp_path: Path,
    container: str,
    audio: Audio,
) -> None:
    kept = [keeps_its_distance(job_of, sources, tmp_path, name, container, audio) for name in sources]
    assert sum(kept) >= 4


@pytest.mark.parametrize(
    ("name", "container", "audio"),
    [
        ("aac.mp4", "mp4", "copy"),
        ("late.mp4", "matroska", "copy"),
        ("aac.mp4", "matroska", "aac"),  # its priming was in nobody's way, and there was a traceback
        ("late.mp4", "mp4", "opus"),
        ("late.mp4", "mpegts", "copy"),
    ],
)
def test_a_flash_and_a_beep(
    job_of: Callable[[str, str], Job],
    sources: dict[str, Path],
    tmp_path: Path,
    name: str,
    container: str,
    audio: Audio,
) -> None:
    assert keeps_its_distance(job_of, sources, tmp_path, name, container, audio)


def keeps_its_distance(
    job_of: Callable[[str, str], Job],
    sources: dict[str, Path],
    folder: Path,
    name: str,
    container: str,
    audio: Audio,
) -> bool:
    """False: the sound can't be copied into that container, and that was said."""
    job = job_of(name, container)
    settings = msgspec.structs.replace(job.settings, container=container, audio=audio)
    output = folder / f"{name}{EXTENSIONS[container]}"
    try:
        facts = replace(job, settings=settings).stitch(output)
    except UsageError as refusal:
        assert audio == "copy" and "can't hold" in str(refusal), refusal
        return False
    replace(job, settings=settings).verify(output, facts)
    assert "audio" in facts.carried
    moved = distance(output) - distance(sources[name])
    print(f"{name} into {container}, {audio}: {float(moved * 1000):+.1f} ms")
    assert abs(moved) < HALF_A_FRAME, f"{name}: {float(moved * 1000):+.1f} ms"
    return True


#: Begins while the lamp is lit and the tone sounds, in the middle of a group of pictures.
CUT = TrimSettings(start=Moment(frame=31))
CUT_CASES: list[tuple[str, Audio]] = [
    ("webm", "auto"),
    ("webm", "opus"),
    ("matroska", "copy"),
    ("matroska", "flac"),
    ("mp4", "copy"),
    ("mp4", "aac"),
    ("mov", "auto"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("container", "audio"), CUT_CASES, ids=str)
def test_a_range_keeps_the_distance(
    sources: dict[str, Path],
    cut_job_of: Callable[[str, str], Job],
    tmp_path: Path,
    container: str,
    audio: Audio,
) -> None:
    kept = [keeps_its_distance(cut_job_of, sources, tmp_path, name, container, audio) for name in sources]
    assert sum(kept) >= 4


@pytest.mark.parametrize(("name", "audio"), [("opus.mkv", "auto"), ("late.mp4", "opus")])
def test_a_range_in_webm_keeps_the_distance(
    sources: dict[str, Path],
    cut_job_of: Callable[[str, str], Job],
    tmp_path: Path,
    name: str,
    audio: Audio,
) -> None:
    """Copied, Opus needs packets before the range that nobody is to hear."""
    assert keeps_its_distance(cut_job_of, sources, tmp_path, name, "webm", audio)


def test_the_source_itself_is_in_step(sources: dict[str, Path]) -> None:
    """What is measured is there to be measured."""
    assert abs(distance(sources["aac.mp4"])) < Fraction(5, 1000)
    assert abs(distance(sources["late.mp4"]) - Fraction(1, 4)) < Fraction(5, 1000)
    assert abs(distance(sources["start.ts"])) < Fraction(5, 1000)
