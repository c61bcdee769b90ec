"""Filters through the whole farm, as they are typed."""

from __future__ import annotations

from pathlib import Path

import av
import pytest

from farm.media.index import index_source
from farm.media.read import frame_crc
from tests.e2e.command import run
from tests.e2e.test_sequences import stop_after_a_part
from tests.filters.compare import in_one_pass, settings
from tests.filters.examples import make_files
from tests.media.clips import make_clip

GRAPH = "movie=logo.png[l];[in]scale=96:-2,tmix=frames=3[a];[a][l]overlay=x=4*t,fade=t=in:d=1"
LOSSLESS = ("-e", "ffv1", "--part", "12,fixed", "--fleet", "max,60")


def pictures(path: Path) -> list[int]:
    with av.open(str(path)) as file:
        return [frame_crc(frame) for frame in file.decode(video=0)]


def test_a_filtered_film_has_the_frames_of_one_pass(tmp_path: Path) -> None:
    make_files(tmp_path)
    film = make_clip(tmp_path / "film.mp4", frames=60, audio_seconds=2.0)
    done = run("render", film, "-o", "out.mkv", "--filter", GRAPH, *LOSSLESS, cwd=tmp_path)
    assert done.process.returncode == 0, done.stderr
    expected = in_one_pass(index_source(film), settings(GRAPH, tmp_path))
    assert pictures(tmp_path / "out.mkv") == [frame.crc for frame in expected]
    assert len({event["worker"] for event in done.of("part_credited")}) == 2

    less = run(
        *("render", film, "-o", "less.mkv", "--filter", "select='not(mod(n,4))'", "--one-pass"),
        *("-e", "ffv1", "-w", "2"),
        cwd=tmp_path,
    )
    assert less.process.returncode == 0, less.stderr
    assert len(pictures(tmp_path / "less.mkv")) == 15
    assert less.of("notice", level="warning", text=lambda text: "60 frames go into the filters, 15" in text)


@pytest.mark.slow
def test_a_file_of_a_filter_belongs_to_the_run(tmp_path: Path) -> None:
    make_files(tmp_path)
    film = make_clip(tmp_path / "film.mp4", frames=60)
    slow = ("--fleet", "12", "--part", "6", "--schedule", "fixed,6")
    command = ("render", film, "-o", tmp_path / "out.mkv", "--filter", "lut3d=warm.cube", "-e", "ffv1", *slow)
    stop_after_a_part(*command, cwd=tmp_path)
    table = (tmp_path / "warm.cube").read_text()
    (tmp_path / "warm.cube").write_text(table.replace("0.9", "0.7"))
    refused = run(*command, cwd=tmp_path)
    assert refused.process.returncode == 4
    assert "warm.cube, which a filter reads, has changed" in refused.stderr
    (tmp_path / "warm.cube").write_text(table)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    resumed = run("resume", tmp_path / "out.mkv", "--fleet", "max", cwd=elsewhere)
    assert resumed.process.returncode == 0, resumed.stderr
    expected = in_one_pass(index_source(film), settings("format=yuv420p,lut3d=warm.cube", tmp_path))
    assert pictures(tmp_path / "out.mkv") == [frame.crc for frame in expected]
