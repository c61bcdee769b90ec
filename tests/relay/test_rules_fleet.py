"""The rules of DESIGN.md §4 that concern the fleet: tries, deaths, blocking. One section a rule;
scenarios are numbered steps."""

from __future__ import annotations

import pytest

from farm import events as ev
from farm import messages as msg
from tests.relay.driver import Run

# --- rule 12: tries -------------------------------------------------------------------------------------


def test_a_part_that_fails_three_times_is_set_aside_alone() -> None:
    """1. w1 and w2 fail part 1 of a chunk of three, w1 fails it once more. 2. Part 1 alone is set aside. 3.
    The job ends without it, and says so."""
    run = Run("w1", "w2", parts=3, policy="fixed,30")
    for worker in ("w1", "w2", "w1"):
        token = run.claim(worker).token
        part = run.books.grid.part_at(run.books.leases[token].start)
        if part == 0:
            run.credit(worker, token, 0)
        run.fail(worker)
    assert [(event.part, event.tries, event.reason) for event in run.saw(ev.PartSetAside)] == [
        (1, 3, "failed 3 times, by w1, w2")
    ]
    run.finish("w2")
    (finished,) = run.all(ev.WorkFinished)
    assert (finished.credited_frames, finished.set_aside_frames) == (20, 10)


def test_a_failure_counts_against_the_part_it_names_or_the_next_one() -> None:
    run = Run("w1", parts=6, policy="fixed,40", max_tries=99)
    for part, counted in ((2, 2), (None, 0), (5, 0), (9, 0), (-1, 0)):
        run.claim("w1")
        run.fail("w1", part)
        assert [event.part for event in run.saw(ev.PartFailed)] == [counted]


def test_a_part_that_one_of_two_has_failed_is_left_to_the_other() -> None:
    """1. w1 fails part 0. 2. It gets part 1 next. 3. w2 gets part 0."""
    run = Run("w1", "w2", policy="fixed,10")
    run.claim("w1")
    run.fail("w1")
    assert run.claim("w1").start == 10
    assert run.claim("w2").start == 0


def test_three_tries_of_the_only_worker_are_enough() -> None:
    run = Run("w1", parts=1)
    for _ in range(3):
        run.claim("w1")
        run.fail("w1")
    assert run.books.set_aside_frames == 10 and run.books.finished


@pytest.mark.parametrize("second", ["fails too", "never asks"])
def test_three_tries_by_one_of_two_are_not_enough(second: str) -> None:
    """1. w1 is alone and fails part 0 twice. 2. w2 joins while w1 fails it a third time: it is not set aside,
    but left to w2. 3. w2 fails it as well, or doesn't come within a lease: now it is."""
    run = Run("w1", parts=1)
    for _ in range(2):
        run.claim("w1")
        run.fail("w1")
    run.claim("w1")
    run.join("w2")
    run.fail("w1")
    assert not run.saw(ev.PartSetAside)
    run.park("w1")
    if second == "fails too":
        assert run.claim("w2").start == 0
        run.fail("w2")
    else:
        run.wait(19.9)
        assert not run.saw(ev.PartSetAside)
        run.wait(0.1)
    assert [event.part for event in run.saw(ev.PartSetAside)] == [0]
    assert run.books.finished


def test_a_failed_part_is_not_given_again_as_a_duplicate() -> None:
    """1. w1 fails part 0, w2 takes it. 2. Nothing is open, but w1 gets no copy of that chunk. 3. w2 delivers
    part 0: now w1 may copy the rest."""
    run = Run("w1", "w2", parts=2)
    run.claim("w1")
    run.fail("w1")
    token = run.claim("w2").token
    run.park("w1")
    run.credit("w2", token, 0)
    assert [(name, granted.start) for name, granted in run.woken()] == [("w1", 10)]


def test_a_failed_part_is_given_again_if_all_have_failed_it() -> None:
    run = Run("w1", "w2", parts=1, max_tries=9)
    for worker in ("w1", "w2"):
        run.claim(worker)
        run.fail(worker)
    assert run.claim("w1").start == 0


