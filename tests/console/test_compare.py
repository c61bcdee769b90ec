"""``uneven compare``: tables, the published figures, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import psutil
import pytest

from console import article, cli, compare
from console.tables import csv_table, markdown_table, text_table
from console.trials import (
    Score,
    Setting,
    Trial,
    parse_conditions,
    parse_fleets,
    parse_schedule,
    run_trials,
    spell,
)
from farm.errors import UsageError
from farm.policies.registry import POLICIES
from scripts.scheduling_doc import BEGIN, END, replace_section
from tests.shared import made_once


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", *arguments])
    code = ended.value.code
    assert isinstance(code, int)
    written = capsys.readouterr()
    return code, written.out, written.err


# --- the article -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> article.Article:
    def make(folder: Path) -> None:
        (folder / "article").write_bytes(pickle.dumps(article.run_article(processes=1)))

    made = pickle.loads((made_once(tmp_path_factory, "article", make) / "article").read_bytes())
    assert isinstance(made, article.Article)
    return made


def test_the_published_table_comes_out_exactly(found: article.Article) -> None:
    assert [round(beside.ours, 1) for beside in found.published] == [133.2, 150.0, 102.4, 103.8]
    assert [round(beside.lower_bound_seconds, 1) for beside in found.published[:2]] == [66.9, 67.8]


def test_the_prototypes_rows_within_one_per_cent_or_better(found: article.Article) -> None:
    """Those that split may be quicker (docs/scheduling.md)."""
    for beside in found.prototype:
        allowed = -0.04 if beside.schedule in ("guided,12+split", "static+split") else -0.01
        assert allowed <= beside.differs <= 0.01, beside


def test_the_honest_note_comes_from_runs(found: article.Article) -> None:
    fixed, bare, *_ = found.hidden.values()
    assert (round(fixed[0], 1), round(fixed[1], 1), round(bare[0]), round(bare[1])) == (96.0, 98.0, 203, 404)
    assert [round(least, 1) for least, _ in found.orders] == [102.1, 103.8]
    said = " ".join(article.article_lines(found, 200))
    for words in ("96.0 and 98.0", "203 and 404", "102.1 to 126.", "133.2", "150.0", "66.9", "67.8"):
        assert words in said


def test_article_as_csv_and_json(capsys: pytest.CaptureFixture[str], found: article.Article) -> None:
    rows = list(csv.DictReader(io.StringIO(article.render(found, "csv", 80))))
    assert rows[0] == {
        "table": "published",
        "schedule": "fixed,48+none",
        "fleet": "30,30,12,2",
        "theirs": "133.2",
        "ours": "133.200",
        "their_claims": "",
        "our_claims": "100",
    }
    assert len(rows) == 2 * (len(article.PUBLISHED) + len(article.PROTOTYPE))
    assert json.loads(article.render(found, "json", 80))["published"][0]["theirs"] == 133.2


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fleet", article.FLEETS)
def test_fair_finishes_together_whoever_asks_first(fleet: str, every: int) -> None:
    """For all orders of asking, or some; parts of one frame with and without claiming ahead."""
    for order in sorted(set(permutations(fleet.split(","))))[::every]:
        trials = [
            Trial(parse_schedule(text), ",".join(order))
            for text in ("fair+split", "fair+split+no-ahead", "fair,known=1+split+no-ahead")
        ]
        ahead, without, known = (score.ratio or 9.0 for score in run_trials(trials, processes=1))
        assert ahead <= 1.01, order
        assert without <= 1.05, order
        assert known <= 1.005, order


# --- tables ----------------------------------------------------------------------------------------------


def test_policies_down_places_across(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, "--policies", "fixed,48+none", "guided,12+duplicate-oldest,from=start", "--processes", "1"
    )
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[2].split() == ["schedule", "A", "base", "B", "base", "mean", "p95", "worst", "at"]
    assert lines[3].split()[:5] == ["fixed,48+none", "133.2", "(1.992)", "150.0", "(2.214)"]
    assert lines[4].split()[:5] == [
        "guided,12+duplicate-oldest,from=start",
        "102.4",
        "(1.532)",
        "103.8",
        "(1.533)",
    ]


def test_two_processes_give_the_same_table(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--policies", "fair", "static", "--fleets", "A,M16", "--conditions", "base,die")
    arguments += ("--seeds", "2", "--part", "12", "--format", "json")
    alone = run(capsys, *arguments, "--processes", "1")
    together = run(capsys, *arguments, "--processes", "2")
    assert alone == together
    comparison = json.loads(alone[1])
    places = [(cell["schedule"], cell["fleet"], cell["condition"]) for cell in comparison["cells"]]
    assert places[:3] == [
        ("fair+split", "A", "base"),
        ("fair+split", "A", "die"),
        ("fair+split", "M16", "base"),
    ]
    assert len(places) == 8 and comparison["cells"][0]["seeds"] == 2


def test_those_who_watch_see_every_run_with_its_score_and_change_none() -> None:
    schedules = [parse_schedule("fair"), parse_schedule("guided,12+late")]
    seen: list[Trial] = []
    scored: list[Score] = []

    def show(trials: Sequence[Trial], scores: Sequence[Score]) -> None:
        seen.extend(trials)
        scored.extend(scores)

    arguments = (schedules, ["A", "10,10,3"], ["base"], range(2), Setting(part=48))
    watched = compare.compare(*arguments, processes=1, show=show)
    assert watched == compare.compare(*arguments, processes=1)
    assert [score.ratio for score in scored] == [ratio for cell in watched.cells for ratio in cell.ratios]
    assert [(trial.schedule, trial.fleet, trial.seed) for trial in seen] == [
        (schedule, fleet, seed) for schedule in schedules for fleet in ("A", "10,10,3") for seed in (0, 1)
    ]


def test_csv_has_a_line_a_cell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    arguments = ("--policies", "fixed,48", "--format", "csv", "-o", str(file), "--processes", "1")
    assert run(capsys, *arguments) == (0, "", "")
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [(row["schedule"], row["fleet"], row["seconds"]) for row in rows] == [
        ("fixed,48+none", "A", "133.2"),
        ("fixed,48+none", "B", "150"),
    ]


def test_own_fleets_and_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("[[worker]]\nfps = 10.0\ncount = 2\n")
    code, out, _ = run(
        capsys, "--policies", "static", "--fleets", f"{file};10,10", "--frames", "200", "--processes", "1"
    )
    assert code == 0
    assert out.count("12.0 (1.000)") == 2


def test_fresh_fleets_are_drawn_by_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--fleets", "fresh", "--conditions", "drawn", "--part", "48", "--seeds", "3")
    _, out, _ = run(capsys, "--policies", "static", *arguments, "--format", "json", "--processes", "1")
    comparison = json.loads(out)
    (cell,), (overall,) = comparison["cells"], comparison["overall"]
    assert len(set(cell["ratios"])) == 3
    assert overall["worst"] == max(cell["ratios"])
    assert "run" in overall["worst_at"]


def test_a_job_that_does_not_finish_has_no_mean(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, "--policies", "static", "--fleets", "30;20,20", "--conditions", "base,die", "--frames", "300",
        "--processes", "1",
    )  # fmt: skip
    row = next(line for line in out.splitlines() if line.startswith("static+none"))
    assert code == 0
    assert "not finished" in row and row.endswith("30 die")


def test_every_policy_of_ours_is_in_the_default_comparison() -> None:
    schedules = [parse_schedule(text) for text in compare.ALL_POLICIES]
    assert {schedule.policy.partition(",")[0] for schedule in schedules} == set(POLICIES)
    assert [spell(schedule) for schedule in schedules] == list(compare.ALL_POLICIES)


def test_a_wide_table_goes_on_below() -> None:
    head = ["name", *(f"column {n}" for n in range(9))]
    rows = [["one", *"123456789"], ["two", *"abcdefghi"]]
    lines = text_table(head, rows, 40)
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("one ") for line in lines) == lines.count("") + 1 > 1
    assert [mark for mark in "abcdefghi" if any(mark in line.split() for line in lines)] == list("abcdefghi")


def test_tables_for_documents_and_programs() -> None:
    assert markdown_table(["a", "b"], [["x", "1"]]) == ["| a | b |", "| --- | --: |", "| x | 1 |"]
    assert csv_table(["a", "b"], [["x,y", '"']]) == 'a,b\n"x,y",""""\n'


