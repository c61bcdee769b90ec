"""An earlier start's records are told a piece at a time, and plain output says nothing of them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

from console.model import Model
from console.plain import PlainReporter
from farm import events as ev
from farm.eventlog import publish_history
from farm.journal import Journal
from tests.console.story import Story
from tests.console.test_plain import HandClock


def journalled(path: Path, records: int) -> Journal:
    journal = Journal.create(path)
    notices = (ev.Notice(level="warning", text=f"number {n}") for n in range(records))
    journal.append([ev.Record(seq, 0.0, notice) for seq, notice in enumerate(notices)])
    return journal


def test_no_more_of_a_history_waits_than_a_console_can_take(tmp_path: Path) -> None:
    journal = journalled(tmp_path / "journal.db", 12_000)
    waiting: list[ev.Record] = []
    taken: list[ev.Record] = []
    most = 0

    async def console() -> None:
        nonlocal most
        while True:
            most = max(most, len(waiting))
            taken.extend(waiting[:700])
            del waiting[:700]
            await asyncio.sleep(0)

    async def tell() -> None:
        beside = asyncio.create_task(console())
        await publish_history(journal, waiting.extend, lambda: len(waiting))
        beside.cancel()

    asyncio.run(tell())
    journal.close()
    assert [record.seq for record in (*taken, *waiting)] == list(range(12_000))
    assert most <= 5_000


def test_plain_output_begins_with_the_present_start_however_the_past_arrives() -> None:
    """RG16: the first status line has the share that was reached before."""
    story = Story(frames=192, part=48)
    story.join("w1", 24.0)
    story.grant("w1", 0, 4)
    story.at(2.0).credit("c0#1@e1", 0)
    story.credit("c0#1@e1", 1)
    story.add(ev.Notice(level="warning", text="of the past"))
    history = [ev.Record(seq, record.at, record.event) for seq, record in enumerate(story.records)]
    stream, clock, model = io.StringIO(), HandClock(), Model("live")
    reporter = PlainReporter(stream, clock=clock, told_from=len(history), every_seconds=1.0)
    for record in history:
        clock.seconds += 10.0
        model.fold(record)
        reporter.update(model, [record], record.at)
    assert stream.getvalue() == ""
    restart = ev.Record(len(history), 3.0, ev.RelayStarted(epoch=2))
    model.fold(restart)
    reporter.update(model, [restart], 3.0)
    lines = stream.getvalue().splitlines()
    assert "relay started again, epoch 2" in lines[0]
    assert "resumed: 96 of 192 frames (50.0 %) are credited already" in lines[1]
    assert "96 of 192 frames" in lines[2]
