"""The ``uneven`` command as a user runs it, for tests: a process of its own, its events read as they come.

Nothing here waits for a time; everything waits for an event or for the end of the process, with a limit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil

LIMIT_SECONDS = 150.0


class Command:
    """A running ``uneven``; with ``--ui json`` its records are in ``events`` as plain dictionaries."""

    def __init__(self, *arguments: str | Path, cwd: Path, json: bool = True) -> None:
        command = [sys.executable, "-m", "console", *map(str, arguments)]
        if json:
            command += ["--ui", "json"]
        self._json = json
        environment = os.environ | {"UNEVEN_STATE_DIR": str(cwd / "state")}
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.events: list[dict[str, Any]] = []
        self.summary: dict[str, Any] | None = None
        self.expectations: list[dict[str, Any]] = []
        self.stdout = ""  # what is not JSON
        self.stderr = ""
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, kind: str, **fields: object) -> dict[str, Any]:
        """The first event of that kind whose fields are these; a callable is a predicate."""

        def found() -> dict[str, Any] | None:
            for event in self.events:
                if event["event"] == kind and all(_is(event.get(k), v) for k, v in fields.items()):
                    return event
            return None

        deadline = time.monotonic() + LIMIT_SECONDS
        with self._news:
            while (event := found()) is None:
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._readers[0].is_alive()):
                    raise AssertionError(f"no {kind} {fields} came\n{self.stderr}\n{self.events[-5:]}")
                self._news.wait(min(left, 0.5))
        return event

    def of(self, kind: str, **fields: object) -> list[dict[str, Any]]:
        return [
            event
            for event in list(self.events)
            if event["event"] == kind and all(_is(event.get(k), v) for k, v in fields.items())
        ]

    def finish(self) -> int:
        code = self.process.wait(LIMIT_SECONDS)
        for reader in self._readers:
            reader.join(LIMIT_SECONDS)
        return code

    def pid_of(self, worker: str) -> int:
        return int(self.wait_for("worker_joined", worker=worker)["pid"])

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.finish()

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not self._json or not line.startswith(b"{"):
                self.stdout += line.decode()
                continue
            value = msgspec.json.decode(line)
            with self._news:
                if "summary" in value:
                    self.summary = value["summary"]
                elif "expectations" in value:
                    self.expectations = value["expectations"]
                else:
                    self.events.append(value["event"])
                self._news.notify_all()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line.decode(errors="replace")


def _is(value: object, expected: object) -> bool:
    return bool(expected(value)) if isinstance(expected, Callable) else value == expected  # type: ignore[arg-type]


def run(*arguments: str | Path, cwd: Path, json: bool = True) -> Command:
    """A command that is over."""
    command = Command(*arguments, cwd=cwd, json=json)
    try:
        command.finish()
    finally:
        command.close()
    return command


def gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that are still there after a few seconds."""
    _, alive = psutil.wait_procs(processes, timeout=10)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
