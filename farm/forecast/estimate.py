"""When the last part will be credited, as a range, from one outlook. Pure; may be called in any thread.

Theory of operation. Small fleets are played forward (replay.py), under the speeds as measured and under a
few others that the measurements allow for as well: how much the ends differ says how much is not known. Where
that would take too long the common finishing time T of ``fair`` is taken (farm.policies.situation), and under
any other policy T at speeds that have the overhead of a claim of the present size in them.

Rules of this file:
- None where nothing is known: no speed was measured, or those who are left can't finish;
- the same outlook gives the same estimate: the other speeds follow a fixed pattern.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from farm.forecast.outlook import Outlook, if_all_were_heard, with_rates
from farm.forecast.replay import Replay, TooLong
from farm.policies.base import Ask, Policy
from farm.policies.fair import Fair
from farm.policies.situation import Situation
from farm.policies.speeds import TAU_SECONDS, Speed, Speeds

By = Literal["replay", "T", "rate"]

#: Workers up to which the state is played forward: among many each counts for little.
REPLAY_WORKERS_MAX: Final = 64
#: Steps of one replay, about 20 ms; beyond that it isn't worth its time.
REPLAY_STEPS_MAX: Final = 8_000
#: Steps of all replays of an estimate together.
STEPS_MAX: Final = 16_000
#: Relative error of a speed that was never measured.
_UNKNOWN: Final = 0.5
#: Relative variance of a second's speed on a machine that does other things too, and how many seconds of
#: having seen otherwise weigh as much.
_USUAL: Final = 0.1
_USUAL_SECONDS: Final = 10.0
#: Which speeds are raised (+1) and lowered (-1) together: rows of a Hadamard matrix, so that each worker's
#: error meets each other's in all combinations.
_PATTERN: Final = (
    (1, 1, 1, 1, 1, 1, 1),
    (-1, 1, -1, 1, -1, 1, -1),
    (1, -1, -1, 1, 1, -1, -1),
    (-1, -1, 1, 1, -1, -1, 1),
    (1, 1, 1, -1, -1, -1, -1),
    (-1, 1, -1, -1, 1, -1, 1),
    (1, -1, -1, -1, -1, 1, 1),
    (-1, -1, 1, -1, 1, 1, -1),
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """``likely_at``: lease time of the last credit. ``below_seconds``, ``above_seconds``: what the speeds
    leave open, as a standard deviation to either side."""

    likely_at: float
    below_seconds: float
    above_seconds: float
    by: By
    soonest_at: float = math.inf  #: if whoever is silent came back now; infinite: nobody is


def estimate(outlook: Outlook) -> Estimate | None:
    s = outlook.situation
    if not outlook.open and not outlook.chunks:
        return Estimate(s.now, 0.0, 0.0, "T")
    if not any(speed.frames > 0 for speed in s.speeds.by_worker.values()) and not s.profiles:
        return None
    played = _by_replay(outlook)
    found = played if played is not None else _by_rate(outlook)
    if math.isinf(found.likely_at):
        return None
    back = if_all_were_heard(outlook)
    return found if back is None else replace(found, soonest_at=_end(back))


def _end(outlook: Outlook) -> float:
    """The likely end alone."""
    if outlook.policy is not None and outlook.situation.workers <= REPLAY_WORKERS_MAX:
        with contextlib.suppress(Exception):  # TooLong, or a user's policy
            return Replay(outlook, REPLAY_STEPS_MAX).end_at()
    return _by_rate(outlook).likely_at


# --- playing forward -------------------------------------------------------------------------------------


def _by_replay(outlook: Outlook) -> Estimate | None:
    """None: it would take too long, or the policy can't be asked."""
    if outlook.policy is None or outlook.situation.workers > REPLAY_WORKERS_MAX:
        return None
    try:
        first = Replay(with_rates(outlook, {}), REPLAY_STEPS_MAX)
        likely = first.end_at()
        if math.isinf(likely):
            return Estimate(likely, 0.0, 0.0, "replay")
        doubts = rate_doubts(outlook.situation, likely - outlook.now)
        count = min(len(_PATTERN), (STEPS_MAX - first.steps) // max(first.steps, 1))
        if count < 2:
            return Estimate(likely, *_spread_by_rate(outlook, likely, doubts), "replay")
        ends = [
            Replay(with_rates(outlook, _factors(doubts, signs)), 2 * REPLAY_STEPS_MAX).end_at()
            for signs in _PATTERN[:count]
        ]
    except TooLong:
        return None
    except Exception:  # a user's policy may raise whatever it likes; the relay is the one to tell
        return None
    likely += wavering(outlook.situation) * (_middle([likely, *ends]) - likely)
    below = [likely - end for end in ends if end < likely]
    above = [end - likely for end in ends if likely < end < math.inf]
    return Estimate(likely, _size(below), _size(above), "replay")


def _factors(doubts: Mapping[str, float], signs: tuple[int, ...]) -> dict[str, float]:
    return {
        name: math.exp(doubt * signs[number % len(signs)])
        for number, (name, doubt) in enumerate(doubts.items())
    }


def _middle(ends: list[float]) -> float:
    return statistics.median(end for end in ends if end < math.inf)


def _size(differences: list[float]) -> float:
    """Root of the mean square."""
    return math.sqrt(sum(d * d for d in differences) / len(differences)) if differences else 0.0


# --- where that is too much ------------------------------------------------------------------------------


def _by_rate(outlook: Outlook) -> Estimate:
    s = outlook.situation
    by: By = "T"
    if not isinstance(outlook.policy, Fair):
        by = "rate"
        s = replace(s, speeds=_with_overheads(outlook), profiles={})
    doubts = rate_doubts(outlook.situation, max(s.finish - s.now, 0.0))
    likely = max(s.finish, _held_until(outlook))
    return Estimate(likely, *_spread_by_rate(outlook, likely, doubts), by)


def _held_until(outlook: Outlook) -> float:
    """When the last of what nobody else can be given is done: with a tail rule that copies or splits the
    part in progress, without one all that is held."""
    s = outlook.situation
    first: dict[int, float] = {}
    for claim in s.busy:
        eta = s.eta(claim)
        if math.isinf(eta):
            continue
        stop = s.splittable(claim) if outlook.tail.kind != "none" else claim.stop
        eta -= max(claim.stop - stop, 0) / (s.rate(claim.worker) or 1.0)
        first[claim.chunk] = min(first.get(claim.chunk, math.inf), eta)
    return max(first.values(), default=s.now)


def _with_overheads(outlook: Outlook) -> Speeds:
    """Speeds over everything a worker does, for claims as large as the next one would be."""
    s, policy = outlook.situation, outlook.policy
    try:
        frames = _next_size(outlook, policy) if policy is not None and s.open_frames else math.inf
    except Exception:  # a user's policy may raise whatever it likes; the relay is the one to tell
        frames = math.inf
    speeds = {}
    for name in _workers(s):
        rate = s.rate(name)
        if rate is None:
            continue
        overhead, seconds = s.overhead_seconds(name), frames / rate
        whole = max(seconds, overhead) if s.claims_ahead else seconds + overhead
        speeds[name] = Speed(frames=rate * seconds / whole if whole < math.inf else rate, seconds=1.0)
        speeds[name].overhead_seconds = overhead
    return Speeds(speeds)


def _next_size(outlook: Outlook, policy: Policy) -> float:
    s = outlook.situation
    workers = max(1, s.workers)
    ask = Ask(
        worker=s.idle[0] if s.idle else s.busy[0].worker,
        workers=workers,
        total_frames=s.total_frames,
        open_frames=s.open_frames,
        now=s.now,
        grants=outlook.grants,
        speeds=s.speeds,
        caps=outlook.caps,
    )
    part = s.part_frames
    return max(min(policy.size(ask).frames, s.open_frames / workers), part)


# --- what the speeds leave open --------------------------------------------------------------------------


def rate_doubts(situation: Situation, seconds: float) -> dict[str, float]:
    """For each worker the relative standard deviation of its mean speed over the next ``seconds``: how well
    it is known, and how much it will vary by itself."""
    doubts = {}
    for name in _workers(situation):
        speed = situation.speeds.of(name)
        seen = _seconds_seen(speed)
        if seen <= 0:
            doubts[name] = _UNKNOWN
            continue
        variation = sum(_variation(speed))
        seen = max(min(seen, TAU_SECONDS), 1.0)
        doubts[name] = math.sqrt(variation / seen + variation / max(seconds, TAU_SECONDS / 2))
    return doubts


def wavering(situation: Situation) -> float:
    """How much of what is doubted of the speeds was seen to be so, 0 to 1. Where speeds waver, the one way on
    that goes by their means is no likelier than the others, and the middle of all is the better guess."""
    seen = [_variation(situation.speeds.of(name)) for name in _workers(situation)]
    return statistics.fmean(shown / (shown + usual) for shown, usual in seen) if seen else 0.0


def _workers(situation: Situation) -> list[str]:
    return list(dict.fromkeys((*situation.idle, *(claim.worker for claim in situation.busy))))


def _seconds_seen(speed: Speed) -> float:
    """Of rendering."""
    return speed.weight * speed.mean_seconds


def _variation(speed: Speed) -> tuple[float, float]:
    """Relative variance of a second's speed, in two parts: what the reports show, which are taken to vary
    independently, and what is usual, for as many seconds as say nothing against it."""
    seconds = _seconds_seen(speed)
    if seconds <= 0:
        return 0.0, _USUAL
    shown = speed.variance / speed.mean_seconds**2 * seconds / speed.reports
    whole = seconds + _USUAL_SECONDS
    return shown * seconds / whole, _USUAL * _USUAL_SECONDS / whole


def _spread_by_rate(outlook: Outlook, likely: float, doubts: Mapping[str, float]) -> tuple[float, float]:
    s = outlook.situation
    rates = {name: s.rate(name) or 0.0 for name in doubts}
    total = sum(rates.values())
    if total <= 0 or math.isinf(likely):
        return 0.0, 0.0
    relative = math.sqrt(sum((rate * doubts[name]) ** 2 for name, rate in rates.items())) / total
    return (relative * (likely - s.now),) * 2
