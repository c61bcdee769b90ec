"""A constant frame rate on request: which frame is shown when, and that parts make up the same pictures."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from farm.media.constant import ConstantReader, make_constant
from farm.media.index import index_source
from farm.media.read import frame_crc
from farm.media.render import PartRenderer
from farm.media.stitch import stitch
from farm.media.tasks import probe_job
from farm.media.verify import verify
from farm.rates import parse_rate
from farm.settings import GridSettings, JobSettings, SourceSettings, VideoSettings
from farm.source import SourceIndex, part_cuts
from tests.e2e import judge
from tests.media.clips import make_clip
from tests.media.jobs import HASH, Patient

MS = Fraction(1, 1000)
LOSSLESS = VideoSettings(encoder="libx264", preset="ultrafast", options={"qp": "0"})
#: A pause, a burst of frames 2 ms apart, jitter about 40 ms.
PTS = [500, 540, 581, 619, 660, 1500, 1502, 1504, 1540, 1581, 1619, 1660, 1700]


def shown_at(times: list[Fraction], rate: Fraction) -> list[int]:
    """The rule once more, the slow way: for each tick the last frame whose nearest tick is not past it."""
    slots = [int((time - times[0]) * rate + Fraction(1, 2)) for time in times]
    frames = slots[-1] + max(1, int((times[-1] - times[-2]) * rate + Fraction(1, 2)))
    return [max(n for n, slot in enumerate(slots) if slot <= k) for k in range(frames)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SourceIndex:
    path = tmp_path_factory.mktemp("constant") / "vfr.mkv"
    return index_source(make_clip(path, pts=PTS, time_base=MS, gop=4))


@pytest.mark.parametrize("rate", ["25", "30000/1001", "12.5", "120", "1"])
def test_every_tick_shows_the_frame_of_the_rule(index: SourceIndex, rate: str) -> None:
    fps = Fraction(*parse_rate(rate))
    made = make_constant(index, fps)
    assert made.constant is not None
    assert list(made.constant.picks) == shown_at([pts * MS for pts in PTS], fps)
    times = [pts * Fraction(*made.time_base) for pts in made.pts]
    assert times[0] == Fraction(1, 2)
    assert {later - earlier for earlier, later in pairwise(times)} <= {1 / fps}


def test_a_rate_that_is_rounded_to_milliseconds_is_found_again(tmp_path: Path) -> None:
    ntsc = Fraction(30000, 1001)
    rounded = [round(n / ntsc * 1000) for n in range(40)]
    index = index_source(make_clip(tmp_path / "a.mkv", pts=rounded, time_base=MS))
    made = make_constant(index, ntsc)
    assert made.constant is not None and made.constant.picks == tuple(range(40))
    assert made.warnings == ()


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("rate", [Fraction(25), Fraction(60), Fraction(5)])
def test_ranges_in_any_order_show_the_same(index: SourceIndex, rate: Fraction, linear: bool) -> None:
    source = judge.one_pass(Path(index.path))
    made = make_constant(index, rate)
    assert made.constant is not None
    ranges = list(pairwise([*range(0, made.frames, 3), made.frames]))
    for order in (ranges, random.Random(3).sample(ranges, len(ranges))):
        reader = ConstantReader(made, linear=linear)
        for start, stop in order:
            found = [(k, frame.pts, frame_crc(frame)) for k, frame in reader.read(start, stop)]
            expected = [(k, made.pts[k], source[made.constant.picks[k]].crc) for k in range(start, stop)]
            assert found == expected
            if reader.next_frame is not None:
                assert frame_crc(reader.next_frame) == source[made.constant.picks[stop]].crc
        reader.close()


def test_a_job_of_constant_rate(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "vfr.mp4", pts=PTS, time_base=MS, gop=4, audio_seconds=1.5)
    settings = JobSettings(
        video=LOSSLESS, grid=GridSettings(frames=7), source=SourceSettings(fps=(30000, 1001))
    )
    probed = probe_job(path, settings)
    index = msgspec.msgpack.decode(msgspec.msgpack.encode(probed.index), type=SourceIndex)
    assert any("constant 29.97 frames a second 2 of 13 frames are left out" in w for w in probed.warnings)
    cuts = list(pairwise(part_cuts(index.frames, 7, index.keys)))
    parts = [tmp_path / f"part-{number}" for number in range(len(cuts))]
    for number in reversed(range(len(cuts))):
        renderer = PartRenderer(index, settings, HASH)
        renderer.render(number, *cuts[number], parts[number], Patient())
        renderer.close()
    output = tmp_path / "out.mp4"
    facts = stitch(index, settings, HASH, parts, output, lambda fraction: None)
    verify(output, "mp4", index, decode="all", carried=facts.carried)
    before, after = judge.one_pass(path), judge.one_pass(output)
    picks = shown_at([entry.time or Fraction(0) for entry in before], Fraction(30000, 1001))
    assert [entry.crc for entry in after] == [before[pick].crc for pick in picks]
    assert [entry.time for entry in after] == [
        Fraction(1, 2) + k * Fraction(1001, 30000) for k in range(len(picks))
    ]
    seen, heard = judge.heard_and_seen(path)
    assert judge.heard_and_seen(output) == (seen, heard)
