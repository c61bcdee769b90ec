"""Rotation applied: the pixels are where a player that heeds the display matrix would show them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import av
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from farm.errors import UsageError
from farm.media.index import index_source
from farm.media.render import PartRenderer
from farm.media.stitch import stitch
from farm.media.tasks import probe_job
from farm.media.turn import turn_index
from farm.media.verify import verify
from farm.settings import GridSettings, JobSettings, SourceSettings, VideoSettings
from farm.source import part_cuts
from tests.media.clips import corpus, make_clip
from tests.media.jobs import HASH, Patient

ONE, W = 1 << 16, 1 << 30
LOSSLESS = VideoSettings(encoder="libx264", preset="ultrafast", options={"qp": "0"})
APPLY = JobSettings(video=LOSSLESS, grid=GridSettings(frames=7), source=SourceSettings(rotate="apply"))


def matrix(a: int, b: int, c: int, d: int) -> list[int]:
    return [a * ONE, b * ONE, 0, c * ONE, d * ONE, 0, 0, 0, W]


def shown(luma: NDArray[np.uint8], a: int, b: int, c: int, d: int) -> NDArray[np.uint8]:
    """Where the matrix puts each pixel (x, y): at (ax + cy, bx + dy), moved into sight."""
    height, width = luma.shape
    y, x = np.mgrid[0:height, 0:width]
    new_x, new_y = a * x + c * y, b * x + d * y
    new_x, new_y = new_x - new_x.min(), new_y - new_y.min()
    turned = np.zeros((new_y.max() + 1, new_x.max() + 1), dtype=np.uint8)
    turned[new_y, new_x] = luma
    return turned


def lumas(path: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(path)) as file:
        return [frame.to_ndarray(format="gray") for frame in file.decode(video=0)]


def marked(source: Path, target: Path, values: list[int]) -> Path:
    with av.open(str(source)) as file, av.open(str(target), "w") as output:
        stream = output.add_stream_from_template(file.streams.video[0])
        stream.set_display_matrix(values)
        for packet in file.demux(video=0):
            if packet.size:
                packet.stream = stream
                output.mux(packet)
    return target


@pytest.mark.parametrize(
    "turn",
    [
        (0, 1, -1, 0),
        (0, -1, 1, 0),
        (-1, 0, 0, -1),
        (-1, 0, 0, 1),
        (1, 0, 0, -1),
        (0, 1, 1, 0),
        (0, -1, -1, 0),
    ],
    ids=str,
)
def test_the_pixels_are_where_they_would_be_shown(turn: tuple[int, int, int, int], tmp_path: Path) -> None:
    plain = make_clip(tmp_path / "plain.mp4", frames=20, pix_fmt="yuv420p")
    path = marked(plain, tmp_path / "marked.mp4", matrix(*turn))
    index = probe_job(path, APPLY).index
    cuts = list(pairwise(part_cuts(index.frames, 7, index.keys)))
    parts = [tmp_path / f"part-{number}" for number in range(len(cuts))]
    renderer = PartRenderer(index, APPLY, HASH)
    for number, (start, stop) in enumerate(cuts):
        renderer.render(number, start, stop, parts[number], Patient())
    renderer.close()
    output = tmp_path / "out.mp4"
    facts = stitch(index, APPLY, HASH, parts, output, lambda fraction: None)
    verify(output, "mp4", index, decode="all", carried=facts.carried)
    assert not any("size" in words for words in facts.warnings)
    expected = [shown(luma, *turn) for luma in lumas(plain)]
    assert all(np.array_equal(a, b) for a, b in zip(lumas(output), expected, strict=True))
    assert index_source(output).display_matrix == ()


def test_upright_pictures_stay_as_they_are(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4"))
    assert turn_index(index) is index


def test_the_shape_of_the_pixels_turns_with_them(tmp_path: Path) -> None:
    index = index_source(corpus("S31"))
    turned = turn_index(msgspec.structs.replace(index, sample_aspect_ratio=(4, 3)))
    assert (turned.width, turned.height) == (index.height, index.width)
    assert turned.sample_aspect_ratio == (3, 4)


def test_other_matrices_are_refused(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4"))
    askew = msgspec.structs.replace(index, display_matrix=(46341, 46341, 0, -46341, 46341, 0, 0, 0, W))
    with pytest.raises(UsageError, match="--rotate keep"):
        turn_index(askew)
