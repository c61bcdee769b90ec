"""What an operator may ask of a run. The console, signals and scripts send these; each is logged as an
event, and a command that can't be done is answered with the reason."""

from __future__ import annotations

import msgspec

from farm.events import RelayOptions
from farm.faults import Fault
from farm.fleet import WorkerProfile


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


class ThrottleWorker(Command, frozen=True, kw_only=True):
    """Another cap on a worker's speed from its next frame on; it keeps it when its process is replaced."""

    worker: str
    fps: float | None = None  #: frames per second; None: as fast as it can


class AddWorker(Command, frozen=True, kw_only=True):
    """A worker joins the run. It is named by who starts it where the profile's name is empty."""

    profile: WorkerProfile


class RemoveWorker(Command, frozen=True, kw_only=True):
    """A worker finishes and delivers the part it is at, gives back the rest and leaves."""

    worker: str


class DuplicateChunk(Command, frozen=True, kw_only=True):
    """A second worker takes a copy of a chunk in flight, whatever else is open: the next one that asks."""

    chunk: str  #: its id, ``c12``


class ReleaseClaim(Command, frozen=True, kw_only=True):
    """Take a claim away from its worker; what is not credited of it is open again, and no try is counted."""

    claim: str  #: its token, ``c12#3@e2``; or a chunk's id, for every claim on it


AnyCommand = (
    Pause
    | Resume
    | Drain
    | StopNow
    | ChangeOptions
    | StallWorker
    | KillWorker
    | InjectFault
    | ThrottleWorker
    | AddWorker
    | RemoveWorker
    | DuplicateChunk
    | ReleaseClaim
)
