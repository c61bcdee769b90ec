"""Small contests for tests: policies in virtual time and told runs, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import Sequence

from console.contest import Contest, Heat
from console.tapes import RecordedTape, heats_of
from console.trials import Setting, Trial, parse_schedule, run_trials
from farm.events import Record
from farm.simulation.source import VirtualClock

POLICIES = ("fair+split", "static+none", "guided,12+duplicate-oldest", "fixed,48+none")


class HandClock:
    """Real seconds, as the test says."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


def heats(
    policies: Sequence[str] = POLICIES[:2],
    fleets: Sequence[str] = ("10,10,3",),
    *,
    frames: int = 960,
    conditions: Sequence[str] = ("base",),
) -> list[Heat]:
    setting = Setting(frames=frames, part=48)
    trials = [
        Trial(parse_schedule(policy), fleet, condition, 0, setting)
        for policy in policies
        for fleet in fleets
        for condition in conditions
    ]
    return heats_of(trials, run_trials(trials, processes=1))


def contest_of(made: Sequence[Heat], *, rate: float = 1.0) -> tuple[Contest, HandClock]:
    clock = HandClock()
    return Contest(made, VirtualClock(clock, rate)), clock


def recorded(name: str, log: Sequence[Record]) -> RecordedTape:
    return RecordedTape(name, lambda: iter(log))


def play_to(contest: Contest, clock: HandClock, at: float) -> None:
    """Let it run until its time is ``at``, in ticks of a second; or until all is over."""
    while contest.at < at and not contest.over:
        clock.time += min((at - contest.at) / contest.rate, 1.0)
        contest.take()
