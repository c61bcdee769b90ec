"""The source index: the frames a file really has, and clear refusals."""

from __future__ import annotations

import csv
import time
from fractions import Fraction
from pathlib import Path

import av
import pytest

from farm.errors import InputError
from farm.media.index import index_source
from farm.media.read import decode, open_video, real_packets
from farm.media.times import usable_times
from farm.source import SourceIndex, load_index, save_index
from tests.media.clips import CORPUS, corpus, make_clip

REFUSED = ("S39", "S40", "S43", "S44", "S45", "S46", "S49")


def manifest() -> list[dict[str, str]]:
    if not CORPUS.is_dir():
        return []
    with (CORPUS / "manifest.tsv").open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["file"].startswith("S")]


def usable() -> list[dict[str, str]]:
    rows = [row for row in manifest() if row["file"][:1] == "S" and row["file"][1:3].isdigit()]
    return [row for row in rows if not row["file"].startswith(REFUSED)]


def one_pass(index: SourceIndex) -> list[int | None]:
    container, video = open_video(index.path, index.stream)
    with container:
        return [frame.pts for frame in decode(video, real_packets(container, video), lambda: None)]


@pytest.mark.parametrize("row", usable(), ids=lambda row: row["file"][:3])
def test_the_corpus_has_the_frames_its_manifest_states(row: dict[str, str]) -> None:
    index = index_source(CORPUS / row["file"])
    assert index.frames == int(row["pyav_decoded"])
    assert list(index.pts) == sorted(set(index.pts))
    assert f"{index.width}x{index.height}" == row["pyav_sizes"]
    assert index.pix_fmt == row["pyav_fmts"]
    assert f"{index.time_base[0]}/{index.time_base[1]}" == row["time_base"]
    if index.frames * index.width * index.height < 65_000_000:  # test_read.py decodes the others
        decoded = one_pass(index)
        assert sorted(time for time in decoded if time is not None) == list(index.pts)
    assert index.linear == row["file"].startswith(("S29", "S47", "S48"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("S39", "none of its vp9 video can be decoded"),
        ("S40", "can't be opened as a video"),
        ("S43", "is empty (0 bytes)"),
        ("S44", "is a Git LFS pointer"),
        ("S45", "only a cover picture"),
        ("S46", "no video stream"),
        ("S49", "none of its webp video can be decoded"),
    ],
)
def test_what_is_no_video_is_refused_in_one_sentence_and_fast(name: str, words: str) -> None:
    path = corpus(name)
    begun = time.monotonic()
    with pytest.raises(InputError) as refusal:
        index_source(path)
    assert words in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert time.monotonic() - begun < 2


def test_other_things_that_are_no_video_are_refused_too(tmp_path: Path) -> None:
    text = tmp_path / "notes.mp4"
    text.write_text("#EXTM3U\n#EXTINF:10\n/etc/passwd\n" * 50)
    noise = tmp_path / "noise.mp4"
    noise.write_bytes(bytes(range(256)) * 64)
    for path, words in [
        (text, "is text, not a video"),
        (noise, "can't be opened as a video"),
        (tmp_path, "is a folder"),
        (tmp_path / "nothing.mp4", "there is no file"),
    ]:
        with pytest.raises(InputError, match=words):
            index_source(path)


def test_a_stream_can_be_chosen() -> None:
    path = corpus("S32")
    assert (index_source(path).stream, index_source(path).width) == (0, 320)
    second = index_source(path, stream=3)
    assert (second.stream, second.width, second.frames) == (3, 480, 390)
    assert [other.index for other in second.others] == [0, 1, 2, 4, 5]
    with pytest.raises(InputError, match="no video in stream 1; its video streams: 0, 3"):
        index_source(path, stream=1)


def test_an_empty_track_is_passed_over(tmp_path: Path) -> None:
    assert index_source(corpus("S41")).stream == 0
    with pytest.raises(InputError, match="not a single frame"):
        index_source(corpus("S41"), stream=1)


@pytest.mark.parametrize(
    "name", ["a clip: take 2.mp4", "100%d #1 'quoted' \"x\".mp4", "-y.mp4", "ünïcode 🎬.mp4"]
)
def test_names_are_only_names(tmp_path: Path, name: str) -> None:
    path = make_clip(tmp_path / name, frames=5)
    assert index_source(path).frames == 5


@pytest.mark.parametrize(
    ("name", "codec", "linear"),
    [
        ("a.mkv", "libx264", ""),
        ("a.ts", "libx264", ""),
        ("a.flv", "libx264", ""),
        ("a.avi", "mpeg4", ""),
        ("a.avi", "libx264", "AVI keeps no display times for h264"),
        ("a.h264", "libx264", "a raw stream carries no times"),
    ],
)
def test_frames_and_keyframes_of_containers(tmp_path: Path, name: str, codec: str, linear: str) -> None:
    clock = {"a.ts": Fraction(1, 90000), "a.flv": Fraction(1, 1000)}.get(name)
    index = index_source(make_clip(tmp_path / name, codec=codec, time_base=clock))
    assert index.frames == 60
    assert index.linear_reason == linear
    assert index.keys[:5] == (() if name == "a.h264" else (0, 12, 24, 36, 48))
    spacing = {later - earlier for earlier, later in zip(index.pts, index.pts[1:], strict=False)}
    assert spacing == {Fraction(1, 25) / Fraction(*index.time_base)}


