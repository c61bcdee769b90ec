"""What happens to a worker: it comes and goes, rests, is blocked, and how its process is doing."""

from __future__ import annotations

import msgspec

from farm.events.base import Event


class WorkerJoined(Event, frozen=True, kw_only=True):
    """A worker introduced itself and may ask for work."""

    worker: str
    pid: int | None = None
    host: str = ""
    fps_cap: float | None = None
    overhead_seconds: float = 0.0
    wire_version: int = 1
    build: str = ""


class WorkerLeft(Event, frozen=True, kw_only=True):
    """A worker is gone; ``lost`` tells a death from a good-bye."""

    worker: str
    reason: str
    lost: bool


class WorkerAdded(Event, frozen=True, kw_only=True):
    """An operator had a worker started while the run goes on; it joins a moment later."""

    worker: str
    profile: str = ""  #: as JSON, as in ``RunOpened.fleet``
    by: str = "operator"


class WorkerThrottled(Event, frozen=True, kw_only=True):
    """An operator changed the cap on a worker's speed."""

    worker: str
    fps_cap: float | None = None  #: frames per second from now on; None: as fast as it can
    by: str = "operator"


class WorkerDismissed(Event, frozen=True, kw_only=True):
    """An operator sent a worker away: it finishes the part it is at, gives back the rest and leaves."""

    worker: str
    by: str = "operator"


class WorkerVitals(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How a worker's process is doing."""

    worker: str
    cpu_share: float = 0.0  #: of one core, since the last look; 1.5: a core and a half
    memory_bytes: int = 0  #: resident
    log_line: str = ""  #: the last line of its log
    log_age_seconds: float | None = None  #: since that was written; None: nothing was


class VitalsSampled(Event, frozen=True, kw_only=True):
    """How the workers' processes are doing, every second or so. Not journalled."""

    workers: tuple[WorkerVitals, ...] = ()


class WorkerPeaked(Event, frozen=True, kw_only=True):
    """A worker's memory reached a new peak; told when it grew by a quarter, and at its end."""

    worker: str
    peak_bytes: int  #: resident


class WorkerParked(Event, frozen=True, kw_only=True):
    """A worker asked and can be given nothing now; it is woken by the next useful event."""

    worker: str
    why: str


class WorkerBlocked(Event, frozen=True, kw_only=True):
    """A worker failed several parts in a row and gets nothing until lease time ``until``."""

    worker: str
    failures: int
    until: float


class WorkerForgiven(Event, frozen=True, kw_only=True):
    """A blocked worker may ask again."""

    worker: str


WorkerEvent = (
    WorkerJoined
    | WorkerLeft
    | WorkerAdded
    | WorkerThrottled
    | WorkerDismissed
    | VitalsSampled
    | WorkerPeaked
    | WorkerParked
    | WorkerBlocked
    | WorkerForgiven
)
