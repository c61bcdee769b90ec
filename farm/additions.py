"""Workers that join a run while it goes on, and caps that change: what a process is started with, and whether
there is room for one more.

Rules of this file: no I/O; a worker never gets the name of one that was there before, since parts, logs and
spools bear it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from farm.commands import AddWorker
from farm.fleet import WORKERS_MAX, WorkerProfile, free_name
from farm.machine import size
from farm.worker.spec import WorkerSpec


@dataclass(frozen=True, slots=True)
class Room:
    """What workers have to share; 0: not known, no limit."""

    gate_bytes: int = 0  #: what all of them may fill
    worker_bytes: int = 0  #: what one may need
    cores: float = 0.0


class Considered(NamedTuple):
    command: AddWorker  #: with a name
    refusal: str  #: why not, if not
    note: str  #: what there is to be said, if anything


class Additions:
    """``specs``: of everybody who is or was in the fleet, by name; one at least. It is added to elsewhere."""

    def __init__(self, specs: dict[str, WorkerSpec], room: Room) -> None:
        self._specs = specs
        self._room = room
        self._promised: set[str] = set()  # names of those that are about to be in ``specs``

    def consider(self, command: AddWorker, there: Collection[str]) -> Considered:
        """Name the worker and see whether there is room for it beside those who are ``there``."""
        taken = self._specs.keys() | self._promised
        name = command.profile.name or free_name(taken)
        profile = msgspec.structs.replace(command.profile, name=name)
        command = msgspec.structs.replace(command, profile=profile)
        refusal = self._why_not(profile, there)
        if name in taken and not refusal:
            refusal = f"there was a worker {name} in this run already: give another name"
        if not refusal:
            self._promised.add(name)
        return Considered(command, refusal, "" if refusal else self._crowded(profile, there))

    def spec_of(self, profile: WorkerProfile) -> WorkerSpec:
        """What a worker with this profile is started with: as any other of the run."""
        like = next(iter(self._specs.values()))
        spool = like.spool_dir.with_name(profile.name) if like.spool_dir.name else like.spool_dir
        return msgspec.structs.replace(like, profile=profile, spool_dir=spool, orphan_spools=())

    def throttle(self, worker: str, fps_cap: float | None) -> None:
        """From now on it is started with that cap."""
        spec = self._specs.get(worker)
        if spec is not None:
            profile = msgspec.structs.replace(spec.profile, fps_cap=fps_cap)
            self._specs[worker] = msgspec.structs.replace(spec, profile=profile)

    def _why_not(self, profile: WorkerProfile, there: Collection[str]) -> str:
        if len(there) >= WORKERS_MAX:
            return f"a run has {WORKERS_MAX} workers at most"
        room = self._room
        profiles = [*(self._specs[name].profile for name in there if name in self._specs), profile]
        needed = sum(min(room.worker_bytes, each.memory_bytes or room.worker_bytes) for each in profiles)
        if room.gate_bytes and needed > room.gate_bytes:
            room_words = f"and {size(room.gate_bytes)} may be filled"
            return f"{len(profiles)} workers may need {size(needed)} of memory, {room_words}"
        return ""

    def _crowded(self, profile: WorkerProfile, there: Collection[str]) -> str:
        """Workers without a cap take all that a core has to give."""
        specs = [self._specs[name] for name in there if name in self._specs]
        free = [spec for spec in specs if spec.profile.fps_cap is None]
        if profile.fps_cap is not None or not self._room.cores or not self._specs:
            return ""
        threads = max(1, next(iter(self._specs.values())).settings.video.threads)
        if (len(free) + 1) * threads <= self._room.cores:
            return ""
        cores = f"{self._room.cores:g} cores"
        return (
            f"with {profile.name}, {len(free) + 1} workers without a cap share {cores}: each becomes slower"
        )