@pytest.mark.parametrize("other", ["lapsed", "blocked", "never asks", "hung after its claim"])
def test_a_failed_part_is_given_again_if_nobody_else_is_sure_to_take_it(other: str) -> None:
    """The job must not wait for a worker that will not come.

    1. w2 is silent since a lapse, or blocked, or joined and hung, or hung after its claim ended. 2. w1 fails
    part 0 and asks again. 3. It gets part 0 again, after a lease at the latest."""
    run = Run("w1", "w2", parts=2, tail="none", policy="fixed,10", block_after_failures=1, max_tries=9)
    if other == "lapsed":
        run.claim("w2")
        run.wait(20)
    elif other == "blocked":
        run.claim("w2")
        run.fail("w2")
        run.park("w2")
    elif other == "hung after its claim":
        run.credit("w2", run.claim("w2").token, 0)
    token = run.claim("w1").token
    part = run.books.grid.part_at(run.books.leases[token].start)
    run.say("w1", msg.Fail(token=token, part=part))
    waited = 0
    answer = run.ask("w1")
    while not isinstance(answer, msg.Granted) or answer.start != part * 10:
        if isinstance(answer, msg.Granted):  # the other part, first
            run.credit("w1", answer.token, answer.start // 10)
            answer = run.ask("w1")
            continue
        assert waited < 21, answer
        waited += 1
        run.wait(1)
        answer = next((push for name, push in run.woken() if name == "w1"), answer)
    run.credit("w1", answer.token, part)


@pytest.mark.parametrize("other", ["blocked", "silent"])
def test_nothing_is_left_to_a_worker_that_is_blocked_or_silent(other: str) -> None:
    """Not for a moment: w1 gets at once what it has failed."""
    run = Run("w1", "w2", parts=2, policy="fixed,10", block_after_failures=1, max_tries=9)
    token = run.claim("w1").token
    run.claim("w2")
    if other == "blocked":
        run.fail("w2")
        run.park("w2")
    else:
        run.now = 10
        run.beat("w1", token)
        run.wait(10)
    run.fail("w1")
    assert run.claim("w1").start == 0


def test_a_part_is_left_to_an_idle_worker_for_a_lease_and_no_longer() -> None:
    """1. w2 has joined and not asked yet. 2. w1 fails part 0, asks again and is parked, since w2 may come.
    3. A lease later w2 has not come: w1 is woken with part 0. Time alone brings that about."""
    run = Run("w1", "w2", parts=1, tail="none")
    run.now = 5
    run.claim("w1")
    run.fail("w1")
    assert run.park("w1").why == "what is open is left to workers that have not failed it"
    run.wait(14.9)
    assert not run.woken()
    run.wait(0.1)
    assert [(name, granted.start) for name, granted in run.woken()] == [("w1", 0)]


def test_being_heard_makes_an_idle_worker_expected_again() -> None:
    """1. w2 lapsed long ago. 2. It wakes and is refused: so it will ask soon. 3. What w1 has failed is left
    to it."""
    run = Run("w1", "w2", parts=2, policy="fixed,10", tail="none")
    token = run.claim("w2").token
    run.wait(20)
    run.wait(40)
    run.credit("w1", run.claim("w1").token, 0)
    run.claim("w1")
    run.beat("w2", token)
    run.fail("w1")
    run.park("w1")
    assert run.claim("w2").start == 10


def test_nonsense_is_a_sign_of_life_as_well() -> None:
    """1. w2 is idle for long. 2. What it says is refused. 3. What w1 has failed is left to it."""
    run = Run("w1", "w2", parts=1, tail="none")
    run.wait(60)
    run.claim("w1")
    run.say("w2", msg.Complete(token="c01#1@e1"))
    run.fail("w1")
    run.park("w1")


def test_a_late_copy_is_a_sign_of_life_too() -> None:
    """1. w2's claim is superseded, and it is long at its part. 2. Its copy arrives: so it will ask soon,
    and what w1 has failed is left to it."""
    run = Run("w1", "w2", parts=2, policy="fixed,10", tail="duplicate-oldest,from=start")
    run.credit("w1", run.claim("w1").token, 0)
    one = run.claim("w1").token
    two = run.claim("w2").token
    run.credit("w1", one, 1)
    run.void(0)
    run.wait(30)
    run.deliver("w2", two, 1)
    run.claim("w1")
    run.fail("w1")
    run.park("w1")


def test_work_taken_past_a_failed_part_leaves_the_queue_in_order() -> None:
    """1. w1 fails part 0 of [0, 30); parts 5 and later are open behind. 2. It gets part 1. 3. Part 2 is still
    before part 5."""
    run = Run("w1", "w2", parts=8, policy="fixed,10")
    claims = {worker: run.claim(worker) for worker in ("w1", "w2")}
    assert [granted.start for granted in claims.values()] == [0, 10]
    run.options(policy="fixed,30")
    run.join("w3")
    assert run.claim("w3").start == 20  # to 50
    run.options(policy="fixed,10")
    run.release("w3")
    run.release("w2")
    run.fail("w1")
    assert run.open_ranges() == [(0, 80)]
    assert run.claim("w1").start == 10
    assert run.open_ranges() == [(0, 10), (20, 80)]


def test_losing_a_worker_counts_a_try_and_is_counted_apart() -> None:
    """1. w1 delivers part 0 and dies in part 1. 2. A try against part 1, a loss, no lapse, no failure in a
    row; what it held is open."""
    run = Run("w1", "w2", parts=4, policy="fixed,40")
    run.credit("w1", run.claim("w1").token, 0)
    run.gone("w1")
    (failed,) = run.saw(ev.PartFailed)
    assert (failed.part, failed.kind) == (1, "worker lost")
    assert [event.lost for event in run.saw(ev.WorkerLeft)] == [True]
    assert (run.books.losses, run.books.lapses) == (1, 0)
    assert run.open_ranges() == [(10, 40)]


def test_a_part_that_kills_its_workers_is_set_aside() -> None:
    """RG40. Each time another process comes in the place of the one that died."""
    run = Run("w1", "w2", parts=2, policy="fixed,10")
    kills = 0
    while not run.books.finished:
        for worker in ("w1", "w2"):
            if worker not in run.books.workers:
                run.join(worker)
            answer = run.ask(worker)
            if not isinstance(answer, msg.Granted):
                continue
            if answer.start == 0:
                run.gone(worker)
                kills += 1
                assert kills <= 4
            else:
                run.credit(worker, answer.token, 1)
    assert run.books.set_aside_frames == 10 and run.books.credited_frames == 10


def test_a_part_on_which_every_worker_stalls_is_set_aside() -> None:
    """RG40."""
    run = Run("w1", "w2", parts=1, stall_timeout_seconds=15, tail="none")
    rounds = 0
    while not run.books.finished:
        rounds += 1
        assert rounds < 10
        for worker in ("w1", "w2"):
            run.ask(worker)
        run.wait(15)
    assert run.books.set_aside_frames == 10


def test_a_part_that_silences_one_worker_after_another_is_set_aside() -> None:
    """RG40. 1. w1 falls silent at part 1, wakes and asks again; so does w2; and so on. 2. The first lapse
    counts no try, each later one does. 3. At three tries the part is set aside, and the rest is done."""
    run = Run("w1", "w2", parts=2, policy="fixed,10")
    run.credit("w1", run.claim("w1").token, 0)
    tries = []
    for worker in ("w1", "w2", "w1", "w2"):
        run.claim(worker)
        run.wait(20)
        tries.append([(event.part, event.kind, event.tries) for event in run.saw(ev.PartFailed)])
    assert tries == [[], [(1, "lapsed", 1)], [(1, "lapsed", 2)], [(1, "lapsed", 3)]]
    assert run.books.finished and run.books.set_aside_frames == 10


def test_lapses_at_other_parts_or_before_a_credit_count_no_try() -> None:
    run = Run("w1", parts=4, policy="fixed,40", tail="none")
    for part in range(3):
        run.claim("w1")
        run.wait(20)
        assert not run.saw(ev.PartFailed)
        token = run.claim("w1").token
        run.credit("w1", token, part)
        run.release("w1")
    run.void(0)
    run.claim("w1")
    run.wait(20)
    assert not run.saw(ev.PartFailed)


def test_contact_lost_is_only_said_and_the_lease_decides() -> None:
    run = Run("w1")
    run.claim("w1")
    run.gone("w1", sure=False)
    assert [type(event) for event in run.events] == [ev.Notice] and run.tokens("w1")
    run.wait(20)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["lapsed"]
    run.gone("w9")
    assert not run.events


# --- rule 12: blocked and forgiven ----------------------------------------------------------------------


def test_a_worker_that_fails_in_a_row_is_blocked_and_forgiven() -> None:
    """1. w1 fails three different parts in a row. 2. It is blocked, and parked when it asks. 3. After a
    while it is forgiven, and woken."""
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=3, block_seconds=60, tail="none")
    for _ in range(3):
        run.claim("w1")
        run.fail("w1")
    assert [(event.failures, event.until) for event in run.saw(ev.WorkerBlocked)] == [(3, 60.0)]
    assert run.park("w1").why == "blocked after failures in a row"
    run.claim("w2")
    run.wait(59, "w2")
    assert run.books.workers["w1"].parked
    run.wait(1, "w2")
    assert run.saw(ev.WorkerForgiven) and [name for name, _ in run.woken()] == ["w1"]
    run.fail("w1")
    assert not run.saw(ev.WorkerBlocked), "forgiven: it counts from nought"


