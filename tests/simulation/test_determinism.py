"""One world, one log, byte for byte."""

from __future__ import annotations

import builtins
import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from farm.events import RelayOptions
from farm.simulation.conditions import CONDITIONS
from farm.simulation.fleets import grid_world, random_world
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


def test_with_the_sum_of_another_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 began to sum floats more exactly; found with 3.13, whose hard scenes cost other numbers."""
    plain_sum = builtins.sum

    def other_sum(values: Iterable[float], start: float = 0) -> float:
        values = list(values)
        if any(isinstance(value, float) for value in values):
            return math.fsum([start, *values]) if sys.version_info < (3, 12) else _one_by_one(values, start)
        return plain_sum(values, start)

    def logs() -> list[bytes]:
        found = []
        for policy, tail in (("fair", "split"), ("wf,min=12", "late")):
            options = RelayOptions(policy=policy, tail=tail, claim_ahead=policy == "fair")
            for condition in ("scenes", "late", "stall"):
                world = CONDITIONS[condition](grid_world("A", 3, part=48, options=options))
                found.append(encode_log(simulate(world, keep_log=True).records))
        fresh = (random_world(seed, part=4800) for seed in range(1, 40))
        return [*found, *(repr(world).encode() for world in fresh)]

    as_it_is = logs()
    monkeypatch.setattr(builtins, "sum", other_sum)
    assert logs() == as_it_is


def _one_by_one(values: Iterable[float], start: float) -> float:
    for value in values:
        start += value
    return start


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
