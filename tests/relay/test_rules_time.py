"""The rules of DESIGN.md §4 about time: leases that lapse, workers that are alive without moving, parts
that take too long. Scenarios are numbered steps."""

from __future__ import annotations

import pytest

from farm import commands as cmd
from farm import events as ev
from tests.relay.driver import Run

# --- rule 7: lapses -------------------------------------------------------------------------------------


def test_a_lease_lives_while_it_is_renewed() -> None:
    """RG34. Work of three leases, with a beat and some progress in time: nothing lapses. Then silence."""
    run = Run("w1")
    token = run.claim("w1").token
    for step in range(6):
        run.now += 10
        run.beat("w1", ev.ClaimProgress(token, decoded=step + 1))
        run.wait(0)
        assert run.tokens("w1")
    run.wait(19.99)
    assert run.tokens("w1")
    run.wait(0.01)
    assert not run.tokens("w1")
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["lapsed"]


def test_a_delivery_renews_too_and_leases_end_in_renewal_order() -> None:
    """1. w1, w2, w3 claim at 0. 2. w1 delivers at 5, w2 beats at 10. 3. They end: w3, w1, w2."""
    run = Run("w1", "w2", "w3")
    tokens = {worker: run.claim(worker).token for worker in ("w1", "w2", "w3")}
    run.now = 5
    run.credit("w1", tokens["w1"], 0)
    run.now = 10
    run.beat("w2", tokens["w2"])
    ended = []
    for run.now in (20, 25, 30):
        run.wait(0)
        ended += [event.worker for event in run.saw(ev.ClaimEnded)]
    assert ended == ["w3", "w1", "w2"]


def test_a_copy_that_does_not_count_renews_and_is_progress_all_the_same() -> None:
    run = Run("w1", "w2", parts=2, tail="duplicate-oldest,from=start", stall_timeout_seconds=25)
    one = run.claim("w1").token
    run.credit("w2", run.claim("w2").token, 0)
    run.now = 15
    run.deliver("w1", one, 0)
    run.wait(15)
    assert run.tokens("w1") == [one] and not run.tokens("w2")


def test_what_lapses_reopens_at_the_head_joined_with_open_neighbours() -> None:
    """1. w1 takes [0, 20), w2 [20, 40). 2. w1 lapses: [0, 20) comes before [40, 100). 3. w2 lapses: one range
    again. 4. The next claim takes it from the head and says that it was reopened."""
    run = Run("w1", "w2", "w3")
    run.claim("w1")
    token = run.claim("w2").token
    run.wait(15)
    run.beat("w2", token)
    run.wait(5)
    assert run.open_ranges() == [(0, 20), (40, 100)]
    run.wait(20)
    assert run.open_ranges() == [(0, 100)]
    run.claim("w3")
    assert [(event.start, event.reopened) for event in run.saw(ev.ClaimGranted)] == [(0, True)]


def test_a_worker_that_asks_again_after_a_lapse_is_counted_again() -> None:
    """1. w1 and w2 hold claims and lapse: of three, one is left to share with. 2. w1 asks: half of what is
    open, for two of them, is 20 of 80 frames. 3. w2 asks and is parked: available as well."""
    run = Run("w1", "w2", "w3", parts=8, policy="guided,1")
    for worker in ("w1", "w2"):
        run.claim(worker)
    run.wait(20)
    assert run.books.available_count == 1
    granted = run.claim("w1")
    assert (granted.start, granted.stop) == (0, 20)
    assert run.books.available("w1") and run.books.available_count == 2
    run.command(cmd.Pause())
    run.park("w2")
    assert run.books.available("w2")


def test_a_heartbeat_is_answered_for_each_claim_it_lists() -> None:
    """Live, completed, somebody else's, or nonsense; only the first is renewed."""
    run = Run("w1", "w2", parts=6)
    done = run.claim("w1").token
    run.credit("w1", done, 0, 1)
    live, other = run.claim("w1").token, run.claim("w2").token
    states = {
        state.token: (state.live, state.reason) for state in run.beat("w1", live, done, other, "c01").claims
    }
    assert states == {
        live: (True, ""),
        done: (False, "completed"),
        other: (False, f"{other} is held by w2"),
        "'c01'": (False, "a chunk id is 'c' and a number without leading zeros"),
    }
    assert [[claim.token for claim in event.claims] for event in run.saw(ev.LeaseRenewed)] == [[live]]
    assert len(run.saw(ev.ClaimRefused)) == len(run.saw(ev.MessageRefused)) == 1


def test_a_silent_worker_may_be_found_dead_later() -> None:
    run = Run("w1")
    run.claim("w1")
    run.wait(20)
    run.gone("w1")
    assert run.books.losses == 1 and not run.all(ev.PartFailed)


def test_the_one_that_lapsed_is_told_when_it_speaks_again() -> None:
    """RG37. Not before: it is silent, and its refusal is to be on record."""
    run = Run("w1")
    token = run.claim("w1").token
    run.wait(20)
    assert not run.told("w1")
    assert not run.beat("w1", token).claims[0].live
    assert len(run.saw(ev.ClaimRefused)) == 1


