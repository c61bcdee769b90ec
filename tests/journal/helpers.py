"""What the tests of journal, store and run folder share: records, part files, and names of every kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from farm.events import PartCredited, Record, RelayOptions, RelayStarted, RunFinished, RunOpened
from farm.parts import PartFacts, PartHeader, PartPacket, PartWriter

REPOSITORY = Path(__file__).resolve().parents[2]
SETTINGS = "5e" * 16

#: Names that have broken other tools (bug-reports.md RG29); all of them have to work.
AWKWARD_NAMES = (
    "with space",
    'it\'s "quoted"',
    "hash#tag",
    "100%25 sure?",
    "new\nline",
    "bell\a",
    "эпизод 第一話",
    "clown \U0001f921 family \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "-leading dash",
    "back\\slash",
    "$HOME ~ * ; &",
    "n" * 235,
)


def opened(output: str = "/films/out.mp4", run_id: str = "run-1") -> RunOpened:
    return RunOpened(
        run_id=run_id,
        input="/films/in.mp4",
        output=output,
        frames=96,
        cuts=(0, 48, 96),
        settings_hash=SETTINGS,
        fingerprint="f",
        build="b",
        options=RelayOptions(),
    )


def credited(seq: int) -> Record:
    event = PartCredited(
        part=seq,
        frames=48,
        token=f"c{seq}#1@e1",
        worker="w1",
        file=f"p{seq:06d}-c{seq}.1.e1.part",
        size_bytes=1000 + seq,
        sha256="a" * 64,
    )
    return Record(seq, seq * 0.25, event)


def credits(start: int, count: int) -> list[Record]:
    return [credited(seq) for seq in range(start, start + count)]


def run_records(
    output: str = "/films/out.mp4", run_id: str = "run-1", *, finished: bool = True
) -> list[Record]:
    records = [
        Record(0, 0.0, opened(output, run_id)),
        Record(1, 0.0, RelayStarted(epoch=1, wall_time="2024-05-01T10:00:00+00:00")),
        credited(2),
        credited(3),
    ]
    if finished:
        records.append(Record(4, 9.5, RunFinished(exit_code=0, outcome="done and verified")))
    return records


def write_part(path: Path, *, part: int = 0, start: int = 0, frames: int = 3) -> PartFacts:
    header = PartHeader(
        part=part,
        start=start,
        stop=start + frames,
        settings_hash=SETTINGS,
        codec="h264",
        width=64,
        height=48,
        pix_fmt="yuv420p",
        time_base=(1, 24),
        extradata=b"\x01\x02",
    )
    with PartWriter(path, header) as writer:
        for frame in range(frames):
            writer.add(PartPacket(frame, frame, 1, frame == 0, bytes([frame]) * 2000))
        return writer.finish(frames=frames, first_frame_crc=7)


def python(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """A child that runs ``code`` with the repository's packages."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
