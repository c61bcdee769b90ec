"""How long a drain will take: what the parts in progress need, and what the user's patience allows.

Rule: an estimate is said to be one, and what isn't known is left out.
"""

from __future__ import annotations

from typing import NamedTuple

from console import text
from console.model import Model
from console.timeline import WorkerModel


class DrainLeft(NamedTuple):
    """Seconds; None: not known, or no limit."""

    about: float | None
    at_most: float | None


def drain_left(model: Model, now: float) -> DrainLeft:
    """What is left of a drain at lease time ``now``."""
    needed = [_part_seconds(model, worker, now) for worker in model.workers.values() if worker.claim]
    known = [seconds for seconds in needed if seconds is not None]
    about = max(known) if known and len(known) == len(needed) else None
    at_most = None if model.drain_until is None else max(model.drain_until - now, 0.0)
    if about is not None and at_most is not None:
        about = min(about, at_most)
    return DrainLeft(about, at_most)


def _part_seconds(model: Model, worker: WorkerModel, now: float) -> float | None:
    """Until the part in progress is done. A worker that is stopped or new has no speed to reckon with."""
    claim, fps = worker.claim, worker.fps or worker.measured_fps
    if claim is None or not fps:
        return None
    if claim.position >= claim.stop:
        return 0.0
    stop = model.grid.stop(model.grid.part_at(claim.position))
    return max((min(stop, claim.stop) - claim.position) / fps - max(now - worker.heard_at, 0.0), 0.0)


def drain_text(model: Model, now: float) -> str:
    """``draining, about 6 s left, at most 24 s``."""
    about, at_most = drain_left(model, now)
    said = "draining"
    if about is not None:
        said += f", about {text.about(about)} left"
    if at_most is not None:
        said += f", at most {text.about(at_most)}" + (" left" if about is None else "")
    return said