def test_a_blocked_worker_may_die() -> None:
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=1)
    run.claim("w1")
    run.fail("w1")
    run.gone("w1")
    run.join("w1")
    assert isinstance(run.ask("w1"), msg.Granted)


def test_a_credit_between_failures_breaks_the_row() -> None:
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=2)
    run.claim("w1")
    run.fail("w1")
    run.credit("w1", run.claim("w1").token, 1)
    run.claim("w1")
    run.fail("w1")
    assert not run.all(ev.WorkerBlocked)


@pytest.mark.parametrize("other", ["none", "blocked", "silent", "hung"])
def test_the_last_worker_that_could_work_is_never_blocked(other: str) -> None:
    run = Run("w1", policy="fixed,10", block_after_failures=1, max_tries=9)
    if other != "none":
        run.join("w2")
    if other == "blocked":
        run.claim("w2")
        run.fail("w2")
        assert run.saw(ev.WorkerBlocked)
    elif other == "silent":
        run.claim("w2")
        run.wait(20)
    elif other == "hung":
        run.now = 20
    run.claim("w1")
    run.fail("w1")
    assert not run.saw(ev.WorkerBlocked)
    assert isinstance(run.ask("w1"), msg.Granted)


def test_a_blocked_worker_is_forgiven_early_if_it_is_the_last() -> None:
    run = Run("w1", "w2", policy="fixed,10", block_after_failures=1, block_seconds=1000)
    run.claim("w1")
    run.fail("w1")
    run.park("w1")
    run.wait(1)
    assert not run.saw(ev.WorkerForgiven)
    run.gone("w2")
    run.wait(1)
    assert run.saw(ev.WorkerForgiven) and [name for name, _ in run.woken()] == ["w1"]
