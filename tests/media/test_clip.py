"""The demo's clip says which frame is which, and its sound belongs to its picture."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from farm.media.clip import SAMPLE_RATE, make_clip, read_number


def test_every_frame_carries_its_number(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    make_clip(clip, frames=150, gop=40)
    with av.open(str(clip)) as file:
        frames = list(file.decode(video=0))
    assert [read_number(frame) for frame in frames] == list(range(150))
    assert [frame.key_frame for frame in frames].count(True) >= 4
    assert (frames[0].width, frames[0].height) == (320, 180)


@pytest.mark.parametrize(("width", "height"), [(160, 90), (640, 360), (1280, 720)])
def test_other_sizes(tmp_path: Path, width: int, height: int) -> None:
    clip = tmp_path / "clip.mp4"
    make_clip(clip, frames=8, width=width, height=height, fps=25, audio=False)
    with av.open(str(clip)) as file:
        assert not file.streams.audio
        assert file.streams.video[0].average_rate == 25
        assert [read_number(frame) for frame in file.decode(video=0)] == list(range(8))


def test_the_lamp_lights_while_the_tone_sounds(tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    make_clip(clip, frames=90)
    with av.open(str(clip)) as file:
        lamp = [frame.to_ndarray(format="gray")[18, 320 - 24] > 128 for frame in file.decode(video=0)]
    with av.open(str(clip)) as file:
        sound = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)])
    assert abs(len(sound) - 3 * SAMPLE_RATE) <= 1024
    per_frame = SAMPLE_RATE // 30
    loud = [bool(np.abs(sound[n * per_frame : (n + 1) * per_frame]).max() > 0.2) for n in range(90)]
    assert [n for n in range(90) if lamp[n]] == [n + s for s in (0, 30, 60) for n in range(3)]
    assert [n for n in range(90) if loud[n] and not lamp[n]] in ([], [3, 33, 63])  # the codec smears a little
    assert all(loud[n] for n in range(90) if lamp[n])


def test_a_picture_without_the_strip_is_refused() -> None:
    grey = av.VideoFrame.from_ndarray(np.full((180, 320), 90, dtype=np.uint8), format="gray")
    with pytest.raises(ValueError, match="no number"):
        read_number(grey)


@pytest.mark.parametrize("asked", [{"frames": 0}, {"frames": 1 << 24}, {"width": 101}, {"height": 20}])
def test_impossible_clips_are_refused(tmp_path: Path, asked: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a clip of"):
        make_clip(
            tmp_path / "clip.mp4",
            frames=asked.get("frames", 10),
            width=asked.get("width", 320),
            height=asked.get("height", 180),
        )
    assert not list(tmp_path.iterdir())
