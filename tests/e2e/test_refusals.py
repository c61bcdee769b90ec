"""What can't be done is refused before any work, in one sentence, with its exit code, and leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import av
import pytest

from console.cli import main
from tests.e2e.command import run

UNUSABLE = [
    "S39-corrupt-vp9.webm",
    "S40-unopenable.mp4",
    "S43-zero-length.webm",
    "S44-git-lfs-pointer.mp4",
    "S45-audio-only-cover.flac",
    "S46-audio-only.mp4",
    "S49-animated.webp",
]


def refused(code: int, *arguments: str | Path, cwd: Path) -> str:
    before = sorted(cwd.iterdir())
    command = run(*arguments, cwd=cwd)
    assert command.process.returncode == code, command.stderr
    lines = command.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("uneven: "), command.stderr
    assert sorted(cwd.iterdir()) == before, "something was left behind"
    return lines[0]


@pytest.mark.parametrize("name", UNUSABLE)
def test_inputs_that_are_no_video(corpus: Path, name: str, tmp_path: Path) -> None:
    assert name in refused(3, "render", corpus / name, "-o", "out.mp4", cwd=tmp_path)


def test_inputs_that_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "text.mp4").write_text("not a video\n" * 50)
    for name in ("folder.mp4", "text.mp4", "missing.mp4"):
        assert name in refused(3, "render", name, "-o", "out.mp4", cwd=tmp_path)


def test_outputs_that_cannot_be(clip: Path, tmp_path: Path) -> None:
    """RG30: the input by any name is refused as the output, and is as it was."""
    source = tmp_path / "in.mp4"
    source.write_bytes(clip.read_bytes())
    (tmp_path / "link.mp4").symlink_to(source)
    os.link(source, tmp_path / "hard.mp4")
    for name in ("in.mp4", "./in.mp4", "link.mp4", "hard.mp4"):
        assert "input" in refused(4, "render", source, "-o", name, "-y", cwd=tmp_path)
    (tmp_path / "there.mp4").write_bytes(b"precious")
    assert "-y" in refused(4, "render", source, "-o", "there.mp4", cwd=tmp_path)
    assert (tmp_path / "there.mp4").read_bytes() == b"precious"
    refused(4, "render", source, "-o", "no/such/folder.mp4", cwd=tmp_path)
    assert source.read_bytes() == clip.read_bytes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    assert "permission" in refused(4, "render", clip, "-o", "locked/out.mp4", cwd=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("-o", "out.avi"), ".mkv"),
        (("-o", "out.mp4", "--fleet", "30,nan"), "worker 2"),
        (("-o", "out.mp4", "--fleet", "30,-2"), "worker 2"),
        (("-o", "out.mp4", "--schedule", "guided,0"), "guided,0"),
        (("-o", "out.mp4", "--schedule", "guided,20,10"), "max 10"),
        (("-o", "out.mp4", "--schedule", "magic"), "magic"),
        (("-o", "out.mp4", "--tail", "wag"), "wag"),
        (("-o", "out.mp4", "--part", "0"), "--part 0"),
        (("-o", "out.mp4", "--lease", "1"), "--lease"),
        (("-o", "out.mp4", "-crf", "20"), "--crf"),
        (("-o", "out.mp4", "-w", "2", "--fleet", "3"), "--fleet"),
        (("-o", "out.mp4", "-y", "-n"), "-n"),
        (("-o", "out.mp4", "--ui", "gui"), "gui"),
        (("-o", "out.mp4", "--sample", "0%"), "--sample 0%"),
        ((), "-o"),
    ],
)
def test_what_is_asked_wrongly(
    arguments: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str], clip: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["render", str(clip), *arguments])
    assert ended.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and word in lines[0]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("-o", "out.mp4", "-e", "nonesuch"), "nonesuch"),
        (("-o", "out.mp4", "--option", "nonesuch=1"), "nonesuch"),
        (("-o", "out.mp4", "--preset", "warp"), "warp"),
        (("-o", "out.webm"), "webm"),
        (("-o", "out.mp4", "-e", "libx265", "--option", "x265-params=crf=abc"), "Invalid value for crf"),
    ],
)
def test_what_the_encoder_or_container_refuses(
    arguments: tuple[str, ...], word: str, clip: Path, tmp_path: Path
) -> None:
    """RG17: in the encoder's words, at once, with an exit code, and nothing is left."""
    assert word in refused(2, "render", clip, *arguments, cwd=tmp_path)


def test_a_dry_run_shows_the_plan_and_makes_nothing(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "cuts.txt").write_text("100\n333\n")
    arguments = ("render", clip, "-o", "out.mp4", "--dry-run", "--fleet", "30,2", "--cuts", "cuts.txt")
    burnt = ("--burn-text", "top|frame {frame}", "--burn-timecode")
    command = run(*arguments, *burnt, cwd=tmp_path, json=False)
    assert command.process.returncode == 0
    assert "480 frames" in command.stdout and "2 workers: 30 fps, 2 fps" in command.stdout
    assert "frames; 2 cuts from --cuts" in command.stdout
    assert "top: frame {frame}, in the first frame frame 000" in command.stdout
    assert "bottom: {timecode}, in the first frame 00:00:00:00" in command.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["cuts.txt"]


def test_the_demo_replaces_nothing_unasked(tmp_path: Path) -> None:
    (tmp_path / "mine.mp4").write_bytes(b"precious")
    assert "-y" in refused(4, "demo", "-o", "mine.mp4", cwd=tmp_path)
    assert (tmp_path / "mine.mp4").read_bytes() == b"precious"


def test_a_hint_names_an_encoder(clip: Path, tmp_path: Path) -> None:
    line = refused(2, "render", clip, "-o", "out.mp4", "-e", "libx265x", cwd=tmp_path)
    assert "did you mean libx265?" in line


def test_a_file_that_was_cut_off_does_not_verify(clip: Path, tmp_path: Path) -> None:
    data = clip.read_bytes()
    rendered = run("render", clip, "-o", "out.mp4", "--preset", "ultrafast", cwd=tmp_path)
    assert rendered.process.returncode == 0
    # moov is at the end of what we write: a cut file with its header in front is the case that fools a reader
    with (
        av.open(str(tmp_path / "out.mp4")) as source,
        av.open(str(tmp_path / "front.mp4"), "w", options={"movflags": "faststart"}) as output,
    ):
        video = output.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = video
                output.mux(packet)
    data = (tmp_path / "front.mp4").read_bytes()
    (tmp_path / "front.mp4").write_bytes(data[: len(data) * 6 // 10])
    verified = run("verify", "front.mp4", cwd=tmp_path, json=False)
    assert verified.process.returncode == 6 and "promises 480 frames" in verified.stderr
