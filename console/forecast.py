"""How far the job is, and when it will finish: pure functions of the model.

Rules of this file:
- progress weights the phases, so that the bar neither jumps at the end of the work nor waits at 100 %;
- what the farm estimates goes first (farm.forecast); a recording has none of that, nor has the first second;
- a forecast is a range; it is None when nothing is known, and says so, instead of a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from console.timeline import USEFUL

if TYPE_CHECKING:
    from console.runstate import RunState
    from farm.events import FinishEstimated

#: Share of each phase in the whole, in their order.
PHASE_WEIGHTS: Final = {
    "probe": 0.02,
    "measure": 0.02,
    "work": 0.86,
    "stitch": 0.05,
    "verify": 0.05,
    "report": 0.0,
}
#: Only a verified end is all of it.
PROGRESS_BEFORE_END: Final = 0.995
_WINDOW_SECONDS: Final = 60
#: A shorter past says little about credits, which come in lumps of a part.
_WINDOW_SECONDS_MIN: Final = 10
_MARGIN: Final = 1.1


class Forecast(NamedTuple):
    """Seconds until the last credit: optimistic, expected, pessimistic."""

    low: float
    mid: float
    high: float


def bound_of(frames: int, fleet: Iterable[tuple[float, float]]) -> float | None:
    """Seconds that no schedule can beat, for workers of ``(overhead_seconds, frames per second)``.

    Each pays its overhead once and then renders without a rest, so the answer is the root t of
    sum(rate * max(t - overhead, 0)) = frames; h + N / sum(r) when all have the same overhead. None: there is
    nothing to do, or nobody.
    """
    total = offset = answer = 0.0
    # Workers join in the order of their overheads; the root lies before the first that would be too late.
    for overhead, rate in sorted(fleet):
        if total and answer <= overhead:
            break
        total += rate
        offset += rate * overhead
        answer = (frames + offset) / total
    return answer if frames and total else None


def lower_bound(model: RunState) -> float | None:
    """``bound_of`` the whole job, by what is known of the workers now. None: it was begun under another
    relay, or no speed is known."""
    if model.resumed_frames:
        return None
    fleet = []
    for worker in model.workers.values():
        rate = worker.fps_cap or worker.measured_fps or worker.rate.fps
        if rate:
            fleet.append((worker.overhead_seconds, rate))
        elif not worker.is_gone:
            return None
    return bound_of(model.target_frames - model.set_aside_frames, fleet)


def overall_progress(model: RunState) -> float:
    """0 to 1; may go back (a voided part), which ``Model.progress`` hides."""
    if model.finish is not None and model.finish.exit_code == 0:
        return 1.0
    settled = model.credited_frames + model.set_aside_frames
    share = settled / model.target_frames if model.target_frames else 0.0
    if model.phase not in PHASE_WEIGHTS:
        return share * PROGRESS_BEFORE_END
    done = 0.0
    for phase, weight in PHASE_WEIGHTS.items():
        if phase == model.phase:
            done += weight * (share if phase == "work" else model.phase_fraction)
            break
        done += weight
    return min(done, PROGRESS_BEFORE_END)


def forecast(model: RunState, now: float) -> Forecast | None:
    """When the last part will be credited, from what is left and the speeds of the workers that are alive.

    None when nobody works, no speed is known, the job is paused, or it is not in the work yet.
    """
    if not model.frames or model.paused or model.finish is not None:
        return None
    left = model.open_frames + model.in_flight_frames - model.rendered_frames
    if model.open_frames + model.in_flight_frames == 0:
        return Forecast(0.0, 0.0, 0.0)
    speeds = _speeds(model, now)
    if model.drain_reason is not None:
        return _drain(model, now, speeds)
    if model.estimated is not None:
        return _told(model.estimated, now - model.estimated_at)
    if not speeds:
        return None
    possible = sum(speeds.values())
    seen = _recent_fps(model, now) or possible
    fast, slow = max(possible, seen), min(possible, seen)
    tail = _tail_seconds(model, now, speeds)
    mid = max(2 * left / (fast + slow), tail)
    return Forecast(min(left / fast, mid), mid, _MARGIN * max(left / slow, mid))


def _told(estimated: FinishEstimated, passed: float) -> Forecast | None:
    """What the farm said ``passed`` seconds ago. It knows the policy and plays it forward, where this file
    can only extrapolate what a recording shows."""
    low, mid, high = estimated.low_seconds, estimated.likely_seconds, estimated.high_seconds
    if low is None or mid is None or high is None:
        return None
    return Forecast(max(low - passed, 0.0), max(mid - passed, 0.0), max(high - passed, 0.0))


def _drain(model: RunState, now: float, speeds: dict[str, float]) -> Forecast | None:
    """When the last of the parts in progress is delivered; what is open stays open. None: nothing is known of
    a worker that is at one."""
    low = high = 0.0
    for worker in model.workers.values():
        claim = worker.claim
        if claim is None or worker.is_gone or claim.position >= claim.stop:
            continue
        unheard = max(now - worker.heard_at, 0.0)
        if worker.name not in speeds:
            if not worker.is_silent(now, model.silence_seconds) and worker.state != "stalled":
                return None
            # Nothing comes of it: its lease runs out, and that is the end of it.
            seconds = max(model.options.lease_seconds - unheard, 0.0)
        else:
            rest = model.grid.stop(model.grid.part_at(claim.position)) - claim.position
            overhead = max(worker.works_from(claim) - now, 0.0)
            seconds = overhead + max(rest / speeds[worker.name] - unheard, 0.0)
        low, high = max(low, seconds), max(high, _MARGIN * seconds)
    return Forecast(low, low, high)


def _speeds(model: RunState, now: float) -> dict[str, float]:
    """Frames per second of each worker that can be counted on; one not yet measured is taken for average."""
    workers = [
        worker
        for worker in model.workers.values()
        if worker.state in USEFUL and not worker.is_silent(now, model.silence_seconds)
    ]
    known = {worker.name: worker.rate.fps or worker.fps_cap for worker in workers}
    measured = [fps for fps in known.values() if fps]
    if not measured:
        return {}
    mean = sum(measured) / len(measured)
    return {name: fps or mean for name, fps in known.items()}


def _recent_fps(model: RunState, now: float) -> float | None:
    """Credited frames per second over the last minute of steady work, overheads and all."""
    if model.steady_since is None:
        return None
    seconds = min(int(now - model.steady_since), _WINDOW_SECONDS)
    return model.throughput.fps(now, seconds) if seconds >= _WINDOW_SECONDS_MIN else None


def _tail_seconds(model: RunState, now: float, speeds: dict[str, float]) -> float:
    """When the last of the chunks in flight is done: by a holder, or by a duplicate once nothing is open."""
    open_seconds = model.open_frames / sum(speeds.values())
    fastest = max(speeds.values())
    overhead = max(worker.overhead_seconds for worker in model.workers.values())
    duplicates = model.options.tail != "none" and len(speeds) > 1
    worst = 0.0
    for claims in model.chunks.values():
        holders = [claim for claim in claims if claim.worker in speeds]
        rest = max(claim.stop for claim in claims) - max(claim.position for claim in claims)
        again = open_seconds + overhead + rest / fastest
        if not holders:
            # Nobody is known to be at it: the lease runs out first.
            worst = max(worst, model.options.lease_seconds + again)
            continue
        first = min(
            (claim.stop - claim.position) / speeds[claim.worker]
            + max(claim.granted_at + model.workers[claim.worker].overhead_seconds - now, 0.0)
            for claim in holders
        )
        worst = max(worst, min(first, again) if duplicates else first)
    return worst
