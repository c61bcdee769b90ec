"""What this machine has to give: cores and memory, read and never assumed (one write-up's farm starved on a
hard-coded four cores)."""

from __future__ import annotations

import os

import psutil

from farm.fleet import WORKERS_MAX
from farm.settings import JobSettings
from farm.source import SourceIndex

#: Share of the memory that is available now which workers may fill together.
_MEMORY_SHARE = 0.7


def usable_cores() -> int:
    """Cores this process may run on: affinity, where the system tells, not what the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def automatic_workers(index: SourceIndex, settings: JobSettings) -> int:
    """How many workers suit this machine: one for each encoder thread's worth of cores, as far as memory
    goes."""
    by_cores = max(1, usable_cores() // max(1, settings.video.threads))
    available = psutil.virtual_memory().available
    by_memory = int(_MEMORY_SHARE * available / worker_memory_bytes(index))
    return max(1, min(by_cores, by_memory, WORKERS_MAX))


def worker_memory_bytes(index: SourceIndex) -> int:
    """A cautious estimate of one worker's peak: measured for x264 medium at 720p, 1080p and 2160p as 229, 430
    and 1,439 MB (media.md), which is about 60 MB and 170 bytes a pixel."""
    return 60_000_000 + 170 * max(index.width * index.height, 1)


def check_memory(fleet_size: int, index: SourceIndex) -> str | None:
    """A warning, if that many workers may need more memory than there is to give."""
    needed = fleet_size * worker_memory_bytes(index)
    available = psutil.virtual_memory().available
    if needed <= _MEMORY_SHARE * available:
        return None
    return (
        f"{fleet_size} workers may need {needed / 1e9:.1f} GB at {index.width}x{index.height} and "
        f"{available / 1e9:.1f} GB are available; fewer workers are safer"
    )
