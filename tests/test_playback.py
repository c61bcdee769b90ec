"""Playing a log: exact halts, ways forward and back, and a simulation with its past."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farm import commands as cmd
from farm import events as ev
from farm.errors import UsageError
from farm.moments import NEWS, moment_of
from farm.playback import TAKE_MAX, Log, Playback
from farm.simulation.runs import encode_log, simulate
from farm.simulation.soak import troubled_world
from farm.simulation.source import SimulatedSource
from farm.simulation.world import World
from tests.console.story import Fault, play
from tests.simulation.test_source import HandClock
from tests.simulation.worlds import small_world, worker

RECORDS = play(faults=[Fault("w2", 40, 30), Fault("w1", 90)])


def playing(rate: float = 1.0, **options: object) -> tuple[Playback, HandClock]:
    clock = HandClock()
    source = Playback(Log(RECORDS), clock, rate=rate, **options)  # type: ignore[arg-type]
    source.take()
    return source, clock


def kinds_of(records: list[ev.Record], *kinds: str) -> list[int]:
    """In the slowest, plainest way."""
    moments = [moment_of(record.event) for record in records]
    return [index for index, moment in enumerate(moments) if moment is not None and moment.kind in kinds]


# --- a recording -----------------------------------------------------------------------------------------


def test_records_come_at_their_times_and_the_clock_stops_at_the_end() -> None:
    source, clock = playing(rate=2.0)
    clock.time += 10.0
    assert source.now() == pytest.approx(20.0)
    taken = source.take()
    assert source.position == 1 + len(taken) or taken[0].seq > 0
    assert source.position == sum(record.at <= 20.0 for record in RECORDS)
    clock.time += 1e6
    source.take()
    assert source.ended and source.now() == RECORDS[-1].at
    assert source.send(cmd.Pause()) == "this is a recording: what happened can't be changed"


def test_time_before_anybody_looks_doesn_t_pass() -> None:
    clock = HandClock()
    source = Playback(Log(RECORDS), clock)
    clock.time += 30.0
    source.take()
    assert source.now() == pytest.approx(RECORDS[0].at)


@given(
    rate=st.floats(0.01, 1e5),
    tick=st.floats(0.01, 5.0),
    kinds=st.sets(st.sampled_from(sorted(NEWS)), min_size=1),
)
@settings(max_examples=40)
def test_it_halts_exactly_at_each_moment_whatever_the_speed(
    rate: float, tick: float, kinds: set[str]
) -> None:
    source, clock = playing(rate=max(rate, 1.0), pause_on=frozenset(kinds))
    wanted = kinds_of(RECORDS, *kinds)
    halts = []
    while not source.ended and len(halts) <= len(wanted):
        clock.time += max(tick, 0.5)
        source.take()
        if source.halted:
            assert source.stopped_by is RECORDS[source.position - 1]
            assert source.now() == source.stopped_by.at
            clock.time += 5.0
            assert source.take() == (), "it stands"
            halts.append(source.position - 1)
            source.halt(False)
            assert source.stopped_by is None
    assert halts == wanted


def test_steps_go_to_and_fro_by_one_event() -> None:
    source, _ = playing()
    source.step()
    assert [record.seq for record in source.take()] == [source.position - 1]
    seen = source.position
    assert source.step_back() and source.position == seen - 1
    assert source.halted and source.take() == ()
    source.step()
    assert [record.seq for record in source.take()] == [seen - 1]
    assert source.to_start() and source.position == 1
    assert not source.step_back(), "the first event stays"


def test_seeking_keeps_it_running_or_halted() -> None:
    source, clock = playing()
    assert source.seek(50.0) and not source.halted
    source.take()
    assert source.now() == 50.0
    assert source.position == sum(record.at <= 50.0 for record in RECORDS)
    source.halt(True)
    assert source.seek(20.0) and source.halted
    assert (source.now(), source.position) == (20.0, sum(record.at <= 20.0 for record in RECORDS))
    assert source.seek(-5.0) and source.now() == RECORDS[0].at
    source.seek(1e9)
    source.take()
    assert source.now() == RECORDS[-1].at and source.ended
    clock.time += 1.0
    assert source.seek(20.0) and not source.ended


def test_a_way_forward_doesn_t_halt_on_the_way() -> None:
    source, _ = playing(pause_on=NEWS)
    source.to_end()
    while not source.settled:
        source.take()
    assert source.position == len(RECORDS) and source.stopped_by is None


@given(position=st.integers(0, len(RECORDS)), kinds=st.sets(st.sampled_from(sorted(NEWS)), min_size=1))
@settings(max_examples=60)
def test_the_log_finds_the_moments_before_and_after(position: int, kinds: set[str]) -> None:
    log, places = Log(RECORDS), kinds_of(RECORDS, *kinds)
    assert log.next_moment(position, kinds) == min((p for p in places if p >= position), default=None)  # type: ignore[arg-type]
    assert log.last_moment(position, kinds) == max((p for p in places if p < position), default=None)  # type: ignore[arg-type]


def test_jumps_go_through_the_moments_and_back() -> None:
    source, _ = playing()
    places = kinds_of(RECORDS, "lapse", "refusal")
    assert len(places) >= 2
    found = []
    while source.next_moment(frozenset(("lapse", "refusal"))):
        source.take()
        found.append(source.position - 1)
        assert source.halted and source.stopped_by is RECORDS[found[-1]]
    assert found == places
    assert source.position == places[-1] + 1, "where there is no next one nothing changes"
    back = []
    while source.last_moment(frozenset(("lapse", "refusal"))):
        back.append(source.position - 1)
    assert back == places[-2::-1]


def test_a_long_log_is_handed_out_in_pieces() -> None:
    records = [ev.Record(n, n * 0.001, ev.Notice(level="info", text="")) for n in range(3 * TAKE_MAX)]
    clock = HandClock()
    source = Playback(Log(records), clock, rate=1e6)
    source.take()
    clock.time += 10.0
    sizes = []
    while not source.ended:
        clock.time += 0.1
        sizes.append(len(source.take()))
    assert max(sizes) == TAKE_MAX and sum(sizes) == len(records) - 1
    source.to_start()
    source.to_end()
    assert len(source.take()) == TAKE_MAX and not source.settled


def test_times_that_go_down_don_t_confuse_the_log() -> None:
    notices = [
        ev.Record(n, at, ev.Notice(level="info", text="")) for n, at in enumerate((1.0, 3.0, 2.0, 4.0))
    ]
    log = Log(notices)
    assert log.times == [1.0, 3.0, 3.0, 4.0]
    assert log.at(2.5) == 1


# --- a simulation ----------------------------------------------------------------------------------------


def world() -> World:
    """A worker stands still from 2 s to 8 s, and its lease of 3 s runs out."""
    return small_world(
        worker("w1", silences=((2.0, 8.0),)),
        worker("w2", 5.0),
        frames=200,
        heartbeat_seconds=0.5,
        lease_seconds=3.0,
    )


def simulating(**options: object) -> tuple[Playback, SimulatedSource, HandClock]:
    clock = HandClock()
    made: list[SimulatedSource] = []

    def begin() -> SimulatedSource:
        made.append(SimulatedSource(world(), clock))
        return made[-1]

    source = Playback(Log(), clock, present=begin(), again=begin, **options)  # type: ignore[arg-type]
    return source, made[0], clock


def journalled(records: list[ev.Record]) -> bytes:
    return encode_log([record for record in records if record.seq >= 0])


def test_looking_back_halts_the_simulation_and_it_goes_on_from_where_it_was() -> None:
    source, present, clock = simulating()
    clock.time += 6.0
    shown = list(source.take())
    assert (source.world, source.in_past, source.now()) == ("simulated", False, pytest.approx(6.0))
    assert source.step_back() and source.in_past and present.halted
    clock.time += 3.0
    assert present.now() == pytest.approx(6.0), "it waits"
    refusal = source.send(cmd.Pause())
    assert refusal is not None and "past" in refusal
    assert source.seek(1.0)
    assert source.now() == 1.0
    again = shown[: source.position]
    source.halt(False)
    while source.in_past:
        clock.time += 0.5
        again += source.take()
    assert not source.halted and not present.halted
    assert journalled(again) == journalled(shown)
    assert source.send(cmd.Pause()) is None
    clock.time += 1.0
    assert source.now() == pytest.approx(7.0, abs=0.6)


def test_it_comes_to_the_same_end_however_often_one_looked_back() -> None:
    source, _, clock = simulating()
    seen = 0
    while not source.ended and seen < 2000:
        clock.time += 0.7
        source.take()
        seen += 1
        if seen % 5 == 0:
            source.seek(source.now() - 2.0)
            source.halt(False)
    assert source.ended
    alone = simulate(world(), keep_log=True)
    assert journalled(source.log.records) == encode_log(alone.records)


def test_it_halts_at_moments_of_the_present_and_can_be_acted_on_there() -> None:
    source, _, clock = simulating(pause_on=frozenset(("lapse",)))
    for _ in range(100):
        clock.time += 0.1
        source.take()
        if source.halted:
            break
    assert source.stopped_by is not None and isinstance(source.stopped_by.event, ev.ClaimEnded)
    assert source.now() == source.stopped_by.at
    assert not source.in_past
    assert source.send(cmd.KillWorker(worker="w2")) is None


def test_the_next_moment_is_found_by_simulating_on() -> None:
    source, _, _ = simulating()
    source.take()
    assert source.next_moment(frozenset(("lapse",)))
    source.take()
    assert source.halted and source.stopped_by is not None
    assert moment_of(source.stopped_by.event).kind == "lapse"  # type: ignore[union-attr]
    assert not source.next_moment(frozenset(("loss",))), "there is none"
    source.take()
    assert source.ended


def test_seeking_forward_in_the_present_hurries_the_simulation() -> None:
    source, _, _ = simulating()
    source.take()
    source.halt(True)
    source.seek(5.0)
    source.take()
    assert source.halted and source.now() == pytest.approx(5.0)


def test_it_begins_anew() -> None:
    source, _, clock = simulating()
    clock.time += 3.0
    before = list(source.take())
    source.send(cmd.KillWorker(worker="w2"))
    assert source.restart() and source.starts == 2
    assert (source.position, source.total) == (0, 0)
    clock.time += 3.0
    assert journalled(list(source.take())) == journalled(before), "without what was done to it"


def test_a_log_that_grew_too_long_is_let_go() -> None:
    source, _, clock = simulating(kept_max=20)
    clock.time += 5.0
    source.take()
    assert len(source.log) == 0 and source.position > 20
    assert not source.step_back() and not source.to_start()
    assert not source.in_past
    clock.time += 1e4
    while not source.ended:
        source.take()
    assert source.total == source.position


@pytest.mark.parametrize("seed", range(4))
def test_playing_a_troubled_world_changes_nothing_in_it(seed: int) -> None:
    clock = HandClock()
    world = troubled_world(seed)
    source = Playback(Log(), clock, rate=1e4, present=SimulatedSource(world, clock))
    for turn in range(3000):
        clock.time += 1.0
        source.take()
        if turn % 3 == 0:
            source.last_moment()
            source.halt(False)
        if source.ended:
            break
    assert source.ended
    assert journalled(source.log.records) == encode_log(simulate(world, keep_log=True).records)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        Playback(Log(RECORDS), HandClock(), rate=0.0)
