"""The run as plain lines, for logs, pipes and people without a full terminal.

Rules of this file:
- one writer, whole lines, one line end; never a carriage return or a cursor movement. Colour only where
  asked for, and only as emphasis of a line that says the same in words;
- what matters is said at once (lapse, refusal, duplicate, failure, lost worker, phase, notice); the rest is
  in the status line, at most one each ``every_seconds``;
- nothing is cut without saying so: beyond ``LINES_MAX`` lines between two status lines, the number of lines
  not shown is;
- the share done is always one of the whole job, also after a resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TextIO

from console import text
from console.draining import drain_text
from console.forecast import Forecast
from console.model import Model
from console.streams import pour
from console.summary import RunSummary, render_text
from console.wording import IMPORTANT, WARNINGS, EventLine, LineKind, describe
from farm.captions import Reel, Shown
from farm.clock import Clock
from farm.events import Record, RelayStarted

STATUS_SECONDS: Final = 5.0
#: Event lines between two status lines.
LINES_MAX: Final = 50

_BOLD, _YELLOW, _RED, _DIM, _RESET = "\x1b[1m", "\x1b[33m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
_STYLES: Final[dict[LineKind, str]] = {
    "phase": _BOLD,
    "run": _BOLD,
    "warning": _YELLOW,
    "lapse": _YELLOW,
    "refusal": _YELLOW,
    "failure": _YELLOW,
    "lost": _RED,
    "error": _RED,
    "set aside": _RED,
}
_WORKER_CELLS: Final = 5


class PlainReporter:
    """Writes to one text stream.

    ``clock`` paces the status lines; ``width`` cuts lines to a terminal's width (None: never);
    ``quiet``: only warnings, and the summary of a run that did not end well; ``told_from``: number of the
    first record that isn't from an earlier start of the run; ``reel``: captions, told as they come due.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        clock: Clock,
        width: int | None = None,
        color: bool = False,
        quiet: bool = False,
        told_from: int = 0,
        every_seconds: float = STATUS_SECONDS,
        reel: Reel | None = None,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._width = width
        self._color = color
        self._quiet = quiet
        self._told_from = told_from
        self._reel = reel
        self._seen = -1
        self._every = every_seconds
        self._status_at = clock.now()
        self._shown = 0
        self._hidden = 0
        self._resumed = False
        self.reader_left = False

    def update(self, model: Model, records: Sequence[Record], now: float) -> None:
        """Tell what is new. ``model`` has folded ``records`` already; ``now`` is lease time in seconds.

        Of a log that begins with earlier starts of the relay, only the last start is told.
        """
        self._captions(records, now)
        for record in records[_history(records) :]:
            if 0 <= record.seq < self._told_from:
                continue
            if isinstance(record.event, RelayStarted) and record.event.epoch > 1:
                self._resumed = True
            line = describe(record.at, record.event)
            if line is not None:
                self._event(line)
        if self._resumed and model.frames:
            self._resumed = False
            self._resume(model, now)
        if records and records[-1].seq >= 0:
            self._seen = records[-1].seq
        if self._told_from and self._seen < self._told_from:
            return  # what a part of the past comes to is not how things stand
        if model.finish is None and self._clock.now() - self._status_at >= self._every:
            self.status(model, now)

    def _captions(self, records: Sequence[Record], now: float) -> None:
        """Those that come due, before what else is told: they say what to look at."""
        if self._reel is None:
            return
        for record in records:
            self._reel.see(record)
            if 0 <= record.seq < self._told_from:
                self._reel.take_due(record.at)  # long ago
        for shown in self._reel.take_due(now):
            if not self._quiet:
                self._write(caption_text(shown), _BOLD, whole=True)

    def status(self, model: Model, now: float) -> None:
        """A status line now, whenever the last one was."""
        self._status_at = self._clock.now()
        if self._hidden and not self._quiet:
            self._write(f"{'':9}  {'':{_WORKER_CELLS}}  {text.plural(self._hidden, 'more line')} not shown")
        self._shown = self._hidden = 0
        if not self._quiet:
            self._write(status_line(model, now), _DIM)

    def finish(self, summary: RunSummary) -> None:
        """The summary, at the end."""
        if not self._quiet or summary.exit_code != 0:
            self._write("")
            for line in render_text(summary, self._width or 100).split("\n"):
                self._write(line, whole=True)

    def _resume(self, model: Model, now: float) -> None:
        done = f"{text.count(model.credited_frames)} of {text.count(model.target_frames)} frames"
        share = text.share(model.credited_frames, model.target_frames)
        self._event(EventLine(now, "", "run", f"resumed: {done} ({share}) are credited already"))
        self.status(model, now)

    def _event(self, line: EventLine) -> None:
        if line.kind not in (WARNINGS if self._quiet else IMPORTANT):
            return
        if self._shown >= LINES_MAX:
            self._hidden += 1
            return
        self._shown += 1
        self._write(event_text(line), _STYLES.get(line.kind, ""))

    def _write(self, line: str, style: str = "", *, whole: bool = False) -> None:
        """``whole``: the line is as long as it has to be."""
        if self.reader_left:
            return
        if self._width is not None and not whole:
            line = text.fit(line, self._width)
        line = _encodable(line, self._stream)
        if style and self._color:
            line = f"{style}{line}{_RESET}"
        self.reader_left = not pour(self._stream, line + "\n")


