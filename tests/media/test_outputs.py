"""Every pair of encoder and container that is offered gives an output that is right, and every other is
refused with the container that would do. docs/outputs.md has what ffprobe and ffmpeg say of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import msgspec
import pytest

from farm.errors import UsageError
from farm.media.pair import check_pair
from farm.media.streams import check_timing
from farm.settings import VideoSettings
from tests.media.clips import make_clip
from tests.media.jobs import Job, render_job, video_times
from tests.media.outputs import (
    BT709,
    COLOURS,
    ENCODERS,
    EXTENSIONS,
    FRAMES,
    OFFERED,
    RATE,
    START,
    Kind,
    Output,
    begins_with_headers,
    boxes,
    clock_references,
    make_source,
    read_output,
)

PAIRS = [(encoder, container) for encoder, containers in OFFERED.items() for container in containers]
EVERYDAY = [("libx264", "mpegts"), ("mpeg2video", "mpegts"), ("libvpx-vp9", "webm"), ("prores_ks", "mov")]
#: BT.709's matrix becomes BT.601's where the format knows no other.
MATRIX_601 = {"mjpeg": (5, 6), "libvpx": (5, 6)}
FULL_RANGE_ONLY, LIMITED_RANGE_ONLY = ("mjpeg",), ("mpeg2video", "prores_ks", "libvpx")
RGB = ("qtrle",)
Jobs = Callable[[Kind, str], Job]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """By kind of source and encoder; each is rendered once for all containers."""
    folder = tmp_path_factory.mktemp("outputs")

    @functools.cache
    def source(kind: Kind) -> Path:
        return make_source(folder, kind)

    @functools.cache
    def rendered(kind: Kind, encoder: str) -> Job:
        parts = folder / f"{kind}-{encoder}"
        parts.mkdir()
        return render_job(source(kind), parts, video=ENCODERS[encoder], part_frames=25)

    return rendered


def output_of(job: Job, container: str, folder: Path) -> tuple[Output, Path]:
    folder.mkdir(exist_ok=True)
    path = folder / f"out{EXTENSIONS[container]}"
    job = job.into(container)
    job.verify(path, job.stitch(path))
    return read_output(path), path


def assert_right(found: Output, container: str) -> None:
    assert found.numbers == list(range(FRAMES))
    assert found.dts_rise
    tick = {"matroska": Fraction(1, 1000), "webm": Fraction(1, 1000), "mpegts": Fraction(1, 90_000)}
    shift = found.times[0] - START
    # Half a tick each for this frame and the first; in ts all streams begin alike some 1.4 s later.
    for number, time in enumerate(found.times):
        assert abs(time - shift - START - number / RATE) <= tick.get(container, Fraction(0))
    assert abs(shift) <= Fraction(1, 2000) or container == "mpegts"
    # A header's duration counts from zero or from the first frame; a transport stream has none.
    span = FRAMES / RATE
    ends = (span, span + START)
    assert any(abs(found.duration - end) < 1 / RATE + Fraction(1, 50) for end in ends), float(found.duration)
    assert found.seeks == {second: -int(-second * RATE // 1) for second in found.seeks}
    assert len(found.seeks) == 3


def assert_looks_right(found: Output, encoder: str, kind: Kind) -> None:
    wanted = COLOURS.get(kind, BT709)
    have = found.colours
    if encoder in RGB:
        return
    assert (have.primaries, have.transfer) == (wanted.primaries, wanted.transfer)
    assert have.matrix in MATRIX_601.get(encoder, (wanted.matrix,))
    assert (have.range == 2) == (
        encoder in FULL_RANGE_ONLY or (wanted.range == 2 and encoder not in LIMITED_RANGE_ONLY)
    )


@pytest.mark.parametrize(("encoder", "container"), EVERYDAY)
def test_a_pair_that_is_offered(jobs: Jobs, tmp_path: Path, encoder: str, container: str) -> None:
    found, _ = output_of(jobs("plain", encoder), container, tmp_path)
    assert_right(found, container)
    assert_looks_right(found, encoder, "plain")


@pytest.mark.slow
@pytest.mark.parametrize(("encoder", "container"), [pair for pair in PAIRS if pair not in EVERYDAY])
def test_all_pairs_that_are_offered(jobs: Jobs, tmp_path: Path, encoder: str, container: str) -> None:
    test_a_pair_that_is_offered(jobs, tmp_path, encoder, container)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_pair_that_is_not_offered_is_refused_with_one_that_is(jobs: Jobs, encoder: str) -> None:
    index = jobs("plain", "ffv1").index
    for container, extension in EXTENSIONS.items():
        if container in OFFERED[encoder]:
            assert check_pair(index, ENCODERS[encoder], container) == []
            continue
        with pytest.raises(UsageError) as refusal:
            check_pair(index, ENCODERS[encoder], container)
        words = str(refusal.value)
        assert encoder in words and words.startswith(extension[1:])
        assert all(EXTENSIONS[other] in words for other in OFFERED[encoder])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "container"),
    [
        *(("libx264", container) for container in OFFERED["libx264"]),
        *(("libx265", container) for container in OFFERED["libx265"]),
        *(("libsvtav1", container) for container in OFFERED["libsvtav1"]),
        *(("libvpx-vp9", container) for container in OFFERED["libvpx-vp9"]),
        ("prores_ks", "mov"),
        ("ffv1", "matroska"),
    ],
)
def test_hdr10_data_is_in_every_output(jobs: Jobs, tmp_path: Path, encoder: str, container: str) -> None:
    """RG14. In the stream where the codec has a place for it, in the header where the container has."""
    job = jobs("hdr", encoder)
    assert check_pair(job.index, job.settings.video, container) == []
    found, _ = output_of(job, container, tmp_path)
    assert found.mastering is not None and found.light is not None
    assert_looks_right(found, encoder, "hdr")


@pytest.mark.parametrize(("encoder", "container"), [("libvpx-vp9", "mp4"), ("ffv1", "matroska")])
def test_hdr10_data_is_in_the_header_where_the_stream_has_no_place(
    jobs: Jobs, tmp_path: Path, encoder: str, container: str
) -> None:
    found, _ = output_of(jobs("hdr", encoder), container, tmp_path)
    want, _ = _hdr_of_source(jobs)
    assert found.light is not None and memoryview(found.light).cast("I").tolist() == [1000, 400]
    assert found.mastering is not None and _ratios(found.mastering) == pytest.approx(want, rel=1e-4)


def _hdr_of_source(jobs: Jobs) -> tuple[list[float], Path]:
    path = Path(jobs("hdr", "ffv1").index.path)
    found = read_output(path)
    assert found.mastering is not None
    return _ratios(found.mastering), path


def _ratios(data: bytes) -> list[float]:
    numbers = memoryview(data).cast("i").tolist()
    return [a / b for a, b in zip(numbers[:20:2], numbers[1:20:2], strict=True)]


@pytest.mark.parametrize(
    ("kind", "encoder", "container", "words"),
    [
        (
            "turned",
            "libx264",
            "mpegts",
            "rotation, and it would look wrong: write .mp4, .mov or .mkv, or use --rot",
        ),
        (
            "wide",
            "libvpx-vp9",
            "webm",
            "doesn't keep the shape of the pixels, 4:3, and it would look wrong: write .mp4",
        ),
        ("plain", "mpeg4", "mpegts", "colour primaries"),
        ("plain", "utvideo", "matroska", "mkv can't hold what utvideo makes, nor does any other"),
        ("plain", "libx264", "webm", "webm can't hold what libx264 makes; write .mp4, .mov, .mkv or .ts"),
    ],
)
def test_what_would_look_wrong_is_refused(
    jobs: Jobs, kind: Kind, encoder: str, container: str, words: str
) -> None:
    index = jobs(kind, "libx264").index
    with pytest.raises(UsageError) as refusal:
        check_pair(index, ENCODERS[encoder], container)
    assert words in str(refusal.value)


def test_where_a_matrix_moves_the_picture_to_is_no_loss(jobs: Jobs) -> None:
    """S08: mkv keeps the angle, and was refused for the pixels that phones move the picture back by."""
    turned = (0, 1 << 16, 0, -(1 << 16), 0, 0, 1080 << 16, 0, 1 << 30)
    index = msgspec.structs.replace(jobs("plain", "libx264").index, display_matrix=turned)
    assert check_pair(index, ENCODERS["libx264"], "matroska") == []


def test_what_is_only_lost_is_said(jobs: Jobs) -> None:
    """Nobody sees the difference at once, but it is gone; or an option says other than the pictures are."""
    retagged = VideoSettings(options={"color_range": "pc"})
    said = check_pair(jobs("plain", "libx264").index, retagged, "mp4")
    assert said == ["mp4 with libx264 doesn't keep the limited range of its colours"]
    hdr = jobs("hdr", "ffv1").index
    assert check_pair(hdr, VideoSettings(encoder="mjpeg"), "mp4") == [
        "mp4 with mjpeg doesn't keep the HDR10 mastering display and the HDR10 light level"
    ]


@pytest.mark.parametrize(
    ("encoder", "container"),
    [
        ("libx264", "mp4"),
        ("libx264", "mpegts"),
        pytest.param("mpeg2video", "mpegts", marks=pytest.mark.slow),
        pytest.param("mpeg4", "matroska", marks=pytest.mark.slow),
        pytest.param("prores_ks", "mov", marks=pytest.mark.slow),
        pytest.param("ffv1", "matroska", marks=pytest.mark.slow),
    ],
)
def test_interlaced_pictures_stay_marked(jobs: Jobs, tmp_path: Path, encoder: str, container: str) -> None:
    job = jobs("fields", encoder)
    assert check_pair(job.index, job.settings.video, container) == []
    found, _ = output_of(job, container, tmp_path)
    assert found.interlaced and found.numbers == list(range(FRAMES))


def test_the_mark_is_lost_aloud_where_the_encoder_knows_none(jobs: Jobs) -> None:
    index = jobs("fields", "libx264").index
    (said,) = check_pair(index, VideoSettings(encoder="libvpx-vp9"), "webm")
    assert said.startswith("webm with libvpx-vp9 doesn't keep the mark of interlaced pictures")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "container"),
    [("mpeg2video", "mpegts"), ("prores_ks", "mov"), ("libvpx", "webm"), ("ffv1", "mp4")],
)
def test_full_range_is_kept_or_turned_into_limited(
    jobs: Jobs, tmp_path: Path, encoder: str, container: str
) -> None:
    """Where a format has no word for it, pixels were full and were taken for limited."""
    job = jobs("full", encoder)
    assert check_pair(job.index, job.settings.video, container) == []
    found, path = output_of(job, container, tmp_path)
    assert_looks_right(found, encoder, "full")
    if encoder in LIMITED_RANGE_ONLY:
        _, limited = output_of(jobs("plain", encoder), container, tmp_path / "limited")
        assert abs(_white(path) - _white(limited)) <= 4
    else:
        assert _white(path) > 250


def _white(path: Path) -> int:
    """The luma of the strip's last cell, of 8 bits."""
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        plane = frame.planes[0]
        depth = frame.format.components[0].bits
        row = memoryview(plane)[(frame.height - 2) * plane.line_size :]
        cell = frame.width // 26
        at = 25 * cell + cell // 2
        value = row[at] if depth == 8 else int.from_bytes(row[2 * at : 2 * at + 2], "little") >> (depth - 8)
        return int(value)


