"""All invariants after every stimulus of small jobs in heavy trouble; `python -m farm.simulation.soak` does
thousands."""

from __future__ import annotations

from collections import Counter

import pytest

from farm import events as ev
from farm.simulation.soak import check, troubled_world


@pytest.mark.parametrize("first", range(1, 121, 20))
def test_troubled_runs(first: int) -> None:
    for seed in range(first, first + 20):
        check(troubled_world(seed))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1001, 1401, 100))
def test_more_troubled_runs(first: int) -> None:
    for seed in range(first, first + 100):
        check(troubled_world(seed))


def test_the_trouble_is_real() -> None:
    """Each kind of event that trouble leads to is met, and no worker says what it should not have said."""
    met: Counter[type] = Counter()
    ends: Counter[str] = Counter()
    for seed in range(1, 81):
        for record in check(troubled_world(seed)).records:
            met[type(record.event)] += 1
            if isinstance(record.event, ev.ClaimEnded):
                ends[record.event.how] += 1
    for kind in (ev.ClaimRefused, ev.PartSuperseded, ev.RangeReopened, ev.ChunkSplit, ev.WorkerParked):
        assert met[kind] > 5, kind
    for how in ("completed", "superseded", "lapsed", "worker left"):
        assert ends[how] > 1, how
    assert met[ev.MessageRefused] == 0


@pytest.mark.parametrize("seed", [1050, 1177, 3794])
def test_idle_workers_do_not_take_a_claim_from_each_other_for_ever(seed: int) -> None:
    """Found by the soak: two workers split one unstarted claim back and forth, without time passing or once
    a heartbeat where that is shorter than a claim's overhead."""
    check(troubled_world(seed))
