"""The encoder of a job: what it is given, what it refuses, and that nothing of the machine gets in."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import pytest

from farm.errors import UsageError
from farm.media.encode import build_identity, choose_picture, conform, open_encoder
from farm.media.encoder_check import check_encoder
from farm.media.index import index_source
from farm.media.pair import check_pair
from farm.media.read import frame_crc
from farm.settings import VideoSettings
from farm.source import MasteringDisplay, SourceIndex
from tests.media.clips import corpus, picture

HDR = MasteringDisplay(
    red=((34000, 50000), (16000, 50000)),
    green=((13250, 50000), (34500, 50000)),
    blue=((7500, 50000), (3000, 50000)),
    white=((15635, 50000), (16450, 50000)),
    luminance_min=(50, 10000),
    luminance_max=(10000000, 10000),
)


def an_index(**changes: object) -> SourceIndex:
    fields: dict[str, object] = {
        "path": "x.mp4",
        "fingerprint": "1-a",
        "container": "mov,mp4,m4a,3gp,3g2,mj2",
        "stream": 0,
        "codec": "h264",
        "width": 64,
        "height": 48,
        "pix_fmt": "yuv420p",
        "time_base": (1, 12800),
        "frame_rate": (25, 1),
        "sample_aspect_ratio": (4, 3),
        "pts": tuple(range(0, 512 * 30, 512)),
        "keys": (0,),
        "packets": (),
    }
    return SourceIndex(**(fields | changes))  # type: ignore[arg-type]


def check(index: SourceIndex, settings: VideoSettings, container: str) -> list[str]:
    return [*check_encoder(index, settings), *check_pair(index, settings, container)]


@pytest.mark.parametrize(
    ("settings", "container", "words"),
    [
        ({"encoder": "libx246"}, "mp4", "there is no encoder 'libx246' in this build; did you mean libx265"),
        ({"encoder": "aac"}, "mp4", "aac encodes audio"),
        ({"preset": "foo"}, "mp4", "libx264 refuses --preset foo: Error setting preset/tune foo"),
        ({"options": {"prst": "1"}}, "mp4", "libx264 has no option prst"),
        ({"options": {"crf": "much"}}, "mp4", 'Unable to parse "crf" option value "much"'),
        ({"options": {"x264-params": "foo=1"}}, "mp4", "Error parsing option 'foo = 1'"),
        ({"options": {"flags": "cgop"}}, "mp4", "must begin with + or -"),
        ({"encoder": "ffv1", "crf": 3.0}, "matroska", "ffv1 has no --crf"),
        ({"encoder": "mpeg4", "preset": "fast"}, "mp4", "mpeg4 has no --preset"),
        ({"pix_fmt": "rgb24"}, "mp4", "can't encode the pixel format rgb24; it takes yuv420p"),
        ({"pix_fmt": "nonsense"}, "mp4", "can't encode the pixel format nonsense"),
        ({}, "webm", "with -e: libvpx-vp9 or libsvtav1"),
        ({"encoder": "libvpx-vp9"}, "mov", "mov can't hold what libvpx-vp9 makes; write .mp4"),
        ({"encoder": "h264_nvenc"}, "mp4", "h264_nvenc refuses this video"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(
    settings: dict[str, object], container: str, words: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        check(an_index(), VideoSettings(**settings), container)  # type: ignore[arg-type]
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_odd_size_is_refused_in_the_encoders_words() -> None:
    with pytest.raises(UsageError, match="not divisible by 2") as refusal:
        check_encoder(an_index(width=161, height=121), VideoSettings())
    assert "--pix-fmt yuv444p" in str(refusal.value)
    check_encoder(an_index(width=161, height=121), VideoSettings(pix_fmt="yuv444p"))


@pytest.mark.parametrize(
    ("encoder", "container"),
    [
        ("libx264", "mp4"),
        ("libx265", "mov"),
        ("libsvtav1", "mp4"),
        ("libvpx-vp9", "mp4"),
        ("ffv1", "matroska"),
    ],
)
def test_the_encoder_keeps_the_sources_clock_shape_and_colours(encoder: str, container: str) -> None:
    index = an_index(color_range=1, color_primaries=9, color_trc=16, colorspace=9, pix_fmt="yuv420p10le")
    settings = VideoSettings(encoder=encoder)
    said = check(index, settings, container)
    assert all("10 bits a colour become 8" in words for words in said) and (encoder == "libvpx-vp9") == bool(
        said
    )
    context = open_encoder(index, settings)
    assert context.options == {}
    assert context.time_base == Fraction(1, 12800)
    assert (context.width, context.height) == (64, 48)
    assert context.sample_aspect_ratio == Fraction(4, 3)
    assert (context.color_range, context.color_primaries, context.color_trc) == (1, 9, 16)
    assert context.colorspace == 9
    assert context.thread_count == 1


@pytest.mark.parametrize("encoder", ["libx264", "libx265", "libsvtav1"])
def test_hdr_data_reaches_the_stream(encoder: str) -> None:
    index = an_index(
        pix_fmt="yuv420p10le",
        width=128,
        height=96,
        color_trc=16,
        mastering_display=HDR,
        content_light=(1000, 400),
    )
    settings = VideoSettings(encoder=encoder)
    assert check(index, settings, "mp4") == []
    context = open_encoder(index, settings)
    frame = picture(0, 128, 96, "yuv420p10le")
    frame.pts, frame.time_base = 0, Fraction(1, 12800)
    packets = context.encode(frame) + context.encode(None)
    decoder = av.CodecContext.create({"av1": "libdav1d"}.get(name := context.codec.canonical_name, name), "r")
    assert isinstance(decoder, av.VideoCodecContext)
    decoder.extradata = context.extradata
    (seen,) = [*decoder.decode(av.Packet(bytes(packets[0]))), *decoder.decode(None)]
    kinds = {entry.type.name for entry in seen.side_data}
    assert {"MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL"} <= kinds


def test_what_is_lost_is_said() -> None:
    assert "transparency" in check_encoder(an_index(pix_fmt="bgra"), VideoSettings())[0]
    assert "average rate" in check_encoder(an_index(), VideoSettings(options={"b": "300k"}))[0]
    vp9, svt = VideoSettings(encoder="libvpx-vp9"), VideoSettings(encoder="libsvtav1")
    assert "transparency" in check_encoder(an_index(pix_fmt="yuva420p"), vp9)[0]
    coarser = "libvpx-vp9 is given yuv420p, for it takes no yuv420p10le: 10 bits a colour become 8"
    assert check_encoder(an_index(pix_fmt="yuv420p10le"), vp9) == [coarser]
    assert "colour loses resolution" in check_encoder(an_index(pix_fmt="yuv444p"), svt)[0]
    assert "colour loses resolution" in check_encoder(an_index(pix_fmt="gbrp"), svt)[0]
    asked = VideoSettings(encoder="libvpx-vp9", pix_fmt="yuv420p")
    assert check_encoder(an_index(pix_fmt="yuv420p10le"), asked) == []
    for grey in ("gray", "gray10le", "yuv411p", "yuv420p"):
        assert check_encoder(an_index(pix_fmt=grey), VideoSettings()) == []


@pytest.mark.parametrize(
    ("source", "encoder", "chosen"),
    [
        ("yuvj420p", "libx264", ("yuv420p", 2)),
        ("yuvj422p", "ffv1", ("yuv422p", 2)),
        ("yuv422p10le", "libsvtav1", ("yuv420p10le", 0)),
        ("bgra", "ffv1", ("bgra", 2)),
        ("bgra", "libx264", ("yuv420p", 1)),
        ("pal8", "libx264", ("yuv420p", 1)),
        ("rgb48be", "libx264", ("yuv420p", 1)),
        ("rgb48be", "libx265", ("yuv420p10le", 1)),
        ("argb", "libvpx-vp9", ("yuv420p", 1)),
        ("yuva444p12le", "libvpx-vp9", ("yuv444p", 0)),
        ("yuva420p", "libvpx", ("yuv420p", 0)),
        ("gray10le", "libvpx-vp9", ("yuv444p", 0)),
        ("yuv420p", "png", ("rgb24", 2)),
        ("yuv420p10le", "png", ("rgb48be", 2)),
        ("yuva444p12le", "tiff", ("rgba64le", 2)),
        ("gray10le", "png", ("gray16be", 0)),
        ("gbrp10le", "libx265", ("yuv420p10le", 1)),
    ],
)
def test_the_closest_pixel_format_is_chosen(source: str, encoder: str, chosen: tuple[str, int]) -> None:
    found = choose_picture(an_index(pix_fmt=source), VideoSettings(encoder=encoder))
    assert (found.pix_fmt, found.color_range) == chosen
    check_encoder(an_index(pix_fmt=source), VideoSettings(encoder=encoder))


def test_rgb_keeps_its_colour_where_nothing_is_to_be_lost_or_the_size_is_odd() -> None:
    for settings in (
        VideoSettings(crf=0),
        VideoSettings(options={"qp": "0"}),
        VideoSettings(options={"x264-params": "keyint=9:qp=0"}),
    ):
        assert choose_picture(an_index(pix_fmt="rgb24"), settings).pix_fmt == "yuv444p"
    odd = an_index(pix_fmt="rgb24", width=161, height=121)
    assert choose_picture(odd, VideoSettings()).pix_fmt == "yuv444p"
    lossless = VideoSettings(encoder="libx265", options={"x265-params": "lossless=1"})
    assert choose_picture(an_index(pix_fmt="rgb24"), lossless).pix_fmt == "gbrp"
    assert choose_picture(an_index(pix_fmt="rgb24"), VideoSettings(pix_fmt="yuv422p")).pix_fmt == "yuv422p"


def test_the_old_full_range_formats_lose_nothing() -> None:
    index = an_index(pix_fmt="yuvj420p")
    frame = picture(3, pix_fmt="yuvj420p")
    frame.pts, frame.time_base = 7, Fraction(1, 25)
    shaped = conform(frame, choose_picture(index, VideoSettings()))
    assert shaped.format.name == "yuv420p"
    assert frame_crc(shaped) == frame_crc(frame)
    assert (shaped.pts, shaped.time_base) == (7, Fraction(1, 25))


def test_every_picture_becomes_the_size_of_the_first() -> None:
    shaped = conform(picture(0, 32, 24), choose_picture(an_index(), VideoSettings()))
    assert (shaped.width, shaped.height) == (64, 48)


def test_the_build_is_named() -> None:
    assert build_identity() == build_identity()
    assert f"PyAV-{av.__version__}" in build_identity()


RENDER_ONCE = """
import hashlib, sys
from fractions import Fraction
from pathlib import Path
from farm.media.encode import open_encoder
from farm.media.index import index_source
from farm.media.read import FrameReader
from farm.settings import VideoSettings
index = index_source(Path(sys.argv[1]))
encoder = open_encoder(index, VideoSettings(preset="veryfast"))
digest = hashlib.sha256()
for _, frame in FrameReader(index).read(90, 120):
    frame.pict_type = 0
    for packet in encoder.encode(frame):
        digest.update(bytes(packet))
for packet in encoder.encode(None):
    digest.update(bytes(packet))
print(digest.hexdigest())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="MALLOC_PERTURB_ is glibc's")
def test_the_bytes_do_not_depend_on_what_the_memory_held() -> None:
    """x264's AVX-512 code read memory nobody wrote: one run in forty gave other bytes (see ``pinned``)."""
    path = corpus("S02")
    assert index_source(path).frames == 120
    digests = {
        subprocess.run(
            [sys.executable, "-c", RENDER_ONCE, str(path)],
            env=os.environ | {"MALLOC_PERTURB_": value},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for value in ("85", "170")
    }
    assert len(digests) == 1
