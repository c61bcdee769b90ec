"""What each worker did and how fast it is, folded from events: states, spans, speeds and throughput.

Rules of this file:
- times are lease seconds of the run, as in ``Record.at``; nothing here reads a clock;
- a span is what a worker was doing in ``[start_seconds, stop_seconds)``; a running span has no stop and is
  drawn up to now;
- everything that grows is bounded: old spans and old throughput fall out at the far end;
- what there are thousands of is nothing for the garbage collector to follow (``gc=False``): it has no cycles.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

WorkerState = Literal["idle", "parked", "waiting", "rendering", "stalled", "blocked", "killed", "left"]
SpanKind = Literal["claim", "duplicate", "lapsed", "refused", "split", "idle", "stalled"]

#: States in which a worker has no part in the run any more.
GONE: Final = frozenset[WorkerState]({"killed", "left"})
#: States in which a worker has a claim and is at it.
BUSY: Final = frozenset[WorkerState]({"waiting", "rendering"})
#: States of a worker that can be counted on for frames.
USEFUL: Final = BUSY | frozenset[WorkerState]({"idle", "parked"})

SPANS_MAX = 512
BUCKETS_MAX = 3600
#: Weight of the past in a worker's speed: what is this old counts 1/e.
RATE_MEMORY_SECONDS = 20.0


class Span(msgspec.Struct, gc=False):
    """What a worker did for a while. ``refused`` and ``split`` are moments: their stop is their start."""

    kind: SpanKind
    start_seconds: float
    stop_seconds: float | None = None
    label: str = ""  #: token of the claim, or why the worker stood still


class PartDelivery(msgspec.Struct, frozen=True, gc=False):
    """A part on its way to the store: its first ``done`` of ``of`` blocks are there."""

    part: int
    done: int
    of: int
    size_bytes: int  #: of these blocks


class ClaimModel(msgspec.Struct, gc=False):
    """A live claim on frames ``[start, stop)``, as far as events tell."""

    token: str
    worker: str
    start: int
    stop: int
    granted_at: float
    duplicate: bool
    position: int  #: next frame to be encoded, never goes back
    rendered: int = 0  #: frames encoded since the grant
    delivered: int = 0  #: of these, frames of parts that were handed over
    timed_seconds: float = 0.0  #: rendering time of the parts that were handed over
    delivering: PartDelivery | None = None  #: in blocks

    @property
    def undelivered(self) -> int:
        """Frames that are lost if the claim ends now, as far as reported."""
        return max(self.rendered - self.delivered, 0)

    @property
    def chunk(self) -> str:
        return self.token.partition("#")[0]


@dataclass(slots=True)
class Rate:
    """Frames per second, newer samples counting more."""

    frames: float = 0.0
    seconds: float = 0.0

    def add(self, frames: int, seconds: float) -> None:
        keep = math.exp(-seconds / RATE_MEMORY_SECONDS)
        self.frames = self.frames * keep + frames
        self.seconds = self.seconds * keep + seconds

    @property
    def fps(self) -> float | None:
        """None while nothing was measured."""
        return self.frames / self.seconds if self.seconds > 0 and self.frames > 0 else None


@dataclass(slots=True)
class WorkerModel:
    """One worker: what it does now, what it did, how fast it is."""

    name: str
    pid: int | None = None
    host: str = ""
    fps_cap: float | None = None
    overhead_seconds: float = 0.0
    state: WorkerState = "idle"
    since: float = 0.0  #: when the present state began
    heard_at: float = 0.0  #: last time anything came from this worker
    blocked_until: float | None = None
    note: str = ""  #: why it is parked, blocked, or gone
    held: list[ClaimModel] = field(default_factory=list)  #: live claims; the first is the active one
    spans: deque[Span] = field(default_factory=lambda: deque(maxlen=SPANS_MAX))
    spans_total: int = 0
    seconds: dict[WorkerState, float] = field(default_factory=dict)  #: spent in each state that has ended
    rate: Rate = field(default_factory=Rate)
    claims: int = 0
    duplicates: int = 0
    lapses: int = 0
    refusals: int = 0
    failures: int = 0
    losses: int = 0
    credited_parts: int = 0
    credited_frames: int = 0
    wasted_frames: int = 0
    voided_frames: int = 0  #: credited, and taken back
    timed_frames: int = 0  #: credited frames whose rendering time is known
    timed_seconds: float = 0.0
    peak_bytes: int = 0  #: of memory, as far as told
    frozen: bool = False  #: stopped by the operator, until thawed by the operator
    _sampled_at: float = 0.0
    _unsampled: int = 0

    # --- the active claim --------------------------------------------------------------------------------

    @property
    def claim(self) -> ClaimModel | None:
        return self.held[0] if self.held else None

    @property
    def token(self) -> str | None:
        return self.held[0].token if self.held else None

    @property
    def start(self) -> int | None:
        return self.held[0].start if self.held else None

    @property
    def stop(self) -> int | None:
        return self.held[0].stop if self.held else None

    @property
    def position(self) -> int | None:
        return self.held[0].position if self.held else None

    # --- speed -------------------------------------------------------------------------------------------

    @property
    def fps(self) -> float | None:
        """Frames per second now: None when it isn't known or there is nothing to do, 0.0 when stalled."""
        if self.state == "stalled":
            return 0.0
        return self.rate.fps if self.state in BUSY else None

    @property
    def measured_fps(self) -> float | None:
        """Mean speed over all credited parts whose rendering time is known."""
        return self.timed_frames / self.timed_seconds if self.timed_seconds > 0 else None

    @property
    def is_gone(self) -> bool:
        return self.state in GONE

    def is_silent(self, now: float, limit_seconds: float) -> bool:
        """Whether it holds a claim and nothing came from it for ``limit_seconds``."""
        return bool(self.held) and now - self.heard_at > limit_seconds

    def works_from(self, claim: ClaimModel) -> float:
        """When the overhead of a claim is over and frames begin."""
        return claim.granted_at + self.overhead_seconds

    def sample(self, at: float, frames: int, claim: ClaimModel) -> None:
        """``frames`` more were encoded under ``claim`` by the time ``at``."""
        self._unsampled += frames
        began = claim.granted_at + self.overhead_seconds
        seconds = at - (began if began > self._sampled_at else self._sampled_at)
        if seconds > 0:
            self.rate.add(self._unsampled, seconds)
            self._sampled_at, self._unsampled = at, 0

    # --- states and spans --------------------------------------------------------------------------------

    def enter(self, state: WorkerState, at: float) -> None:
        """Go to ``state``; the time in the old one is added up."""
        if state != self.state:
            self.seconds[self.state] = self.seconds.get(self.state, 0.0) + max(at - self.since, 0.0)
            self.state, self.since = state, at

    def join(
        self, at: float, pid: int | None, host: str, fps_cap: float | None, overhead_seconds: float
    ) -> None:
        """It introduced itself, for the first time or again."""
        self.pid, self.host, self.fps_cap, self.overhead_seconds = pid, host, fps_cap, overhead_seconds
        self.frozen, self.blocked_until = False, None
        self.rest("idle", at)

    def leave(self, at: float, reason: str, lost: bool) -> None:
        self.losses += lost
        self.note = reason
        self.enter("killed" if lost else "left", at)
        self.close_span(at)

    def rest(self, state: WorkerState, at: float, why: str = "") -> None:
        """Stand without a claim."""
        self.heard_at = at
        self.note = why
        self.enter(state, at)
        self.open_span("idle", at, why)

    def take(self, at: float, claim: ClaimModel) -> None:
        """It was granted a claim."""
        self.claims += 1
        self.duplicates += claim.duplicate
        self.held.append(claim)
        if len(self.held) == 1:
            self._begin(at)

    def drop(self, at: float, claim: ClaimModel, *, lapsed: bool) -> None:
        """One of its claims ended."""
        active = claim is self.claim
        if claim in self.held:
            self.held.remove(claim)
        if not active or self.is_gone:
            return
        if lapsed:
            self._show_lapse(at, claim)
        elif self.frozen:
            return
        elif self.held:
            self._begin(at)
        else:
            self.rest("idle", at)

    def heard(self, at: float) -> None:
        """Something came from it. What a frozen worker had sent before doesn't thaw it."""
        self.heard_at = at
        if self.state == "stalled" and not self.frozen:
            self.revive(at)

    def refuse(self, at: float, label: str) -> None:
        self.refusals += 1
        if self.is_gone:
            return
        self.heard(at)
        self.mark("refused", at, label)

    def freeze(self, at: float) -> None:
        """The operator stopped it."""
        self.frozen = True
        self.enter("stalled", at)
        self.open_span("stalled", at, "stopped by operator")

    def revive(self, at: float) -> None:
        """It moves again after a stall or a lapse."""
        self.frozen = False
        if self.state != "stalled":
            return
        if self.held:
            self._sampled_at = at
            self.enter("rendering", at)
            self._open_claim_span(at)
        else:
            self.rest("idle", at)

    def credit(self, frames: int, render_seconds: float) -> None:
        self.credited_parts += 1
        self.credited_frames += frames
        if render_seconds > 0:
            self.timed_frames += frames
            self.timed_seconds += render_seconds

    def uncredit(self, frames: int) -> None:
        """A part it was credited with is not trusted any more."""
        self.credited_parts -= 1
        self.credited_frames -= frames
        self.voided_frames += frames

    def believable(self, at: float, claim: ClaimModel, render_seconds: float) -> float:
        """How much of the rendering time a worker tells can be true by the run's clock, which leaves out the
        time in which the machine slept or everything was stopped."""
        room = max(at - self.works_from(claim) - claim.timed_seconds, 0.0)
        seconds = min(render_seconds, room)
        claim.timed_seconds += seconds
        return seconds

    def _begin(self, at: float) -> None:
        """The first of its claims becomes the active one."""
        self.heard_at = at
        self.frozen = False
        self.note = ""
        self.enter("waiting" if self.overhead_seconds > 0 else "rendering", at)
        self._open_claim_span(at)

    def _open_claim_span(self, at: float) -> None:
        claim = self.held[0]
        self.open_span("duplicate" if claim.duplicate else "claim", at, claim.token)

    def _show_lapse(self, at: float, claim: ClaimModel) -> None:
        """From the last word on, what looked like work was silence."""
        silent_since = min(max(self.heard_at, self.since), at)
        if self.state != "stalled":
            self.enter("stalled", silent_since)
        running = self.spans[-1] if self.spans and self.spans[-1].stop_seconds is None else None
        if running is not None and running.kind == "stalled":
            running.kind, running.label = "lapsed", claim.token
        else:
            self.open_span("lapsed", silent_since, claim.token)
        self.open_span("stalled", at, "silent since its lapse")

    def start_rendering(self, at: float) -> None:
        """The active claim's first frames showed; rendering began when its overhead was over."""
        if self.state == "waiting" and self.held:
            self.enter("rendering", min(max(self.works_from(self.held[0]), self.since), at))

    def seconds_in(self, states: frozenset[WorkerState], now: float) -> float:
        """Time spent in ``states`` until ``now``, the present state included."""
        past = sum(seconds for state, seconds in self.seconds.items() if state in states)
        return past + (max(now - self.since, 0.0) if self.state in states else 0.0)

    def open_span(self, kind: SpanKind, at: float, label: str = "") -> None:
        """End the running span and begin another."""
        self.close_span(at)
        self._add(Span(kind, at, None, label))

    def close_span(self, at: float) -> None:
        """End the running span; one that took no time is dropped."""
        span = self.spans[-1] if self.spans else None
        if span is None or span.stop_seconds is not None:
            return
        if at <= span.start_seconds and span.kind == "idle":
            self.spans.pop()
            self.spans_total -= 1
        else:
            span.stop_seconds = max(at, span.start_seconds)

    def mark(self, kind: SpanKind, at: float, label: str) -> None:
        """Put a moment before the running span goes on."""
        running = self.spans[-1] if self.spans and self.spans[-1].stop_seconds is None else None
        self.close_span(at)
        self._add(Span(kind, at, at, label))
        if running is not None:
            self._add(Span(running.kind, at, None, running.label))

    def _add(self, span: Span) -> None:
        self.spans.append(span)
        self.spans_total += 1


