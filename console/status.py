"""How a run stands at one moment: for ``uneven status``, as text and as JSON.

Rules of this file:
- it reads the model, as every other view does, and never imports textual;
- what isn't known is null in JSON and "unknown" in text; units last.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec

from console import text
from console.draining import drain_text
from console.model import Model
from console.plain import eta_text
from console.tables import text_table
from farm.errors import ExitCode
from farm.paths import printable

_OUTCOMES = {
    ExitCode.DONE: "done",
    ExitCode.INCOMPLETE: "incomplete",
    ExitCode.INTERRUPTED: "stopped",
}


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. ``claim``: the token of what it holds."""

    name: str
    state: str
    claim: str | None
    credited_frames: int
    fps: float | None
    lapses: int
    duplicates: int


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment. ``state``: starting, measure, work, paused, draining, stitch, verify while it is
    live; done, incomplete, stopped or failed when it came to its end; cut off when it did not."""

    run_id: str
    state: str
    live: bool
    pid: int | None
    input: str
    output: str
    folder: str
    policy: str
    tail: str
    frames: int
    credited_frames: int
    rendered_frames: int  #: encoded and not credited yet
    set_aside_frames: int
    sample_frames: int | None  #: where only a sample is rendered: what is to be credited for it
    progress: float  #: of the whole job, 0 to 1
    at_seconds: float  #: lease time
    fps: float
    eta_seconds: float | None  #: to the last credit; null: not known
    eta_low_seconds: float | None
    eta_high_seconds: float | None
    claims: int
    duplicates: int
    splits: int
    lapses: int
    refusals: int
    failures: int
    losses: int
    wasted_frames: int
    workers: tuple[WorkerStatus, ...]
    exit_code: int | None  #: null: it has not ended
    outcome: str


def status_of(
    model: Model,
    now: float,
    *,
    live: bool,
    folder: str,
    pid: int | None = None,
    exit_code: int | None = None,
    outcome: str = "",
) -> RunStatus:
    """The status of what the model has folded. ``exit_code`` and ``outcome`` are of who knows more of the
    end than the log."""
    if model.finish is not None and not live:
        exit_code, outcome = model.finish.exit_code, model.finish.outcome
    eta = model.eta(now) if live else None
    header = model.header
    workers = sorted(model.workers.values(), key=lambda worker: text.natural(worker.name))
    return RunStatus(
        run_id=header.run_id if header else "",
        state=_state(model, live, exit_code),
        live=live,
        pid=pid,
        input=header.input if header else "",
        output=header.output if header else "",
        folder=folder,
        policy=model.options.policy,
        tail=model.options.tail,
        frames=model.frames,
        sample_frames=None if model.sample is None else model.target_frames,
        credited_frames=model.credited_frames,
        rendered_frames=model.rendered_frames if live else 0,
        set_aside_frames=model.set_aside_frames,
        progress=round(model.progress(), 4),
        at_seconds=round(now, 3),
        fps=round(model.fps(now), 2) if live else 0.0,
        eta_seconds=None if eta is None else round(eta.mid, 1),
        eta_low_seconds=None if eta is None else round(eta.low, 1),
        eta_high_seconds=None if eta is None else round(eta.high, 1),
        claims=model.granted,
        duplicates=model.duplicates,
        splits=model.splits,
        lapses=model.lapses,
        refusals=model.refusals,
        failures=model.failures,
        losses=model.losses,
        wasted_frames=model.wasted_frames,
        workers=tuple(
            WorkerStatus(
                name=worker.name,
                state=worker.state if live or worker.is_gone else "gone",
                claim=worker.claim.token if worker.claim is not None else None,
                credited_frames=worker.credited_frames,
                fps=worker.measured_fps,
                lapses=worker.lapses,
                duplicates=worker.duplicates,
            )
            for worker in workers
        ),
        exit_code=exit_code,
        outcome=outcome,
    )


def _state(model: Model, live: bool, exit_code: int | None) -> str:
    if not live:
        return "cut off" if exit_code is None else _OUTCOMES.get(ExitCode(exit_code), "failed")
    if model.drain_reason is not None:
        return "draining"
    return "paused" if model.paused else (model.phase or "starting")


def status_text(status: RunStatus, model: Model, now: float, width: int) -> str:
    """The status in lines of at most ``width`` cells, but for paths."""
    lines = [
        f"run       {status.run_id}: {_how(status, model, now)}",
        f"input     {printable(status.input)}",
        f"output    {printable(status.output)}",
        f"frames    {text.count(status.credited_frames)} of {_target(status)} credited"
        + (f", {text.count(status.rendered_frames)} rendered ahead" if status.live else "")
        + (f", {text.count(status.set_aside_frames)} set aside" if status.set_aside_frames else ""),
    ]
    if status.live:
        lines.append(f"progress  {int(100 * status.progress)} % of the whole job, {status.fps:.1f} fps")
        lines.append(f"ETA       {eta_text(model.eta(now))}")
    counts = (
        text.plural(status.claims, "claim"),
        text.plural(status.duplicates, "duplicate"),
        text.plural(status.lapses, "lapse"),
        text.plural(status.refusals, "refusal"),
        text.plural(status.failures, "failure"),
        f"{text.plural(status.losses, 'worker')} lost",
    )
    lines += textwrap.wrap(f"so far    {', '.join(counts)}", max(width, 20), subsequent_indent=" " * 10)
    if status.workers:
        lines += ["", *_workers(status.workers, width)]
    return "\n".join(lines)


def _how(status: RunStatus, model: Model, now: float) -> str:
    if status.live:
        state = drain_text(model, now) if status.state == "draining" else status.state
        return f"live, {state}" + (f" (process {status.pid})" if status.pid else "")
    if status.exit_code is None:
        return "its process is gone and came to no end; resume it"
    return f"over, {text.safe(status.outcome)}, exit code {status.exit_code}"


def _workers(workers: Sequence[WorkerStatus], width: int) -> list[str]:
    head = ("worker", "state", "claim", "frames", "fps", "lapses", "dup")
    rows = [
        (
            text.name(worker.name, 32),
            worker.state,
            worker.claim or "-",
            text.count(worker.credited_frames),
            "-" if worker.fps is None else f"{worker.fps:.1f}",
            str(worker.lapses),
            str(worker.duplicates),
        )
        for worker in workers
    ]
    return list(text_table(head, rows, width))


def status_line(status: RunStatus, model: Model, now: float) -> str:
    """One line of a live run, for a list of several."""
    name = printable(status.output.rpartition("/")[2])
    eta = eta_text(model.eta(now))
    return (
        f"{status.run_id}  {status.state:<9} {int(100 * status.progress):>3} %  "
        f"{text.count(status.credited_frames)} of {_target(status)} frames, ETA {eta}  {name}"
    )


def _target(status: RunStatus) -> str:
    if status.sample_frames is None:
        return text.count(status.frames)
    return f"the sample's {text.count(status.sample_frames)}"
