"""Run in child processes by the worker tests; loads av."""

from __future__ import annotations

from pathlib import Path

from farm.media.clip import make_clip


def make(path: Path, frames: int) -> None:
    make_clip(path, frames=frames, width=160, height=96, fps=24)
