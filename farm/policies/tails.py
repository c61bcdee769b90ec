"""Tail rules: what an idle worker gets when nothing is open.

- ``none``: nothing.
- ``duplicate-oldest`` (the relay write-up): a second claim on the oldest chunk in flight.
- ``late`` (Zaharia et al., OSDI 2008): a second claim on the chunk expected to finish last, if the copy is
  expected to beat it.
- ``split`` (this project): part of the chunk that would outlast the common finishing time T the most; where a
  split doesn't help, a duplicate that does.

Rules: pure; the relay checks what comes back (holders, cuts) and makes the events.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from farm.policies.situation import GAIN_SECONDS, Busy, Situation


@dataclass(frozen=True, slots=True)
class Split:
    """Give ``[at, stop)`` of a chunk to the worker that asks; ``at`` is rounded to a cut by the relay."""

    claim: Busy
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    claim: Busy
    why: str


def late(worker: str, situation: Situation) -> Duplicate | None:
    s = situation
    rate = s.rate(worker)
    candidates = [c for c in _duplicable(worker, s) if s.eta(c) > s.now]
    if rate is None or not candidates:
        return None
    last = max(candidates, key=lambda claim: (s.eta(claim), -claim.chunk))
    copy = s.now + s.overhead_seconds(worker) + (last.stop - last.seen) / rate
    if copy > s.eta(last) - GAIN_SECONDS:
        return None
    return Duplicate(last, f"c{last.chunk} is expected to finish last, a copy sooner")


def split(worker: str, situation: Situation) -> Split | Duplicate | None:
    s = situation
    rate = s.rate(worker)
    silent = [c for c in _duplicable(worker, s) if math.isinf(s.eta(c)) and s.rate(c.worker) is not None]
    if silent:
        return Duplicate(
            silent[0], f"{silent[0].worker} has been silent for {s.now - silent[0].heard_at:.1f} s"
        )
    if rate is None:
        return None
    ready = s.now + s.overhead_seconds(worker)
    best: Busy | None = None
    most = 0.0
    for claim in s.busy:
        if claim.worker == worker:
            continue
        eta, holder_rate = s.eta(claim), s.rate(claim.worker) or 0.0
        surplus = (eta - s.finish) * holder_rate
        if math.isfinite(eta) and eta > s.finish + GAIN_SECONDS and surplus > most:
            best, most = claim, surplus
    if best is None:
        return None
    eta = s.eta(best)
    found = _split_point(best, min(most, rate * (s.finish - ready)), ready, rate, s)
    if found is not None:
        return Split(best, found, f"{best.worker} alone would outlast the others by {eta - s.finish:.1f} s")
    if best.holders < s.hold and ready + (best.stop - best.seen) / rate <= eta - GAIN_SECONDS:
        return Duplicate(best, f"a copy of c{best.chunk} is expected sooner than {best.worker}'s")
    return None


def _split_point(claim: Busy, share: float, ready: float, rate: float, s: Situation) -> float | None:
    """The first of three cuts after which both ends come sooner than the holder's alone: where the surplus
    begins, where the holder is now, where it was last seen."""
    holder_rate = s.rate(claim.worker)
    assert holder_rate is not None
    if claim.ahead or not claim.begun:
        here = soon = float(claim.start)
    else:
        here = claim.seen + holder_rate * (s.now - claim.heard_at) + 1
        soon = claim.seen + holder_rate * max(s.heartbeat_seconds, s.now - claim.heard_at) + 1
    low = float(claim.splittable)
    for at in (max(claim.stop - share, soon), here, low):
        at = max(at, low)
        if not low <= at < claim.stop:
            continue
        if _gains(claim, at, ready, rate, s):
            return at
    return None


def split_gains(claim: Busy, at: float, worker: str, situation: Situation) -> bool:
    """Whether both ends come sooner than the holder's alone, if ``worker`` takes ``[at, stop)``."""
    rate = situation.rate(worker)
    ready = situation.now + situation.overhead_seconds(worker)
    return rate is not None and _gains(claim, at, ready, rate, situation)


def _gains(claim: Busy, at: float, ready: float, rate: float, s: Situation) -> bool:
    holder_rate = s.rate(claim.worker)
    assert holder_rate is not None
    eta = s.eta(claim)
    ends = ready + (claim.stop - at) / rate
    holder_ends = eta - (claim.stop - at) / holder_rate
    return max(ends, holder_ends) <= eta - GAIN_SECONDS


def _duplicable(worker: str, s: Situation) -> list[Busy]:
    """One claim for each chunk that has room for a holder and is not the worker's, in claim order."""
    mine = {claim.chunk for claim in s.busy if claim.worker == worker}
    return [claim for claim in s.busy if claim.holders < s.hold and claim.chunk not in mine]
