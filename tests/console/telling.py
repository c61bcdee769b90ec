"""Tells an event log step by step; see story.py for logs that tell themselves.

``Story`` keeps small books of its own, so that what it tells is consistent: a claim that ends reopens what it
had not delivered, a last credit completes the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from farm import events as ev
from farm.frames import PartGrid


@dataclass
class Claim:
    token: str
    chunk: int
    worker: str
    start: int
    stop: int
    position: int
    rendered: int = 0
    credited: int = 0
    superseded: int = 0


@dataclass
class Chunk:
    start: int
    stop: int
    left: int  #: parts not yet credited
    attempts: int = 0
    claims: list[Claim] = field(default_factory=list)


class Story:
    """A log in the making. Every method adds records at the time ``now`` and returns what the next needs."""

    def __init__(
        self,
        frames: int = 480,
        part: int = 48,
        *,
        input: str = "nightfall.mkv",
        options: ev.RelayOptions | None = None,
        fleet: tuple[str, ...] = (),
        cuts: Sequence[int] | None = None,
    ) -> None:
        self.grid = PartGrid(cuts or (*range(0, frames, part), frames))
        self.options = options or ev.RelayOptions()
        self.records: list[ev.Record] = []
        self.now = 0.0
        self.epoch = 0
        self.live: dict[str, Claim] = {}
        self.chunks: dict[int, Chunk] = {}
        self.chunk_count = 0
        self.credited: set[int] = set()
        self.set_aside: set[int] = set()
        self.open: set[int] = set(range(self.grid.parts))
        self.workers: set[str] = set()
        self.add(
            ev.RunOpened(
                run_id="r-7f3a",
                input=input,
                output="nightfall.out.mp4",
                frames=self.grid.frames,
                cuts=self.grid.cuts,
                settings_hash="5e77",
                fingerprint="f00d",
                build="test",
                options=self.options,
                frame_rate=24.0,
                fleet=fleet,
            )
        )
        self.start()

    def at(self, seconds: float) -> Story:
        self.now = seconds
        return self

    def add(self, event: ev.AnyEvent) -> None:
        self.records.append(ev.Record(len(self.records), self.now, event))

    def start(self) -> None:
        """The relay starts, or starts again: claims and workers of before are over."""
        self.epoch += 1
        self.add(ev.RelayStarted(epoch=self.epoch))
        for token in list(self.live):
            self.end(token, "relay restarted")
        for worker in sorted(self.workers):
            self.leave(worker, "relay restarted")

    def phase(self, name: Any) -> None:
        self.add(ev.PhaseStarted(phase=name))

    def join(self, worker: str, fps_cap: float | None = None, overhead_seconds: float = 0.0) -> None:
        self.workers.add(worker)
        self.add(ev.WorkerJoined(worker=worker, fps_cap=fps_cap, overhead_seconds=overhead_seconds, pid=4242))

    def leave(self, worker: str, reason: str = "done", *, lost: bool = False) -> None:
        self.workers.discard(worker)
        for claim in [claim for claim in self.live.values() if claim.worker == worker]:
            if lost:
                self._try_lost(claim, reason)
            self.end(claim.token, "worker left", reason)
        self.add(ev.WorkerLeft(worker=worker, reason=reason, lost=lost))

    def _try_lost(self, claim: Claim, reason: str) -> None:
        part = self.grid.part_at(min(claim.position, claim.stop - 1))
        self.add(
            ev.PartFailed(
                part=part, token=claim.token, worker=claim.worker, kind="worker lost", message=reason, tries=1
            )
        )

    def grant(self, worker: str, first_part: int, last_part: int, why: str = "") -> str:
        """A claim on the open parts ``[first_part, last_part)``."""
        start = self.grid.start(first_part)
        chunk = Chunk(start, self.grid.stop(last_part - 1), last_part - first_part)
        assert first_part < last_part and self.open.issuperset(range(first_part, last_part))
        self.open.difference_update(range(first_part, last_part))
        self.chunks[self.chunk_count] = chunk
        self.chunk_count += 1
        return self._grant(worker, self.chunk_count - 1, chunk, start, why)

    def duplicate(self, worker: str, token: str) -> str:
        """A second claim on the chunk of a live claim, from its first uncredited part on."""
        number = self.live[token].chunk
        chunk = self.chunks[number]
        first = next(p for p in self.grid.parts_in(chunk.start, chunk.stop) if p not in self.credited)
        why = f"nothing is open; c{number} is the oldest chunk in flight"
        return self._grant(worker, number, chunk, self.grid.start(first), why, duplicate=True)

    def _grant(
        self, worker: str, number: int, chunk: Chunk, start: int, why: str, *, duplicate: bool = False
    ) -> str:
        chunk.attempts += 1
        token = f"c{number}#{chunk.attempts}@e{self.epoch}"
        claim = Claim(token, number, worker, start, chunk.stop, start)
        chunk.claims.append(claim)
        self.live[token] = claim
        self.add(
            ev.ClaimGranted(
                token=token,
                worker=worker,
                start=start,
                stop=chunk.stop,
                lease_seconds=self.options.lease_seconds,
                duplicate=duplicate,
                why=why,
            )
        )
        return token

    def beat(self, token: str, position: int) -> None:
        """A heartbeat of the claim's worker: frames before ``position`` are encoded."""
        claim = self.live[token]
        claim.position = max(claim.position, position)
        claim.rendered = claim.position - claim.start
        progress = ev.ClaimProgress(token, claim.position, claim.rendered, claim.rendered + 2)
        self.add(ev.LeaseRenewed(worker=claim.worker, claims=(progress,)))

    def credit(
        self, token: str, part: int, *, render_seconds: float = 0.0, size_bytes: int = 100_000
    ) -> None:
        """The part comes in under ``token``: credited, or acknowledged with zero frames."""
        claim = self.live[token]
        frames = self.grid.size(part)
        claim.position = max(claim.position, self.grid.stop(part))
        claim.rendered = max(claim.rendered, claim.credited + claim.superseded + frames)
        if part in self.credited:
            claim.superseded += frames
            self.add(
                ev.PartSuperseded(part=part, token=token, worker=claim.worker, frames=frames, reason="second")
            )
            return
        self.credited.add(part)
        claim.credited += frames
        self.add(
            ev.PartCredited(
                part=part,
                frames=frames,
                token=token,
                worker=claim.worker,
                file=f"p{part:06d}-{token.replace('#', '.').replace('@', '.')}.part",
                size_bytes=size_bytes,
                sha256="ab" * 32,
                render_seconds=render_seconds,
            )
        )
        chunk = self.chunks[claim.chunk]
        chunk.left -= 1
        if chunk.left:
            return
        for other in list(chunk.claims):
            by = f"{claim.worker} delivered first"
            self.end(other.token, *(("completed", "") if other is claim else ("superseded", by)))

    def end(self, token: str, how: Any, reason: str = "") -> None:
        claim = self.live.pop(token)
        chunk = self.chunks[claim.chunk]
        chunk.claims.remove(claim)
        wasted = claim.rendered - claim.credited - claim.superseded
        self.add(
            ev.ClaimEnded(token=token, worker=claim.worker, how=how, reason=reason, wasted_frames=wasted)
        )
        if chunk.claims:
            return
        rest = self._missing(chunk)
        for part in rest:
            self.open.add(part)
            span = self.grid.range(part)
            self.add(ev.RangeReopened(start=span.start, stop=span.stop, chunk=claim.chunk))
        if not rest:
            self.add(ev.ChunkCompleted(chunk=claim.chunk))
        del self.chunks[claim.chunk]

    def _missing(self, chunk: Chunk) -> list[int]:
        return [p for p in self.grid.parts_in(chunk.start, chunk.stop) if p not in self.credited]

    def lapse(self, token: str) -> None:
        self.end(token, "lapsed", f"no heartbeat for {self.options.lease_seconds:.1f} s")

    def refuse(self, worker: str, token: str, asked: str = "deliver", holder: str | None = None) -> None:
        reason = f"{token} lapsed: no heartbeat for {self.options.lease_seconds:.1f} s"
        self.add(ev.ClaimRefused(worker=worker, asked=asked, token=token, reason=reason, holder=holder))

    def park(self, worker: str, why: str = "nothing is open and no chunk may be duplicated") -> None:
        self.add(ev.WorkerParked(worker=worker, why=why))

    def fail(self, token: str, part: int, tries: int = 1, message: str = "encoder: invalid option") -> None:
        worker = self.live[token].worker
        self.add(
            ev.PartFailed(part=part, token=token, worker=worker, kind="encoder", message=message, tries=tries)
        )
        self.end(token, "failed", message)

    def put_aside(self, part: int, tries: int = 3) -> None:
        self.open.discard(part)
        self.set_aside.add(part)
        self.add(ev.PartSetAside(part=part, tries=tries, reason=f"failed {tries} times, by w1, w2"))

    def adopt(self, part: int) -> None:
        self.open.discard(part)
        self.credited.add(part)
        size = self.grid.size(part)
        self.add(ev.PartAdopted(part=part, frames=size, file="x.part", size_bytes=100_000, sha256="cd" * 32))

    def act(self, action: str, worker: str | None = None, detail: str = "") -> None:
        self.add(ev.OperatorActed(action=action, worker=worker, detail=detail))

    @property
    def credited_frames(self) -> int:
        return sum(map(self.grid.size, self.credited))

    @property
    def set_aside_frames(self) -> int:
        return sum(map(self.grid.size, self.set_aside))

    def finish(self, makespan_seconds: float | None = None, exit_code: int = 0) -> None:
        """The work is done; stitched, verified and over."""
        self.add(
            ev.WorkFinished(
                credited_frames=self.credited_frames,
                set_aside_frames=self.set_aside_frames,
                makespan_seconds=self.now if makespan_seconds is None else makespan_seconds,
            )
        )
        for phase in ("stitch", "verify"):
            self.phase(phase)
            self.add(ev.PhaseProgressed(phase=phase, fraction=0.5))
            self.now += 0.5
        for worker in sorted(self.workers):
            self.leave(worker)
        self.add(
            ev.RunFinished(
                exit_code=exit_code,
                outcome="done and verified" if exit_code == 0 else "finished incomplete",
                packets_sha256="9f3c" * 16,
                output_bytes=12_345_678,
                stream_frames=self.credited_frames,
            )
        )
