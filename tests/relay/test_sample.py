"""A sample: the relay gives out its parts alone, and the rest after its next start. The driver recounts the
books after each stimulus, and folds the events again."""

from __future__ import annotations

import pytest

from farm import events as ev
from farm import messages as msg
from tests.relay.driver import Run


def sampled(*parts: int, workers: tuple[str, ...] = ("w1", "w2"), **options: object) -> Run:
    """A run of ten parts of which these are the sample; its workers join after it was chosen."""
    run = Run(**options)  # type: ignore[arg-type]
    run._note(run.relay.choose_sample(parts, run.now))
    for worker in workers:
        run.join(worker)
    return run


def test_only_parts_of_the_sample_are_given_out_and_the_work_ends_with_them() -> None:
    run = sampled(0, 5, 9)
    assert run.books.target_frames == 30 and run.open_ranges() == [(0, 10), (50, 60), (90, 100)]
    one, two = run.claim("w1"), run.claim("w2")
    assert [(one.start, one.stop), (two.start, two.stop)] == [(0, 10), (50, 60)]
    run.credit("w1", one.token, 0)
    run.credit("w2", two.token, 5)
    run.finish("w1")
    assert run.books.finished and run.books.credited_frames == 30
    assert run.all(ev.WorkFinished)[-1].credited_frames == 30
    assert isinstance(run.ask("w2"), msg.Finished)


def test_the_next_start_opens_the_rest_and_keeps_what_is_rendered() -> None:
    run = sampled(0, 5, 9)
    run.finish("w1")
    run.restart()
    assert not run.books.finished and run.books.sample is None and run.books.target_frames == 100
    assert run.open_ranges() == [(10, 50), (60, 90)]
    run.join("w1")
    run.finish("w1")
    assert run.books.finished and run.books.credited_frames == 100
    assert sorted(event.part for event in run.all(ev.PartCredited)) == list(range(10)), "none twice"


def test_a_relay_that_is_killed_in_a_sample_has_all_parts_again() -> None:
    run = sampled(0, 5, 9)
    run.claim("w1")
    run.restart()
    assert run.open_ranges() == [(0, 100)]


def test_a_sample_that_is_rendered_already_is_work_that_is_finished() -> None:
    run = sampled(0, 9)
    run.finish("w1")
    run.restart()
    run._note(run.relay.choose_sample((0, 9), run.now))
    assert run.books.finished and not run.books.work_left and run.books.target_frames == 20


def test_a_part_outside_the_sample_that_is_taken_back_waits_like_the_others() -> None:
    run = sampled(0, 4)
    run.finish("w1")
    run.restart()
    run._note(run.relay.choose_sample((4, 7), run.now))
    run.join("w1")
    run.void(0)
    assert run.books.deferred_frames == 80 and run.open_ranges() == [(70, 80)]
    run.void(4)
    assert run.open_ranges() == [(40, 50), (70, 80)]
    run.finish("w1")
    assert run.books.finished and sorted(run.books.credits) == [4, 7]


def test_readings_that_do_not_match_render_the_sample_again_and_nothing_else() -> None:
    run = sampled(0, 1, 8)
    token = run.claim("w1").token
    run.credit("w1", token, 0, next_frame_crc=1)
    run.deliver("w1", token, 1, first_frame_crc=2)
    assert run.saw(ev.SeamMismatched)
    assert run.books.linear and run.books.target_frames == 30
    run.finish("w1")
    assert run.books.finished and sorted(run.books.credits) == [0, 1, 8]


def test_a_spool_may_offer_parts_of_the_sample_alone_and_keeps_the_others() -> None:
    run = sampled(0, 5)
    declined = run.say("w1", msg.Offer(part=3, maker="w1"))
    assert isinstance(declined, msg.Declined) and declined.keep
    assert isinstance(run.say("w1", msg.Offer(part=5, maker="w1")), msg.Granted)


def test_what_failed_before_the_sample_and_is_not_in_it_is_not_set_aside_by_it() -> None:
    run = Run("w1", max_tries=2)
    run.claim("w1")
    run.fail("w1", 0)
    run.restart()
    run._note(run.relay.choose_sample((5,), run.now))
    run.join("w1")
    run.finish("w1")
    assert run.books.finished and not run.books.set_aside_frames
    run.restart()
    run.join("w1")
    run.finish("w1")
    assert run.books.credited_frames == 100


def test_a_static_schedule_shares_the_sample_not_the_film() -> None:
    run = sampled(4, 5, 6, 7, policy="static")
    assert run.claim("w1").stop - run.claim("w2").start == 0, "two halves of forty frames"


@pytest.mark.parametrize("allowed", [True, False])
def test_copies_that_differ_are_no_dispute_where_the_promise_was_taken_back(allowed: bool) -> None:
    """1. w1 has the first parts, w2 a copy. 2. w2's part 0 has other bytes. Allowed: the first one counts, w2
    is acknowledged with zero frames and goes on; else the part is in dispute."""
    tail = "duplicate-oldest,from=start"
    run = Run("w1", "w2", parts=2, policy="fixed,999", tail=tail, allow_nondeterministic=allowed)
    one, two = run.claim("w1").token, run.claim("w2").token
    run.credit("w1", one, 0, sha256="aa")
    answer = run.deliver("w2", two, 0, sha256="bb")
    assert isinstance(answer, msg.Delivered) and answer.frames == 0
    assert answer.live == allowed and bool(run.saw(ev.PartDiverged)) is not allowed
    assert run.books.credited_frames == (10 if allowed else 0)
    if allowed:
        assert [event.frames for event in run.saw(ev.PartSuperseded)] == [10]
        run.credit("w2", two, 1)
        assert run.books.finished and not run.books.disputes.distrusted