# --- rule 8: alive is not moving ------------------------------------------------------------------------


def test_a_worker_that_beats_but_does_not_move_loses_its_claim() -> None:
    """RG44. 1. w1 beats every ten seconds at frame 0. 2. After the stall timeout its claim ends as stalled, a
    try counts, the rest reopens, and it is told."""
    run = Run("w1", "w2", stall_timeout_seconds=30)
    token = run.claim("w1").token
    run.wait(10, "w1")
    run.wait(19.9, "w1")
    assert run.tokens("w1") == [token]
    run.wait(0.1, "w1")
    (ended,) = run.saw(ev.ClaimEnded)
    assert (ended.how, ended.reason) == ("stalled", "no progress for 30.0 s")
    assert [event.kind for event in run.saw(ev.PartFailed)] == ["stalled"]
    assert run.told("w1") and run.books.lapses == 1


def test_a_rendered_part_is_not_to_blame_for_being_late_the_first_time() -> None:
    """1. w1 has rendered part 0 and its report is held up for longer than the stall timeout: it loses its
    claim, and no try counts. 2. w1 gets it again and is as late again: that counts."""
    run = Run("w1", stall_timeout_seconds=15)
    for failures in (0, 1):
        token = run.claim("w1").token
        run.beat("w1", ev.ClaimProgress(token, position=10, rendered=10))
        run.wait(15, "w1")
        assert [event.how for event in run.saw(ev.ClaimEnded)] == ["stalled"]
        assert len(run.all(ev.PartFailed)) == failures
    run.wait(15)
    token = run.claim("w1").token
    run.credit("w1", token, 0)
    assert not run.books.lapsed_at


@pytest.mark.parametrize(
    "progress",
    [{"rendered": 1}, {"decoded": 1}, {"delivered_bytes": 1}],
    ids=["rendered", "decoded", "delivered"],
)
def test_any_counter_that_goes_up_is_progress(progress: dict[str, int]) -> None:
    run = Run("w1", stall_timeout_seconds=30)
    token = run.claim("w1").token
    run.now = 19
    run.beat("w1", ev.ClaimProgress(token, **progress))
    run.now = 38
    run.beat("w1", ev.ClaimProgress(token, **progress))  # no further
    run.wait(10.9)
    assert run.tokens("w1")
    run.wait(0.2)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["stalled"]


def test_a_delivery_is_progress() -> None:
    run = Run("w1", stall_timeout_seconds=30)
    token = run.claim("w1").token
    run.now = 19
    run.credit("w1", token, 0)
    run.wait(19, "w1")
    run.wait(10.9, "w1")
    assert run.tokens("w1")
    run.wait(0.2)
    assert not run.tokens("w1")


def test_the_stall_clock_allows_for_the_overhead_of_a_claim() -> None:
    """1. w1 says that it needs 15 s from grant to first frame. 2. It stalls only after 15 + 30 s."""
    run = Run(stall_timeout_seconds=30)
    run.join("w1", overhead_seconds=15.0)
    run.claim("w1")
    run.wait(19, "w1")
    run.wait(19, "w1")
    run.wait(6.9, "w1")
    assert run.tokens("w1")
    run.wait(0.2)
    assert not run.tokens("w1")


@pytest.mark.parametrize("by", ["position", "delivery"])
def test_once_begun_the_overhead_is_over(by: str) -> None:
    """1. w1, with an overhead of 15 s, gets to work at 10. 2. It stalls 30 s after that, not 45."""
    run = Run(stall_timeout_seconds=30)
    run.join("w1", overhead_seconds=15.0)
    token = run.claim("w1").token
    run.now = 10
    if by == "position":
        run.beat("w1", ev.ClaimProgress(token, position=5, rendered=5))
    else:
        run.credit("w1", token, 0)
    run.wait(15, "w1")
    run.wait(14.9, "w1")
    assert run.tokens("w1")
    run.wait(0.2, "w1")
    assert not run.tokens("w1")


def test_the_hard_limit_stands_still_in_a_pause() -> None:
    run = Run("w1", part_timeout_seconds=10)
    run.claim("w1")
    run.wait(5, "w1")
    run.command(cmd.Pause())
    for _ in range(3):
        run.wait(10, "w1")
    run.command(cmd.Resume())
    run.wait(4.9, "w1")
    assert run.tokens("w1")
    run.wait(0.2, "w1")
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["timed out"]


def test_the_stall_clock_stands_still_in_a_pause() -> None:
    """1. w1 claims at 0 and the job pauses at 10, until 100: 90 s that don't count."""
    run = Run("w1", stall_timeout_seconds=30)
    run.claim("w1")
    run.wait(10, "w1")
    run.command(cmd.Pause())
    for _ in range(9):
        run.wait(10, "w1")
    run.command(cmd.Resume())
    run.wait(19.9, "w1")
    assert run.tokens("w1")
    run.wait(0.2, "w1")
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["stalled"]


