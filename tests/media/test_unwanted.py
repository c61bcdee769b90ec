"""Damage and changes of size: said with their place, or refused where the user doesn't want them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import msgspec
import pytest

from farm.errors import InputError
from farm.media.index import index_source
from farm.media.tasks import probe_job
from farm.settings import JobSettings, Moment, SourceSettings, TrimSettings
from tests.e2e import judge
from tests.media.clips import make_clip
from tests.media.jobs import FAST, Job, render_job

TS = Fraction(1, 90_000)
TICKS = 3600  # a frame, at 25 a second


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of 30 pictures of 64x48, then 30 of 96x64."""
    return make_growing(tmp_path_factory.mktemp("growing"), 30)


def make_growing(folder: Path, second: int) -> Path:
    """The second size begins ``second`` frames after zero. FFmpeg begins a stream with B-frames at 2: from 32
    on times are in order, with 30 nobody can trust them."""
    small, large = (
        make_clip(
            folder / f"{width}.ts",
            frames=30,
            width=width,
            height=height,
            time_base=TS,
            pts=[start + TICKS * number for number in range(30)],
        )
        for width, height, start in ((64, 48, 0), (96, 64, second * TICKS))
    )
    path = folder / "growing.ts"
    path.write_bytes(small.read_bytes() + large.read_bytes())
    return path


def wanting(job: Job, **source: object) -> Job:
    settings = msgspec.structs.replace(job.settings, source=SourceSettings(**source))  # type: ignore[arg-type]
    return Job(job.index, settings, job.parts)


def test_a_change_of_size_is_said_and_scaled_to_the_first(growing: Path, tmp_path: Path) -> None:
    job = render_job(growing, tmp_path, part_frames=12)
    facts = job.stitch(tmp_path / "out.mp4")
    job.verify(tmp_path / "out.mp4", facts)
    shown = judge.one_pass(tmp_path / "out.mp4")
    assert len(shown) == 60 and {entry.size for entry in shown} == {(64, 48)}
    (words,) = [warning for warning in facts.warnings if "size" in warning]
    first = job.index.pts[30] * TS
    assert words.startswith("30 of 60 pictures have another size than the first (64x48)")
    assert f"from {float(first):.3f} s on" in words


def test_a_change_of_pixel_format_is_said(tmp_path: Path) -> None:
    path = tmp_path / "two.ts"
    for number, pix_fmt in enumerate(("yuv420p", "yuv444p")):
        times = [(number * 20 + 2 + n) * TICKS for n in range(20)]
        clip = make_clip(tmp_path / f"{pix_fmt}.ts", frames=20, pix_fmt=pix_fmt, time_base=TS, pts=times)
        with path.open("ab") as file:
            file.write(clip.read_bytes())
    facts = render_job(path, tmp_path, part_frames=12).stitch(tmp_path / "out.mp4")
    (words,) = [warning for warning in facts.warnings if "format" in warning]
    assert words.startswith("20 of 40 pictures have another pixel format than the first (yuv420p), from ")


def test_a_change_of_size_is_refused_on_request_before_the_work(growing: Path) -> None:
    settings = JobSettings(video=FAST, source=SourceSettings(on_size_change="refuse"))
    with pytest.raises(InputError, match=r"change from 64x48 to 96x64 at [\d.]+ s; --on-size-change scale"):
        probe_job(growing, settings)


def taking(start: int | None, stop: int | None, **source: object) -> JobSettings:
    """Settings for frames ``[start, stop)``."""
    moments = (None if frame is None else Moment(frame=frame) for frame in (start, stop))
    trim = TrimSettings(**dict(zip(("start", "stop"), moments, strict=True)))
    return JobSettings(video=FAST, trim=trim, source=SourceSettings(**source))  # type: ignore[arg-type]


@pytest.mark.parametrize(("second", "linear"), [(30, True), (32, False)])
def test_a_change_of_size_outside_of_what_is_taken_is_nobodys_business(
    tmp_path: Path, second: int, linear: bool
) -> None:
    growing = make_growing(tmp_path, second)
    assert index_source(growing).linear is linear
    assert probe_job(growing, taking(3, 30, on_size_change="refuse")).index.frames == 27
    assert probe_job(growing, taking(3, 30, on_size_change="refuse", fps=(25, 1))).index.frames == 27
    for start, stop, at in ((0, 31, 30), (20, 50, 30), (40, 50, 40)):
        with pytest.raises(InputError, match="change from 64x48 to 96x64 at") as refusal:
            probe_job(growing, taking(start, stop, on_size_change="refuse"))
        assert f" {float(index_source(growing).pts[at] * TS):.3f} s;" in str(refusal.value)


