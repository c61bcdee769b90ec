"""Makes docs/outputs.md: every pair of encoder and container that is offered, rendered in three parts, and
what Debian's ffprobe and ffmpeg say of the output. Nothing of ours judges here.

    python -m scripts.outputs_doc        # some two minutes on two cores; needs ffmpeg and ffprobe on the path

Exits with 1 if an output is not as it should be.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av

from console.tables import markdown_table
from farm.errors import UsageError
from farm.media.clip import read_number
from farm.media.pair import check_pair
from tests.media.jobs import Job, render_job
from tests.media.outputs import (
    ENCODERS,
    EXTENSIONS,
    FRAMES,
    OFFERED,
    RATE,
    START,
    Kind,
    make_source,
)

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "outputs.md"
HEAD = [
    *(
        "pair",
        "frames counted",
        "dts rise",
        "first frame at",
        "off by at most",
        "length",
        "seeks to 0, 1, 2 s",
    ),
    *("tag", "colours", "`ffmpeg -xerror`"),
]
TAGS_HEAD = ["pair", "HDR10 in stream", "HDR10 in header", "shape 4:3", "rotation 90°", "interlaced"]
INTRO = """# Outputs: containers, codecs and what becomes of what

`uneven render IN -o OUT.EXT -e ENCODER`: the extension says the container (mp4, m4v, mov, mkv, webm, ts),
the encoder is any that PyAV ships. There is no table of pairs in the program: before the work some pictures
are encoded, written as the output will be, into memory, and read back as a player would read them. A pair
that gives them back wrong isn't offered, and the sentence says which container would do. So it is with what
a picture looks wrong without: colours, the shape of the pixels, rotation. What nobody sees at once (HDR10
mastering data, the mark of interlaced pictures) is said to be lost, with the container that keeps it.

## What each container is given
- **mp4, mov**: the index before the pictures (faststart: the file is written and then moved up by the size
  of its index, which reads and writes it once more); a clock that holds every time exactly, for the track
  and for its start; `hvc1` for HEVC, which QuickTime and iOS want; brands `isom` and `qt`. Beyond 4 GiB
  the muxer changes to 64-bit offsets by itself (tried with 4.03 GiB: 33 s, every packet in its place). The
  one edit there is gives the first frame its time.
- **mkv, webm**: a clock of milliseconds. Frames closer than that are refused. The shape of the pixels is
  kept by codecs that tell it themselves (H.264, HEVC, MPEG-2, MPEG-4, FFV1); PyAV gives no way to put it
  into the container.
- **ts**: a clock of 90 kHz. Where the source's clock doesn't divide, a frame's time is off by half a tick
  (5.6 µs) at most, and frames closer than a tick are refused. The first frame comes at about 1.4 s, as from
  ffmpeg, so that players can fill their buffers; all streams move alike. H.264, HEVC, MPEG-2 and MPEG-4
  have their headers before every keyframe, AAC goes as ADTS. It counts to 26.5 hours. It has no chapters,
  titles, rotation, covers or attachments: what that costs is said before the work.
- `.avi` is not written (it keeps a rate and no times of frames), nor are `.m2ts` and `.mpg` (`.ts` holds
  the same).

HDR10 mastering display and light level go into the stream with libx264, libx265 and libsvtav1, and into the
header of mp4, mov, mkv and webm with these and VP8, VP9, FFV1 and ProRes. Colours tagged as full
range are turned into limited range for formats that have no word for it (MPEG-1 and -2, ProRes, CineForm,
VP8), and into BT.601 for those that know no other matrix (VP8, JPEG). Interlaced sources stay marked with
libx264, MPEG-2, MPEG-4, ProRes and FFV1. MPEG-1, MPEG-2 and MPEG-4 encoders know few clocks: they are given
frames one a tick, and the container has the exact times. `-e dnxhd` is DNxHR of the profile that fits the
pixels (`--option profile=…` asks for another).

## What ffprobe and ffmpeg say

