"""Text burnt in and cuts of one's own, through the command line and a whole farm."""

from __future__ import annotations

import json
import signal
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from tests.e2e.command import Command, run
from tests.media.test_burn import read

CUTS = (37, 100, 101, 190)


def scenes(path: Path, frames: int, *cuts: int) -> Path:
    edges = (0, *cuts, frames)
    listed = [{"start_frame": a, "end_frame": b} for a, b in pairwise(edges)]
    path.write_text(json.dumps({"frames": frames, "scenes": listed}))
    return path


def test_scenes_of_another_film_are_refused_before_any_work(clip: Path, tmp_path: Path) -> None:
    listed = scenes(tmp_path / "scenes.json", 500, *CUTS)
    refused = run("render", clip, "-o", "out.mp4", "--cuts", listed, cwd=tmp_path)
    assert refused.process.returncode == 2
    assert "a film of 500 frames, and the input has 480" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["scenes.json"]


@pytest.mark.slow
def test_text_and_cuts_are_the_same_on_any_fleet_and_after_a_stop(clip: Path, tmp_path: Path) -> None:
    listed = scenes(tmp_path / "scenes.json", 480, *CUTS)
    lines = tmp_path / "cuts.txt"
    lines.write_text("\n".join(map(str, CUTS)))
    wanted = ("--burn-timecode", "bottom-left", "--burn-text", "{frame}", "--burn-box", "black@100%")
    asked = ("-e", "ffv1", "--part", "40", "--frames", ":240", "--timecode-start", "10:00:00:00", *wanted)
    one = run("render", "--cuts", listed, clip, "-o", "one.mkv", *asked, "-w", "1", cwd=tmp_path)
    assert one.process.returncode == 0, one.stderr
    command = Command(
        "render", clip, "-o", "two.mkv", *asked, "--cuts", listed, "--fleet", "60,9", cwd=tmp_path
    )
    try:
        command.wait_for("part_credited")
        command.send_signal(signal.SIGINT)
        command.finish()
    finally:
        command.close()
    other = run("render", clip, "-o", "two.mkv", *asked, cwd=tmp_path)
    assert other.process.returncode == 4 and "cuts" in other.stderr
    two = run("render", clip, "-o", "two.mkv", *asked, "--cuts", lines, "-w", "2", cwd=tmp_path)
    assert two.process.returncode == 0, two.stderr
    assert one.summary is not None and two.summary is not None
    assert one.summary["packets_sha256"] == two.summary["packets_sha256"]
    with av.open(str(tmp_path / "two.mkv")) as file:
        for number, frame in enumerate(file.decode(video=0)):
            if number % 7 and number not in CUTS:
                continue
            plane = frame.planes[0]
            luma = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
            assert read(luma[:, : plane.width], "top-left") == f"{number:03}"
            assert read(luma[:, : plane.width], "bottom-left") == f"10:00:{number // 30:02}:{number % 30:02}"


@pytest.mark.slow
def test_every_cut_begins_with_a_keyframe(clip: Path, tmp_path: Path) -> None:
    lines = tmp_path / "cuts.txt"
    lines.write_text("37  # the door\n200\n201\n")
    done = run(
        "render", clip, "-o", "out.mp4", "--cuts", lines, "--frames", "30:300", "--preset", "ultrafast",
        "--option", "g=1000", "--part", "1000", "-w", "2", cwd=tmp_path,
    )  # fmt: skip
    assert done.process.returncode == 0, done.stderr
    with av.open(str(tmp_path / "out.mp4")) as file:
        keys = [number for number, frame in enumerate(file.decode(video=0)) if frame.key_frame]
    assert keys == [0, 7, 170, 171]
