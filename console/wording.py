"""Every event in plain words, one short line each, for the event list and for plain output.

Rules of this file:
- the words are those of docs/DESIGN.md; a line says what happened, to what, and why;
- pure: what a line needs beyond its event (who lapsed, how long it was silent) is handed in;
- an event without words (heartbeats, progress) and one of a kind we don't know give None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from console.profiles import cap_words, profile_words, read_profile
from console.text import clock, count, duration, plural, rate, safe, seconds, size
from farm.events import (
    ChunkCompleted,
    ChunkSplit,
    ClaimEnded,
    ClaimGranted,
    ClaimRefused,
    ClaimReleased,
    CommandRefused,
    DrainStarted,
    DuplicateWanted,
    FaultInjected,
    FaultLifted,
    FleetMeasured,
    GrantsFreed,
    GrantsHeld,
    JobPaused,
    JobResumed,
    LoopStalled,
    MessageRefused,
    Notice,
    OperatorActed,
    OptionsChanged,
    OutputVerified,
    PartAdopted,
    PartCredited,
    PartDiverged,
    PartFailed,
    PartRetried,
    PartSetAside,
    PartSettled,
    PartSuperseded,
    PartUnsettled,
    PartVoided,
    PhaseStarted,
    RangeReopened,
    RelayStarted,
    RunFinished,
    RunOpened,
    SampleChosen,
    SamplePredicted,
    SeamMismatched,
    WorkerAdded,
    WorkerBlocked,
    WorkerDismissed,
    WorkerForgiven,
    WorkerJoined,
    WorkerLeft,
    WorkerParked,
    WorkerThrottled,
    WorkFinished,
)

LineKind = Literal[
    "run",
    "phase",
    "notice",
    "warning",
    "error",
    "operator",
    "worker",
    "lost",
    "claim",
    "duplicate",
    "split",
    "credit",
    "end",
    "lapse",
    "reopen",
    "refusal",
    "superseded",
    "failure",
    "set aside",
    "idle",
]

#: Kinds that a person should see at once, whatever else is filtered out.
IMPORTANT: Final = frozenset[LineKind](
    {
        "run",
        "phase",
        "notice",
        "warning",
        "error",
        "operator",
        "lost",
        "duplicate",
        "split",
        "lapse",
        "refusal",
        "failure",
        "set aside",
    }
)
#: Kinds that tell of trouble.
WARNINGS: Final = frozenset[LineKind](
    {"warning", "error", "lost", "lapse", "refusal", "failure", "set aside"}
)

#: Tries of a part that are told and counted as something else: a lost worker or a lapse.
NO_FAILURE: Final = frozenset({"worker lost", "lapsed", "stalled", "timed out"})


class EventLine(NamedTuple):
    """One event for people: when, which worker (empty: none), what kind, in words."""

    at: float
    worker: str
    kind: LineKind
    text: str


Words = tuple[LineKind, str, str]  #: kind, worker, text


def describe(at: float, event: object) -> EventLine | None:
    """The line of an event, or None if it has no words."""
    tell = _WORDS.get(type(event))
    if tell is None:
        return None
    kind, worker, text = tell(event)
    return EventLine(at, safe(worker), kind, safe(text))


def is_told(kind: type) -> bool:
    """Whether ``describe`` has a line for events of this type."""
    return kind in _WORDS


# --- the run ---------------------------------------------------------------------------------------------


def _run_opened(e: RunOpened) -> Words:
    return "run", "", f"run {e.run_id}: {plural(e.frames, 'frame')} in {plural(len(e.cuts) - 1, 'part')}"


def _relay_started(e: RelayStarted) -> Words:
    return "run", "", "relay started" if e.epoch == 1 else f"relay started again, epoch {e.epoch}"


def _options_changed(e: OptionsChanged) -> Words:
    options = e.options
    return "operator", "", f"options changed by {e.by}: policy {options.policy}, tail {options.tail}"


_PHASES: Final = {
    "probe": "probe: reading the input's index",
    "measure": "measure: how fast this machine is on this clip",
    "work": "work: rendering",
    "stitch": "stitch: joining the parts",
    "verify": "verify: checking the output",
    "report": "report",
}


def _phase_started(e: PhaseStarted) -> Words:
    return "phase", "", _PHASES.get(e.phase, e.phase)


def _fleet_measured(e: FleetMeasured) -> Words:
    text = f"{rate(e.fps_asked)} fps asked, {rate(e.fps_possible)} possible here"
    if e.fitted:
        return "notice", "", text + "; the fleet was scaled down to fit"
    return ("warning" if e.fps_asked > e.fps_possible else "notice"), "", text


def _notice(e: Notice) -> Words:
    kind: LineKind = "notice" if e.level == "info" else e.level
    return kind, "", e.text


def _loop_stalled(e: LoopStalled) -> Words:
    return "warning", "", f"the relay stood still for {duration(e.seconds)}; no lease was counted down"


def _grants_held(e: GrantsHeld) -> Words:
    return "warning", "", f"nothing more is granted: {e.reason}"


def _grants_freed(e: GrantsFreed) -> Words:
    return "notice", "", "there is room again: claims are granted"


_ACTIONS: Final = {"stall": "stalled", "unstall": "set going again", "kill": "killed"}


def _operator_acted(e: OperatorActed) -> Words:
    done = _ACTIONS.get(e.action, e.action)
    if e.detail:
        done += f" {e.detail}" if e.detail.startswith("by ") else f": {e.detail}"
    return "operator", e.worker or "", done


def _command_refused(e: CommandRefused) -> Words:
    return "warning", "", f"refused, asked by {e.by}: {e.reason}"


def _fault_injected(e: FaultInjected) -> Words:
    amount = "" if e.amount is None else f" {e.amount:g}"
    length = "" if e.seconds is None else f" for {seconds(e.seconds)}"
    return "operator", e.worker or "", f"fault injected: {e.kind}{amount}{length}"


def _fault_lifted(e: FaultLifted) -> Words:
    return "operator", e.worker or "", f"fault over: {e.kind}"


def _job_paused(e: JobPaused) -> Words:
    return "operator", "", f"paused by {e.by}: no new claims, parts in progress are finished"


def _job_resumed(e: JobResumed) -> Words:
    return "operator", "", f"goes on after a pause of {duration(e.seconds)}"


def _drain_started(e: DrainStarted) -> Words:
    limit = "" if e.limit_seconds is None else f", for {duration(e.limit_seconds)} at most"
    return "operator", "", f"draining ({e.reason}{limit}): parts in progress are finished and kept"


def _work_finished(e: WorkFinished) -> Words:
    text = f"work finished in {seconds(e.makespan_seconds)}: {plural(e.credited_frames, 'frame')} credited"
    return "run", "", text + (f", {count(e.set_aside_frames)} set aside" if e.set_aside_frames else "")


def _sample_chosen(e: SampleChosen) -> Words:
    return "run", "", f"a sample alone is rendered: {plural(len(e.parts), 'part')} spread over the film"


def _sample_predicted(e: SamplePredicted) -> Words:
    return "run", "", f"predicted for the whole film: {'; '.join(predicted_words(e))}"


def predicted_words(e: SamplePredicted) -> tuple[str, ...]:
    """The size and, if it is known, the time, each with its range."""
    low, likely, high = map(size, (e.low_bytes, e.likely_bytes, e.high_bytes))
    words = [f"{likely} of video" + (f" ({low} to {high})" if low != high else "")]
    if not e.video_bytes:  # in a simulation nothing has a size
        words = []
    if e.likely_seconds is not None and e.low_seconds is not None and e.high_seconds is not None:
        low, likely, high = map(duration, (e.low_seconds, e.likely_seconds, e.high_seconds))
        rest = "" if e.rest_seconds is None else f", {duration(e.rest_seconds)} of them for the rest"
        words.append(f"{likely} of rendering{rest}" + (f" (in all {low} to {high})" if low != high else ""))
    return tuple(words)


def _output_verified(e: OutputVerified) -> Words:
    return "run", "", f"output verified: {plural(e.stream_frames, 'frame')}, {count(e.output_bytes)} bytes"


def _run_finished(e: RunFinished) -> Words:
    return ("run" if e.exit_code == 0 else "error"), "", e.outcome


# --- workers ---------------------------------------------------------------------------------------------


def _worker_joined(e: WorkerJoined) -> Words:
    cap = "" if e.fps_cap is None else f", at most {e.fps_cap:g} fps"
    return "worker", e.worker, "joined" + (f", pid {e.pid}" if e.pid else "") + cap


def _worker_added(e: WorkerAdded) -> Words:
    profile = read_profile(e.profile)
    return "operator", e.worker, f"added by {e.by}" + (f": {profile_words(profile)}" if profile else "")


def _worker_throttled(e: WorkerThrottled) -> Words:
    return "operator", e.worker, f"throttled by {e.by}: {cap_words(e.fps_cap)}"


def _worker_dismissed(e: WorkerDismissed) -> Words:
    return "operator", e.worker, f"sent away by {e.by}: it finishes its part, gives back the rest and leaves"


def _worker_left(e: WorkerLeft) -> Words:
    return ("lost", e.worker, f"LOST: {e.reason}") if e.lost else ("worker", e.worker, f"left: {e.reason}")


def _worker_parked(e: WorkerParked) -> Words:
    return "idle", e.worker, f"parked: {e.why}"


def _worker_blocked(e: WorkerBlocked) -> Words:
    text = f"blocked until {clock(e.until)} after {plural(e.failures, 'failure')} in a row"
    return "failure", e.worker, text


def _worker_forgiven(e: WorkerForgiven) -> Words:
    return "worker", e.worker, "may ask for work again"


# --- claims ----------------------------------------------------------------------------------------------


def _claim_granted(e: ClaimGranted) -> Words:
    verb = "duplicates" if e.duplicate else "claimed"
    text = f"{verb} {e.token}  frames [{e.start}, {e.stop})"
    if e.reopened and not e.duplicate:
        text += ", reopened"
    return ("duplicate" if e.duplicate else "claim"), e.worker, text + (f"  {e.why}" if e.why else "")


_ENDS: Final[dict[str, tuple[LineKind, str]]] = {
    "completed": ("end", "completed"),
    "superseded": ("superseded", "superseded"),
    "lapsed": ("lapse", "LAPSED"),
    "stalled": ("lapse", "LAPSED (no progress)"),
    "timed out": ("lapse", "LAPSED (time limit)"),
    "failed": ("end", "failed"),
    "released": ("end", "released"),
    "worker left": ("end", "gave up"),
    "relay restarted": ("end", "closed"),
    "voided": ("end", "voided"),
}


def _claim_ended(e: ClaimEnded) -> Words:
    kind, verb = _ENDS.get(e.how, ("end", e.how))
    text = f"{verb} {e.token}" + (f"  {e.reason}" if e.reason else "")
    if e.wasted_frames:
        text += f"  ({plural(e.wasted_frames, 'frame')} wasted)"
    return kind, e.worker, text


def _duplicate_wanted(e: DuplicateWanted) -> Words:
    return "operator", "", f"a copy of c{e.chunk} is wanted by {e.by}: the next worker that asks gets it"


def _claim_released(e: ClaimReleased) -> Words:
    return "operator", e.worker, f"{e.token} is taken away by {e.by}"


def _range_reopened(e: RangeReopened) -> Words:
    return "reopen", "", f"reopened frames [{e.start}, {e.stop}) of c{e.chunk}"


def _chunk_split(e: ChunkSplit) -> Words:
    return "split", "", f"c{e.chunk} is split at frame {e.at}" + (f": {e.why}" if e.why else "")


def _chunk_completed(e: ChunkCompleted) -> Words:
    return "end", "", f"chunk c{e.chunk} is complete"


def _claim_refused(e: ClaimRefused) -> Words:
    reason = e.reason if e.token in e.reason else f"{e.token} {e.reason}"
    held = f"; held by {e.holder}" if e.holder and f"held by {e.holder}" not in reason else ""
    return "refusal", e.worker, f"refused {e.asked}: not claimant ({reason}{held})"


def _message_refused(e: MessageRefused) -> Words:
    return "refusal", e.worker, f"refused {e.asked}: {e.reason} (received {e.received})"


# --- parts -----------------------------------------------------------------------------------------------


def _part_credited(e: PartCredited) -> Words:
    text = f"credited {e.token}  part {e.part}, {plural(e.frames, 'frame')}, {size(e.size_bytes)}"
    if e.lost_frames:
        text += f", {plural(e.lost_frames, 'source frame')} could not be decoded"
    return "credit", e.worker, text


def _part_superseded(e: PartSuperseded) -> Words:
    why = f"  {e.reason}" if e.reason else ""
    return "superseded", e.worker, f"second copy of part {e.part} under {e.token}: 0 frames credited{why}"


def _part_adopted(e: PartAdopted) -> Words:
    return "credit", "", f"adopted part {e.part} found in the store, {plural(e.frames, 'frame')}"


def _part_voided(e: PartVoided) -> Words:
    return "warning", "", f"part {e.part} is not trusted any more and is open again: {e.reason}"


def _part_failed(e: PartFailed) -> Words:
    if e.kind in NO_FAILURE:
        return "end", e.worker, f"part {e.part} counts a try, {e.tries} so far ({e.kind})"
    return "failure", e.worker, f"part {e.part} failed, try {e.tries} ({e.kind}): {e.message}"


def _part_retried(e: PartRetried) -> Words:
    return "reopen", "", f"part {e.part}, set aside before, is tried again"


def _part_set_aside(e: PartSetAside) -> Words:
    tries = "1 try" if e.tries == 1 else f"{e.tries} tries"
    return "set aside", "", f"part {e.part} SET ASIDE after {tries}: {e.reason}"


def _part_diverged(e: PartDiverged) -> Words:
    digests = f"{e.sha256[:8]}, credited {e.credited_sha256[:8]}"
    return (
        "error",
        e.worker,
        f"part {e.part} under {e.token} has other bytes than the credited copy ({digests})",
    )


def _part_settled(e: PartSettled) -> Words:
    wrong = (
        f"{e.odd} was wrong and is not trusted any more" if e.odd else "the one found in the store was not"
    )
    return "error", e.odd or "", f"the copies of part {e.part}: {e.by}'s decides; {wrong}"


def _part_unsettled(e: PartUnsettled) -> Words:
    return "error", "", f"part {e.part}: {e.reason}"


def _seam_mismatched(e: SeamMismatched) -> Words:
    return (
        "warning",
        "",
        f"parts {e.part} and {e.next_part} don't meet: the source is read from its start now",
    )


#: The argument type of each function is its key, which mypy can't express.
_WORDS: Final[dict[type, Callable[[Any], Words]]] = {
    RunOpened: _run_opened,
    RelayStarted: _relay_started,
    OptionsChanged: _options_changed,
    PhaseStarted: _phase_started,
    FleetMeasured: _fleet_measured,
    Notice: _notice,
    LoopStalled: _loop_stalled,
    GrantsHeld: _grants_held,
    GrantsFreed: _grants_freed,
    OperatorActed: _operator_acted,
    CommandRefused: _command_refused,
    FaultInjected: _fault_injected,
    FaultLifted: _fault_lifted,
    JobPaused: _job_paused,
    JobResumed: _job_resumed,
    DrainStarted: _drain_started,
    WorkFinished: _work_finished,
    SampleChosen: _sample_chosen,
    SamplePredicted: _sample_predicted,
    OutputVerified: _output_verified,
    RunFinished: _run_finished,
    WorkerJoined: _worker_joined,
    WorkerAdded: _worker_added,
    WorkerThrottled: _worker_throttled,
    WorkerDismissed: _worker_dismissed,
    WorkerLeft: _worker_left,
    WorkerParked: _worker_parked,
    WorkerBlocked: _worker_blocked,
    WorkerForgiven: _worker_forgiven,
    ClaimGranted: _claim_granted,
    ClaimEnded: _claim_ended,
    DuplicateWanted: _duplicate_wanted,
    ClaimReleased: _claim_released,
    RangeReopened: _range_reopened,
    ChunkSplit: _chunk_split,
    ChunkCompleted: _chunk_completed,
    ClaimRefused: _claim_refused,
    MessageRefused: _message_refused,
    PartCredited: _part_credited,
    PartSuperseded: _part_superseded,
    PartAdopted: _part_adopted,
    PartVoided: _part_voided,
    PartFailed: _part_failed,
    PartSetAside: _part_set_aside,
    PartRetried: _part_retried,
    PartDiverged: _part_diverged,
    PartSettled: _part_settled,
    PartUnsettled: _part_unsettled,
    SeamMismatched: _seam_mismatched,
}
