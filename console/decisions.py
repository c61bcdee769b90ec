"""Why it was done so: the relay's decisions on a chunk as sentences, for the story of a chunk.

Rules of this file:
- the reasons are the relay's own (``why`` and ``reason`` of its events); here they become a sentence that
  stands alone, with moments of the run in place of "in so many seconds", since it is read later;
- what is no decision (a failure, a refusal) is told as in the event list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from console.text import clock, count, plural, safe
from console.wording import describe
from farm import events as ev

#: How the policies say when they expect the others to finish.
_IN_SECONDS: Final = re.compile(r"\bin (\d+(?:\.\d+)?) s\b")


def decided(at: float, event: ev.AnyEvent) -> str:
    """What ``event``, of time ``at``, decided and why; empty for an event without words."""
    tell = _SENTENCES.get(type(event))
    if tell is not None:
        return safe(tell(at, event))
    line = describe(at, event)
    if line is None:
        return ""
    return f"{line.worker}: {line.text}" if line.worker else line.text


def _when(at: float, why: str) -> str:
    """``why`` with "in 7.5 s" as the moment of the run that it is: ``01:12``."""
    return _IN_SECONDS.sub(lambda match: clock(at + float(match[1]))[:-2].removeprefix("00:"), why)


def _granted(at: float, e: ev.ClaimGranted) -> str:
    frames = plural(e.stop - e.start, "frame")
    why = f": {_when(at, e.why)}" if e.why else ""
    if e.duplicate:
        return f"duplicated for {e.worker}, {frames} from {count(e.start)} on{why}"
    again = " that had been in a claim before" if e.reopened else ""
    return f"{e.worker} is given {frames}{again}{why}"


def _split(at: float, e: ev.ChunkSplit) -> str:
    return f"split at frame {count(e.at)}" + (f": {_when(at, e.why)}" if e.why else "")


_ENDS: Final = {
    "completed": "is through with it",
    "superseded": "is too late: another one's copy counts",
    "lapsed": "LAPSED",
    "stalled": "LAPSED: alive, but without progress",
    "timed out": "LAPSED: it took too long",
    "failed": "failed",
    "released": "gave it back",
    "worker left": "left",
    "revoked": "had not begun it, and hands it over",
    "relay restarted": "lost its claim with the restart of the relay",
    "voided": "lost its claim",
}


def _ended(at: float, e: ev.ClaimEnded) -> str:
    wasted = f" ({plural(e.wasted_frames, 'frame')} wasted)" if e.wasted_frames else ""
    reason = f": {e.reason}" if e.reason else ""
    return f"{e.worker} {_ENDS.get(e.how, e.how)}{reason}{wasted}"


def _reopened(at: float, e: ev.RangeReopened) -> str:
    return f"frames [{count(e.start)}, {count(e.stop)}) are open again, at the head of the queue"


#: The event type of each function is its key, which mypy can't express.
_SENTENCES: Final[dict[type, Callable[[float, Any], str]]] = {
    ev.ClaimGranted: _granted,
    ev.ChunkSplit: _split,
    ev.ClaimEnded: _ended,
    ev.RangeReopened: _reopened,
}
