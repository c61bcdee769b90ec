"""Moments: what counts as one, and how they are named."""

from __future__ import annotations

import pytest

from farm import events as ev
from farm.errors import UsageError
from farm.moments import KINDS, NEWS, Moment, moment_of, parse_kinds

EXAMPLES = {
    "lapse": ev.ClaimEnded(token="c1#1@e1", worker="w1", how="lapsed"),
    "duplicate": ev.ClaimGranted(
        token="c1#2@e1", worker="w1", start=0, stop=1, lease_seconds=1.0, duplicate=True
    ),
    "split": ev.ChunkSplit(chunk=1, at=5),
    "refusal": ev.ClaimRefused(worker="w1", asked="deliver", token="c1#1@e1", reason="lapsed"),
    "kill": ev.OperatorActed(action="kill", worker="w1", detail="by operator"),
    "loss": ev.WorkerLeft(worker="w1", reason="SIGKILL", lost=True),
    "stall": ev.OperatorActed(action="stall", worker="w1"),
    "wake": ev.OperatorActed(action="unstall", worker="w1"),
    "failure": ev.PartFailed(part=1, token="c1#1@e1", worker="w1", kind="encoder", message="", tries=1),
    "finish": ev.RunFinished(exit_code=0, outcome="done"),
}


def test_there_is_an_event_for_every_kind() -> None:
    assert set(EXAMPLES) == set(KINDS)
    for kind, event in EXAMPLES.items():
        moment = moment_of(event)
        assert moment is not None and moment.kind == kind
        assert moment.worker == getattr(event, "worker", None)


@pytest.mark.parametrize(
    "event",
    [
        ev.ClaimEnded(token="c1#1@e1", worker="w1", how="superseded"),
        ev.ClaimGranted(token="c1#1@e1", worker="w1", start=0, stop=1, lease_seconds=1.0),
        ev.WorkerLeft(worker="w1", reason="the run is over", lost=False),
        # Told by the lapse, the loss and the fault that they follow from.
        ev.PartFailed(part=1, token="c1#1@e1", worker="w1", kind="lapsed", message="", tries=1),
        ev.OperatorActed(action="kill", worker="w1", detail="by a fault"),
        ev.PhaseStarted(phase="work"),
    ],
)
def test_what_is_usual_or_told_otherwise_is_none(event: ev.AnyEvent) -> None:
    assert moment_of(event) is None


def test_a_kill_by_a_fault_is_one_moment() -> None:
    assert moment_of(ev.FaultInjected(kind="kill", worker="w1")) == Moment("kill", "w1")
    assert moment_of(ev.FaultInjected(kind="stall", worker="w1")) is None


def test_kinds_are_named_as_they_are_spelt() -> None:
    assert parse_kinds("refusal, lapse") == {"lapse", "refusal"}
    assert parse_kinds("all") == NEWS


@pytest.mark.parametrize(
    ("text", "says"), [("lapses", "lapse"), ("", "name at least one"), (",", "at least")]
)
def test_what_is_none_is_said(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_kinds(text)
