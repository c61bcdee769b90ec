"""Files of the corpus, broken by chance, through the real command on two workers, and the judging of it.

Rules of this file:
- a seed says everything: which file, what is done to it, where;
- right is a refusal of one sentence that leaves nothing behind, or exit code 0 and what one pass over the
  broken file decodes to; a run that ends incomplete with its reason isn't wrong, but is told apart;
- no progress is a matter of work, not of the clock: ten seconds of the run's own processor time without an
  event that tells of any, or a minute in which it uses none.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import psutil

from tests.e2e import judge
from tests.media.clips import CORPUS

#: Small enough that hundreds of runs end; every container and codec of the corpus is among them.
SOURCES = (
    *("S02", "S04", "S05", "S06", "S07", "S12", "S13", "S14", "S15", "S17", "S20", "S22", "S23", "S26"),
    *("S27", "S28", "S29", "S30", "S31", "S32", "S33", "S34", "S35", "S37", "S38", "S39", "S41", "S42"),
    *("S47", "S48", "Seq-counter-unpadded-png", "Seq-moviepy-jpg-25"),
)
_IDLE_SECONDS = 60.0
_BUSY_SECONDS = 10.0
_TELLING_NOTHING = frozenset(
    {"gauges", "finish_estimated", "vitals_sampled", "loop_stalled", "worker_peaked"}
)
_MILLISECOND = Fraction(1, 1000)
_FRAMES_OF_A_PART = 9


@dataclass(frozen=True)
class Outcome:
    seed: int
    source: str
    what: str  #: was done to it
    verdict: str  #: "right", "refused", "incomplete", "unverified", or "WRONG: …"
    said: str
    seconds: float

    @property
    def wrong(self) -> bool:
        return self.verdict.startswith("WRONG")


def broken(seed: int, folder: Path) -> tuple[str, str, Path]:
    """The source's name, what was done to it in words, and the broken copy in ``folder``."""
    chance = random.Random(seed)
    name = SOURCES[seed % len(SOURCES)]
    (source,) = CORPUS.glob(f"{name}*")
    copy = folder / source.name
    if source.is_dir():
        shutil.copytree(source, copy, copy_function=shutil.copyfile)
        copy.chmod(0o755)
        target = chance.choice(sorted(copy.iterdir()))
    else:
        shutil.copyfile(source, copy)
        target = copy
    data, what = mutated(target.read_bytes(), chance)
    target.write_bytes(data)
    return source.name, what, copy


def mutated(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    kind = chance.choice(sorted(_KINDS))
    changed = bytearray(data)
    _KINDS[kind](changed, chance)
    return bytes(changed), kind


def _truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def _flip(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 4, 40, 400])):
        data[chance.randrange(len(data))] ^= chance.randrange(1, 256)


def _swap(data: bytearray, chance: random.Random) -> None:
    length = chance.choice([16, 188, 1000, 4096])
    one, two = sorted(chance.randrange(max(1, len(data) - length)) for _ in range(2))
    data[one : one + length], data[two : two + length] = data[two : two + length], data[one : one + length]


def _zero(data: bytearray, chance: random.Random) -> None:
    place, length = chance.randrange(len(data)), chance.choice([4, 188, 1000, 4096, 65536])
    data[place : place + length] = bytes(len(data[place : place + length]))


