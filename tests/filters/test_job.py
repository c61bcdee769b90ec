"""Filters in a job: what comes before and after them, what is said, and what belongs to a run."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from farm.machine import worker_memory_bytes
from farm.media.encode import choose_picture
from farm.media.pictures import open_pictures
from farm.media.read import frame_crc
from farm.media.render import PartRenderer, RenderError
from farm.media.tasks import probe_job
from farm.plan import cut_grid
from farm.settings import (
    FilterSettings,
    GridSettings,
    ImageOutput,
    JobSettings,
    Moment,
    SourceSettings,
    TrimSettings,
    VideoSettings,
    settings_hash,
)
from farm.source import SourceIndex
from tests.filters.compare import by_parts, settings
from tests.media.clips import make_clip
from tests.media.jobs import HASH, Patient


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clip(tmp_path_factory.mktemp("job") / "film.mp4", frames=60, gop=16)


def with_filters(graph: str, film: Path, **changes: object) -> JobSettings:
    return msgspec.structs.replace(settings(graph, film.parent), **changes)


def crcs(index: SourceIndex, job: JobSettings) -> list[int]:
    return [frame.crc for frame in by_parts(index, job, 8)]


def test_filters_see_the_frames_that_are_taken_at_the_rate_that_is_asked_for(film: Path) -> None:
    trim = TrimSettings(start=Moment(frame=10), stop=Moment(frame=60), every=2)
    source = SourceSettings(fps=(50, 1))
    job = with_filters(
        "drawbox=t=fill:w=4:h=48:enable='lt(t,0.1)',tmix=frames=3", film, trim=trim, source=source
    )
    taken = probe_job(film, with_filters("null", film, trim=trim, source=source)).index
    index = probe_job(film, job).index
    assert index.frames == 25 and index.pts == taken.pts and index.cut == taken.cut
    pictures = open_pictures(index, job)
    whole = [frame_crc(frame) for _, frame in pictures.read(0, index.frames)]
    assert crcs(index, job) == whole
    pictures.close()
    # A frame of 0.04 s each, the box is on those before 0.1 s of the output, and mixed into the next two.
    plain = crcs(*_job(film, with_filters("tmix=frames=3", film, trim=trim, source=source)))
    assert [number for number, pair in enumerate(zip(plain, whole, strict=True)) if pair[0] != pair[1]] == [
        0,
        1,
        2,
        3,
        4,
    ]


def _job(film: Path, job: JobSettings) -> tuple[SourceIndex, JobSettings]:
    return probe_job(film, job).index, job


def test_images_that_are_left_out_are_seen_by_their_neighbours(film: Path) -> None:
    job = with_filters("tmix=frames=3", film, container="images", video=VideoSettings(encoder="png"))
    index = probe_job(film, job).index
    all_of_them = dict(zip(index.numbers, crcs(index, job), strict=True))
    some = msgspec.structs.replace(job, images=ImageOutput(existing=((1, 9), (12, 40))))
    left = probe_job(film, some).index
    assert left.numbers == (9, 10, 11, *range(40, 61))
    assert dict(zip(left.numbers, crcs(left, some), strict=True)).items() <= all_of_them.items()


def test_behind_a_deinterlacer_pictures_are_not_marked_as_interlaced(tmp_path: Path) -> None:
    fields = make_clip(
        tmp_path / "fields.mkv", frames=8, codec="mpeg2video", b_frames=0, options={"flags": "+ildct+ilme"}
    )
    kept = probe_job(fields, with_filters("hflip", fields)).index
    ended = probe_job(fields, with_filters("bwdif=mode=send_frame", fields)).index
    assert kept.field_order > 1 and ended.field_order == 0


def test_the_encoder_gets_what_comes_out(film: Path) -> None:
    job = with_filters("scale=32:36,setsar=2,curves=vintage", film, video=VideoSettings(encoder="libx264"))
    index = probe_job(film, job).index
    picture = choose_picture(index, job.video)
    assert (picture.width, picture.height, picture.pix_fmt) == (32, 36, "yuv444p")
    assert index.sample_aspect_ratio == (2, 1)


def test_a_film_in_one_pass_is_one_part_with_known_frames(film: Path) -> None:
    filters = FilterSettings(graph="select='not(mod(n,3))',setpts=2*PTS", one_pass=True)
    job = JobSettings(filters=filters, grid=GridSettings(frames=8))
    index = probe_job(film, job).index
    assert cut_grid(index, job.grid) == (0, 20)
    seconds = [(pts - index.pts[0]) * Fraction(*index.time_base) for pts in index.pts]
    assert {after - before for before, after in pairwise(seconds)} == {Fraction(6, 25)}
    asked = with_filters("hflip", film, filters=FilterSettings(graph="hflip", one_pass=True))
    assert cut_grid(probe_job(film, asked).index, GridSettings(frames=8)) == (0, 60)


def test_filters_that_break_their_promise_end_the_part_and_not_as_a_wrong_film(
    film: Path, tmp_path: Path
) -> None:
    job = with_filters("hflip", film)
    index = probe_job(film, job).index
    broken = msgspec.structs.replace(
        job, filters=FilterSettings(graph="select='not(eq(pts,0))',hflip", one_pass=True)
    )
    renderer = PartRenderer(index, broken, HASH)
    with pytest.raises(RenderError, match="gave nothing for frame 0") as failure:
        renderer.render(0, 0, 8, tmp_path / "part", Patient())
    assert failure.value.kind == "filters" and not (tmp_path / "part").exists()


def test_a_filter_is_a_setting_and_the_folder_of_its_files_is_not() -> None:
    def hashed(**filters: object) -> str:
        return settings_hash(JobSettings(filters=FilterSettings(**filters)), "build", "input")  # type: ignore[arg-type]

    assert hashed(graph="hflip") != hashed() and hashed(graph="hflip") != hashed(graph="vflip")
    assert hashed(graph="hflip") != hashed(graph="hflip", one_pass=True)
    assert hashed(graph="hflip", folder="/a") == hashed(graph="hflip", folder="/b")


def test_memory_is_estimated_for_the_larger_picture_and_what_filters_hold(film: Path) -> None:
    plain = probe_job(film, JobSettings()).index
    small = probe_job(film, with_filters("scale=16:12", film)).index
    large = probe_job(film, with_filters("scale=640:480", film)).index
    held = probe_job(film, with_filters("tmix=frames=100", film)).index
    video = VideoSettings()
    assert worker_memory_bytes(small, video) >= worker_memory_bytes(plain, video)
    assert worker_memory_bytes(large, video) > worker_memory_bytes(plain, video)
    assert worker_memory_bytes(held, video) >= worker_memory_bytes(plain, video) + 99 * 64 * 48 * 4
