"""Tail rules: what an idle worker gets when nothing is open.

- ``none``: nothing.
- ``duplicate-oldest`` (the relay write-up): a second claim on the oldest chunk in flight.
- ``late`` (Zaharia et al., OSDI 2008): a second claim on the chunk expected to finish last, if the copy is
  expected to beat it.
- ``split`` (this project): part of the chunk that would outlast the common finishing time T the most; where a
  split doesn't help, a duplicate that does.

Rules: pure; the relay checks what comes back (holders, parts that a worker has failed) and makes the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from farm.policies.situation import GAIN_SECONDS, Busy, Situation

#: Late claims that are tried, the latest first, before a worker is left to wait.
_LOOK_AT = 4


@dataclass(frozen=True, slots=True)
class Split:
    """Give ``[cut, stop)`` of a chunk to the worker that asks."""

    claim: Busy
    cut: int
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
    mine = _chunks_of(worker, s)
    rate = s.rate(worker)
    for claim in s.silent:
        if claim.holders < s.hold and claim.chunk not in mine:
            silent = s.now - claim.heard_at
            return Duplicate(claim, f"{claim.worker} has been silent for {silent:.1f} s")
    if rate is None:
        return None
    others = (late for late in s.late if late.claim.worker != worker)
    for claim, surplus in islice(others, _LOOK_AT):
        eta = s.eta(claim)
        cut = _split_point(claim, surplus, worker, rate, s)
        if cut is not None:
            return Split(
                claim, cut, f"{claim.worker} alone would outlast the others by {eta - s.finish:.1f} s"
            )
        if claim.holders < s.hold and claim.chunk not in mine and _copy_pays(claim, worker, rate, s):
            return Duplicate(claim, f"a copy of c{claim.chunk} is expected sooner than {claim.worker}'s")
    return None


def _copy_pays(claim: Busy, worker: str, rate: float, s: Situation) -> bool:
    """Whether a copy by ``worker`` is expected to beat the holder, and nobody else's would beat that: a chunk
    has room for one."""
    frames = (claim.stop - claim.next) * s.hardness(claim)
    ends = s.starts_at(worker) + frames / rate
    return ends <= min(s.eta(claim) - GAIN_SECONDS, s.soonest(frames) + GAIN_SECONDS)


def _split_point(claim: Busy, surplus: float, worker: str, rate: float, s: Situation) -> int | None:
    """The first of four cuts after which both ends come sooner than the holder's alone: where the surplus
    begins, where both would end together, where the holder is now, where it was last seen."""
    holder_rate = s.rate(claim.worker)
    assert holder_rate is not None
    hardness = s.hardness(claim)
    rate, holder_rate = rate / hardness, holder_rate / hardness
    eta = s.eta(claim)
    ready = s.starts_at(worker)
    share = min(surplus, rate * (s.finish - ready))
    here = soon = float(claim.start)
    if claim.begun and not claim.ahead:
        heard = s.now - claim.heard_at
        here = claim.seen + holder_rate * heard + 1
        soon = claim.seen + holder_rate * max(s.heartbeat_seconds, heard) + 1
    even = (eta - ready) / (1 / rate + 1 / holder_rate)
    for at in (max(claim.stop - share, soon), max(claim.stop - even, soon), here, float(s.splittable(claim))):
        cut = s.cut_near(claim, at) if at < claim.stop else None
        # Judged at the cut: a swap from which nobody gains would be made back and forth for ever; with a gain
        # each time it ends.
        if cut is not None:
            rest = claim.stop - cut
            if max(ready + rest / rate, eta - rest / holder_rate) <= eta - GAIN_SECONDS:
                return cut
    return None


def _chunks_of(worker: str, s: Situation) -> set[int]:
    """The chunks that ``worker`` holds; one that asks for work holds none."""
    if worker not in s.done_at:
        return set()
    return {claim.chunk for claim in s.busy if claim.worker == worker}


def _duplicable(worker: str, s: Situation) -> list[Busy]:
    """One claim for each chunk that has room for a holder and is not the worker's, in claim order."""
    mine = _chunks_of(worker, s)
    return [claim for claim in s.busy if claim.holders < s.hold and claim.chunk not in mine]
