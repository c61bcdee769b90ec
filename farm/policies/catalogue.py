"""What there is to choose from: every policy and tail rule with its parameters and a line about it, for menus
and help. The registry says what each name means; a test sees that nothing is missing here."""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

from farm.policies.parameters import spell_value
from farm.policies.registry import POLICIES

_ABOUT: Final = {
    "fair": "everybody finishes together: each gets what it can do until then (the default)",
    "static": "one slice for each worker",
    "fixed": "every chunk the same",
    "decaying": "an even share of what remains",
    "granular": "constant chunks, so many for each worker",
    "adaptive": "granular first, decaying at the end",
    "guided": "half an even share of what remains",
    "gss": "an even share of what remains: what OpenMP calls guided",
    "tss": "sizes that fall in a straight line",
    "fac2": "batches of equal chunks, each batch half of what remains",
    "wf": "as fac2, weighed by declared speeds",
    "awf-b": "as fac2, weighed by measured speeds",
    "awf-c": "as awf-b, weighed anew at every chunk",
    "af": "by mean and variance of each worker's measured speed",
}
_TAILS: Final = {
    "split": "the rest of the chunk that would end last is shared",
    "late": "a copy of the chunk that would end last, if it would be sooner",
    "duplicate-oldest": "a copy of the oldest chunk in flight, from its first open part",
    "duplicate-oldest,from=start": "a copy of the oldest chunk in flight, all of it",
    "none": "nothing: who is done waits",
}


class Entry(NamedTuple):
    """``name`` as it is spelt; ``parameters`` with their defaults, empty where there are none."""

    name: str
    parameters: str
    about: str


def policies() -> tuple[Entry, ...]:
    """All policies of ours, in the registry's order."""
    return tuple(Entry(name, _parameters(kind), _ABOUT[name]) for name, kind in POLICIES.items())


def tails() -> tuple[Entry, ...]:
    """All tail rules."""
    return tuple(Entry(name, "", about) for name, about in _TAILS.items())


def _parameters(kind: type) -> str:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return ",".join(
        field.name if field.default is None else f"{field.name}={spell_value(field.default)}"
        for field in fields
        if field.init
    )
