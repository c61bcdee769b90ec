"""``uneven simulate``: what it prints, in text, JSON and the console, and what it refuses."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from console import cli
from console.app import ConsoleApp
from console.modals.dialog import Question
from console.simulate import History, Seen, draw, report_lines, watch
from console.theme import SYMBOLS, Mark
from console.timeline import SPANS_MAX, Span
from console.trials import Setting, Trial, parse_schedule
from console.widgets.header import TitleRow
from farm.simulation.source import SimulatedSource
from tests.console.player import Player

FIXED = parse_schedule("fixed,48+none")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    with pytest.raises(SystemExit) as ended:
        cli.main(["simulate", *arguments])
    code = ended.value.code
    assert isinstance(code, int)
    written = capsys.readouterr()
    return code, written.out, written.err


def timeline(lines: list[str], worker: str) -> str:
    """The row of a worker below the axis."""
    axis = next(number for number, line in enumerate(lines) if line.lstrip().startswith("0 s"))
    return next(line for line in lines[axis:] if line.split()[:1] == [worker])


# --- expectations ----------------------------------------------------------------------------------------

SCENE = """
[job]
frames = 300
[[worker]]
count = 2
fps = 30.0
[[fault]]
do = "kill"
on = "w2"
at = 4
[[expect]]
what = "faults"
equals = 1
[[expect]]
what = "credited_frames"
worker = "w2"
at_most = {most}
"""


@pytest.mark.parametrize(("most", "code", "word"), [(300, 0, "met"), (3, 7, "not met")])
def test_each_expectation_is_told_and_one_that_is_not_met_ends_it_with_7(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, most: int, code: int, word: str
) -> None:
    path = tmp_path / "scene.toml"
    path.write_text(SCENE.format(most=most))
    ended, out, _ = run(capsys, "--scenario", str(path))
    assert ended == code
    assert [line.partition(";")[0].split() for line in out.splitlines()[-2:]] == [
        ["met", "faults:", "exactly", "1"],
        [*word.split(), "credited_frames", "of", "w2:", "at", "most", str(most)],
    ]
    ended, out, _ = run(capsys, "--scenario", str(path), "--ui", "json")
    assert ended == code
    told = json.loads(out)["expectations"]
    assert [(each["what"], each["met"]) for each in told] == [
        ("faults", True),
        ("credited_frames", code == 0),
    ]
    assert told[0]["value"] == 1


# --- the stall timeout -----------------------------------------------------------------------------------


def test_a_healthy_worker_that_takes_minutes_for_a_frame_is_not_taken_for_stalled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = ("--fleet", "0.005,0.002", "--frames", "12", "--ui", "json")
    code, out, _ = run(capsys, *slow)
    assert (code, json.loads(out)["lapses"]) == (0, 0)
    code, out, _ = run(capsys, *slow, "--stall-timeout", "120")
    assert code == 5 and json.loads(out)["lapses"] > 0, "it does as it is told"


@pytest.mark.parametrize("typed", [(), ("--stall-timeout", "9")])
def test_the_stall_timeout_is_as_typed_or_else_as_the_scenario_has_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, typed: tuple[str, ...]
) -> None:
    path = tmp_path / "scene.toml"
    path.write_text(
        "[job]\nframes = 300\n[relay]\nstall_timeout = 30\n[[worker]]\ncount = 2\nfps = 30.0\n"
        "[[fault]]\ndo = 'stand-still'\non = 'w1'\nat = 1\nfor = 15\n"
        f"[[expect]]\nwhat = 'lapses'\nequals = {1 if typed else 0}\n"
    )
    code, out, _ = run(capsys, "--scenario", str(path), *typed)
    assert code == 0, out


# --- text ------------------------------------------------------------------------------------------------


def test_the_published_figure_with_all_that_belongs_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--schedule", "fixed,48", "--tail", "none", "--no-heartbeats")
    assert (code, err) == (0, "")
    assert "finishing time  133.2 s (lower bound 66.9 s, ratio 1.992)" in out
    assert "claims          100: 0 duplicates, 0 lapses" in out
    assert "wasted          0 frames" in out
    assert "idle            " in out
    assert "no heartbeats" in out
    lines = out.splitlines()
    assert all(timeline(lines, name)[4] == "|" for name in ("w1", "w2", "w3", "w4"))
    assert "| a claim begins" in out and "a cell is" in out


def test_fair_is_the_default_and_claims_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    _, ahead, _ = run(capsys)
    _, without, _ = run(capsys, "--no-claim-ahead")
    assert ahead.startswith("fair+split in virtual time")
    assert "ratio 1.00" in ahead
    assert without.startswith("fair+split+no-ahead in virtual time")
    assert "ratio 1.03" in without


def test_a_worker_that_a_fault_kills_is_lost_at_once_as_on_the_farm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It was found out by its lease, and told as stalled."""
    _, said, _ = run(capsys, "--fleet", "30,30,12", "--frames", "960", "--fault", "kill w1 at 5")
    assert "0 lapses, 0 refusals, 0 failures, 1 worker lost" in said


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    trial = Trial(FIXED, "30,30,12,2", "stall", 1, Setting(part=12))
    lines = report_lines(trial, watch(trial), width)
    assert max(map(len, lines)) <= width


