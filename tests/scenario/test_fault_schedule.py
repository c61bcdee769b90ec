"""When a fault comes due: from the run's events alone."""

from __future__ import annotations

from farm import events as ev
from farm.faults import FaultSchedule, Troubles
from farm.scenario.faults import parse_fault


class Log:
    """A run's events, one at a time, and the steps that follow."""

    def __init__(self, *lines: str, workers: tuple[str, ...] = ("w1", "w2"), frames: int = 100) -> None:
        self.schedule = FaultSchedule([parse_fault(line) for line in lines], workers, frames)

    def claims(self, at: float, worker: str) -> list[tuple[float, str, str | None, bool]]:
        event = ev.ClaimGranted(token="c0#1@e1", worker=worker, start=0, stop=10, lease_seconds=9)
        return self._see(at, event)

    def delivers(
        self, at: float, worker: str, token: str = "c0#1@e1"
    ) -> list[tuple[float, str, str | None, bool]]:
        event = ev.PartCredited(
            part=0, frames=10, token=token, worker=worker, file="", size_bytes=1, sha256=""
        )
        return self._see(at, event)

    def _see(self, at: float, event: ev.AnyEvent) -> list[tuple[float, str, str | None, bool]]:
        return [(s.at, s.fault.kind, s.worker, s.begins) for s in self.schedule.see(at, event)]


def test_times_count_from_the_first_grant() -> None:
    log = Log("stall w1 at 10 for 5", "kill all at 2")
    assert log.claims(3.0, "w2") == [
        (13.0, "stall", "w1", True),
        (18.0, "stall", "w1", False),
        (5.0, "kill", "w1", True),
        (5.0, "kill", "w2", True),
    ]
    assert log.claims(4.0, "w1") == []


def test_parts_of_whichever_chunks_or_all_of_one() -> None:
    log = Log("kill w1 when it has delivered 2 parts", "cut w2 when w1 has delivered 2 parts of one chunk")
    assert log.delivers(1.0, "w2") == []
    assert log.delivers(2.0, "w1", "c1#1@e1") == []
    assert log.delivers(3.0, "w1", "c2#1@e1") == [(3.0, "kill", "w1", True)]
    assert log.delivers(4.0, "w1", "c2#1@e1") == [(4.0, "cut", "w2", True)]
    assert log.delivers(5.0, "w1", "c2#1@e1") == []


def test_it_is_each_worker_that_the_fault_is_about() -> None:
    log = Log("corrupt all when it has delivered 1 part")
    assert log.delivers(1.0, "w2") == [(1.0, "corrupt", "w2", True)]
    assert log.delivers(1.5, "w2") == []
    assert log.delivers(2.0, "w1") == [(2.0, "corrupt", "w1", True)]


def test_every_time_counts_anew_and_not_while_it_lasts() -> None:
    log = Log("stall w1 on its second claim for 10 every time")
    assert log.claims(0.0, "w1") == []
    assert len(log.claims(1.0, "w1")) == 2
    assert log.claims(2.0, "w1") == log.claims(3.0, "w1") == []
    assert log.claims(12.0, "w1") == []
    assert log.claims(13.0, "w1") == [(13.0, "stall", "w1", True), (23.0, "stall", "w1", False)]


def test_a_share_of_the_frames() -> None:
    log = Log("suspend when 30 % is credited for 4")
    assert log.delivers(1.0, "w1") == log.delivers(2.0, "w2") == []
    assert log.delivers(3.0, "w1") == [(3.0, "suspend", None, True), (7.0, "suspend", None, False)]
    assert log.delivers(4.0, "w1") == []


def test_what_was_credited_before_counts() -> None:
    schedule = FaultSchedule([parse_fault("kill w1 when 60 % is credited")], ("w1",), 100, credited=50)
    event = ev.PartCredited(part=0, frames=10, token="c0#1@e1", worker="w1", file="", size_bytes=1, sha256="")
    assert len(schedule.see(0.0, event)) == 1


def test_an_injected_one_is_due_at_once() -> None:
    log = Log()
    (begin, end) = log.schedule.inject(parse_fault("stall w2 at 99 for 4"), 7.0)
    assert (begin.at, end.at, begin.worker) == (7.0, 11.0, "w2")


def test_those_that_never_came_are_known() -> None:
    log = Log("kill w1 at 5", "kill w2 when 90 % is credited")
    log.claims(0.0, "w1")
    assert log.schedule.waiting == (parse_fault("kill w2 when 90 % is credited"),)


def test_a_trouble_is_for_one_report_for_a_time_or_for_good() -> None:
    troubles = Troubles()
    troubles.begin("corrupt", 1.0, None, None)
    troubles.begin("report-late", 1.0, 5.0, 2.5)
    troubles.begin("stand-still", 1.0, None, None)
    assert [troubles.take("corrupt", at) for at in (50.0, 51.0)] == [True, False]
    assert [troubles.amount("report-late", at) for at in (5.9, 6.0)] == [2.5, None]
    assert troubles.has("stand-still", 1e9)
    troubles.end("stand-still")
    assert not troubles.has("stand-still", 1e9) and not troubles
