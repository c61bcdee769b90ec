"""Plain output, line by line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

from console.model import Model
from console.plain import LINES_MAX, PlainReporter, eta_text
from console.summary import summarize
from farm import events as ev
from tests.console.story import Fault, Story, play

ROOT = Path(__file__).parents[2]


class HandClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds


class Desk:
    """A reporter with its model, fed a record at a time as a live run would."""

    def __init__(self, stream: io.TextIOBase | None = None, **options: object) -> None:
        self.stream = stream or io.StringIO()
        self.clock = HandClock()
        self.model = Model()
        self.reporter = PlainReporter(self.stream, clock=self.clock, **options)  # type: ignore[arg-type]

    def tell(self, records: list[ev.Record], *, at_once: bool = False) -> None:
        batches = [records] if at_once else [[record] for record in records]
        for batch in batches:
            for record in batch:
                self.model.fold(record)
            self.clock.seconds = batch[-1].at
            self.reporter.update(self.model, batch, batch[-1].at)

    @property
    def text(self) -> str:
        assert isinstance(self.stream, io.StringIO)
        return self.stream.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def straggler() -> Story:
    """w3 stalls with a chunk, lapses, wakes and is refused; w1 does its part and is duplicated."""
    story = Story(frames=192, part=48)
    story.phase("work")
    story.join("w1", 24.0)
    story.join("w3", 24.0)
    story.grant("w1", 0, 2)
    late = story.grant("w3", 2, 4)
    story.at(2).beat("c0#1@e1", 48)
    story.beat(late, 144)
    story.at(2.5).credit("c0#1@e1", 0, render_seconds=2.0)
    story.at(4.5).credit("c0#1@e1", 1, render_seconds=2.0)
    story.at(4.5).park("w1")
    story.at(22).lapse(late)
    again = story.at(22).grant("w1", 2, 4)
    story.at(23).refuse("w3", late, holder="w1")
    story.at(24.5).credit(again, 2, render_seconds=2.0)
    story.at(26.5).credit(again, 3, render_seconds=2.0)
    story.finish(makespan_seconds=26.5)
    return story


def test_a_straggler_s_story_in_plain_lines() -> None:
    desk = Desk()
    desk.tell(straggler().records)
    assert desk.text == dedent("""\
        00:00.000  -      run r-7f3a: 192 frames in 4 parts
        00:00.000  -      relay started
        00:00.000  -      work: rendering
        00:22.000  w3     LAPSED c1#1@e1  no heartbeat for 20.0 s  (48 frames wasted)
        00:22.000   47 %  96 of 192 frames, 4.4 fps, ETA 8 s (5 s-24 s), 2 workers (1 stalled), 1 lapse
        00:23.000  w3     refused deliver: not claimant (c1#1@e1 lapsed: no heartbeat for 20.0 s; held by w1)
        00:26.500  -      work finished in 26.5 s: 192 frames credited
        00:26.500  -      stitch: joining the parts
        00:27.000  -      verify: checking the output
        00:27.000   95 %  verify 0 %
        00:27.500  -      done and verified
        """)


def test_status_lines_come_at_most_every_so_often_and_only_grow() -> None:
    desk = Desk(every_seconds=10.0)
    desk.tell(play(faults=[Fault("w2", 60)]))
    status = [line for line in desk.lines if " % " in line]
    times = [int(line[:2]) * 60 + float(line[3:9]) for line in status]
    assert len(times) >= 8
    assert all(later - earlier >= 10.0 for earlier, later in pairwise(times))
    percents = [int(line[10:].split("%")[0]) for line in status]
    assert percents == sorted(percents)
    assert percents[-1] <= 100


def test_lines_hold_no_escape_and_no_cursor_movement_unless_colour_is_asked_for() -> None:
    """RG52: the stream need not be a terminal. RG51: one writer, whole lines, whatever the fleet."""
    records = play((6,) * 8, frames=960, faults=[Fault("w1", 10, 40)])
    plain, coloured = Desk(), Desk(color=True)
    plain.tell(records)
    coloured.tell(records)
    assert plain.text.endswith("\n")
    assert all(line.isprintable() for line in plain.lines)
    assert "\x1b[33m" in coloured.text
    assert "\r" not in coloured.text
    bare = coloured.text
    for code in ("1", "2", "31", "33", "0"):
        bare = bare.replace(f"\x1b[{code}m", "")
    assert bare == plain.text


def test_a_resumed_run_says_its_share_of_the_same_total_first() -> None:
    """RG16: killed at about half, the first status line after the resume starts there."""
    story = Story(frames=480, part=48)
    story.phase("work")
    story.join("w1")
    token = story.grant("w1", 0, 10)
    for part in range(5):
        story.at(part + 1).credit(token, part, render_seconds=1.0)
    story.at(6).start()
    story.phase("work")
    desk = Desk()
    desk.tell(story.records, at_once=True)
    assert desk.lines == [
        "00:06.000  -      relay started again, epoch 2",
        "00:06.000  -      work: rendering",
        "00:06.000  -      resumed: 240 of 480 frames (50.0 %) are credited already",
        "00:06.000   47 %  240 of 480 frames, 0.0 fps, ETA unknown, no worker is left",
    ]


def test_a_retry_is_a_warning_and_giving_up_is_an_error() -> None:
    """RG19. A part with a frame too few is tried again: a warning, and its frames don't count. The last time
    it is an error."""
    story = Story(frames=96, part=48)
    story.phase("work")
    story.join("w1")
    for number in (1, 2):
        token = story.at(number).grant("w1", 0, 1)
        story.fail(token, 0, number, "47 frames came back where the plan has 48")
    story.put_aside(0)
    desk = Desk(color=True, quiet=True)
    desk.tell(story.records)
    assert [line[:5] for line in desk.lines] == ["\x1b[33m", "\x1b[33m", "\x1b[31m"]
    assert "part 0 failed, try 1 (encoder): 47 frames came back" in desk.lines[0]
    assert "part 0 SET ASIDE" in desk.lines[2]
    assert desk.model.credited_frames == 0


def test_quiet_tells_warnings_only() -> None:
    desk = Desk(quiet=True)
    desk.tell(straggler().records)
    assert [line[11:13] for line in desk.lines] == ["w3", "w3"]
    desk.reporter.finish(summarize(desk.model))
    assert len(desk.lines) == 2

    failed = Desk(quiet=True)
    story = Story(frames=96, part=48)
    story.put_aside(0)
    story.finish(exit_code=5)
    failed.tell(story.records)
    failed.reporter.finish(summarize(failed.model))
    assert "finished incomplete: nightfall.out.mp4, 12.3 MB" in failed.lines


def test_a_flood_is_cut_and_says_so() -> None:
    story = Story()
    story.join("w1")
    for n in range(LINES_MAX * 3):
        story.at(n / 1000).refuse("w1", "c0#1@e1")
    desk = Desk()
    desk.tell(story.records)
    refused = [line for line in desk.lines if "refused" in line]
    before = len(desk.lines) - len(refused)
    assert len(desk.lines) == LINES_MAX
    desk.reporter.status(desk.model, 1.0)
    assert desk.lines[LINES_MAX].strip() == f"{LINES_MAX * 3 + before - LINES_MAX} more lines not shown"


def test_paused_draining_and_other_phases_are_said() -> None:
    story = Story(frames=96, part=48)
    story.phase("probe")
    story.add(ev.PhaseProgressed(phase="probe", fraction=0.25))
    desk = Desk()
    desk.tell(story.records)
    desk.reporter.status(desk.model, 1.0)
    assert desk.lines[-1] == "00:01.000    0 %  probe 25 %"

    seen = len(story.records)
    story.phase("work")
    story.join("w1")
    story.at(2).add(ev.JobPaused())
    story.add(ev.DrainStarted(reason="asked to stop"))
    desk.tell(story.records[seen:])
    desk.reporter.status(desk.model, 12.0)
    assert desk.lines[-1] == "00:12.000    4 %  0 of 96 frames, paused for 10 s, 1 worker, draining"


def test_lines_are_cut_to_a_terminal_s_width() -> None:
    desk = Desk(width=40)
    desk.tell(straggler().records)
    desk.reporter.finish(summarize(desk.model))
    whole = [line for line in desk.lines if len(line) > 40]
    assert whole == ["packets sha256  " + "9f3c" * 16]
    assert max(len(line) for line in desk.lines if line not in whole) == 40


def test_a_stream_with_a_small_character_set_is_no_error() -> None:
    raw = io.BytesIO()
    desk = Desk(io.TextIOWrapper(raw, encoding="ascii", newline="\n"), width=30)
    desk.tell([ev.Record(0, 0.0, ev.Notice(level="warning", text="映画 is long enough to be cut"))])
    assert raw.getvalue() == b"00:00.000  -      ?? is lon?\n"


def test_a_reader_that_left_ends_the_output_and_nothing_else() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        desk = Desk(stream)
        desk.tell(straggler().records)
        assert desk.reporter.reader_left
    assert desk.model.progress() == 1.0


def test_head_ends_the_pipe_without_a_word() -> None:
    """The interpreter's own last flush must stay silent too."""
    code = dedent("""
        import sys
        from tests.console.test_plain import Desk, straggler
        desk = Desk(sys.stdout)
        for _ in range(2000):
            desk.tell(straggler().records)
    """)
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert writer.stdout is not None and writer.stderr is not None
    assert "run r-7f3a" in writer.stdout.readline()
    writer.stdout.close()
    assert (writer.wait(timeout=60), writer.stderr.read()) == (0, "")
    writer.stderr.close()


def test_eta_text() -> None:
    from console.forecast import Forecast

    assert eta_text(None) == "unknown"
    assert eta_text(Forecast(101.0, 118.0, 140.2)) == "1:58 (1:41-2:20)"
    assert eta_text(Forecast(7.1, 7.2, 7.3)) == "7 s"
