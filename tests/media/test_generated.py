"""Generated sources over codec, container, GOP, B-frames and frame rate: through parts and stitch they keep
every picture and every time of one pass over the source.

The parts are rendered as two workers would: one takes every other part from the front, one the rest from the
back. The judge (tests.e2e.judge) uses nothing of ours.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from farm.media.index import index_source
from farm.media.render import PartRenderer
from farm.media.stitch import stitch
from farm.media.verify import verify
from farm.settings import GridSettings, JobSettings, VideoSettings
from farm.source import part_cuts
from tests.e2e import judge
from tests.media.clips import make_clip
from tests.media.jobs import HASH, Patient

NTSC, FILM, FIFTY_NINE = Fraction(30000, 1001), Fraction(24000, 1001), Fraction(60000, 1001)
MS, TS, FINE = Fraction(1, 1000), Fraction(1, 90_000), Fraction(1, 1_000_000)
#: Encoders that lose nothing, in the order of preference, with a container that keeps every time.
X264 = VideoSettings(encoder="libx264", preset="ultrafast", options={"qp": "0"})
FFV1 = VideoSettings(encoder="ffv1")


@dataclass(frozen=True)
class Source:
    name: str  #: its extension chooses the container
    codec: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.codec}-{self.name}"


def src(name: str, codec: str, **options: Any) -> Source:
    return Source(name, codec, options)


def vfr(seed: int, tick: Fraction, frames: int = 60, start: int = 0) -> dict[str, Any]:
    """Gaps of 1 ms to 200 ms, no two neighbours alike."""
    chance = random.Random(seed)
    gaps = [max(1, round(Fraction(chance.randint(1, 200), 1000) / tick)) for _ in range(frames - 1)]
    return {"pts": list(accumulate(gaps, initial=start)), "time_base": tick}


def x264(params: str) -> dict[str, Any]:
    return {"options": {"x264-params": params}}


def x265(params: str = "") -> dict[str, Any]:
    return {"options": {"x265-params": f"log-level=none:{params}".rstrip(":")}}


EVERYDAY = [
    src("ntsc-b3.mp4", "libx264", rate=NTSC, b_frames=3),
    src("vfr.mkv", "libx264", **vfr(1, MS)),
    src("open.ts", "libx264", time_base=TS, **x264("open-gop=1:keyint=20:bframes=3")),
    src("vfr.webm", "libvpx-vp9", b_frames=0, **vfr(2, MS)),
]
SOURCES = [
    src("film-long.mp4", "libx264", rate=FILM, gop=250, **x264("keyint=250:scenecut=0")),
    src("intra.mp4", "libx264", rate=FIFTY_NINE, gop=1, b_frames=0),
    src("vfr.mp4", "libx264", b_frames=3, **vfr(3, TS)),
    src("vfr-late.mp4", "libx264", **vfr(4, TS, start=9_000_000)),
    src("vfr-fine.mov", "libx264", **vfr(5, Fraction(1, 60_000))),
    src("open.mp4", "libx264", rate=NTSC, **x264("open-gop=1:keyint=12:bframes=3:b-pyramid=strict")),
    src("refresh.mp4", "libx264", b_frames=0, **x264("intra-refresh=1:keyint=20")),
    src("fragments.mp4", "libx264", container_options={"movflags": "frag_keyframe+empty_moov"}),
    src("ntsc.flv", "libx264", rate=NTSC, time_base=MS),
    src("late.ts", "libx264", rate=NTSC, **{**vfr(6, TS), "pts": [900_000 + 3003 * n for n in range(60)]}),
    src("vfr.ts", "libx264", **vfr(7, TS)),
    src("b.avi", "libx264", b_frames=2),
    src("raw.h264", "libx264", b_frames=3),
    src("444.mkv", "libx264", pix_fmt="yuv444p", rate=FILM, time_base=MS),
    src("10bit.mp4", "libx264", pix_fmt="yuv420p10le", rate=FIFTY_NINE),
    src("odd.mkv", "libx264", pix_fmt="yuv444p", width=65, height=49, time_base=MS),
    src("hevc.mp4", "libx265", rate=NTSC, **x265("keyint=12:bframes=3")),
    src("hevc-open.mkv", "libx265", time_base=MS, **x265("open-gop=1:keyint=12:bframes=4")),
    src("hevc.ts", "libx265", time_base=TS, **x265("keyint=24")),
    src("hevc10.mp4", "libx265", pix_fmt="yuv420p10le", **vfr(8, TS), **x265()),
    src("raw.hevc", "libx265", **x265("keyint=12")),
    src("av1.mp4", "libsvtav1", rate=FILM, b_frames=0, gop=24, options={"preset": "12"}),
    src("av1-vfr.mkv", "libsvtav1", b_frames=0, **vfr(9, MS), options={"preset": "12"}),
    src("vp9.mkv", "libvpx-vp9", b_frames=0, rate=NTSC, time_base=MS),
    src("vp9-alt.webm", "libvpx-vp9", b_frames=0, gop=30, time_base=MS, options={"lag-in-frames": "16"}),
    src("vp8.webm", "libvpx", b_frames=0, gop=20, rate=FILM, time_base=MS),
    src("vp9.ivf", "libvpx-vp9", b_frames=0),
    src("asp.avi", "mpeg4", b_frames=0, rate=NTSC),
    src("asp-b.mp4", "mpeg4", b_frames=2),
    src("asp-b.avi", "mpeg4", b_frames=2),
    src("raw.m4v", "mpeg4", b_frames=0),
    src("m2-open.mpg", "mpeg2video", rate=NTSC, b_frames=2, gop=15),
    src("m2.ts", "mpeg2video", rate=Fraction(25), b_frames=2),
    src("m2.mkv", "mpeg2video", rate=FILM, b_frames=0),
    src("m1.mpg", "mpeg1video", b_frames=2),
    src("prores.mov", "prores_ks", pix_fmt="yuv422p10le", b_frames=0, rate=FILM),
    src("prores-vfr.mov", "prores_ks", pix_fmt="yuv422p10le", b_frames=0, **vfr(10, TS)),
    src("alpha.mov", "prores_ks", pix_fmt="yuva444p10le", b_frames=0),
    src(
        "dnx.mov",
        "dnxhd",
        pix_fmt="yuv422p",
        b_frames=0,
        width=256,
        height=120,
        options={"profile": "dnxhr_sq"},
    ),
    src("mjpeg.avi", "mjpeg", pix_fmt="yuvj420p", b_frames=0, rate=NTSC),
    src("mjpeg-vfr.mkv", "mjpeg", pix_fmt="yuvj422p", b_frames=0, **vfr(11, MS)),
    src("ffv1.mkv", "ffv1", pix_fmt="yuv422p12le", b_frames=0, time_base=MS),
    src("ffv1.avi", "ffv1", pix_fmt="bgra", b_frames=0),
    src("gray.mkv", "ffv1", pix_fmt="gray", b_frames=0, **vfr(12, MS)),
    src("huff.avi", "huffyuv", pix_fmt="yuv422p", b_frames=0),
    src("qtrle.mov", "qtrle", pix_fmt="rgb24", b_frames=0),
    src("png.mov", "png", pix_fmt="rgba", b_frames=0),
    src("flv1.flv", "flv", b_frames=0, time_base=MS),
    src("wmv2.wmv", "wmv2", b_frames=0, time_base=MS),
    src("h263.avi", "h263p", b_frames=0),
    src("a.gif", "gif", pix_fmt="rgb8", b_frames=0),
    src("a.apng", "apng", pix_fmt="rgba", b_frames=0),
    src("one.mp4", "libx264", frames=1),
    src("two.mkv", "libx264", frames=2, time_base=MS),
    src("raw.y4m", "wrapped_avframe", b_frames=0),
    src("wrap.ts", "libx264", time_base=TS, pts=[2**33 - 90_000 + 3600 * n for n in range(60)]),
    src("vp8.ogg", "libvpx", b_frames=0),
    src("m2.mxf", "mpeg2video", b_frames=2),
    src("mjpeg.nut", "mjpeg", pix_fmt="yuvj444p", b_frames=0),
    src("h264.nut", "libx264", b_frames=3, **vfr(13, FINE)),
    src("h263.3gp", "h263", width=176, height=144, b_frames=0),
    src("raw.avi", "rawvideo", pix_fmt="yuv420p", b_frames=0),
    src("v210.mov", "v210", pix_fmt="yuv422p10le", b_frames=0),
    src("cfhd.mov", "cfhd", pix_fmt="yuv422p10le", width=128, height=96, b_frames=0),
    src("rv20.rm", "rv20", width=176, height=144, b_frames=0),
    src("av1.obu", "libsvtav1", b_frames=0, options={"preset": "12"}),
    src("av1.ivf", "libsvtav1", b_frames=0, options={"preset": "12"}),
    src("jp2.mov", "jpeg2000", pix_fmt="yuv444p", b_frames=0),
    src("utvideo.avi", "utvideo", pix_fmt="gbrp", b_frames=0),
    src("fine.mkv", "libx264", pts=[n * 1001 for n in range(60)], time_base=Fraction(1, 30_000)),
    src("interlaced.ts", "libx264", time_base=TS, **x264("tff=1:keyint=24")),
    src("interlaced.mpg", "mpeg2video", b_frames=2, options={"flags": "+ildct+ilme"}),
    src("gap.mp4", "libx264", pts=[*range(0, 30), *range(5000, 5030)], time_base=Fraction(1, 25)),
    src("huge.mov", "libx264", pts=[2**31 + 3003 * n for n in range(60)], time_base=TS),
]


@pytest.mark.parametrize("source", EVERYDAY, ids=lambda source: source.label)
def test_pictures_and_times_are_those_of_one_pass(source: Source, tmp_path: Path) -> None:
    assert_kept(source, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.label)
def test_pictures_and_times_of_all_kinds(source: Source, tmp_path: Path) -> None:
    assert_kept(source, tmp_path)


def assert_kept(source: Source, folder: Path) -> None:
    path = make_clip(folder / source.name, codec=source.codec, **source.options)
    index = index_source(path)
    exact = index.pix_fmt.replace("yuvj", "yuv") in {"yuv420p", "yuv422p", "yuv444p", "yuv420p10le"}
    exact = exact and index.width % 2 == 0
    video, container, name = (X264, "mp4", "out.mp4") if exact else (FFV1, "matroska", "out.mkv")
    settings = JobSettings(video=video, grid=GridSettings(frames=9), container=container)
    cuts = list(pairwise(part_cuts(index.frames, 9, index.keys)))
    parts = [folder / f"part-{number}" for number in range(len(cuts))]
    one, two = (PartRenderer(index, settings, HASH) for _ in range(2))
    for number in range(0, len(cuts), 2):
        one.render(number, *cuts[number], parts[number], Patient())
    for number in reversed(range(1, len(cuts), 2)):
        two.render(number, *cuts[number], parts[number], Patient())
    one.close()
    two.close()
    facts = stitch(index, settings, HASH, parts, folder / name, lambda fraction: None)
    verify(folder / name, container, index, decode="all", carried=facts.carried)
    tick = Fraction(0) if exact else MS
    found = judge.compare(path, folder / name, tick=tick)
    assert found.frames_in == len(source.options.get("pts", range(source.options.get("frames", 60))))
    assert found.right, found
    assert found.hashes.startswith("equal"), found
