"""What came of a run, as data and as a short table: finishing time against its lower bound, waste, and what
each worker did.

Rules of this file:
- everything is taken from the model, so that a replay gives the same summary;
- what isn't known is None and shown as ``unknown``; nothing is guessed;
- times are lease seconds; pauses are apart from the finishing time.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from console import text
from console.forecast import bound_of
from console.model import SET_ASIDE, Model
from console.timeline import BUSY, WorkerModel, WorkerState
from console.wording.run import predicted_words
from farm.events import SamplePredicted
from farm.fleet import WorkerProfile

_REST = frozenset[WorkerState]({"idle", "parked", "blocked"})
_STALLED = frozenset[WorkerState]({"stalled"})
_PARTS_NAMED = 8
_INDENT = " " * 16


class WorkerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker did. ``fps`` is the mean over its credited parts, None when it has none."""

    name: str
    state: str
    fps_cap: float | None
    overhead_seconds: float
    fps: float | None
    credited_frames: int
    wasted_frames: int
    claims: int
    duplicates: int
    lapses: int
    refusals: int
    failures: int
    losses: int
    busy_seconds: float  #: overhead and rendering
    idle_seconds: float  #: alive without a claim
    stalled_seconds: float  #: silent or stopped
    peak_memory_bytes: int = 0  #: resident; 0: never measured


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run, or of a run so far."""

    run_id: str
    input: str
    output: str
    outcome: str
    exit_code: int | None  #: None while the run has no end
    policy: str
    tail: str
    frames: int
    credited_frames: int
    resumed_frames: int  #: credited before the relay's last start
    set_aside_frames: int
    set_aside_parts: tuple[int, ...]
    lost_frames: int  #: of the source, that could not be decoded
    finishing_seconds: (
        float | None
    )  #: first grant to last credit, without pauses; None before the work is over
    pause_seconds: float
    lower_bound_seconds: float | None
    ratio: float | None
    wasted_frames: int
    wasted_share: float  #: of all frames encoded
    claims: int
    duplicates: int
    splits: int
    lapses: int
    refusals: int
    failures: int
    losses: int
    output_bytes: int
    packets_sha256: str
    fps_asked: float | None
    fps_possible: float | None
    machine_was_slower: bool  #: the fleet asked for more frames per second than this machine has
    workers: tuple[WorkerSummary, ...]  #: by name
    adopted_frames: int = 0  #: found finished in the store at a resume, and no worker's credit
    voided_frames: int = 0  #: credited and later taken back, to be rendered again
    stored_blocks: int = 0  #: of parts that were delivered in blocks
    work_seconds: float | None = None  #: as finishing_seconds, of work that is not over
    loop_stalls: int | None = None  #: times the relay's loop was late by more than 50 ms; None: not measured
    loop_worst_seconds: float | None = None
    stood_still: int = 0  #: times the relay stood still as a whole (stopped, asleep, starved)
    stood_still_seconds: float = 0.0  #: the longest of them
    faults_never_came: tuple[str, ...] = ()  #: that were to be injected, as they were asked for
    sample_parts: int | None = None  #: in a sample, where nothing else was given out
    sample_frames: int | None = None  #: what was to be credited for it
    predicted: SamplePredicted | None = None  #: for the whole film, by a sample
    allow_nondeterministic: bool = False  #: no promise of equal bytes was given


def summarize(model: Model, fleet: Sequence[WorkerProfile] = (), now: float | None = None) -> RunSummary:
    """The summary of a run at lease time ``now`` (None: its newest record).

    ``fleet``: profiles of workers, which win over what the workers said of themselves.
    """
    at = model.at if now is None else now
    profiles = {profile.name: profile for profile in fleet}
    workers = tuple(
        _worker_summary(worker, profiles.get(worker.name), at, over=model.finish is not None)
        for worker in sorted(model.workers.values(), key=lambda worker: text.natural(worker.name))
    )
    finishing = model.work.makespan_seconds if model.work is not None else None
    bound = lower_bound_seconds(model.credited_frames, workers) if model.work is not None else None
    wasted = model.wasted_frames + sum(_cut_off(worker) for worker in model.workers.values() if model.finish)
    encoded = model.credited_frames + wasted
    header, measured, finish, loop = model.header, model.measured, model.finish, model.loop
    return RunSummary(
        run_id=header.run_id if header else "",
        input=header.input if header else "",
        output=header.output if header else "",
        outcome=finish.outcome if finish else "not finished",
        exit_code=finish.exit_code if finish else None,
        policy=model.options.policy,
        tail=model.options.tail,
        frames=model.frames,
        credited_frames=model.credited_frames,
        resumed_frames=model.resumed_frames,
        set_aside_frames=model.set_aside_frames,
        set_aside_parts=tuple(part for part in range(model.parts) if model.part_state[part] == SET_ASIDE),
        lost_frames=model.lost_frames,
        finishing_seconds=finishing,
        pause_seconds=model.paused_seconds(at),
        lower_bound_seconds=bound,
        ratio=finishing / bound if finishing and bound else None,
        wasted_frames=wasted,
        wasted_share=wasted / encoded if encoded else 0.0,
        claims=model.granted,
        duplicates=model.duplicates,
        splits=model.splits,
        lapses=model.lapses,
        refusals=model.refusals,
        failures=model.failures,
        losses=model.losses,
        output_bytes=finish.output_bytes if finish else 0,
        packets_sha256=finish.packets_sha256 if finish else "",
        fps_asked=measured.fps_asked if measured else None,
        fps_possible=measured.fps_possible if measured else None,
        machine_was_slower=bool(
            measured and not measured.fitted and measured.fps_asked > measured.fps_possible
        ),
        workers=workers,
        adopted_frames=model.adopted_frames,
        voided_frames=model.voided_frames,
        stored_blocks=model.stored_blocks,
        work_seconds=_work_seconds(model),
        loop_stalls=loop.stalls if loop else None,
        loop_worst_seconds=loop.worst_seconds if loop else None,
        stood_still=model.stood_still,
        stood_still_seconds=model.stood_still_seconds,
        faults_never_came=tuple(model.never_came),
        sample_parts=None if model.sample is None else len(model.sample),
        sample_frames=None if model.sample is None else model.target_frames,
        predicted=model.predicted,
        allow_nondeterministic=model.options.allow_nondeterministic,
    )


def _cut_off(worker: WorkerModel) -> int:
    """Frames of claims that the end of the run cut off: rendered, as far as reported, and not delivered."""
    return sum(claim.undelivered for claim in worker.held)


def _worker_summary(
    worker: WorkerModel, profile: WorkerProfile | None, at: float, *, over: bool
) -> WorkerSummary:
    return WorkerSummary(
        name=worker.name,
        state=worker.state,
        fps_cap=profile.fps_cap if profile else worker.fps_cap,
        overhead_seconds=profile.overhead_seconds if profile else worker.overhead_seconds,
        fps=worker.measured_fps,
        credited_frames=worker.credited_frames,
        wasted_frames=worker.wasted_frames + (_cut_off(worker) if over else 0),
        claims=worker.claims,
        duplicates=worker.duplicates,
        lapses=worker.lapses,
        refusals=worker.refusals,
        failures=worker.failures,
        losses=worker.losses,
        busy_seconds=worker.seconds_in(BUSY, at),
        idle_seconds=worker.seconds_in(_REST, at),
        stalled_seconds=worker.seconds_in(_STALLED, at),
        peak_memory_bytes=worker.peak_bytes,
    )


def _work_seconds(model: Model) -> float | None:
    if model.work is not None:
        return None
    if model.first_grant_at is None or model.last_credit_at is None:
        return None
    return max(model.last_credit_at - model.first_grant_at - model.pause_seconds, 0.0)


def lower_bound_seconds(frames: int, workers: Iterable[WorkerSummary]) -> float | None:
    """Seconds that no schedule can beat (console.forecast.bound_of).

    A worker's rate is its cap, else the speed measured on its credited parts. Workers that went without a
    frame are left out; None when nothing is known of one that stayed.
    """
    fleet = []
    for worker in workers:
        rate = worker.fps_cap or worker.fps
        if rate:
            fleet.append((worker.overhead_seconds, rate))
        elif worker.state not in ("left", "killed") or worker.claims:
            return None
    return bound_of(frames, fleet)


# --- as text ---------------------------------------------------------------------------------------------


class _Column(NamedTuple):
    title: str
    cells: list[str]
    rank: int  #: a higher one is dropped first where room is short

    @property
    def width(self) -> int:
        return max(map(text.width, (self.title, *self.cells)))


def render_text(summary: RunSummary, width: int = 80) -> str:
    """The summary as lines of at most ``width`` cells, without an end of line at the end. Only the line with
    the sha256 may be longer: half of it is worth nothing."""
    lines = [_headline(summary, width)]
    for line in (*_facts(summary), *_notes(summary)):
        lines += textwrap.wrap(line, max(width, 2 * len(_INDENT)), subsequent_indent=_INDENT)
    lines = [text.fit(line, width) for line in lines]
    if summary.packets_sha256:
        lines.append(f"packets sha256  {summary.packets_sha256}")
    if summary.workers:
        lines += ["", *(text.fit(line, width) for line in _worker_table(summary, width))]
    return "\n".join(lines)


def _headline(s: RunSummary, width: int) -> str:
    outcome = text.safe(s.outcome)
    size = f", {text.size(s.output_bytes)}" if s.output_bytes else ""
    room = max(width - text.width(f"{outcome}: {size}"), 12)
    return outcome + (f": {text.name(s.output, room)}" if s.output else "") + size


def _facts(s: RunSummary) -> list[str]:
    resumed = f", {text.count(s.resumed_frames)} of them before it was resumed" if s.resumed_frames else ""
    encoded = s.credited_frames + s.wasted_frames
    counts = (
        text.plural(s.duplicates, "duplicate"),
        *((text.plural(s.splits, "split"),) if s.splits else ()),
        text.plural(s.lapses, "lapse"),
        text.plural(s.refusals, "refusal"),
        text.plural(s.failures, "failure"),
        f"{text.plural(s.losses, 'worker')} lost",
    )
    return [
        f"frames          {text.count(s.credited_frames)} of {text.count(s.frames)} credited{resumed}",
        _time(s),
        f"wasted          {text.plural(s.wasted_frames, 'frame')}, "
        f"{text.share(s.wasted_frames, encoded)} of those encoded",
        f"claims          {text.count(s.claims)}: {', '.join(counts)}",
    ]


def _time(s: RunSummary) -> str:
    """The finishing time; of work that is not over, how long it went on and nothing to judge it by."""
    pause = f", and {text.seconds(s.pause_seconds)} of pause" if s.pause_seconds else ""
    if s.finishing_seconds is None:
        so_far = "nothing is credited" if s.work_seconds is None else text.seconds(s.work_seconds)
        return f"work so far     {so_far}{pause}"
    bound = text.UNKNOWN if s.lower_bound_seconds is None else text.seconds(s.lower_bound_seconds)
    ratio = "" if s.ratio is None else f", ratio {s.ratio:.3f}"
    return f"finishing time  {text.seconds(s.finishing_seconds)} (lower bound {bound}{ratio}){pause}"


def _notes(s: RunSummary) -> list[str]:
    lines = []
    if s.sample_parts is not None and s.sample_frames is not None:
        wanted = f"{text.plural(s.sample_parts, 'part')}, {text.count(s.credited_frames)} of"
        lines.append(f"sample          {wanted} {text.plural(s.sample_frames, 'frame')} credited")
        if s.predicted is not None:
            lines += [f"predicted       {words}" for words in predicted_words(s.predicted)]
    if s.allow_nondeterministic:
        lines.append("equal bytes     not promised (--allow-nondeterministic)")
    if s.adopted_frames:
        frames = text.plural(s.adopted_frames, "frame")
        lines.append(f"adopted         {frames} found finished in the store at a resume, no worker's credit")
    if s.voided_frames:
        frames = text.plural(s.voided_frames, "frame")
        lines.append(f"taken back      {frames} credited and then not trusted; rendered again")
    if s.stored_blocks:
        lines.append(f"delivered       {text.plural(s.stored_blocks, 'block')} over links")
    if s.set_aside_parts:
        named = ", ".join(map(str, s.set_aside_parts[:_PARTS_NAMED]))
        more = f" ({_PARTS_NAMED} of {len(s.set_aside_parts)} shown)"
        lines.append(
            f"set aside       {text.plural(s.set_aside_frames, 'frame')}, "
            f"{'part' if len(s.set_aside_parts) == 1 else 'parts'} {named}"
            + (more if len(s.set_aside_parts) > _PARTS_NAMED else "")
        )
    if s.lost_frames:
        lines.append(f"lost            {text.plural(s.lost_frames, 'source frame')} could not be decoded")
    if s.loop_stalls is not None and s.loop_worst_seconds is not None:
        worst = f"{s.loop_worst_seconds * 1000:,.0f} ms"
        lines.append(f"relay's loop    late by more than 50 ms {_times(s.loop_stalls)}, {worst} at worst")
    lines += [f"never came      the fault '{text.safe(fault)}'" for fault in s.faults_never_came]
    if s.stood_still:
        longest = text.duration(s.stood_still_seconds)
        lines.append(f"stood still     {_times(s.stood_still)}, {longest} at most; no lease was counted down")
    if s.machine_was_slower:
        lines.append(
            "this machine was slower than asked: "
            f"{text.rate(s.fps_asked or 0.0)} fps asked, {text.rate(s.fps_possible or 0.0)} possible here"
        )
    return lines


def _times(number: int) -> str:
    return {0: "never", 1: "once"}.get(number, f"{number:,} times")


def _worker_table(s: RunSummary, width: int) -> list[str]:
    rows = s.workers
    columns = [
        _Column("worker", [text.name(w.name, 20) for w in rows], 0),
        _Column("frames", [text.count(w.credited_frames) for w in rows], 1),
        _Column("share", [text.share(w.credited_frames, s.credited_frames) for w in rows], 10),
        _Column("fps", ["-" if w.fps is None else f"{w.fps:.1f}" for w in rows], 2),
        _Column("claims", [text.count(w.claims) for w in rows], 3),
        _Column("dup", [text.count(w.duplicates) for w in rows], 5),
        _Column("lapsed", [text.count(w.lapses) for w in rows], 4),
        _Column("wasted", [text.count(w.wasted_frames) for w in rows], 6),
        _Column("busy", [text.duration(w.busy_seconds) for w in rows], 7),
        _Column("idle", [text.duration(w.idle_seconds) for w in rows], 8),
        _Column("stalled", [text.duration(w.stalled_seconds) for w in rows], 9),
    ]
    if not any(w.stalled_seconds for w in rows):
        columns.pop()
    if any(w.peak_memory_bytes for w in rows):
        columns.append(_Column("memory", [text.size(w.peak_memory_bytes) for w in rows], 11))
    while len(columns) > 1 and sum(c.width + 2 for c in columns) - 2 > width:
        columns.remove(max(columns, key=lambda column: column.rank))
    first, *others = columns
    lines = [(first.title, *(column.title for column in others))]
    lines += [(first.cells[row], *(column.cells[row] for column in others)) for row in range(len(rows))]
    return [
        "  ".join(
            text.pad(cell, column.width, right=column is not first)
            for cell, column in zip(line, columns, strict=True)
        )
        for line in lines
    ]
