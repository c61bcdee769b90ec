"""The relay's shell under pressure: bounds, memory, halts, and workers that go."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.errors import OutputError
from farm.fleet import WorkerProfile
from farm.host import End
from farm.inbox import INBOX_MAX
from farm.respite import Respite
from tests.engines.harness import until
from tests.hosting import Rig


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


# --- back-pressure ---------------------------------------------------------------------------------------


@on_loop
async def test_how_full_everything_is_can_be_seen() -> None:
    async with Rig("w1", gate_bytes=1000) as rig:
        rig.used["w1"] = 700
        await until(lambda: any(gauges.memory_bytes == 700 for gauges in rig.of(ev.Gauges)), "the memory")
        gauges = rig.of(ev.Gauges)[-1]
        assert (gauges.inbox_max, gauges.deliveries_max, gauges.memory_gate_bytes) == (512, 12, 1000)
        assert all(record.seq == -1 for record in rig.records if isinstance(record.event, ev.Gauges))


@on_loop
async def test_a_slow_disk_holds_up_deliveries_and_nothing_else() -> None:
    workers = [f"w{n}" for n in range(20)]
    disk = threading.Event()
    async with Rig(*workers, parts=20) as rig:
        rig.store.accepting = disk.wait
        await rig.join(*workers)
        granted = dict(zip(workers, await asyncio.gather(*map(rig.claim, workers)), strict=True))
        delivering = [asyncio.create_task(rig.deliver(w, granted[w])) for w in workers]
        await until(lambda: any(g.parts_waiting == 8 for g in rig.of(ev.Gauges)), "the waiting parts")
        assert max(g.deliveries for g in rig.of(ev.Gauges)) == 12
        beat = await rig.ask("w0", msg.Heartbeat(claims=(ev.ClaimProgress(granted["w0"].token),)))
        assert isinstance(beat, msg.Beat) and beat.claims[0].live
        assert not any(task.done() for task in delivering)
        disk.set()
        await asyncio.gather(*delivering)
        assert rig.relay.books.credited_frames == 200


@on_loop
async def test_a_full_inbox_holds_reading_and_drops_nothing() -> None:
    """What is in the hand of a slow disk counts as waiting, too."""
    async with Rig("w1") as rig:
        await rig.join("w1")
        rig.journal.taking.clear()
        said = 0

        def say() -> None:
            nonlocal said
            said += 1
            rig.say("w1", msg.Release(token="c0#1@e1"))  # refused, which is an event

        for _ in range(INBOX_MAX - 12):
            say()
        await until(lambda: rig.journal.waiting, "the disk to be waited for")
        assert rig.engine.holds == []
        for _ in range(12):
            say()
        assert rig.engine.holds == [True]
        rig.journal.taking.set()
        await until(lambda: len(rig.engine.heard["w1"]) == 1 + said, "all answers")
        assert rig.engine.holds == [True, False]


@on_loop
async def test_a_full_inbox_is_handled_in_slices() -> None:
    """500 messages of a millisecond each would keep the loop for half a second."""
    async with Rig("w1") as rig:
        await rig.join("w1")
        handle = rig.relay.handle

        def slowly(*args: Any) -> Any:
            until_then = time.thread_time() + 0.001
            while time.thread_time() < until_then:
                pass
            return handle(*args)

        rig.relay.handle = slowly  # type: ignore[method-assign]
        for _ in range(INBOX_MAX - 1):
            rig.say("w1", msg.Heartbeat())
        turns = 0
        before = len(rig.engine.heard["w1"])
        while len(rig.engine.heard["w1"]) < before + INBOX_MAX - 1:
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 20, "others on the loop had no turn in between"


# --- time that does not count ----------------------------------------------------------------------------


@on_loop
async def test_after_three_leases_of_sleep_who_wakes_has_time_to_say_so() -> None:
    """RG42, RG43. The tick that finds the gap comes before any worker could beat again."""
    async with Rig("w1", "w2", raw=0.0, lease_seconds=2.0, heartbeat_seconds=0.4) as rig:
        await rig.join("w1", "w2")
        await asyncio.gather(rig.claim("w1"), rig.claim("w2"))
        await let_pass(rig, 1.8)
        assert not rig.of(ev.ClaimEnded)
        assert rig.raw is not None
        rig.raw += 6.0
        await until(lambda: rig.of(ev.LoopStalled), "the gap to be found")
        assert rig.of(ev.LoopStalled)[0].seconds == pytest.approx(5.65)
        (token,) = rig.relay.books.workers["w1"].claims
        beat = await rig.ask("w1", msg.Heartbeat(claims=(ev.ClaimProgress(token),)))
        assert isinstance(beat, msg.Beat) and beat.claims[0].live
        await let_pass(rig, 1.2)
        assert [ended.worker for ended in rig.of(ev.ClaimEnded)] == ["w2"], "who stays silent lapses"


def test_a_machine_that_is_starved_again_and_again_is_not_asleep_for_ever() -> None:
    options = ev.RelayOptions(lease_seconds=2.0, heartbeat_seconds=0.5)
    waking = Respite()
    judged = 0.0
    for tenth in range(100):
        now = tenth / 10 + 10
        waking.found_gap(0.6, now, options)
        judged += 0.1 * waking.may_judge(now)
    assert judged > 5.0, "a lease has to be judged between two respites"
    waking = Respite()
    waking.found_gap(0.4, 10.0, options)
    assert waking.may_judge(10.0), "a gap that no lease minds is none"


@on_loop
async def test_a_judgement_that_slept_on_its_way_is_left_to_the_next_tick() -> None:
    """Asked for before everything stopped and made after it, it would see a lease that ran out."""
    async with Rig("w1", raw=0.0, lease_seconds=2.0, heartbeat_seconds=0.4) as rig:
        await rig.join("w1")
        await rig.claim("w1")
        await let_pass(rig, 1.8)
        judge = rig.host._judge
        rig.host._tick_waits = True  # what a tick does, and then the machine sleeps
        asked_at = rig.clock.now()
        assert rig.raw is not None
        rig.raw += 6.0
        assert judge(asked_at, rig.clock.now()).events == ()
        assert rig.relay.books.workers["w1"].claims


async def let_pass(rig: Rig, seconds: float) -> None:
    """Lease time passes, a tick at a time."""
    assert rig.raw is not None
    stop = rig.raw + seconds
    while rig.raw < stop:
        before = rig.clock.now()
        rig.raw += 0.2
        await until(lambda before=before: rig.clock.now() > before, "a tick")
        await asyncio.sleep(0.12)


# --- memory ----------------------------------------------------------------------------------------------


@on_loop
async def test_a_worker_beyond_its_cap_is_stopped_and_its_chunk_moves_on() -> None:
    async with Rig("w1", "w2", parts=2, caps={"w1": 500}, tail="none") as rig:
        await rig.join("w1", "w2")
        first, second = await asyncio.gather(rig.claim("w1"), rig.claim("w2"))
        rig.used["w1"] = 501
        await until(lambda: rig.of(ev.WorkerLeft), "w1 to be stopped")
        rig.used["w1"] = 0
        (left,) = rig.of(ev.WorkerLeft)
        assert left.lost and left.reason.startswith("out of memory: it used")
        (failed,) = rig.of(ev.PartFailed)
        assert (failed.kind, failed.worker) == ("out of memory", "w1")
        await rig.deliver("w2", second)
        moved = await rig.claim("w2")
        assert moved.start == first.start
        await rig.deliver("w2", moved)
        assert await rig.end() is End.FINISHED
        assert rig.engine.starts.count("w1") == 2, "it is started again"
        assert {peak.worker for peak in rig.of(ev.WorkerPeaked)} == {"w1"}


@on_loop
async def test_a_fleet_that_never_fits_its_caps_ends_with_that_reason() -> None:
    async with Rig("w1", caps={"w1": 100}, max_tries=99) as rig:
        rig.used["w1"] = 200
        assert await rig.end() is End.NO_WORKERS
        assert all(reason.startswith("out of memory") for reason in rig.host.crew.departures.reasons["w1"])
        assert rig.engine.starts.count("w1") <= 4


@on_loop
async def test_beyond_the_gate_one_goes_without_fault_and_stays_away() -> None:
    async with Rig("w1", "w2", parts=2, gate_bytes=1000) as rig:
        await rig.join("w1", "w2")
        first, second = await asyncio.gather(rig.claim("w1"), rig.claim("w2"))
        rig.used.update(w1=300, w2=800)
        await until(lambda: rig.engine.kills, "somebody to go")
        assert rig.engine.kills == ["w2"]
        await until(lambda: rig.of(ev.WorkerLeft), "its good-bye")
        (left,) = rig.of(ev.WorkerLeft)
        assert left.worker == "w2" and not left.lost and "sent away" in left.reason
        await rig.deliver("w1", first)
        again = await rig.claim("w1")
        assert again.start == second.start
        await rig.deliver("w1", again)
        assert await rig.end() is End.FINISHED
        assert not rig.of(ev.PartFailed) and rig.engine.starts == ["w1", "w2"]


@on_loop
async def test_with_too_little_memory_free_nothing_is_begun_until_there_is_enough() -> None:
    rig = Rig("w1", memfree_bytes=1000)
    rig.available = 10
    running = asyncio.create_task(rig.host.run())
    await until(lambda: rig.of(ev.GrantsHeld), "the hold")
    rig.host.post_command(cmd.AddWorker(profile=WorkerProfile(name="w2"), by="ada"))
    await until(lambda: "w2" in rig.host.crew.specs, "the worker that is added meanwhile")
    assert not rig.engine.starts, "a worker was started"
    rig.available = 5000
    await until(lambda: sorted(rig.engine.starts) == ["w1", "w2"], "the workers")
    await rig.join("w1")
    granted = await rig.claim("w1")
    rig.available = 10
    await until(lambda: len(rig.of(ev.GrantsHeld)) == 2, "the second hold")
    await rig.deliver("w1", granted)
    assert isinstance(await rig.ask("w1", msg.Claim()), msg.Parked)
    rig.available = 5000
    await until(lambda: len(rig.of(ev.ClaimGranted)) == 2, "the next claim")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@on_loop
async def test_a_worker_that_the_system_killed_for_memory_is_said_to_be_out_of_memory() -> None:
    kills = 3
    async with Rig("w1", "w2", oom_kills=lambda: kills) as rig:
        await rig.join("w1", "w2")
        await asyncio.gather(rig.claim("w1"), rig.claim("w2"))
        kills = 4
        rig.engine.die("w1", "killed by SIGKILL")
        await until(lambda: rig.of(ev.PartFailed), "the failure")
        assert rig.of(ev.PartFailed)[0].kind == "out of memory"
        rig.engine.die("w2", "killed by SIGKILL")
        await until(lambda: len(rig.of(ev.PartFailed)) == 2, "the second failure")
        assert rig.of(ev.PartFailed)[1].kind == "worker lost"


# --- workers that go -------------------------------------------------------------------------------------


@on_loop
async def test_workers_that_die_before_they_join_are_no_endless_loop() -> None:
    rig = Rig("w1", "w2")
    rig.engine.stillborn = {"w1", "w2"}
    async with rig:
        assert await rig.end() is End.NO_WORKERS
    assert sorted(rig.engine.starts) == ["w1", "w2"]
    assert rig.host.crew.departures.reasons == {"w1": ["exited with code 1"], "w2": ["exited with code 1"]}


@on_loop
async def test_workers_that_die_before_their_first_heartbeat_are_no_endless_loop() -> None:
    async with Rig("w1", max_tries=99) as rig:
        while rig.engine.alive:
            await rig.join("w1")
            await rig.ask("w1", msg.Claim())
            starts = len(rig.engine.starts)
            rig.engine.die("w1", "killed by SIGSEGV")
            await until(
                lambda starts=starts: len(rig.engine.starts) > starts or rig.host.crew.departures.reasons,
                "the end",
            )
            await asyncio.sleep(0.01)
        assert await rig.end() is End.NO_WORKERS
    assert rig.host.crew.departures.reasons == {"w1": ["killed by SIGSEGV"] * 4}


# --- halts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["soon", "now"])
@on_loop
async def test_the_run_is_halted_when_so_many_parts_were_set_aside(when: str) -> None:
    async with Rig("w1", parts=6, max_tries=1, halt=f"{when},fail=2") as rig:
        await rig.join("w1")
        for _ in range(2):
            granted = await rig.claim("w1")
            await rig.ask("w1", msg.Fail(token=granted.token, kind="encoder", message="broke"))
        if when == "soon":
            assert isinstance(await rig.ask("w1", msg.Claim()), msg.Finished)
            await rig.ask("w1", msg.Leave(reason="drained"))
            rig.engine.die("w1", "exited")
        assert await rig.end() is End.HALTED
        assert rig.host.halted == f"2 parts were set aside (--halt {when},fail=2)"
        assert len(rig.of(ev.PartSetAside)) == 2 and len(rig.of(ev.ClaimGranted)) == 2


@on_loop
async def test_parts_set_aside_are_no_reason_to_halt_without_being_asked() -> None:
    async with Rig("w1", parts=2, max_tries=1) as rig:
        await rig.join("w1")
        granted = await rig.claim("w1")
        await rig.ask("w1", msg.Fail(token=granted.token, kind="encoder", message="broke"))
        await rig.deliver("w1", await rig.claim("w1"))
        assert await rig.end() is End.FINISHED
        assert rig.relay.books.set_aside_frames == 10


@on_loop
async def test_the_worker_that_holds_the_last_chunk_dies_and_the_run_finishes_all_the_same() -> None:
    """RG20, RG25: noticed at once, whatever it was about to say; its chunk goes on with its successor."""
    async with Rig("w1", parts=2, tail="none") as rig:
        await rig.join("w1")
        await rig.deliver("w1", await rig.claim("w1"))
        last = await rig.claim("w1")
        rig.engine.die("w1", "killed by SIGKILL")
        await until(lambda: len(rig.engine.starts) == 2, "its successor")
        await rig.join("w1")
        again = await rig.claim("w1")
        assert (again.start, again.stop) == (last.start, last.stop) and again.token != last.token
        await rig.deliver("w1", again)
        assert await rig.end() is End.FINISHED


# --- a bad end -------------------------------------------------------------------------------------------


@on_loop
async def test_what_ended_the_run_is_told_whatever_goes_wrong_while_it_is_wound_up() -> None:
    """1. The disk with the journal is full. 2. The workers can't be stopped in good order, either. It is the
    disk that the user has to hear of."""
    async with Rig("w1") as rig:
        await rig.join("w1")
        rig.engine.unstoppable = ValueError("process object is closed")
        rig.journal.refusing = OutputError("the disk is full")
        rig.say("w1", msg.Claim())
        with pytest.raises(OutputError, match="the disk is full") as caught:
            await rig.end()
        assert "process object is closed" in caught.value.__notes__[0]
