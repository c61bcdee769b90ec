"""The vocabulary of events: whatever is an event can be written down and read again by its name."""

from __future__ import annotations

import inspect
import typing

from farm import events as ev


def test_every_event_is_one_that_a_journal_can_be_read_with() -> None:
    """An event that is missing in its family's union would be written, and never be read again."""
    written = {kind for _, kind in inspect.getmembers(ev, inspect.isclass) if issubclass(kind, ev.Event)}
    assert written - {ev.Event} == set(typing.get_args(ev.AnyEvent))


def test_an_event_is_told_by_its_name_wherever_it_stands() -> None:
    """A recording that was made before an event moved to another file is read as ever."""
    line = b'{"seq":3,"at":1.5,"event":{"event":"range_reopened","start":0,"stop":48,"chunk":2}}'
    record = ev.Record(3, 1.5, ev.RangeReopened(start=0, stop=48, chunk=2))
    assert ev.decode_record(line) == record
    assert ev.encode_record(record) == line
