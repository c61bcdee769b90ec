"""Run by the local engine: a real worker loop, whose renderer writes parts of a few bytes. No av."""

from __future__ import annotations

import socket
import sys

from farm.clock import MonotonicClock
from farm.worker.log import FileLog
from farm.worker.loop import WorkerLoop
from farm.worker.spec import WorkerSpec

from .harness import FakeRenderers


def work(spec: WorkerSpec, sock: socket.socket) -> None:
    log = FileLog(spec.log_dir, spec.name)
    sys.exit(WorkerLoop(spec, sock, FakeRenderers().open, log, MonotonicClock()).run())
