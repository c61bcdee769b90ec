"""A part that failed rests before it is tried again, and nothing is granted while memory is short."""

from __future__ import annotations

import pytest

from farm import events as ev
from farm import messages as msg
from farm.relay.fold.parts import backoff_seconds
from tests.relay.driver import Run


@pytest.mark.parametrize(
    ("tries", "kind", "seconds"),
    [
        (1, "encoder", 1.0),
        (2, "encoder", 2.0),
        (3, "source", 4.0),
        (9, "encoder", 60.0),
        (2000, "encoder", 60.0),
        (1, "worker lost", 0.0),
        (2, "worker lost", 1.0),
        (1, "lapsed", 0.0),
        (1, "out of memory", 0.0),
    ],
)
def test_the_rest_doubles_and_a_first_loss_costs_none(tries: int, kind: str, seconds: float) -> None:
    assert backoff_seconds(1.0, tries, kind) == seconds


def test_a_part_that_failed_is_tried_again_after_its_rest_and_not_before() -> None:
    run = Run("w1", "w2", parts=2, policy="fixed,10", backoff_seconds=2.0)
    first = run.claim("w1")
    other = run.claim("w2")
    run.say("w1", msg.Fail(token=first.token, part=0, kind="encoder", message="broke"))
    assert isinstance(run.ask("w1"), msg.Parked), "w1 failed it, and it rests"
    run.deliver("w2", other.token, 1)
    assert "after a while" in run.park("w2").why
    run.wait(1.9, "w1", "w2")
    assert not run.saw(ev.ClaimGranted)
    run.wait(0.2)
    (granted,) = run.saw(ev.ClaimGranted)
    assert (granted.start, granted.worker) == (0, "w2"), "another worker is preferred"


def test_a_part_that_always_crashes_its_worker_ends_set_aside_and_the_rest_is_done() -> None:
    """RG40, and an encoder that crashes on one part: no loop, the other parts are rendered."""
    run = Run("w1", "w2", parts=3, policy="fixed,10", backoff_seconds=1.0, max_tries=3)
    credited = deaths = 0
    for _ in range(100):
        if run.books.finished:
            break
        for worker in ("w1", "w2"):
            if run.books.finished:
                break
            if worker not in run.books.workers:
                run.join(worker)
            answer = None if run.books.workers[worker].claims else run.ask(worker)
            for token, claim in list(run.books.workers[worker].claims.items()):
                part = run.books.grid.part_at(claim.start)
                if part == 1:
                    deaths += 1
                    run.gone(worker)
                    break
                run.deliver(worker, token, part)
                credited += 1
            assert answer is None or not isinstance(answer, msg.Refused)
        run.wait(1.0, *run.books.workers)
    assert run.books.finished
    assert (credited, deaths, run.books.set_aside_frames) == (2, 3, 10)


def test_while_memory_is_short_nothing_is_granted_and_what_is_held_goes_on() -> None:
    run = Run("w1", "w2", policy="fixed,10")
    claim = run.claim("w1")
    run.hold("memory is short")
    assert run.park("w2").why == "memory is short"
    run.deliver("w1", claim.token, 0)
    assert run.park("w1").why == "memory is short"
    run.hold("memory is short")
    assert not run.events, "it is said once"
    run.wait(5.0)
    assert not run.saw(ev.ClaimGranted)
    run.free()
    assert {granted.worker for granted in run.saw(ev.ClaimGranted)} == {"w1", "w2"}
    run.free()
    assert not run.events


def test_a_restarted_relay_holds_nothing_back() -> None:
    run = Run("w1", policy="fixed,10")
    run.hold("memory is short")
    run.restart()
    run.join("w1")
    assert isinstance(run.ask("w1"), msg.Granted)


def test_a_worker_out_of_memory_counts_a_try_of_that_kind() -> None:
    run = Run("w1", "w2", policy="fixed,10")
    run.claim("w1")
    run.gone("w1", kind="out of memory")
    (failed,) = run.saw(ev.PartFailed)
    assert (failed.kind, failed.part) == ("out of memory", 0)


def test_what_a_stopped_worker_says_of_its_seconds_is_held_against_lease_time() -> None:
    """After Ctrl-Z for an hour a worker would look a thousand times slower than it is."""
    run = Run("w1", policy="fixed,100")
    token = run.claim("w1").token
    run.now = 4.0
    progress = ev.ClaimProgress(token=token, position=10, rendered=10, render_seconds=3604.0)
    run.say("w1", msg.Heartbeat(claims=(progress,)))
    rate = run.books.speeds.of("w1").rate
    assert rate == pytest.approx(2.5, rel=0.05)
