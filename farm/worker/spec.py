"""What a worker is told when it is started. Data only; the engine hands it over as it is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from farm.fleet import LinkProfile, WorkerProfile
from farm.settings import JobSettings


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One worker of one run. Holds nothing of the relay's epoch: a spec serves any number of resumes."""

    profile: WorkerProfile
    index_path: Path  #: the source index (farm.source)
    settings: JobSettings
    settings_hash: str
    cuts: tuple[int, ...]  #: of the part grid
    store_dir: Path  #: delivered parts
    spool_dir: Path  #: this worker's own: parts being made, and not delivered yet
    orphan_spools: tuple[Path, ...] = ()  #: of workers that won't come back; their finished parts are offered
    shares_disk: bool = True  #: with the store; else parts are delivered in blocks, link profile or not
    log_dir: Path  #: one log per attempt and one per worker
    nice: int = 0  #: added to its niceness
    build: str = ""  #: the run's; a worker process joins with what it finds itself to be

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def link(self) -> LinkProfile | None:
        """What deliveries in blocks go through; None: they go by rename."""
        return self.profile.link or (None if self.shares_disk else LinkProfile())
