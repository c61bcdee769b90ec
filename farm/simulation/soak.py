"""Small jobs in heavy trouble, made from a seed, with everything checked after every stimulus.

    python -m farm.simulation.soak 4000 1     # worlds of the seeds 1 to 4000

Each world must end with every frame credited exactly once, whatever its workers go through: stalls, deaths,
lapses, late reports, partitions, latency, late arrival. The first that doesn't is named by its seed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from msgspec.structs import replace

from farm import events as ev
from farm.engines.simulated import Simulation
from farm.policies.registry import POLICIES
from farm.relay.books import Books
from farm.simulation.bound import lower_bound_seconds
from farm.simulation.noise import Stream
from farm.simulation.runs import SimResult, result_of
from farm.simulation.world import Interval, SimWorker, World

TAILS = ("none", "duplicate-oldest,from=start", "duplicate-oldest,from=frontier", "late", "split")

#: More than any of these small worlds needs.
STIMULI_MAX = 20_000


class SoakFailed(AssertionError):
    """A run that did not end as it must; the message has the world's seed and what is wrong."""


def troubled_world(seed: int) -> World:
    """1 to 6 workers and up to 160 frames. The first worker neither dies nor is it away for ever, so the job
    can always end; no part may be set aside, so it has to end complete."""
    stream = Stream(seed, "soak")
    cuts = [0]
    for _ in range(1 + stream.below(60)):
        cuts.append(cuts[-1] + 1 + (stream.below(8) if stream.chance(0.5) else 0))
    heartbeat = stream.uniform(0.2, 2.0)
    latency = stream.log_uniform(0.001, 1.0) if stream.chance(0.3) else 0.0
    options = ev.RelayOptions(
        policy=stream.choice(sorted(POLICIES)),
        tail=stream.choice(TAILS),
        heartbeat_seconds=heartbeat,
        lease_seconds=heartbeat * stream.uniform(1.5, 8.0) + 4.0 * latency,  # else no grant could be kept
        claim_ahead=stream.chance(0.4),
        max_tries=1_000,
        max_outstanding=1_000 if stream.chance(0.5) else None,
    )
    workers = tuple(_worker(number, stream) for number in range(1 + stream.below(6)))
    workers = (replace(workers[0], dies_at_seconds=None), *workers[1:])
    return World(
        workers=workers,
        cuts=tuple(cuts),
        options=options,
        seed=seed,
        name="soak",
        cost=tuple(stream.lognormal(0.8) for _ in range(cuts[-1])) if stream.chance(0.3) else None,
        latency_seconds=latency,
        deaths_reported=stream.chance(0.5),
    )


def _worker(number: int, stream: Stream) -> SimWorker:
    return SimWorker(
        name=f"w{number + 1}",
        fps=stream.log_uniform(0.5, 20.0),
        overhead_seconds=stream.choice((0.0, 0.5, 3.0)),
        arrives_at_seconds=stream.uniform(0.0, 20.0) if stream.chance(0.3) else 0.0,
        dies_at_seconds=stream.uniform(0.0, 60.0) if stream.chance(0.25) else None,
        silences=_intervals(stream) if stream.chance(0.4) else (),
        partitions=_intervals(stream) if stream.chance(0.4) else (),
        throttles=((stream.uniform(0.0, 30.0), stream.log_uniform(0.1, 3.0)),) if stream.chance(0.3) else (),
        frame_noise=0.5 if stream.chance(0.2) else 0.0,
        load=0.25 if stream.chance(0.2) else 0.0,
    )


def _intervals(stream: Stream) -> tuple[Interval, ...]:
    found = []
    at = 0.0
    for _ in range(1 + stream.below(3)):
        start = at + stream.uniform(0.0, 15.0)
        at = start + stream.log_uniform(0.1, 60.0)
        found.append((start, at))
    return tuple(found)


def check(world: World) -> SimResult:
    """Run it, for many times longer than it should take at most. Raises SoakFailed, or BooksWrong from the
    relay's own recount."""
    until = 10.0 * lower_bound_seconds(world) + 2_000.0
    simulation = Simulation(world, keep_log=True, validate_every=1)
    while simulation.step() and simulation.now < until and simulation.stimuli < STIMULI_MAX:
        pass
    result = result_of(simulation)
    where = f"seed {world.seed} ({world.options.policy}, {world.options.tail})"
    credits: Counter[int] = Counter()
    again = Books()
    for number, record in enumerate(result.records):
        if record.seq != number:
            raise SoakFailed(f"{where}: record {number} is numbered {record.seq}")
        again.apply(record.at, record.event)
        if isinstance(record.event, ev.PartCredited):
            credits[record.event.part] += 1
        elif isinstance(record.event, ev.PartVoided):
            credits[record.event.part] -= 1
    parts = len(world.cuts) - 1
    if not result.finished or result.credited_frames != world.frames:
        raise SoakFailed(
            f"{where}: {result.credited_frames} of {world.frames} frames are credited at the end"
        )
    if any(credits[part] != 1 for part in range(parts)):
        raise SoakFailed(f"{where}: parts credited other than once: {credits}")
    if result.wasted_frames < 0:
        raise SoakFailed(f"{where}: more frames were credited than rendered, {-result.wasted_frames} more")
    folded = (again.credited_frames, again.lapses, again.duplicates, again.splits, again.finished)
    if folded != (world.frames, result.lapses, result.duplicates, result.splits, True):
        raise SoakFailed(f"{where}: the log folds to other books: {folded}")
    return result


def main(count: int, first_seed: int) -> None:
    began = time.monotonic()
    stimuli = lapses = duplicates = splits = refusals = 0
    for seed in range(first_seed, first_seed + count):
        result = check(troubled_world(seed))
        stimuli += result.stimuli
        lapses += result.lapses
        duplicates += result.duplicates
        splits += result.splits
        refusals += result.refusals
    print(
        f"{count} runs in {time.monotonic() - began:.0f} s: {stimuli} stimuli, {lapses} lapses, "
        f"{duplicates} duplicates, {splits} splits, {refusals} refusals; every frame credited once"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
