"""What the console costs: CPU share, tick time, event-loop lag and bytes written, in a real pseudo-terminal.

    python benchmarks/console_load.py [--seconds 20] [--events 5000] [--workers 64] [--parts 100000]
                                         [--screen live|timeline|chunks|compare] [--steps]
    python benchmarks/console_load.py --suite   every screen, idle, lag and 500 workers, as one table

The log is made before the clock starts, and fed by time. On a busy machine ticks are lost and the others get
more events; ``--steps`` gives every tick the same share of the log, so that runs can be compared: ``cpu %``
is then what a tick costs, times the ticks a second. Numbers of the child that draws:
``cpu %`` of one core for the whole process (console, feed, terminal writer and the lag meter), ``fold`` the
time a tick needs to take in its events, ``tick`` that and laying out what changed, ``repaint`` laying out and
drawing it, ``spin`` a fixed loop that tells how fast and how busy the machine is, ``lag`` how late a 10 ms
timer of the same loop fires, ``out`` what the terminal gets. Targets (issue 5): 10 % of a core, repaint p95
8 ms, lag p99 15 ms; idle 1 % (``--events 0 --no-lag``).
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import gc
import json
import os
import pty
import random
import resource
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from farm import events as ev  # noqa: E402

if TYPE_CHECKING:
    from console.contest import Contest

PART_FRAMES = 96
CLAIM_PARTS = 8
WARM_UP_SECONDS = 3.0
STEPS_HZ = 40.0  #: real ticks a second with ``--steps``


def make_log(args: argparse.Namespace) -> list[ev.Record]:
    """A run of ``workers`` that is already under way, then ``events`` a second until the end."""
    chance = random.Random(1)
    log: list[ev.Record] = []

    def add(at: float, event: ev.AnyEvent) -> None:
        log.append(ev.Record(len(log), at, event))

    frames = args.parts * PART_FRAMES
    cuts = tuple(range(0, frames + 1, PART_FRAMES))
    add(
        0.0,
        ev.RunOpened(
            run_id="load",
            input="load.mkv",
            output="out.mkv",
            frames=frames,
            cuts=cuts,
            settings_hash="",
            fingerprint="",
            build="",
            options=ev.RelayOptions(),
            frame_rate=24.0,
        ),
    )
    add(0.0, ev.RelayStarted(epoch=1))
    add(0.0, ev.PhaseStarted(phase="work"))
    names = [f"w{n}" for n in range(1, args.workers + 1)]
    for name in names:
        add(0.0, ev.WorkerJoined(worker=name, pid=1, overhead_seconds=0.1))
    order = list(range(0, args.parts - CLAIM_PARTS, CLAIM_PARTS))
    if args.scattered:
        chance.shuffle(order)
    else:
        order.reverse()
    holds: dict[str, tuple[str, int, int]] = {}
    claims = 0
    for number in range(int(args.events * args.seconds)):
        at, name = number / args.events, names[number % len(names)]
        if name in holds:
            for event in step(name, holds, chance):
                add(at, event)
        elif order:
            first = order.pop()
            holds[name] = (f"c{claims}#1@e1", first, first + CLAIM_PARTS)
            claims += 1
            add(at, granted(name, holds[name], duplicate=chance.random() < 0.02))
    return log


def granted(worker: str, hold: tuple[str, int, int], *, duplicate: bool) -> ev.ClaimGranted:
    token, first, last = hold
    return ev.ClaimGranted(
        token=token,
        worker=worker,
        start=first * PART_FRAMES,
        stop=last * PART_FRAMES,
        lease_seconds=20.0,
        duplicate=duplicate,
        why="guided",
    )


def step(worker: str, holds: dict[str, tuple[str, int, int]], chance: random.Random) -> list[ev.AnyEvent]:
    """What a worker with a claim does next: half heartbeats, half deliveries, now and then a lapse."""
    token, part, last = holds[worker]
    kind = chance.random()
    if kind < 0.5:
        position = part * PART_FRAMES + chance.randrange(PART_FRAMES)
        progress = ev.ClaimProgress(token, position, position - (last - CLAIM_PARTS) * PART_FRAMES)
        return [ev.LeaseRenewed(worker=worker, claims=(progress,))]
    if kind < 0.505:
        del holds[worker]
        return [ev.ClaimEnded(token=token, worker=worker, how="lapsed", reason="no heartbeat for 20.0 s")]
    credited = ev.PartCredited(
        part=part,
        frames=PART_FRAMES,
        token=token,
        worker=worker,
        file="",
        size_bytes=90_000,
        sha256="",
        render_seconds=0.5,
    )
    if part + 1 < last:
        holds[worker] = (token, part + 1, last)
        return [credited]
    del holds[worker]
    return [credited, ev.ClaimEnded(token=token, worker=worker, how="completed")]


def child(args: argparse.Namespace) -> None:
    """Draws; writes its numbers to ``--report``."""
    from textual.screen import Screen

    from console.app import ConsoleApp
    from console.compare_app import CompareApp
    from tests.console.player import Player

    log = make_log(args)
    gc.collect()
    gc.freeze()  # the log made ahead is no part of the console; collecting it would be counted
    began, steps = 0.0, 0

    def clock() -> float:
        return steps / args.hz if args.steps else time.monotonic() - began

    compare = args.screen == "compare"

    class Measured(CompareApp if compare else ConsoleApp):  # type: ignore[misc]
        ticks: list[float] = []  # noqa: RUF012
        folds: list[float] = []  # noqa: RUF012
        lags: list[float] = []  # noqa: RUF012
        repaints: list[float] = []  # noqa: RUF012
        laid_out = 0.0

        started = 0.0

        def tick(self) -> None:
            nonlocal steps
            steps += 1
            self.started = time.thread_time()
            super().tick()
            self.ticks.append(time.thread_time() - self.started)

        def repaint(self, turn: bool | None = None) -> None:
            before = time.thread_time()
            self.folds.append(before - self.started)
            super().repaint(turn)
            self.laid_out += time.thread_time() - before

        def on_ready(self) -> None:
            self.run_worker(self.watch())

        async def watch(self) -> None:
            await self.action_show_screen(args.screen)
            while clock() < WARM_UP_SECONDS:
                await asyncio.sleep(0.01)
            self.ticks.clear()
            self.folds.clear()
            self.repaints.clear()
            if args.scroll:
                self.set_interval(0.05, lambda: self.simulate_key("j"))
            spent, wall = time.process_time(), time.monotonic()
            while args.no_lag and clock() < args.seconds:
                await asyncio.sleep(0.1)
            while clock() < args.seconds:
                due = time.monotonic() + 0.01
                await asyncio.sleep(0.01)
                self.lags.append(time.monotonic() - due)
            passed = len(self.ticks) / args.hz if args.steps else time.monotonic() - wall
            report = {
                "cpu %": 100 * (time.process_time() - spent) / passed,
                "fold ms p50": 1000 * quantile(self.folds, 0.5),
                "tick ms p50": 1000 * quantile(self.ticks, 0.5),
                "tick ms p95": 1000 * quantile(self.ticks, 0.95),
                "repaint ms p50": 1000 * quantile(self.repaints, 0.5),
                "repaint ms p95": 1000 * quantile(self.repaints, 0.95),
                "lag ms p50": 1000 * quantile(self.lags, 0.5),
                "lag ms p99": 1000 * quantile(self.lags, 0.99),
                "spin ms": spin(),
                "ticks": len(self.ticks),
                "records": sum(lane.model.records for lane in self.contest.lanes)
                if compare
                else self.model.records,
                "rss MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
            }
            Path(args.report).write_text(json.dumps(report))
            self.exit()

    drawn = Screen._compositor_refresh

    def measured_draw(screen: Screen[object]) -> None:
        before = time.thread_time()
        drawn(screen)
        app.repaints.append(app.laid_out + time.thread_time() - before)
        app.laid_out = 0.0

    Screen._compositor_refresh = measured_draw  # type: ignore[method-assign]
    refresh_hz = STEPS_HZ if args.steps else args.hz
    if compare:
        app = Measured(contest_of(log, clock), refresh_hz=refresh_hz)
    else:
        player = Player(log, clock=clock)
        player.open_end = True
        app = Measured(player, refresh_hz=refresh_hz)
    began = time.monotonic()
    if compare:
        app.contest.restart()  # its clock began before this one
    app.run()


def contest_of(log: list[ev.Record], clock: Callable[[], float]) -> Contest:
    """The log twice, side by side on the clock of the benchmark."""
    from console.contest import Contest, Heat
    from console.tapes import RecordedTape
    from farm.simulation.source import VirtualClock

    class Real:
        def now(self) -> float:
            return clock()

    tapes = [RecordedTape(name, lambda: iter(log)) for name in ("one", "other")]
    return Contest([Heat("load", tuple(tapes))], VirtualClock(Real()))


def spin() -> float:
    """CPU milliseconds for three million additions, now."""
    start, total = time.thread_time(), 0
    for number in range(3_000_000):
        total += number
    return 1000 * (time.thread_time() - start)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def measure(argv: list[str], args: argparse.Namespace) -> dict[str, float]:
    """The numbers of a child that draws into a pseudo-terminal."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", args.height, args.width, 0, 0))
        env = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        env.pop("NO_COLOR", None)
        command = [sys.executable, __file__, *argv, "--report", str(report)]
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, close_fds=True)
        os.close(slave)
        written = drain(master, process)
        if not report.exists():
            raise SystemExit(f"the console ended without a report (code {process.returncode})")
        numbers = json.loads(report.read_text())
    numbers["out kB/s"] = written / 1000 / args.seconds
    return dict(numbers)


