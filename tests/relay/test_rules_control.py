"""What an operator does by hand: a copy of a chunk, a claim taken away, a worker throttled, added, sent away.
Scenarios are numbered steps."""

from __future__ import annotations

from typing import Any

import pytest

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from farm.fleet import WorkerProfile
from tests.relay.driver import Run


def refused(run: Run, command: cmd.AnyCommand) -> str:
    """The reason, which is an event as well; nothing else happened."""
    run.command(command)
    assert run.refusal is not None
    reason, name = run.refusal, type(command).__name__
    assert run.events == (ev.CommandRefused(command=name, reason=reason, by=command.by),)
    assert not run.pushes
    return reason


def copy(chunk: str) -> cmd.DuplicateChunk:
    return cmd.DuplicateChunk(chunk=chunk, by="ada")


def take(claim: str) -> cmd.ReleaseClaim:
    return cmd.ReleaseClaim(claim=claim, by="ada")


# --- a copy by hand --------------------------------------------------------------------------------------


def test_a_wanted_copy_goes_to_the_next_worker_that_asks_though_work_is_open() -> None:
    """1. w1 holds c0, much is open. 2. A copy of c0 is wanted. 3. w2 asks and gets it; w3 gets open work."""
    run = Run("w1", "w2", "w3")
    run.claim("w1")
    run.command(copy("c0"))
    assert run.events == (ev.DuplicateWanted(chunk=0, by="ada"),)
    assert run.claim("w2").token == "c0#2@e1"
    assert run.saw(ev.ClaimGranted)[0].why == "the operator wants a copy"
    assert run.claim("w3").token == "c1#1@e1"


def test_a_wanted_copy_wakes_a_parked_worker() -> None:
    run = Run("w1", "w2", parts=2, tail="none")
    run.claim("w1")
    run.park("w2")
    run.command(copy("c0"))
    ((worker, granted),) = run.woken()
    assert (worker, granted.token) == ("w2", "c0#2@e1")


def test_a_copy_begins_where_the_holder_has_not_delivered() -> None:
    run = Run("w1", "w2", policy="fixed,40")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    run.command(copy("c0"))
    granted = run.claim("w2")
    assert (granted.start, granted.stop) == (10, 40)


def test_the_holder_itself_is_not_given_the_copy() -> None:
    """1. w1 holds c0. 2. A copy is wanted. 3. w1 gives c0 back: nobody holds it, and nothing is wanted."""
    run = Run("w1", "w2")
    run.claim("w1")
    run.command(copy("c0"))
    run.release("w1")
    assert not run.books.wanted
    assert run.claim("w2").token == "c1#1@e1"


def test_a_copy_that_nobody_took_goes_with_the_chunk() -> None:
    run = Run("w1", "w2", policy="fixed,10")
    token = run.claim("w1").token
    run.command(copy("c0"))
    run.credit("w1", token, 0)
    assert not run.books.wanted
    assert run.claim("w2").token == "c1#1@e1"


def test_a_copy_that_cannot_be_had_is_refused_with_the_reason() -> None:
    run = Run("w1", "w2", policy="fixed,50")
    assert "no chunk exists yet" in refused(run, copy("c0"))
    run.claim("w1")
    for text in ("c01", "C0", "0", "c-1", "c7", ""):
        refused(run, copy(text))
    run.command(copy("c0"))
    assert refused(run, copy("c0")).startswith("a copy of c0 is wanted already")
    run.claim("w2")
    assert refused(run, copy("c0")) == "w1 and w2 hold c0 already, and 2 workers at most may"
    run.release("w2")
    assert refused(run, copy("c0")) == "every worker has held c0 before, and none may hold a chunk twice"
    run.release("w1")
    assert refused(run, copy("c0")) == "nobody holds c0 any more: there is nothing to copy"


def test_no_copy_is_given_out_while_the_job_is_paused() -> None:
    run = Run("w1", "w2", parts=2, tail="none")
    run.claim("w1")
    run.park("w2")
    run.command(cmd.Pause())
    run.command(copy("c0"))
    assert run.refusal is None and not run.woken()
    run.command(cmd.Resume())
    assert [worker for worker, _ in run.woken()] == ["w2"]