def test_a_stall_shows_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--condition", "stall", "--seed", "1")
    assert code == 0
    stalled = [row for row in out.splitlines() if "!" in row and row.startswith("w")]
    assert len(stalled) == 1
    assert stalled[0].index("!") < stalled[0].index("~")
    assert "! lapsed" in out and "1 lapse" in out


def test_a_job_that_nobody_is_left_to_finish(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--fleet", "30", "--frames", "300", "--condition", "die")
    assert code == 5
    assert "stopped with work left" in out
    assert "frames          300 of" not in out


def test_the_timeline_has_the_whole_run() -> None:
    """Also where a worker had more claims than the console keeps spans of."""
    trial = Trial(
        parse_schedule("fixed,1+none"), "10", setting=Setting(frames=SPANS_MAX + 200, overhead_seconds=0.1)
    )
    seen = watch(trial)
    labels = [span.label for span in seen.history.spans["w1"] if span.kind == "claim"]
    assert labels == [f"c{n}#1@e1" for n in range(SPANS_MAX + 200)]
    assert seen.history.spans["w1"][0].start_seconds == 0.0


def test_an_overhead_that_was_hidden_is_not_drawn() -> None:
    spans = [Span("claim", 0.0, 5.0, "c0#1@e1"), Span("claim", 5.0, 10.0, "c1#1@e1")]
    assert draw(spans, {"c0#1@e1": 2.0, "c1#1@e1": 5.0}, 10.0, 10) == "|-###|####"
    assert draw(spans, {"c0#1@e1": 2.0, "c1#1@e1": 7.0}, 10.0, 10) == "|-###|-###"


def test_a_moment_is_not_painted_over() -> None:
    spans = [Span("lapsed", 0.0, 1.0), Span("refused", 3.0, 3.0), Span("idle", 3.0, 5.0)]
    assert draw(spans, {}, 10.0, 10) == "!  x_     "


def test_signs_are_those_of_the_console() -> None:
    signs = {
        mark: SYMBOLS[mark] for mark in (Mark.DONE, Mark.DUPLICATED, Mark.LAPSED, Mark.FAILED, Mark.IDLE)
    }
    assert list(signs.values()) == ["#", "=", "!", "x", "_"]
    assert draw([Span("stalled", 0.0, 1.0)], {}, 1.0, 1) == SYMBOLS[Mark.STALLED]


def test_of_many_workers_the_first_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--fleet", ",".join(["5"] * 70), "--frames", "700", "--part", "10")
    assert "64 of 70 workers shown" in out
    assert "finishing time" in out


# --- JSON ------------------------------------------------------------------------------------------------


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "--ui", "json", "--schedule", "guided,12", "--tail", "none", "--part", "12")
    report = json.loads(out)
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert report["finishing_seconds"] > report["lower_bound_seconds"] > 0
    assert sum(worker["credited_frames"] for worker in report["workers"]) == report["frames"] == 4800
    assert report["ratio"] == pytest.approx(report["finishing_seconds"] / report["lower_bound_seconds"])


def test_the_same_command_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--ui", "json", "--condition", "noise", "--seed", "3", "--part", "12")
    assert run(capsys, *arguments) == run(capsys, *arguments)


def test_none_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--ui", "none", "--part", "48") == (0, "", "")


