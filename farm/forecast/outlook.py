"""What a forecast needs to know, as data: taken from the relay's books in one go, so that the rest can be
worked out elsewhere while the books go on.

Rules of this file:
- nothing of an outlook is shared with the books: it may be read in another thread, so what a situation finds
  out when asked is found out here beforehand;
- taking one costs a pass over workers and claims, and no more;
- a speed that was not measured yet is the declared one, as far as those who were measured keep to theirs,
  else the mean of the measured ones (farm.policies.situation).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace

from farm.frames import PartGrid
from farm.policies.base import Policy
from farm.policies.registry import TailRule
from farm.policies.situation import Busy, Situation
from farm.policies.speeds import Speed, Speeds
from farm.relay.books import Books
from farm.relay.cuts import nearest_cut
from farm.relay.situation import situation
from farm.relay.turn import Turn


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk in flight. Frames of the job."""

    start: int
    next: int  #: first frame of its first uncredited part
    stop: int
    splittable: int  #: first cut at which it may be split
    workers: frozenset[str]  #: everyone who ever held it


@dataclass(frozen=True, slots=True)
class Outlook:
    situation: Situation  #: with speeds of its own
    grid: PartGrid
    open: tuple[tuple[int, int], ...]  #: ranges, in the order they are given out
    chunks: Mapping[int, ChunkView]  #: in flight, in claim order
    policy: Policy | None  #: a copy, since a few remember; None: a user's own that can't be copied
    tail: TailRule
    grants: int  #: chunks granted before
    caps: Mapping[str, float | None]
    lease_seconds: float
    max_outstanding: int | None
    silent: tuple[str, ...] = ()  #: workers that hold nothing and weren't heard since their last claim lapsed

    @property
    def now(self) -> float:
        return self.situation.now


def outlook_of(books: Books, policy: Policy, tail: TailRule, now: float) -> Outlook:
    """The state of ``books`` at lease time ``now``, and what decides about it."""
    seen = situation(Turn(books, now, skipping=tail.from_ == "frontier"), policy)
    speeds = Speeds({name: replace(speed) for name, speed in books.speeds.by_worker.items()})
    splittable = {busy.chunk: seen.splittable(busy) for busy in seen.busy}
    chunks = {
        chunk.number: ChunkView(
            chunk.start, chunk.next, chunk.stop, splittable[chunk.number], frozenset(chunk.workers)
        )
        for chunk in books.chunks.values()
    }
    profiles = _believed(books, speeds) | seen.profiles
    own = _with_claims(
        replace(seen, speeds=speeds, profiles=profiles), books.grid, chunks, seen.idle, seen.busy
    )
    return Outlook(
        situation=own,
        grid=books.grid,
        open=tuple(books.open),
        chunks=chunks,
        policy=_copied(policy),
        tail=tail,
        grants=books.chunk_count,
        caps=dict(books.caps),
        lease_seconds=books.options.lease_seconds,
        max_outstanding=books.options.max_outstanding,
        silent=tuple(name for name in books.silent if not books.workers[name].claims),
    )


def _with_claims(
    situation: Situation,
    grid: PartGrid,
    chunks: Mapping[int, ChunkView],
    idle: tuple[str, ...],
    busy: tuple[Busy, ...],
) -> Situation:
    """The same with these workers idle and these claims live, all of them data of its own."""

    def splittable(claim: Busy) -> int:
        return chunks[claim.chunk].splittable

    def cut_near(claim: Busy, at: float) -> int | None:
        chunk = chunks[claim.chunk]
        starts = [held.start for held in busy if held.chunk == claim.chunk]
        return nearest_cut(grid, chunk.start, chunk.stop, starts, chunk.splittable, at)

    return replace(
        situation,
        find_idle=lambda: idle,
        find_busy=lambda: busy,
        splittable=splittable,
        cut_near=cut_near,
    )


def _believed(books: Books, speeds: Speeds) -> dict[str, tuple[float, float]]:
    """Speed and overhead of every worker, for as long as it isn't measured itself; empty until one is."""
    kept = [
        rate / cap
        for name, cap in books.caps.items()
        if cap and (rate := speeds.of(name).rate) is not None and speeds.of(name).frames > 0
    ]
    share = min(sum(kept) / len(kept), 1.0) if kept else None
    mean, overhead = speeds.mean_rate(), speeds.mean_overhead_seconds()
    if mean is None:
        return {}
    return {
        name: (cap * share, books.workers[name].overhead_seconds) if cap and share else (mean, overhead)
        for name, cap in books.caps.items()
    }


def _copied(policy: Policy) -> Policy | None:
    try:
        return copy.deepcopy(policy)
    except Exception:  # a user's class may refuse in any way it likes
        return None


def with_rates(outlook: Outlook, factors: Mapping[str, float]) -> Outlook:
    """The same with the speeds multiplied by ``factors``, and a policy of its own."""
    before = outlook.situation
    speeds = Speeds(
        {name: _times(speed, factors.get(name, 1.0)) for name, speed in before.speeds.by_worker.items()}
    )
    profiles = {
        name: (rate * factors.get(name, 1.0), overhead) for name, (rate, overhead) in before.profiles.items()
    }
    policy = None if outlook.policy is None else _copied(outlook.policy)
    return replace(outlook, situation=replace(before, speeds=speeds, profiles=profiles), policy=policy)


def _times(speed: Speed, factor: float) -> Speed:
    return replace(speed, frames=speed.frames * factor, recent_frames=speed.recent_frames * factor)


def if_all_were_heard(outlook: Outlook) -> Outlook | None:
    """The same if everybody who is silent came back at this moment; None: nobody is silent."""
    s = outlook.situation
    held = any(s.now - claim.heard_at > s.silent_seconds for claim in s.busy)
    if not held and not outlook.silent:
        return None
    busy = tuple(
        claim._replace(heard_at=s.now) if s.now - claim.heard_at > s.silent_seconds else claim
        for claim in s.busy
    )
    heard = _with_claims(s, outlook.grid, outlook.chunks, s.idle + outlook.silent, busy)
    heard = replace(heard, workers=s.workers + len(outlook.silent))
    return with_rates(replace(outlook, situation=heard, silent=()), {})
