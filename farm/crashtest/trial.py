"""One crash and what must hold afterwards: a run that is killed, and the same command given again.

What must hold (each broken promise is a sentence in the verdict):
- after the crash the output is not there, or is what it was before, or is finished;
- the same command ends well, and the output's video packets are those of the undisturbed run;
- no part that was acknowledged before the crash is rendered again or taken back;
- no process is left after the crash, and no file besides output, records of the runs and what was there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec
import psutil

from farm.crashtest.points import VARIABLE, Kill, Order, Point, read_log
from farm.crashtest.powercut import cut_power, inodes
from farm.events import (
    PartAdopted,
    PartCredited,
    PartVoided,
    Record,
    RelayStarted,
    WorkerJoined,
    decode_record,
)

#: No run of a small job takes as long as that.
LIMIT_SECONDS = 180.0
#: How long the processes of a killed run may take to be gone.
GONE_SECONDS = 20.0
_OLD = b"what was there before"
#: Who gets SIGKILL at a random time.
Victims = Literal["console", "worker", "both"]

#: Folders of a user that are there after any run.
_KEPT = ("tmp", "state", "state/runs")
#: Exit codes of a command that says that there is nothing left to do.
_DONE, _EXISTS = 0, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialJob:
    """The job that is crashed. ``command`` is what starts uneven; ``arguments`` follow INPUT and OUTPUT."""

    command: Sequence[str]
    source: Path
    suffix: str  #: of the output
    arguments: Sequence[str]
    over_existing: bool = False  #: there is an output that may be replaced


@dataclass(slots=True, kw_only=True)
class RunStory:
    """What a run told."""

    exit_code: int = 0
    records: list[Record] = field(default_factory=list)
    errors: str = ""

    @property
    def acknowledged(self) -> set[int]:
        """Parts that were credited or adopted, and not taken back."""
        return _credited(self.records)

    @property
    def history(self) -> list[Record]:
        """What was on record before the last start of the relay."""
        return self.records[: self._last_start]

    @property
    def news(self) -> list[Record]:
        return self.records[self._last_start :]

    @property
    def _last_start(self) -> int:
        starts = [n for n, record in enumerate(self.records) if isinstance(record.event, RelayStarted)]
        return starts[-1] if starts else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a trial ended."""

    reached: bool  #: the crash took place
    broken: tuple[str, ...] = ()  #: promises that were not kept; empty: all well
    lost: tuple[str, ...] = ()  #: what a power cut took back
    story: tuple[str, ...] = ()  #: the last words of both runs
    seconds: float = 0.0


class Ground:
    """The folder of one trial: the run's world is ``root``; what watches it lies beside."""

    def __init__(self, folder: Path, job: TrialJob) -> None:
        self.folder = folder
        self.root = folder / "run"
        self.log = folder / "operations"
        self.fired = folder / "fired"
        self.job = job
        self.output = self.root / f"out{job.suffix}"
        (self.root / "tmp").mkdir(parents=True)
        (self.root / "state").mkdir()
        if job.over_existing:
            self.output.write_bytes(_OLD)
        self.before = inodes(self.root)

    def start(self, order: Order | None = None) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "UNEVEN_STATE_DIR": str(self.root / "state"),
            "TMPDIR": str(self.root / "tmp"),
            "UNEVEN_UI": "json",
        }
        environment.pop(VARIABLE, None)
        if order is not None:
            environment[VARIABLE] = msgspec.json.encode(order).decode()
        over = ["-y"] if self.job.over_existing else []
        return subprocess.Popen(
            [
                *self.job.command,
                "render",
                str(self.job.source),
                "-o",
                str(self.output),
                *self.job.arguments,
                *over,
            ],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def output_is_old(self) -> bool:
        return self.job.over_existing and self.output.read_bytes() == _OLD

    def order(self, point: Point | None = None, kill: Kill = "run", unsynced: str = "") -> Order:
        return Order(
            root=str(self.root),
            log=str(self.log),
            fired=str(self.fired),
            point=point,
            kill=kill,
            unsynced=unsynced,
        )

    def processes(self) -> list[psutil.Process]:
        """Those of a run here: by their environment, which children inherit."""
        found = []
        wanted = str(self.root)
        for process in psutil.process_iter():
            try:
                if process.environ().get("UNEVEN_STATE_DIR", "").startswith(wanted):
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.pid != os.getpid()]

    def wait_gone(self) -> list[psutil.Process]:
        """Processes of the run that are left after a while; they are killed then."""
        _, left = psutil.wait_procs(self.processes(), GONE_SECONDS)
        left = [
            process for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]
        for process in left:
            process.kill()
        return left

    def leftovers(self) -> list[str]:
        """Files that should not be there once the job is done."""
        found = []
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root)
            recorded = str(name).startswith("state/runs/") and name.name[0] != "."
            expected = path == self.output or recorded or str(name) in (*_KEPT, *_sockets_kept())
            if not expected:
                found.append(str(name))
        return found

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def listen(process: subprocess.Popen[bytes], heard: Callable[[Record], None] | None = None) -> RunStory:
    """Read what a run tells until it ends. ``heard`` is called in this thread with each record."""
    story = RunStory()
    errors: list[bytes] = []
    assert process.stdout is not None and process.stderr is not None
    reader = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(process.stderr,))
    reader.start()
    guard = threading.Timer(LIMIT_SECONDS, _end_group, (process.pid,))
    guard.daemon = True
    guard.start()
    for line in process.stdout:
        try:
            record = decode_record(line)
        except msgspec.DecodeError:
            continue  # the summary, or a line that the kill cut off
        story.records.append(record)
        if heard is not None:
            heard(record)
    story.exit_code = process.wait()
    guard.cancel()
    reader.join()
    process.stdout.close()
    process.stderr.close()
    story.errors = b"".join(errors).decode(errors="replace")
    return story


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _sockets_kept() -> tuple[str, str]:
    """The folder of the user's sockets, which is as lasting as its lock; the sockets in it are not."""
    folder = f"tmp/uneven_{os.getuid()}"
    return folder, f"{folder}/lock"


