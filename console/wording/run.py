"""The run as a whole in words: its phases, its operator, its faults."""

from __future__ import annotations

from typing import Final

from console.text import count, duration, plural, rate, seconds, size
from console.wording.lines import LineKind, Table, Words
from farm import events as ev


def _run_opened(e: ev.RunOpened) -> Words:
    return "run", "", f"run {e.run_id}: {plural(e.frames, 'frame')} in {plural(len(e.cuts) - 1, 'part')}"


def _relay_started(e: ev.RelayStarted) -> Words:
    return "run", "", "relay started" if e.epoch == 1 else f"relay started again, epoch {e.epoch}"


def _options_changed(e: ev.OptionsChanged) -> Words:
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


def _phase_started(e: ev.PhaseStarted) -> Words:
    return "phase", "", _PHASES.get(e.phase, e.phase)


def _fleet_measured(e: ev.FleetMeasured) -> Words:
    text = f"{rate(e.fps_asked)} fps asked, {rate(e.fps_possible)} possible here"
    if e.fitted:
        return "notice", "", text + "; the fleet was scaled down to fit"
    return ("warning" if e.fps_asked > e.fps_possible else "notice"), "", text


def _notice(e: ev.Notice) -> Words:
    kind: LineKind = "notice" if e.level == "info" else e.level
    return kind, "", e.text


def _loop_stalled(e: ev.LoopStalled) -> Words:
    return "warning", "", f"the relay stood still for {duration(e.seconds)}; no lease was counted down"


def _grants_held(e: ev.GrantsHeld) -> Words:
    return "warning", "", f"nothing more is granted: {e.reason}"


def _grants_freed(e: ev.GrantsFreed) -> Words:
    return "notice", "", "there is room again: claims are granted"


_ACTIONS: Final = {"stall": "stalled", "unstall": "set going again", "kill": "killed"}


def _operator_acted(e: ev.OperatorActed) -> Words:
    done = _ACTIONS.get(e.action, e.action)
    if e.detail:
        done += f" {e.detail}" if e.detail.startswith("by ") else f": {e.detail}"
    return "operator", e.worker or "", done


def _command_refused(e: ev.CommandRefused) -> Words:
    return "warning", "", f"refused, asked by {e.by}: {e.reason}"


def _fault_injected(e: ev.FaultInjected) -> Words:
    amount = "" if e.amount is None else f" {e.amount:g}"
    length = "" if e.seconds is None else f" for {seconds(e.seconds)}"
    return "operator", e.worker or "", f"fault injected: {e.kind}{amount}{length}"


def _fault_lifted(e: ev.FaultLifted) -> Words:
    return "operator", e.worker or "", f"fault over: {e.kind}"


def _fault_never_came(e: ev.FaultNeverCame) -> Words:
    return "warning", "", f"a fault never came: {e.fault}"


def _job_paused(e: ev.JobPaused) -> Words:
    return "operator", "", f"paused by {e.by}: no new claims, parts in progress are finished"


def _job_resumed(e: ev.JobResumed) -> Words:
    return "operator", "", f"goes on after a pause of {duration(e.seconds)}"


def _drain_started(e: ev.DrainStarted) -> Words:
    limit = "" if e.limit_seconds is None else f", for {duration(e.limit_seconds)} at most"
    return "operator", "", f"draining ({e.reason}{limit}): parts in progress are finished and kept"


def _work_finished(e: ev.WorkFinished) -> Words:
    text = f"work finished in {seconds(e.makespan_seconds)}: {plural(e.credited_frames, 'frame')} credited"
    return "run", "", text + (f", {count(e.set_aside_frames)} set aside" if e.set_aside_frames else "")


def _sample_chosen(e: ev.SampleChosen) -> Words:
    return "run", "", f"a sample alone is rendered: {plural(len(e.parts), 'part')} spread over the film"


def _sample_predicted(e: ev.SamplePredicted) -> Words:
    return "run", "", f"predicted for the whole film: {'; '.join(predicted_words(e))}"


def predicted_words(e: ev.SamplePredicted) -> tuple[str, ...]:
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


def _output_verified(e: ev.OutputVerified) -> Words:
    return "run", "", f"output verified: {plural(e.stream_frames, 'frame')}, {count(e.output_bytes)} bytes"


def _run_finished(e: ev.RunFinished) -> Words:
    return ("run" if e.exit_code == 0 else "error"), "", e.outcome


WORDS: Final[Table] = {
    ev.RunOpened: _run_opened,
    ev.RelayStarted: _relay_started,
    ev.OptionsChanged: _options_changed,
    ev.PhaseStarted: _phase_started,
    ev.FleetMeasured: _fleet_measured,
    ev.Notice: _notice,
    ev.LoopStalled: _loop_stalled,
    ev.GrantsHeld: _grants_held,
    ev.GrantsFreed: _grants_freed,
    ev.OperatorActed: _operator_acted,
    ev.CommandRefused: _command_refused,
    ev.FaultInjected: _fault_injected,
    ev.FaultLifted: _fault_lifted,
    ev.FaultNeverCame: _fault_never_came,
    ev.JobPaused: _job_paused,
    ev.JobResumed: _job_resumed,
    ev.DrainStarted: _drain_started,
    ev.WorkFinished: _work_finished,
    ev.SampleChosen: _sample_chosen,
    ev.SamplePredicted: _sample_predicted,
    ev.OutputVerified: _output_verified,
    ev.RunFinished: _run_finished,
}
