"""The relay's shell and what an operator does to workers: who is refused, who is started, who stays away."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import psutil

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.additions import Additions, Room
from farm.fleet import WorkerProfile
from farm.host import End
from farm.startline import StartLine
from farm.vitals import Vitals, vitals_seconds
from tests.engines.harness import until
from tests.hosting import Rig
from tests.test_host import on_loop


def adding(name: str = "", **fields: object) -> cmd.AddWorker:
    return cmd.AddWorker(profile=WorkerProfile(name=name, **fields), by="ada")  # type: ignore[arg-type]


@on_loop
async def test_a_worker_is_added_under_the_next_name_and_works() -> None:
    async with Rig("w1", parts=2) as rig:
        await rig.join("w1")
        granted = await rig.claim("w1")
        rig.host.post_command(adding(fps_cap=12.0))
        rig.host.post_command(adding())
        await rig.join("w2", "w3")
        assert [added.worker for added in rig.of(ev.WorkerAdded)] == ["w2", "w3"]
        await rig.deliver("w2", await rig.claim("w2"))
        await rig.deliver("w1", granted)
        assert await rig.end() is End.FINISHED


@on_loop
async def test_a_worker_that_cannot_be_added_is_refused_with_the_reason() -> None:
    async with Rig("w1") as rig:
        await rig.join("w1")
        rig.host.post_command(adding("w1"))
        rig.host.post_command(adding("w7"))
        rig.host.post_command(adding("w7"))
        await until(lambda: len(rig.of(ev.CommandRefused)) == 2, "the refusals")
        reasons = [
            f"there was a worker {name} in this run already: give another name" for name in ("w1", "w7")
        ]
        assert [(r.reason, r.by) for r in rig.of(ev.CommandRefused)] == [(r, "ada") for r in reasons]
        rig.host.post_command(cmd.Drain())
        rig.host.post_command(adding())
        await until(lambda: len(rig.of(ev.CommandRefused)) == 3, "the third")
        assert rig.of(ev.CommandRefused)[-1].reason == "the run is stopping: nobody is added any more"


@on_loop
async def test_a_worker_that_was_sent_away_is_not_started_again_and_another_is_capped_when_it_is() -> None:
    """1. w1 is sent away and dies before it could leave: it stays away. 2. w2 is throttled and dies: the
    process in its place has the new cap."""
    async with Rig("w1", "w2") as rig:
        await rig.join("w1", "w2")
        await asyncio.gather(rig.claim("w1"), rig.claim("w2"))
        rig.host.post_command(cmd.RemoveWorker(worker="w1"))
        rig.host.post_command(cmd.ThrottleWorker(worker="w2", fps=7.0))
        await until(lambda: rig.of(ev.WorkerThrottled), "the cap")
        await until(lambda: msg.Beat(fps_cap=7.0) in rig.engine.heard["w2"], "the worker to hear of it")
        assert msg.Beat(drain=True) in rig.engine.heard["w1"]
        rig.engine.die("w1", "killed by SIGKILL")
        rig.engine.die("w2", "killed by SIGKILL")
        await until(lambda: len(rig.engine.starts) == 3, "the process in its place")
        assert rig.engine.starts == ["w1", "w2", "w2"]
        assert rig.host.crew.specs["w2"].profile.fps_cap == 7.0


@on_loop
async def test_an_added_worker_has_its_memory_cap() -> None:
    async with Rig("w1") as rig:
        await rig.join("w1")
        rig.host.post_command(adding(memory_bytes=500))
        await rig.join("w2")
        rig.used["w2"] = 600
        await until(lambda: "w2" in rig.engine.kills, "the one that is beyond its cap to be stopped")


def test_there_must_be_room_for_one_more() -> None:
    """A gate of 1000 bytes, workers that may need 400 each, one of which is capped at 100."""
    specs = {name: Rig()._spec(name, cap) for name, cap in (("w1", None), ("w2", 100))}
    additions = Additions(specs, Room(gate_bytes=1000, worker_bytes=400, cores=2.0))
    there = {"w1", "w2"}
    assert additions.consider(adding(), there).refusal == ""
    full = additions.consider(adding(), {"w1"} | {"w2"} | {"w9"})
    assert full.refusal == "" and full.command.profile.name == "w4", "of w9 nothing is known"
    specs["w3"] = additions.spec_of(WorkerProfile(name="w3"))
    refusal = additions.consider(adding(), {"w1", "w2", "w3"}).refusal
    assert refusal == "4 workers may need 0 MB of memory, and 0 MB may be filled"
    assert additions.consider(adding(memory_bytes=90), {"w1", "w2", "w3"}).refusal == ""


def test_workers_without_a_cap_that_share_a_core_are_said() -> None:
    specs = {name: Rig()._spec(name, None) for name in ("w1", "w2")}
    additions = Additions(specs, Room(cores=2.0))
    assert additions.consider(adding(fps_cap=3.0), specs).note == ""
    note = additions.consider(adding(), specs).note
    assert note == "with w4, 3 workers without a cap share 2 cores: each becomes slower"


def test_who_is_added_before_the_start_line_opens_starts_behind_the_fleet() -> None:
    line = StartLine(["w1", "w2"])
    line.claim("w3", msg.Claim())
    line.claim("w2", msg.Claim())
    assert line.let_go() == []
    line.claim("w1", msg.Claim())
    assert [worker for worker, _ in line.let_go()] == ["w1", "w2", "w3"]


# --- how they are doing ----------------------------------------------------------------------------------


def test_vitals_are_of_the_process_and_of_the_log_that_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "w1.log").write_text("joined\n")
    log = tmp_path / "w1-c0.1.e1.log"
    log.write_bytes(b"part 0: rendered\n\xff last words\n\n")
    os.utime(tmp_path / "w1.log", (1000, 1000))
    os.utime(log, (1090, 1090))
    vitals = Vitals(tmp_path, wall=lambda: 1100.0)
    pids = {"w1": os.getpid(), "w2": 2**22 + 1}
    one, two = vitals.sample(pids, {"w1": ("c0#1@e1",)})
    assert (one.log_line, one.log_age_seconds) == ("\ufffd last words", 10.0)
    assert one.memory_bytes > 1_000_000 and two.memory_bytes == 0
    assert (two.log_line, two.log_age_seconds) == ("", None)
    started = psutil.Process().cpu_times().user
    while psutil.Process().cpu_times().user - started < 0.05:
        sum(range(10_000))
    (one, _) = vitals.sample(pids, {})
    assert one.cpu_share > 0 and one.log_line == "joined"
    assert vitals_seconds(1) == 1.0 and vitals_seconds(500) > 20


@on_loop
async def test_vitals_are_shown_and_not_journalled() -> None:
    async with Rig("w1") as rig:
        await until(lambda: any(s.workers for s in rig.of(ev.VitalsSampled)), "a look")
        assert [vitals.worker for vitals in rig.of(ev.VitalsSampled)[-1].workers] == ["w1"]
        assert all(r.seq == -1 for r in rig.records if isinstance(r.event, ev.VitalsSampled))