class Judge:
    """``packets_of``: the sha256 of a file's video packets, and an exception if it isn't right; ``wanted``:
    that of the undisturbed run's output."""

    def __init__(self, packets_of: Callable[[Path], str], wanted: str) -> None:
        self._packets_of = packets_of
        self._wanted = wanted

    def crash_at(self, ground: Ground, order: Order) -> Verdict:
        """The trial of one point."""
        began = time.monotonic()
        first = listen(ground.start(order))
        reached = ground.fired.exists()
        left = ground.wait_gone()
        lost: list[str] = []
        if reached and order.kill in ("power", "data"):
            aside = ground.folder / "aside"
            aside.mkdir()
            names = order.kill == "power"
            lost = cut_power(read_log(ground.log), aside, names=names, before=ground.before)
        verdict = self._look(ground, first, survives=not reached or order.kill == "process")
        return replace(
            verdict,
            reached=reached,
            broken=(*_outlived(left), *verdict.broken),
            lost=tuple(lost),
            seconds=time.monotonic() - began,
        )

    def crash_random(self, ground: Ground, records: int, wait_seconds: float, victims: Victims) -> Verdict:
        """Kill that long after the run told so many records: the console, one of its workers, or both."""
        began = time.monotonic()
        process = ground.start()
        pids: list[int] = []
        heard = 0
        reached = False

        def hear(record: Record) -> None:
            nonlocal heard, reached
            heard += 1
            if isinstance(record.event, WorkerJoined) and record.event.pid is not None:
                pids.append(record.event.pid)
            if heard >= max(1, records) and not reached and (pids or victims == "console"):
                time.sleep(wait_seconds)
                reached = True
                doomed = {"console": [process.pid], "worker": pids[-1:], "both": [*pids[-1:], process.pid]}
                for pid in doomed[victims]:
                    _kill(pid)

        first = listen(process, hear)
        left = ground.wait_gone()
        verdict = self._look(ground, first, survives=not reached or victims == "worker")
        return replace(
            verdict,
            reached=reached,
            broken=(*_outlived(left), *verdict.broken),
            seconds=time.monotonic() - began,
        )

    def _look(self, ground: Ground, first: RunStory, *, survives: bool) -> Verdict:
        """After the crash: look, give the command again unless the run survived, look again."""
        broken: list[str] = []
        second: RunStory | None = None
        if survives and first.exit_code != _DONE:
            broken.append(f"the run did not survive it: exit code {first.exit_code}: {first.errors.strip()}")
        if first.exit_code != _DONE:
            there = ground.output.exists() and not ground.output_is_old
            if there:
                broken += self._check_packets(ground, "after the crash")
            second = listen(ground.start())
            if second.exit_code != _DONE and not (second.exit_code == _EXISTS and there):
                broken.append(
                    f"given again, the command ended with {second.exit_code}: {second.errors.strip()}"
                )
            broken += _rendered_again(first, second)
            broken += _outlived(ground.wait_gone())
        broken += self._check_packets(ground, "in the end")
        broken += [f"{name} is left" for name in ground.leftovers()]
        story = _last_words("crashed", first) + (_last_words("again", second) if second else ())
        return Verdict(reached=True, broken=tuple(broken), story=story)

    def _check_packets(self, ground: Ground, when: str) -> list[str]:
        if not ground.output.exists():
            return [f"there is no output {when}"]
        try:
            found = self._packets_of(ground.output)
        except Exception as error:
            return [f"the output is not right {when}: {error}"]
        return [] if found == self._wanted else [f"the output's packets are others {when}"]


def _outlived(processes: Sequence[psutil.Process]) -> list[str]:
    return [f"process {process.pid} outlived the run" for process in processes]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _rendered_again(first: RunStory, second: RunStory) -> list[str]:
    finished = first.acknowledged | _credited(second.history)
    broken = []
    for record in second.news:
        event = record.event
        if isinstance(event, PartVoided) and event.part in finished:
            broken.append(f"part {event.part} was acknowledged, and is taken back: {event.reason}")
        elif isinstance(event, PartCredited) and event.part in finished:
            broken.append(f"part {event.part} was acknowledged, and is rendered again")
    return broken


def _credited(records: Sequence[Record]) -> set[int]:
    parts: set[int] = set()
    for record in records:
        event = record.event
        if isinstance(event, PartCredited | PartAdopted):
            parts.add(event.part)
        elif isinstance(event, PartVoided):
            parts.discard(event.part)
    return parts


def _last_words(which: str, story: RunStory) -> tuple[str, ...]:
    shown = [f"{record.at:8.3f} {record.event!r}"[:300] for record in story.records[-6:]]
    return tuple(f"{which}: {line}" for line in (*shown, *story.errors.strip().splitlines()[-4:]))
