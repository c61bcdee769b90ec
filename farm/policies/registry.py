"""Policies and tail rules by name, as users spell them: ``guided,12`` or ``guided,min=12,max=600``;
``duplicate-oldest,from=start``. A new policy is one class and one line here."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

from farm.errors import UsageError
from farm.policies.base import Policy
from farm.policies.fair import Fair
from farm.policies.fixed import Fixed
from farm.policies.guided import Guided

POLICIES: dict[str, type[Fixed] | type[Guided] | type[Fair]] = {
    "fair": Fair,
    "fixed": Fixed,
    "guided": Guided,
}


@dataclass(frozen=True, slots=True)
class TailRule:
    """What an idle worker gets when nothing is open.

    ``duplicate-oldest`` (the relay write-up): a second claim on the oldest chunk in flight, from its first
    uncredited part on (``frontier``) or whole (``start``, the write-up's model, in which no holder skips what
    the other has delivered). ``late`` and ``split``: tails.py.
    """

    kind: Literal["none", "duplicate-oldest", "late", "split"] = "duplicate-oldest"
    from_: Literal["frontier", "start"] = "frontier"

    @property
    def name(self) -> str:
        return f"{self.kind},from={self.from_}" if self.kind == "duplicate-oldest" else self.kind


def parse_policy(text: str) -> Policy:
    """Raises UsageError that names the policy and the parameter that is wrong."""
    name, *fields = [field.strip() for field in text.split(",")]
    kind = POLICIES.get(name)
    if kind is None:
        raise UsageError(f"--schedule {text}: no policy {name!r}; known: {', '.join(POLICIES)}")
    names = [field.name for field in dataclasses.fields(kind)]
    values: dict[str, Any] = {}
    types = {field.name: field.type for field in dataclasses.fields(kind)}
    for position, field in enumerate(fields):
        key, equals, value = field.partition("=")
        if not equals:
            if position >= len(names):
                raise UsageError(
                    f"--schedule {text}: {name} takes {', '.join(names)}; {field!r} is one too many"
                )
            key, value = names[position], field
        if key not in names:
            raise UsageError(
                f"--schedule {text}: {name} has no parameter {key!r}; it takes {', '.join(names)}"
            )
        if key in values:
            raise UsageError(f"--schedule {text}: {key} is given twice")
        if types[key] == "float":
            number = _number(value)
            if not 0 < number < 10**9:
                raise UsageError(f"--schedule {text}: {key} must be a number above 0, not {value!r}")
            values[key] = number
            continue
        if not (value.isascii() and value.isdecimal() and len(value) < 10 and int(value)):
            raise UsageError(
                f"--schedule {text}: {key} must be a whole number of frames above 0, not {value!r}"
            )
        values[key] = int(value)
    policy = kind(**values)
    if isinstance(policy, Guided) and policy.max is not None and policy.max < policy.min:
        raise UsageError(f"--schedule {text}: max {policy.max} is below min {policy.min}")
    return policy


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_tail(text: str) -> TailRule:
    """Raises UsageError."""
    name, *fields = [field.strip() for field in text.split(",")]
    for kind in ("none", "late", "split"):
        if name == kind and not fields:
            return TailRule(kind)
    if name == "duplicate-oldest":
        match fields:
            case [] | ["from=frontier"]:
                return TailRule("duplicate-oldest", "frontier")
            case ["from=start"]:
                return TailRule("duplicate-oldest", "start")
    raise UsageError(
        f"--tail {text}: choose none, split, late or duplicate-oldest[,from=frontier|start]"
    )