def test_variable_frame_times_are_kept(tmp_path: Path) -> None:
    times = (0, 1, 5, 7, 8, 20, 31, 40)
    index = index_source(make_clip(tmp_path / "a.mp4", pts=times, time_base=Fraction(1, 90000)))
    assert index.pts == times
    assert index.time_base == (1, 90000)


def test_repeated_times_make_the_job_linear(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mkv", frames=20, b_frames=0)
    copy = tmp_path / "b.mkv"
    with av.open(str(path)) as source, av.open(str(copy), "w") as output:
        video = source.streams.video[0]
        stream = output.add_stream_from_template(video)
        for number, packet in enumerate(p for p in source.demux(video) if p.size):
            packet.stream = stream
            packet.pts = packet.dts = (number - number % 2) * 40
            output.mux(packet)
    index = index_source(copy)
    assert index.frames == 20
    assert "share a display time" in index.linear_reason
    assert list(index.pts) == sorted(set(index.pts))


@pytest.mark.parametrize("sound_seconds", [0, 10])
def test_a_cut_off_file_is_said_to_be_one(sound_seconds: float, tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mkv", frames=250, audio_seconds=sound_seconds)
    whole = index_source(path)
    assert whole.damage == whole.warnings == ()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    cut = index_source(path)
    assert 0 < cut.frames < 250
    assert any("probably cut off" in damage.words for damage in cut.damage)


def test_an_mp4_that_was_cut_off_before_its_index_says_so(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mp4", frames=20)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"moov") - 200])
    with pytest.raises(InputError, match=r"a\.mp4 has no index \(moov\): its recording was cut off"):
        index_source(path)


def test_sound_that_is_longer_is_no_sign_of_a_cut(tmp_path: Path) -> None:
    assert index_source(make_clip(tmp_path / "a.mkv", frames=50, audio_seconds=10)).damage == ()


def test_ticks_that_an_ivf_header_counts_promise_no_frames(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.ivf", codec="libvpx", b_frames=0, frames=20)
    data = bytearray(path.read_bytes())
    data[24:28] = (10_240).to_bytes(4, "little")  # as FFmpeg 5.1 writes it
    path.write_bytes(data)
    assert index_source(path).damage == ()


def test_what_a_phone_says_of_its_picture_is_kept(tmp_path: Path) -> None:
    hdr = index_source(corpus("S09"))
    assert hdr.mastering_display is not None
    assert hdr.content_light == (1100, 180)
    assert (hdr.color_primaries, hdr.color_trc, hdr.colorspace) == (9, 16, 9)
    turned = index_source(corpus("S31"))
    assert turned.display_matrix[:5] == (0, 65536, 0, 65536, 0)
    save_index(hdr, tmp_path / "index")
    assert load_index(tmp_path / "index") == hdr


def test_transparency_that_is_not_decoded_is_said() -> None:
    assert any("transparency" in words for words in index_source(corpus("S17")).warnings)
    assert not any("transparency" in words for words in index_source(corpus("S27")).warnings)


def test_times_are_made_usable() -> None:
    rate = Fraction(1, 40)
    assert usable_times([0, 40, 90], rate) == ((0, 40, 90), "")
    assert usable_times([0, 80, 40, 160, 120], rate) == ((0, 40, 80, 120, 160), "")
    nudged, note = usable_times([0, 40, 40, 80], rate)
    assert nudged == (0, 40, 41, 80)
    assert "share a time" in note
    even, note = usable_times([7, None, None], rate)
    assert even == (7, 47, 87)
    assert "spaced evenly" in note
    restarted, note = usable_times([*range(0, 4000, 40), *range(0, 4000, 40)], rate)
    assert restarted == tuple(range(0, 8000, 40))
    assert usable_times([3, 4, 5], rate) == ((3, 4, 5), "")
    assert usable_times([3, 4, 5], rate, raw=True)[0] == (3, 43, 83)  # Dirac's: the pictures' numbers
    assert usable_times([0, 40, 80], rate, raw=True) == ((0, 40, 80), "")


def test_a_file_that_can_be_read_up_to_a_point_only_is_used_up_to_there(tmp_path: Path) -> None:
    """Where all of it has to be decoded at once, the demuxer's error came out as a traceback."""
    path = make_clip(tmp_path / "a.apng", codec="apng", pix_fmt="rgba", frames=20, b_frames=0)
    data = bytearray(path.read_bytes())
    place = data.index(b"fcTL", len(data) // 2)
    data[place + 4 : place + 64] = bytes(60)
    path.write_bytes(data)
    index = index_source(path)
    assert 0 < index.frames < 20
    assert any("up to a point only" in damage.words for damage in index.damage)
