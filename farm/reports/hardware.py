"""The hardware table: what each machine of a fleet was, and what it did, in one line (after the table of the
render-on-strangers write-up).

Rules of this file:
- it is a fold of records, so that a recording and a run folder give the same table;
- what nobody measured is None, never a guess;
- a *stall* is a silence of more than two and a half heartbeats while a worker held a claim, or a claim that
  ended for want of progress; whether the claim lapsed is another column.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from farm import events as ev
from farm.fleet import WorkerProfile

_LAPSES = frozenset({"lapsed", "stalled", "timed out"})


class HardwareRow(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. Shares are of all credited frames, 0 to 1."""

    worker: str
    cores: int | None
    memory_cap_bytes: int | None
    fps_cap: float | None
    fps: float | None  #: mean over credited parts, by the worker's own rendering time
    peak_memory_bytes: int | None
    stalls: int
    chunks: int  #: claims granted
    lapses: int
    duplicates_won: int
    duplicates_lost: int
    losses: int  #: times it died
    failures: int  #: parts that failed with it
    credited_frames: int
    wasted_frames: int
    share: float
    fair_share: float | None  #: by its speed among all; None where the speed of one that worked isn't known


class HardwareReport(msgspec.Struct, frozen=True, kw_only=True):
    """The table, with what it is a table of."""

    run_id: str
    input: str
    output: str
    frames: int
    credited_frames: int
    outcome: str
    loop_stalls: int | None
    loop_worst_seconds: float | None
    workers: tuple[HardwareRow, ...]  #: in the order of the fleet, then of their joining


@dataclass(slots=True)
class _Worker:
    profile: WorkerProfile | None = None
    joined: ev.WorkerJoined | None = None
    peak_bytes: int = 0
    held: dict[str, float] = field(default_factory=dict)  #: live claims, and from when on they render
    heard_at: float = 0.0
    stalls: int = 0
    chunks: int = 0
    lapses: int = 0
    won: int = 0
    lost: int = 0
    losses: int = 0
    failures: int = 0
    frames: int = 0
    wasted: int = 0
    timed_frames: int = 0
    timed_seconds: float = 0.0

    def hear(self, at: float, silence_seconds: float) -> None:
        if self.held and at - self.heard_at > silence_seconds:
            self.stalls += 1
        self.heard_at = at

    @property
    def fps_cap(self) -> float | None:
        """As it joined last: the fleet may have been fitted to the machine, or another one at a resume."""
        if self.joined is not None:
            return self.joined.fps_cap
        return self.profile.fps_cap if self.profile is not None else None

    @property
    def fps(self) -> float | None:
        return self.timed_frames / self.timed_seconds if self.timed_seconds else None


