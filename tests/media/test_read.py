"""Reading ranges: the same pictures as one pass from the start, wherever and in whatever order one begins."""

from __future__ import annotations

import os
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest

from farm.media.index import index_source
from farm.media.read import (
    FrameReader,
    ReadAgain,
    ReadError,
    decode,
    frame_crc,
    open_video,
    real_packets,
)
from farm.source import SourceIndex
from tests.media.clips import corpus, make_clip, picture

Seen = dict[int, tuple[int | None, int]]  # frame number → pts, crc of the picture


def one_pass(index: SourceIndex) -> Seen:
    container, video = open_video(index.path, index.stream)
    with container:
        frames = decode(video, real_packets(container, video), lambda: None)
        if index.linear:
            return {n: (index.pts[n], frame_crc(frame)) for n, frame in enumerate(frames)}
        numbers = {time: number for number, time in enumerate(index.pts)}
        return {numbers[f.pts]: (f.pts, frame_crc(f)) for f in frames if f.pts in numbers}


def read(reader: FrameReader, start: int, stop: int) -> Seen:
    again = False
    while True:
        try:
            return {n: (f.pts, frame_crc(f)) for n, f in reader.read(start, stop, again=again)}
        except ReadAgain:
            again = True


def ranges_of(index: SourceIndex, length: int) -> list[tuple[int, int]]:
    return list(pairwise([*range(0, index.frames, length), index.frames]))


def assert_exact(index: SourceIndex, length: int, *, linear: bool = False) -> None:
    """Every order of ranges gives what one pass gives, and so does the frame after each range."""
    whole = one_pass(index)
    ranges = ranges_of(index, length)
    shuffled = random.Random(7).sample(ranges, len(ranges))
    for order in (ranges, ranges[::-1], shuffled):
        reader = FrameReader(index, linear=linear)
        for start, stop in order:
            expected = {number: whole[number] for number in range(start, stop) if number in whole}
            assert read(reader, start, stop) == expected, (start, stop)
            assert reader.lost == tuple(n for n in range(start, stop) if n not in whole)
            following = reader.next_frame
            seen = None if following is None else (following.pts, frame_crc(following))
            assert seen == whole.get(stop)
        reader.close()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("closed.mp4", {"options": {"x264-params": "keyint=250"}, "gop": 250}),
        ("b.mkv", {"b_frames": 3}),
        ("open.mp4", {"options": {"x264-params": "open-gop=1:keyint=20:bframes=3"}}),
        ("refresh.mp4", {"options": {"x264-params": "intra-refresh=1:keyint=20"}, "b_frames": 0}),
        ("a.ts", {"time_base": Fraction(1, 90000)}),
        ("a.flv", {"time_base": Fraction(1, 1000)}),
        ("late.mp4", {"pts": range(900_000, 900_000 + 50 * 3600, 3600), "time_base": Fraction(1, 90000)}),
        ("hevc.mp4", {"codec": "libx265", "options": {"x265-params": "log-level=none:open-gop=1"}}),
        ("vp9.webm", {"codec": "libvpx-vp9", "b_frames": 0}),
        ("mpeg2.ts", {"codec": "mpeg2video", "time_base": Fraction(1, 25)}),
        ("mpeg4.avi", {"codec": "mpeg4"}),
        ("h264.avi", {}),
        ("raw.h264", {}),
        ("prores.mov", {"codec": "prores_ks", "pix_fmt": "yuv422p10le", "b_frames": 0}),
        ("a.gif", {"codec": "gif", "pix_fmt": "rgb8", "b_frames": 0}),
    ],
)
def test_ranges_of_generated_clips_are_exact(tmp_path: Path, name: str, options: dict[str, object]) -> None:
    index = index_source(make_clip(tmp_path / name, **options))  # type: ignore[arg-type]
    assert_exact(index, 7)


