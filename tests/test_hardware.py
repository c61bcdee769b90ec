"""The hardware table, from logs in which everything it counts happens."""

from __future__ import annotations

import msgspec

from farm import events as ev
from farm.fleet import WorkerProfile
from farm.reports.hardware import HardwareReport, hardware_report

GIB = 1 << 30
FLEET = (
    WorkerProfile(name="w1", fps_cap=30.0, cores=1, memory_bytes=4 * GIB),
    WorkerProfile(name="w2", fps_cap=10.0),
)
OPENED = ev.RunOpened(
    run_id="r-1",
    input="in.mkv",
    output="out.mkv",
    frames=60,
    cuts=tuple(range(0, 61, 10)),
    settings_hash="h",
    fingerprint="f",
    build="b",
    options=ev.RelayOptions(heartbeat_seconds=2.0),
    fleet=tuple(msgspec.json.encode(profile).decode() for profile in FLEET),
)


def report(*events: tuple[float, ev.AnyEvent], opened: ev.RunOpened = OPENED) -> HardwareReport:
    log = [ev.Record(0, 0.0, opened)]
    log += [ev.Record(seq, at, event) for seq, (at, event) in enumerate(events, 1)]
    return hardware_report(log)


def granted(at: float, worker: str, token: str, start: int, stop: int) -> tuple[float, ev.AnyEvent]:
    return at, ev.ClaimGranted(token=token, worker=worker, start=start, stop=stop, lease_seconds=20.0)


def credit(at: float, worker: str, token: str, part: int, seconds: float = 1.0) -> tuple[float, ev.AnyEvent]:
    return at, ev.PartCredited(
        part=part,
        frames=10,
        token=token,
        worker=worker,
        file="f",
        size_bytes=1,
        sha256="s",
        render_seconds=seconds,
    )


def ended(at: float, worker: str, token: str, how: ev.ClaimEnd, wasted: int = 0) -> tuple[float, ev.AnyEvent]:
    return at, ev.ClaimEnded(token=token, worker=worker, how=how, wasted_frames=wasted)


def beat(at: float, worker: str, token: str) -> tuple[float, ev.AnyEvent]:
    return at, ev.LeaseRenewed(worker=worker, claims=(ev.ClaimProgress(token),))


def test_shares_are_of_the_work_and_fair_ones_of_the_speed() -> None:
    table = report(
        granted(0.0, "w1", "c0#1@e1", 0, 40),
        granted(0.0, "w2", "c1#1@e1", 40, 60),
        credit(1.0, "w1", "c0#1@e1", 0),
        credit(2.0, "w2", "c1#1@e1", 4, 2.0),
        credit(2.0, "w1", "c0#1@e1", 1),
        credit(3.0, "w1", "c0#1@e1", 2),
        (3.0, ev.WorkerPeaked(worker="w1", peak_bytes=3 * GIB)),
        (3.0, ev.WorkerPeaked(worker="w1", peak_bytes=2 * GIB)),
    )
    w1, w2 = table.workers
    assert (w1.worker, w1.cores, w1.memory_cap_bytes, w1.peak_memory_bytes) == ("w1", 1, 4 * GIB, 3 * GIB)
    assert (w2.worker, w2.cores, w2.memory_cap_bytes, w2.peak_memory_bytes) == ("w2", None, None, None)
    assert (w1.fps, w2.fps) == (10.0, 5.0)
    assert (w1.share, w2.share) == (0.75, 0.25)
    assert (w1.fair_share, w2.fair_share) == (0.75, 0.25)
    assert (w1.chunks, w1.credited_frames, table.credited_frames) == (1, 30, 40)


def test_a_cap_is_that_of_the_last_joining() -> None:
    table = report((0.0, ev.WorkerJoined(worker="w1", fps_cap=12.0)))
    assert [row.fps_cap for row in table.workers] == [12.0, 10.0]


