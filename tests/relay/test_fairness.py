"""Rule 12 where workers are blocked: a part is not set aside on the word of one worker while another, that
was blocked for a while, could still try it."""

from __future__ import annotations

from farm import events as ev
from tests.relay.driver import Run


def test_a_blocked_worker_is_forgiven_for_a_part_that_nobody_else_is_left_to_try() -> None:
    """1. w1 fails parts until it is blocked; it waits. 2. w2 fails another part three times. 3. That part is
    not set aside: w1 is forgiven and gets it. 4. w1 fails it as well, and now it is."""
    run = Run("w1", "w2", parts=6, policy="fixed,10", block_after_failures=2, block_seconds=1000.0)
    while not run.saw(ev.WorkerBlocked):
        run.claim("w1")
        run.fail("w1")
    blocked = {event.part for event in run.all(ev.PartFailed)}
    run.park("w1")
    while not run.all(ev.WorkerForgiven):
        run.claim("w2")
        run.fail("w2")
    failed = [event.part for event in run.all(ev.PartFailed) if event.worker == "w2"]
    alone = max(set(failed), key=failed.count)
    assert failed.count(alone) == 3 and alone not in blocked
    assert alone not in [event.part for event in run.all(ev.PartSetAside)]
    claims = run.books.workers["w1"].claims.values()
    assert [run.books.grid.part_at(claim.start) for claim in claims] == [alone]
    run.fail("w1")
    assert alone in [event.part for event in run.all(ev.PartSetAside)]
