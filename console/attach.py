"""``attach``, ``status``, ``stop`` and ``runs``: a run from another terminal than the one it was started in.

Rules of this file:
- leaving a view never touches the run, and says so; a signal that ends the view is no order to the run;
- a run that is over is told from its log, with the exit code it had;
- a run whose process is gone without a word is said to be gone, and how to go on with it.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from console import showoptions as show
from console.drive import ShowOptions, make_reporter, terminal_width
from console.finding import FoundRun, find_live, find_run, live_runs
from console.groups import grouped
from console.model import Model
from console.plain import PlainReporter
from console.status import RunStatus, status_line, status_of, status_text
from console.streams import give_line, tell
from console.summary import render_text, summarize
from console.terminal import SignalBox
from farm.attach.client import AttachedRun, Ending, NotListening
from farm.commands import Drain, StopNow
from farm.errors import ExitCode, OutputError, UnevenError, UsageError
from farm.events import Record
from farm.folder import holds_run
from farm.journal import RunCatalogue, RunEntry
from farm.paths import printable
from farm.sampling import SAMPLED

#: How long a status may take to read a run's log so far.
_CATCH_UP_SECONDS = 60.0
_POLL_SECONDS = 0.2
#: The journal of a run that has just ended is let go of within so long.
_LEFTOVER_SECONDS = 5.0

RunArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]", help="An id, an output, a run folder, or 'last'; else the one that is live."
    ),
]


@grouped
def attach(
    run: RunArgument = None,
    *,
    showing: show.Showing,
) -> int:
    """Look at a live run from this terminal, and control it. Leaving (q) ends the view, never the run.

    Ends with the run's exit code when the run ends meanwhile.
    """
    options = showing.options()
    found = find_run(run)
    source = _attached(found, showing.readonly)
    if source is None:
        return _tell_end(found)
    try:
        return _show(source, options, found)
    finally:
        source.close()


def status(
    run: RunArgument = None,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> int:
    """How a run stands at this moment. Without RUN: all that are live, a line each."""
    width = shutil.get_terminal_size((100, 24)).columns
    if run is None:
        looks = []
        for live in live_runs():
            with suppress(UnevenError):  # it has just ended
                looks.append(_look(live.found))
        if json:
            give_line(msgspec.json.encode([status for status, _, _ in looks]).decode())
        elif not looks:
            give_line("no run is live")
        else:
            give_line("\n".join(status_line(*look) for look in looks))
        return ExitCode.DONE
    stands, model, now = _look(find_run(run))
    give_line(msgspec.json.encode(stands).decode() if json else status_text(stands, model, now, width))
    return ExitCode.DONE


def stop(
    run: RunArgument = None,
    now: Annotated[bool, typer.Option("--now", help="At once: parts in progress are lost.")] = False,
) -> int:
    """End a live run: parts in progress are finished and kept, then it stops. It can be resumed."""
    found = find_live(run)
    source = _attached(found, readonly=False)
    if source is None:
        raise UsageError(f"the run {found.name} is not live: there is nothing to stop")
    try:
        asked = StopNow(by="uneven stop") if now else Drain(by="uneven stop")
        source.start()
        refusal = source.order(asked, _LEFTOVER_SECONDS)
    finally:
        source.close()
    if refusal:
        raise UsageError(f"the run {found.name} was not stopped: {refusal}")
    name = shlex.quote(found.name)
    give_line(
        f"{found.name} stops at once; what is credited is kept"
        if now
        else f"{found.name} drains: parts in progress are finished and kept; at once: "
        f"uneven stop {name} --now"
    )
    return ExitCode.DONE


def runs(
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> int:
    """The runs that are known, the newest first, and how each stands."""
    live = {run.welcome.run_id for run in live_runs()}
    known = [(entry, _standing(entry, entry.run_id in live)) for entry in RunCatalogue().entries()]
    if json:
        rows: list[dict[str, object]] = [
            {"run_id": e.run_id, "state": s, "started": e.started, "input": e.input, "output": e.output}
            | {"folder": e.folder, "exit_code": e.exit_code, "recording": e.recording}
            for e, s in known
        ]
        give_line(msgspec.json.encode(rows).decode())
        return ExitCode.DONE
    if not known:
        give_line("no run is known yet")
    for entry, standing in known:
        give_line(f"{entry.run_id:<20}  {standing:<10}  {entry.started:<25}  {printable(entry.output)}")
    return ExitCode.DONE


def _standing(entry: RunEntry, live: bool) -> str:
    if live:
        return "live"
    if entry.exit_code == ExitCode.DONE:
        return "sampled" if entry.outcome == SAMPLED else "done"
    if entry.folder and holds_run(Path(entry.folder)):
        return "resumable"
    return "gone" if entry.exit_code is None else "failed"


# --- following -------------------------------------------------------------------------------------------


def _attached(found: FoundRun, readonly: bool) -> AttachedRun | None:
    """The run, if it is live. Raises UnevenError."""
    try:
        return AttachedRun(found.socket, readonly=readonly, leftover=lambda first: _leftover(found, first))
    except NotListening:
        return None


def _leftover(found: FoundRun, first: int) -> Iterable[Record]:
    """The end of a log, of a run whose process is about to let go of it. Raises UnevenError."""
    until = time.monotonic() + _LEFTOVER_SECONDS
    while True:
        try:
            return [record for record in found.records() if record.seq >= first]
        except UnevenError:
            if time.monotonic() >= until:
                raise
            time.sleep(_POLL_SECONDS)


def _show(source: AttachedRun, showing: ShowOptions, found: FoundRun) -> int:
    model = Model("live")
    signals = SignalBox()
    signals.install()
    source.start()
    if showing.ui == "tui":
        failed = not _open_console(source, showing, model, signals)
        if signals.first is None and not source.ended:
            _leave(found, "The console failed. " if failed else "")
            return ExitCode.BUG if failed else ExitCode.DONE
    _follow(source, model, signals, showing)
    if source.ending is None:
        return _leave(found)
    return _tell_ending(source.ending, found, model, showing)


def _open_console(source: AttachedRun, showing: ShowOptions, model: Model, signals: SignalBox) -> bool:
    """The console until it closes; False: it failed."""
    from console.attached import AttachedConsole

    if signals.first is not None:
        return True
    app = AttachedConsole(
        source,
        refresh_hz=showing.refresh_hz,
        readonly=showing.readonly,
        ascii_only=showing.ascii_only,
        exit_when_done=not showing.stay,
        signals=signals,
    )
    app.model = model
    return app.run() is not None


def _follow(source: AttachedRun, model: Model, signals: SignalBox, showing: ShowOptions) -> None:
    """Fold and report until the end, or until a signal ends the view."""
    reporter = make_reporter(
        showing, after_console=showing.ui == "tui", draining=False, told_from=source.welcome.records
    )
    greeted = showing.ui == "tui"
    while signals.first is None:
        ended = source.ended
        records = source.take()
        for record in records:
            model.fold(record)
        now = max(source.now(), model.at)
        reporter.update(model, records, now)
        if source.caught_up and not greeted and not ended:
            greeted = True
            if isinstance(reporter, PlainReporter):
                reporter.status(model, now)
        if ended:
            break
        source.wait_news(_POLL_SECONDS)
    if source.ending is not None and source.ending.why == "ended":
        if showing.ui == "tui":
            tell(render_text(summarize(model), terminal_width() or 100))
        else:
            reporter.finish(summarize(model))


def _leave(found: FoundRun, why: str = "") -> int:
    name = shlex.quote(found.name)
    tell(f"{why}The run goes on. Look again: uneven attach {name}; end it: uneven stop {name}")
    return ExitCode.DONE


def _tell_ending(ending: Ending, found: FoundRun, model: Model, showing: ShowOptions) -> int:
    """Say why the view is over; returns the exit code."""
    folder = found.entry.folder
    match ending.why:
        case "ended":
            if ending.exit_code:
                tell(f"uneven: {ending.message}")
                if _resumable(found, ending.exit_code):
                    retry = " --retry-failed" if model.set_aside_frames else ""
                    tell(f"Go on with: uneven resume {shlex.quote(folder)}{retry}")
            return ending.exit_code
        case "lost":
            tell(f"uneven: the run {found.name} is gone: its process was killed; what was credited is kept")
            tell(f"Go on with: uneven resume {shlex.quote(folder)}")
        case "broken":
            tell(
                f"uneven: the view broke off: {ending.message}; how the run stands: uneven status "
                f"{shlex.quote(found.name)}"
            )
    return ExitCode.INCOMPLETE


def _resumable(found: FoundRun, exit_code: int) -> bool:
    able = exit_code in (ExitCode.INTERRUPTED, ExitCode.INCOMPLETE, ExitCode.OUTPUT)
    return able and holds_run(Path(found.entry.folder))


# --- at one moment ---------------------------------------------------------------------------------------


def _look(found: FoundRun) -> tuple[RunStatus, Model, float]:
    """How a run stands, live or not. Raises UnevenError."""
    source = _attached(found, readonly=True)
    return _look_back(found) if source is None else _look_at(source, found)


def _look_at(source: AttachedRun, found: FoundRun) -> tuple[RunStatus, Model, float]:
    model = Model("live")
    source.start()
    try:
        until = time.monotonic() + _CATCH_UP_SECONDS
        while True:
            complete = source.caught_up or source.ended
            for record in source.take():
                model.fold(record)
            if complete:
                break
            if time.monotonic() >= until:
                raise OutputError(f"the run {found.name} is too busy to tell how it stands; try again")
            source.wait_news(_POLL_SECONDS)
        source.wait_current(1.0)
        for record in source.take():
            model.fold(record)
        now = max(source.now(), model.at)
    finally:
        source.close()
    welcome, ending = source.welcome, source.ending
    over = ending is not None and ending.why == "ended"
    stands = status_of(
        model,
        now,
        live=not over,
        folder=welcome.folder,
        pid=None if over else welcome.pid,
        exit_code=ending.exit_code if ending is not None and over else None,
        outcome=ending.message if ending is not None and over else "",
    )
    return _named(stands, welcome.run_id, welcome.output), model, now


def _named(stands: RunStatus, run_id: str, output: str) -> RunStatus:
    """With the names of a run whose log doesn't say them yet, or not any more."""
    if stands.run_id:
        return stands
    return msgspec.structs.replace(stands, run_id=run_id, output=output)


def _look_back(found: FoundRun) -> tuple[RunStatus, Model, float]:
    """How a run that is not live ended."""
    model, entry = Model("recording"), found.entry
    try:
        for record in found.records():
            model.fold(record)
    except UnevenError:
        if entry.exit_code is None:
            raise
    stands = status_of(
        model,
        model.at,
        live=False,
        folder=entry.folder,
        exit_code=entry.exit_code,
        outcome=entry.outcome,
    )
    return _named(stands, entry.run_id, entry.output), model, model.at


def _tell_end(found: FoundRun) -> int:
    """``attach`` to a run that is over: how it ended. Raises UnevenError."""
    stands, model, _ = _look_back(found)
    tell(render_text(summarize(model), terminal_width() or 100) if model.header else stands.outcome)
    if stands.exit_code is None:
        tell(f"The run {found.name} is not live: its process is gone and came to no end.")
    else:
        tell(f"The run {found.name} is over; it ended with exit code {stands.exit_code}.")
    code = ExitCode.INCOMPLETE if stands.exit_code is None else stands.exit_code
    if _resumable(found, code):
        tell(f"Go on with: uneven resume {shlex.quote(found.entry.folder)}")
    return ExitCode.DONE
