"""What the control groups of Linux leave to this process: CPU time and memory, of version 1 and 2.

A container's machine is not the host: a process may see 64 cores and be given two, and is killed by the
kernel when its group is full, however much memory the host has. Every group from the process's own up to the
root counts; the tightest limit holds.

Rules of this file: files are read under ``root``, so that a test can bring its own; what isn't there or can't
be read limits nothing, and nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: Version 1 says "no limit" with a huge number of bytes.
_NO_LIMIT_BYTES = 1 << 60


@dataclass(frozen=True, slots=True)
class Limits:
    """None: nothing limits it, or there are no control groups."""

    cores: float | None = None  #: CPU seconds a second
    memory_bytes: int | None = None  #: what the group may use
    memory_left_bytes: int | None = None  #: of that, not in use, or in use for what can be dropped at once


def read_limits(root: Path = Path("/")) -> Limits:
    """The limits on this process now."""
    cores: list[float] = []
    memory: list[tuple[int, int]] = []
    for version, controllers, folder in _groups(root):
        if version == 2 or "cpu" in controllers:
            quota = _cores(folder, version)
            if quota is not None:
                cores.append(quota)
        if version == 2 or "memory" in controllers:
            found = _memory(folder, version)
            if found is not None:
                memory.append(found)
    return Limits(
        cores=min(cores, default=None),
        memory_bytes=min((limit for limit, _ in memory), default=None),
        memory_left_bytes=min((left for _, left in memory), default=None),
    )


def oom_kills(root: Path = Path("/")) -> int:
    """How many processes the kernel has killed for want of memory, as far as we may see; it only grows."""
    kills = [_field(root / "proc/vmstat", "oom_kill") or 0]
    for version, controllers, folder in _groups(root):
        if version == 2 or "memory" in controllers:
            file = "memory.events" if version == 2 else "memory.oom_control"
            kills.append(_field(folder / file, "oom_kill") or 0)
    return max(kills)


# --- where the groups are --------------------------------------------------------------------------------


def _groups(root: Path) -> Iterator[tuple[int, frozenset[str], Path]]:
    """Version, controllers (of version 1) and folder of every group this process is in, innermost first."""
    mounts = list(_mounts(root))
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        wanted = frozenset(names.split(","))
        version = 2 if number == "0" and not names else 1
        for mounted_version, options, mounted, at in mounts:
            if mounted_version != version or (version == 1 and not wanted & options):
                continue
            inside = PurePosixPath(path)
            # In a container the group's path may be the host's, and the mount shows a part of it only.
            below = inside.relative_to(mounted) if inside.is_relative_to(mounted) else PurePosixPath()
            top = root / at.lstrip("/")
            folder = top / below
            for group in (folder, *folder.parents):
                yield version, wanted, group
                if group == top:
                    break
            break


def _mounts(root: Path) -> Iterator[tuple[int, frozenset[str], str, str]]:
    """Version, options, mounted folder and mount point of every control group file system."""
    for line in _lines(root / "proc/self/mountinfo"):
        fields, _, system = line.partition(" - ")
        before, after = fields.split(), system.split()
        if len(before) < 5 or len(after) < 3 or after[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if after[0] == "cgroup2" else 1
        yield version, frozenset(after[2].split(",")), before[3], before[4]


# --- what they say ---------------------------------------------------------------------------------------


def _cores(folder: Path, version: int) -> float | None:
    if version == 2:
        quota, _, period = _text(folder / "cpu.max").partition(" ")
    else:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    try:
        cores = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):  # "max", or no such file
        return None
    return cores if cores > 0 else None


def _memory(folder: Path, version: int) -> tuple[int, int] | None:
    limit_file, used_file, droppable = (
        ("memory.max", "memory.current", "inactive_file")
        if version == 2
        else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    try:
        limit, used = int(_text(folder / limit_file)), int(_text(folder / used_file))
    except ValueError:
        return None
    if not 0 < limit < _NO_LIMIT_BYTES:
        return None
    cache = _field(folder / "memory.stat", droppable) or 0
    return limit, max(0, limit - max(0, used - cache))


def _field(file: Path, name: str) -> int | None:
    for line in _lines(file):
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdecimal():
            return int(value)
    return None


def _lines(file: Path) -> list[str]:
    return _text(file).splitlines()


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, ValueError):
        return ""