"""


def main() -> int:
    rows: list[list[str]] = []
    tags: list[list[str]] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for encoder, containers in OFFERED.items():
            if not containers:
                continue
            jobs = {
                kind: rendered(folder, kind, encoder) for kind in ("plain", "hdr", "wide", "turned", "fields")
            }
            for container in containers:
                pair = f"{encoder}, {EXTENSIONS[container][1:]}"
                row, faults = judged(jobs["plain"], container, folder, pair)
                rows.append(row)
                wrong += faults
                tags.append([pair, *kept(jobs, container, folder)])
                print(*row, *tags[-1][1:], sep=" | ", flush=True)
    lines = [
        *markdown_table(HEAD, rows),
        "",
        *explained(),
        "",
        *markdown_table(TAGS_HEAD, tags),
        "",
        *TAGS_WORDS,
    ]
    DOCUMENT.write_text(INTRO + "\n".join(lines) + "\n")
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


def explained() -> list[str]:
    version = said("ffprobe", "-version").split()[2]
    return [
        f"{FRAMES} frames at 30000/1001 that begin at {float(START)} s, with sound, in three parts; ffprobe",
        f"and ffmpeg {version}. Made by `python -m scripts.outputs_doc`. *Off by*: the frames' times",
        "against the source's, after the shift of the first. *Seeks*: the numbers that the first frames",
        "carry which ffmpeg shows after `-ss 0`, `1` and `2`; 0, 30 and 60 are due. (In ts it is asked for a",
        "second earlier and drops what comes too soon: it looks for no keyframe there, and would begin at",
        "the next.)",
    ]


TAGS_WORDS = [
    "*-*: refused or said to be lost before the work, or there is no place for it. HDR10 in the header is",
    "what `ffprobe -show_streams` lists; in the stream what it lists with the first frame of the pictures",
    "alone, written without a container (`-f h264`, `hevc`, `obu`). libx264 writes it, too; this ffprobe",
    "doesn't read it from H.264, FFmpeg from 6.0 on does (tests/media/test_outputs.py). MPEG-2 can tell the",
    "shape of the picture in three ways only (4:3, 16:9, 2.21:1), and this one is none of them.",
]


def rendered(folder: Path, kind: Kind, encoder: str) -> Job:
    sources = folder / "sources"
    sources.mkdir(exist_ok=True)
    source = next(sources.glob(f"{kind}.*"), None) or make_source(sources, kind)
    parts = folder / f"{kind}-{encoder}"
    parts.mkdir()
    return render_job(source, parts, video=ENCODERS[encoder], part_frames=25)


def judged(job: Job, container: str, folder: Path, pair: str) -> tuple[list[str], list[str]]:
    output = folder / f"out{EXTENSIONS[container]}"
    job.into(container).stitch(output)
    stream = probe(output, "-select_streams", "v:0", "-count_frames", "-show_streams", "-show_format")
    facts = stream["streams"][0]
    packets = probe(output, "-show_packets")["packets"]
    frames = probe(output, "-select_streams", "v:0", "-show_frames")["frames"]
    tick = Fraction(facts["time_base"])
    times = sorted(int(frame.get("pts", frame.get("best_effort_timestamp"))) * tick for frame in frames)
    off = max(abs(time - times[0] - number / RATE) for number, time in enumerate(times))
    length = Fraction(stream["format"]["duration"])
    counted = int(facts["nb_read_frames"])
    seeks = [sought(output, second, folder) for second in (0, 1, 2)]
    due = [-int(-second * RATE // 1) for second in (0, 1, 2)]
    verdict = run("ffmpeg", "-v", "error", "-xerror", "-i", str(output), "-f", "null", "-")
    colours = "/".join(
        str(facts.get(key, "-"))
        for key in ("color_range", "color_primaries", "color_transfer", "color_space")
    )
    rise = dts_rise(packets)
    row = [
        pair,
        str(counted),
        "yes" if rise else "NO",
        f"{float(times[0]):.4f} s",
        "0" if off == 0 else f"{float(off) * 1e6:.1f} µs",
        f"{float(length):.3f} s",
        ", ".join(map(str, seeks)),
        printable_tag(facts["codec_tag_string"]),
        colours,
        "ok" if verdict.returncode == 0 and not verdict.stderr else verdict.stderr.strip().splitlines()[0],
    ]
    checks = {
        "frames": counted == FRAMES,
        "dts": rise,
        "seeks": seeks == due,
        "ffmpeg": verdict.returncode == 0 and not verdict.stderr,
        "first frame": container == "mpegts" or abs(times[0] - START) <= Fraction(1, 2000),
        "times": off <= Fraction(1, 1000),
    }
    return row, [f"{pair}: {name}" for name, good in checks.items() if not good]


def kept(jobs: dict[Kind, Job], container: str, folder: Path) -> list[str]:
    """Of the columns of ``TAGS_HEAD`` after the first."""
    found = []
    hdr = written(jobs["hdr"], container, folder)
    in_header, in_stream = "-", "-"
    if hdr is not None:
        in_header = hdr10(probe(hdr, "-select_streams", "v:0", "-show_streams")["streams"][0])
        in_stream = hdr10_in_stream(hdr, folder)
    found += [in_stream, in_header]
    for kind in ("wide", "turned", "fields"):
        path = written(jobs[kind], container, folder)  # type: ignore[index]
        found.append("-" if path is None else what_is_said(kind, path))
    return found


def written(job: Job, container: str, folder: Path) -> Path | None:
    """None: the pair is refused for that source, or says that something is lost."""
    try:
        if check_pair(job.index, job.settings.video, container):
            return None
    except UsageError:
        return None
    output = folder / f"kept{EXTENSIONS[container]}"
    job.into(container).stitch(output)
    return output


def what_is_said(kind: str, path: Path) -> str:
    first = probe(path, "-select_streams", "v:0", "-read_intervals", "%+#1", "-show_frames", "-show_streams")
    stream, frame = first["streams"][0], first["frames"][0]
    if kind == "wide":
        shapes = (stream.get("sample_aspect_ratio"), frame.get("sample_aspect_ratio"))
        return "yes" if "4:3" in shapes else f"NO: {shapes}"
    if kind == "turned":
        turns = [entry["rotation"] for entry in stream.get("side_data_list", ()) if "rotation" in entry]
        return "yes" if turns and abs(turns[0]) == 90 else f"NO: {turns}"
    return "yes" if frame["interlaced_frame"] == 1 and frame["top_field_first"] == 1 else "NO"


def hdr10(entry: dict[str, Any]) -> str:
    kinds = {data["side_data_type"] for data in entry.get("side_data_list", ())}
    both = {"Mastering display metadata", "Content light level metadata"} <= kinds
    return "yes" if both else "-"


def hdr10_in_stream(path: Path, folder: Path) -> str:
    codec = probe(path, "-select_streams", "v:0", "-show_streams")["streams"][0]["codec_name"]
    bare = {"h264": "h264", "hevc": "hevc", "av1": "obu"}.get(codec)
    if bare is None:
        return "-"
    alone = folder / f"alone.{bare}"
    run("ffmpeg", "-v", "error", "-y", "-i", str(path), "-map", "0:v:0", "-c", "copy", "-f", bare, str(alone))
    frames = probe(alone, "-select_streams", "v:0", "-read_intervals", "%+#1", "-show_frames")["frames"]
    return hdr10(frames[0])


def sought(path: Path, second: int, folder: Path) -> int:
    """The number of the first frame that ffmpeg shows from that second on, counted from the file's start."""
    picture = folder / "sought.mkv"
    picture.unlink(missing_ok=True)
    early = min(second, 1) if path.suffix == ".ts" else 0
    run(
        *("ffmpeg", "-v", "error", "-ss", str(second - early), "-i", str(path), "-ss", str(early)),
        *("-map", "0:v:0", "-frames:v", "1", "-c:v", "ffv1", str(picture)),
    )
    with av.open(str(picture)) as file:
        return read_number(next(file.decode(video=0)))


def dts_rise(packets: Sequence[dict[str, Any]]) -> bool:
    streams: dict[int, list[int]] = {}
    for packet in packets:
        if "dts" in packet:
            streams.setdefault(packet["stream_index"], []).append(int(packet["dts"]))
    return all(before < after for times in streams.values() for before, after in pairwise(times))


def printable_tag(tag: str) -> str:
    return tag if tag.isalnum() else "-"


def probe(path: Path, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said("ffprobe", "-v", "error", "-of", "json", *what, str(path)))
    return found


def said(*command: str) -> str:
    return run(*command).stdout


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
