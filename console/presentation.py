"""What is shown of a run beside the run: captions, where to stop, and whether it begins anew."""

from __future__ import annotations

from dataclasses import dataclass

from farm.captions import Caption
from farm.moments import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """``pause_on``: moments at which virtual time halts, or a live job is paused. ``loop``: begin anew at the
    end. ``can_restart``: whoever opened the console can run a live run again."""

    captions: tuple[Caption, ...] = ()
    pause_on: frozenset[Kind] = frozenset()
    loop: bool = False
    can_restart: bool = False


NOTHING_MORE = Presentation()