class Throughput:
    """Credited frames of each second of the run, for the last ``BUCKETS_MAX`` seconds."""

    __slots__ = ("_buckets", "_first", "total")

    def __init__(self) -> None:
        self._buckets: deque[int] = deque()
        self._first = 0  #: the second that the first bucket stands for
        self.total = 0

    def add(self, at: float, frames: int) -> None:
        self.total += frames
        second = int(at)
        if 0 <= second - self._first < len(self._buckets):
            self._buckets[second - self._first] += frames
            return
        if not self._buckets or second - self._first >= 2 * BUCKETS_MAX:
            self._buckets.clear()
            self._first = second
        while self._first + len(self._buckets) <= second:
            self._buckets.append(0)
        while len(self._buckets) > BUCKETS_MAX:
            self._buckets.popleft()
            self._first += 1
        if second >= self._first:
            self._buckets[second - self._first] += frames

    def last(self, now: float, seconds: int) -> list[int]:
        """Frames of each of the last ``seconds`` whole seconds before ``now``, oldest first."""
        stop = int(now)
        return [self.at(second) for second in range(stop - seconds, stop)]

    def at(self, second: int) -> int:
        """Frames credited in ``[second, second + 1)``; 0 where nothing is known any more."""
        index = second - self._first
        return self._buckets[index] if 0 <= index < len(self._buckets) else 0

    def fps(self, now: float, seconds: int) -> float:
        """Mean over the last ``seconds`` whole seconds that the run has had."""
        known = min(seconds, int(now))
        return sum(self.last(now, known)) / known if known > 0 else 0.0

    def digest(self) -> tuple[int, int, tuple[int, ...]]:
        return self.total, self._first, tuple(self._buckets)
