"""Sound that is encoded stays where it was."""

from __future__ import annotations

import io
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import pytest

from farm.media.sound import add_sound, encode_sound
from tests.media.clips import RATE, make_clip


@dataclass
class Heard:
    damaged: int = 0
    heard_seconds: Fraction | None = None


@pytest.mark.parametrize(("gap_samples", "filled"), [(2176, True), (48, False)], ids=["45 ms", "1 ms"])
def test_a_gap_is_filled_and_what_containers_round_is_none(
    gap_samples: int, filled: bool, tmp_path: Path
) -> None:
    """A fragmented mp4 of FFmpeg 5.1 begins with such a gap: all that followed came 45 ms early."""
    path = make_clip(tmp_path / "a.mov", frames=5, audio_seconds=0.5, audio_codec="pcm_s16le")
    with av.open(str(path)) as source, av.open(io.BytesIO(), "w", format="matroska") as output:
        stream = source.streams.audio[0]
        packets = [packet for packet in source.demux(stream) if packet.size]
        samples = sum(packet.duration or 0 for packet in packets)
        for packet in packets[2:]:
            packet.pts = (packet.pts or 0) + gap_samples
        target = add_sound(output, "flac", stream)
        encoded = list(encode_sound(iter(packets), stream, target, Heard()))
    assert stream.sample_rate == RATE and len(packets) > 3
    assert sum(packet.duration or 0 for packet in encoded) == samples + (gap_samples if filled else 0)
