"""Every fault under two policies, in virtual time and on real processes, and what must come of each: every
frame credited once, the same packets as undisturbed, an end in bounded time, and a truthful exit code.

    python -m farm.faultgrid [live]         # a line for each; exits with 1 if one is not as it must be

The tests and scripts/reliability_doc.py run the same cases.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from farm import events as ev
from farm.engines.child import run_in_child_blocking
from farm.engines.local import LocalEngine, prepare
from farm.engines.simulated import Simulation
from farm.errors import ExitCode
from farm.faults import KINDS, Fault
from farm.fleet import WorkerProfile
from farm.live import LiveRun
from farm.plan import JobRequest, make_plan, open_run
from farm.scenario.faults import parse_fault
from farm.settings import GridSettings, JobSettings, VideoSettings
from farm.simulation.world import SimWorker, world_of

#: Policy and tail.
POLICIES: Final = {
    "fair": ("fair", "split"),
    "guided": ("guided,12", "duplicate-oldest"),
}
FRAMES, PART = 288, 12
#: Two quick workers, and one that takes longer than a lease for a part.
SPEEDS: Final = {"w1": 60.0, "w2": 60.0, "w3": 6.0}
LEASE_SECONDS, HEARTBEAT_SECONDS, STALL_SECONDS = 1.2, 0.3, 1.5
#: No case takes longer, live or simulated.
LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Case:
    """Faults of one run, and the exit code that it must end with."""

    faults: tuple[str, ...]
    exit_code: ExitCode = ExitCode.DONE

    @property
    def name(self) -> str:
        return "; ".join(self.faults)

    @property
    def parsed(self) -> tuple[Fault, ...]:
        return tuple(map(parse_fault, self.faults))

    @property
    def live_only(self) -> bool:
        return any(KINDS[fault.kind].live_only for fault in self.parsed)


#: Each kind at least once.
CASES: Final = (
    Case(("stall w1 at 0.6 for 2.5",)),
    Case(("stall w1 at 0.6",)),
    Case(("stall w1 at 0.5", "resume w1 at 1.2")),
    Case(("kill w1 at 0.6",)),
    Case(("kill w1 when it has delivered 2 parts of one chunk for 0.8",)),
    Case(("slow w1 to 0.1 at 0.5",)),
    Case(("lose-heartbeats w3 at 0.2 for 4",)),
    Case(("stand-still w1 at 0.6 for 2.5",)),
    Case(("report-late w1 by 1.8 at 0.6",)),
    Case(("report-twice w1 at 0.3 for 1.5",)),
    Case(("bad-id w1 when it has delivered 1 part",)),
    Case(("wrong-count w1 when it has delivered 1 part",)),
    Case(("corrupt w1 when it has delivered 2 parts every time",)),
    Case(("cut w1 at 0.6 for 2",)),
    Case(("rate-limit all at 0.4 for 1",)),
    Case(("fill-memory w1 at 0.6",)),
    Case(("pause-relay at 0.5 for 2.5",)),
    Case(("suspend at 0.5 for 3.6",)),
    Case(("step-clock by 3600 at 0.5", "step-clock by -7200 at 1")),
    Case(("kill all at 0.6",), ExitCode.INCOMPLETE),
    Case(("corrupt all at 0.4 for 1000",), ExitCode.INCOMPLETE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a case."""

    exit_code: int
    seconds: float  #: lease time of the last record
    credited_frames: int
    injected: int
    lapses: int
    refusals: int  #: not the claimant, or not understood
    failures: int
    losses: int
    wrong: tuple[str, ...]  #: what is not as it must be
    packets_sha256: str = ""


def simulate_case(case: Case, policy: str) -> Outcome:
    """In virtual time, with the relay's books recounted after every stimulus."""
    name, tail = POLICIES[policy]
    options = replace(_OPTIONS, policy=name, tail=tail, claim_ahead=policy == "fair")
    workers = [SimWorker(name=worker, fps=fps) for worker, fps in SPEEDS.items()]
    world = replace(world_of(workers, FRAMES, part=PART, options=options), deaths_reported=True)
    simulation = Simulation(replace(world, faults=case.parsed), keep_log=True, validate_every=1)
    while simulation.step() and simulation.now < 100 * LIMIT_SECONDS:
        pass
    return judge(case, simulation.records, reference="")


_OPTIONS = ev.RelayOptions(
    lease_seconds=LEASE_SECONDS,
    heartbeat_seconds=HEARTBEAT_SECONDS,
    stall_timeout_seconds=STALL_SECONDS,
    block_seconds=0.5,
)


def make_clip(folder: Path) -> Path:
    clip = folder / "clip.mp4"
    run_in_child_blocking("farm.media.tasks:make_demo_clip", clip, FRAMES, log=folder / "clip.log")
    return clip


