"""The run as JSON lines, for scripts: every record as it is journalled, then one line with the summary.

Rules of this file:
- a line is a whole JSON object and is flushed at once;
- a record's line is ``farm.events.encode_record``, so that the output can be read back as a recording;
- a reader that went away ends the output, not the run.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from console.model import Model
from console.streams import Stream, attempt, cause
from console.summary import RunSummary
from farm.events import Record, encode_record


class JsonReporter:
    """Writes to one binary stream; the only writer to it."""

    def __init__(self, stream: Stream[bytes]) -> None:
        self._stream = stream
        self.reader_left = False
        self.error: str | None = None  #: why lines were lost, unless the reader left of its own

    def update(self, model: Model, records: Iterable[Record], now: float) -> None:
        """Write the records; ``model`` and ``now`` (lease seconds) are there for other reporters."""
        self._write(b"".join(encode_record(record) + b"\n" for record in records))

    def finish(self, summary: RunSummary) -> None:
        """The last line: ``{"summary": {...}}``."""
        self._write(msgspec.json.encode({"summary": summary}) + b"\n")

    def _write(self, lines: bytes) -> None:
        if lines and not self.reader_left:
            lost = attempt(self._stream, lines)
            self.reader_left = lost is not None
            if lost is not None and not isinstance(lost, BrokenPipeError):
                self.error = cause(lost)