# --- a claim taken away ----------------------------------------------------------------------------------


def test_what_is_taken_from_a_worker_goes_to_another_and_counts_no_try() -> None:
    """1. w1 holds c0, w2 c1. 2. c0 is taken from w1, which is told to stop. 3. w1 asks: it gets what comes
    after. 4. w2 is done and gets the frames of c0, first in the queue. 5. What w1 still says is refused."""
    run = Run("w1", "w2", policy="fixed,20")
    token = run.claim("w1").token
    two = run.claim("w2").token
    run.command(take("c0"))
    assert run.saw(ev.ClaimReleased) == [ev.ClaimReleased(token=token, worker="w1", by="ada")]
    (ended,) = run.saw(ev.ClaimEnded)
    assert (ended.how, ended.reason) == ("released", "by the operator")
    (beat,) = run.told("w1")
    assert isinstance(beat, msg.Beat)
    assert [(c.token, c.live, c.reason) for c in beat.claims] == [(token, False, "released: by the operator")]
    assert run.open_ranges()[0] == (0, 20) and not run.books.tries and not run.books.lapses
    assert run.claim("w1").start == 40
    run.credit("w2", two, 2, 3)
    assert run.claim("w2").start == 0
    assert isinstance(run.deliver("w1", token, 0), msg.NotClaimant)


def test_what_was_credited_of_a_claim_stays() -> None:
    run = Run("w1", "w2", policy="fixed,40")
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    run.command(take(token))
    assert run.books.credited_frames == 10
    assert run.claim("w2").start == 10


def test_a_parked_worker_takes_over_at_once() -> None:
    run = Run("w1", "w2", parts=2, tail="none")
    run.claim("w1")
    run.park("w2")
    run.command(take("c0"))
    assert [(worker, granted.token) for worker, granted in run.woken()] == [("w2", "c1#1@e1")]


def test_a_worker_alone_gets_back_what_was_taken_from_it() -> None:
    run = Run("w1", parts=2)
    run.claim("w1")
    run.command(take("c0"))
    assert run.claim("w1").start == 0
    run.finish("w1")
    assert run.books.finished


def test_it_is_not_left_for_ever_to_others_that_do_not_come() -> None:
    """1. c0 is taken from w1; w2 has joined and never asks. 2. w1 is parked. 3. After a lease w2 is not
    counted on any more, and w1 has it."""
    run = Run("w1", "w2", parts=2, lease_seconds=10.0)
    run.claim("w1")
    run.command(take("c0"))
    assert run.park("w1").why == "what is open was taken from this worker, and is left to others"
    run.wait(11)
    assert [worker for worker, _ in run.woken()] == ["w1"]


def test_one_of_two_holders_may_be_taken_off_or_both() -> None:
    run = Run("w1", "w2", "w3", parts=2)
    one = run.claim("w1").token
    two = run.claim("w2").token
    run.command(take(two))
    assert run.tokens("w1") == [one] and not run.tokens("w2") and not run.open_ranges()
    run.claim("w3")
    run.command(take("c0"))
    assert not run.tokens("w1") and not run.tokens("w3")
    assert len(run.saw(ev.ClaimReleased)) == 2


def test_taking_what_nobody_holds_is_refused_with_the_reason() -> None:
    run = Run("w1", policy="fixed,10")
    token = run.claim("w1").token
    for text in ("c01#1@e1", "c0#0@e1", "c9", "what"):
        refused(run, take(text))
    assert refused(run, take("c0#2@e1")) == "there is no claim 'c0#2@e1'"
    run.credit("w1", token, 0)
    assert refused(run, take(token)) == "c0#1@e1 is over already: completed"
    assert refused(run, take("c0")) == "nobody holds c0 any more"


# --- workers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fps", "told"), [(12.5, 12.5), (None, 0.0)])
def test_a_throttled_worker_is_told_and_its_cap_is_known(fps: float | None, told: float) -> None:
    run = Run("w1")
    run.join("w2", fps_cap=4.0)
    run.command(cmd.ThrottleWorker(worker="w2", fps=fps, by="ada"))
    assert run.events == (ev.WorkerThrottled(worker="w2", fps_cap=fps, by="ada"),)
    assert run.told("w2") == [msg.Beat(fps_cap=told)]
    assert run.books.caps == {"w1": None, "w2": fps}