@pytest.mark.parametrize(
    "name", ["S01", "S04", "S05", "S14", "S15", "S20", "S22", "S23", "S24", "S28", "S29", "S33", "S47", "S48"]
)
def test_ranges_of_the_corpus_are_exact(name: str) -> None:
    index = index_source(corpus(name))
    assert_exact(index, max(1, index.frames // 5))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["S02", "S03", "S06", "S07", "S08", "S09", "S12", "S13", "S16", "S17", "S18", "S19", "S21", "S25"]
)
def test_ranges_of_the_rest_of_the_corpus_are_exact(name: str) -> None:
    index = index_source(corpus(name))
    assert_exact(index, max(1, index.frames // 5))


@pytest.mark.parametrize("name", ["S04", "S14"])
def test_linear_reading_gives_the_same(name: str) -> None:
    index = index_source(corpus(name))
    assert_exact(index, max(1, index.frames // 5), linear=True)


def test_running_on_does_not_decode_again(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4", frames=60, gop=250))
    count = 0

    def decoded() -> None:
        nonlocal count
        count += 1

    reader = FrameReader(index, decoded=decoded)
    for start, stop in ranges_of(index, 12):
        read(reader, start, stop)
    assert count == 60
    read(reader, 48, 60)
    assert count == 120  # one keyframe, so everything before it is decoded on the way


def test_a_consumer_that_gives_up_leaves_a_reader_that_works(tmp_path: Path) -> None:
    index = index_source(make_clip(tmp_path / "a.mp4"))
    whole = one_pass(index)
    reader = FrameReader(index)
    for number, _ in reader.read(0, 30):
        if number == 10:
            break
    reader.close()
    assert read(reader, 30, 60) == {n: whole[n] for n in range(30, 60)}

    class Stop(Exception):
        pass

    def decoded() -> None:
        raise Stop

    with pytest.raises(Stop):
        read(FrameReader(index, decoded=decoded), 0, 10)


def damage(path: Path, index: SourceIndex, packets: list[int]) -> SourceIndex:
    """Overwrite most of these packets (in decode order) with noise; the packet table stays as it was."""
    noise = np.random.default_rng(1)
    with path.open("r+b") as file:
        for number in packets:
            entry = index.packets[number]
            assert entry.pos is not None
            file.seek(entry.pos + 8)
            file.write(noise.integers(0, 256, entry.size - 8, dtype=np.uint8).tobytes())
    return index_source(path)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.mp4", {"codec": "libx264"}),
        ("b.mp4", {"codec": "libx265", "options": {"x265-params": "log-level=none"}}),
        ("c.mp4", {"codec": "libvpx-vp9", "b_frames": 0}),
        ("d.mp4", {"codec": "mpeg4"}),
    ],
)
def test_a_damaged_range_does_not_depend_on_where_the_reading_began(
    tmp_path: Path, name: str, options: dict[str, object]
) -> None:
    path = make_clip(tmp_path / name, frames=84, **options)  # type: ignore[arg-type]
    index = damage(path, index_source(path), [28, 29, 40, 61])
    ranges = ranges_of(index, 14)
    alone = [read(FrameReader(index), *each) for each in ranges]
    orders = (ranges, ranges[::-1], ranges[3:] + ranges[:3], ranges[::2] + ranges[1::2])
    for order in orders:
        reader = FrameReader(index)
        for each in order:
            assert read(reader, *each) == alone[ranges.index(each)], each
    assert sum(map(len, alone)) == len(one_pass(index))
    assert index.frames == 84


def test_lost_frames_are_counted_with_their_place(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mp4", codec="libvpx-vp9", b_frames=0, frames=48)
    index = index_source(path)
    with path.open("r+b") as file:
        for number in (30, 31):
            entry = index.packets[number]
            file.seek(entry.pos or 0)
            file.write(bytes(entry.size))
    reader = FrameReader(index)
    seen = read(reader, 24, 36)
    assert reader.lost
    assert set(reader.lost) <= set(range(30, 36))
    assert set(seen) == set(range(24, 36)) - set(reader.lost)
    assert set(one_pass(index)) & set(range(24, 36)) == set(seen)
    read(reader, 36, 48)
    assert reader.lost == ()


def test_where_all_is_damaged_a_range_is_not_read_from_the_start(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.mp4", codec="mpeg4", frames=400, gop=4, b_frames=0)
    index = index_source(path)
    data = bytearray(path.read_bytes())
    for packet in index.packets[10::4]:
        assert packet.pos is not None and not packet.key
        data[packet.pos + packet.size // 2 : packet.pos + packet.size] = bytes(packet.size - packet.size // 2)
    path.write_bytes(data)
    decoded = 0

    def count() -> None:
        nonlocal decoded
        decoded += 1

    reader = FrameReader(index_source(path), decoded=count)
    assert len(read(reader, 380, 400)) == 20
    assert decoded < 6 * 4 * 32 / 2, "it was read from the first packet"
    reader.close()


def test_a_source_that_shrank_or_went_is_an_error_not_a_loss(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "a.ts", frames=200, time_base=Fraction(1, 90000))
    index = index_source(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ReadError, match="sooner than when the job was planned"):
        read(FrameReader(index), 180, 200)
    path.unlink()
    with pytest.raises(ReadError, match="can't be read"):
        read(FrameReader(index), 0, 20)


@pytest.mark.parametrize(
    "pix_fmt",
    ["yuv420p", "yuv422p10le", "nv12", "p010le", "rgb24", "bgra", "gray", "gbrp10le", "yuyv422", "rgb555le"],
)
def test_the_crc_is_of_the_visible_bytes(pix_fmt: str) -> None:
    frame = picture(1, 66, 50, pix_fmt)
    padded = av.VideoFrame(66, 50, pix_fmt)
    assert frame_crc(frame) == frame_crc(picture(1, 66, 50, pix_fmt))
    assert frame_crc(frame) != frame_crc(picture(2, 66, 50, pix_fmt))
    for plane, source in zip(padded.planes, frame.planes, strict=True):
        plane.update(bytes(source))
    for plane in padded.planes:  # fill the padding of every line with something else
        content = np.frombuffer(bytes(plane), np.uint8).reshape(plane.height, -1).copy()
        used = _used(pix_fmt, plane.width)
        content[:, used:] = 0xAB
        plane.update(content.tobytes())
    assert frame_crc(padded) == frame_crc(frame)


def _used(pix_fmt: str, width: int) -> int:
    per_pixel = {"rgb24": 3, "bgra": 4, "yuyv422": 2, "rgb555le": 2, "yuv422p10le": 2, "gbrp10le": 2}
    if pix_fmt in ("nv12", "p010le"):
        size = 2 if pix_fmt == "p010le" else 1
        return width * size * (2 if width == 33 else 1)
    return width * per_pixel.get(pix_fmt, 1)
