"""What a line for people is: when, who, of which kind, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

LineKind = Literal[
    "run",
    "phase",
    "notice",
    "warning",
    "error",
    "operator",
    "worker",
    "lost",
    "claim",
    "duplicate",
    "split",
    "credit",
    "end",
    "lapse",
    "reopen",
    "refusal",
    "superseded",
    "failure",
    "set aside",
    "idle",
]

#: Kinds that a person should see at once, whatever else is filtered out.
IMPORTANT: Final = frozenset[LineKind](
    {
        "run",
        "phase",
        "notice",
        "warning",
        "error",
        "operator",
        "lost",
        "duplicate",
        "split",
        "lapse",
        "refusal",
        "failure",
        "set aside",
    }
)
#: Kinds that tell of trouble.
WARNINGS: Final = frozenset[LineKind](
    {"warning", "error", "lost", "lapse", "refusal", "failure", "set aside"}
)

#: Tries of a part that are told and counted as something else: a lost worker or a lapse.
NO_FAILURE: Final = frozenset({"worker lost", "lapsed", "stalled", "timed out"})


class EventLine(NamedTuple):
    """One event for people: when, which worker (empty: none), what kind, in words."""

    at: float
    worker: str
    kind: LineKind
    text: str


Words = tuple[LineKind, str, str]  #: kind, worker, text
#: Of each type of event what tells it; its argument is of that type, which mypy can't express.
Table = dict[type, Callable[[Any], Words]]
