"""What a simulated worker's working thread is at."""

from __future__ import annotations

from enum import Enum


class Doing(Enum):
    AWAY = "away"  #: not arrived, or has given up
    IDLE = "idle"  #: has no claim
    OVERHEAD = "overhead"
    RENDERING = "rendering"
    ABORTING = "aborting"  #: rendering the last frame of a part that is of no use any more
    WAITING = "waiting"  #: has a claim, and waits for an answer, for room, or for a hold to end
    GONE = "gone"  #: left or dead


# Looking up a member of an Enum takes long on a path that is taken a million times.
IDLE, OVERHEAD, RENDERING = Doing.IDLE, Doing.OVERHEAD, Doing.RENDERING
ABORTING, WAITING = Doing.ABORTING, Doing.WAITING
AWAY, GONE = Doing.AWAY, Doing.GONE
IN_HAND = (Doing.RENDERING, Doing.ABORTING)
NOT_THERE = (Doing.AWAY, Doing.GONE)
