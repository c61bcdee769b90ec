"""Show a live run until it ends, on whatever the user has: the console, plain lines, JSON, or nothing; and
turn signals into a drain.

Rules of this file:
- textual is imported here only when the console is really opened;
- progress goes to standard error, results (JSON lines) to standard output;
- the first Ctrl-C drains, a second one stops at once; SIGTERM and SIGHUP drain for a bounded time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from console import text
from console.jsonl import JsonReporter
from console.model import Model
from console.plain import PlainReporter
from console.presentation import NOTHING_MORE, Presentation
from console.streams import Stream, tell
from console.summary import RunSummary, render_text, summarize
from console.suspend import StopKey
from console.terminal import SignalBox, Ui
from farm.captions import Reel
from farm.clock import MonotonicClock
from farm.commands import Drain, StopNow
from farm.errors import ExitCode
from farm.events import Record
from farm.fleet import WorkerProfile

if TYPE_CHECKING:  # what runs a job is loaded when there is one
    from farm.job import JobResult
    from farm.live import LiveRun

#: How often plain and JSON output look for news while there is none.
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """How a run is shown."""

    ui: Ui
    quiet: bool = False
    refresh_hz: float = 10.0
    readonly: bool = False
    ascii_only: bool = False
    stay: bool = False  #: leave the console open after the end
    drain_timeout_seconds: float = 30.0
    presentation: Presentation = NOTHING_MORE


class Restart(Exception):
    """The user wants the run to begin anew; it has ended."""


class Reporter(Protocol):
    def update(self, model: Model, records: Sequence[Record], now: float) -> None: ...

    def finish(self, summary: RunSummary) -> None: ...


class NoReporter:
    """``--ui none``."""

    def update(self, model: Model, records: Sequence[Record], now: float) -> None:
        pass

    def finish(self, summary: RunSummary) -> None:
        pass


class _Stopper:
    """Signals to commands. ``patience``: when to stop at once after a signal that waits for nobody."""

    def __init__(
        self, live: LiveRun, signals: SignalBox, say: Callable[[str], None], drain_timeout_seconds: float
    ) -> None:
        self._live = live
        self._signals = signals
        self._say = say
        self._timeout = drain_timeout_seconds
        self._asked = 0
        self._deadline: float | None = None

    def act(self) -> None:
        """Carry out what signals asked for; call often."""
        while (number := self._signals.take()) is not None:
            self._ask(number)
        # Lease time: what this process was itself stopped for is not held against the workers.
        if self._deadline is not None and self._live.now() >= self._deadline:
            self._deadline = None
            self._say("The time to drain is over: stopping at once.")
            self._live.send(StopNow(by="signal", reason="the time to drain is over"))

    def _ask(self, number: signal.Signals) -> None:
        self._asked += 1
        if self._asked == 1:
            limit = None if number is signal.SIGINT else self._timeout
            bound = "Ctrl-C again stops at once." if limit is None else f"{limit:g} s are left for that."
            self._say(f"Draining: parts in progress are finished and kept. {bound}")
            self._live.send(Drain(by="signal", reason=number.name, limit_seconds=limit))
            if limit is not None:
                self._deadline = self._live.now() + limit
        elif number is signal.SIGINT or self._asked > 2:
            self._say("Stopping at once: what is credited is kept.")
            self._live.send(StopNow(by="signal", reason=number.name))


def show(live: LiveRun, options: ShowOptions, fleet: Sequence[WorkerProfile]) -> tuple[JobResult, RunSummary]:
    """Show the run until it ends; returns how it did, and its summary.

    From here on ending signals are remembered and no more: after the run there is nothing left to stop.
    Raises Restart, once the run has ended, if the user asked for that.
    """
    model = Model("live")
    signals = SignalBox()
    signals.install()
    stop_key = StopKey()
    stop_key.install()
    stopper = _Stopper(live, signals, _say, options.drain_timeout_seconds)
    live.start()
    restart = False
    if options.ui == "tui":
        restart = _open_console(live, options, model, signals)
        stop_key.install()
    closed_by_signal = options.ui == "tui" and signals.first is not None
    reporter = make_reporter(
        options, after_console=options.ui == "tui", draining=closed_by_signal, told_from=live.history
    )
    if restart:
        reporter = NoReporter()  # how this one ends is of no interest
    _report(live, model, reporter, stopper)
    if restart and signals.first is None:
        signals.remove()
        raise Restart
    summary = summarize(model, fleet)
    if options.ui == "tui":
        tell(render_text(summary, terminal_width() or 100))
    else:
        reporter.finish(summary)
    assert live.result is not None
    result = live.result
    if (
        isinstance(reporter, JsonReporter)
        and reporter.error is not None
        and result.exit_code is ExitCode.DONE
    ):
        sentence = (
            f"the JSON could not be written to standard output: {reporter.error}; the output is in place"
        )
        result = replace(result, exit_code=ExitCode.OUTPUT, message=sentence)
    return result, summary


def _open_console(live: LiveRun, options: ShowOptions, model: Model, signals: SignalBox) -> bool:
    """The console until it closes. A signal closes it, or keeps it from opening, and stays in ``signals``.
    True: the run is to begin anew."""
    from console.app import ConsoleApp

    if signals.first is not None:
        return False

    app = ConsoleApp(
        live,
        refresh_hz=options.refresh_hz,
        readonly=options.readonly,
        ascii_only=options.ascii_only,
        exit_when_done=not options.stay,
        signals=signals,
        presentation=options.presentation,
    )
    app.model = model
    outcome = app.run()
    if outcome is None and not live.ended:
        _say("The console failed; the run goes on.")
    return outcome is not None and outcome.why == "restart"


def _report(live: LiveRun, model: Model, reporter: Reporter, stopper: _Stopper) -> None:
    while True:
        stopper.act()
        ended = live.ended
        records = live.take()
        for record in records:
            model.fold(record)
        reporter.update(model, records, max(live.now(), model.at))
        if ended:
            return
        live.wait_news(_POLL_SECONDS)


def make_reporter(options: ShowOptions, *, after_console: bool, draining: bool, told_from: int) -> Reporter:
    if options.ui == "json":
        return JsonReporter(cast("Stream[bytes]", sys.stdout.buffer))
    if options.ui == "none":
        return NoReporter()
    color = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return PlainReporter(
        sys.stderr,
        clock=MonotonicClock(),
        width=terminal_width(),
        color=color,
        quiet=options.quiet or (after_console and not draining),
        told_from=told_from,
        reel=Reel(options.presentation.captions) if not after_console else None,
        **_pace(),
    )


def _pace() -> dict[str, Any]:
    """On a terminal a person watches: a status line every second."""
    return {"every_seconds": 1.0} if sys.stderr.isatty() else {}


def terminal_width() -> int | None:
    """The terminal's width; None when standard error is none. One that says 0 doesn't know (expect, CI)."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return None


def _say(line: str) -> None:
    tell(text.safe(line))
