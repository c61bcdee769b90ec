"""What a journal knows of every part and every chunk, read back from its records.

Rules of this file: it believes the records, which the journal has checked; it goes through them once, and
keeps of heartbeats only the last of each claim and their number: a run of days has millions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from farm import events as ev
from farm.errors import IdError
from farm.frames import parse_token


class Step(NamedTuple):
    """A transition of a chunk, at lease seconds ``at``."""

    at: float
    what: str  #: granted, duplicated, split, credited, reopened, completed, or how a claim ended
    token: str = ""
    worker: str = ""
    detail: str = ""


@dataclass(slots=True, kw_only=True)
class ClaimLife:
    """One claim, and what its heartbeats came to."""

    token: str
    worker: str
    granted_at: float
    ended_at: float | None = None
    how: str = ""  #: how it ended; empty while it lives
    heartbeats: int = 0
    last_heartbeat_at: float | None = None
    last_progress: ev.ClaimProgress | None = None


@dataclass(slots=True, kw_only=True)
class ChunkLife:
    """One chunk: its transitions in order, and its claims by token."""

    number: int
    start: int
    stop: int
    steps: list[Step] = field(default_factory=list)
    claims: dict[str, ClaimLife] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class PartLife:
    """One part. What is about its bytes is of the copy that counts; empty while none does."""

    part: int
    start: int
    stop: int
    sha256: str = ""
    size_bytes: int = 0
    file: str = ""
    worker: str = ""  #: empty for a part that was adopted from the store
    token: str = ""
    attempt: int = 0  #: of the claim it came under, from 1
    credited_at: float | None = None
    tries: int = 0  #: failures and deaths on it
    set_aside: bool = False
    voided: int = 0  #: how often a credit was taken back
    copies: int = 0  #: that came after the one that counts


@dataclass(slots=True, kw_only=True)
class History:
    """What happened in a run."""

    parts: list[PartLife] = field(default_factory=list)
    chunks: dict[int, ChunkLife] = field(default_factory=dict)


def read_history(records: Iterable[ev.Record]) -> History:
    """Everything the records tell of parts and chunks."""
    history = History()
    for record in records:
        _note_part(history, record.at, record.event)
        _note_chunk(history, record.at, record.event)
    return history


def _note_part(history: History, at: float, event: ev.AnyEvent) -> None:
    parts = history.parts
    match event:
        case ev.RunOpened(cuts=cuts):
            history.parts = [
                PartLife(part=part, start=cuts[part], stop=cuts[part + 1]) for part in range(len(cuts) - 1)
            ]
        case ev.PartCredited(part=part) | ev.PartAdopted(part=part):
            life = parts[part]
            life.sha256, life.size_bytes, life.file = event.sha256, event.size_bytes, event.file
            life.credited_at = at
            if isinstance(event, ev.PartCredited):
                life.worker, life.token = event.worker, event.token
                life.attempt = parse_token(event.token).attempt
        case ev.PartVoided(part=part):
            kept = parts[part]
            parts[part] = PartLife(
                part=part,
                start=kept.start,
                stop=kept.stop,
                tries=kept.tries,
                voided=kept.voided + 1,
                copies=kept.copies,
            )
        case ev.PartFailed(part=part, tries=tries):
            parts[part].tries = tries
        case ev.PartSetAside(part=part):
            parts[part].set_aside = True
        case ev.PartRetried(part=part):
            parts[part].set_aside, parts[part].tries = False, 0
        case ev.PartSuperseded(part=part):
            parts[part].copies += 1
        case _:
            pass


def _note_chunk(history: History, at: float, event: ev.AnyEvent) -> None:
    match event:
        case ev.ClaimGranted(token=token, worker=worker):
            number = parse_token(token).chunk
            chunk = history.chunks.setdefault(
                number, ChunkLife(number=number, start=event.start, stop=event.stop)
            )
            chunk.claims[token] = ClaimLife(token=token, worker=worker, granted_at=at)
            what = "duplicated" if event.duplicate else "granted"
            chunk.steps.append(Step(at, what, token, worker, f"frames [{event.start}, {event.stop})"))
        case ev.LeaseRenewed(claims=claims):
            for progress in claims:
                _note_heartbeat(history, at, progress)
        case ev.ClaimEnded(token=token, worker=worker, how=how):
            chunk = history.chunks[parse_token(token).chunk]
            chunk.claims[token].ended_at, chunk.claims[token].how = at, how
            chunk.steps.append(Step(at, how, token, worker, event.reason))
        case ev.ChunkSplit(chunk=number, at=frame):
            history.chunks[number].steps.append(Step(at, "split", detail=f"at frame {frame}"))
            history.chunks[number].stop = frame
        case ev.RangeReopened(chunk=number, start=start, stop=stop):
            history.chunks[number].steps.append(Step(at, "reopened", detail=f"frames [{start}, {stop})"))
        case ev.ChunkCompleted(chunk=number):
            history.chunks[number].steps.append(Step(at, "completed"))
        case ev.PartCredited(part=part, token=token, worker=worker):
            number = parse_token(token).chunk if event.chunk is None else event.chunk
            history.chunks[number].steps.append(Step(at, "credited", token, worker, f"part {part}"))
        case _:
            pass


def _note_heartbeat(history: History, at: float, progress: ev.ClaimProgress) -> None:
    try:
        chunk = history.chunks.get(parse_token(progress.token).chunk)
    except IdError:
        return
    claim = chunk.claims.get(progress.token) if chunk is not None else None
    if claim is not None:
        claim.heartbeats += 1
        claim.last_heartbeat_at, claim.last_progress = at, progress
