"""The options that the commands of the scheduling lab share, and what they mean."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from console import options as opt
from console import showoptions as show
from console.terminal import Ui, choose_ui
from farm.errors import UsageError

if TYPE_CHECKING:
    from console.trials import Setting

#: More would take minutes and gigabytes.
PARTS_MAX = 2_000_000

Frames = Annotated[
    int | None, typer.Option("--frames", help="Frames of the job (default 4800; A to X500 have their own).")
]
PartFrames = Annotated[int, typer.Option("--part", metavar="FRAMES", help="Frames a part.")]
Overhead = Annotated[
    float, typer.Option("--overhead", metavar="SECONDS", help="Time lost at the start of every claim.")
]
FrameKb = Annotated[
    float,
    typer.Option("--frame-kb", metavar="KB", help="Size of a rendered frame, for workers with a link."),
]
NoHeartbeats = Annotated[
    bool,
    typer.Option(
        "--no-heartbeats", help="Nobody reports between parts and no claim lapses, as in the article."
    ),
]
StallTimeout = Annotated[
    float | None,
    typer.Option(
        "--stall-timeout",
        metavar="SECONDS",
        help="Alive without progress for that long: over (default 120; more where a frame may take longer).",
    ),
]
Speed = Annotated[float, typer.Option("--speed", help="With --ui tui: virtual seconds a second.")]


def showing(ui: str, speed: float, refresh: float) -> Ui:
    """How a simulation is shown. Raises UsageError."""
    chosen = choose_ui("plain" if ui == "auto" else ui, os.environ, sys.stdin.isatty(), sys.stderr.isatty())
    show.check_refresh(refresh)
    if not (math.isfinite(speed) and 0 < speed <= 1e6):
        raise UsageError(f"--speed {speed:g}: give virtual seconds a second, above 0")
    return chosen


def setting(
    frames: int | None, part: int, overhead: float, heartbeat: float, lease: float, heartbeats: bool
) -> Setting:
    """What is simulated, from checked options. Raises UsageError."""
    from console.trials import Setting

    frames = 4800 if frames is None else frames
    if frames < 1:
        raise UsageError(f"--frames {frames}: a job has at least one frame")
    if part < 1:
        raise UsageError(f"--part {part}: a part has at least one frame")
    if frames > PARTS_MAX * part:
        raise UsageError(
            f"--frames {frames} are more than {PARTS_MAX:,} parts of {part}; give a longer --part"
        )
    if not (math.isfinite(overhead) and 0 <= overhead <= 3600):
        raise UsageError(f"--overhead {overhead:g}: give seconds from 0 to 3600")
    opt.Scheduling(lease=lease, heartbeat=heartbeat).options()
    return Setting(
        frames=frames,
        part=part,
        overhead_seconds=overhead,
        heartbeat_seconds=heartbeat,
        lease_seconds=lease,
        heartbeats=heartbeats,
    )


def check_frames(frames: int | None, fleets: Sequence[str]) -> None:
    """Raises UsageError for frames that a fleet would not heed."""
    from farm.simulation.fleets import FLEETS
    from farm.simulation.grid import FRESH

    for fleet in fleets:
        if frames is not None and fleet in (*FLEETS, FRESH):
            raise UsageError(f"--frames {frames}: fleet {fleet} comes with frames of its own")
