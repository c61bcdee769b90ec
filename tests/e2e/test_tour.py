"""The guided tour as a real render: its accidents, its captions, and that its recording tells all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from console.demo import TOUR
from console.model import Model
from farm.events import Record, decode_record
from farm.journal import RunCatalogue, read_recording
from farm.scenario.scenario import read_scenario
from tests.console.test_demo import assert_captions, assert_tour

#: On a quiet machine it takes 56 s from the first to the last event; this one may be busy.
BUSY_SECONDS_MAX = 150.0


def folded(records: list[Record]) -> Model:
    model = Model("live")
    for record in records:
        model.fold(record)
    return model


@pytest.mark.slow
def test_the_tour_as_a_real_render(tmp_path: Path) -> None:
    environment = os.environ | {"UNEVEN_STATE_DIR": str(tmp_path / "state")}
    command = [sys.executable, "-m", "console", "demo", "-o", "tour.mp4", "--ui", "json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr.decode()
    *lines, summary, verdicts = done.stdout.splitlines()
    live = [decode_record(line) for line in lines]
    journalled = [record for record in live if record.seq >= 0]
    assert_tour(journalled, BUSY_SECONDS_MAX)
    # On a busy machine accidents come close upon one another.
    assert_captions(read_scenario(str(TOUR)), journalled, passed_over_max=2)
    assert msgspec.json.decode(summary)["summary"]["credited_frames"] == 1680
    assert all(verdict["met"] for verdict in msgspec.json.decode(verdicts)["expectations"])

    entry = RunCatalogue(tmp_path / "state" / "runs").find("last")
    recorded = list(read_recording(Path(entry.recording)))
    assert recorded == journalled
    assert folded(recorded).digest() == folded(live).digest(), "with all that no recording has"

    replayed = [sys.executable, "-m", "console", "replay", "--ui", "plain", "--scenario", str(TOUR)]
    told = subprocess.run(replayed, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count(">> ") == 10