# --- what it refuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fleet", ""], "--fleet"),
        (["--fleet", "30,-2"], "-2"),
        (["--fleet", "30,nan"], "nan"),
        (["--fleet", "30,max"], "needs a speed"),
        (["--fleet", "30,x"], "frames per second from 0.001 to 1,000,000\n"),
        (["--fleet", "nowhere.toml"], "nowhere.toml"),
        (["--frames", "0"], "--frames 0"),
        (["--frames", "-5"], "--frames -5"),
        (["--frames", "100000000"], "longer --part"),
        (["--fleet", "M16", "--frames", "10"], "frames of its own"),
        (["--part", "0"], "--part 0"),
        (["--overhead", "nan"], "--overhead nan"),
        (["--overhead", "-1"], "--overhead -1"),
        (["--heartbeat", "inf"], "--heartbeat inf"),
        (["--lease", "1"], "--lease 1"),
        (["--schedule", "guided,12,6"], "max 6 is below min 12"),
        (["--schedule", "unfair"], "no policy 'unfair'"),
        (["--tail", "splits"], "--tail splits"),
        (["--condition", "rain"], "'rain' is not a condition"),
        (["--condition", "stall,die"], "one at a time"),
        (["--no-heartbeats", "--condition", "die"], "without heartbeats"),
        (["--seed", "-1"], "--seed"),
        (["--speed", "0"], "--speed 0"),
        (["--ui", "paper"], "paper"),
        (["--ui", "tui"], "terminal"),
    ],
)
def test_one_sentence_and_code_2(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("uneven: ") and err.count("\n") == 1


# --- the console on virtual time -------------------------------------------------------------------------


class HandClock:
    """Real time as the test says it is; ``tick``: seconds that pass each time somebody looks."""

    def __init__(self, tick: float = 0.0) -> None:
        self.time = 0.0
        self.tick = tick

    def now(self) -> float:
        self.time += self.tick
        return self.time


def on_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def go() -> None:
        asyncio.run(test())

    return go


def head(app: ConsoleApp) -> TitleRow:
    """The first row of the screen."""
    (row,) = (row for row in app.live.head.rows if isinstance(row, TitleRow))
    return row


@on_loop
async def test_keys_halt_hurry_and_step_virtual_time() -> None:
    real = HandClock()
    source = SimulatedSource(Trial(FIXED, "30,30,12,2").world(), real, rate=10.0)
    app = ConsoleApp(source, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(100, 30)) as pilot:
        real.time = 1.0
        app.tick()
        assert app.now() == pytest.approx(10.0)
        await pilot.press("right_square_bracket")
        assert source.rate == 20.0
        await pilot.press("left_square_bracket", "left_square_bracket")
        assert source.rate == 5.0
        await pilot.press("space")
        assert source.halted and app.standing and not app.model.paused
        assert head(app).badge == "HALTED" and head(app).facts[0] == "5 x real time"
        await pilot.press("right_square_bracket", "left_square_bracket")
        said = app.said
        assert source.halted and said is not None and "halted at 10.00 s" in said.text
        real.time = 2.0
        app.tick()
        assert app.now() == pytest.approx(10.0)
        before = app.model.records
        await pilot.press("full_stop")
        assert app.model.records > before and source.halted
        await pilot.press("space")
        assert not source.halted
        assert head(app).badge == "SIMULATED"
        source.set_rate(1000.0)
        while not app.ended:
            real.time += 0.01
            app.tick()
        assert app.model.work is not None and app.model.work.makespan_seconds == pytest.approx(133.2)


@on_loop
async def test_a_drain_is_not_held_up_by_halted_time() -> None:
    real = HandClock()
    source = SimulatedSource(Trial(FIXED, "30,30,12,2").world(), real, rate=10.0)
    app = ConsoleApp(source, refresh_hz=1e-6, exit_when_done=False)
    app.model = history = History()
    async with app.run_test(size=(100, 30)) as pilot:
        real.time = 1.0
        app.tick()
        await pilot.press("space", "q")
        assert isinstance(app.screen, Question)
        said = "".join(text for row in app.screen.rows(80, 20) for text, _ in row)
        assert (
            "What came of it so far is printed" in said and "resumed" not in said and not history.told_to_stop
        )
        await pilot.press("d")
        while not app.ended:
            real.time += 0.1
            app.tick()
    assert history.told_to_stop and history.work is None


@on_loop
async def test_a_live_run_has_no_such_keys() -> None:
    player = Player()
    player.open_end = True
    app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("right_square_bracket", "full_stop")
        assert app.virtual_time is None
        await pilot.press("space")
        assert len(player.commands) == 1  # it pauses the job


def test_what_was_seen_in_the_console_is_told_as_well() -> None:
    source = SimulatedSource(Trial(FIXED, "30,30,12,2").world(), HandClock(tick=1.0), rate=100.0)
    history = History()
    while not source.ended:
        for record in source.take():
            history.fold(record)
    trial = Trial(FIXED, "30,30,12,2")
    assert report_lines(trial, Seen(history, source.result()), 80) == report_lines(trial, watch(trial), 80)


# --- as a process ----------------------------------------------------------------------------------------


def test_rendering_does_not_load_the_simulator_nor_simulating_textual() -> None:
    root = Path(__file__).parents[2]
    script = (
        "import sys, console.cli\n"
        "lab = [m for m in sys.modules if m in ('console.trials', 'farm.engines.simulated')]\n"
        "try: console.cli.main(['simulate', '--part', '48', '--ui', 'plain'])\n"
        "except SystemExit as ended: assert not ended.code\n"
        "print(lab, [m for m in sys.modules if m in ('textual', 'av')], file=sys.stderr)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stderr == "[] []\n"
