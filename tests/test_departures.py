"""Why workers go and come back, when a run is halted, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.stories import story_lines
from farm import events as ev
from farm.departures import RESTARTS_MAX, Departures
from farm.errors import UsageError
from farm.halt import Halt, parse_halt
from farm.stories import last_lines, set_aside_stories, told_ends


class System:
    """Counts the processes that the system killed for want of memory."""

    def __init__(self) -> None:
        self.kills = 5

    def __call__(self) -> int:
        return self.kills


def test_a_worker_that_never_delivers_is_started_again_three_times_and_no_more() -> None:
    departures = Departures(System())
    assert [departures.may_restart("w1") for _ in range(RESTARTS_MAX + 1)] == [True] * RESTARTS_MAX + [False]


def test_a_worker_that_delivers_in_between_is_started_again_and_again() -> None:
    departures = Departures(System())
    for _ in range(10):
        assert departures.may_restart("w1")
        departures.delivered("w1")


def test_who_was_sent_away_or_killed_by_the_operator_stays_away() -> None:
    departures = Departures(System())
    departures.struck("w1", stays_away=True)
    assert not departures.may_restart("w1")


def test_a_sigkill_of_the_system_that_is_short_of_memory_is_named() -> None:
    system = System()
    departures = Departures(system)
    assert departures.explain("w1", "killed by SIGKILL") == ("killed by SIGKILL", "worker lost")
    system.kills += 1
    reason, kind = departures.explain("w2", "killed by SIGKILL")
    assert kind == "out of memory" and reason.startswith("out of memory: the system")
    assert departures.explain("w3", "killed by SIGKILL").kind == "worker lost", "it killed one only"


def test_a_sigkill_of_our_own_is_never_taken_for_the_systems() -> None:
    system = System()
    departures = Departures(system)
    departures.struck("w1")
    system.kills += 1
    assert departures.explain("w1", "killed by SIGKILL").kind == "worker lost"
    departures.struck("w2", beyond_memory="out of memory: it used 2 GB, and may use 1 GB")
    assert departures.explain("w2", "killed by SIGKILL") == (
        "out of memory: it used 2 GB, and may use 1 GB",
        "out of memory",
    )


def test_why_workers_went_is_told_once_each_with_how_often() -> None:
    ends = {"w1": ["killed by SIGSEGV"] * 4, "w2": ["exited with code 1"]}
    assert told_ends(ends) == "w1 killed by SIGSEGV, 4 times; w2 exited with code 1"
    assert told_ends({f"w{n}": ["died"] for n in range(9)}).endswith("; and 3 more")
    assert told_ends({}) == "none could be started"


@pytest.mark.parametrize(
    ("text", "halt"),
    [
        ("never", None),
        ("", None),
        ("soon,fail=1", Halt(fails=1, now=False)),
        ("now,fail=12", Halt(fails=12, now=True)),
    ],
)
def test_halt_speaks_as_gnu_parallel_does(text: str, halt: Halt | None) -> None:
    assert parse_halt(text) == halt


@pytest.mark.parametrize(
    "text", ["soon", "now,fail=0", "later,fail=1", "now,fail=-1", "now,fail=1x", "x" * 99]
)
def test_a_halt_that_means_nothing_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"--halt .*: give soon,fail=N or now,fail=N"):
        parse_halt(text)


# --- stories ---------------------------------------------------------------------------------------------


def records(*events: ev.AnyEvent) -> list[ev.Record]:
    return [ev.Record(seq, float(seq), event) for seq, event in enumerate(events)]


def failed(part: int, worker: str, token: str, tries: int) -> ev.PartFailed:
    return ev.PartFailed(
        part=part, token=token, worker=worker, kind="encoder", message="libx264 failed", tries=tries
    )


def test_a_part_that_was_set_aside_is_told_with_its_tries_and_their_logs(tmp_path: Path) -> None:
    (tmp_path / "w1-c0.1.e1.log").write_text("".join(f"line {n}\n" for n in range(40)) + "\nit broke\n\n")
    log = records(
        failed(3, "w1", "c0#1@e1", 1),
        failed(4, "w1", "c9#1@e1", 1),
        failed(3, "w2", "c1#1@e1", 2),
        ev.PartSetAside(part=3, tries=2, reason="failed 2 times, by w1, w2"),
    )
    (story,) = set_aside_stories(log, tmp_path)
    assert [(one.worker, one.at) for one in story.tries] == [("w1", 0.0), ("w2", 2.0)]
    assert story.tries[0].log == ("line 36", "line 37", "line 38", "line 39", "it broke")
    assert story.tries[1].log == ()
    lines = story_lines([story])
    assert lines[0] == "part 3 was set aside: failed 2 times, by w1, w2"
    assert "w1  c0#1@e1  encoder: libx264 failed" in lines[1]
    assert lines[6] == "      | it broke"


def test_a_part_that_was_taken_up_again_has_no_story(tmp_path: Path) -> None:
    aside = ev.PartSetAside(part=3, tries=1, reason="failed 1 times, by w1")
    log = records(failed(3, "w1", "c0#1@e1", 1), aside, ev.PartRetried(part=3))
    assert set_aside_stories(log, tmp_path) == []
    again = records(*(r.event for r in log), failed(3, "w2", "c1#1@e2", 1), aside)
    (story,) = set_aside_stories(again, tmp_path)
    assert [one.worker for one in story.tries] == ["w2"]


def test_of_many_stories_the_first_are_told_and_how_many_there_are(tmp_path: Path) -> None:
    log = records(*(ev.PartSetAside(part=part, tries=1, reason="failed") for part in range(8)))
    lines = story_lines(set_aside_stories(log, tmp_path))
    assert len(lines) == 6 and lines[-1] == "(5 of 8 parts shown)"


def test_a_log_that_is_gone_or_no_text_is_no_error(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none.log") == ()
    (tmp_path / "bytes.log").write_bytes(b"\xff\xfe\n" * 10_000)
    assert len(last_lines(tmp_path / "bytes.log")) == 5
