"""Broken files: cut off, bytes flipped, stretches zeroed, in every kind of container.

Each is either refused in one sentence, or comes out with the pictures and times of one pass over what is
left. UNEVEN_MUTATIONS=500 tries more of them.
"""

from __future__ import annotations

import os
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from farm.errors import UnevenError
from farm.media.index import index_source
from farm.media.render import PartRenderer, RenderError
from farm.media.stitch import stitch
from farm.media.verify import verify
from farm.settings import GridSettings, JobSettings, VideoSettings
from farm.source import SourceIndex, part_cuts
from tests.e2e import judge
from tests.media.clips import make_clip
from tests.media.jobs import HASH, Patient

MS, TS = Fraction(1, 1000), Fraction(1, 90_000)
SOURCES: dict[str, dict[str, Any]] = {
    "b.mp4": {"b_frames": 2, "audio_seconds": 2.0},
    "b.mkv": {"b_frames": 2, "time_base": MS, "audio_seconds": 2.0},
    "b.ts": {"b_frames": 2, "time_base": TS, "audio_seconds": 2.0},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "vp9.webm": {"codec": "libvpx-vp9", "b_frames": 0, "time_base": MS},
    "av1.mp4": {"codec": "libsvtav1", "b_frames": 0, "options": {"preset": "12"}},
    "m2.mpg": {"codec": "mpeg2video", "b_frames": 2},
    "asp.avi": {"codec": "mpeg4", "b_frames": 0},
    "a.gif": {"codec": "gif", "pix_fmt": "rgb8", "b_frames": 0},
    "prores.mov": {"codec": "prores_ks", "pix_fmt": "yuv422p10le", "b_frames": 0},
}
SEEDS = range(int(os.environ.get("UNEVEN_MUTATIONS", "40")))
FRAMES = 50


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("originals")
    return {
        name: make_clip(folder / name, frames=FRAMES, **options).read_bytes()
        for name, options in SOURCES.items()
    }


def mutated(data: bytes, chance: random.Random) -> bytes:
    kind = chance.choice(["cut", "flip", "flip", "flips", "zeros", "head", "drop", "twice"])
    changed = bytearray(data)
    place = chance.randrange(len(data))
    length = chance.choice([1, 16, 188, 1000, 4096])
    if kind == "cut":
        del changed[place:]
    elif kind == "flip":
        changed[place] ^= 1 << chance.randrange(8)
    elif kind == "flips":
        for _ in range(chance.randint(2, 40)):
            changed[chance.randrange(len(changed))] ^= chance.randrange(1, 256)
    elif kind == "zeros":
        changed[place : place + length] = bytes(len(changed[place : place + length]))
    elif kind == "head":
        start = chance.randrange(min(200, len(changed)))
        changed[start : start + 8] = bytes(8)
    elif kind == "drop":
        del changed[place : place + length]
    else:
        changed[place:place] = changed[max(0, place - length) : place]
    return bytes(changed)


@pytest.mark.parametrize(
    "seed",
    [
        *(4, 11, 77, 125),  # what is broken in a keyframe is made up for from the pictures before it
        53,  # damage in pictures that the decoder holds back to the end
        *(45, 264),  # pictures that are handed out after later ones
        317,  # a video stream without a codec
    ],
)
def test_what_once_came_out_wrong(originals: dict[str, bytes], tmp_path: Path, seed: int) -> None:
    assert_refused_or_right(originals, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_broken_file_is_refused_or_comes_out_as_one_pass_gives_it(
    originals: dict[str, bytes], tmp_path: Path, seed: int
) -> None:
    assert_refused_or_right(originals, tmp_path, seed)


def assert_refused_or_right(originals: dict[str, bytes], tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    name = sorted(SOURCES)[seed % len(SOURCES)]
    path = tmp_path / name
    path.write_bytes(mutated(originals[name], chance))
    output = tmp_path / "out.mkv"
    try:
        index = carry_through(path, output)
    except (UnevenError, RenderError) as refusal:
        assert "\n" not in str(refusal)
        assert not output.exists()
        return
    before, after = judge.one_pass(path), judge.one_pass(output)
    if not index.linear:  # a decoder that lost a keyframe hands out some pictures late
        before.sort(key=lambda shown: shown.time or 0)
    name = before[0].pix_fmt
    if name.replace("yuvj", "yuv") != after[0].pix_fmt:
        after = judge.one_pass(output, pix_fmt=name)
    size = before[0].size
    # What ProRes leaves undecoded of a damaged picture is whatever the memory held: nobody can give it again.
    unknown = index.codec == "prores"
    same = [
        a.crc == b.crc or (unknown and a.damaged)
        for a, b in zip(before, after, strict=True)
        if a.size == size
    ]
    assert all(same), f"picture {same.index(False)} differs"
    assert judge.compare_times(before, after, MS).startswith(("equal", "none usable")), name


def carry_through(path: Path, output: Path) -> SourceIndex:
    index = index_source(path)
    settings = JobSettings(
        video=VideoSettings(encoder="ffv1"), grid=GridSettings(frames=9), container="matroska"
    )
    cuts = list(pairwise(part_cuts(index.frames, 9, index.keys)))
    parts = [output.parent / f"part-{number}" for number in range(len(cuts))]
    renderers = [PartRenderer(index, settings, HASH) for _ in range(2)]
    try:
        for number in [*range(0, len(cuts), 2), *reversed(range(1, len(cuts), 2))]:
            renderers[number % 2].render(number, *cuts[number], parts[number], Patient())
    finally:
        for renderer in renderers:
            renderer.close()
    facts = stitch(index, settings, HASH, parts, output, lambda fraction: None)
    verify(output, "matroska", index, decode="all", lost_pts=facts.lost_pts, carried=facts.carried)
    return index
