"""Pictures of lossless outputs are compared one by one; where that makes no sense, why not is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.facts import Pictures
from farm.media.contents import read_contents
from farm.media.pixels import compare_pictures, why_incomparable
from farm.settings import JobSettings, VideoSettings
from farm.trim import only
from tests.media.clips import make_clip
from tests.media.jobs import Job, render_job

LOSSLESS = VideoSettings(encoder="ffv1")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("job")
    source = make_clip(folder / "clip.mp4", frames=36, gop=12)
    return render_job(source, folder, video=LOSSLESS, part_frames=12, container="matroska")


@pytest.fixture(scope="module")
def output(job: Job) -> Path:
    path = job.parts[0].with_name("out.mkv")
    job.stitch(path)
    return path


def test_all_are_the_same_whether_the_settings_are_known_or_not(job: Job, output: Path) -> None:
    contents = read_contents(output)
    for settings in (job.settings, None):
        assert why_incomparable(contents, settings) == ""
        assert compare_pictures(output, contents, job.index, settings) == Pictures(compared=36)


def test_the_first_that_differs_is_named(job: Job, output: Path) -> None:
    """Beside a source without its frame 20: from there on every picture is the one before."""
    lacking = only(job.index, [frame for frame in range(36) if frame != 20])
    found = compare_pictures(output, read_contents(output), lacking, job.settings)
    assert (found.differs, found.compared, found.seconds) == (20, 20, pytest.approx(0.8))


class Filtered(JobSettings, frozen=True, kw_only=True):
    """Settings as another version may have them."""

    filter: str = ""


def test_why_they_can_not_be_compared(output: Path) -> None:
    contents = read_contents(output)

    def why(settings: JobSettings) -> str:
        return why_incomparable(contents, settings)

    assert why(JobSettings()) == "libx264 loses something"
    assert why(JobSettings(video=VideoSettings(options={"qp": "0"}))) == ""
    assert why(Filtered(video=LOSSLESS)) == ""
    assert why(Filtered(video=LOSSLESS, filter="negate")) == "the setting filter may have changed them"
