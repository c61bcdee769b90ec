"""The guided tour: what happens in it, what is said of it, and that it runs without a console."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from console import cli
from console.demo import TOUR
from farm import events as ev
from farm.captions import WAIT_SECONDS_MAX, Reel
from farm.events import Record, RelayOptions
from farm.moments import moment_of
from farm.scenario.expect import judge
from farm.scenario.scenario import Scenario, read_scenario
from farm.simulation.runs import simulate

#: A minute, and what it takes to begin.
TOUR_SECONDS_MAX = 65.0


@pytest.fixture(scope="module")
def tour() -> Scenario:
    return read_scenario(str(TOUR))


@pytest.fixture(scope="module")
def records(tour: Scenario) -> list[Record]:
    return list(simulate(tour.world(tour.options(RelayOptions())), keep_log=True).records)


def moments(records: list[Record]) -> list[tuple[str, str | None]]:
    return [tuple(moment) for record in records if (moment := moment_of(record.event)) is not None]  # type: ignore[misc]


def assert_tour(records: list[Record], seconds_max: float = TOUR_SECONDS_MAX) -> None:
    """Its accidents, in order, and that it ends well in time."""
    happened = moments(records)
    story = [("stall", "w3"), ("lapse", "w3"), ("wake", "w3"), ("refusal", "w3"), ("split", None)]
    places = [happened.index(moment) for moment in story]
    assert places == sorted(places), happened
    assert "duplicate" in [kind for kind, _ in happened]
    assert isinstance(records[-1].event, ev.RunFinished) and records[-1].event.exit_code == 0
    assert records[-1].at <= seconds_max


def shown_times(scenario: Scenario, records: list[Record]) -> dict[int, tuple[float, float, float]]:
    """When each caption came due, began and ended to be shown, looked at ten times a second."""
    reel = Reel(scenario.captions)
    seen: dict[int, tuple[float, float, float]] = {}
    waiting = list(records)
    for tick in range(int((records[-1].at + 30) * 10)):
        now = tick / 10
        while waiting and waiting[0].at <= now:
            reel.see(waiting.pop(0))
        shown = reel.shown(now)
        if shown is not None:
            _, begins, _ = seen.get(shown.number, (0.0, now, 0.0))
            seen[shown.number] = (shown.due_at, begins, now)
    return seen


def assert_captions(
    scenario: Scenario,
    records: list[Record],
    without: frozenset[int] = frozenset(),
    *,
    passed_over_max: int = 0,
) -> None:
    """Each is shown, soon after what it is about, and long enough to be read. ``passed_over_max``: how many
    may be left out, as those are that would come too late behind others."""
    times = shown_times(scenario, records)
    due = set(range(len(scenario.captions))) - without
    assert set(times) <= due and len(due - set(times)) <= passed_over_max
    for number, (due, begins, ends) in times.items():
        caption = scenario.captions[number]
        assert -0.11 <= begins - due <= WAIT_SECONDS_MAX + 0.11, caption.text
        assert ends - begins >= caption.seconds - 0.3, caption.text
        words_a_second = len(caption.text.split()) / caption.seconds
        assert words_a_second <= 6.0, f"too fast to be read: {caption.text}"


def test_the_simulated_tour_has_all_its_accidents(records: list[Record]) -> None:
    assert_tour(records)


def test_each_caption_of_the_simulated_tour_is_shown_in_time(tour: Scenario, records: list[Record]) -> None:
    verified = len(tour.captions) - 1  # nothing is rendered, so nothing is verified
    assert_captions(tour, records, frozenset((verified,)))


@pytest.mark.parametrize("change", [0.97, 0.985, 1.015, 1.03])
def test_workers_that_are_a_little_faster_or_slower_make_the_same_tour(tour: Scenario, change: float) -> None:
    """As no machine renders at exactly the speed that was asked for."""
    world = tour.world(tour.options(RelayOptions()))
    workers = tuple(replace(w, fps=w.fps * change ** (-1) ** n) for n, w in enumerate(world.workers))
    assert_tour(list(simulate(replace(world, workers=workers), keep_log=True).records))


def test_the_tour_does_what_its_file_expects(tour: Scenario, records: list[Record]) -> None:
    assert all(verdict.met for verdict in judge(tour.expectations, records))


def test_the_tour_is_a_sample_too_and_comes_with_the_package() -> None:
    sample = Path(__file__).resolve().parents[2] / "samples" / "scenarios" / "tour.toml"
    assert sample.read_bytes() == TOUR.read_bytes()
    assert TOUR.parent.name == "console", "the wheel has what is in the package"


@pytest.mark.parametrize("ui", ["plain", "none", "json"])
def test_the_tour_simulates_without_a_console(
    ui: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", "--simulate", "--ui", ui])
    out = capfd.readouterr().out
    assert ended.value.code == 0
    assert (">> Four workers" in out, "splits" in out) == (ui == "plain", ui != "none")
    assert list(tmp_path.iterdir()) == [], "nothing is written"


def test_without_captions_and_with_a_fleet_of_ones_own(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in (("--no-captions",), ("--fleet", "30,30,12,2"), ("--schedule", "guided,12")):
        with pytest.raises(SystemExit) as ended:
            cli.main(["demo", "--simulate", "--ui", "plain", *arguments])
        out = capfd.readouterr().out
        assert ended.value.code == 0 and ">>" not in out
        assert ("1,200 of 1,200" in out) == (arguments != ("--no-captions",))


def test_pausing_needs_somebody_who_lets_it_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    for command in (["demo", "--simulate"], ["demo"], ["simulate"]):
        with pytest.raises(SystemExit) as ended:
            cli.main([*command, "--ui", "plain", "--pause-on", "lapse"])
        assert ended.value.code == 2
        assert "use --ui tui" in capfd.readouterr().err
