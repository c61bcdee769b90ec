"""What an operator may ask of a run. The console, signals and scripts send these; each is logged as an
event, and a command that can't be done is answered with the reason."""

from __future__ import annotations

import msgspec

from farm.events import RelayOptions
from farm.faults import Fault


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", tag=True):
    """Base of all commands."""

    by: str = "operator"


class Pause(Command, frozen=True, kw_only=True):
    """Grant nothing more; parts in progress are finished."""


class Resume(Command, frozen=True, kw_only=True):
    """Go on after a pause."""


class Drain(Command, frozen=True, kw_only=True):
    """Finish and keep the parts in progress, then stop; resumable."""

    reason: str = "asked to stop"
    limit_seconds: float | None = None  #: who asked stops the run at once after so long


class StopNow(Command, frozen=True, kw_only=True):
    """Stop at once: workers are killed; what is credited stays; resumable."""

    reason: str = "asked to stop at once"


class ChangeOptions(Command, frozen=True, kw_only=True):
    """Another policy, tail, lease or limit from now on."""

    options: RelayOptions


class StallWorker(Command, frozen=True, kw_only=True):
    """Freeze a worker (SIGSTOP) or thaw it (SIGCONT)."""

    worker: str
    stalled: bool


class KillWorker(Command, frozen=True, kw_only=True):
    """Kill a worker (SIGKILL). What it had not delivered is lost and goes to others."""

    worker: str


class InjectFault(Command, frozen=True, kw_only=True):
    """Bring a fault about, now, whenever it says."""

    fault: Fault


AnyCommand = Pause | Resume | Drain | StopNow | ChangeOptions | StallWorker | KillWorker | InjectFault
