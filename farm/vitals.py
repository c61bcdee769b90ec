"""How the workers' processes are doing: CPU, memory, and the last line of the log that each is writing.

Rule: ``sample`` reads files and asks the system about processes, so it is called in a thread. What can't be
read is left out; nothing here raises.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from farm.events import WorkerVitals
from farm.worker.log import file_safe

SAMPLE_SECONDS = 1.0
#: Of so many workers; of more they are looked at more seldom, for each costs some tenths of a millisecond.
SAMPLE_WORKERS = 16
#: As much of a log's end as its last line may be.
_TAIL_BYTES = 2048
_LINE_MAX = 160


def vitals_seconds(workers: int) -> float:
    """How long to wait before the next look."""
    return SAMPLE_SECONDS * (1 + workers // SAMPLE_WORKERS)


class Vitals:
    """``wall``: seconds, as file times are counted."""

    def __init__(self, log_dir: Path, wall: Callable[[], float] = time.time) -> None:
        self._log_dir = log_dir
        self._wall = wall
        self._processes: dict[int, psutil.Process] = {}

    def sample(
        self, pids: Mapping[str, int], tokens: Mapping[str, Sequence[str]]
    ) -> tuple[WorkerVitals, ...]:
        """Look at the workers with these processes and claims."""
        for pid in self._processes.keys() - set(pids.values()):
            del self._processes[pid]
        return tuple(self._of(worker, pid, tokens.get(worker, ())) for worker, pid in pids.items())

    def _of(self, worker: str, pid: int, tokens: Sequence[str]) -> WorkerVitals:
        line, age = self._last_line(worker, tokens)
        try:
            process = self._processes.get(pid)
            if process is None:
                process = self._processes[pid] = psutil.Process(pid)
            share = process.cpu_percent() / 100  # since the call before; 0 the first time
            memory = int(process.memory_info().rss)
        except psutil.Error:  # it has just ended
            self._processes.pop(pid, None)
            share, memory = 0.0, 0
        return WorkerVitals(
            worker=worker, cpu_share=share, memory_bytes=memory, log_line=line, log_age_seconds=age
        )

    def _last_line(self, worker: str, tokens: Sequence[str]) -> tuple[str, float | None]:
        """Of the log that was written to last, and how long ago."""
        names = (f"{worker}.log", *(f"{worker}-{file_safe(token)}.log" for token in tokens))
        logs = [(stat.st_mtime, name) for name in names if (stat := _stat(self._log_dir / name)) is not None]
        if not logs:
            return "", None
        written_at, name = max(logs)
        return _tail(self._log_dir / name), max(self._wall() - written_at, 0.0)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:_LINE_MAX] if lines else ""