def test_a_pause_is_no_credit_against_a_later_stall() -> None:
    """1. The job pauses at 0. 2. w1 finishes its part in progress at 50. 3. It goes on at 100, and w1 doesn't
    move: it stalls 30 s after that, not 30 s after 150."""
    run = Run("w1", stall_timeout_seconds=30)
    token = run.claim("w1").token
    run.command(cmd.Pause())
    for step in range(10):
        run.wait(10, "w1")
        if step == 4:
            run.credit("w1", token, 0)
    run.command(cmd.Resume())
    run.wait(15, "w1")
    run.wait(14.9, "w1")
    assert run.tokens("w1")
    run.wait(0.2, "w1")
    assert not run.tokens("w1")


def test_a_hard_limit_ends_a_part_that_moves_too_slowly() -> None:
    """1. The limit is 40 s a part. 2. w1 decodes all the time but stays in part 0. 3. At 40 s it is over."""
    run = Run("w1", part_timeout_seconds=40)
    token = run.claim("w1").token
    for seconds in (13, 26, 39):
        run.now = seconds
        run.beat("w1", ev.ClaimProgress(token, position=5, decoded=seconds))
        run.wait(0)
        assert run.tokens("w1")
    run.wait(1)
    (ended,) = run.saw(ev.ClaimEnded)
    assert (ended.how, ended.reason) == ("timed out", "the part took longer than 40.0 s")
    assert [event.kind for event in run.saw(ev.PartFailed)] == ["timed out"]


@pytest.mark.parametrize("by", ["position", "delivery"])
def test_the_hard_limit_starts_anew_with_each_part(by: str) -> None:
    """Also for a worker of the first version, whose heartbeats name no position."""
    run = Run("w1", part_timeout_seconds=40)
    token = run.claim("w1").token
    run.now = 15
    run.beat("w1", token)
    run.now = 30
    if by == "position":
        run.beat("w1", ev.ClaimProgress(token, position=10, rendered=10))
    else:
        run.credit("w1", token, 0)
    run.now = 45
    run.beat("w1", token)
    run.now = 60
    run.beat("w1", token)
    run.wait(9.9)
    assert run.tokens("w1")
    run.wait(0.1)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["timed out"]


def test_the_hard_limit_may_be_a_share_of_the_median_part() -> None:
    """1. Parts took 1, 2, 3, 4 s: too few for a median. 2. A fifth took 9 s: the median is 3, the limit at
    300 % is 9 s. 3. A claim that is slower than that ends."""
    run = Run("w1", part_timeout_share=3.0, policy="fixed,50")
    token = run.claim("w1").token
    for part, seconds in enumerate((1.0, 2.0, 3.0, 4.0)):
        run.credit("w1", token, part, render_seconds=seconds)
    run.wait(19)
    assert run.tokens("w1")
    run.credit("w1", token, 4, render_seconds=9.0)
    run.claim("w1")
    run.wait(8.9)
    assert run.tokens("w1")
    run.wait(0.1)
    assert [event.reason for event in run.saw(ev.ClaimEnded)] == ["the part took longer than 9.0 s"]


def test_the_median_is_of_parts_whose_time_is_known() -> None:
    """Adopted parts have none, nor have parts from a spool: without them there are four, too few."""
    run = Run("w1", part_timeout_share=0.1, policy="fixed,60")
    run.adopt(7, 8, 9)
    token = run.claim("w1").token
    for part in range(4):
        run.credit("w1", token, part, render_seconds=1.0)
    run.credit("w1", token, 4)
    run.wait(10)
    assert run.tokens("w1")
    run.credit("w1", token, 5, render_seconds=1.0)
    run.claim("w1")
    run.wait(0.2)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["timed out"]


def test_without_a_limit_a_part_may_take_as_long_as_it_moves() -> None:
    run = Run("w1", policy="fixed,60")
    token = run.claim("w1").token
    for part in range(5):
        run.credit("w1", token, part, render_seconds=0.01)
    for step in range(1, 50):
        run.now += 15
        run.beat("w1", ev.ClaimProgress(token, position=50, decoded=step))
        run.wait(0)
    assert run.tokens("w1")


def test_the_stricter_of_two_limits_holds() -> None:
    run = Run("w1", part_timeout_share=100.0, part_timeout_seconds=5, policy="fixed,50")
    token = run.claim("w1").token
    for part in range(5):
        run.credit("w1", token, part, render_seconds=1.0)
    run.claim("w1")
    run.wait(5)
    assert [event.how for event in run.saw(ev.ClaimEnded)] == ["timed out"]


def test_speeds_are_learnt_from_heartbeats() -> None:
    run = Run("w1", parts=2)
    token = run.claim("w1").token
    run.wait(4)
    run.beat("w1", ev.ClaimProgress(token, 6, rendered=6, decoded=6, render_seconds=3.0))
    assert run.books.speeds.of("w1").rate == pytest.approx(2.0)
    assert run.books.speeds.of("w1").overhead_seconds == pytest.approx(1.0)
