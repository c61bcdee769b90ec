"""``uneven replay`` and going to and fro in the console: every key, every size, lines and JSON, refusals."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from textual.geometry import Size

from console import cli
from console.app import ConsoleApp
from console.keycommands import key_commands
from console.presentation import Presentation
from console.presenting import LOOKED_FOR
from console.theme import Look, Mark
from console.widgets.caption_bar import caption_rows
from console.widgets.header import Header, TitleRow
from console.widgets.key_bar import KeysRow
from console.widgets.replay_bar import ReplayRow, draw_replay, ticks_of
from farm import commands as cmd
from farm import events as ev
from farm.captions import AtMoment, Caption
from farm.errors import ExitCode
from farm.faults import AtTime
from farm.journal import write_recording
from farm.playback import Log, Playback
from farm.simulation.source import SimulatedSource
from tests.console.player import Player
from tests.console.story import Fault, play
from tests.console.test_app import colour_terminal, on_loop, ready, said, screen_text, wait_for
from tests.simulation.test_source import HandClock
from tests.test_playback import RECORDS, kinds_of, world

__all__ = ["colour_terminal"]

CAPTIONS = (
    Caption(text="It begins.", when=AtTime(0.0), seconds=4.0),
    Caption(text="A lease ran out.", when=AtMoment("lapse"), seconds=4.0),
)


def replaying(**options: object) -> tuple[ConsoleApp, Playback, HandClock]:
    """A console on a recording; it ticks when its test says so."""
    clock = HandClock()
    presentation = options.pop("presentation", Presentation())
    assert isinstance(presentation, Presentation)
    source = Playback(Log(RECORDS), clock, pause_on=presentation.pause_on)
    app = ConsoleApp(source, refresh_hz=1e-6, exit_when_done=False, presentation=presentation, **options)  # type: ignore[arg-type]
    app.real = clock
    return app, source, clock


def simulating(**options: object) -> tuple[ConsoleApp, Playback, HandClock]:
    clock = HandClock()

    def begin() -> SimulatedSource:
        return SimulatedSource(world(), clock)

    source = Playback(Log(), clock, present=begin(), again=begin)
    app = ConsoleApp(source, refresh_hz=1e-6, exit_when_done=False, **options)  # type: ignore[arg-type]
    app.real = clock
    return app, source, clock


def bar(app: ConsoleApp) -> ReplayRow:
    row = app.live.head.rows[1]
    assert isinstance(row, ReplayRow)
    return row


# --- keys ------------------------------------------------------------------------------------------------


@on_loop
async def test_a_recording_plays_with_a_bar_in_place_of_progress() -> None:
    app, source, clock = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        clock.time += 50.0
        app.tick()
        assert app.model.records == source.position == sum(record.at <= 50 for record in RECORDS)
        assert bar(app).position == pytest.approx(50.0 / RECORDS[-1].at, abs=0.01)
        assert f"event {source.position} of {len(RECORDS)}" in screen_text(app)
        title = app.live.head.rows[0]
        assert isinstance(title, TitleRow) and title.badge == "RECORDING"
        keys = app.live.keys.rows[0]
        assert isinstance(keys, KeysRow)
        shown = [key.key for key in keys.keys]
        assert shown[:7] == ["q", "?", "space", "n", ".", ",", "[ ]"]
        assert "s" not in shown and "x" not in shown, "nothing can be done to what is over"


@on_loop
async def test_space_halts_and_brackets_change_the_speed() -> None:
    app, source, clock = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("space")
        assert source.halted and "The recording is halted" in said(app)
        clock.time += 10.0
        app.tick()
        assert source.position == 1 or source.now() < 1.0
        await pilot.press("right_square_bracket", "right_square_bracket", "left_square_bracket")
        assert source.rate == 2.0
        await pilot.press("space")
        clock.time += 10.0
        app.tick()
        assert source.now() == pytest.approx(20.0, abs=0.1)


@on_loop
async def test_full_stop_and_comma_step_and_say_what_happened() -> None:
    app, source, _ = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        source.halt(True)
        before = source.position
        await pilot.press("full_stop", "full_stop")
        assert (source.position, app.model.records) == (before + 2, before + 2)
        await pilot.press("comma")
        assert (source.position, app.model.records) == (before + 1, before + 1)
        assert f"event {before + 1} of {len(RECORDS)}" in said(app)
        await pilot.press(*["comma"] * (before + 1))
        assert source.position == 1 and said(app) == "This is the beginning."


@on_loop
async def test_h_l_and_arrows_seek_and_g_goes_to_the_ends() -> None:
    app, source, _ = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("space", "l", "right", "l")
        there = source.now()
        assert there == pytest.approx(3 * 0.02 * RECORDS[-1].at, abs=0.5)
        await pilot.press("h")
        assert source.now() < there
        await pilot.press("left", "left", "left", "left")
        assert source.now() == RECORDS[0].at
        await pilot.press("G")
        app.tick()
        assert source.position == len(RECORDS) and app.ended
        assert "recording is over" in said(app) or f"event {len(RECORDS)}" in said(app)
        await pilot.press("g")
        assert source.position == 1 and not app.ended
        assert app.model.records == 1 and not app.model.workers
        await pilot.press("end")
        app.tick()
        assert app.ended
        await pilot.press("home")
        assert source.position == 1


@on_loop
async def test_n_and_capital_n_jump_and_capital_k_chooses_to_what() -> None:
    app, source, _ = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        places = kinds_of(RECORDS, "lapse", "duplicate", "split", "refusal", "kill", "loss", "failure")
        for place in places[:3]:
            await pilot.press("n")
            assert source.position == place + 1 == app.model.records
            assert said(app).startswith("Halted: ")
        await pilot.press("N")
        assert source.position == places[1] + 1
        await pilot.press("G", "K")
        assert "lapse" in said(app)
        await pilot.press("N")
        lapse = kinds_of(RECORDS, "lapse")[-1]
        assert source.position == lapse + 1 and "LAPSED" in said(app)
        await pilot.press("n")
        assert said(app) == "No lapse after this."
        assert source.position == lapse + 1
        await pilot.press(*["K"] * (len(LOOKED_FOR) - 1))
        assert app.looking_for == "any"


@on_loop
async def test_it_halts_where_it_was_told_to_and_says_why() -> None:
    app, source, clock = replaying(presentation=Presentation(pause_on=frozenset(("lapse",))))
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        clock.time += 1e3
        app.tick()
        assert source.halted and "LAPSED" in said(app) and "Space goes on" in said(app)
        assert isinstance(RECORDS[app.model.records - 1].event, ev.ClaimEnded)
        title = app.live.head.rows[0]
        assert isinstance(title, TitleRow) and title.badge == "HALTED"


@on_loop
async def test_capital_r_plays_it_again() -> None:
    app, source, clock = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        clock.time += 1e4
        app.tick()
        app.tick()
        assert app.ended
        await pilot.press("R")
        assert not app.ended and not source.halted and app.model.records <= 20
        clock.time += 1e4
        app.tick()
        app.tick()
        assert app.ended and app.model.credited_frames == 4800


@on_loop
async def test_nothing_is_sent_from_a_recording_and_q_leaves_at_once() -> None:
    app, source, clock = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        clock.time += 30.0
        app.tick()
        for key in ("s", "x", "i", "L"):
            await pilot.press(key)
        assert len(app.screen_stack) == 2, "a box that asks was opened"
        refusal = source.send(cmd.KillWorker(worker="w1"))
        assert refusal is not None and "recording" in refusal
        await pilot.press("q")
    assert app.return_value is not None and app.return_value.why == "quit"


@on_loop
async def test_the_past_of_a_simulation_and_back() -> None:
    app, source, clock = simulating()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        clock.time += 4.0
        app.tick()
        records = app.model.records
        await pilot.press("comma", "comma")
        assert source.in_past and app.model.records == records - 2
        assert "PAST: event" in screen_text(app)
        await pilot.press("s")
        assert "past" in said(app), "what is past can't be stalled"
        await pilot.press("L")
        assert not source.in_past and app.model.records >= records
        await pilot.press("space")
        clock.time += 0.25
        app.tick()
        assert source.now() == pytest.approx(4.25, abs=0.1)
        await pilot.press("n")
        assert source.halted and "LAPSED" in said(app)
        await pilot.press("R")
        assert app.model.lapses == 0 and source.starts == 2


@on_loop
async def test_a_live_job_is_paused_at_such_a_moment_and_once() -> None:
    log = play(faults=[Fault("w2", 40, 30)])
    player = Player(log)
    app = ConsoleApp(
        player,
        refresh_hz=1e-6,
        exit_when_done=False,
        presentation=Presentation(pause_on=frozenset(("lapse", "refusal"))),
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        player.time = log[-1].at - 0.5
        app.tick()
        assert [type(command) for command in player.commands] == [cmd.Pause]
        assert "Paused: w2 LAPSED" in said(app)
        player.add(ev.JobPaused(), ev.ClaimRefused(worker="w2", asked="deliver", token="c1#1@e1", reason="x"))
        app.tick()
        assert len(player.commands) == 1, "it is paused already"
        player.add(ev.JobResumed(seconds=1.0))
        app.tick()
        player.add(ev.ClaimRefused(worker="w2", asked="deliver", token="c1#1@e1", reason="x"))
        app.tick()
        assert len(player.commands) == 2


@on_loop
async def test_the_help_and_the_palette_know_these_keys() -> None:
    app, source, _ = replaying()
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        source.halt(True)
        words = {command.words for command in key_commands(app.screen)}
        assert {"to the event before", "back in time", "begin anew"} <= words
        assert "kill the worker" not in words and "to the present" not in words
        await pilot.press("question_mark")
        await pilot.pause()
        assert "back by one event" in screen_text(app) and "begin anew" in screen_text(app)


@on_loop
async def test_capital_r_ends_a_live_demo_for_another_one() -> None:
    for can_restart in (True, False):
        player = Player(RECORDS)
        player.time = 30.0
        presentation = Presentation(can_restart=can_restart)
        app = ConsoleApp(player, refresh_hz=1e-6, exit_when_done=False, presentation=presentation)
        async with app.run_test(size=(80, 24)) as pilot:
            await ready(pilot)
            await pilot.press("R")
            stopped = [command for command in player.commands if isinstance(command, cmd.StopNow)]
            assert len(stopped) == can_restart, "a job that is no demo is not stopped by a slip of the hand"
        assert (app.return_value is not None and app.return_value.why == "restart") == can_restart


@on_loop
async def test_a_live_demo_that_failed_doesn_t_loop() -> None:
    for exit_code, outcome in ((0, "restart"), (5, "ended")):
        player = Player(
            [*RECORDS[:-1], ev.Record(999, 135.0, ev.RunFinished(exit_code=exit_code, outcome="x"))]
        )
        player.time = 200.0
        presentation = Presentation(can_restart=True, loop=True)
        app = ConsoleApp(player, refresh_hz=1e-6, presentation=presentation)
        async with app.run_test(size=(80, 24)) as pilot:
            await ready(pilot)
            app._after_end()
            await pilot.pause()
        assert app.return_value is not None and app.return_value.why == outcome


# --- captions --------------------------------------------------------------------------------------------


@on_loop
async def test_captions_are_shown_skipped_and_found_again_by_a_jump() -> None:
    app, source, clock = replaying(presentation=Presentation(captions=CAPTIONS))
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        clock.time += 1.0
        app.tick()
        await pilot.pause()
        assert app.live.caption_bar.display and "It begins." in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert not app.live.caption_bar.display and "It begins." not in screen_text(app)
        assert len(app.screen_stack) == 2, "enter was the caption's"
        await pilot.press("enter")
        assert len(app.screen_stack) == 3, "and is the screen's again"
        await pilot.press("escape", "n", "n", "n")
        lapse = kinds_of(RECORDS, "lapse")[0]
        source.seek(RECORDS[lapse].at)
        app.action_scrub(0)
        assert app.caption == "A lease ran out."
        await pilot.press("escape")
        assert app.caption is None
        await pilot.press("g")
        app.tick()
        assert app.caption is None or app.caption == "It begins."


@on_loop
async def test_what_came_due_at_the_end_can_be_read_and_then_it_loops() -> None:
    captions = (Caption(text="That was it.", when=AtMoment("finish"), seconds=3.0),)
    app, source, clock = replaying(presentation=Presentation(captions=captions, loop=True))
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        clock.time += 1e4
        app.tick()
        app.tick()
        assert app.ended and app.caption == "That was it."
        app._after_end()
        assert app.ended, "somebody is reading"
        clock.time += 3.1
        assert app.caption is None
        app._after_end()
        assert not app.ended and source.position < 30


@pytest.mark.parametrize("width", [10, 40, 76, 80, 120])
def test_a_caption_keeps_to_its_lines(width: int) -> None:
    text = "宽字符 " + "word " * 60 + "x" * 300
    for height in (5, 10, 24):
        rows = caption_rows(text, width, height, Look())
        assert len(rows) <= (3 if width >= 76 else 6)
        assert rows[-1].text.endswith("…")
    short = "All the words of a caption of two hundred characters " * 3
    assert "…" not in "".join(row.text for row in caption_rows(short[:200], 80, 24, Look()))


# --- the bar ---------------------------------------------------------------------------------------------


def test_ticks_stand_where_claims_lapsed_and_workers_died() -> None:
    log = Log(RECORDS)
    ticks = dict(ticks_of(log))
    lapse, loss = (kinds_of(RECORDS, kind)[0] for kind in ("lapse", "loss"))
    for index, mark in ((lapse, Mark.LAPSED), (loss, Mark.FAILED)):
        assert ticks[int(log.times[index] / log.ends_at * 1000)] is mark


@pytest.mark.parametrize("look", [Look(), Look(symbols=True), Look(ascii_only=True, symbols=True)])
@pytest.mark.parametrize("width", [1, 10, 40, 80, 300])
def test_the_bar_is_as_wide_as_it_may_be(look: Look, width: int) -> None:
    row = ReplayRow(0.25, ticks_of(Log(RECORDS)), ("event 8,120 of 14,210   n N: any", "event", "1/2"))
    strip = draw_replay(row, width, look)
    assert strip.cell_length == width
    if width >= 80:
        text = "".join(segment.text for segment in strip)
        assert "!" in text and "x" in text
        assert not look.ascii_only or text.isascii()


@on_loop
async def test_every_size_while_it_plays_to_and_fro() -> None:
    app, _, clock = replaying(presentation=Presentation(captions=CAPTIONS))
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        sizes = [Size(40, 10), Size(300, 80), Size(80, 24), Size(41, 11), Size(120, 40), Size(60, 16)]
        for number, size in enumerate(sizes):
            await pilot.resize_terminal(*size)
            await wait_for(pilot, lambda size=size: app.screen.size == size, "the new size")  # type: ignore[misc]
            clock.time += 20.0
            app.tick()
            await pilot.press(*(("n", "1") if number % 2 else ("N", "3")))
            app.tick()
            await pilot.pause()
        assert app.is_running
    assert app.return_value is None and isinstance(app.live.head, Header)


# --- without the console ---------------------------------------------------------------------------------


def run(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    written = capfd.readouterr()
    return ended.value.code, written.out, written.err


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNEVEN_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "run.jsonl.gz"
    write_recording(RECORDS, path)
    return path


def test_plain_prints_the_log_in_words(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, recording, "--ui", "plain")
    assert (code, err) == (0, "")
    assert "w2     LAPSED" in out and "refused deliver: not claimant" in out
    _, later, _ = run(capfd, recording, "--ui", "plain", "--start-at", "1:00")
    assert out.endswith(later) and later.startswith("01:00")
    _, half, _ = run(capfd, recording, "--ui", "plain", "--start-at", "50%")
    assert out.endswith(half) and 0 < len(half) < len(out)


def test_plain_tells_the_captions_of_a_scenario(
    recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scenario = tmp_path / "s.toml"
    table = '[[caption]]\nwhen = "w2 lapses"\ntext = "Its lease ran out."\n'
    scenario.write_text(f"[[worker]]\ncount = 4\nfps = 30\n{table}")
    _, out, _ = run(capfd, recording, "--ui", "plain", "--scenario", scenario)
    lines = out.splitlines()
    told = next(n for n, line in enumerate(lines) if ">> Its lease ran out." in line)
    assert "LAPSED" in lines[told + 1]
    _, out, _ = run(capfd, recording, "--ui", "plain", "--scenario", scenario, "--no-captions")
    assert ">>" not in out


def test_a_scenario_is_simulated_with_its_captions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "s.toml"
    fault = '[[fault]]\ndo = "stall"\non = "w2"\nat = 3\nfor = 60\n'
    caption = '[[caption]]\nwhen = "w2 lapses"\ntext = "Its lease ran out."\n'
    scenario.write_text(f"[job]\nframes = 2400\n[[worker]]\ncount = 2\nfps = 30\n{fault}{caption}")
    for command in (["simulate", "--scenario"], ["demo", "--simulate"]):
        with pytest.raises(SystemExit) as ended:
            cli.main([*command, str(scenario), "--ui", "plain"])
        assert ended.value.code == 0
        assert ">> Its lease ran out." in capfd.readouterr().out
        with pytest.raises(SystemExit):
            cli.main([*command, str(scenario), "--ui", "plain", "--no-captions"])
        assert ">>" not in capfd.readouterr().out


def test_json_gives_the_records_back(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, recording, "--ui", "json")
    assert code == 0
    assert [ev.decode_record(line.encode()) for line in out.splitlines()] == RECORDS


def test_none_only_reads_it(recording: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, recording, "--ui", "none") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--start-at", "99:59"), "the recording ends at"),
        (("--start-at", "noon"), "give seconds"),
        (("--speed", "0"), "--speed 0"),
        (("--pause-on", "lapse"), "use --ui tui"),
        (("--scenario", "nowhere.toml"), "can't read it"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    recording: Path, arguments: tuple[str, ...], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capfd, recording, "--ui", "plain", *arguments)
    assert (code, out) == (ExitCode.USAGE, "") and says in err and err.count("\n") == 1


def test_a_recording_that_is_damaged_or_empty_is_said(
    recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = recording.read_bytes()
    recording.write_bytes(whole[: len(whole) // 2])
    code, out, err = run(capfd, recording, "--ui", "plain")
    assert (code, out) == (ExitCode.INPUT, "") and "damaged" in err
    write_recording([], recording)
    code, _, err = run(capfd, recording, "--ui", "plain")
    assert code == ExitCode.INPUT and "empty" in err
    with gzip.open(recording, "wb") as file:
        file.write(b"{}\n")
    code, _, err = run(capfd, recording, "--ui", "json")
    assert code == ExitCode.INPUT and "not a recording" in err
    code, _, err = run(capfd, "last", "--ui", "plain")
    assert code == ExitCode.USAGE and "no run is known yet" in err
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl.gz"], "looking makes nothing"