def test_damage_outside_of_what_is_taken_is_nobodys_business(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "cut.mkv", frames=250)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    frames = index_source(path).frames
    assert probe_job(path, taking(10, 50, on_error="stop")).warnings == ()
    for stop in (None, frames + 100):
        with pytest.raises(InputError, match="probably cut off"):
            probe_job(path, taking(frames - 5, stop, on_error="stop"))


def test_damage_in_the_middle_counts_where_it_is(tmp_path: Path) -> None:
    """A transport stream whose packets are missing: the demuxer says which pictures that cost."""
    path = make_clip(tmp_path / "hole.ts", frames=250, time_base=TS)
    data = path.read_bytes()
    hole = len(data) // 188 // 2 * 188
    path.write_bytes(data[:hole] + data[hole + 10 * 188 :])
    index = index_source(path)
    (found,) = index.damage
    first = min(number for number, pts in enumerate(index.pts) if pts >= min(found.at))
    assert 60 < first < 190
    assert probe_job(path, taking(0, first - 30, on_error="stop")).warnings == ()
    assert probe_job(path, taking(first + 30, None, on_error="stop")).warnings == ()
    with pytest.raises(InputError, match=r"is damaged: \d+ of its packets"):
        probe_job(path, taking(first - 30, first + 30, on_error="stop"))


def test_a_change_of_size_that_was_overlooked_is_refused_before_the_output(
    growing: Path, tmp_path: Path
) -> None:
    job = wanting(render_job(growing, tmp_path, part_frames=12), on_size_change="refuse")
    with pytest.raises(InputError, match=r"30 of 60 pictures have another size.*-change scale goes on"):
        job.stitch(tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()


def broken(path: Path, *, gone: bool) -> Path:
    """A packet in the middle made undecodable: one that others lean on (its pictures are damaged), or of a
    codec that gives no picture then (it is gone)."""
    with av.open(str(path)) as file:
        packets = [p for p in file.demux(video=0) if p.size]
        victim = packets[30]
        position, size = victim.pos, victim.size
    assert position is not None
    data = bytearray(path.read_bytes())
    data[position + (0 if gone else size // 2) : position + size] = bytes(size if gone else size - size // 2)
    path.write_bytes(data)
    return path


def test_damaged_pictures_are_counted_with_their_place(tmp_path: Path) -> None:
    path = broken(make_clip(tmp_path / "a.mpg", codec="mpeg2video"), gone=False)
    job = render_job(path, tmp_path, part_frames=12)
    facts = job.stitch(tmp_path / "out.mp4")
    damaged = [entry for entry in judge.one_pass(path) if entry.damaged]
    assert damaged and damaged[0].time is not None
    assert facts.warnings[-1].startswith(f"{len(damaged)} of 60 frames are damaged")
    assert facts.warnings[-1].endswith(f"the first at {float(damaged[0].time):.3f} s")
    with pytest.raises(InputError, match=r"is damaged: .* the first at .*; --on-error skip goes on"):
        wanting(job, on_error="stop").stitch(tmp_path / "no.mp4")
    assert not (tmp_path / "no.mp4").exists()
    wanting(job, on_error="skip").stitch(tmp_path / "yes.mp4")


def test_lost_pictures_are_counted_with_their_place(tmp_path: Path) -> None:
    path = broken(make_clip(tmp_path / "a.mp4", codec="libvpx-vp9", b_frames=0, gop=10), gone=True)
    job = render_job(path, tmp_path, part_frames=12)
    facts = job.stitch(tmp_path / "out.mp4")
    whole, left = set(job.index.pts), judge.one_pass(path)
    lost = sorted(whole - {(entry.time or 0) / Fraction(*job.index.time_base) for entry in left})
    assert lost
    at = float(lost[0] * Fraction(*job.index.time_base))
    assert any(f"{len(lost)} of 60 frames could not be decoded" in words for words in facts.warnings)
    assert any(f"the first at {at:.3f} s" in words for words in facts.warnings)
    with pytest.raises(InputError, match="could not be decoded"):
        wanting(job, on_error="stop").stitch(tmp_path / "no.mp4")


def test_a_file_that_is_cut_off_is_refused_on_request_before_the_work(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mkv", frames=250)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert index_source(path).damage
    with pytest.raises(InputError, match=r"a\.mkv is damaged: it ends after .*; --on-error skip"):
        probe_job(path, JobSettings(video=FAST, source=SourceSettings(on_error="stop")))
    assert any("probably cut off" in words for words in probe_job(path, JobSettings(video=FAST)).warnings)
