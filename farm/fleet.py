"""The fleet: which workers a run has and what each is like. Fleet files come with farm.scenario."""

from __future__ import annotations

import math

import msgspec

from farm.errors import UsageError


class WorkerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. ``fps_cap`` None means unthrottled; ``overhead_seconds`` passes between a grant and the
    first frame that is worked on. A worker that grows beyond ``memory_bytes`` is stopped."""

    name: str
    fps_cap: float | None = None
    overhead_seconds: float = 0.0
    memory_bytes: int | None = None
    cores: int | None = None  #: what its machine has, for the reader


#: More local processes than this are a typing error, not a fleet.
WORKERS_MAX = 512


def uniform_fleet(workers: int, overhead_seconds: float = 0.0) -> tuple[WorkerProfile, ...]:
    """``workers`` unthrottled workers w1 … wN. Raises UsageError."""
    if not 1 <= workers <= WORKERS_MAX:
        raise UsageError(f"--workers {workers}: a run has 1 to {WORKERS_MAX} workers")
    return tuple(
        WorkerProfile(name=f"w{n}", overhead_seconds=overhead_seconds) for n in range(1, workers + 1)
    )


def parse_fleet(text: str, overhead_seconds: float = 0.0) -> tuple[WorkerProfile, ...]:
    """The shorthand of the write-ups' tables: ``30,30,12,2`` frames per second each, ``max`` = unthrottled.

    Raises UsageError naming the worker that is wrong.
    """
    fields = text.split(",")
    if len(fields) > WORKERS_MAX:
        raise UsageError(f"--fleet names {len(fields)} workers; at most {WORKERS_MAX}")
    fleet = []
    for number, field in enumerate(fields, 1):
        cap: float | None = None
        if field.strip() != "max":
            try:
                cap = float(field)
            except ValueError:
                cap = math.nan
            if not (math.isfinite(cap) and cap > 0):
                raise UsageError(
                    f"--fleet {text}: worker {number} is {field.strip()!r}; give frames per second above 0, "
                    "or 'max' for no limit"
                )
        fleet.append(WorkerProfile(name=f"w{number}", fps_cap=cap, overhead_seconds=overhead_seconds))
    return tuple(fleet)
