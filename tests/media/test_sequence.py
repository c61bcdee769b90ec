"""Images become frames and frames become images: the same pixels, and what is wrong is said with its file."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import msgspec
import numpy as np
import pytest
from av.video.codeccontext import VideoCodecContext
from numpy.typing import NDArray
from PIL import Image, ImageOps

from farm.clock import MonotonicClock
from farm.errors import FinishedAlready, InputError, UsageError, VerificationError
from farm.media.images import verify_images, write_images
from farm.media.read import frame_crc
from farm.media.render import PartRenderer, RenderError, measure_speed
from farm.media.sequence import ImageReader
from farm.media.stitch import stitch
from farm.media.survey import DamagedPart
from farm.media.tasks import probe_job
from farm.media.verify import verify
from farm.paths import partial_path
from farm.settings import (
    IMAGES,
    GridSettings,
    ImageOutput,
    JobSettings,
    Moment,
    SequenceSettings,
    SourceSettings,
    TrimSettings,
    VideoSettings,
)
from farm.source import SourceIndex, part_cuts
from tests.media.clips import corpus, make_clip, picture
from tests.media.jobs import HASH, Patient, video_times

LOSSLESS = VideoSettings(encoder="ffv1")
PNG = VideoSettings(encoder="png")
FORMATS = {
    "png": ("png", "rgb24"),
    "jpg": ("mjpeg", "yuvj420p"),
    "tif": ("tiff", "rgb48le"),
    "dpx": ("dpx", "rgb48be"),
    "exr": ("exr", "gbrpf32le"),
    "bmp": ("bmp", "bgr24"),
    "tga": ("targa", "bgr24"),
    "ppm": ("ppm", "rgb24"),
    "webp": ("libwebp", "bgra"),
}


def image_bytes(number: int, extension: str = "png", width: int = 64, height: int = 48) -> bytes:
    encoder, pix_fmt = FORMATS[extension]
    context = av.CodecContext.create(encoder, "w")
    assert isinstance(context, VideoCodecContext)
    context.width, context.height, context.pix_fmt = width, height, pix_fmt
    context.time_base = Fraction(1, 25)
    if extension == "webp":
        context.options = {"lossless": "1"}
    frame = picture(number, width, height).reformat(format=pix_fmt)
    frame.pts = 0
    return b"".join(bytes(packet) for packet in [*context.encode(frame), *context.encode(None)])


def make_images(folder: Path, numbers: Sequence[int], extension: str = "png", width: int = 4) -> Path:
    folder.mkdir(exist_ok=True)
    for number in numbers:
        (folder / f"f_{number:0{width}d}.{extension}").write_bytes(image_bytes(number, extension))
    return folder


def of_sequence(path: Path, **settings: object) -> tuple[SourceIndex, JobSettings]:
    made = msgspec.structs.replace(JobSettings(video=LOSSLESS, container="matroska"), **settings)
    return probe_job(path, made).index, made


def read(index: SourceIndex, settings: JobSettings) -> list[int]:
    reader = ImageReader(index, settings)
    return [frame_crc(frame) for _, frame in reader.read(0, index.frames)]


def decoded(path: Path) -> int:
    with av.open(str(path)) as file:
        return frame_crc(next(file.decode(video=0)))


def render(index: SourceIndex, settings: JobSettings, folder: Path, part_frames: int = 4) -> list[Path]:
    cuts = part_cuts(index.frames, part_frames)
    renderer = PartRenderer(index, settings, HASH)
    parts = [folder / f"part-{number}" for number in range(len(cuts) - 1)]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        renderer.render(number, start, stop, parts[number], Patient())
    return parts


def test_an_image_that_cannot_be_read_ends_the_measurement_and_not_the_run(tmp_path: Path) -> None:
    """Seed 479 of scripts/mutations.py: one that the probe had not looked at."""
    folder = make_images(tmp_path / "in", range(40))
    index, settings = of_sequence(folder)
    sorted(folder.iterdir())[5].write_bytes(b"no picture")
    frames, _ = measure_speed(index, settings, 60.0, MonotonicClock())
    assert 0 < frames < 40


def silent(fraction: float) -> None:
    pass


@pytest.mark.parametrize("extension", FORMATS)
def test_every_format_becomes_frames(extension: str, tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(8, 13), extension, width=1)
    index, settings = of_sequence(folder)
    assert [image.number for image in index.images] == [8, 9, 10, 11, 12]
    crcs = read(index, settings)
    assert len(set(crcs)) == 5
    if extension != "exr":  # which is given another curve
        assert crcs == [decoded(folder / f"f_{number}.{extension}") for number in range(8, 13)]


def test_the_film_has_the_frames_in_numeric_order_at_the_exact_rate(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(8, 19), width=1)
    index, settings = of_sequence(folder, source=SourceSettings(fps=(24000, 1001)))
    output = tmp_path / "out.mkv"
    facts = stitch(index, settings, HASH, render(index, settings, tmp_path), output, silent)
    assert verify(output, "matroska", index, decode="all").frames == facts.frames == 11
    with av.open(str(output)) as file:
        frames = [frame_crc(frame.reformat(format="rgb24")) for frame in file.decode(video=0)]
    assert frames == [decoded(folder / f"f_{number}.png") for number in range(8, 19)]


def test_times_in_mp4_are_exact(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(1, 8), "jpg")
    video = VideoSettings(preset="ultrafast")
    index, settings = of_sequence(
        folder, video=video, container="mp4", source=SourceSettings(fps=(30000, 1001))
    )
    output = tmp_path / "out.mp4"
    stitch(index, settings, HASH, render(index, settings, tmp_path), output, silent)
    assert video_times(output) == [Fraction(1001 * n, 30000) for n in range(7)]
    assert verify(output, "mp4", index).duration_seconds == pytest.approx(7 * 1001 / 30000)


def test_parts_do_not_depend_on_who_renders_them(tmp_path: Path) -> None:
    index, settings = of_sequence(make_images(tmp_path / "in", range(12)))
    parts = render(index, settings, tmp_path)
    alone = tmp_path / "alone"
    PartRenderer(index, settings, HASH).render(1, 4, 8, alone, Patient())
    assert alone.read_bytes() == parts[1].read_bytes()


class TestTrouble:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return make_images(tmp_path / "in", range(40))

    def test_a_gap_is_refused_or_closed_as_asked(self, folder: Path) -> None:
        (folder / "f_0007.png").unlink()
        with pytest.raises(InputError, match="1 number is missing: 7;"):
            of_sequence(folder)
        held, settings = of_sequence(folder, sequence=SequenceSettings(on_gap="hold"))
        crcs = read(held, settings)
        assert len(crcs) == 40 and crcs[6] == crcs[7] != crcs[8]
        skipped, settings = of_sequence(folder, sequence=SequenceSettings(on_gap="skip"))
        assert read(skipped, settings) == crcs[:7] + crcs[8:]

    def test_a_gap_outside_of_what_is_taken_is_none(self, folder: Path) -> None:
        (folder / "f_0007.png").unlink()
        trim = TrimSettings(start=Moment(frame=8), stop=Moment(frame=12))
        index, _ = of_sequence(folder, trim=trim)
        assert [image.number for image in index.images] == [8, 9, 10, 11]
        assert index.pts == (0, 1, 2, 3)

    @pytest.mark.parametrize("number", [0, 39])
    def test_an_image_that_is_none_is_named_before_any_work(self, folder: Path, number: int) -> None:
        (folder / f"f_{number:04d}.png").write_bytes(b"this is not an image at all")
        with pytest.raises(InputError, match=rf"frame {number} \(.*f_{number:04d}\.png\)"):
            of_sequence(folder)

    @pytest.mark.parametrize(
        ("harm", "words"),
        [
            (lambda path: path.unlink(), "is gone"),
            (lambda path: path.write_bytes(b""), "was changed"),
            (lambda path: path.write_bytes(image_bytes(99)), "was changed"),
            (lambda path: os.utime(path, ns=(1, 1)), "was changed"),
        ],
    )
    def test_what_becomes_of_an_image_later_fails_its_part_alone(
        self, folder: Path, tmp_path: Path, harm: object, words: str
    ) -> None:
        index, settings = of_sequence(folder)
        harm(folder / "f_0008.png")  # type: ignore[operator]
        renderer = PartRenderer(index, settings, HASH)
        renderer.render(1, 4, 8, tmp_path / "before", Patient())
        with pytest.raises(RenderError, match=rf"frame 8 \(.*f_0008\.png\) {words}"):
            renderer.render(2, 8, 12, tmp_path / "its", Patient())
        renderer.render(3, 12, 16, tmp_path / "after", Patient())

    def test_a_corrupt_image_is_named(self, folder: Path, tmp_path: Path) -> None:
        path = folder / "f_0001.png"  # not one of those that are looked at before
        path.write_bytes(path.read_bytes()[:-800])
        index, settings = of_sequence(folder)
        with pytest.raises(RenderError, match=r"frame 1 \(.*f_0001\.png\) (can't be decoded|is damaged)"):
            PartRenderer(index, settings, HASH).render(0, 0, 4, tmp_path / "part", Patient())

    def test_another_size_is_refused_or_conformed(self, folder: Path, tmp_path: Path) -> None:
        (folder / "f_0001.png").write_bytes(image_bytes(1, width=80))
        index, settings = of_sequence(folder)
        with pytest.raises(RenderError, match=r"f_0001\.png\) is 80x48 where the first image is 64x48; "):
            PartRenderer(index, settings, HASH).render(0, 0, 4, tmp_path / "part", Patient())
        index, settings = of_sequence(folder, sequence=SequenceSettings(conform=(32, 24)))
        facts = PartRenderer(index, settings, HASH).render(0, 0, 4, tmp_path / "part", Patient())
        assert (facts.header.width, facts.header.height, facts.footer.frames) == (32, 24, 4)
        assert facts.footer.resized_pts == (), "it was asked for, and said before the work"

    def test_another_pixel_format_is_refused_unless_one_is_asked_for(
        self, folder: Path, tmp_path: Path
    ) -> None:
        grey = av.CodecContext.create("png", "w")
        assert isinstance(grey, VideoCodecContext)
        grey.width, grey.height, grey.pix_fmt, grey.time_base = 64, 48, "gray", Fraction(1, 25)
        data = b"".join(map(bytes, [*grey.encode(picture(1).reformat(format="gray")), *grey.encode(None)]))
        (folder / "f_0001.png").write_bytes(data)
        index, settings = of_sequence(folder)
        with pytest.raises(RenderError, match=r"has the pixel format gray where the first image has rgb24"):
            PartRenderer(index, settings, HASH).render(0, 0, 4, tmp_path / "part", Patient())
        index, settings = of_sequence(folder, video=VideoSettings(encoder="ffv1", pix_fmt="yuv444p"))
        PartRenderer(index, settings, HASH).render(0, 0, 4, tmp_path / "part", Patient())


class TestCorpus:
    def test_unpadded_numbers_are_in_numeric_order(self) -> None:
        folder = corpus("Seq-counter")
        index, settings = of_sequence(folder)
        assert [image.name for image in index.images] == [f"Counter.{n}.png" for n in range(10)]
        assert read(index, settings) == [
            decoded(corpus("Seq-counter") / f"Counter.{n}.png") for n in range(10)
        ]

    def test_jpegs(self) -> None:
        folder = corpus("Seq-moviepy")
        index, settings = of_sequence(folder)
        assert index.frames == 25
        assert read(index, settings) == [decoded(folder / f"image_{n:04d}.jpg") for n in range(1, 26)]

    def test_sizes_that_differ_are_refused_or_conformed(self) -> None:
        folder = corpus("Seq-exr")
        with pytest.raises(InputError, match=r"t03\.exr\) is 370x280 where the first image is 400x300"):
            of_sequence(folder)
        index, _ = of_sequence(folder, sequence=SequenceSettings(conform=(400, 300)))
        assert index.frames == 16


def test_linear_light_gets_the_curve_of_srgb_and_white_clips(tmp_path: Path) -> None:
    context = av.CodecContext.create("exr", "w")
    assert isinstance(context, VideoCodecContext)
    context.width, context.height, context.pix_fmt, context.time_base = 16, 16, "gbrpf32le", Fraction(1, 25)
    frame = av.VideoFrame(16, 16, "gbrpf32le")
    for plane in frame.planes:
        values = np.zeros((16, plane.line_size // 4), np.float32)
        values[:8], values[8:] = 0.214, 3.0
        plane.update(values.tobytes())
    frame.pts = 0
    data = b"".join(map(bytes, [*context.encode(frame), *context.encode(None)]))
    (tmp_path / "a1.exr").write_bytes(data)
    video = VideoSettings(encoder="ffv1", pix_fmt="gbrp16le")
    index, settings = of_sequence(tmp_path, video=video)
    assert index.color_trc == 13  # IEC 61966-2-1
    output = tmp_path / "out.mkv"
    stitch(index, settings, HASH, render(index, settings, tmp_path), output, silent)
    with av.open(str(output)) as file:
        shown = next(file.decode(video=0)).to_ndarray(format="gbrp16le")
    assert abs(int(shown[0, 0, 0]) - 0.5 * 65535) < 200  # 0.214 of the light is half of the way to white
    assert shown[15, 0, 0] > 65500


class TestImagesOut:
    @pytest.fixture(scope="class")
    def clip(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return make_clip(
            tmp_path_factory.mktemp("clip") / "clip.mkv", frames=10, codec="ffv1", pix_fmt="bgr0"
        )

    @pytest.mark.parametrize(("extension", "encoder"), [("png", "png"), ("tif", "tiff"), ("jpg", "mjpeg")])
    def test_one_file_a_frame(self, clip: Path, extension: str, encoder: str, tmp_path: Path) -> None:
        index, settings = of_sequence(clip, video=VideoSettings(encoder=encoder), container=IMAGES)
        folder = partial_path(tmp_path / f"out_%03d.{extension}")
        facts = write_images(index, HASH, render(index, settings, tmp_path), folder, silent)
        found = verify_images(folder, index, decode="all")
        assert facts.frames == found.frames == found.decoded_frames == 10
        assert sorted(path.name for path in folder.iterdir()) == [
            f"out_{n:03d}.{extension}" for n in range(1, 11)
        ]
        with av.open(str(clip)) as file:
            source = [frame.to_ndarray(format="rgb24").astype(int) for frame in file.decode(video=0)]
        for number, expected in enumerate(source, 1):
            with av.open(str(folder / f"out_{number:03d}.{extension}")) as file:
                shown = next(file.decode(video=0)).to_ndarray(format="rgb24").astype(int)
            assert np.abs(shown - expected).mean() < (12 if extension == "jpg" else 1e-9)

    def test_jpegs_are_as_good_at_the_end_of_a_part_as_at_its_start(self, tmp_path: Path) -> None:
        folder = make_images(tmp_path / "in", [1] * 1 + list(range(1, 9)))
        for number in range(2, 9):
            (folder / f"f_{number:04d}.png").write_bytes(image_bytes(1))
        index, settings = of_sequence(folder, video=VideoSettings(encoder="mjpeg"), container=IMAGES)
        out = partial_path(tmp_path / "o_%d.jpg")
        write_images(index, HASH, render(index, settings, tmp_path), out, silent)
        assert len({path.read_bytes() for path in out.iterdir()}) == 1

    def test_numbers_begin_where_the_input_does_or_as_asked(self, clip: Path, tmp_path: Path) -> None:
        folder = make_images(tmp_path / "in", range(1001, 1006))
        index, _ = of_sequence(folder, video=PNG, container=IMAGES)
        assert index.numbers == tuple(range(1001, 1006))
        trim = TrimSettings(start=Moment(frame=2))
        assert of_sequence(folder, video=PNG, container=IMAGES, trim=trim)[0].numbers == (1003, 1004, 1005)
        zero = ImageOutput(start_number=0)
        assert of_sequence(clip, video=PNG, container=IMAGES, images=zero)[0].numbers == tuple(range(10))

    def test_images_that_are_there_are_not_rendered(self, clip: Path, tmp_path: Path) -> None:
        whole, settings = of_sequence(clip, video=PNG, container=IMAGES)
        out = partial_path(tmp_path / "o_%d.png")
        write_images(whole, HASH, render(whole, settings, tmp_path), out, silent)
        pixels = {path.name: path.read_bytes() for path in out.iterdir()}
        images = ImageOutput(existing=((1, 4), (9, 10)))
        index, settings = of_sequence(clip, video=PNG, container=IMAGES, images=images)
        assert index.numbers == (4, 5, 6, 7, 8, 10)
        (tmp_path / "rest").mkdir()
        write_images(index, HASH, render(index, settings, tmp_path / "rest", 2), out, silent)
        verify_images(out, index)
        assert {path.name: path.read_bytes() for path in out.iterdir()} == {
            f"o_{n}.png": pixels[f"o_{n}.png"] for n in index.numbers
        }
        with pytest.raises(FinishedAlready):
            of_sequence(clip, video=PNG, container=IMAGES, images=ImageOutput(existing=((0, 99),)))

    @pytest.mark.parametrize("harm", ["missing", "cut", "other size", "too many"])
    def test_verification_finds_what_is_wrong(self, clip: Path, harm: str, tmp_path: Path) -> None:
        index, settings = of_sequence(clip, video=PNG, container=IMAGES)
        out = partial_path(tmp_path / "o_%d.png")
        write_images(index, HASH, render(index, settings, tmp_path), out, silent)
        path = out / "o_3.png"
        if harm == "missing":
            path.unlink()
        elif harm == "cut":
            path.write_bytes(path.read_bytes()[:-500])
        elif harm == "other size":
            path.write_bytes(image_bytes(3, width=32))
        else:
            (out / "o_11.png").write_bytes(path.read_bytes())
        with pytest.raises(VerificationError):
            verify_images(out, index, decode="all")

    def test_a_damaged_part_is_named_and_no_folder_left(self, clip: Path, tmp_path: Path) -> None:
        index, settings = of_sequence(clip, video=PNG, container=IMAGES)
        parts = render(index, settings, tmp_path)
        parts[1].write_bytes(parts[1].read_bytes()[:-9])
        out = partial_path(tmp_path / "o_%d.png")
        with pytest.raises(DamagedPart):
            write_images(index, HASH, parts, out, silent)
        assert not out.exists()

    def test_sound_is_said_to_be_left_out(self, tmp_path: Path) -> None:
        source = make_clip(tmp_path / "clip.mp4", frames=5, audio_seconds=0.2)
        probed = probe_job(source, JobSettings(video=PNG, container=IMAGES, grid=GridSettings()))
        assert any("audio" in line and "left out" in line for line in probed.warnings)
        assert "numbered 1-5" in probed.streams[0]


def test_the_colour_that_is_given_up_for_players_is_said(tmp_path: Path) -> None:
    folder = make_images(tmp_path / "in", range(3))
    probed = probe_job(folder, JobSettings())
    assert any("becomes yuv420p" in line and "--pix-fmt yuv444p" in line for line in probed.warnings)
    whole = probe_job(folder, JobSettings(video=VideoSettings(crf=0)))
    assert any("yuv444p, which few players show" in line for line in whole.warnings)
    for video in (VideoSettings(pix_fmt="yuv420p"), LOSSLESS):
        probed = probe_job(folder, JobSettings(video=video, container="matroska"))
        assert not any("players" in line for line in probed.warnings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (JobSettings(source=SourceSettings(stream=0)), "--video-stream is for videos"),
        (JobSettings(source=SourceSettings(on_size_change="refuse")), "--on-size-change is for videos"),
        (JobSettings(audio="aac"), "--audio aac: .* has no sound"),
    ],
)
def test_what_is_for_videos_is_refused_of_images(settings: JobSettings, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        probe_job(make_images(tmp_path / "in", range(2)), settings)


def test_a_range_of_a_constant_rate_counts_the_frames_of_that_rate(tmp_path: Path) -> None:
    film = make_clip(tmp_path / "clip.mkv", pts=range(0, 400, 40), time_base=Fraction(1, 1000))
    trim = TrimSettings(start=Moment(frame=5), stop=Moment(frame=9))
    settings = JobSettings(
        video=LOSSLESS, source=SourceSettings(fps=(50, 1)), trim=trim, container="matroska"
    )
    index = probe_job(film, settings).index
    assert index.constant is not None and index.constant.picks == (2, 3, 3, 4)
    output = tmp_path / "out.mkv"
    stitch(index, settings, HASH, render(index, settings, tmp_path, 3), output, silent)
    assert video_times(output) == [Fraction(n, 50) for n in range(4)]


def test_images_of_a_turned_film_are_upright() -> None:
    probed = probe_job(corpus("S18"), JobSettings(video=PNG, container=IMAGES))
    film = probe_job(corpus("S18"), JobSettings())
    assert film.index.display_matrix and not probed.index.display_matrix
    assert (probed.index.width, probed.index.height) == (film.index.height, film.index.width)


def oriented(orientation: int, extension: str = "jpg", number: int = 0) -> bytes:
    """An image whose EXIF data says how it is to be shown."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    kind = {"jpg": "JPEG", "tif": "TIFF", "png": "PNG"}[extension]
    Image.fromarray(picture(number).to_ndarray(format="rgb24")).save(file, kind, exif=exif)
    return file.getvalue()


