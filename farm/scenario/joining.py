"""Workers that are added to a run by hand, as a person types them: ``12``, ``max``, ``12,12,max``, or fields
as in a fleet file: ``fps = 12, overhead = 2, memory_gb = 1, link = { mib_per_second = 2 }``."""

from __future__ import annotations

import re

import msgspec

from farm.errors import UsageError, shorten
from farm.fleet import FPS_MAX, FPS_MIN, WorkerProfile, parse_cap
from farm.scenario.fleets import parse_fleet_file, to_profiles

#: Begins every error.
WHERE = "worker"
_BARE_MAX = re.compile(r"(?<=\bfps = )max\b|(?<=\bfps=)max\b")


def parse_caps(text: str) -> tuple[float | None, ...]:
    """``12`` or ``max``, several with commas: frames per second, None for no limit. Raises UsageError."""
    return tuple(_cap(field.strip()) for field in text.split(","))


def _cap(field: str) -> float | None:
    try:
        return parse_cap(field)
    except ValueError:
        limits = f"from {FPS_MIN:g} to {FPS_MAX:,.0f}"
        raise UsageError(
            f"{shorten(field)} is no speed: give frames per second {limits}, or max for no limit"
        ) from None


def parse_workers(text: str, threads: int | None = None) -> tuple[WorkerProfile, ...]:
    """The workers to add; their names are empty but where they are given. ``threads``: of the job's encoder,
    None for unknown. Raises UsageError."""
    if "=" not in text:
        return tuple(WorkerProfile(name="", fps_cap=cap) for cap in parse_caps(text))
    line = _BARE_MAX.sub('"max"', " ".join(text.split()))
    fleet = parse_fleet_file(f"worker = [{{ {line} }}]", WHERE)
    profiles = to_profiles(fleet, WHERE, threads=threads)
    if any(worker.name is not None for worker in fleet.worker):
        return profiles
    return tuple(msgspec.structs.replace(profile, name="") for profile in profiles)