def _history(records: Sequence[Record]) -> int:
    """Where the present start of the relay begins; 0 when the run has had no other."""
    resumes = (
        index
        for index in range(len(records) - 1, -1, -1)
        if isinstance(event := records[index].event, RelayStarted) and event.epoch > 1
    )
    return next(resumes, 0)


def _encodable(line: str, stream: TextIO) -> str:
    """What a terminal with a small character set can't show becomes ``?`` and is no error."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return line.encode(encoding, "replace").decode(encoding)


def event_text(line: EventLine) -> str:
    """``03:10.770  w3     LAPSED c7#1@e1  no heartbeat for 20.0 s``."""
    worker = text.pad(line.worker or "-", max(_WORKER_CELLS, text.width(line.worker)))
    return f"{text.moment(line.at):>9}  {worker}  {line.text}"


def caption_text(shown: Shown) -> str:
    """``03:10.770         >> Its lease ran out.``"""
    return f"{text.moment(shown.due_at):>9}  {'':{_WORKER_CELLS}}  >> {text.safe(shown.caption.text)}"


def status_line(model: Model, now: float) -> str:
    """``03:12.401   61 %  2,928 of 4,800 frames, 74.0 fps, ETA 27 s (25 s-31 s), 4 workers``.

    The percentage is the whole job's, stitch and verify included; the frames are those credited."""
    percent = f"{int(100 * model.progress())} %"
    return f"{text.moment(now):>9}  {percent:>{_WORKER_CELLS}}  {', '.join(_facts(model, now))}"


def _facts(model: Model, now: float) -> list[str]:
    facts = []
    if model.phase not in (None, "work"):
        facts.append(f"{model.phase} {int(100 * model.phase_fraction)} %")
        return facts
    whole = " of the sample" if model.sample is not None else ""
    facts.append(f"{text.count(model.credited_frames)} of {text.count(model.target_frames)} frames{whole}")
    if model.paused:
        facts.append(f"paused for {text.duration(model.paused_seconds(now))}")
    else:
        facts.append(f"{model.fps(now):.1f} fps")
        if model.drain_reason is None:
            facts.append(f"ETA {eta_text(model.eta(now))}")
    if deliveries := model.deliveries:
        done, of = sum(part.done for part in deliveries), sum(part.of for part in deliveries)
        rendered = text.plural(model.rendered_frames, "frame")
        parts = text.plural(len(deliveries), "part")
        facts.append(f"{rendered} rendered ahead, delivering {parts}: {text.blocks(done, of)}")
    alive = [worker for worker in model.workers.values() if not worker.is_gone]
    stalled = sum(worker.state == "stalled" for worker in alive)
    facts.append(text.plural(len(alive), "worker") if alive else "no worker is left")
    if stalled:
        facts[-1] += f" ({stalled} stalled)"
    if model.drain_reason is not None:
        facts.append(drain_text(model, now))
    if model.held:
        facts.append("nothing more is granted for want of memory")
    for number, noun in ((model.lapses, "lapse"), (model.failures, "failure")):
        if number:
            facts.append(text.plural(number, noun))
    if model.set_aside_frames:
        facts.append(f"{text.plural(model.set_aside_frames, 'frame')} set aside")
    return facts


def eta_text(forecast: Forecast | None) -> str:
    """``1:58 (1:41-2:20)``; the range is left out where both ends read the same."""
    if forecast is None:
        return text.UNKNOWN
    low, mid, high = map(text.about, forecast)
    return mid if low == high else f"{mid} ({low}-{high})"
