"""Rule 13 of DESIGN.md §4, whole: two copies of a part differ, a third worker's decides. Scenarios are
numbered steps; after each stimulus the driver recounts the books, and folds the events again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import events as ev
from farm import messages as msg
from tests.relay.driver import Run

FRONTIER = "duplicate-oldest,from=frontier"


def disputed(*others: str, parts: int = 4, **options: object) -> Run:
    """1. w1 has all parts, credits 0 and 1. 2. w2 has a copy of the whole, and its part 0 is another one."""
    given = {"policy": "fixed,999", "tail": "duplicate-oldest,from=start"} | options
    run = Run("w1", "w2", *others, parts=parts, **given)
    one, two = run.claim("w1").token, run.claim("w2").token
    run.credit("w1", one, 0, 1, sha256="aa")
    answer = run.deliver("w2", two, 0, sha256="bb")
    assert isinstance(answer, msg.Delivered) and answer.frames == 0 and not answer.live
    return run


def test_a_part_in_dispute_is_taken_back_and_open_for_a_third_worker_only() -> None:
    run = disputed("w3")
    assert [event.part for event in run.saw(ev.PartVoided)] == [0]
    assert run.books.credited_frames == 10
    assert {event.how for event in run.saw(ev.ClaimEnded)} == {"voided"}, "no two chunks overlap"
    assert run.open_ranges() == [(0, 10), (20, 40)]
    assert run.claim("w1").start == 20, "the makers of the two copies get other work"
    assert run.park("w2")
    third = run.claim("w3")
    assert (third.start, third.stop) == (0, 10)


def test_the_third_copy_like_the_first_makes_the_second_the_odd_one() -> None:
    """3. w3's copy is w1's. 4. w2 is given nothing more, what it had been credited with is taken back."""
    run = disputed("w3", parts=6)
    two = run.claim("w2")
    assert two.start == 20
    run.credit("w2", two.token, 2, 3, sha256="b2")
    token = run.claim("w3").token
    assert run.deliver("w3", token, 0, sha256="aa").frames == 10  # type: ignore[union-attr]
    assert run.saw(ev.PartSettled) == [ev.PartSettled(part=0, sha256="aa", by="w3", odd="w2")]
    assert sorted(event.part for event in run.saw(ev.PartVoided)) == [2, 3]
    assert run.books.credits[0].worker == "w3" and run.books.credits[1].worker == "w1"  # type: ignore[union-attr]
    assert run.tokens("w2") == []
    answer = run.ask("w2")
    assert isinstance(answer, msg.Finished) and "odd one" in answer.why
    run.finish("w1")
    assert run.books.finished and run.books.credited_frames == 60


def test_the_third_copy_like_the_second_makes_the_first_the_odd_one() -> None:
    """3. w3's copy is w2's. 4. All that w1 was credited with is rendered again, by others."""
    run = disputed("w3")
    token = run.claim("w3").token
    assert run.deliver("w3", token, 0, sha256="bb").frames == 10  # type: ignore[union-attr]
    assert [event.odd for event in run.saw(ev.PartSettled)] == ["w1"]
    assert [event.part for event in run.saw(ev.PartVoided)] == [1]
    assert isinstance(run.ask("w1"), msg.Finished)
    run.finish("w2")
    run.finish("w3")
    assert run.books.finished
    assert "w1" not in {credit.worker for credit in run.books.credits.values()}  # type: ignore[union-attr]


def test_a_maker_may_offer_another_part_of_the_third_worker_s_chunk() -> None:
    """1. w1 and w2 differ on part 0. 2. w3 has it and all behind it. 3. w2 has part 1 in its spool: it may
    deliver that, and part 0 is still for w3 alone."""
    run = Run("w1", "w2", "w3", parts=4, policy="fixed,999", tail="duplicate-oldest,from=start")
    one, two = run.claim("w1").token, run.claim("w2").token
    run.credit("w1", one, 0, sha256="aa")
    run.deliver("w2", two, 0, sha256="bb")
    third = run.claim("w3")
    assert (third.start, third.stop) == (0, 40)
    granted = run.say("w2", msg.Offer(part=1))
    assert isinstance(granted, msg.Granted) and (granted.start, granted.stop) == (10, 20)
    assert isinstance(run.deliver("w2", granted.token, 0, sha256="bb"), msg.Refused)
    run.credit("w3", third.token, 0, sha256="aa")
    assert [event.odd for event in run.saw(ev.PartSettled)] == ["w2"]
    run.finish("w3")
    assert run.books.finished


def test_what_is_in_the_spool_of_a_maker_of_two_copies_counts_for_nothing_whoever_offers_it() -> None:
    """3. w2 is gone and w3 has its spool: its part 0 can't decide the dispute. 4. w3's own copy makes w2 the
    odd one. 5. What else w2 had rendered is not taken from w3, either."""
    run = disputed("w3")
    answer = run.say("w3", msg.Offer(part=0, maker="w2"))
    assert isinstance(answer, msg.Declined) and answer.keep
    assert run.deliver("w3", run.claim("w3").token, 0, sha256="aa").frames == 10  # type: ignore[union-attr]
    assert [event.odd for event in run.saw(ev.PartSettled)] == ["w2"]
    answer = run.say("w3", msg.Offer(part=2, maker="w2"))
    assert isinstance(answer, msg.Declined) and "w2 made it" in answer.why and not answer.keep
    assert isinstance(run.say("w3", msg.Offer(part=2, maker="w1")), msg.Granted)


def test_three_different_copies_end_the_run() -> None:
    run = disputed("w3")
    token = run.claim("w3").token
    assert run.deliver("w3", token, 0, sha256="cc").frames == 0  # type: ignore[union-attr]
    (event,) = run.saw(ev.PartUnsettled)
    assert event == ev.PartUnsettled(part=0, reason="the copies of w1, w2 and w3 all differ")
    assert 0 not in run.books.credits


def test_without_a_third_worker_the_run_ends_after_a_lease() -> None:
    run = disputed(lease_seconds=20.0)
    run.wait(19, "w1", "w2")
    assert not run.all(ev.PartUnsettled)
    run.wait(2, "w1", "w2")
    assert [event.reason for event in run.saw(ev.PartUnsettled)] == [
        "two copies differ, and there is no third worker"
    ]


def test_a_third_worker_that_comes_in_time_decides() -> None:
    """3. w3 dies with the part. 4. Another process takes its place within a lease, and decides."""
    run = disputed("w3", lease_seconds=20.0)
    run.wait(15, "w1", "w2", "w3")
    run.claim("w3")
    run.gone("w3")
    run.wait(15, "w1", "w2")
    assert not run.all(ev.PartUnsettled)
    run.join("w3")
    run.credit("w3", run.claim("w3").token, 0, sha256="aa")
    assert run.saw(ev.PartSettled)


def test_a_parked_odd_worker_is_told_to_leave() -> None:
    run = disputed("w3")
    run.options(tail="none")
    run.claim("w1")
    run.park("w2")
    run.credit("w3", run.claim("w3").token, 0, sha256="aa")
    assert any(isinstance(push, msg.Finished) for push in run.told("w2"))


def test_what_is_suspect_is_not_adopted_after_a_restart() -> None:
    run = disputed("w3")
    run.restart()
    run.adopt(0, 2)
    assert [event.part for event in run.saw(ev.PartAdopted)] == [2]
    assert 0 in run.books.disputes.open, "the dispute outlives the relay"
    for worker in ("w1", "w2", "w3"):
        run.join(worker)
    assert run.claim("w1").start != 0
    run.credit("w3", run.claim("w3").token, 0, sha256="bb")
    assert run.saw(ev.PartSettled)[0].odd == "w1"
    assert isinstance(run.ask("w1"), msg.Finished)


def test_a_third_worker_that_fails_it_tries_again_for_nobody_else_may() -> None:
    run = disputed("w3")
    run.claim("w3")
    run.fail("w3", 0)
    assert run.claim("w3").start == 0


@settings(max_examples=60, deadline=None)
@given(
    wrong=st.sets(st.sampled_from(("w1", "w2", "w3", "w4", "w5")), max_size=1),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=120),
    tail=st.sampled_from((FRONTIER, "duplicate-oldest,from=start", "split", "none")),
)
def test_one_worker_with_wrong_bytes_never_ends_in_a_wrong_film_that_was_found_out(
    wrong: set[str], steps: list[tuple[int, int]], tail: str
) -> None:
    """Whoever of five has wrong bytes, in whatever order they speak: the books stay right (recounted by the
    driver), no healthy worker is distrusted, and once a wrong copy was found out nothing by its maker is
    credited at the end."""
    names = ("w1", "w2", "w3", "w4", "w5")
    run = Run(*names, parts=8, policy="fixed,20", tail=tail)

    def speak(name: str) -> bool:
        """A worker's next step; False if it has nothing to do."""
        tokens = run.tokens(name)
        if not tokens:
            return isinstance(run.ask(name), msg.Granted)
        claim = run.books.claim(tokens[0])
        assert claim is not None
        part = run.books.grid.part_at(run.books.next_frame(claim, skipping="start" not in tail))
        run.deliver(name, tokens[0], part, sha256=f"{'bad' if name in wrong else 'good'}{part}")
        return True

    for number, wait in steps:
        speak(names[number])
        if wait == 9:
            run.wait(1, *names)
    for _ in range(200):
        moved = [speak(name) for name in names if name in run.books.workers]
        if run.books.finished or not any(moved):
            break
    assert run.books.finished and not run.all(ev.PartUnsettled)
    assert run.books.credited_frames == 80
    distrusted = run.books.disputes.distrusted.keys()
    assert distrusted <= wrong
    credits = run.books.credits.values()
    assert not distrusted & {credit.worker for credit in credits if isinstance(credit, ev.PartCredited)}
    if not wrong:
        assert not run.all(ev.PartDiverged)


@pytest.mark.parametrize("odd", ["w1", "w2"])
def test_the_log_of_a_dispute_tells_who_and_why(odd: str) -> None:
    run = disputed("w3")
    run.credit("w3", run.claim("w3").token, 0, sha256="bb" if odd == "w1" else "aa")
    reasons = [event.reason for event in run.all(ev.PartVoided)]
    assert reasons[0] == "two copies of it differ"
    if odd == "w1":
        assert reasons[1:] == ["w1 made it, whose copy of part 0 was wrong"]