@pytest.mark.parametrize("encoder", ["mpeg1video", "mpeg2video", "mpeg4"])
def test_encoders_that_know_few_clocks_keep_every_time(tmp_path: Path, encoder: str) -> None:
    """They refused every source whose clock was not its frame rate (MPEG-4: all finer than 1/65535 s)."""
    pts = [0, 7, 8, 100, 250, 251, 260, 900, 1000, 1001, 1500, 1517, 1800, 1900, 1999, 2000]
    fine = Fraction(1, 90_000)
    clip = make_clip(tmp_path / "vfr.mp4", pts=[90 * n for n in pts], time_base=fine, b_frames=2)
    video = VideoSettings(encoder=encoder, options={"b": "1M", "bf": "2"})
    job = render_job(clip, tmp_path, video=video, part_frames=5)
    path = tmp_path / "out.mp4"
    job.verify(path, job.stitch(path))
    assert video_times(path) == [Fraction(n, 1000) for n in pts]


class TestTransportStream:
    @pytest.mark.parametrize(
        "encoder", ["libx264", "mpeg2video", pytest.param("libx265", marks=pytest.mark.slow)]
    )
    def test_it_can_be_entered_at_every_keyframe(self, jobs: Jobs, tmp_path: Path, encoder: str) -> None:
        _, path = output_of(jobs("plain", encoder), "mpegts", tmp_path)
        assert begins_with_headers(path)

    def test_its_clock_runs_and_is_ahead_of_no_picture(self, jobs: Jobs, tmp_path: Path) -> None:
        found, path = output_of(jobs("plain", "libx264"), "mpegts", tmp_path)
        clock = list(clock_references(path))
        assert len(clock) > 20 and all(before < after for before, after in pairwise(clock))
        assert max(after - before for before, after in pairwise(clock)) <= 27_000_000 // 10
        lead = found.times[0] - Fraction(clock[0], 27_000_000)
        assert Fraction(1, 2) < lead < Fraction(3, 2)  # for players to fill their buffers

    def test_a_clock_that_does_not_divide_is_off_by_half_a_tick_at_most(self, tmp_path: Path) -> None:
        """Times in 1/12800 s have no whole number of 90 kHz ticks."""
        pts = [n * 512 + n % 3 for n in range(30)]
        source = make_clip(tmp_path / "vfr.mp4", pts=pts, time_base=Fraction(1, 12_800), b_frames=2)
        job = render_job(source, tmp_path, part_frames=10).into("mpegts")
        path = tmp_path / "out.ts"
        job.verify(path, job.stitch(path))
        exact = [Fraction(value, 12_800) for value in pts]
        assert any(time * 90_000 % 1 for time in exact)
        times = video_times(path)
        shifts = [time - wanted for time, wanted in zip(times, exact, strict=True)]
        assert all(before < after for before, after in pairwise(times))
        assert max(shifts) - min(shifts) <= Fraction(1, 90_000)

    def test_a_source_late_on_its_own_clock_is_moved_back(self, tmp_path: Path) -> None:
        """A recording that began 26.5 hours after its clock did: a ts would run over in the middle."""
        pts = [95_443_000 + 40 * n for n in range(50)]
        source = make_clip(tmp_path / "late.mkv", pts=pts, time_base=Fraction(1, 1000), b_frames=2)
        job = render_job(source, tmp_path, part_frames=25).into("mpegts")
        path = tmp_path / "out.ts"
        facts = job.stitch(path)
        job.verify(path, facts)
        assert video_times(path)[0] < 3
        assert any("earlier than in the input: ts counts to 26.5 hours" in said for said in facts.warnings)

    def test_what_is_longer_than_its_clock_counts_is_refused(self, jobs: Jobs) -> None:
        index = jobs("plain", "libx264").index
        late = (*index.pts[:-1], index.pts[-1] + 96_000 * 30_000)
        with pytest.raises(UsageError, match=r"longer than the 26\.5 hours"):
            check_timing(msgspec.structs.replace(index, pts=late), "mpegts")
        close = msgspec.structs.replace(index, time_base=(1, 3_000_000_000))
        with pytest.raises(UsageError, match=r"less than 1/90000 s apart, which ts can't tell"):
            check_timing(close, "mpegts")


@pytest.mark.parametrize("container", ["mp4", "mov"])
def test_players_can_begin_before_the_end_has_come(jobs: Jobs, tmp_path: Path, container: str) -> None:
    """The index comes before the pictures (faststart)."""
    _, path = output_of(jobs("plain", "libx264"), container, tmp_path)
    found = boxes(path)
    assert found[0] == "ftyp" and found.index("moov") < found.index("mdat")
    assert path.read_bytes()[8:12] == (b"qt  " if container == "mov" else b"isom")


@pytest.mark.slow
@pytest.mark.parametrize("container", ["mp4", "mov"])
def test_hevc_has_the_tag_that_quicktime_plays(jobs: Jobs, tmp_path: Path, container: str) -> None:
    found, _ = output_of(jobs("plain", "libx265"), container, tmp_path)
    assert found.tag == "hvc1"