def test_sections_of_the_document_are_made_anew_one_by_one() -> None:
    empty = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    one = replace_section(empty, "fresh", ["new"])
    assert one == f"before\n{BEGIN}\n\n### Fresh fleets\n\nnew\n\n{END}\nafter\n"
    both = replace_section(one, "grid", ["cells"])
    assert both.index("cells") < both.index("new") and replace_section(both, "fresh", ["new"]) == both
    with pytest.raises(ValueError, match="marks"):
        replace_section("nothing", "fresh", ["new"])


# --- what is meant, and what is refused ------------------------------------------------------------------


def test_spellings() -> None:
    assert parse_schedule("fair") == parse_schedule("fair + split + ahead")
    assert not parse_schedule("fair+split+no-ahead").claim_ahead
    assert parse_schedule("guided,12+duplicate-oldest,from=start").tail == "duplicate-oldest,from=start"
    assert parse_fleets("A,B;10,10,3;x.toml,fresh") == ["A", "B", "10,10,3", "x.toml", "fresh"]
    assert parse_conditions("base,h0.1,h 10") == ["base", "h 0.1", "h 10"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policies", "unfair"], "--policies unfair: no policy 'unfair'"),
        (["--policies", "guided,12,6+none"], "max 6 is below min 12"),
        (["--policies", "fair+split+late"], "POLICY+TAIL"),
        (["--policies", "fair+tail"], "--policies: tail tail"),
        (["--fleets", ""], "--fleets"),
        (["--fleets", "A,Q7"], "no fleet 'Q7'"),
        (["--fleets", "10,nan"], "--fleets 10,nan: worker 2 is 'nan'"),
        (["--fleets", "A,,B"], "none empty"),
        (["--fleets", "A;;B"], "none empty"),
        (["--fleets", "10,٣"], "worker 2 is '٣'"),
        (["--fleets", "10,1_0"], "worker 2 is '1_0'"),
        (["--frames", "٣٠٠"], "--frames ٣٠٠: write numbers with the digits 0 to 9"),
        (["--overhead=١.٥"], "--overhead ١.٥: write numbers"),
        (["--ui", "tui"], "terminal"),
        (["--ui", "json"], "--format json"),
        (["--speed", "nan"], "--speed nan"),
        (["--fleets", "10,0"], "0"),
        (["--fleets", "A", "--frames", "100"], "frames of its own"),
        (["--conditions", "rain"], "'rain' is not a condition"),
        (["--conditions", ""], "at least one condition"),
        (["--conditions", "base,,stall"], "--conditions 'base,,stall': name"),
        (["--seeds", "0"], "--seeds 0: give 1 to 1,000"),
        (["--part", "-1"], "--part -1"),
        (["--overhead", "inf"], "--overhead inf"),
        (["--format", "xml"], "--format 'xml'"),
        (["--processes", "-2"], "--processes -2"),
        (["--no-heartbeats", "--conditions", "stall"], "without heartbeats"),
    ],
)
def test_one_sentence_and_code_2(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("uneven: ") and err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_told_before_all_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "nowhere" / "table.txt"
    monkeypatch.setattr("console.compare.compare", lambda *_, **__: pytest.fail("it began to work"))
    code, _, err = run(capsys, "--policies", "static", "--part", "48", "-o", str(target), "--processes", "1")
    assert code == 4
    assert str(target.parent) in err and "make it first" in err


def test_a_trial_that_makes_no_sense_is_refused_in_any_process() -> None:
    trials = [Trial(parse_schedule("static"), "10", setting=Setting(part=0))] * 2
    for processes in (1, 2):
        with pytest.raises(UsageError):
            run_trials(trials, processes=processes)


def test_processes_end_with_the_one_that_started_them() -> None:
    """Also if that is killed."""
    command = [sys.executable, "-m", "console", "compare", "--fleets", "X500", "--processes", "2"]
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        seen = psutil.Process(parent.pid)
        children: list[psutil.Process] = []
        while len(children) < 3:  # two, and the resource tracker
            assert parent.poll() is None
            children = seen.children()
    finally:
        parent.kill()
        parent.wait()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_says_so_and_no_more(number: signal.Signals, tmp_path: Path) -> None:
    """Its processes are ended, and neither they nor their resource tracker have a word to say, also when they
    hear the signal while they are being started."""
    command = [sys.executable, "-m", "console", "compare", "--fleets", "X500", "--seeds", "100"]
    environment = os.environ | {"UNEVEN_STATE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 60
        while len(psutil.Process(process.pid).children()) < 2 and process.poll() is None:
            assert time.monotonic() < deadline, "it starts no processes"
            time.sleep(0.002)
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, out, err) == (130, b"", b"uneven: interrupted\n")


def test_a_fleet_file_is_its_name_in_the_text_and_its_path_in_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "uneven-trio.toml"
    path.write_text("[[worker]]\ncount = 3\nfps = 30\n")
    arguments = ("--policies", "static", "--fleets", str(path), "--frames", "300", "--processes", "1")
    _, shown, _ = run(capsys, *arguments)
    _, told, _ = run(capsys, *arguments, "--format", "json")
    assert "uneven-trio base" in shown and str(tmp_path) not in shown
    assert json.loads(told)["cells"][0]["fleet"] == str(path)
