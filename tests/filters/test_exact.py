"""What filters make of parts is what one pass over the film makes, or they are refused."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from farm.errors import InputError, UsageError
from farm.filters.offers import OFFERS
from farm.media.filtered import filter_index
from farm.media.index import index_source
from farm.media.pictures import open_pictures
from farm.media.read import ReadError
from farm.media.sequence import Reader, open_reader
from farm.settings import JobSettings, Moment, SourceSettings, TrimSettings
from farm.source import SourceIndex
from farm.trim import trim_index
from tests.filters.compare import by_parts, differences, in_one_pass, settings
from tests.filters.examples import examples, graphs, make_files
from tests.media.clips import make_clip

#: Some of each kind, with what has gone wrong or is most used.
SAMPLE = """
    scale=32:-2,fade=t=in:d=1
    yadif
    tmix=frames=4:weights='1 2 3 4'
    deflicker,bwdif=mode=send_frame
    crop=32:32:x='16+8*sin(t)':y=0
    split[a][b];[b]hflip[c];[a][c]hstack
    movie=logo.png[logo];[in][logo]overlay=W-w-4:t
    lut3d=warm.cube
    drawbox=4:4:20:20:red@0.5:enable='between(t,0.5,1.5)'
""".strip().splitlines()
ONE_PASS = ["crop=32:32:x=mod(n\\,20)", "lagfun", "select='not(mod(n,3))'", "fps=30000/1001", "yadif=1"]
EVERYTHING = os.environ.get("UNEVEN_ALL_FILTERS")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filters")
    make_files(folder)
    return folder


@pytest.fixture(scope="module")
def film(files: Path) -> SourceIndex:
    return index_source(make_clip(files / "film.mp4", frames=300 if EVERYTHING else 60, gop=16))


@pytest.mark.parametrize("graph", map(str.strip, SAMPLE))
def test_parts_have_the_frames_of_one_pass(
    graph: str, film: SourceIndex, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)  # FFmpeg's own reading of a graph starts names of files here
    _, wrong = differences(film, settings(graph, files), (12, 48))
    assert not wrong


def test_parts_out_of_order_and_read_from_the_start_are_the_same(film: SourceIndex, files: Path) -> None:
    job = settings("tmix=frames=3,deflicker", files)
    index = filter_index(film, job)
    expected = in_one_pass(film, job)
    assert by_parts(index, job, 7, backwards=True) == expected
    assert by_parts(index, job, 7, linear=True) == expected


def test_a_warm_up_between_parts_in_order_is_not_decoded_twice(film: SourceIndex, files: Path) -> None:
    job = settings("tmix=frames=5,deflicker", files)
    index = filter_index(film, job)
    decoded = 0

    def count() -> None:
        nonlocal decoded
        decoded += 1

    pictures = open_pictures(index, job, decoded=count)
    for start in range(0, film.frames, 12):
        assert len(list(pictures.read(start, min(start + 12, film.frames)))) == 12
    pictures.close()
    assert decoded == film.frames


@pytest.mark.parametrize("graph", ["tmix=frames=4", "yadif", "atadenoise=s=5", "fftdnoiz=next=1", "dedot"])
def test_every_frame_of_a_warm_up_is_needed(graph: str, film: SourceIndex, files: Path) -> None:
    job = settings(graph, files)
    index = filter_index(film, job)
    expected = in_one_pass(film, job)
    assert by_parts(index, job, 12) == expected
    assert index.filtered is not None
    for side in ("before", "after"):
        if needed := getattr(index.filtered, side):
            less = msgspec.structs.replace(index.filtered, **{side: needed - 1})
            assert by_parts(msgspec.structs.replace(index, filtered=less), job, 12) != expected


@pytest.mark.parametrize("graph", ONE_PASS)
def test_filters_for_the_whole_film_need_to_be_asked_for(graph: str, film: SourceIndex, files: Path) -> None:
    with pytest.raises(UsageError, match=r"--filter: \w+: .*--one-pass renders it as one part"):
        filter_index(film, settings(graph, files))
    index, wrong = differences(film, settings(graph, files, one_pass=True), ())
    assert not wrong
    assert any("one part, by one worker" in words for words in index.warnings)


def test_every_filter_that_is_offered_has_an_example() -> None:
    assert set(examples()) == set(OFFERS)


@pytest.mark.slow
@pytest.mark.skipif(not EVERYTHING, reason="takes minutes: set UNEVEN_ALL_FILTERS=1")
def test_all_filters_in_parts_of_any_size(
    film: SourceIndex, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _try_all(film, files, monkeypatch, (12, 48, 250))


@pytest.mark.slow
def test_all_filters_in_small_parts(film: SourceIndex, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _try_all(film, files, monkeypatch, (12,))


def _try_all(film: SourceIndex, files: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    monkeypatch.chdir(files)
    found = {}
    for graph in [*(graph for tried in examples().values() for graph in tried), *graphs()]:
        try:
            _, wrong = differences(film, settings(graph, files), sizes)
        except UsageError as error:
            assert "--one-pass" in str(error)
            _, wrong = differences(film, settings(graph, files, one_pass=True), sizes)
        if wrong:
            found[graph] = wrong
    assert not found


# --- what is refused


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("drawtext=text=hi", r"drawtext=text=hi \(character 1\) is not in this build.*--burn-text"),
        ("hflip,\n eq=1\x1b.5", r"eq=1\\x1b.5 \(character 9\)"),
        ("drawbox=" + "x" * 500, "FFmpeg can't link these filters.{,400}$"),
        ("hflip,eq=1.5", r"eq=1.5 \(character 7\).*lutyuv"),
        ("scael=3", "no such filter; did you mean scale"),
        ("reverse", "holds the whole film in memory"),
        ("cover_rect", "no such filter"),
        ("addroi", "nobody has tested"),
        ("scale=640:480:bogus=1", "has no option bogus"),
        ("scale=w=abc", "FFmpeg refuses.*Invalid size 'abc'"),
        ("crop=400:400", "Invalid too big or non positive size"),
        ("scale=eval=frame:w=64+t", "eval= is not offered"),
        ("shufflepixels", "seed="),
        ("setpts=RTCTIME", "reads the clock"),
        ("curves=plot=x.gp", "would write a file"),
        ("tmix=frames=many", "whole number"),
        ("movie=loop=0:filename=logo.png[a];[in][a]overlay", "loop= is not offered"),
        ("movie=logo.png[a];[in][a]overlay=shortest=1", "--one-pass"),
        ("fade=t=in:st=1", "without d= it counts frames"),
        ("waveform=envelope=peak", "keeps the peaks"),
        ("tmix=enable='gt(t,1)'", "enable="),
        ("geq=lum='st(0,ld(0)+1)'", "keeps something from frame to frame"),
        ("noise=alls=9:allf=t", "goes on from frame to frame"),
    ],
)
def test_what_cannot_be_had_is_refused_in_one_sentence(
    graph: str, words: str, film: SourceIndex, files: Path
) -> None:
    with pytest.raises(UsageError, match=words) as refusal:
        filter_index(film, settings(graph, files))
    assert str(refusal.value).isprintable()


def test_a_file_that_is_missing_or_is_a_film_is_refused(film: SourceIndex, files: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*nope\.png"):
        filter_index(film, settings("movie=nope.png[a];[in][a]overlay", files))
    with pytest.raises(InputError, match="is a film"):
        filter_index(film, settings("movie=film.mp4[a];[in][a]overlay", files))
    with pytest.raises(UsageError, match="not valid UTF-8; rename it or its folder"):
        filter_index(film, settings("movie=film.mp4[a];[in][a]overlay", files / "\udcff"))


# --- what comes out


def test_size_shape_format_and_colours_are_those_that_come_out(film: SourceIndex, files: Path) -> None:
    job = settings("pad=80:60,setsar=4/3,setparams=colorspace=bt709:range=pc,format=yuv444p", files)
    index = filter_index(film, job)
    assert (index.width, index.height, index.pix_fmt) == (80, 60, "yuv444p")
    assert (index.sample_aspect_ratio, index.colorspace, index.color_range) == ((4, 3), 1, 2)
    assert index.pts == film.pts


def test_pictures_in_the_middle_that_are_lost_move_the_warm_up_out(files: Path) -> None:
    """tmix takes those further away."""
    index = _with_holes(files / "holes.mkv")
    job = settings("tmix=frames=4,yadif", files)
    filtered = filter_index(index, job)
    expected = in_one_pass(index, job)
    assert len(expected) == 57
    for size in (5, 10, 23):
        assert by_parts(filtered, job, size) == expected
        assert by_parts(filtered, job, size, backwards=True) == expected


def test_times_count_from_the_first_frame_of_the_job(files: Path) -> None:
    times = [n * 40 + 9000 for n in range(30)]
    late = index_source(make_clip(files / "late.mkv", pts=times, time_base=Fraction(1, 1000)))
    job = settings("fade=t=in:d=1,format=gray", files)
    index = filter_index(late, job)
    reader = open_pictures(index, job)
    light = [float(frame.to_ndarray().mean()) for _, frame in reader.read(0, 20)]
    reader.close()
    assert light[0] < 20  # black, 9 s into the file
    assert light[0] < light[10] < light[19]
    assert by_parts(index, job, 7)[0].time == 9


def test_a_file_that_is_changed_while_parts_are_made_ends_the_part(film: SourceIndex, tmp_path: Path) -> None:
    make_files(tmp_path)
    job = settings("lut3d=warm.cube", tmp_path)
    index = filter_index(film, job)
    pictures = open_pictures(index, job)
    assert len(list(pictures.read(0, 4))) == 4
    with (tmp_path / "warm.cube").open("a") as file:
        file.write("# later\n")
    with pytest.raises(ReadError, match=r"warm\.cube was changed since the job was planned"):
        list(pictures.read(4, 8))
    pictures.close()


def test_a_film_that_is_cut_late_is_not_read_from_its_start(
    film: SourceIndex, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = trim_index(film, TrimSettings(start=Moment(frame=film.frames - 4)))
    decoded = 0

    def counting(index: SourceIndex, job: JobSettings, *, linear: bool) -> Reader:
        def count() -> None:
            nonlocal decoded
            decoded += 1

        return open_reader(index, job, linear=linear, decoded=count)

    monkeypatch.setattr("farm.media.filtered.open_reader", counting)
    assert filter_index(late, settings("hflip", files)).frames == 4
    assert 0 < decoded < film.frames


def test_damage_before_filters_that_change_frames_is_said(files: Path) -> None:
    holed = _with_holes(files / "holed.mkv")
    job = settings("framestep=2", files, one_pass=True)
    index = filter_index(holed, job)
    assert index.frames == 29
    assert any("3 of 60 frames before the filters" in damage.words for damage in index.damage)
    stop = msgspec.structs.replace(job, source=SourceSettings(on_error="stop"))
    with pytest.raises(InputError, match="--on-error skip goes on"):
        filter_index(holed, stop)


def _with_holes(path: Path) -> SourceIndex:
    """A film whose pictures 20 to 22 can't be decoded."""
    make_clip(path, frames=60, codec="mjpeg", b_frames=0, pix_fmt="yuvj420p")
    data = bytearray(path.read_bytes())
    for packet in index_source(path).packets[20:23]:
        at = data.find(b"\xff\xd8", packet.pos or 0)
        data[at : at + packet.size] = bytes(packet.size)
    path.write_bytes(data)
    return index_source(path)
