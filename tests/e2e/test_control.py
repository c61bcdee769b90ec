"""What an operator does by hand, on real processes and from a real terminal: the same packets come out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from farm import commands as cmd
from farm import events as ev
from farm.errors import ExitCode
from farm.faultgrid import live_run
from farm.fleet import WorkerProfile
from farm.live import LiveRun
from tests.e2e.command import Command
from tests.e2e.test_faults import grid
from tests.e2e.test_run import QUICK
from tests.e2e.test_terminal import Screen, short_clip

__all__ = ["grid", "short_clip"]

LIMIT_SECONDS = 120.0
E = TypeVar("E", bound=ev.Event)


class Watched:
    """A live run whose records are taken as they come."""

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self.events: list[ev.AnyEvent] = []
        run.start()

    def until(self, kind: type[E], which: Callable[[E], object] = lambda event: True) -> E:
        """The first event of a kind for which that holds."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            for event in self.events:
                if isinstance(event, kind) and which(event):
                    return event
            assert time.monotonic() < deadline and not self.run.ended, f"no such {kind.__name__}"
            self.take()

    def take(self) -> None:
        self.run.wait_news(0.05)
        self.events += [record.event for record in self.run.take()]

    def send(self, command: cmd.AnyCommand) -> None:
        assert self.run.send(command) is None

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.mark.slow
def test_everything_that_can_be_done_by_hand_on_real_workers(grid: tuple[Path, str], tmp_path: Path) -> None:
    """w3, the slow one, is throttled further; a worker is added; w3's chunk is copied and then taken from it;
    the policy is changed, and w2 is sent away."""
    clip, reference = grid
    watched = Watched(live_run(None, "guided", clip, tmp_path))
    held = watched.until(ev.ClaimGranted, lambda grant: grant.worker == "w3")
    chunk = held.token.partition("#")[0]
    watched.send(cmd.ThrottleWorker(worker="w3", fps=0.5, by="ada"))
    watched.send(cmd.DuplicateChunk(chunk=chunk, by="ada"))
    watched.send(cmd.AddWorker(profile=WorkerProfile(name="", fps_cap=60.0), by="ada"))
    watched.send(cmd.KillWorker(worker="w9", by="ada"))
    refused = watched.until(ev.CommandRefused)
    assert (refused.reason, refused.by) == ("there is no worker w9", "ada")
    copy = watched.until(ev.ClaimGranted, lambda grant: grant.duplicate)
    assert copy.token.startswith(f"{chunk}#") and copy.worker != "w3"
    watched.send(cmd.ReleaseClaim(claim=held.token, by="ada"))
    ended = watched.until(ev.ClaimEnded, lambda end: end.token == held.token)
    assert ended.how in ("released", "completed", "superseded")
    added = watched.until(ev.WorkerJoined, lambda join: join.worker == "w4")
    assert added.fps_cap == 60.0
    options = ev.RelayOptions(policy="fair", tail="split", lease_seconds=5.0, heartbeat_seconds=0.5)
    watched.send(cmd.ChangeOptions(options=options, by="ada"))
    watched.send(cmd.RemoveWorker(worker="w2", by="ada"))
    vitals = watched.until(ev.VitalsSampled, lambda v: any(w.memory_bytes and w.log_line for w in v.workers))
    assert {worker.worker for worker in vitals.workers} <= {"w1", "w2", "w3", "w4"}
    while not watched.run.ended:
        watched.take()
    watched.take()
    assert watched.run.result is not None and watched.run.result.exit_code is ExitCode.DONE
    assert watched.of(ev.RunFinished)[-1].packets_sha256 == reference
    assert watched.of(ev.WorkerThrottled) == [ev.WorkerThrottled(worker="w3", fps_cap=0.5, by="ada")]
    assert watched.of(ev.OptionsChanged)[-1].by == "ada"
    left = [event for event in watched.of(ev.WorkerLeft) if event.worker == "w2"]
    assert [event.lost for event in left] == [False], "it left in good order and was not started again"
    parts = [event.part for event in watched.of(ev.PartCredited)]
    assert len(parts) == len(set(parts))


@pytest.mark.slow
def test_a_worker_is_added_from_a_console_on_a_terminal(short_clip: Path, tmp_path: Path) -> None:
    """Processes can't be started from within a Textual app, but the farm's fork server is there before it."""
    arguments = ["render", short_clip, "-o", "out.mp4", "--fleet", "12", *QUICK, "--ui", "tui"]
    screen = Screen([sys.executable, "-m", "console", *map(str, arguments)], tmp_path, columns=120)
    try:
        screen.read_until(b"claimed c0#")  # the word alone is in the legend
        os.write(screen.master, b"a")
        screen.read_until(b"add a worker")
        os.write(screen.master, b"\x7f\x7f\x7f40\r")
        screen.read_until(b"w2")
        code, output = screen.finish()
        assert code == 0, output[-2000:]
    finally:
        screen.close()
    with_one = Command("render", short_clip, "-o", "one.mp4", "-w", "1", *QUICK, cwd=tmp_path)
    assert with_one.finish() == 0 and with_one.summary is not None
    verified = Command("verify", "out.mp4", cwd=tmp_path, json=False)
    verified.finish()
    assert str(with_one.summary["packets_sha256"]) in verified.stdout
