"""What of a run may change in flight, as one line that can be typed: the policy, the tail rule, and the lease
and heartbeat in seconds: ``fair,cap=60 split lease=20 heartbeat=2``.

Rule of this file: the same words and the same errors as on the command line, by the same parsers.
"""

from __future__ import annotations

import math

import msgspec

from farm.errors import UsageError, shorten
from farm.events import RelayOptions
from farm.policies.registry import from_anywhere, parse_policy, parse_tail

_SECONDS = {"lease": "lease_seconds", "heartbeat": "heartbeat_seconds"}
_TAILS = ("none", "split", "late", "duplicate-oldest")


def spell_options(options: RelayOptions) -> str:
    seconds = (f"{word}={getattr(options, field):g}" for word, field in _SECONDS.items())
    return " ".join((options.policy, options.tail, *seconds))


def parse_options(text: str, options: RelayOptions) -> RelayOptions:
    """``options`` with what ``text`` names changed; what it doesn't name stays. Raises UsageError."""
    changes: dict[str, str | float] = {}
    for word in text.split():
        field, value = _read(word)
        if field in changes:
            raise UsageError(
                f"{shorten(word)} comes after another one of its kind: give one policy and one tail"
            )
        changes[field] = value
    if not changes:
        raise UsageError("give a policy, a tail rule, or lease=SECONDS and heartbeat=SECONDS")
    changed = msgspec.structs.replace(options, **changes)
    # The relay says the same, but only when the box is gone: its workers keep their heartbeat.
    fault = changed.lease_fault(max(changed.heartbeat_seconds, options.heartbeat_seconds))
    if fault is not None:
        raise UsageError(fault)
    return changed


def _read(word: str) -> tuple[str, str | float]:
    name, _, value = word.partition("=")
    if name in _SECONDS:
        return _SECONDS[name], _seconds(name, value)
    if word.partition(",")[0] in _TAILS:
        return "tail", parse_tail(word).name
    parse_policy(word)
    return "policy", from_anywhere(word)


def _seconds(name: str, value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < 1e6:
        raise UsageError(f"{name}={value}: give seconds above 0")
    return seconds
