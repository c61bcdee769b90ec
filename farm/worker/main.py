"""Where a worker process begins. Imported in worker processes only: it loads av."""

from __future__ import annotations

import os
import socket
import sys

import msgspec

from farm.clock import MonotonicClock
from farm.media.encode import build_identity
from farm.media.render import PartRenderer
from farm.source import load_index
from farm.worker.log import FileLog
from farm.worker.loop import WorkerLoop
from farm.worker.spec import WorkerSpec


def run_worker(spec: WorkerSpec, sock: socket.socket) -> None:
    """Work until there is no more; ends the process with the worker's exit code."""
    if spec.nice:
        os.nice(spec.nice)
    index = load_index(spec.index_path)

    def open_renderer(linear: bool) -> PartRenderer:
        return PartRenderer(index, spec.settings, spec.settings_hash, linear=linear)

    log = FileLog(spec.log_dir, spec.name)
    truthful = msgspec.structs.replace(spec, build=build_identity(spec.settings.burn))
    sys.exit(WorkerLoop(truthful, sock, open_renderer, log, MonotonicClock()).run())
