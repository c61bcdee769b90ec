"""Every stream beside the video is taken along, converted, or left out with a reason."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import msgspec
import pytest

from farm.errors import InputError, UsageError
from farm.media.contents import read_contents
from farm.media.index import index_source
from farm.media.streams import StreamPlan, plan_streams
from farm.media.tasks import probe_job
from farm.settings import Audio, JobSettings, Moment, TrimSettings, VideoSettings
from tests.media.clips import corpus, make_clip
from tests.media.jobs import FAST, render_job

LINES = [(200, 900, "Hello, <i>you</i>"), (1200, 700, "zwei\nZeilen"), (2100, 400, "три ♥")]


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An mkv with two sounds, subtitles, a font, chapters and tags."""
    path = tmp_path_factory.mktemp("rich") / "rich.mkv"
    plain = make_clip(path.with_name("plain.mkv"), frames=75, audio_seconds=3)
    with av.open(str(plain)) as file, av.open(str(path), "w") as output:
        pictures = output.add_stream_from_template(file.streams.video[0])
        sounds = [output.add_stream_from_template(file.streams.audio[0]) for _ in range(2)]
        subtitles = output.add_mux_stream("subrip", time_base=Fraction(1, 1000))
        output.add_attachment("serif.ttf", "application/x-truetype-font", b"a font")
        sounds[0].metadata.update(language="eng", title="Original")
        sounds[1].metadata.update(language="deu", title="Kommentar")
        subtitles.metadata.update(language="rus")
        output.metadata.update(title="Ein Film", artist="uneven")
        tick = Fraction(1, 1000)
        output.set_chapters(
            [
                {"id": 1, "start": 0, "end": 1000, "time_base": tick, "metadata": {"title": "One"}},
                {"id": 2, "start": 1000, "end": 3000, "time_base": tick, "metadata": {"title": "Two"}},
            ]
        )
        for start, duration, text in LINES:
            line: av.Packet[av.stream.Stream] = av.Packet(text.encode())
            line.pts = line.dts = start
            line.duration, line.time_base, line.stream = duration, tick, subtitles
            line.is_keyframe = True
            output.mux(line)
        for packet in file.demux():
            if not packet.size:
                continue
            if packet.stream.type == "video":
                packet.stream = pictures
                output.mux(packet)
                continue
            data, times = bytes(packet), (packet.pts, packet.dts, packet.duration, packet.time_base)
            for sound in sounds:
                copy: av.Packet[av.stream.Stream] = av.Packet(data)
                copy.pts, copy.dts, copy.duration, copy.time_base = times
                copy.stream = sound
                output.mux(copy)
    return path


def words(path: Path, container: str) -> list[str]:
    return [choice.words for choice in plan(path, container).choices]


def plan(path: Path, container: str) -> StreamPlan:
    return plan_streams(path, index_source(path), container)


def test_mkv_takes_everything(rich: Path) -> None:
    assert words(rich, "matroska") == [
        "audio #1 (aac, eng): copied",
        "audio #2 (aac, deu): copied",
        "subtitle #3 (subrip, rus): copied",
        "attachment #4 (serif.ttf): attached",
    ]


def test_mp4_converts_the_subtitles_and_says_what_it_leaves_out(rich: Path) -> None:
    assert words(rich, "mp4")[2:] == [
        "subtitle #3 (subrip, rus): converted to mov_text (mp4 can't hold subrip)",
        "attachment #4 (serif.ttf): left out (mp4 has no attachments, but .mkv has)",
    ]


def test_webm_encodes_the_sound(rich: Path) -> None:
    assert words(rich, "webm")[:3] == [
        "audio #1 (aac, eng): encoded to libopus (webm can't hold aac)",
        "audio #2 (aac, deu): encoded to libopus (webm can't hold aac)",
        "subtitle #3 (subrip, rus): left out (webm can't hold subrip, but .mkv can)",
    ]


def test_a_transport_stream_takes_sound_and_says_what_it_leaves_out(rich: Path) -> None:
    found = plan(rich, "mpegts")
    assert [choice.action for choice in found.choices if choice.kind == "audio"] == ["copy", "copy"]
    assert any(
        "subrip, rus): left out (ts can't hold subrip, but .mkv can)" in lost.words for lost in found.lost
    )
    assert any(
        "chapters: left out (ts can't hold them, but .mp4, .mov and .mkv can)" in n for n in found.notes
    )


