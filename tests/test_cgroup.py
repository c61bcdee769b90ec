"""What control groups leave to a process, read from trees as Linux shows them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from farm.cgroup import Limits, oom_kills, read_limits
from farm.machine import read_machine

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def version_2(root: Path, group: str = "/", **files: str) -> Path:
    """A process in ``group``; files by name, ``a__b`` for the file ``b`` of the group ``a``."""
    mount = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw"
    named = {
        f"sys/fs/cgroup/{name.replace('__', '/').replace('cpu_', 'cpu.').replace('memory_', 'memory.')}": text
        for name, text in files.items()
    }
    return tree(root, {"proc/self/cgroup": f"0::{group}", "proc/self/mountinfo": mount} | named)


def version_1(root: Path, group: str, mounted: str, files: dict[str, str]) -> Path:
    mounts = "\n".join(
        f"3{n} 31 0:2{n} {mounted} /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}"
        for n, name in enumerate(("cpu,cpuacct", "memory"))
    )
    groups = f"5:memory:{group}\n4:cpu,cpuacct:{group}\n1:name=systemd:/\n0::/"
    named = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    return tree(root, {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts} | named)


def test_nothing_limits_where_there_are_no_groups(tmp_path: Path) -> None:
    assert read_limits(tmp_path) == Limits()
    assert oom_kills(tmp_path) == 0


def test_the_limits_of_a_container_of_version_2(tmp_path: Path) -> None:
    root = version_2(
        tmp_path,
        cpu_max="150000 100000",
        memory_max=str(4 * GIB),
        memory_current=str(3 * GIB),
        memory_stat=f"anon 1\ninactive_file {GIB}",
        memory_events="low 0\noom 3\noom_kill 2",
    )
    assert read_limits(root) == Limits(cores=1.5, memory_bytes=4 * GIB, memory_left_bytes=2 * GIB)
    assert oom_kills(root) == 2


def test_the_tightest_group_on_the_way_to_the_root_holds(tmp_path: Path) -> None:
    root = version_2(
        tmp_path,
        "/slice/job",
        slice__cpu_max="200000 100000",
        slice__job__cpu_max="max 100000",
        slice__memory_max=str(2 * GIB),
        slice__memory_current="0",
        slice__job__memory_max="max",
        slice__job__memory_current="0",
    )
    assert read_limits(root) == Limits(cores=2.0, memory_bytes=2 * GIB, memory_left_bytes=2 * GIB)


@pytest.mark.parametrize("group", ["/job", "/docker/0123/job"], ids=["on the host", "a container's part"])
def test_the_limits_of_version_1(tmp_path: Path, group: str) -> None:
    """In a container the mount shows the container's own part of the tree under another path."""
    mounted = group.removesuffix("/job") or "/"
    root = version_1(
        tmp_path,
        group,
        mounted,
        {
            "cpu,cpuacct/cpu.cfs_quota_us": "-1",
            "cpu,cpuacct/job/cpu.cfs_quota_us": "400000",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "memory/memory.usage_in_bytes": "5",
            "memory/job/memory.limit_in_bytes": str(GIB),
            "memory/job/memory.usage_in_bytes": str(GIB // 2),
            "memory/job/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 7",
        },
    )
    assert read_limits(root) == Limits(cores=4.0, memory_bytes=GIB, memory_left_bytes=GIB // 2)
    assert oom_kills(root) == 7


def test_a_machine_is_what_the_groups_leave_of_it(tmp_path: Path) -> None:
    """RG28: the machine's own cores and memory are not what a container has."""
    root = version_2(
        tmp_path, cpu_max="50000 100000", memory_max=str(GIB), memory_current=str(GIB // 2), memory_stat=""
    )
    machine = read_machine(root)
    assert machine.cores == 0.5
    assert machine.memory_bytes == GIB // 2
    assert machine.gate_bytes == int(0.7 * (GIB // 2))
    free = read_machine(tmp_path / "none")
    assert free.cores >= 1
    assert 0 < free.memory_bytes <= psutil.virtual_memory().total


def test_what_can_not_be_understood_limits_nothing(tmp_path: Path) -> None:
    root = version_2(tmp_path, cpu_max="nonsense", memory_max="soon", memory_current="", memory_stat="x")
    assert read_limits(root) == Limits()
