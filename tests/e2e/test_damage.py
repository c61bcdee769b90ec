"""A damaged input through the command: stopped at it, and taken up again by whoever puts up with it."""

from __future__ import annotations

from pathlib import Path

import av

from tests.e2e import judge
from tests.e2e.command import run
from tests.media.clips import make_clip


def test_stopped_at_damage_and_taken_up_again_without_rendering_again(tmp_path: Path) -> None:
    source = make_clip(tmp_path / "a.mp4", frames=80, codec="libvpx-vp9", b_frames=0, gop=10)
    with av.open(str(source)) as file:
        victim = [packet for packet in file.demux(video=0) if packet.size][45]
        assert victim.pos is not None
        place = slice(victim.pos, victim.pos + victim.size)
    data = bytearray(source.read_bytes())
    data[place] = bytes(len(data[place]))
    source.write_bytes(data)

    render = ("render", source, "-o", "out.mp4", "--preset", "ultrafast", "--part", "20", "--workers", "2")
    stopped = run(*render, "--on-error", "stop", cwd=tmp_path)
    assert stopped.process.returncode == 3, stopped.stderr
    (line,) = stopped.stderr.strip().splitlines()
    assert "is damaged" in line and "the first at 1.800 s" in line and "--on-error skip" in line
    assert not (tmp_path / "out.mp4").exists()
    assert len(stopped.of("part_credited")) == 4

    gone_on = run(*render, "--on-error", "skip", cwd=tmp_path)
    assert gone_on.process.returncode == 0, gone_on.stderr
    before = len(
        [event for event in gone_on.events if event["event"] == "claim_granted" and "@e2" in event["token"]]
    )
    assert before == 0, "a part was rendered again"
    found = judge.compare(source, tmp_path / "out.mp4", lossless=False)
    assert found.right and found.frames_out < 80, found
    assert any("could not be decoded" in event["text"] for event in gone_on.of("notice"))


def test_choices_that_are_none_are_refused(tmp_path: Path) -> None:
    for option in ("--on-error", "--on-size-change", "--audio"):
        command = run("render", "x.mp4", "-o", "out.mp4", option, "perhaps", cwd=tmp_path)
        assert command.process.returncode == 2
        assert f"{option} perhaps: choose" in command.stderr
