"""What an operator's command means in a simulated world: what there is no such thing as, and what is left to
the engine to say. Pure: the simulation does what is asked."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from farm import commands as cmd
from farm.faults import KINDS
from farm.fleet import free_name
from farm.simulation.worker import Worker


def why_not(command: cmd.AnyCommand, workers: Mapping[str, Worker], *, injectable: bool) -> str | None:
    """Why this world has no such thing as is asked for; None: it has. ``injectable``: faults may be."""
    match command:
        case cmd.InjectFault(fault=fault) if KINDS[fault.kind].live_only:
            return f"{fault.kind} happens in a live run only"
        case cmd.InjectFault() if not injectable:
            return "this simulation was not made to have faults injected"
        case cmd.AddWorker(profile=profile) if profile.fps_cap is None:
            return "a simulated worker needs a speed: give frames per second"
        case cmd.AddWorker(profile=profile) if profile.name in workers:
            return f"there was a worker {profile.name} in this run already: give another name"
    return None


def spelt_out(command: cmd.AnyCommand, workers: Mapping[str, Worker]) -> cmd.AnyCommand:
    """With what is left to the engine: a name, and a cap that the worker can keep."""
    match command:
        case cmd.AddWorker(profile=profile) if not profile.name:
            named = msgspec.structs.replace(profile, name=free_name(workers))
            return msgspec.structs.replace(command, profile=named)
        case cmd.ThrottleWorker(worker=name, fps=fps) if name in workers:
            own = workers[name].spec.fps
            return msgspec.structs.replace(command, fps=own if fps is None or fps > own else fps)
        case _:
            return command
