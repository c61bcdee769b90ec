"""When captions come due, how long each is shown, and what a jump or a skip does to that."""

from __future__ import annotations

from farm import events as ev
from farm.captions import WAIT_SECONDS_MAX, AtEnd, AtMoment, Caption, CaptionWhen, Reel
from farm.faults import AfterParts, AtClaim, AtShare, AtTime


def record(at: float, event: ev.AnyEvent) -> ev.Record:
    return ev.Record(0, at, event)


def granted(at: float, worker: str = "w1") -> ev.Record:
    return record(at, ev.ClaimGranted(token="c0#1@e1", worker=worker, start=0, stop=20, lease_seconds=9.0))


def credited(at: float, worker: str = "w1", frames: int = 10) -> ev.Record:
    return record(
        at,
        ev.PartCredited(
            part=0, frames=frames, token="c0#1@e1", worker=worker, file="f", size_bytes=1, sha256=""
        ),
    )


def lapsed(at: float, worker: str = "w1") -> ev.Record:
    return record(at, ev.ClaimEnded(token="c0#1@e1", worker=worker, how="lapsed"))


OPENED = record(
    0.0,
    ev.RunOpened(
        run_id="r",
        input="",
        output="",
        frames=100,
        cuts=tuple(range(0, 101, 10)),
        settings_hash="",
        fingerprint="",
        build="",
        options=ev.RelayOptions(),
    ),
)


def reel(*captions: tuple[str, CaptionWhen, float]) -> Reel:
    made = Reel([Caption(text=text, when=when, seconds=seconds) for text, when, seconds in captions])
    made.see(OPENED)
    return made


def text_at(made: Reel, now: float, rate: float = 1.0) -> str | None:
    shown = made.shown(now, rate)
    return None if shown is None else shown.caption.text


def test_times_count_from_the_first_grant() -> None:
    made = reel(("hello", AtTime(3.0), 2.0))
    assert text_at(made, 50.0) is None
    made.see(granted(10.0))
    made.see(granted(12.0, "w2"))
    assert [text_at(made, now) for now in (12.9, 13.0, 14.9, 15.0)] == [None, "hello", "hello", None]


def test_each_trigger_comes_due_with_its_event_and_once() -> None:
    made = reel(
        ("lapse", AtMoment("lapse", "w2"), 1.0),
        ("any lapse", AtMoment("lapse"), 1.0),
        ("claim", AtClaim(2, "w1"), 1.0),
        ("parts", AfterParts(2, "w1"), 1.0),
        ("share", AtShare(0.3), 1.0),
        ("work", AtEnd("work"), 1.0),
        ("verified", AtEnd("verified"), 1.0),
    )
    happened = [
        (granted(1.0), []),
        (granted(2.0), ["claim"]),
        (credited(3.0), []),
        (credited(4.0), ["parts"]),
        (lapsed(5.0), ["any lapse"]),
        (credited(6.0, "w2"), ["share"]),
        (lapsed(7.0, "w2"), ["lapse"]),
        (lapsed(8.0, "w2"), []),
        (
            record(9.0, ev.WorkFinished(credited_frames=100, set_aside_frames=0, makespan_seconds=8.0)),
            ["work"],
        ),
        (record(9.5, ev.OutputVerified(packets_sha256="", output_bytes=1, stream_frames=100)), ["verified"]),
    ]
    for told, due in happened:
        made.see(told)
        assert [shown.caption.text for shown in made.take_due(told.at)] == due
    assert made.waiting == ()


def test_captions_wait_for_one_another_and_none_comes_too_late() -> None:
    made = reel(("a", AtTime(0.0), 4.0), ("b", AtTime(1.0), 4.0), ("c", AtTime(2.0), 9.0))
    made.see(granted(10.0))
    assert [text_at(made, at) for at in (10.0, 13.9, 14.0, 17.9)] == ["a", "a", "b", "b"]
    assert WAIT_SECONDS_MAX < 18.0 - 12.0
    assert text_at(made, 18.0) is None, "c would be 6 s late"
    assert text_at(made, 12.5) == "a", "what is shown at a time follows from the time alone"


def test_where_time_is_hurried_there_is_as_much_time_to_read() -> None:
    made = reel(("a", AtTime(0.0), 4.0))
    made.see(granted(0.0))
    assert text_at(made, 39.9, rate=10.0) == "a"
    assert text_at(made, 40.0, rate=10.0) is None
    assert text_at(made, 4.1, rate=0.1) is None, "run time that is slowed is long enough"


def test_a_skipped_one_makes_way_for_the_next() -> None:
    made = reel(("a", AtTime(0.0), 4.0), ("b", AtTime(1.0), 4.0))
    made.see(granted(0.0))
    assert made.skip(2.0)
    assert text_at(made, 2.0) == "b"
    assert text_at(made, 5.9) == "b" and text_at(made, 6.0) is None
    assert not made.skip(7.0)


def test_a_jump_shows_what_came_due_last() -> None:
    made = reel(("a", AtTime(0.0), 4.0), ("b", AtTime(1.0), 4.0), ("c", AtTime(9.0), 4.0))
    made.see(granted(0.0))
    made.jump(10.0)
    assert text_at(made, 10.0) == "c"
    made.jump(2.0)
    assert text_at(made, 2.0) == "b", "going back gives back what was read"
    made.jump(0.5)
    assert text_at(made, 0.5) == "a"
    assert text_at(made, 4.5) == "b", "and from there it goes on as ever"
