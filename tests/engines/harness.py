"""Shared by the engine tests: a recorder of what an engine reports, and waits on conditions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil

from farm.fleet import WorkerProfile
from farm.settings import JobSettings
from farm.worker.spec import WorkerSpec

PATIENCE_SECONDS = 30.0


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run in a thread that is not the main one, as the farm does."""
    failures: list[BaseException] = []

    def target() -> None:
        try:
            asyncio.run(coroutine)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


async def until(condition: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what or 'a condition'}"
        await asyncio.sleep(0.005)


def alive(pid: int | None) -> bool:
    """A process that still runs; a zombie that its new parent has not reaped does not."""
    assert pid is not None
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Recorder:
    """An EngineEvents that remembers everything, in order."""

    def __init__(self) -> None:
        self.story: list[tuple[str, str]] = []
        self.pids: dict[str, int] = {}
        self.messages: dict[str, list[bytes]] = {}
        self.ends: dict[str, tuple[str, bool]] = {}

    def up(self, worker: str, pid: int | None, host: str) -> None:
        assert pid is not None
        self.story.append(("up", worker))
        self.pids[worker] = pid
        self.messages[worker] = []

    def message(self, worker: str, data: bytes) -> None:
        assert worker not in self.ends, "nothing follows gone"
        self.story.append(("message", worker))
        self.messages[worker].append(data)

    def gone(self, worker: str, reason: str, sure: bool) -> None:
        assert worker not in self.ends, "gone comes once"
        self.story.append(("gone", worker))
        self.ends[worker] = (reason, sure)


def spec(folder: Path, name: str = "w1") -> WorkerSpec:
    return WorkerSpec(
        profile=WorkerProfile(name=name),
        index_path=folder / "index",
        settings=JobSettings(),
        settings_hash="hash",
        cuts=(0, 10, 20),
        store_dir=folder,
        spool_dir=folder,
        log_dir=folder,
    )