def run_case(case: Case | None, policy: str, clip: Path, folder: Path, reference: str = "") -> Outcome:
    """On real processes, in ``folder``, which exists. Case None: undisturbed. ``reference``: the sha256 of
    the packets that a good run must have."""
    run = live_run(case, policy, clip, folder)
    run.start()
    ended = run.wait(LIMIT_SECONDS)
    records = [record for record in run.take() if record.seq >= 0]
    if not ended:
        raise TimeoutError(f"{case.name if case else 'an undisturbed run'} took over {LIMIT_SECONDS:g} s")
    assert run.result is not None
    if run.result.exit_code is ExitCode.BUG:
        raise RuntimeError(run.result.message)
    return judge(case, records, reference)


def live_run(case: Case | None, policy: str, clip: Path, folder: Path) -> LiveRun:
    """A run that is not started yet."""
    name, tail = POLICIES[policy]
    request = JobRequest(
        source=clip,
        output=folder / "out.mp4",
        settings=JobSettings(
            video=VideoSettings(preset="ultrafast"),
            grid=GridSettings(frames=PART, seconds=None, fixed=True),
        ),
        options=replace(_OPTIONS, policy=name, tail=tail, claim_ahead=policy == "fair"),
        fleet=tuple(WorkerProfile(name=worker, fps_cap=fps) for worker, fps in SPEEDS.items()),
        faults=case.parsed if case is not None else (),
    )
    return LiveRun(
        open_run(make_plan(request)),
        run_id="faultgrid",
        engine=LocalEngine,
        wall_time=lambda: datetime.now(UTC).isoformat(),
    )


def judge(case: Case | None, records: Sequence[ev.Record], reference: str) -> Outcome:
    """What a run's records say."""
    finish = next((r.event for r in reversed(records) if isinstance(r.event, ev.RunFinished)), None)
    code = finish.exit_code if finish is not None else -1
    frames = dict.fromkeys(range(FRAMES // PART), 0)
    kinds: Counter[type] = Counter()
    lapses = losses = 0
    for record in records:
        event = record.event
        kinds[type(event)] += 1
        if isinstance(event, ev.PartCredited):
            frames[event.part] += event.frames
        elif isinstance(event, ev.PartVoided):
            frames[event.part] -= PART
        elif isinstance(event, ev.ClaimEnded):
            lapses += event.how in ("lapsed", "stalled", "timed out")
        elif isinstance(event, ev.WorkerLeft):
            losses += event.lost
    packets = finish.packets_sha256 if finish is not None else ""
    return Outcome(
        exit_code=code,
        seconds=records[-1].at,
        credited_frames=sum(frames.values()),
        injected=kinds[ev.FaultInjected],
        lapses=lapses,
        refusals=kinds[ev.ClaimRefused] + kinds[ev.MessageRefused],
        failures=kinds[ev.PartFailed],
        losses=losses,
        wrong=tuple(_wrong(case, code, frames.values(), kinds[ev.FaultInjected], packets, reference)),
        packets_sha256=packets,
    )


def _wrong(
    case: Case | None, code: int, frames: Iterable[int], injected: int, packets: str, reference: str
) -> Iterable[str]:
    wanted = case.exit_code if case is not None else ExitCode.DONE
    counts = Counter(frames)
    if code != wanted:
        yield f"exit code {code} instead of {wanted:d}"
    if any(count not in (0, PART) for count in counts):
        yield "frames credited twice"
    if (counts[0] > 0) != (wanted is not ExitCode.DONE):
        yield f"{counts[0]} parts not credited, exit code {code}"
    if case is not None and not injected:
        yield "nothing was injected"
    if reference and wanted is ExitCode.DONE and packets != reference:
        yield "other packets than undisturbed"


def main(live: bool) -> int:
    bad = 0
    with tempfile.TemporaryDirectory(prefix="uneven-faults-") as scratch:
        os.environ["UNEVEN_STATE_DIR"] = str(Path(scratch) / "state")
        clip, reference = Path(), ""
        if live:
            prepare()
            clip = make_clip(Path(scratch))
            reference = run_case(None, "fair", clip, Path(scratch)).packets_sha256
        for number, (case, policy) in enumerate((case, policy) for case in CASES for policy in POLICIES):
            if live:
                folder = Path(scratch) / str(number)
                folder.mkdir()
                outcome = run_case(case, policy, clip, folder, reference)
            else:
                outcome = simulate_case(case, policy)
            bad += bool(outcome.wrong)
            print(
                f"{policy:7} {case.name:58} code {outcome.exit_code}  {outcome.seconds:5.1f} s  "
                f"{outcome.lapses} lapses, {outcome.refusals} refusals, {outcome.failures} failures, "
                f"{outcome.losses} lost  {'; '.join(outcome.wrong) or 'right'}",
                flush=True,
            )
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main("live" in sys.argv[1:]))