def test_broadcast_subtitles_stay_in_a_transport_stream(tmp_path: Path) -> None:
    """S23: MPEG-2 with DVB subtitles."""
    video = VideoSettings(encoder="mpeg2video", options={"b": "2M"})
    job = render_job(corpus("S23"), tmp_path, video=video, container="mpegts", part_frames=30)
    output = tmp_path / "out.ts"
    facts = job.stitch(output)
    job.verify(output, facts)
    with av.open(str(output)) as file:
        assert len(file.streams.subtitles) == 1
        assert file.streams.subtitles[0].codec_context.name == "dvbsub"


@pytest.mark.parametrize("container", ["mp4", "mov", "matroska"])
def test_what_was_planned_arrives(rich: Path, tmp_path: Path, container: str) -> None:
    job = render_job(rich, tmp_path, container=container, part_frames=75)
    output = tmp_path / "out"
    facts = job.stitch(output)
    assert facts.carried == ("audio", "audio", "subtitle")
    job.verify(output, facts)
    with av.open(str(output)) as file:
        assert file.metadata["title"] == "Ein Film"
        german = "ger" if container == "mov" else "deu"
        assert [stream.language for stream in file.streams.audio] == ["eng", german]
        assert [stream.language for stream in file.streams.subtitles] == ["rus"]
        chapters = [
            (float(c["start"] * (c["time_base"] or 1)), c["metadata"]["title"]) for c in file.chapters()
        ]
        assert chapters == [(0.0, "One"), (1.0, "Two")]
        assert len(file.streams.attachments) == (1 if container == "matroska" else 0)
    assert [(start, duration) for start, duration, _ in lines(output)] == [
        (start, duration) for start, duration, _ in LINES
    ]
    texts = [text for _, _, text in lines(output)]
    assert texts[1:] == [LINES[1][2], LINES[2][2]]
    assert texts[0] == ("Hello, <i>you</i>" if container == "matroska" else "Hello, you")


def test_subtitles_survive_the_way_there_and_back(rich: Path, tmp_path: Path) -> None:
    render_job(rich, tmp_path, part_frames=75).stitch(tmp_path / "there.mp4")
    (tmp_path / "back").mkdir()
    job = render_job(tmp_path / "there.mp4", tmp_path / "back", container="matroska", part_frames=75)
    job.stitch(tmp_path / "back.mkv")
    (subtitles,) = (s for s in read_contents(tmp_path / "there.mp4").others if s.kind == "subtitle")
    assert subtitles.packets == len(LINES), "the pauses between them, of which every muxer makes others"
    assert subtitles.header_sha256, "how they look, which Apple's players want to be told"
    assert [line[:2] for line in lines(tmp_path / "back.mkv")] == [line[:2] for line in LINES]
    assert lines(tmp_path / "back.mkv")[1][2] == LINES[1][2]
    with av.open(str(tmp_path / "back.mkv")) as file:
        assert file.streams.subtitles[0].codec_context.codec.canonical_name == "subrip"


def lines(path: Path) -> list[tuple[int, int, str]]:
    """Start and duration in milliseconds and the text of each subtitle."""
    found = []
    with av.open(str(path)) as file:
        stream = file.streams.subtitles[0]
        is_mov_text = stream.codec_context.codec.canonical_name == "mov_text"
        for packet in file.demux(stream):
            data = bytes(packet)[2:] if is_mov_text else bytes(packet)
            if data and packet.pts is not None:
                ticks = (packet.pts, packet.duration or 0)
                start, duration = (round(tick * packet.time_base * 1000) for tick in ticks)
                found.append((start, duration, data.decode()))
    return found


@pytest.mark.parametrize("container", ["mp4", "matroska", "mpegts"])
def test_damaged_sound_of_a_transport_stream_costs_what_is_damaged(container: str, tmp_path: Path) -> None:
    """It is taken out of its ADTS packing; one wrong byte there ended the job after all the work."""
    path = make_clip(tmp_path / "a.ts", frames=30, audio_seconds=1.2)
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as file:
        heads = [bytes(packet)[:9] for packet in file.demux(audio=0) if packet.size]
    data[next(data.find(head) for head in heads[10:] if data.count(head) == 1)] = 0
    path.write_bytes(data)
    job = render_job(path, tmp_path, part_frames=30, container=container)
    facts = job.stitch(tmp_path / "out")
    assert job.verify(tmp_path / "out", facts).frames == 30
    with av.open(str(tmp_path / "out")) as file:
        assert len(heads) - 4 <= sum(packet.size > 0 for packet in file.demux(audio=0)) < len(heads) + 4
    assert any("audio #1 (aac) can't be read" in words for words in facts.warnings) is (container != "mpegts")