#: What the suite measures: a name, and the options that differ from the usual ones. CPU and lag are measured
#: apart, since the lag meter costs some CPU itself.
SUITE = {
    "live": ["--no-lag"],
    "live, lag": [],
    "live, scattered": ["--no-lag", "--scattered"],
    "timeline": ["--no-lag", "--screen", "timeline"],
    "chunks": ["--no-lag", "--screen", "chunks"],
    "compare": ["--no-lag", "--screen", "compare", "--events", "2500"],
    "idle": ["--no-lag", "--events", "0"],
    "500 workers, scrolled": ["--workers", "500", "--scroll"],
}
_SHOWN = (
    *("cpu %", "fold ms p50", "tick ms p95", "repaint ms p95"),
    *("lag ms p99", "spin ms", "rss MB", "out kB/s"),
)


def suite(seconds: float) -> None:
    print(f"{'':<22}" + "".join(f"{name.replace(' ms', ''):>13}" for name in _SHOWN))
    for name, options in SUITE.items():
        argv = [*options, "--seconds", f"{seconds:g}"]
        numbers = measure(argv, parse(argv))
        print(f"{name:<22}" + "".join(f"{numbers[column]:>13.1f}" for column in _SHOWN), flush=True)


def drain(master: int, process: subprocess.Popen[bytes]) -> int:
    """Read what the child draws, as a terminal would, until it ends; returns the bytes."""
    written = 0
    while process.poll() is None or select.select([master], [], [], 0)[0]:
        if not select.select([master], [], [], 0.2)[0]:
            continue
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        written += len(data)
    process.wait()
    return written


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--events", type=int, default=5000, help="a second")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--parts", type=int, default=100_000)
    parser.add_argument("--screen", default="live", choices=["live", "timeline", "chunks", "compare"])
    parser.add_argument("--hz", type=float, default=10.0)
    parser.add_argument("--width", type=int, default=120)
    parser.add_argument("--scattered", action="store_true", help="claims all over the film, not in order")
    parser.add_argument("--height", type=int, default=40)
    parser.add_argument(
        "--no-lag", action="store_true", help="don't measure lag, which costs some CPU itself"
    )
    parser.add_argument("--steps", action="store_true", help="every tick gets the same share of the log")
    parser.add_argument("--scroll", action="store_true", help="go down by 20 rows a second")
    parser.add_argument("--suite", action="store_true", help="everything that has a target, as one table")
    parser.add_argument("--report", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: list[str]) -> None:
    args = parse(argv)
    if args.report:
        child(args)
    elif args.suite:
        suite(args.seconds)
    else:
        for name, value in measure(argv, args).items():
            print(f"{name:<14} {value:10.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
