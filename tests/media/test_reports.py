"""What peers' users reported of frames, times and joins (bug-reports.md), each told by its id.

RG04, RG05, RG06, RG07, RG08, RG11, RG13, RG14 and RG29 are in test_stitch.py, where they belong by subject.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import pytest

from farm.media.clip import make_clip as make_numbered_clip
from farm.media.clip import read_number
from farm.media.index import index_source
from farm.settings import VideoSettings
from tests.e2e import judge
from tests.media.clips import corpus, make_clip
from tests.media.jobs import FAST, render_job


@pytest.mark.parametrize(("name", "header", "decoded"), [("S28", 98, 96), ("S29", 59, 58), ("S04", 13, 12)])
def test_rg01_the_plan_is_made_from_frames_not_from_headers(
    name: str, header: int, decoded: int, tmp_path: Path
) -> None:
    with av.open(str(corpus(name))) as file:
        assert file.streams.video[0].frames == header
    job = render_job(corpus(name), tmp_path, part_frames=5)
    assert job.index.frames == decoded
    assert job.verify(tmp_path / "out", job.stitch(tmp_path / "out")).frames == decoded


@pytest.mark.parametrize("frames", [1, 2, 3, 13, 25])
def test_rg02_the_frames_held_back_at_the_end_are_there(frames: int, tmp_path: Path) -> None:
    source = make_clip(tmp_path / "a.mp4", frames=frames, b_frames=3)
    job = render_job(source, tmp_path, part_frames=4, video=VideoSettings(preset="veryfast"))
    assert job.verify(tmp_path / "out", job.stitch(tmp_path / "out")).frames == frames


@pytest.mark.parametrize("rate", [Fraction(24), Fraction(24000, 1001), Fraction(7), Fraction(1, 3)])
def test_rg03_three_frames_are_three(rate: Fraction, tmp_path: Path) -> None:
    source = make_clip(tmp_path / "a.mp4", frames=3, rate=rate)
    job = render_job(source, tmp_path, part_frames=1)
    found = job.verify(tmp_path / "out", job.stitch(tmp_path / "out"))
    assert found.frames == 3
    assert found.duration_seconds == pytest.approx(float(3 / rate), abs=1e-6)


@pytest.mark.parametrize("name", ["S47", pytest.param("S17", marks=pytest.mark.slow)])
def test_rg09_rg10_every_time_of_a_variable_rate_is_kept(name: str, tmp_path: Path) -> None:
    """Neither are frames made or dropped for the sake of a rate, nor is a time moved. (S16 and S18 are in
    tests/e2e/test_corpus.py.)"""
    video = VideoSettings(preset="ultrafast", crf=40, pix_fmt="yuv444p")
    job = render_job(corpus(name), tmp_path, video=video, part_frames=20)
    output = tmp_path / "out"
    job.verify(output, job.stitch(output))
    found = judge.compare(corpus(name), output, lossless=False)
    assert found.frames_in == found.frames_out and found.times.startswith("equal"), found
    gaps = {after - before for before, after in zip(job.index.pts, job.index.pts[1:], strict=False)}
    assert len(gaps) > 1, "its rate is constant: this shows nothing"


def test_rg12_pictures_come_in_their_order_with_b_frames(tmp_path: Path) -> None:
    source = tmp_path / "numbered.mp4"
    make_numbered_clip(source, frames=60, width=104, height=64)
    video = VideoSettings(preset="medium", crf=20, options={"x264-params": "bframes=3:b-adapt=0"})
    job = render_job(source, tmp_path, video=video, part_frames=20)
    job.verify(tmp_path / "out", job.stitch(tmp_path / "out"))
    with av.open(str(tmp_path / "out")) as file:
        packets = [packet.pts for packet in file.demux(video=0) if packet.pts is not None]
        assert packets != sorted(packets), "no B-frames: this shows nothing"
    with av.open(str(tmp_path / "out")) as file:
        assert [read_number(frame) for frame in file.decode(video=0)] == list(range(60))


def test_a_source_of_no_known_rate_has_its_times(tmp_path: Path) -> None:
    """The rate in the header is of no account at all."""
    source = make_clip(tmp_path / "a.mkv", pts=[0, 5, 2000, 2001], time_base=Fraction(1, 1000))
    assert index_source(source).pts == (0, 5, 2000, 2001)
    job = render_job(source, tmp_path, video=FAST, part_frames=2)
    job.verify(tmp_path / "out", job.stitch(tmp_path / "out"))
    shown = judge.one_pass(tmp_path / "out")
    assert [entry.time for entry in shown] == [Fraction(t, 1000) for t in (0, 5, 2000, 2001)]
