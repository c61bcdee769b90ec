"""The one question a policy answers: how many frames does this idle worker get now?

Rules: a policy is pure (what it knows is in the ``Ask``), asks for frames and leaves the rounding to whole
parts to the relay, and says why in words. Reopened work is given first whatever the policy. A policy never
sees the grid, so the same one serves parts of one frame and of a thousand.

A few policies of the literature decide by what was so at an earlier ask. They keep a private memory that
follows from the asks alone, that nobody else reads, and without which (after a recovery of the relay, which
makes a new instance) they go on from what the ``Ask`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from farm.policies.speeds import Speeds


class Ask(Struct, frozen=True):
    """What a policy may know when ``worker`` asks."""

    worker: str
    workers: int  #: W: live workers that are not blocked, at least 1
    total_frames: int  #: N
    open_frames: int  #: R, not yet handed out
    now: float  #: lease seconds
    grants: int = 0  #: chunks of open work granted before in this run; duplicates and splits don't count
    speeds: Speeds = field(default_factory=Speeds)  #: what was measured
    #: Frames per second that the live workers were declared with, None for unthrottled; empty: not told.
    caps: Mapping[str, float | None] = field(default_factory=dict)


class Size(NamedTuple):
    frames: float  #: rounded to the nearest number of whole parts, at least one
    why: str


class Policy(Protocol):
    @property
    def name(self) -> str:
        """As the user would spell it, with its parameters."""
        ...

    def size(self, ask: Ask) -> Size: ...
