"""The same scenario live and simulated: 4,800 small frames on real worker processes, beside virtual time.

    python benchmarks/live_against_simulated.py     # all cases, both fleets: about ten minutes
    python benchmarks/live_against_simulated.py --fleet A --only fair --repeat 3

Each case is a run of ``uneven render`` and one of ``uneven simulate`` with the same numbers: fleet, overhead,
grid, policy, tail, heartbeats and leases. All are scaled by one factor k (speeds x k, times / k) that makes
the simulated run about 30 s long. Two cases stall a fastest worker: live by SIGSTOP, simulated as a silence.

Of several repeats the one with the median finishing time is shown, and the range of them all; the load is
that of the machine while it ran, and the pace that of the worker that kept its speed worst: below 99 % the
machine was too busy for the fleet, and the row tells of the machine. What else may differ, and why, is in
docs/scheduling.md ("Live against simulated").
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from farm.engines.child import run_in_child_blocking

FLEETS = {"A": (30.0, 30.0, 12.0, 2.0), "B": (24.0, 24.0, 24.0, 1.0)}
FRAMES = 4800
OVERHEAD_SECONDS, HEARTBEAT_SECONDS, LEASE_SECONDS = 2.0, 2.0, 20.0
AIM_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Case:
    """A schedule on a grid. ``stall``: the fastest worker is stopped during that share of the finishing time
    that it would take without."""

    name: str
    schedule: str
    tail: str
    part: int
    ahead: bool = False
    stall: tuple[float, float] | None = None


CASES = (
    Case("fair, ahead", "fair", "split", 12, ahead=True),
    Case("fair", "fair", "split", 12),
    Case("guided", "guided,12", "duplicate-oldest,from=start", 12),
    Case("fixed", "fixed,48", "none", 48),
    Case("static", "static", "split", 12),
    Case("fair, ahead, stall", "fair", "split", 12, ahead=True, stall=(0.3, 0.6)),
    Case("guided, stall", "guided,12", "duplicate-oldest,from=start", 12, stall=(0.3, 0.6)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The numbers both worlds get. ``stall``: seconds after the first grant at which the first worker, one of
    the fastest, stops and goes on."""

    fleet: tuple[float, ...]
    frames: int
    overhead_seconds: float
    heartbeat_seconds: float
    lease_seconds: float
    part: int
    schedule: str
    tail: str
    ahead: bool
    stall: tuple[float, float] | None = None

    def arguments(self) -> list[str]:
        """What ``render`` and ``simulate`` spell alike."""
        return [
            *("--overhead", repr(self.overhead_seconds)),
            *("--heartbeat", repr(self.heartbeat_seconds)),
            *("--lease", repr(self.lease_seconds)),
            *("--schedule", self.schedule, "--tail", self.tail),
            "--claim-ahead" if self.ahead else "--no-claim-ahead",
            *("--ui", "json"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What came of a run. ``lapses`` are of claims, ``splits`` of chunks."""

    seconds: float
    claims: int
    duplicates: int
    splits: int
    lapses: int
    refusals: int
    wasted_frames: int
    load: float = 0.0  #: of the machine during the last minute
    pace: float = 1.0  #: of the worker that kept its speed worst: measured / asked for

    @property
    def counts(self) -> tuple[int, ...]:
        """Of events, in the order of COUNTED."""
        return tuple(getattr(self, name) for name in COUNTED)


COUNTED = ("claims", "duplicates", "splits", "lapses", "refusals", "wasted_frames")


def scenario_of(
    case: Case, fleet: Sequence[float], frames: int, aim_seconds: float, folder: Path
) -> Scenario:
    """The case on the fleet, scaled so that it would take about ``aim_seconds`` without a stall."""

    def scaled(k: float, stall: tuple[float, float] | None = None) -> Scenario:
        return Scenario(
            fleet=tuple(round(fps * k, 4) for fps in fleet),
            frames=frames,
            overhead_seconds=round(OVERHEAD_SECONDS / k, 4),
            heartbeat_seconds=round(HEARTBEAT_SECONDS / k, 4),
            lease_seconds=round(LEASE_SECONDS / k, 4),
            part=case.part,
            schedule=case.schedule,
            tail=case.tail,
            ahead=case.ahead,
            stall=stall,
        )

    k = simulated(scaled(1.0), folder).seconds / aim_seconds
    if case.stall is None:
        return scaled(k)
    start, stop = case.stall
    return scaled(k, (start * aim_seconds, stop * aim_seconds))


# --- simulated -------------------------------------------------------------------------------------------


def simulated(scenario: Scenario, folder: Path) -> Figures:
    """Run ``uneven simulate``."""
    fleet = folder / "fleet.toml"
    fleet.write_text("".join(_worker_table(scenario, number) for number in range(len(scenario.fleet))))
    numbers = ["--fleet", str(fleet), "--frames", str(scenario.frames), "--part", str(scenario.part)]
    command = [sys.executable, "-m", "console", "simulate", *numbers, *scenario.arguments()]
    told = msgspec.json.decode(subprocess.run(command, check=True, capture_output=True).stdout)
    return _figures(told, told["finishing_seconds"])


def _worker_table(scenario: Scenario, number: int) -> str:
    silent = f"silent = [{list(scenario.stall)}]\n" if scenario.stall and number == 0 else ""
    return f"[[worker]]\nfps = {scenario.fleet[number]!r}\n{silent}"


def _figures(told: dict[str, Any], seconds: float, **more: Any) -> Figures:
    return Figures(seconds=seconds, **{name: told[name] for name in COUNTED}, **more)


# --- live ------------------------------------------------------------------------------------------------


def live(scenario: Scenario, clip: Path, folder: Path, record: Path | None = None) -> Figures:
    """Run ``uneven render``; its events are also written to ``record``."""
    numbers = ["--fleet", ",".join(map(repr, scenario.fleet)), "--part", f"{scenario.part},fixed"]
    command = [sys.executable, "-m", "console", "render", str(clip), "-o", str(folder / "out.mp4"), "-y"]
    command += ["--preset", "ultrafast", *numbers, *scenario.arguments()]
    environment = os.environ | {"UNEVEN_STATE_DIR": str(folder / "state")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=(folder / "errors.log").open("wb"), env=environment
    ) as process:
        assert process.stdout is not None
        lines = _stalling(process.stdout, scenario.stall)
        if record is not None:
            lines = _recorded(lines, record)
        *_, last = lines
    if process.returncode:
        raise SystemExit((folder / "errors.log").read_text())
    told = msgspec.json.decode(last)["summary"]
    paces = [worker["fps"] / worker["fps_cap"] for worker in told["workers"] if worker["fps"]]
    return _figures(told, told["finishing_seconds"], load=os.getloadavg()[0], pace=min(paces))


def _recorded(lines: Iterable[bytes], record: Path) -> Iterable[bytes]:
    with record.open("wb") as file:
        for line in lines:
            file.write(line)
            yield line


def _stalling(lines: IO[bytes], stall: tuple[float, float] | None) -> Iterable[bytes]:
    """The lines; and stop the first worker and let it go on when it is time, counted from the first grant."""
    pid = 0
    timers: list[threading.Timer] = []
    try:
        for line in lines:
            event = msgspec.json.decode(line).get("event", {})
            if event.get("event") == "worker_joined" and event["worker"] == "w1":
                pid = event["pid"]
            if event.get("event") == "claim_granted" and stall is not None and not timers:
                for after, number in zip(stall, (signal.SIGSTOP, signal.SIGCONT), strict=True):
                    timers.append(threading.Timer(after, os.kill, (pid, number)))
                    timers[-1].start()
            yield line
    finally:
        for timer in timers:
            timer.cancel()


def make_clip(clip: Path, frames: int) -> None:
    """Small frames, which cost a worker next to nothing."""
    run_in_child_blocking("farm.media.tasks:make_small_clip", clip, frames, log=clip.with_suffix(".log"))


# --- side by side ----------------------------------------------------------------------------------------


def median(runs: Sequence[Figures]) -> Figures:
    """The run with the median finishing time."""
    return sorted(runs, key=lambda figures: figures.seconds)[len(runs) // 2]


def table_row(label: str, scenario: Scenario, there: Figures, runs: Sequence[Figures]) -> str:
    here = median(runs)
    seconds = sorted(run.seconds for run in runs)
    pairs = "".join(f"{f'{a} / {b}':>14}" for a, b in zip(here.counts, there.counts, strict=True))
    spread = f"{seconds[0]:.2f}-{seconds[-1]:.2f}"
    return (
        f"{label:24}{here.seconds:9.2f}{there.seconds:9.2f}{here.seconds / there.seconds - 1:+9.2%}"
        f"{spread:>14}{pairs}{here.load:6.1f}{here.pace:7.1%}"
    )


def head_row() -> str:
    counts = "".join(f"{name.replace('_frames', ''):>14}" for name in COUNTED)
    times = f"{'live / simulated':24}{'live':>9}{'simul.':>9}{'differs':>9}{'all live':>14}"
    return f"{times}{counts}{'load':>6}{'pace':>7}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fleet", choices=[*FLEETS, "both"], default="both")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name has TEXT in it")
    parser.add_argument("--repeat", type=int, default=1, help="live runs of each case; the median is shown")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--seconds", type=float, default=AIM_SECONDS, help="about how long a run takes")
    parser.add_argument("--record", type=Path, help="keep the events of the live runs in this folder")
    chosen = parser.parse_args()
    fleets = list(FLEETS) if chosen.fleet == "both" else [chosen.fleet]
    with tempfile.TemporaryDirectory(prefix="uneven-live-") as scratch:
        folder = Path(scratch)
        clip = folder / "clip.mp4"
        make_clip(clip, chosen.frames)
        print(head_row(), flush=True)
        for case in CASES:
            if chosen.only not in case.name:
                continue
            for fleet in fleets:
                scenario = scenario_of(case, FLEETS[fleet], chosen.frames, chosen.seconds, folder)
                there = simulated(scenario, folder)
                runs = []
                for number in range(chosen.repeat):
                    name = f"{case.name} {fleet} {number}.jsonl".replace(", ", "-").replace(" ", "-")
                    record = chosen.record / name if chosen.record else None
                    runs.append(live(scenario, clip, folder, record))
                print(table_row(f"{case.name}, {fleet}", scenario, there, runs), flush=True)


if __name__ == "__main__":
    main()
