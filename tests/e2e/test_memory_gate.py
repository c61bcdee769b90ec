"""A 4K clip, eight workers asked for, little memory: the whole run stays under the gate."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from farm.machine import GATE_SHARE

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 600.0
#: What the machine is said to have left: enough for two workers by their estimate, not for three.
AVAILABLE_BYTES = 4_700_000_000
#: Two parts; more pictures than x264's default settings look ahead would only make it longer.
FRAMES = 24

#: Moving noise, made quickly.
MAKE = """
import av
import numpy
noise = numpy.random.default_rng(1).integers(16, 235, (2160 * 3 // 2, 3840), numpy.uint8)
with av.open("big.mp4", "w") as output:
    video = output.add_stream("mpeg4", rate=24)
    video.width, video.height, video.pix_fmt = 3840, 2160, "yuv420p"
    for number in range({frames}):
        frame = av.VideoFrame.from_ndarray(numpy.roll(noise, 16 * number, 1), format="yuv420p")
        output.mux(video.encode(frame))
    output.mux(video.encode())
"""
#: The command on a machine that says to have so much memory.
COMMAND = """
import farm.machine
farm.machine.available_memory_bytes = lambda limits=None: {available}
from console.cli import main
main()
"""


def resident_bytes(root: psutil.Process) -> int:
    """Of a process and all that it started. Pages that they share count for each."""
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_SECONDS)
def test_eight_workers_asked_for_on_a_4k_clip_fill_no_more_than_the_gate(tmp_path: Path) -> None:
    """RG28, and what the estimate promises: all processes together, at every moment."""
    environment = os.environ | {"UNEVEN_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
    make = [sys.executable, "-c", MAKE.format(frames=FRAMES)]
    subprocess.run(make, cwd=tmp_path, env=environment, check=True)
    command = [sys.executable, "-c", COMMAND.format(available=AVAILABLE_BYTES), "render", "big.mp4"]
    command += ["-o", "out.mp4", "--preset", "medium", "-w", "8", "--part", "12,fixed", "--ui", "json"]
    with (tmp_path / "events").open("wb") as events:
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=events)
        watched, peak = psutil.Process(process.pid), 0
        try:
            deadline = time.monotonic() + LIMIT_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                peak = max(peak, resident_bytes(watched))
                time.sleep(0.05)
        finally:
            process.kill()
            code = process.wait()
    assert code == 0
    lines = [msgspec.json.decode(line) for line in (tmp_path / "events").read_bytes().splitlines()]
    said = [line["event"] for line in lines if "event" in line]
    joined = {event["worker"] for event in said if event["event"] == "worker_joined"}
    assert joined == {"w1", "w2"}
    assert any("2 of 8 workers are started" in event.get("text", "") for event in said)
    assert not [event for event in said if event["event"] == "worker_left" and event.get("lost")]
    assert peak <= GATE_SHARE * AVAILABLE_BYTES, f"{peak / 1e9:.2f} GB"
    assert peak > 500_000_000, "it was not looked at"
