"""Who is woken, who waits and why, and what is held ahead at the end. Scenarios are numbered steps."""

from __future__ import annotations

from farm import commands as cmd
from farm import events as ev
from farm import messages as msg
from tests.relay.driver import Run


def at_speed(run: Run, worker: str, fps: float, *parts: int) -> None:
    """Deliver parts of the worker's only claim, as rendered at this speed."""
    (token,) = run.tokens(worker)
    for number, part in enumerate(parts, 1):
        rendered = number * 10
        run.credit(worker, token, part, claim_rendered=rendered, claim_seconds=rendered / fps)


def test_many_workers_that_may_not_take_a_part_do_not_keep_it_from_one_that_may() -> None:
    """1. w1 to w9 fail the only part and are parked. 2. w10 is parked while w11 has it. 3. w11 fails it: w10
    is woken, however many were parked before it."""
    names = [f"w{number}" for number in range(1, 12)]
    run = Run(*names, parts=1, policy="fixed,10", tail="none", max_tries=20)
    for name in names[:9]:
        run.claim(name)
        run.fail(name)
        run.park(name)
    run.claim("w11")
    run.park("w10")
    run.fail("w11")
    assert [name for name, _ in run.woken()] == ["w10"]


def test_the_fastest_is_woken_first_where_work_is_split() -> None:
    """1. w1 is slow, w2 fast. 2. Both are parked during a pause, w1 first. 3. w2 is given work first."""
    run = Run("w1", "w2", parts=8, tail="split")
    for worker in ("w1", "w2"):
        run.claim(worker)
    run.now = 2.0
    at_speed(run, "w1", 1.0, 0, 1)
    at_speed(run, "w2", 10.0, 2, 3)
    run.command(cmd.Pause(by="test"))
    run.park("w1")
    run.park("w2")
    run.command(cmd.Resume(by="test"))
    assert [name for name, _ in run.woken()] == ["w2", "w1"]


def test_a_worker_is_told_that_others_will_be_sooner() -> None:
    """1. w1 renders 10 frames a second, w2 one. 2. w1 has taken a part again. 3. Of the seven
    that are open w2 would end none before w1 has done them all: it is parked, and told so."""
    run = Run("w1", "w2", policy="fair,cap=1", tail="split")
    for worker in ("w1", "w2"):
        run.claim(worker)
    run.now = 1.0
    at_speed(run, "w1", 10.0, 0)
    run.now = 10.0
    at_speed(run, "w2", 1.0, 1)
    assert run.claim("w1").stop == 30
    assert (
        run.park("w2").why == "others are expected to be done with what is open before this worker would be"
    )


def test_who_is_about_to_end_takes_part_of_a_late_chunk_ahead() -> None:
    """1. w1 is nearly done; w2 has 19 s left. 2. w1 asks ahead: it gets the end of w2's chunk, as a claim
    held ahead."""
    run = Run("w1", "w2", parts=4, tail="split", claim_ahead=True)
    run.claim("w1")
    late = run.claim("w2").token
    run.now = 1.0
    at_speed(run, "w1", 10.0, 0)
    run.beat("w2", ev.ClaimProgress(late, position=21, rendered=1, render_seconds=1.0))
    granted = run.say("w1", msg.Claim(ahead=True))
    assert isinstance(granted, msg.Granted)
    assert (granted.start, granted.stop) == (30, 40)
    assert granted.token in run.books.ahead
    assert run.books.leases[late].stop == 30


def test_nothing_is_split_ahead_while_somebody_idles() -> None:
    """1. w3 was parked, and w2 is late since. 2. What can be taken from w2 goes to w3 at once."""
    run = Run("w1", "w2", "w3", parts=4, tail="split", claim_ahead=True)
    run.claim("w1")
    late = run.claim("w2").token
    run.park("w3")
    run.now = 1.0
    at_speed(run, "w1", 10.0, 0)
    run.beat("w2", ev.ClaimProgress(late, position=21, rendered=1, render_seconds=1.0))
    assert run.tokens("w3") and run.books.leases[late].stop == 30
