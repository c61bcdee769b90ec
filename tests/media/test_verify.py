"""A right file passes; each way of being wrong is found and said with its place."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import av
import pytest
from msgspec import structs

from farm.errors import VerificationError
from farm.media.contents import read_contents
from farm.media.verify import packets_sha256, verify
from tests.media.clips import corpus, make_clip
from tests.media.jobs import Job, render_job


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("job")
    return render_job(make_clip(folder / "clip.mp4", frames=60, audio_seconds=2.4), folder, part_frames=12)


@pytest.fixture(scope="module")
def output(job: Job) -> Path:
    path = job.parts[0].with_name("out")
    job.stitch(path)
    return path


def rewritten(source: Path, target: Path, *, drop: int | None = None, late: int | None = None) -> Path:
    """A copy of the video packets, one of them missing or shown a quarter of a frame late."""
    with av.open(str(source)) as file, av.open(str(target), "w", format="mp4") as copy:
        stream = copy.add_stream_from_template(file.streams.video[0])
        number = 0
        for packet in file.demux(video=0):
            if not packet.size:
                continue
            if number == late and packet.pts is not None:
                packet.pts += (packet.duration or 0) // 4
            if number != drop:
                packet.stream = stream
                copy.mux(packet)
            number += 1
    return target


@pytest.mark.parametrize("decode", ["sample", "all"])
def test_a_right_file_passes(job: Job, output: Path, decode: str) -> None:
    heard: list[float] = []
    found = verify(
        output,
        "mp4",
        job.index,
        decode="all" if decode == "all" else "sample",
        on_progress=heard.append,
        carried=["audio"],
    )
    assert found.frames == 60
    assert found.duration_seconds == pytest.approx(2.4)
    assert found.streams[0].startswith("video #0 (h264)") and found.streams[1].startswith("audio #1 (aac)")
    assert found.decoded_frames == 60 if decode == "all" else 5 < found.decoded_frames < 60
    assert heard == sorted(heard) and heard[-1] == 1.0


def test_without_a_source_the_file_is_compared_with_itself(output: Path) -> None:
    assert verify(output, "mp4", None, decode="all").frames == 60


def test_the_hash_is_of_the_packets_alone(job: Job, output: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256()
    with av.open(str(output)) as file:
        for packet in file.demux(video=0):
            digest.update(bytes(packet))
    assert packets_sha256(output) == packets_sha256(output, 0) == digest.hexdigest()
    assert verify(output, "mp4", job.index).packets_sha256 == digest.hexdigest()
    assert packets_sha256(output, 1) != digest.hexdigest()
    for container in ("mov", "matroska"):
        job.into(container, audio="none").stitch(tmp_path / container)
        assert packets_sha256(tmp_path / container) == digest.hexdigest()


def test_a_missing_frame_is_counted(job: Job, output: Path, tmp_path: Path) -> None:
    path = rewritten(output, tmp_path / "out", drop=30)
    with pytest.raises(VerificationError, match="it has 59 frames and should have 60"):
        verify(path, "mp4", job.index)


def test_a_frame_that_is_late_is_named(job: Job, output: Path, tmp_path: Path) -> None:
    path = rewritten(output, tmp_path / "out", late=36)
    with pytest.raises(VerificationError, match=r"frame \d+ is at 1\.\d+ s and should be at 1\.\d+ s"):
        verify(path, "mp4", job.index)


def test_a_file_that_begins_without_a_keyframe(job: Job, output: Path, tmp_path: Path) -> None:
    path = rewritten(output, tmp_path / "out", drop=0)
    with pytest.raises(VerificationError, match="doesn't begin with a keyframe"):
        verify(path, "mp4", None)


def test_a_constant_shift_is_no_difference(job: Job, output: Path) -> None:
    moved = structs.replace(job.index, pts=tuple(pts + 77 for pts in job.index.pts))
    assert verify(output, "mp4", moved).frames == 60


def test_rounded_times_pass_in_mkv_only(job: Job, tmp_path: Path) -> None:
    """Frames 1/30 s apart: mkv tells milliseconds."""
    source = make_clip(tmp_path / "clip.mp4", frames=30, rate=Fraction(30), time_base=Fraction(1, 90_000))
    rounded = render_job(source, tmp_path, container="matroska")
    rounded.stitch(tmp_path / "out")
    assert rounded.verify(tmp_path / "out").frames == 30
    off = list(rounded.index.pts)
    off[20] += 180  # 2 ms
    with pytest.raises(VerificationError, match="frame 20"):
        verify(tmp_path / "out", "matroska", structs.replace(rounded.index, pts=tuple(off)))


def test_a_stream_that_should_be_there(job: Job, tmp_path: Path) -> None:
    job.into("mp4", audio="none").stitch(tmp_path / "out")
    with pytest.raises(VerificationError, match=r"it has 0 audio streams .* should have 1"):
        verify(tmp_path / "out", "mp4", job.index, carried=["audio"])


@pytest.mark.parametrize("decode", ["sample", "all"])
def test_pictures_that_do_not_decode(job: Job, output: Path, tmp_path: Path, decode: str) -> None:
    """The data of the last pictures zeroed: counts and times are right, pictures are not."""
    with av.open(str(output)) as file:
        packets = [(p.pos or 0, p.size) for p in file.demux(video=0) if p.size]
    data = bytearray(output.read_bytes())
    for position, size in packets[-12:]:
        data[position : position + size] = bytes(size)
    path = tmp_path / "out"
    path.write_bytes(data)
    with pytest.raises(VerificationError, match="decode"):
        verify(path, "mp4", job.index, decode="all" if decode == "all" else "sample")


@pytest.mark.parametrize("content", [b"", b"not a video", None])
def test_a_file_that_can_not_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "out"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(VerificationError, match="can't be read back"):
        verify(path, "mp4", None)
    with pytest.raises(VerificationError, match="can't be read"):
        packets_sha256(path)


def test_a_file_that_is_cut_off(job: Job, tmp_path: Path) -> None:
    job.into("matroska").stitch(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / "out").write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(VerificationError):
        verify(tmp_path / "out", "matroska", job.index)


def test_how_a_film_is_to_be_shown_is_read() -> None:
    looks = read_contents(corpus("S31")).video.looks
    assert looks["rotation"] == "-90° and mirrored" and looks["size"] == "1080x720"
    looks = read_contents(corpus("S01")).video.looks
    assert looks["shape of the pixels"] == "64:45"
    assert looks["colours"] == "unspecified/unspecified/unspecified/unspecified"


def test_sound_alone_is_not_a_video(output: Path, tmp_path: Path) -> None:
    with av.open(str(output)) as file, av.open(str(tmp_path / "out"), "w", format="mp4") as copy:
        stream = copy.add_stream_from_template(file.streams.audio[0])
        for packet in file.demux(audio=0):
            if packet.size:
                packet.stream = stream
                copy.mux(packet)
    with pytest.raises(VerificationError, match="it has no video stream"):
        verify(tmp_path / "out", "mp4", None)
