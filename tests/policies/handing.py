"""Hands out a whole job by a policy alone, as the relay does: sizes rounded to whole parts, never more than
what is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from farm.frames import PartGrid
from farm.policies.base import Ask, Policy
from farm.policies.speeds import Speeds


def ask(
    open_frames: int, workers: int = 4, total_frames: int = 4800, worker: str = "w1", **more: object
) -> Ask:
    return Ask(
        worker=worker,
        workers=workers,
        total_frames=total_frames,
        open_frames=open_frames,
        now=0.0,
        **more,  # type: ignore[arg-type]
    )


def sizes(
    policy: Policy,
    frames: int,
    workers: int,
    *,
    part: int = 1,
    speeds: Speeds | None = None,
    caps: Mapping[str, float | None] | None = None,
    asking: Callable[[int], str] = lambda n: "w1",
) -> list[int]:
    """The chunks in the order they are granted; ``asking`` tells who asks for the n-th."""
    grid = PartGrid([*range(0, frames, part), frames])
    start = 0
    given: list[int] = []
    while start < frames:
        size = policy.size(
            Ask(
                worker=asking(len(given)),
                workers=workers,
                total_frames=frames,
                open_frames=frames - start,
                now=0.0,
                grants=len(given),
                speeds=speeds or Speeds(),
                caps=caps or {},
            )
        )
        stop = grid.stop_for(start, size.frames, frames)
        given.append(stop - start)
        start = stop
    return given


def measured(rates: Sequence[float], seconds: float = 100.0) -> Speeds:
    """Speeds of w1, w2, … as if each had rendered so long at that rate, without any variance."""
    speeds = Speeds()
    for number, rate in enumerate(rates, 1):
        speeds.learn(f"w{number}").report(rate * seconds, seconds)
    return speeds
