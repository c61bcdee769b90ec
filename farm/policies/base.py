"""The one question a policy answers: how many frames does this idle worker get now?

Rules: a policy is pure (what it knows is in the ``Ask``), asks for frames and leaves the rounding to whole
parts to the relay, and says why in words. Reopened work is given first whatever the policy. A policy never
sees the grid, so the same one serves parts of one frame and of a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Ask:
    """What a policy may know when ``worker`` asks."""

    worker: str
    workers: int  #: live workers that are not blocked, at least 1
    total_frames: int  #: N
    open_frames: int  #: R, not yet handed out
    now: float  #: lease seconds


class Size(NamedTuple):
    frames: float  #: rounded to the nearest number of whole parts, at least one
    why: str


class Policy(Protocol):
    @property
    def name(self) -> str:
        """As the user would spell it, with its parameters."""
        ...

    def size(self, ask: Ask) -> Size: ...