@pytest.mark.parametrize(("container", "carried"), [("mp4", True), ("matroska", True), ("mov", False)])
def test_a_cover_picture_is_kept_where_it_can_be(tmp_path: Path, container: str, carried: bool) -> None:
    job = render_job(corpus("S35"), tmp_path, container=container)
    facts = job.stitch(tmp_path / "out")
    assert job.verify(tmp_path / "out", facts).frames == 1
    with av.open(str(tmp_path / "out"), metadata_errors="replace") as file:
        covers = [s for s in file.streams.video if s.disposition & av.stream.Disposition.attached_pic]
    assert len(covers) == carried
    assert ("left out" in facts.streams[-1]) is not carried
    assert ("hold it as a cover, but .mp4 and .mkv can" in facts.streams[-1]) is not carried


def test_multiple_streams_of_the_corpus(tmp_path: Path) -> None:
    """S32: two videos, two sounds, two subtitles, and sound that an edit list cuts at the start."""
    assert words(corpus("S32"), "mp4") == [
        "audio #1 (aac, eng): copied",
        "subtitle #2 (mov_text, eng): copied",
        "video #3 (h264, eng): left out (one video is rendered a job)",
        "audio #4 (aac, eng): copied",
        "subtitle #5 (mov_text, eng): copied",
    ]
    job = render_job(corpus("S32"), tmp_path, part_frames=325)
    for container in ("mp4", "matroska"):
        facts = job.into(container).stitch(tmp_path / container)
        assert facts.carried == ("audio", "subtitle", "audio", "subtitle")
        assert facts.shift_seconds == (0, 1)
        job.into(container).verify(tmp_path / container, facts, decode="sample")


def test_data_streams_and_chapters_of_the_corpus(tmp_path: Path) -> None:
    job = render_job(corpus("S34"), tmp_path)
    facts = job.stitch(tmp_path / "out")
    assert facts.streams[-1] == "data #2 (bin_data, eng): left out (data streams are not carried over)"
    with av.open(str(tmp_path / "out")) as file, av.open(str(corpus("S34"))) as source:
        titles = [chapter["metadata"]["title"] for chapter in source.chapters()]
        assert [chapter["metadata"]["title"] for chapter in file.chapters()] == titles
        assert len(titles) == 3


def test_transport_stream_sound_gets_a_header(tmp_path: Path) -> None:
    """S21: AAC without a header of its own, in a stream that starts at 1.48 s."""
    job = render_job(corpus("S21"), tmp_path, part_frames=60)
    for container in ("mp4", "matroska"):
        facts = job.into(container).stitch(tmp_path / container)
        job.into(container).verify(tmp_path / container, facts, decode="sample")
        with av.open(str(tmp_path / container)) as file:
            assert sum(frame.samples for frame in file.decode(audio=0)) > 4.9 * 48_000


def test_surround_sound_is_encoded_as_surround(tmp_path: Path) -> None:
    """S33: AC-3 into webm."""
    video = VideoSettings(encoder="libvpx-vp9", crf=50, options={"deadline": "realtime", "cpu-used": "8"})
    job = render_job(corpus("S33"), tmp_path, video=video, container="webm")
    with av.open(str(corpus("S33"))) as file:
        channels = file.streams.audio[0].channels
    job.stitch(tmp_path / "out")
    with av.open(str(tmp_path / "out")) as file:
        assert file.streams.audio[0].channels == channels
        assert sum(frame.samples for frame in file.decode(audio=0)) > 0


def _strung_together(folder: Path, video_starts: int) -> Path:
    """Two recordings of two seconds in one file; the times of the second's sound start anew."""
    parts = [
        make_clip(
            folder / f"{number}.ts",
            time_base=Fraction(1, 90_000),
            pts=[start + 3600 * n for n in range(50)],
            audio_seconds=2.0,
        )
        for number, start in enumerate((0, video_starts))
    ]
    path = folder / "both.ts"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def test_a_clock_that_starts_anew_is_refused_before_the_work_unless_there_is_no_sound(tmp_path: Path) -> None:
    path = _strung_together(tmp_path, 0)
    with pytest.raises(InputError, match=r"starts anew after 2\.\d s, .* --audio none"):
        probe_job(path, JobSettings(video=FAST))
    assert probe_job(path, JobSettings(video=FAST, audio="none")).index.frames == 100


