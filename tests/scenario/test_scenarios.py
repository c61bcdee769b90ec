"""Scenario files: what they mean, what is said of impossible ones, and that the samples do what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm import events as ev
from farm.errors import UsageError
from farm.events import RelayOptions
from farm.fleet import WorkerProfile
from farm.scenario.expect import Expectation, judge, measure
from farm.scenario.faults import parse_fault
from farm.scenario.scenario import parse_scenario, read_scenario
from farm.settings import GridSettings
from farm.simulation.runs import simulate

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples" / "scenarios").glob("*.toml"))
FLEET = "[[worker]]\ncount = 2\nfps = 30\n"


def test_a_scenario_is_a_job_a_fleet_and_its_faults() -> None:
    text = (
        '[job]\nframes = 600\npart = 12\ninput = "film.mp4"\noverhead = 0.5\n'
        '[relay]\npolicy = "guided,24"\ntail = "late"\nlease = 5\n'
        f"{FLEET}"
        '[[fault]]\ndo = "stall"\non = ["w1", "w2"]\nat = 3\nfor = 4\n'
        '[[expect]]\nwhat = "lapses"\nat_most = 2\n'
    )
    scenario = parse_scenario(text, "scenes/s.toml")
    options = scenario.options(RelayOptions(heartbeat_seconds=1.0))
    assert (options.policy, options.tail) == ("guided,24", "late")
    assert (options.lease_seconds, options.heartbeat_seconds) == (5.0, 1.0)
    assert scenario.input == Path("scenes/film.mp4")
    assert scenario.grid == GridSettings(frames=12, seconds=None, fixed=True)
    assert scenario.profiles() == (
        WorkerProfile(name="w1", fps_cap=30.0, overhead_seconds=0.5),
        WorkerProfile(name="w2", fps_cap=30.0, overhead_seconds=0.5),
    )
    assert scenario.faults == (parse_fault("stall w1,w2 at 3 for 4"),)
    world = scenario.world(options)
    assert (world.frames, len(world.cuts) - 1, len(world.workers)) == (600, 50, 2)
    assert world.faults == scenario.faults


def test_what_is_typed_counts_more() -> None:
    text = f'[relay]\npolicy = "fair"\ntail = "split"\nlease = 5\n{FLEET}'
    scenario = parse_scenario(text, "s.toml")
    typed = RelayOptions(policy="fixed,9", tail="none", claim_ahead=False, lease_seconds=8.0)
    options = scenario.options(typed, {"schedule", "lease"})
    assert (options.policy, options.tail) == ("fixed,9", "split")
    assert (options.lease_seconds, options.claim_ahead) == (8.0, False)
    assert scenario.options(typed).claim_ahead, "as on the command line: with fair"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "worker: a fleet has 1 to"),
        (
            f"{FLEET}[[fault]]\ndo = 'stal'\n",
            "s.toml: fault[0].do: 'stal' is not a fault (did you mean 'stall'?)",
        ),
        (f"{FLEET}[[fault]]\non = 'w1'\n", "s.toml: fault[0].do: is missing"),
        (f"{FLEET}[[fault]]\ndo = 'kill'\non = 'w1'\n", "s.toml: fault[0]: say when"),
        (f"{FLEET}[[fault]]\ndo = 'kill'\non = 'w3'\nat = 1\n", "fault[0].on: there is no worker 'w3'"),
        (f"{FLEET}[[fault]]\ndo = 'kill'\non = 'w1'\nwhen = 'now'\n", "s.toml: fault[0].when: 'now' is not"),
        (f"{FLEET}[[fault]]\ndo = 'slow'\non = 'w1'\nat = 1\nto = 3\n", "s.toml: fault[0].to: give a share"),
        (
            f"{FLEET}[[fault]]\ndo = 'cut'\non = 'w1'\nat = 1\nfor = -3\n",
            "s.toml: fault[0].for: give seconds",
        ),
        (f"{FLEET}[[fault]]\ndo = 'cut'\non = 'w1'\nat = 'x'\n", "fault[0].at: must be a number, not text"),
        (f"{FLEET}[[fault]]\ndo = 'cut'\nonn = 'w1'\n", "fault[0].onn: unknown field (did you mean 'on'?)"),
        (f"[job]\nframes = 0\n{FLEET}", "s.toml: job.frames: give frames"),
        (f"[relay]\nlease = 0\n{FLEET}", "s.toml: relay.lease: give seconds"),
        (f"[relay]\npolicy = 'fare'\n{FLEET}", "s.toml: relay.policy: fare: no policy 'fare' (did you mean"),
        (
            f"{FLEET}[[expect]]\nwhat = 'lapse'\nequals = 1\n",
            "expect[0].what: no figure 'lapse' (did you mean",
        ),
        (f"{FLEET}[[expect]]\nwhat = 'lapses'\n", "expect[0]: say at_least, at_most or equals"),
        (f"{FLEET}[[expect]]\nwhat = 'lapses'\nworker = 'w9'\nequals = 1\n", "expect[0].worker: there"),
        (f"{FLEET}[[expect]]\nwhat = 'splits'\nworker = 'w1'\nequals = 1\n", "is of the whole run"),
        (
            f"{FLEET}[[expect]]\nwhat = 'lapses'\nat_least = 3\nat_most = 2\n",
            "s.toml: expect[0].at_least: 3 is more than at_most, 2",
        ),
        (
            f"{FLEET}[[expect]]\nwhat = 'lapses'\nat_least = 3\nequals = 4\n",
            "s.toml: expect[0].equals: leave at_least",
        ),
        ("[job\n", "s.toml: not TOML"),
    ],
)
def test_an_impossible_scenario_gets_one_sentence_with_the_path(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_scenario(text, "s.toml")
    assert says in str(caught.value)
    assert str(caught.value).startswith("s.toml: ") and "\n" not in str(caught.value)


def test_a_lease_must_hold_two_heartbeats() -> None:
    scenario = parse_scenario(f"[relay]\nlease = 3\n{FLEET}", "s.toml")
    with pytest.raises(UsageError, match=r"relay\.lease: 3 s are less than two heartbeats of 2 s"):
        scenario.options(RelayOptions(heartbeat_seconds=2.0))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_samples_do_what_they_say(path: Path) -> None:
    scenario = read_scenario(str(path))
    world = scenario.world(scenario.options(RelayOptions()))
    result = simulate(world, keep_log=True, validate_every=7)
    assert scenario.expectations
    unmet = [str(verdict) for verdict in judge(scenario.expectations, result.records) if not verdict.met]
    assert unmet == []
    assert measure(result.records, "faults") > 0


def test_the_lost_strangers_parts_stay_and_only_the_rest_is_rendered_again() -> None:
    """The write-up's own case: 37 workers, one lost in the middle of a chunk."""
    scenario = read_scenario(str(next(path for path in SAMPLES if path.stem == "strangers-37")))
    result = simulate(scenario.world(scenario.options(RelayOptions())), keep_log=True, validate_every=7)
    (fault,) = [r.event for r in result.records if isinstance(r.event, ev.FaultInjected)]
    credits = [r.event for r in result.records if isinstance(r.event, ev.PartCredited)]
    kept = [credit for credit in credits if credit.worker == fault.worker]
    (claim,) = [
        r.event
        for r in result.records
        if isinstance(r.event, ev.ClaimGranted) and r.event.worker == fault.worker
    ]
    assert len(world_workers := scenario.workers) == 37 and fault.worker in world_workers
    assert [credit.frames for credit in kept] == [10, 10]
    assert {credit.part for credit in credits} == set(range(270))
    assert len(credits) == 270, "no part is credited twice, and none taken back"
    reopened = [r.event for r in result.records if isinstance(r.event, ev.RangeReopened)]
    assert [(event.start, event.stop) for event in reopened] == [(claim.start + 20, claim.stop)]


def test_an_expectation_is_told_with_its_figure() -> None:
    records = [
        ev.Record(0, 0.0, ev.ClaimEnded(token="c0#1@e1", worker="w1", how="lapsed")),
        ev.Record(1, 1.0, ev.RunFinished(exit_code=5, outcome="")),
    ]
    expected = [
        Expectation(what="lapses", at_most=0),
        Expectation(what="lapses", worker="w2", equals=0),
        Expectation(what="exit_code", equals=0),
        Expectation(what="finishing_seconds", at_most=9),
        Expectation(what="exit_code", at_least=1, at_most=5),
    ]
    assert list(map(str, judge(expected, records))) == [
        "not met  lapses: at most 0; it is 1",
        "met      lapses of w2: exactly 0; it is 0",
        "not met  exit_code: exactly 0; it is 5",
        "not met  finishing_seconds: at most 9; there is none",
        "met      exit_code: at least 1 and at most 5; it is 5",
    ]