def _zero_header(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(min(400, len(data)))
    length = chance.choice([1, 4, 8, 64])
    data[place : place + length] = bytes(len(data[place : place + length]))


def _drop(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    del data[place : place + chance.choice([1, 16, 188, 1000, 4096])]


def _append(data: bytearray, chance: random.Random) -> None:
    data += chance.randbytes(chance.choice([1, 188, 5000, 100_000]))


def _insert(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    data[place:place] = chance.randbytes(chance.choice([1, 16, 188, 4096]))


_KINDS: dict[str, Callable[[bytearray, random.Random], None]] = {
    "truncated": _truncate,
    "bytes flipped": _flip,
    "blocks swapped": _swap,
    "zeroed": _zero,
    "header zeroed": _zero_header,
    "bytes dropped": _drop,
    "garbage appended": _append,
    "garbage inserted": _insert,
}


def try_one(seed: int, folder: Path) -> Outcome:
    """Break a file into ``folder``, which is empty, render it, and judge what came."""
    name, what, source = broken(seed, folder)
    output = folder / "out.mkv"
    run = _Run(source, output, folder)
    seconds = run.wait()
    return Outcome(seed, name, what, _verdict(run, source, output), run.said, seconds)


def _verdict(run: _Run, source: Path, output: Path) -> str:
    if run.hung:
        return f"WRONG: no progress {run.hung}"
    if "Traceback" in run.stderr or "bug of uneven" in run.stderr or run.code not in (0, 2, 3, 4, 5, 6):
        return f"WRONG: exit code {run.code}, {run.stderr[-1000:]}"
    if run.code == 0:
        found = _differs(source, output)
        return f"WRONG: {found}" if found else "right"
    if output.exists():
        return f"WRONG: exit code {run.code} and an output"
    if run.code in (2, 3, 4):
        if len(run.stderr.splitlines()) != 1 and not run.worked:
            return f"WRONG: not one sentence: {run.stderr}"
        return "refused" if not run.worked else "refused after the work"
    return "incomplete" if run.code == 5 else "unverified"


def _differs(source: Path, output: Path) -> str:
    """In what the output isn't one pass over the source; empty if it is."""
    before = judge.images(source) if source.is_dir() else judge.one_pass(source)
    after = judge.one_pass(output)
    if len(before) != len(after):
        return f"{len(before)} frames in, {len(after)} out"
    times = judge.compare_times(before, after, _MILLISECOND) if not source.is_dir() else "equal"
    if times.startswith("NOT"):
        return times
    name = before[0].pix_fmt
    if name.replace("yuvj", "yuv") != after[0].pix_fmt:
        after = judge.one_pass(output, pix_fmt=name)
    orders = [before]
    if all(shown.time is not None for shown in before):  # some decoders hand out pictures late
        orders.append(sorted(before, key=lambda shown: shown.time or 0))
    # What ProRes leaves undecoded of a damaged picture is whatever the memory held.
    prores = "prores" in source.name
    first = before[0].size, before[0].pix_fmt
    wrong = [
        [
            number
            for number, (a, b) in enumerate(zip(order, after, strict=True))
            if a.crc != b.crc and (a.size, a.pix_fmt) == first and not (prores and a.damaged)
        ]
        for order in orders
    ]
    least = min(wrong, key=len)
    return f"{len(least)} pictures differ, the first {least[0]} of {len(after)}" if least else ""


class _Run:
    """One ``uneven render``, watched."""

    def __init__(self, source: Path, output: Path, folder: Path) -> None:
        command = [sys.executable, "-m", "console", "render", str(source), "-o", str(output), "-e", "ffv1"]
        command += ["--part", f"{_FRAMES_OF_A_PART},fixed", "--fleet", "max,60", "--ui", "json"]
        self._began = self._moved = time.monotonic()
        self._process = subprocess.Popen(
            command,
            env=os.environ | {"UNEVEN_STATE_DIR": str(folder / "state")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._counts: dict[str, tuple[int, int]] = {}
        self._events: list[dict[str, Any]] = []
        self.stderr = ""
        self.hung = ""
        self.worked = False  #: the work began
        self._readers = [threading.Thread(target=each, daemon=True) for each in (self._read, self._hear)]
        for reader in self._readers:
            reader.start()

    @property
    def code(self) -> int:
        return self._process.returncode

    @property
    def said(self) -> str:
        lines = [line.removeprefix("uneven: ") for line in self.stderr.splitlines()]
        lines += [str(event["text"]) for event in self._events if event.get("level") == "warning"]
        return "; ".join(line for line in lines if "fps asked" not in line)

    def wait(self) -> float:
        """Seconds until it was over, or was killed because it hung."""
        used: dict[int, float] = {}
        at_moved, seen = 0.0, self._moved
        while True:
            try:
                self._process.wait(0.5)
                break
            except subprocess.TimeoutExpired:
                pass
            spent = _processor_seconds(self._process.pid, used)
            if self._moved != seen:
                at_moved, seen = spent, self._moved
            busy, still = spent - at_moved, time.monotonic() - seen
            if busy > _BUSY_SECONDS or (still > _IDLE_SECONDS and busy < 1.0):
                self.hung = f"in {busy:.1f} s of processor time, {still:.0f} s"
                os.killpg(self._process.pid, signal.SIGKILL)
        for reader in self._readers:
            reader.join(30)
        return time.monotonic() - self._began

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line).get("event", {})
            kind = event.get("event")
            self.worked = self.worked or kind == "claim_granted"
            if event.get("level") == "warning":
                self._events.append(event)
            if kind == "lease_renewed":
                counts = {
                    claim["token"]: (claim.get("decoded", 0), claim.get("rendered", 0))
                    for claim in event.get("claims", [])
                }
                if all(self._counts.get(token) == count for token, count in counts.items()):
                    continue
                self._counts.update(counts)
            if kind not in _TELLING_NOTHING:
                self._moved = time.monotonic()

    def _hear(self) -> None:
        assert self._process.stderr is not None
        self.stderr = self._process.stderr.read().decode(errors="replace")


def _processor_seconds(pid: int, used: dict[int, float]) -> float:
    """Of the process and all it started, also of those that are over by now."""
    try:
        main = psutil.Process(pid)
        for process in [main, *main.children(recursive=True)]:
            times = process.cpu_times()
            used[process.pid] = times.user + times.system
    except psutil.Error:
        pass
    return sum(used.values())
