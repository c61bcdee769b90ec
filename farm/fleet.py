"""The fleet: which workers a run has and what each is like. Fleet files come with farm.scenario."""

from __future__ import annotations

import math
import re
from collections.abc import Container

import msgspec

from farm.errors import UsageError

MIB = 1 << 20
#: The longest block of a delivery (DESIGN.md §6).
BLOCK_BYTES_MAX = 5 * MIB


class LinkProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The network between a worker and the store. ``mib_per_second`` None means without limit; every block
    takes ``latency_seconds`` besides, and breaks the delivery with the probability ``drop_rate``."""

    mib_per_second: float | None = None
    latency_seconds: float = 0.0
    drop_rate: float = 0.0
    block_bytes: int = BLOCK_BYTES_MAX  #: a delivery that breaks loses one block at most

    def blocks(self, size_bytes: int) -> int:
        """How many blocks so many bytes are."""
        return -(-size_bytes // self.block_bytes)

    def sending_seconds(self, size_bytes: float) -> float:
        """What so many bytes take, without the latency."""
        return 0.0 if self.mib_per_second is None else size_bytes / (self.mib_per_second * MIB)


class WorkerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. ``fps_cap`` None means unthrottled; ``overhead_seconds`` passes between a grant and the
    first frame that is worked on. ``link`` None: it shares the store's disk and delivers by rename. A worker
    that grows beyond ``memory_bytes`` is stopped."""

    name: str
    fps_cap: float | None = None
    overhead_seconds: float = 0.0
    link: LinkProfile | None = None
    memory_bytes: int | None = None
    cores: int | None = None  #: what its machine has, for the reader


#: More local processes than this are a typing error, not a fleet.
WORKERS_MAX = 512
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,3})?\Z", re.ASCII | re.IGNORECASE)
#: Slower than a frame in a quarter of an hour, or faster than any clock can tell, is one, too.
FPS_MIN, FPS_MAX = 0.001, 1e6


def uniform_fleet(workers: int, overhead_seconds: float = 0.0) -> tuple[WorkerProfile, ...]:
    """``workers`` unthrottled workers w1 … wN. Raises UsageError."""
    if not 1 <= workers <= WORKERS_MAX:
        raise UsageError(f"--workers {workers}: a run has 1 to {WORKERS_MAX} workers")
    return tuple(
        WorkerProfile(name=f"w{n}", overhead_seconds=overhead_seconds) for n in range(1, workers + 1)
    )


def parse_fleet(
    text: str,
    overhead_seconds: float = 0.0,
    *,
    hint: str = ", or 'max' for no limit",
    option: str = "--fleet",
) -> tuple[WorkerProfile, ...]:
    """The shorthand of the write-ups' tables: ``30,30,12,2`` frames per second each, ``max`` = unthrottled.

    Raises UsageError naming ``option`` and the worker that is wrong; ``hint`` says what else may be given.
    """
    fields = text.split(",")
    if len(fields) > WORKERS_MAX:
        raise UsageError(f"{option} names {len(fields)} workers; at most {WORKERS_MAX}")
    fleet = []
    for number, field in enumerate(fields, 1):
        try:
            cap = parse_cap(field)
        except ValueError:
            raise UsageError(
                f"{option} {text}: worker {number} is {field.strip()!r}; give frames per second from "
                f"{FPS_MIN:g} to {FPS_MAX:,.0f}{hint}"
            ) from None
        fleet.append(WorkerProfile(name=f"w{number}", fps_cap=cap, overhead_seconds=overhead_seconds))
    return tuple(fleet)


def parse_cap(field: str) -> float | None:
    """``12`` frames per second at most, or ``max``: no limit. Raises ValueError."""
    field = field.strip()
    if field == "max":
        return None
    cap = float(field) if _NUMBER.match(field) else math.nan
    if not FPS_MIN <= cap <= FPS_MAX:
        raise ValueError(field)
    return cap


def free_name(taken: Container[str]) -> str:
    """The first of w1, w2, … that is not taken."""
    number = 1
    while f"w{number}" in taken:
        number += 1
    return f"w{number}"