class HardwareFold:
    """Takes records in, oldest first; ``report`` says how things stand."""

    def __init__(self) -> None:
        self._opened: ev.RunOpened | None = None
        self._options = ev.RelayOptions()
        self._workers: dict[str, _Worker] = {}
        self._claims_of_chunk: dict[str, int] = {}
        self._credits: dict[int, ev.PartCredited] = {}
        self._outcome = "not finished"
        self._loop: ev.LoopMeasured | None = None

    def add(self, record: ev.Record) -> None:
        at = record.at
        match record.event:
            case ev.RunOpened() as opened:
                self._opened, self._options = opened, opened.options
                for text in opened.fleet:
                    profile = msgspec.json.decode(text, type=WorkerProfile)
                    self._worker(profile.name).profile = profile
            case ev.OptionsChanged(options=options):
                self._options = options
            case ev.WorkerJoined(worker=name) as joined:
                self._worker(name).joined = joined
            case ev.WorkerLeft(worker=name, lost=lost):
                self._worker(name).losses += lost
            case ev.WorkerPeaked(worker=name, peak_bytes=peak):
                worker = self._worker(name)
                worker.peak_bytes = max(worker.peak_bytes, peak)
            case ev.LeaseRenewed(worker=name):
                self._worker(name).hear(at, self._options.silent_seconds)
            case ev.ClaimGranted() as granted:
                self._granted(at, granted)
            case ev.ClaimEnded() as ended:
                self._ended(at, ended)
            case ev.PartCredited() as credit:
                self._credited(at, credit)
            case ev.PartSuperseded(worker=name, frames=frames):
                self._worker(name).wasted += frames
            case ev.PartVoided(part=part):
                self._voided(part)
            case ev.PartFailed(worker=name):
                self._worker(name).failures += 1
            case ev.LoopMeasured() as measured:
                self._loop = measured
            case ev.RunFinished(outcome=outcome):
                self._outcome = outcome
            case _:
                pass

    def report(self) -> HardwareReport:
        opened = self._opened
        total = sum(worker.frames for worker in self._workers.values())
        speeds = {name: _speed(worker) for name, worker in self._workers.items()}
        known = all(speeds[name] is not None for name, worker in self._workers.items() if worker.chunks)
        sum_speeds = sum(speed for speed in speeds.values() if speed is not None)
        return HardwareReport(
            run_id=opened.run_id if opened else "",
            input=opened.input if opened else "",
            output=opened.output if opened else "",
            frames=opened.frames if opened else 0,
            credited_frames=total,
            outcome=self._outcome,
            loop_stalls=self._loop.stalls if self._loop else None,
            loop_worst_seconds=self._loop.worst_seconds if self._loop else None,
            workers=tuple(
                _row(
                    name, worker, total, (speeds[name] or 0.0) / sum_speeds if known and sum_speeds else None
                )
                for name, worker in self._workers.items()
            ),
        )

    def _worker(self, name: str) -> _Worker:
        return self._workers.setdefault(name, _Worker())

    def _granted(self, at: float, event: ev.ClaimGranted) -> None:
        worker = self._worker(event.worker)
        worker.hear(at, self._options.silent_seconds)
        worker.held[event.token] = at
        worker.chunks += 1
        chunk = _chunk(event.token)
        self._claims_of_chunk[chunk] = self._claims_of_chunk.get(chunk, 0) + 1

    def _ended(self, at: float, event: ev.ClaimEnded) -> None:
        worker = self._worker(event.worker)
        if event.how == "lapsed" and at - worker.heard_at > self._options.silent_seconds:
            worker.stalls += 1  # it was not heard again while it held this
        worker.stalls += event.how == "stalled"
        worker.lapses += event.how in _LAPSES
        worker.held.pop(event.token, None)
        worker.wasted += event.wasted_frames
        duplicated = self._claims_of_chunk.get(_chunk(event.token), 0) > 1
        worker.won += event.how == "completed" and duplicated
        worker.lost += event.how == "superseded"

    def _credited(self, at: float, event: ev.PartCredited) -> None:
        worker = self._worker(event.worker)
        worker.hear(at, self._options.silent_seconds)
        worker.frames += event.frames
        if event.render_seconds > 0:
            worker.timed_frames += event.frames
            worker.timed_seconds += self._believable(at, worker, event)
        self._credits[event.part] = event

    @staticmethod
    def _believable(at: float, worker: _Worker, event: ev.PartCredited) -> float:
        """A worker also counts the seconds in which it was stopped; lease time does not."""
        began = worker.held.get(event.token)
        if began is None:
            return event.render_seconds
        seconds = min(event.render_seconds, max(at - began, 0.0))
        worker.held[event.token] = began + seconds
        return seconds

    def _voided(self, part: int) -> None:
        credit = self._credits.pop(part, None)
        if credit is not None:
            self._worker(credit.worker).frames -= credit.frames


def hardware_report(records: Iterable[ev.Record]) -> HardwareReport:
    """The hardware table of a run."""
    fold = HardwareFold()
    for record in records:
        fold.add(record)
    return fold.report()


def _row(name: str, worker: _Worker, total: int, fair_share: float | None) -> HardwareRow:
    profile = worker.profile
    return HardwareRow(
        worker=name,
        cores=profile.cores if profile else None,
        memory_cap_bytes=profile.memory_bytes if profile else None,
        fps_cap=worker.fps_cap,
        fps=worker.fps,
        peak_memory_bytes=worker.peak_bytes or None,
        stalls=worker.stalls,
        chunks=worker.chunks,
        lapses=worker.lapses,
        duplicates_won=worker.won,
        duplicates_lost=worker.lost,
        losses=worker.losses,
        failures=worker.failures,
        credited_frames=worker.frames,
        wasted_frames=worker.wasted,
        share=worker.frames / total if total else 0.0,
        fair_share=fair_share,
    )


def _speed(worker: _Worker) -> float | None:
    return worker.fps_cap or worker.fps


def _chunk(token: str) -> str:
    return token.partition("#")[0]