def test_sound_whose_clock_starts_anew_never_comes_out_squeezed(tmp_path: Path) -> None:
    job = render_job(_strung_together(tmp_path, 50 * 3600), tmp_path)
    with pytest.raises(InputError, match="the clock of stream 1 of the input starts anew"):
        job.stitch(tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()


def test_what_is_left_out_is_said_before_the_work_with_the_container_that_could(tmp_path: Path) -> None:
    said = probe_job(corpus("S33"), JobSettings(video=FAST)).warnings
    assert any("left out (mp4 can't hold hdmv_pgs_subtitle, but .mkv can)" in words for words in said)
    with pytest.raises(UsageError, match=r"--audio copy: webm can't hold ac3, but .* can; --audio auto"):
        video = VideoSettings(encoder="libvpx-vp9")
        probe_job(corpus("S33"), JobSettings(video=video, container="webm", audio="copy"))


@pytest.mark.parametrize(("audio", "codec"), [("aac", "aac"), ("opus", "opus"), ("flac", "flac")])
def test_sound_is_encoded_as_asked(audio: Audio, codec: str, tmp_path: Path) -> None:
    source = make_clip(tmp_path / "a.mp4", frames=25, audio_seconds=1.0)
    job = render_job(source, tmp_path)
    job = replace(job, settings=msgspec.structs.replace(job.settings, audio=audio))
    facts = job.stitch(tmp_path / "out.mp4")
    assert "(asked for)" in facts.streams[0]
    with av.open(str(tmp_path / "out.mp4")) as file:
        assert file.streams.audio[0].codec_context.codec.canonical_name == codec


def _without_sound(path: Path, *, from_packet: int = 0) -> Path:
    """The transport stream with the contents of its sound overwritten, headers apart."""
    data = bytearray(path.read_bytes())
    number = 0
    for start in range(0, len(data), 188):
        if (data[start + 1] & 0x1F) << 8 | data[start + 2] != 0x101:
            continue
        begins, extended = data[start + 1] & 0x40, data[start + 3] & 0x20
        place = start + (5 + data[start + 4] if extended else 4)
        if begins:
            place += 9 + data[place + 8]
            number += 1
        if number > from_packet:
            data[place : start + 188] = b"\xa5" * (start + 188 - place)
    path.write_bytes(data)
    return path


def test_sound_of_which_nothing_is_left_is_left_out_and_said_before_the_work(tmp_path: Path) -> None:
    """It ended the job at the stitch, copied; encoded, it came out as a stream without anything in it."""
    source = make_clip(tmp_path / "a.ts", frames=50, time_base=Fraction(1, 90_000), audio_seconds=2.0)
    _without_sound(source)
    choices: tuple[Audio, ...] = ("auto", "copy", "aac")
    for audio in choices:
        said = probe_job(source, JobSettings(video=FAST, audio=audio)).warnings
        assert any("(aac): left out (none of it can be decoded" in words for words in said), said
    assert not any("audio" in w for w in probe_job(source, JobSettings(video=FAST, audio="none")).warnings)
    job = render_job(source, tmp_path)
    for container in ("mp4", "matroska"):
        facts = job.into(container).stitch(tmp_path / container)
        job.into(container).verify(tmp_path / container, facts)
        with av.open(str(tmp_path / container)) as file:
            assert [stream.type for stream in file.streams] == ["video"]


def test_whether_sound_is_left_is_asked_of_the_range_alone(tmp_path: Path) -> None:
    source = make_clip(tmp_path / "a.ts", frames=100, time_base=Fraction(1, 90_000), audio_seconds=4.0)
    _without_sound(source, from_packet=3)
    trims = TrimSettings(stop=Moment(frame=20)), TrimSettings(start=Moment(frame=80)), TrimSettings()
    first, last, all_of_it = (JobSettings(video=FAST, trim=trim) for trim in trims)
    assert probe_job(source, first).streams == ("audio #1 (aac): copied",)
    assert probe_job(source, all_of_it).streams == ("audio #1 (aac): copied",)
    assert "left out (none of it" in " ".join(probe_job(source, last).warnings)
