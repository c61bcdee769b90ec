"""One world, one log, byte for byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from farm.simulation.runs import encode_log, simulate
from farm.simulation.soak import troubled_world

ROOT = Path(__file__).parents[2]
SEEDS = range(900, 912)

PROGRAM = """
import hashlib
from farm.simulation.runs import encode_log, simulate
from farm.simulation.soak import troubled_world
digest = hashlib.sha256()
for seed in range(900, 912):
    digest.update(encode_log(simulate(troubled_world(seed), keep_log=True, until=2000.0).records))
print(digest.hexdigest())
"""


def digest() -> str:
    found = hashlib.sha256()
    for seed in SEEDS:
        found.update(encode_log(simulate(troubled_world(seed), keep_log=True, until=2000.0).records))
    return found.hexdigest()


def test_again_in_this_process() -> None:
    assert digest() == digest()


@pytest.mark.parametrize("hash_seed", ["0", "1", "4711"])
def test_in_another_process(hash_seed: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == digest()


def test_watching_changes_nothing() -> None:
    """Neither keeping the log nor recounting the books nor who listens."""
    world = troubled_world(905)
    heard: list[int] = []
    plain = simulate(world)
    watched = simulate(
        world, keep_log=True, validate_every=1, on_record=lambda record: heard.append(record.seq)
    )
    assert heard == list(range(len(watched.records)))
    assert plain.makespan_seconds == watched.makespan_seconds
    assert (plain.claims, plain.stimuli, plain.workers) == (watched.claims, watched.stimuli, watched.workers)