def upright(data: bytes) -> NDArray[np.uint8]:
    """The picture as Pillow shows it, in shades of grey."""
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("L"))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_as_they_say_or_say_so_in_the_film(orientation: int, tmp_path: Path) -> None:
    extension = ("jpg", "tif", "png")[orientation % 3]
    data = [oriented(orientation, extension, number) for number in range(3)]
    for number, image in enumerate(data):
        (tmp_path / f"f_{number}.{extension}").write_bytes(image)
    kept, _ = of_sequence(tmp_path)
    assert bool(kept.display_matrix) is (orientation > 1)
    index, settings = of_sequence(tmp_path, source=SourceSettings(rotate="apply"))
    output = tmp_path / "out.mkv"
    stitch(index, settings, HASH, render(index, settings, tmp_path), output, silent)
    expected = [upright(image) for image in data]
    assert (index.height, index.width) == expected[0].shape and not index.display_matrix
    with av.open(str(output)) as file:
        for frame, shown in zip(file.decode(video=0), expected, strict=True):
            assert np.abs(frame.to_ndarray(format="gray").astype(int) - shown).mean() < 8
    into_images, _ = of_sequence(tmp_path, container=IMAGES, video=PNG)
    assert (into_images.height, into_images.width) == expected[0].shape


def test_images_that_lie_differently_are_refused_or_each_is_turned(tmp_path: Path) -> None:
    for number, orientation in enumerate((3, 3, 1)):
        (tmp_path / f"f_{number}.jpg").write_bytes(oriented(orientation, number=number))
    with pytest.raises(InputError, match=r"f_2\.jpg\) is to be shown turned otherwise .*--rotate apply"):
        of_sequence(tmp_path)
    index, settings = of_sequence(tmp_path, source=SourceSettings(rotate="apply"))
    assert len(set(read(index, settings))) == 3
    (tmp_path / "f_2.jpg").write_bytes(oriented(6))
    with pytest.raises(InputError, match="is 48x64 where the first image is 64x48; --conform"):
        of_sequence(tmp_path, source=SourceSettings(rotate="apply"))
