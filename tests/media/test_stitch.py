"""Parts become one file: every frame at its time, sound where it was, and errors that say what to do."""

from __future__ import annotations

import csv
import pickle
import shutil
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.sidedata.sidedata import Type
from msgspec import structs

from farm.errors import InputError, OutputError, UsageError, VerificationError
from farm.media.clip import make_clip as make_numbered_clip
from farm.media.clip import read_number
from farm.media.stitch import DamagedPart, stitch
from farm.parts import PartHeader, PartPacket, PartReader, PartWriter
from farm.settings import VideoSettings
from tests.media.clips import CORPUS, corpus, make_clip
from tests.media.jobs import HASH, Job, render_job, side_data, start_seconds, video_times, with_sound

LONG = {"S10", "S11", "S36"}
FILES = ["S01", "S02", "S03", "S06", "S12", "S14", "S16", "S18", "S19", "S30", "S37"]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 numbered frames with sound: B-frames, a keyframe every 25."""
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    make_numbered_clip(path, frames=90, width=160, height=90, gop=25)
    return path


@pytest.fixture(scope="module")
def job(clip: Path) -> Job:
    """The clip rendered once; every container takes the same parts."""
    return render_job(clip, clip.parent, part_frames=20)


def manifest(name: str) -> dict[str, str]:
    corpus(name)
    with (CORPUS / "manifest.tsv").open(newline="") as file:
        return next(row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith(name))


def check_corpus_file(name: str, folder: Path) -> None:
    source, stated = corpus(name), manifest(name)
    job = render_job(source, folder, part_frames=48)
    picture_start, sound_start = start_seconds(source, "video"), start_seconds(source, "audio")
    half_a_frame = 0.5 / float(Fraction(*(job.index.frame_rate or (25, 1))))
    for container in ("mp4", "matroska"):
        output = folder / container
        facts = job.into(container).stitch(output)
        small = job.index.frames * job.index.width * job.index.height < 100_000_000
        found = job.into(container).verify(output, facts, decode="all" if small else "sample")
        assert found.frames == facts.frames == int(stated["pyav_decoded"])
        started = start_seconds(output, "video")
        assert started is not None and picture_start is not None
        assert abs(started - picture_start) < Fraction(1, 1000)
        if sound_start is not None:
            sound = start_seconds(output, "audio")
            assert sound is not None
            assert abs((sound - started) - (sound_start - picture_start)) < half_a_frame
        if container == "mp4":  # tells every time exactly
            with av.open(str(output)) as file:
                stream = file.streams.video[0]
                tick = stream.time_base or Fraction(1)
                shown = sorted(p.pts * tick for p in file.demux(stream) if p.pts is not None)
            assert shown == [pts * Fraction(*job.index.time_base) for pts in job.index.pts]
            if stated["v_duration"] and name != "S18":  # S18 gives its last frame no duration
                assert found.duration_seconds == pytest.approx(float(stated["v_duration"]), abs=1e-3)


@pytest.mark.parametrize("name", FILES)
def test_corpus_files_keep_their_frames_and_times(name: str, tmp_path: Path) -> None:
    check_corpus_file(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(LONG))
def test_long_corpus_files_keep_their_frames_and_times(name: str, tmp_path: Path) -> None:
    check_corpus_file(name, tmp_path)


@pytest.mark.parametrize("container", ["mp4", "mov", "matroska"])
def test_every_frame_is_in_its_place(job: Job, tmp_path: Path, container: str) -> None:
    output = tmp_path / "out"
    job.into(container).verify(output, job.into(container).stitch(output))
    with av.open(str(output)) as file:
        assert [read_number(frame) for frame in file.decode(video=0)] == list(range(90))


def test_webm_with_sound_encoded_once(clip: Path, tmp_path: Path) -> None:
    video = VideoSettings(encoder="libvpx-vp9", crf=45, options={"deadline": "realtime", "cpu-used": "8"})
    job = render_job(clip, tmp_path, video=video, container="webm", part_frames=30)
    output = tmp_path / "out.webm"
    facts = job.stitch(output)
    assert facts.streams == ("audio #1 (aac): encoded to libopus (webm can't hold aac)",)
    found = job.verify(output, facts)
    assert found.frames == 90
    assert start_seconds(output, "audio") == start_seconds(output, "video") == 0


def test_progress_runs_from_0_to_1_and_never_back(job: Job, tmp_path: Path) -> None:
    heard: list[float] = []
    stitch(job.index, job.settings, HASH, job.parts, tmp_path / "out", heard.append)
    assert heard == sorted(heard)
    assert len(heard) > 3 and heard[0] > 0 and heard[-1] == 1.0


def test_variable_frame_rate_keeps_every_time(tmp_path: Path) -> None:
    pts = [0, 7, 8, 100, 250, 251, 260, 900, 1000, 1001, 1500, 1517, 1800, 1900, 1999, 2000, 2500, 2600]
    source = make_clip(tmp_path / "vfr.mp4", pts=pts, time_base=Fraction(1, 600), gop=6, b_frames=3)
    job = render_job(source, tmp_path, part_frames=5, video=VideoSettings(preset="veryfast"))
    for container in ("mp4", "mov", "matroska"):
        output = tmp_path / container
        facts = job.into(container).stitch(output)
        job.into(container).verify(output, facts)
        exact = [Fraction(n, 600) for n in pts]
        tolerance = Fraction(1, 2000) if container == "matroska" else 0
        assert all(abs(a - b) <= tolerance for a, b in zip(video_times(output), exact, strict=True))


def test_many_short_parts_with_b_frames_have_rising_decoding_times(tmp_path: Path) -> None:
    """RG11: a rate that is not exact in the time base, and parts of 3 frames."""
    source = make_clip(tmp_path / "a.mkv", frames=61, rate=Fraction(30000, 1001), gop=10)
    job = render_job(source, tmp_path, part_frames=3, video=VideoSettings(preset="veryfast"))
    assert len(job.parts) > 15
    for container in ("mp4", "matroska"):
        output = tmp_path / container
        assert job.into(container).verify(output, job.into(container).stitch(output)).frames == 61
    with av.open(str(tmp_path / "mp4")) as file:
        dts = [packet.dts for packet in file.demux(video=0) if packet.dts is not None]
    assert dts == sorted(set(dts))


def test_times_before_zero_shift_all_streams_alike(job: Job, tmp_path: Path) -> None:
    """As from an edit list that lets the picture begin before the sound (RG08)."""
    early = 10_000  # ticks of 1/15360 s
    parts = [tmp_path / part.name for part in job.parts]
    for path, part in zip(parts, job.parts, strict=True):
        header, packets = read_part(part)
        write_part(path, header, [packet._replace(pts=packet.pts - early) for packet in packets])
    index = structs.replace(job.index, pts=tuple(pts - early for pts in job.index.pts))
    moved = Job(index, job.settings, tuple(parts))
    for container in ("mp4", "mov", "matroska"):
        output = tmp_path / container
        facts = moved.into(container).stitch(output)
        assert abs(Fraction(*facts.shift_seconds) - Fraction(early, 15_360)) < Fraction(1, 1000)
        assert "all times are 0.65" in facts.warnings[0]
        assert moved.into(container).verify(output, facts).frames == 90
        assert abs(sound_after_picture(output) - Fraction(early, 15_360)) < Fraction(1, 1000)


@pytest.mark.parametrize("later", [Fraction(-244, 1000), Fraction(0), Fraction(1, 100), Fraction(244, 1000)])
def test_sound_keeps_its_distance(clip: Path, tmp_path: Path, later: Fraction) -> None:
    """RG07: 244 ms apart in, 244 ms apart out."""
    source = with_sound(clip, tmp_path / "source.mkv", codec="libmp3lame", later_seconds=later)
    before = sound_after_picture(source)
    assert abs(before - later) < Fraction(1, 10)
    job = render_job(source, tmp_path, part_frames=90)
    for container in ("mp4", "mov", "matroska"):
        output = tmp_path / container
        job.into(container).stitch(output)
        assert abs(sound_after_picture(output) - before) < Fraction(1, 200)


def test_sound_longer_than_the_picture_adds_no_frame(tmp_path: Path) -> None:
    """RG04."""
    source = make_clip(tmp_path / "long.mp4", frames=20, audio_seconds=3)
    job = render_job(source, tmp_path)
    output = tmp_path / "out"
    assert job.verify(output, job.stitch(output)).frames == 20
    with av.open(str(output)) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) >= 3 * 48_000 - 1024


@pytest.mark.parametrize("codec", ["pcm_s16le", "libopus"])
def test_encoded_sound_is_where_it_was(tmp_path: Path, codec: str) -> None:
    """RG05, RG06: one piece, no gap at the joins, beep and lamp together."""
    numbered = tmp_path / "clip.mp4"
    make_numbered_clip(numbered, frames=90)
    source = with_sound(numbered, tmp_path / "source.mkv", codec=codec)
    job = render_job(source, tmp_path, part_frames=15).into("mov")
    output = tmp_path / "out"
    if codec == "pcm_s16le":
        job = job.into("mp4")  # mov takes PCM as it is
    facts = job.stitch(output)
    assert "encoded to aac" in facts.streams[0]
    job.verify(output, facts)
    with av.open(str(output)) as file:
        sound = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)])
    assert abs(len(sound) - 3 * 48_000) <= 2048
    for second in range(3):
        loud = np.flatnonzero(np.abs(sound[second * 48_000 : (second + 1) * 48_000]) > 0.2)
        assert loud[0] < 48_000 / 60 and abs(loud[-1] - 4_800) < 48_000 / 60


def test_no_audio_on_request(job: Job, tmp_path: Path) -> None:
    facts = job.into("mp4", audio="none").stitch(tmp_path / "out")
    assert facts.streams == ("audio #1 (aac): left out (no audio was asked for)",)
    with av.open(str(tmp_path / "out")) as file:
        assert [stream.type for stream in file.streams] == ["video"]


@pytest.mark.parametrize(
    "name", ["with space", 'it\'s "quoted"', "100% #1", "new\nline", "🎬✌️", "-dash", "a:b", "ünï"]
)
def test_any_path_will_do(clip: Path, tmp_path: Path, name: str) -> None:
    """RG29."""
    folder = tmp_path / name
    folder.mkdir()
    source = folder / f"{name}.mp4"
    shutil.copy(clip, source)
    job = render_job(source, folder, part_frames=45)
    output = folder / f"{name}.out.partial"
    assert job.verify(output, job.stitch(output), decode="sample").frames == 90


def test_rotation_and_reflection_survive(tmp_path: Path) -> None:
    job = render_job(corpus("S31"), tmp_path)
    for container in ("mp4", "mov", "matroska"):
        output = tmp_path / container
        facts = job.into(container).stitch(output)
        with av.open(str(output)) as file:
            frame = next(file.decode(video=0))
            matrix = side_data(frame, Type.DISPLAYMATRIX)
            assert matrix is not None
            assert tuple(memoryview(matrix).cast("i")) == job.index.display_matrix
        assert not facts.warnings


def test_pixel_shape_survives(tmp_path: Path) -> None:
    render_job(corpus("S01"), tmp_path, part_frames=60).stitch(tmp_path / "wide")
    with av.open(str(tmp_path / "wide")) as file:
        assert file.streams.video[0].sample_aspect_ratio == Fraction(64, 45)


def test_hdr_and_colours_survive(tmp_path: Path) -> None:
    """RG14."""
    job = render_job(corpus("S09"), tmp_path, video=VideoSettings(encoder="libx265", preset="ultrafast"))
    job.stitch(tmp_path / "out")
    with av.open(str(tmp_path / "out")) as file:
        assert file.streams.video[0].codec_context.codec_tag == "hvc1"
        frame = next(file.decode(video=0))
    assert (frame.color_primaries, frame.color_trc, frame.colorspace) == (9, 16, 9)
    assert side_data(frame, Type.MASTERING_DISPLAY_METADATA) is not None
    assert side_data(frame, Type.CONTENT_LIGHT_LEVEL) is not None


class TestDamage:
    """A part that can't be used is named; nothing is left behind."""

    def stitch(self, job: Job, parts: list[Path], folder: Path) -> Path:
        output = folder / "out"
        try:
            stitch(job.index, job.settings, HASH, parts, output, lambda fraction: None)
        finally:
            assert not output.exists()
        return output

    @pytest.mark.parametrize("damage", ["gone", "empty", "cut off", "flipped", "other settings"])
    def test_a_bad_part_is_named(self, job: Job, tmp_path: Path, damage: str) -> None:
        """RG15's files, met at the last moment."""
        victim = tmp_path / "victim"
        data = bytearray(job.parts[2].read_bytes())
        if damage == "flipped":
            data[len(data) // 2] ^= 1
        elif damage == "other settings":
            data = bytearray(bytes(data).replace(f'"{HASH}"'.encode(), b'"anothers"'))
        kept = {"empty": b"", "cut off": bytes(data[: len(data) // 2])}.get(damage, bytes(data))
        if damage != "gone":
            victim.write_bytes(kept)
        parts = [*job.parts[:2], victim, *job.parts[3:]]
        with pytest.raises(DamagedPart, match=r"part 2 .*rendered again") as caught:
            self.stitch(job, parts, tmp_path)
        assert caught.value.part == 2
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    def test_frames_at_other_times(self, job: Job, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        header, packets = read_part(job.parts[1])
        write_part(victim, header, [packets[0]._replace(pts=packets[0].pts + 1), *packets[1:]])
        with pytest.raises(DamagedPart, match="other times"):
            self.stitch(job, [job.parts[0], victim, *job.parts[2:]], tmp_path)

    def test_another_encoder_header(self, job: Job, tmp_path: Path) -> None:
        """RG13: one of them, and all of them."""
        odd = [tmp_path / f"odd-{number}" for number in range(len(job.parts))]
        for path, part in zip(odd, job.parts, strict=True):
            header, packets = read_part(part)
            write_part(path, structs.replace(header, extradata=header.extradata + b"\0"), packets)
        with pytest.raises(DamagedPart, match=r"part 1 .*header differs"):
            self.stitch(job, [job.parts[0], odd[1], *job.parts[2:]], tmp_path)
        with pytest.raises(VerificationError, match="headers differ"):
            self.stitch(job, odd, tmp_path)

    @pytest.mark.parametrize("order", [[0, 2, 1, 3], [0, 1, 1, 2], [0, 1], [1, 2], []])
    def test_parts_that_do_not_make_up_the_job(self, job: Job, tmp_path: Path, order: list[int]) -> None:
        with pytest.raises(VerificationError, match="part"):
            self.stitch(job, [job.parts[number] for number in order], tmp_path)

    def test_lost_frames_are_left_out_and_said(self, job: Job, tmp_path: Path) -> None:
        victim = tmp_path / "victim"
        header, packets = read_part(job.parts[1])
        last = max(packets, key=lambda packet: packet.pts)
        write_part(victim, header, [packet for packet in packets if packet is not last], lost=1)
        parts = [job.parts[0], victim, *job.parts[2:]]
        output = tmp_path / "out"
        facts = stitch(job.index, job.settings, HASH, parts, output, lambda fraction: None)
        assert facts.frames == 89 and facts.lost_pts == (last.pts,)
        assert "1 of 90 frames could not be decoded" in facts.warnings[0]
        assert job.verify(output, facts, decode="sample").frames == 89
        with pytest.raises(VerificationError, match="89 frames and should have 90"):
            job.verify(output)


class TestOutputErrors:
    def test_a_full_disk_is_said_and_nothing_is_left(self, job: Job, tmp_path: Path) -> None:
        """RG27."""
        output = tmp_path / "out"
        output.symlink_to("/dev/full")
        with pytest.raises(OutputError, match=r"the disk is full.*parts are kept"):
            job.stitch(output)
        assert not output.is_symlink() and all(part.exists() for part in job.parts)

    def test_a_folder_that_is_gone(self, job: Job, tmp_path: Path) -> None:
        with pytest.raises(OutputError, match="can't be written: No such file"):
            job.stitch(tmp_path / "gone" / "out")

    def test_an_input_that_is_gone(self, job: Job, tmp_path: Path) -> None:
        source = tmp_path / "source.mp4"
        shutil.copy(job.index.path, source)
        moved = Job(structs.replace(job.index, path=str(source)), job.settings, job.parts)
        source.unlink()
        with pytest.raises(InputError, match=r"source\.mp4 can't be read any more"):
            moved.stitch(tmp_path / "out")

    def test_frames_too_close_for_mkv(self, tmp_path: Path) -> None:
        times = [0, 40, 41, 80_000, 160_000]
        source = make_clip(tmp_path / "a.mp4", pts=times, time_base=Fraction(1, 90_000), b_frames=0)
        job = render_job(source, tmp_path)
        with pytest.raises(UsageError, match="less than a millisecond apart"):
            job.into("matroska").stitch(tmp_path / "out")
        assert job.verify(tmp_path / "out", job.stitch(tmp_path / "out")).frames == 5


def sound_after_picture(path: Path) -> Fraction:
    """Seconds from the first picture to the first sound."""
    sound, picture = start_seconds(path, "audio"), start_seconds(path, "video")
    assert sound is not None and picture is not None
    return sound - picture


def read_part(path: Path) -> tuple[PartHeader, list[PartPacket]]:
    with PartReader(path) as reader:
        return reader.header, list(reader.packets())


def write_part(path: Path, header: PartHeader, packets: list[PartPacket], lost: int = 0) -> None:
    with PartWriter(path, header) as writer:
        for packet in packets:
            writer.add(packet)
        writer.finish(frames=len(packets), lost_frames=lost)