def test_a_cap_beyond_what_there_is_is_said() -> None:
    """1. w1 was seen to render 10 fps without a cap: 50 changes nothing. 2. The machine was measured: caps
    that add up to more are said."""
    run = Run("w1", "w2")
    token = run.claim("w1").token
    run.now = 10.0
    run.beat("w1", ev.ClaimProgress(token, 20, 20, render_seconds=2.0))
    run.command(cmd.ThrottleWorker(worker="w1", fps=50.0))
    assert [note.text for note in run.saw(ev.Notice)] == [
        "w1 renders 10 fps without a cap: one of 50 changes nothing"
    ]
    run._twin.apply(0.0, measured := ev.FleetMeasured(fps_asked=1, fps_possible=60.0))
    run.books.apply(0.0, measured)
    run.command(cmd.ThrottleWorker(worker="w2", fps=5.0))
    assert not run.saw(ev.Notice)
    run.command(cmd.ThrottleWorker(worker="w2", fps=40.0))
    assert [note.text for note in run.saw(ev.Notice)] == [
        "the caps add up to 90 fps, 60 are possible here: workers will be slower"
    ]


def test_a_worker_that_is_sent_away_is_told_once_and_gets_nothing_more() -> None:
    run = Run("w1", "w2", parts=6, policy="fixed,20")
    token = run.claim("w1").token
    run.command(cmd.RemoveWorker(worker="w1", by="ada"))
    assert run.events == (ev.WorkerDismissed(worker="w1", by="ada"),)
    assert run.told("w1") == [msg.Beat(drain=True)]
    assert "was sent away already" in refused(run, cmd.RemoveWorker(worker="w1"))
    run.credit("w1", token, 0)
    run.release("w1")
    assert isinstance(run.ask("w1"), msg.Finished)
    run.say("w1", msg.Leave())
    assert not run.books.dismissed
    run.finish("w2")
    assert run.books.finished


def test_a_parked_worker_that_is_sent_away_is_not_woken_for_work() -> None:
    run = Run("w1", "w2", "w3", parts=2, tail="none")
    run.claim("w1")
    run.park("w2")
    run.command(cmd.RemoveWorker(worker="w2"))
    run.release("w1")
    assert not run.woken()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (cmd.ThrottleWorker(worker="w9", fps=1.0), "there is no worker w9"),
        (cmd.ThrottleWorker(worker="w1", fps=0.0), "0 is no cap: give frames per second from 0.001"),
        (cmd.ThrottleWorker(worker="w1", fps=float("nan")), "nan is no cap"),
        (cmd.RemoveWorker(worker="w9"), "there is no worker w9"),
        (cmd.RemoveWorker(worker="w1"), "w1 is the last worker"),
        (cmd.AddWorker(profile=WorkerProfile(name="w1")), "there is a worker w1 already"),
    ],
)
def test_what_cannot_be_done_to_a_worker_is_refused_with_the_reason(command: Any, words: str) -> None:
    assert refused(Run("w1"), command).startswith(words)


def test_nobody_is_added_to_a_run_that_ends() -> None:
    run = Run("w1", parts=2)
    run.command(cmd.AddWorker(profile=WorkerProfile(name="w2", fps_cap=3.0), by="ada"))
    assert run.events == (
        ev.WorkerAdded(
            worker="w2",
            profile='{"name":"w2","fps_cap":3.0,"overhead_seconds":0.0,"link":null,'
            '"memory_bytes":null,"cores":null}',
            by="ada",
        ),
    )
    run.command(cmd.Drain())
    assert refused(run, cmd.AddWorker(profile=WorkerProfile(name="w3"))).startswith("the run is stopping")
    run = Run("w1", parts=2)
    run.finish("w1")
    assert refused(run, cmd.AddWorker(profile=WorkerProfile(name="w3"))).startswith("the work is done")
