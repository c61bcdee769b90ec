"""Every event has its words, each one line."""

from __future__ import annotations

import typing

import msgspec
import pytest
from hypothesis import given, settings

from console.wording import describe
from farm import events as ev
from tests.console.story import stories

KINDS = typing.get_args(ev.AnyEvent)
SILENT = {
    ev.LeaseRenewed,
    ev.PhaseProgressed,
    ev.FinishEstimated,
    ev.BlockStored,
    ev.Gauges,
    ev.LoopMeasured,
    ev.WorkerPeaked,
    ev.VitalsSampled,
    ev.OutputRead,
    ev.PacketsRead,
}
OPTIONS = ev.RelayOptions()

LINES: list[tuple[ev.AnyEvent, str, str, str]] = [
    (ev.RelayStarted(epoch=2), "", "run", "relay started again, epoch 2"),
    (
        ev.OptionsChanged(options=OPTIONS),
        "",
        "operator",
        "options changed by operator: policy guided,12, tail duplicate-oldest,from=frontier",
    ),
    (ev.FleetMeasured(fps_asked=74, fps_possible=41.3), "", "warning", "74 fps asked, 41 possible here"),
    (
        ev.FleetMeasured(fps_asked=74, fps_possible=41.3, fitted=True),
        "",
        "notice",
        "74 fps asked, 41 possible here; the fleet was scaled down to fit",
    ),
    (ev.Notice(level="error", text="disk\nfull"), "", "error", "disk full"),
    (
        ev.LoopStalled(seconds=3.25),
        "",
        "warning",
        "the relay stood still for 3.2 s; no lease was counted down",
    ),
    (
        ev.OperatorActed(action="kill", worker="w8", detail="by operator"),
        "w8",
        "operator",
        "killed by operator",
    ),
    (ev.OperatorActed(action="stall", worker="w3"), "w3", "operator", "stalled"),
    (
        ev.CommandRefused(command="KillWorker", reason="there is no worker w9", by="ada"),
        "",
        "warning",
        "refused, asked by ada: there is no worker w9",
    ),
    (
        ev.WorkerAdded(
            worker="w5",
            profile='{"name":"w5","fps_cap":12.0,"overhead_seconds":2.0,"memory_bytes":800000000,'
            '"link":{"mib_per_second":2.0,"latency_seconds":0.05,"drop_rate":0.01}}',
        ),
        "w5",
        "operator",
        "added by operator: at most 12 fps, 2 s a claim, memory 800.0 MB at most, link 2 MiB/s, 0.05 s a "
        "block, drops 1%",
    ),
    (ev.WorkerAdded(worker="w5", profile="damaged"), "w5", "operator", "added by operator"),
    (
        ev.WorkerThrottled(worker="w5", fps_cap=2.5, by="ada"),
        "w5",
        "operator",
        "throttled by ada: at most 2.5 fps",
    ),
    (ev.WorkerThrottled(worker="w5"), "w5", "operator", "throttled by operator: no limit"),
    (
        ev.WorkerDismissed(worker="w5"),
        "w5",
        "operator",
        "sent away by operator: it finishes its part, gives back the rest and leaves",
    ),
    (
        ev.DuplicateWanted(chunk=12),
        "",
        "operator",
        "a copy of c12 is wanted by operator: the next worker that asks gets it",
    ),
    (
        ev.ClaimReleased(token="c12#1@e1", worker="w5"),
        "w5",
        "operator",
        "c12#1@e1 is taken away by operator",
    ),
    (
        ev.FaultInjected(kind="slow", worker="w3", seconds=30.0, amount=0.25, fault="slow w3 to 0.25 at 1"),
        "w3",
        "operator",
        "fault injected: slow 0.25 for 30.0 s",
    ),
    (ev.FaultInjected(kind="kill", worker="w3"), "w3", "operator", "fault injected: kill"),
    (ev.FaultNeverCame(fault="kill w1 at 99"), "", "warning", "a fault never came: kill w1 at 99"),
    (ev.FaultLifted(kind="pause-relay"), "", "operator", "fault over: pause-relay"),
    (ev.OperatorActed(action="stop now", detail="asked to"), "", "operator", "stop now: asked to"),
    (ev.WorkerJoined(worker="w1", pid=7, fps_cap=30.0), "w1", "worker", "joined, pid 7, at most 30 fps"),
    (
        ev.WorkerLeft(worker="w1", reason="killed by SIGKILL", lost=True),
        "w1",
        "lost",
        "LOST: killed by SIGKILL",
    ),
    (
        ev.WorkerBlocked(worker="w1", failures=3, until=75.0),
        "w1",
        "failure",
        "blocked until 00:01:15.0 after 3 failures in a row",
    ),
    (
        ev.ClaimGranted(
            token="c12#1@e1", worker="w4", start=96, stop=192, lease_seconds=20.0, why="its share"
        ),
        "w4",
        "claim",
        "claimed c12#1@e1  frames [96, 192)  its share",
    ),
    (
        ev.ClaimGranted(
            token="c12#2@e1", worker="w5", start=96, stop=192, lease_seconds=20.0, duplicate=True, why="tail"
        ),
        "w5",
        "duplicate",
        "duplicates c12#2@e1  frames [96, 192)  tail",
    ),
    (
        ev.ClaimEnded(token="c7#1@e1", worker="w3", how="lapsed", reason="no heartbeat for 20.0 s"),
        "w3",
        "lapse",
        "LAPSED c7#1@e1  no heartbeat for 20.0 s",
    ),
    (
        ev.ClaimEnded(
            token="c7#1@e1", worker="w3", how="superseded", reason="w1 delivered first", wasted_frames=12
        ),
        "w3",
        "superseded",
        "superseded c7#1@e1  w1 delivered first  (12 frames wasted)",
    ),
    (
        ev.ClaimRefused(worker="w3", asked="deliver", token="c7#1@e1", reason="lapsed", holder="w1"),
        "w3",
        "refusal",
        "refused deliver: not claimant (c7#1@e1 lapsed; held by w1)",
    ),
    (
        ev.ClaimRefused(
            worker="w3", asked="fail", token="c7#1@e1", reason="c7#1@e1 is held by w1", holder="w1"
        ),
        "w3",
        "refusal",
        "refused fail: not claimant (c7#1@e1 is held by w1)",
    ),
    (
        ev.MessageRefused(worker="w3", asked="deliver", received="'c01'", reason="no leading zeros"),
        "w3",
        "refusal",
        "refused deliver: no leading zeros (received 'c01')",
    ),
    (
        ev.PartCredited(
            part=31, frames=48, token="c12#3@e1", worker="w4", file="p", size_bytes=1_900_000, sha256=""
        ),
        "w4",
        "credit",
        "credited c12#3@e1  part 31, 48 frames, 1.9 MB",
    ),
    (
        ev.PartSuperseded(part=31, token="c12#1@e1", worker="w3", frames=48),
        "w3",
        "superseded",
        "second copy of part 31 under c12#1@e1: 0 frames credited",
    ),
    (
        ev.PartFailed(
            part=3, token="c0#1@e1", worker="w1", kind="encoder", message="no such option", tries=2
        ),
        "w1",
        "failure",
        "part 3 failed, try 2 (encoder): no such option",
    ),
    (
        ev.PartFailed(part=3, token="c0#1@e1", worker="w1", kind="worker lost", message="SIGKILL", tries=1),
        "w1",
        "end",
        "part 3 counts a try, 1 so far (worker lost)",
    ),
    (
        ev.PartSetAside(part=3, tries=3, reason="failed 3 times, by w1, w2"),
        "",
        "set aside",
        "part 3 SET ASIDE after 3 tries: failed 3 times, by w1, w2",
    ),
    (ev.RunFinished(exit_code=5, outcome="finished incomplete"), "", "error", "finished incomplete"),
]


