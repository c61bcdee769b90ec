"""What this machine has to give: cores and memory, read and never assumed (one write-up's farm starved on a
hard-coded four cores, and was killed for want of memory it never counted)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from farm.cgroup import Limits, read_limits
from farm.fleet import WORKERS_MAX, WorkerProfile
from farm.settings import VideoSettings
from farm.source import SourceIndex

#: Share of the memory that is available at the start which workers may fill together.
GATE_SHARE = 0.7
#: Of a worker that has not begun: Python, the media libraries, the source index.
_IDLE_BYTES = 120_000_000


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is now."""

    cores: float  #: that this process may use
    memory_bytes: int  #: available: the least of what the host and the control groups have left

    @property
    def gate_bytes(self) -> int:
        """What the workers of a run may fill together."""
        return int(GATE_SHARE * self.memory_bytes)


def read_machine(root: Path = Path("/")) -> Machine:
    """Affinity, control groups and free memory as they are; ``root`` as in ``farm.cgroup``."""
    limits = read_limits(root)
    return Machine(cores=_cores(limits), memory_bytes=available_memory_bytes(limits))


def available_memory_bytes(limits: Limits | None = None) -> int:
    """What can be used before something has to go; blocks for a moment."""
    limits = read_limits() if limits is None else limits
    available: int = psutil.virtual_memory().available
    return available if limits.memory_left_bytes is None else min(available, limits.memory_left_bytes)


def total_memory_bytes(limits: Limits | None = None) -> int:
    """All the memory that this process could ever be given."""
    limits = read_limits() if limits is None else limits
    total: int = psutil.virtual_memory().total
    return total if limits.memory_bytes is None else min(total, limits.memory_bytes)


def _cores(limits: Limits) -> float:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return float(cores) if limits.cores is None else min(float(cores), limits.cores)


def usable_cores() -> int:
    """Whole cores this process may use; what is left of a core of CPU time counts as one."""
    return max(1, math.ceil(read_machine().cores))


# --- memory of workers -----------------------------------------------------------------------------------

#: Bytes a pixel that an encoder holds at its default settings, for 8 bits 4:2:0 and one thread, measured at
#: 720p and 2160p with a margin (docs/limits.md). Others are taken for as hungry as the worst of these.
_PIXEL_BYTES = {
    "libx264": 170,
    "libx265": 200,
    "libsvtav1": 180,
    "libvpx-vp9": 170,
    "ffv1": 60,
    "mpeg4": 60,
    "prores_ks": 60,
}
_PIXEL_BYTES_UNKNOWN = 260
#: More threads hold more pictures: by so much of the above for each thread after the first.
_THREAD_SHARE = 0.1
#: Bytes a pixel of a frame, up to 4:4:4 with alpha; and how many a filtergraph holds beside what it looks at.
_FRAME_PIXEL_BYTES = 4
_FILTER_FRAMES = 4


def worker_memory_bytes(index: SourceIndex, video: VideoSettings) -> int:
    """A cautious estimate of one worker's peak, from the picture's size, the encoder and its threads."""
    pixels = max(index.width * index.height, 1)
    frames = 0
    if (
        index.filtered is not None
    ):  # what goes in may be larger; and filters hold the frames that they look at
        source = index.filtered.source
        pixels = max(pixels, source.width * source.height)
        frames = _FILTER_FRAMES + index.filtered.before + index.filtered.after
    deep = 2 if any(depth in (video.pix_fmt or index.pix_fmt) for depth in ("10", "12", "16")) else 1
    threads = 1 + _THREAD_SHARE * (max(1, video.threads) - 1)
    each = _PIXEL_BYTES.get(video.encoder, _PIXEL_BYTES_UNKNOWN)
    return _IDLE_BYTES + int(pixels * deep * (each * threads + frames * _FRAME_PIXEL_BYTES))


def automatic_workers(index: SourceIndex, video: VideoSettings, machine: Machine) -> int:
    """How many workers suit this machine: one for each encoder thread's worth of cores, as far as memory
    goes."""
    by_cores = math.ceil(machine.cores / max(1, video.threads))
    by_memory = machine.gate_bytes // worker_memory_bytes(index, video)
    return max(1, min(by_cores, by_memory, WORKERS_MAX))


def fit_fleet(
    fleet: Sequence[WorkerProfile], index: SourceIndex, video: VideoSettings, machine: Machine
) -> tuple[tuple[WorkerProfile, ...], str]:
    """The workers of a fleet that fit under the memory gate together, the first ones, one at least; and what
    there is to say about it, in a sentence."""
    estimate = worker_memory_bytes(index, video)
    fitting: list[WorkerProfile] = []
    needed = 0
    for profile in fleet:
        cap = profile.memory_bytes
        needed += estimate if cap is None else min(estimate, cap)
        if fitting and needed > machine.gate_bytes:
            break
        fitting.append(profile)
    room = (
        f"a worker may need {size(estimate)} at {index.width}x{index.height} with {video.encoder}, and "
        f"{size(machine.gate_bytes)} may be filled ({GATE_SHARE:.0%} of what is available)"
    )
    if len(fitting) < len(fleet):
        return tuple(fitting), f"{len(fitting)} of {len(fleet)} workers are started: {room}"
    if needed > machine.gate_bytes:
        return tuple(fitting), f"memory may not be enough for even one worker: {room}"
    return tuple(fitting), ""


def size(count: float) -> str:
    """Bytes for people, in powers of 1000."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
