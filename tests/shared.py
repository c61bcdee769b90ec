"""What is dear and the same for every test is made once for all of xdist's workers, not once in each: the
first that needs it makes it, the others wait until it is there."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from farm.engines.child import run_in_child_blocking


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that ``make`` filled, for this worker or another. One that was left unfinished, since its
    worker was killed or ``make`` failed, is made again. What a test does in it others may see."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, done = base / name, base / f"{name}.done"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def demo_clip(factory: pytest.TempPathFactory, frames: int) -> Path:
    """A numbered clip of so many frames with sound."""

    def make(folder: Path) -> None:
        path = folder / "numbered.mp4"
        run_in_child_blocking("farm.media.tasks:make_demo_clip", path, frames, log=folder / "log")

    return made_once(factory, f"clip-{frames}", make) / "numbered.mp4"
