"""Every event in plain words, one short line each, for the event list and for plain output.

Rules of this package:
- the words are those of docs/DESIGN.md; a line says what happened, to what, and why;
- pure: a line is made of its event alone;
- an event without words (heartbeats, progress) and one of a kind we don't know give None;
- each family of events has a file, with the table of its events at the end.
"""

from __future__ import annotations

from typing import Final

from console.text import safe
from console.wording import claims, parts, run, workers
from console.wording.lines import IMPORTANT, NO_FAILURE, WARNINGS, EventLine, LineKind, Table

__all__ = ["IMPORTANT", "NO_FAILURE", "WARNINGS", "EventLine", "LineKind", "describe", "is_told"]

_WORDS: Final[Table] = {**run.WORDS, **workers.WORDS, **claims.WORDS, **parts.WORDS}


def describe(at: float, event: object) -> EventLine | None:
    """The line of an event, or None if it has no words."""
    tell = _WORDS.get(type(event))
    if tell is None:
        return None
    kind, worker, text = tell(event)
    return EventLine(at, safe(worker), kind, safe(text))


def is_told(kind: type) -> bool:
    """Whether ``describe`` has a line for events of this type."""
    return kind in _WORDS
