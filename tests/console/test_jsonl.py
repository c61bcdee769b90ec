"""JSON lines: what is written can be read back, and ends with the summary."""

from __future__ import annotations

import io
import json
import os

from console.jsonl import JsonReporter
from console.model import Model
from console.summary import RunSummary, summarize
from farm import events as ev
from tests.console.story import Fault, play


def run(
    stream: io.RawIOBase | io.BufferedIOBase, records: list[ev.Record]
) -> tuple[JsonReporter, RunSummary]:
    model = Model()
    reporter = JsonReporter(stream)  # type: ignore[arg-type]
    for first in range(0, len(records), 7):
        batch = records[first : first + 7]
        for record in batch:
            model.fold(record)
        reporter.update(model, batch, batch[-1].at)
    summary = summarize(model)
    reporter.finish(summary)
    return reporter, summary


def test_every_record_is_a_line_and_the_summary_is_the_last() -> None:
    records = play(faults=[Fault("w1", 20, 30)])
    out = io.BytesIO()
    _, summary = run(out, records)
    *lines, last = out.getvalue().splitlines()
    assert [ev.decode_record(line) for line in lines] == records
    assert json.loads(last)["summary"]["credited_frames"] == 4800
    assert json.loads(last)["summary"]["lapses"] == summary.lapses == 1
    assert list(json.loads(last)) == ["summary"]


def test_nothing_new_writes_nothing() -> None:
    out = io.BytesIO()
    JsonReporter(out).update(Model(), [], 0.0)
    assert out.getvalue() == b""


def test_a_reader_that_left_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stream:
        reporter, summary = run(stream, play(frames=480))
        assert reporter.reader_left
    assert summary.credited_frames == 480