@pytest.mark.parametrize(("event", "worker", "kind", "words"), LINES)
def test_words(event: ev.AnyEvent, worker: str, kind: str, words: str) -> None:
    line = describe(1.5, event)
    assert line is not None
    assert (line.at, line.worker, line.kind, line.text) == (1.5, worker, kind, words)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_has_words_or_is_silent_on_purpose(kind: type[ev.Event]) -> None:
    required = {
        field.name: {int: 1, float: 1.0, str: "x", bool: True}.get(field.type)
        for field in msgspec.structs.fields(kind)
        if field.required
    }
    special: dict[str, object] = {
        "options": OPTIONS,
        "cuts": (0, 1),
        "claims": (),
        "parts": (0,) if kind is ev.SampleChosen else 1,
        "phase": "work",
        "level": "info",
        "how": "released",
    }
    values = {name: special.get(name, value) for name, value in required.items()}
    line = describe(0.0, kind(**values))
    assert (line is None) == (kind in SILENT)


def test_an_unknown_event_has_no_words() -> None:
    assert describe(0.0, object()) is None


@settings(max_examples=30, deadline=None)
@given(records=stories())
def test_lines_are_single_and_printable(records: list[ev.Record]) -> None:
    for record in records:
        line = describe(record.at, record.event)
        assert line is None or line.text.isprintable()
