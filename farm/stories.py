"""What went wrong, told so that somebody can do something about it: parts that were set aside, workers that
are gone.

Rules of this file: a story is made of the run's records and of the logs in its folder, so that it can be told
of any run, also later; nothing here raises for a log that is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from farm import events as ev
from farm.worker.log import file_safe

LOG_LINES = 5
_LOG_TAIL_BYTES = 8 << 10
_WORKERS_TOLD = 6


@dataclass(frozen=True, slots=True)
class Try:
    """One failed try of a part."""

    at: float  #: lease seconds
    worker: str
    token: str
    kind: str
    message: str
    log: tuple[str, ...] = ()  #: last lines of the attempt's log


@dataclass(frozen=True, slots=True)
class PartStory:
    """A part that was set aside, and how that came about."""

    part: int
    reason: str
    tries: tuple[Try, ...]


def set_aside_stories(records: Iterable[ev.Record], logs: Path) -> list[PartStory]:
    """The stories of the parts that are set aside at the end of ``records``, by part."""
    tries: dict[int, list[Try]] = {}
    reasons: dict[int, str] = {}
    for record in records:
        match record.event:
            case ev.PartFailed(part=part, token=token, worker=worker, kind=kind, message=message):
                tries.setdefault(part, []).append(Try(record.at, worker, token, kind, message))
            case ev.PartSetAside(part=part, reason=reason):
                reasons[part] = reason
            case ev.PartRetried(part=part):
                tries.pop(part, None)
                reasons.pop(part, None)
            case _:
                pass
    return [
        PartStory(part, reason, tuple(_with_log(one, logs) for one in tries.get(part, ())))
        for part, reason in sorted(reasons.items())
    ]


def _with_log(one: Try, logs: Path) -> Try:
    name = f"{one.worker}-{file_safe(one.token)}.log"
    return Try(one.at, one.worker, one.token, one.kind, one.message, last_lines(logs / name))


def last_lines(log: Path, lines: int = LOG_LINES) -> tuple[str, ...]:
    """The last lines of a log that aren't empty; none if it can't be read."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if line.strip())[-lines:]


def told_ends(ends: Mapping[str, Sequence[str]]) -> str:
    """Why each worker went: ``w1 killed by SIGKILL, 4 times; w2 out of memory: …``."""
    told = []
    for worker, reasons in list(ends.items())[:_WORKERS_TOLD]:
        counted = Counter(reasons)
        told.append(
            f"{worker} "
            + ", ".join(reason + (f", {n} times" if n > 1 else "") for reason, n in counted.items())
        )
    more = len(ends) - len(told)
    return "; ".join([*told, *([f"and {more} more"] if more > 0 else [])]) or "none could be started"