def test_without_a_speed_of_all_that_worked_no_fair_share_is_guessed() -> None:
    unthrottled = msgspec.structs.replace(OPENED, fleet=())
    table = report(
        (0.0, ev.WorkerJoined(worker="w1")),
        (0.0, ev.WorkerJoined(worker="w2")),
        granted(0.0, "w1", "c0#1@e1", 0, 40),
        granted(0.0, "w2", "c1#1@e1", 40, 60),
        credit(1.0, "w1", "c0#1@e1", 0),
        opened=unthrottled,
    )
    assert [row.fair_share for row in table.workers] == [None, None]
    assert [row.fps for row in table.workers] == [10.0, None]


def test_duplicates_are_won_by_who_delivers_and_lost_by_the_other() -> None:
    table = report(
        granted(0.0, "w2", "c0#1@e1", 0, 10),
        granted(1.0, "w1", "c0#2@e1", 0, 10),
        credit(2.0, "w1", "c0#2@e1", 0),
        ended(2.0, "w1", "c0#2@e1", "completed"),
        ended(2.0, "w2", "c0#1@e1", "superseded", wasted=4),
        granted(3.0, "w2", "c1#1@e1", 10, 20),
        credit(4.0, "w2", "c1#1@e1", 1),
        ended(4.0, "w2", "c1#1@e1", "completed"),
    )
    w1, w2 = table.workers
    assert (w1.duplicates_won, w1.duplicates_lost) == (1, 0)
    assert (w2.duplicates_won, w2.duplicates_lost, w2.wasted_frames) == (0, 1, 4)


def test_a_stall_is_a_silence_with_a_claim_or_beating_without_progress() -> None:
    table = report(
        granted(0.0, "w1", "c0#1@e1", 0, 20),
        beat(2.0, "w1", "c0#1@e1"),
        beat(9.0, "w1", "c0#1@e1"),  # 7 s: more than two and a half heartbeats
        ended(29.0, "w1", "c0#1@e1", "lapsed"),
        granted(99.0, "w1", "c1#1@e1", 0, 20),  # without a claim it may be silent
        beat(101.0, "w1", "c1#1@e1"),
        granted(0.0, "w2", "c2#1@e1", 20, 30),
        *(beat(at, "w2", "c2#1@e1") for at in (2.0, 4.0, 6.0, 8.0)),
        ended(9.0, "w2", "c2#1@e1", "stalled"),
    )
    w1, w2 = table.workers
    assert (w1.stalls, w1.lapses) == (2, 1)
    assert (w2.stalls, w2.lapses) == (1, 1)


def test_time_in_which_everything_was_stopped_is_no_rendering_time() -> None:
    """A worker tells 3,601 s after a night behind Ctrl-Z; lease time has 1 s of it."""
    table = report(granted(0.0, "w1", "c0#1@e1", 0, 20), credit(1.0, "w1", "c0#1@e1", 0, 3601.0))
    assert table.workers[0].fps == 10.0


def test_deaths_failures_and_parts_taken_back_are_counted() -> None:
    table = report(
        granted(0.0, "w1", "c0#1@e1", 0, 20),
        credit(1.0, "w1", "c0#1@e1", 0),
        (2.0, ev.PartVoided(part=0, reason="damaged")),
        (2.0, ev.PartFailed(part=1, token="c0#1@e1", worker="w1", kind="encoder", message="x", tries=1)),
        (3.0, ev.WorkerLeft(worker="w1", reason="killed", lost=True)),
        (4.0, ev.WorkerLeft(worker="w2", reason="good-bye", lost=False)),
        (5.0, ev.LoopMeasured(stalls=3, worst_seconds=0.2)),
        (5.0, ev.RunFinished(exit_code=5, outcome="incomplete")),
    )
    w1, w2 = table.workers
    assert (w1.credited_frames, w1.failures, w1.losses, w2.losses) == (0, 1, 1, 0)
    assert (table.outcome, table.loop_stalls, table.loop_worst_seconds) == ("incomplete", 3, 0.2)
