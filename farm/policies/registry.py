"""Policies and tail rules by name, as users spell them: ``guided,12`` or ``guided,min=12,max=600``;
``my_policies.py:Mine,3``; ``duplicate-oldest,from=start``. A new policy is one class and one line here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from farm.errors import UsageError, shorten
from farm.policies.adaptive_factoring import Af
from farm.policies.assignment import Adaptive, Decaying, Granular, Static
from farm.policies.base import Policy
from farm.policies.factoring import AwfB, AwfC, Fac2, Wf
from farm.policies.fair import Fair
from farm.policies.fixed import Fixed
from farm.policies.guided import Gss, Guided
from farm.policies.parameters import did_you_mean, read_parameters
from farm.policies.trapezoid import Tss
from farm.policies.user import load_from_entry_point, load_from_file, names_of_entry_points

POLICIES: dict[str, type[Policy]] = {
    "fair": Fair,
    "static": Static,
    "fixed": Fixed,
    "decaying": Decaying,
    "granular": Granular,
    "adaptive": Adaptive,
    "guided": Guided,
    "gss": Gss,
    "tss": Tss,
    "fac2": Fac2,
    "wf": Wf,
    "awf-b": AwfB,
    "awf-c": AwfC,
    "af": Af,
}

_USERS_FILE = re.compile(r"(?P<path>.*\.py)(?::(?P<name>[^,]*))?(?:,(?P<given>.*))?\Z", re.DOTALL)


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


def parse_policy(text: str, option: str = "--schedule") -> Policy:
    """The policy that ``text`` names, one of ours or a user's; ``option`` is what it was given to.

    Raises UsageError that names the policy and the parameter that is wrong; its subclass PolicyError for a
    user's policy that is broken.
    """
    where = f"{option} {text if len(text) <= 200 else text[:200] + '…'}"
    users = _USERS_FILE.match(text.strip())
    if users is not None:
        given = users["given"].split(",") if users["given"] is not None else []
        return load_from_file(where, users["path"], (users["name"] or "").strip(), _stripped(given))
    name, *given = _stripped(text.split(","))
    kind = POLICIES.get(name)
    if kind is None:
        installed = load_from_entry_point(where, name, given) if name else None
        if installed is not None:
            return installed
        known = (*POLICIES, *names_of_entry_points())
        raise UsageError(
            f"{where}: no policy {shorten(name)}{did_you_mean(name, known)}; known: {', '.join(known)}, or "
            "path.py:Name for your own"
        )
    values = read_parameters(where, name, kind, given)
    try:
        return kind(**values)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None


def from_anywhere(text: str) -> str:
    """``text`` with a user's file by its absolute path, so that it means the same in another folder, for what
    is kept beyond this command. Anything else is left as it is."""
    users = _USERS_FILE.match(text.strip())
    return text if users is None else str(Path(users["path"]).absolute()) + text.strip()[users.end("path") :]


def parse_tail(text: str, option: str = "--tail") -> TailRule:
    """``option`` is what it was given to. Raises UsageError."""
    name, *fields = _stripped(text.split(","))
    for kind in ("none", "late", "split"):
        if name == kind and not fields:
            return TailRule(kind)
    if name == "duplicate-oldest":
        match fields:
            case [] | ["from=frontier"]:
                return TailRule("duplicate-oldest", "frontier")
            case ["from=start"]:
                return TailRule("duplicate-oldest", "start")
    raise UsageError(f"{option} {text}: choose none, split, late or duplicate-oldest[,from=frontier|start]")


def _stripped(fields: list[str]) -> list[str]:
    return [field.strip() for field in fields]
